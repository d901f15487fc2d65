"""The shared part of selection for GPUs: variables that loops carry, and vectors of elements.

Loops themselves are tested with the ISAs.
"""
from __future__ import annotations

from tinyhw.dtype import dtypes
from tinyhw.machine.ir.structure import assigned_variables, origin_of
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

def test_where_elements_come_from() -> None:
  vector = UOp(Ops.ACC, dtypes.float32.vec(8), (UOp.const(dtypes.float32, 0.0),), 0)
  part = UOp(Ops.GEP, dtypes.float32.vec(4), (vector,), 4)
  assert origin_of(UOp(Ops.GEP, dtypes.float32, (part,), 3)) == (vector, 7) and origin_of(part) == (vector, 4)

def test_loops_carry_what_is_set_inside_and_stood_before() -> None:
  number = UOp.const(dtypes.int32, 3)
  outer, inner = (UOp(Ops.RANGE, dtypes.int32, (number,), (k, AxisType.REDUCE)) for k in range(2))
  total, part = (UOp(Ops.ACC, dtypes.int32, (number,), k) for k in range(2))
  def set_to(acc: UOp) -> UOp: return UOp(Ops.ASSIGN_ACC, dtypes.void, (acc, number))
  ends = [UOp(Ops.END, dtypes.void, (r,)) for r in (inner, outer)]
  uops = (number, total, outer, part, inner, set_to(part), ends[0], set_to(total), ends[1])
  assert assigned_variables(uops) == {outer: [total], inner: [part]}
