"""What selection for GPUs shares: which variables loops carry, which elements stand beside each other. Loops themselves are tested with the ISAs."""
from __future__ import annotations

from tinyhw.dtype import dtypes
from tinyhw.machine.structure import adjacent, assigned_variables, swallowed_loads
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.matrix import by_columns
from tinyhw.uop.ops import UOp

HALF = dtypes.float16
LOCAL = UOp(Ops.DEFINE_LOCAL, HALF, (), (0, 64))
BASE = UOp(Ops.DEFINE_VAR, dtypes.int32, (), ("n", 0, 8))

def element(offset: int, buffer: UOp = LOCAL) -> UOp:
  i = UOp(Ops.ADD, dtypes.int32, (BASE, UOp.const(dtypes.int32, offset))) if offset else BASE
  return UOp(Ops.LOAD, HALF, (UOp(Ops.INDEX, HALF, (buffer, i)),))

def vector(*elements: UOp) -> UOp: return UOp(Ops.VECTORIZE, HALF.vec(len(elements)), elements)

def test_adjacent_elements() -> None:
  assert adjacent(vector(*map(element, range(4)))) is element(0).src[0]
  assert adjacent(vector(*map(element, range(2, 6)))) is element(2).src[0]
  for offsets in ((0, 1, 3, 2), (0, 2, 4, 6), (1, 0)): assert adjacent(vector(*map(element, offsets))) is None
  assert adjacent(vector(element(0), element(1, UOp.param(0, HALF, 64)))) is None
  assert adjacent(vector(element(0, UOp.param(0, HALF, 64)), element(1, UOp.param(0, HALF, 64)))) is None, "only local memory is read so"

def test_loads_that_only_a_group_wants() -> None:
  factor, other = vector(*map(element, range(4))), vector(*map(element, range(4, 8)))
  zero = UOp(Ops.CONST, dtypes.float32.vec(4), (), 0.0)
  product = UOp(Ops.MMA, dtypes.float32.vec(4), (factor, other, zero), by_columns(4, 8, 4, HALF, dtypes.float32, 8))
  alone = swallowed_loads((*factor.src, *other.src, factor, other, product))
  assert alone == {*factor.src, *other.src}
  more = UOp(Ops.CAST, dtypes.float32, (factor.src[0],))
  assert swallowed_loads((*factor.src, *other.src, factor, other, product, more)) == {*factor.src[1:], *other.src}

def test_loops_carry_what_is_set_inside_and_stood_before() -> None:
  number = UOp.const(dtypes.int32, 3)
  outer, inner = (UOp(Ops.RANGE, dtypes.int32, (number,), (k, AxisType.REDUCE)) for k in range(2))
  total, part = (UOp(Ops.ACC, dtypes.int32, (number,), k) for k in range(2))
  def set_to(acc: UOp) -> UOp: return UOp(Ops.ASSIGN_ACC, dtypes.void, (acc, number))
  ends = [UOp(Ops.END, dtypes.void, (r,)) for r in (inner, outer)]
  uops = (number, total, outer, part, inner, set_to(part), ends[0], set_to(total), ends[1])
  assert assigned_variables(uops) == {outer: [total], inner: [part]}
