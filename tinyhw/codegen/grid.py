"""Make the grid one-dimensional, drop ranges of one iteration, and bring index expressions to normal form.

All GLOBAL ranges become one, the outermost loop (id FLAT), whose counter is split by // and % once per work item. A store that does not run over
some GLOBAL range is done by the work items where that range's index is 0. One walk over the kernel; the other passes see at most one GLOBAL range.
"""
from __future__ import annotations

from tinyhw import trace
from tinyhw.codegen.affine import make, number, truth
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp, sint

FLAT = -1  # the id of the flat GLOBAL range: before all others
_CLOSING = frozenset({Ops.REDUCE, Ops.STORE, Ops.STAGE})

def values_of(u: UOp) -> tuple[UOp, ...]:
  """The sources of a REDUCE, STORE or STAGE that are not its ranges."""
  if u.op is not Ops.STORE: return u.src[:1]
  return u.src[:3] if len(u.src) > 2 and u.src[2].op is not Ops.RANGE else u.src[:2]

def ranges_of(u: UOp) -> tuple[UOp, ...]:
  """The ranges that a REDUCE, STORE or STAGE closes."""
  return u.src[len(values_of(u)):]

def flatten_grid(sink: UOp) -> UOp:
  """sink with at most one GLOBAL range and no range of a single iteration."""
  order = sink.toposort()
  grid = sorted((u for u in order if u.op is Ops.RANGE and u.arg[1] is AxisType.GLOBAL), key=lambda r: r.arg)
  new, flat = _split_grid(grid)
  for u in order:
    if u in new: continue
    op = u.op
    if op is Ops.RANGE and u.src[0].op is Ops.CONST and u.src[0].arg == 1: new[u] = number(0)
    elif not u.src: new[u] = u
    elif op in _CLOSING: new[u] = _close(u, new, grid if op is Ops.STORE else [], flat)
    else:
      src = tuple([new[s] for s in u.src])
      if op is Ops.LOAD and src[0].src[0].op is Ops.STAGE and len(src[0].src[0].src) == 1: new[u] = _single(src)
      elif u.dtype is dtypes.weakint or src != u.src: new[u] = make(op, u.dtype, src, u.arg)
      else: new[u] = u
  trace.hand_on(new)
  return new[sink]

def _split_grid(grid: list[UOp]) -> tuple[dict[UOp, UOp], UOp | None]:
  """What each GLOBAL range becomes, and the flat one (None without a grid or when one work item is all)."""
  sizes = [r.src[0] for r in grid]
  size: UOp = number(1)
  for s in sizes: size = make(Ops.MUL, dtypes.weakint, (size, s))
  if not grid or size.op is Ops.CONST and size.arg == 1: return {r: number(0) for r in grid}, None
  flat = UOp(Ops.RANGE, dtypes.weakint, (size,), (FLAT, AxisType.GLOBAL))
  new: dict[UOp, UOp] = {}
  rest = flat
  for r in reversed(grid[1:]):
    new[r] = make(Ops.MOD, dtypes.weakint, (rest, r.src[0]))
    rest = make(Ops.IDIV, dtypes.weakint, (rest, r.src[0]))
  new[grid[0]] = rest
  return new, flat

def _close(u: UOp, new: dict[UOp, UOp], grid: list[UOp], flat: UOp | None) -> UOp:
  """A node that closes ranges, over those that are left of them."""
  values, own = [new[s] for s in values_of(u)], ranges_of(u)
  ranges = [new[r] for r in own if r.arg[1] is not AxisType.GLOBAL and new[r].op is Ops.RANGE]
  if u.op is Ops.REDUCE and not ranges and own and all(new[r].op is Ops.CONST for r in own): return values[0]
  if flat is not None and u.op is Ops.STORE and _is_output(u):
    ranges.insert(0, flat)
    gate = values[2] if len(values) > 2 else truth(True)
    for r in grid:
      if r not in own: gate = make(Ops.AND, dtypes.bool, (gate, make(Ops.CMPEQ, dtypes.bool, (new[r], number(0)))))
    values[2:] = [gate]
  return make(u.op, u.dtype, (*values, *ranges), u.arg)

def _single(src: tuple[UOp, ...]) -> UOp:
  """A load from a STAGE of one element: the value itself."""
  value = src[0].src[0].src[0]
  return value if len(src) == 1 else make(Ops.WHERE, value.dtype, (src[1], value, src[2]))

def _is_output(store: UOp) -> bool: return store.src[0].src[0].op is Ops.PARAM

def grid_size(sink: UOp) -> sint:
  """How many work items a flattened kernel has."""
  for u in sink.toposort():
    if u.op is Ops.RANGE and u.arg[0] == FLAT: return int(u.src[0].arg) if u.src[0].op is Ops.CONST else u.src[0]
  return 1
