"""Numbers of a kernel that the host computes, for targets without float64.

A float that consists of Variables is computed in float64, rounded once, and then takes the type of the tensor next to
it (uop/weak.py). All lanes of a kernel have the same one. So the host computes such a number for each launch, as it
does the grid, where a target has no float64. The kernel takes the result's bits as one more variable. The result is a
float of another type, an integer or a bool. Float64 next to elements of tensors stays, and is refused by name.

The interpreter's constant folding computes it, so results are to the bit those of a target with float64. Cost: one walk
over the kernel; for a launch as much as a grid that depends on Variables.
"""
from __future__ import annotations

from tinyhw.dtype import DType, dtypes
from tinyhw.engine.schedule.multi import SHARD
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

PREFIX = "_host"      # of the names of the variables that are added
# By size in bytes: the integer that holds a float's bits.
_BITS = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.int32, 8: dtypes.int64}

def computed_by_host(sink: UOp) -> tuple[UOp, dict[str, UOp]]:
  """Replace the numbers that are computed in float64 from Variables.

  Return the kernel, and for the name of each added variable the integer expression of its value.
  """
  uniform: dict[UOp, bool] = {}     # nodes that consist of Variables and constants: is one of them of float64?
  found: dict[UOp, UOp] = {}        # numbers, and what computes them
  values: dict[str, UOp] = {}
  for u in sink.toposort():
    if u.op is Ops.CONST or u.op is Ops.DEFINE_VAR and u.arg[0] != SHARD: uniform[u] = u.dtype is dtypes.float64
    elif u.op in GroupOp.Elementwise and all(s in uniform for s in u.src):
      uniform[u] = u.dtype is dtypes.float64 or any(uniform[s] for s in u.src)
  within = {u for u, wide in uniform.items() if wide and u.dtype is not dtypes.float64 and u.variables()}
  for u in sink.toposort(lambda n: n not in within):   # it ends at the largest ones
    if u not in within: continue
    name = f"{PREFIX}{len(values)}"
    holder = _holder(u.dtype)
    values[name] = u.bitcast(holder) if dtypes.is_float(u.dtype) else u.cast(holder)
    number = UOp(Ops.DEFINE_VAR, dtypes.weakint, (), (name, *holder.limits())).cast(holder)
    found[u] = number.bitcast(u.dtype) if dtypes.is_float(u.dtype) else number.cast(u.dtype)
  return sink.substitute(found), values

def _holder(dtype: DType) -> DType:
  """Return the integer type that holds a number, or the bits of a float."""
  if dtypes.is_float(dtype): return _BITS[dtype.itemsize]
  return dtypes.int64 if dtype in (dtypes.weakint, dtypes.uint64) else dtypes.int32 if dtype is dtypes.bool else dtype
