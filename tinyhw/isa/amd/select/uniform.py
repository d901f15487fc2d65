"""Analysis of the values of a Program that differ between the lanes of a wave.

A value that is equal in all lanes is uniform. It can be in a scalar register, and the scalar unit can compute it. Other
values are varying and are in vector registers. Computed floats are varying too, since the scalar unit (before RDNA4)
has no floats.

The analysis is optimistic: every value is uniform until a reason makes it varying. Reasons spread from sources to
users, and around loops through variables, until nothing changes (machine/ir/structure.py).
"""
from __future__ import annotations

from tinyhw.dtype import dtypes
from tinyhw.machine.ir.structure import spread
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

def varying_values(program: Program) -> set[UOp]:
  """The values that a vector register must hold."""
  return spread(program.uops, {u for u in program.uops if differs(u, program)})

def differs(u: UOp, program: Program) -> bool:
  """Whether a node is varying by itself: the lane's number, arithmetic of floats, and memory that only the vector unit
  can read."""
  if u.op is Ops.RANGE: return u.arg[1] is AxisType.LOCAL
  if u.op is Ops.ACC: return dtypes.is_float(u.dtype) or u.dtype.count > 1
  if u.op is Ops.MMA: return True
  if u.op is Ops.LOAD: return not scalar_load(u, program)
  if u.op not in GroupOp.Elementwise: return False
  if u.op is Ops.BITCAST: return False
  if dtypes.is_float(u.dtype) or any(dtypes.is_float(s.dtype) for s in u.src): return True
  # the scalar unit has no products of bytes, and compares 64 bits for equality only
  return u.op is Ops.DOT4 or u.op in (Ops.MAX, Ops.CMPLT) and u.src[0].dtype.itemsize == 8

def scalar_load(u: UOp, program: Program) -> bool:
  """Whether the scalar unit could do a load if its index is uniform.

  It can load up to 16 whole dwords of a buffer that the kernel does not write, without a gate.
  """
  buffer = u.src[0].src[0]
  read_only = buffer.op is Ops.PARAM and buffer.arg[0] not in program.written
  return read_only and len(u.src) == 1 and buffer.dtype.itemsize in (4, 8) and u.dtype.itemsize <= 64
