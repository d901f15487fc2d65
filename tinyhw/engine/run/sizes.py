"""Kernels for any number of elements: what draws random numbers is compiled once, not once for each shape and range of
numbers.

Threefry takes longer to compile than most initialisers take to run. An elementwise kernel with a THREEFRY, whose
accesses are all at the counter of its one loop or the same for all elements, becomes a kernel over MOST elements from
number `start` on; its grid says how many of them are done. There are two such forms. One has the tiles that suit a
large array, and does as many elements as fill whole tiles; the other does the rest one by one. So an element is
computed once, none behind the last, and the numbers are those of the plain kernel. Floating point constants, in which
initialisers differ, become variables that hold their bits. Other kernels are left as they are.
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

MOST = 1 << 28   # indices stay below 2**31 where a kernel starts at any of them
START = UOp.variable("start", 0, MOST)
_LOOP = UOp.range(MOST, 0, AxisType.LOOP)
_OTHERS = frozenset({Ops.REDUCE, Ops.STAGE})
_BITS = {dtypes.float32: dtypes.int32, dtypes.float64: dtypes.int64}

class AnySize(NamedTuple):
  """A kernel for any size, in tiles and element by element; how many elements it has here, and the values of its
  variables but START and those of numbers (numbers.py), whose names come first among all."""
  forms: tuple[UOp, UOp]
  elements: int
  values: dict[str, int]

def any_size(sink: UOp) -> AnySize | None:
  """A kernel as one for any size; None where it is not of that kind."""
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
    # a gate may look at the size
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
