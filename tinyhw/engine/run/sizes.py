"""Kernels for any number of elements, so that random numbers need one kernel instead of one for each shape and range.

Threefry takes longer to compile than most initialisers take to run. The pass takes an elementwise kernel with a
THREEFRY, whose accesses are all at the counter of its one loop, or are the same for all elements. It becomes a kernel
over MOST elements from number `start` on, and the grid limits how many are done. There are two such forms. One has the
tiles for a large array, and does the elements that fill whole tiles. The other does the rest one by one. So each
element is computed once, none after the last is touched, and the numbers equal those of the plain kernel. Floating
point constants, in which initialisers differ, become variables that hold their bits. Other kernels stay as they are.
"""
from __future__ import annotations

from tinyhw.arithmetic import to_bytes
from tinyhw.codegen.kernel.access import merge_ranges
from tinyhw.codegen.kernel.grid import ranges_of, values_of
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.dtype import dtypes
from tinyhw.engine.schedule.numbers import is_number
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import KernelInfo, UOp

# Indices stay below 2**31 even if a kernel starts at the last of these elements.
MOST = 1 << 28
START = UOp.variable("start", 0, MOST)
_LOOP = UOp.range(MOST, 0, AxisType.LOOP)
_OTHERS = frozenset({Ops.REDUCE, Ops.STAGE})
_BITS = {dtypes.float32: dtypes.int32, dtypes.float64: dtypes.int64}

class AnySize(NamedTuple):
  """A kernel for any size: in tiles, and element by element.

  It also has the number of elements here, and the values of its variables except START and numbers (numbers.py), whose
  names come first.
  """
  forms: tuple[UOp, UOp]
  elements: int
  values: dict[str, int]

def any_size(sink: UOp) -> AnySize | None:
  """Return a kernel's form for any size; None if it has none."""
  nodes = sink.toposort()
  if not any(u.op is Ops.THREEFRY for u in nodes): return None
  if any(u.op in _OTHERS or u.op is Ops.DEFINE_VAR and not is_number(u) for u in nodes): return None
  if any(ranges_of(s) != ranges_of(sink.src[0]) for s in sink.src): return None
  flat = merge_ranges(sink)
  nodes = flat.toposort()
  loops = [u for u in nodes if u.op is Ops.RANGE]
  if len(loops) != 1 or loops[0].src[0].op is not Ops.CONST or loops[0].src[0].arg > MOST: return None
  loop, elements = loops[0], int(loops[0].src[0].arg)
  changes, values = {loop: _LOOP + START}, dict[str, int]()
  for u in nodes:
    # a gate may depend on the size
    if u.op in (Ops.LOAD, Ops.STORE) and len(u.src) != (1 if u.op is Ops.LOAD else 3): return None
    if u.op is Ops.CONST and u.dtype in _BITS:
      name = f"constant{len(values)}"
      values[name] = int.from_bytes(to_bytes(u.arg, u.dtype), "little", signed=True)
      whole = _BITS[u.dtype]
      changes[u] = UOp.variable(name, int(whole.min), int(whole.max)).cast(whole).bitcast(u.dtype)
    if u.op is not Ops.INDEX: continue
    buffer, i = u.src
    if i is loop and buffer.arg[1] == elements: changes[buffer] = UOp.param(buffer.arg[0], buffer.dtype, 2 * MOST)
    elif i.ranges: return None
  stores = [UOp(Ops.STORE, dtypes.void, (*[v.substitute(changes) for v in values_of(s)], _LOOP)) for s in flat.src]
  tiles, singles = KernelInfo("E_n"), KernelInfo("E_n_1", (Opt(OptOps.GRID, 0),))
  return AnySize((UOp.sink(*stores, arg=tiles), UOp.sink(*stores, arg=singles)), elements, values)
