"""Flatten the grid and the workgroup to one dimension, drop ranges of one iteration, and normalize index expressions.

All GLOBAL ranges become one, the outermost loop (id FLAT), whose counter is split by // and % once per work item. A
store that does not run over some GLOBAL range is done by the work items where that range's index is 0. Only these read
memory that the kernel writes. LOCAL ranges are handled likewise: the last one is the fastest of the lanes. A STAGE that
all lanes fill closes all of them. Other passes see at most one GLOBAL and one LOCAL range. Cost: one walk over the
kernel.
"""
from __future__ import annotations

from tinyhw import trace
from tinyhw.codegen.kernel.affine import make, number, truth
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp, sint

FLAT = -1  # the id of the flat GLOBAL and LOCAL ranges: before all others
_CLOSING = frozenset({Ops.REDUCE, Ops.STORE, Ops.STAGE})
_SHARED = frozenset({Ops.STAGE, Ops.EXCHANGE})

def values_of(u: UOp) -> tuple[UOp, ...]:
  """Return the sources of a REDUCE, STORE or STAGE that are not its ranges."""
  if u.op is Ops.REDUCE and u.src[0].op is Ops.ACC: return tuple([s for s in u.src if s.op is not Ops.RANGE])
  fewest = 2 if u.op is Ops.STORE else 1
  more = u.op is not Ops.REDUCE and len(u.src) > fewest and u.src[fewest].op is not Ops.RANGE   # a gate or a position
  return u.src[:fewest + more]

def ranges_of(u: UOp) -> tuple[UOp, ...]:
  """Return the ranges that a REDUCE, STORE or STAGE closes."""
  return u.src[len(values_of(u)):]

def flatten_grid(sink: UOp) -> UOp:
  """Leave at most one GLOBAL and one LOCAL range, and no range of a single iteration."""
  order = sink.toposort()
  new: dict[UOp, UOp] = {}
  spread = {kind: _flat([u for u in order if u.op is Ops.RANGE and u.arg[1] is kind], new)
            for kind in (AxisType.GLOBAL, AxisType.LOCAL)}
  written = {store.src[0].src[0] for store in order if store.op is Ops.STORE and _is_output(store)}
  for u in order:
    if u in new: continue
    op = u.op
    if op is Ops.RANGE and u.src[0].op is Ops.CONST and u.src[0].arg == 1: new[u] = number(0)
    elif not u.src: new[u] = u
    elif op in _CLOSING: new[u] = _close(u, new, spread, written)
    else:
      src = tuple([new[s] for s in u.src])
      if op is Ops.LOAD and src[0].src[0].op is Ops.STAGE and len(src[0].src[0].src) == 1: new[u] = _single(src)
      elif u.tag is not None: new[u] = UOp(op, u.dtype, src, u.arg, u.tag)
      elif u.dtype is dtypes.weakint or src != u.src: new[u] = make(op, u.dtype, src, u.arg)
      else: new[u] = u
  trace.hand_on(new)
  return new[sink]

class Spread(NamedTuple):
  """The ranges of one kind, outermost first, and the flat range of them (None where they have one iteration in all)."""
  ranges: tuple[UOp, ...]
  flat: UOp | None

def _flat(ranges: list[UOp], new: dict[UOp, UOp]) -> Spread:
  """Merge ranges of one kind; `new` gets the index of each of them."""
  ranges.sort(key=lambda r: r.arg)
  size: UOp = number(1)
  for r in ranges: size = make(Ops.MUL, dtypes.weakint, (size, r.src[0]))
  if not ranges or size.op is Ops.CONST and size.arg == 1:
    new.update((r, number(0)) for r in ranges)
    return Spread(tuple(ranges), None)
  flat = rest = UOp(Ops.RANGE, dtypes.weakint, (size,), (FLAT, ranges[0].arg[1]))
  for r in reversed(ranges[1:]):
    new[r] = make(Ops.MOD, dtypes.weakint, (rest, r.src[0]))
    rest = make(Ops.IDIV, dtypes.weakint, (rest, r.src[0]))
  new[ranges[0]] = rest
  return Spread(tuple(ranges), flat)

def _close(u: UOp, new: dict[UOp, UOp], spread: dict[AxisType, Spread], written: set[UOp]) -> UOp:
  """Rebuild a node that closes ranges, over the remaining ranges. written: the parameters that the kernel stores to."""
  values, own = [new[s] for s in values_of(u)], ranges_of(u)
  ranges = [new[r] for r in own if r.arg[1] not in spread and new[r].op is Ops.RANGE]
  if u.op is Ops.REDUCE and not ranges and own and all(new[r].op is Ops.CONST for r in own): return values[0]
  if u.op is not Ops.STORE or not _is_output(u):
    workgroup = spread[AxisType.LOCAL]
    lanes = tuple(r for r in own if r.arg[1] is AxisType.LOCAL)
    if lanes and (u.op is Ops.REDUCE or lanes != workgroup.ranges or own[-len(lanes):] != lanes):
      raise CompileError(f"{u.op.name} over lanes {[r.arg[0] for r in lanes]}: only a STAGE is, over all lanes, after "
                         f"its other ranges")
    src = (*values, *ranges, *[workgroup.flat for _ in lanes[:1] if workgroup.flat is not None])
    return make(u.op, u.dtype, src, u.arg) if u.tag is None else UOp(u.op, u.dtype, src, u.arg, u.tag)
  once = truth(True)
  for r in (r for found in spread.values() if found.flat is not None for r in found.ranges):
    if r not in own: once = make(Ops.AND, dtypes.bool, (once, make(Ops.CMPEQ, dtypes.bool, (new[r], number(0)))))
  if once.op is not Ops.CONST: values[1] = _loaded_once(values[1], once, written)
  gate = make(Ops.AND, dtypes.bool, (values[2], once)) if len(values) > 2 else once
  flat = [found.flat for found in spread.values() if found.flat is not None]
  if flat or len(values) > 2: values[2:] = [gate]
  return make(u.op, u.dtype, (*values, *flat, *ranges), u.arg).replace(tag=u.tag)

def _loaded_once(value: UOp, once: UOp, written: set[UOp]) -> UOp:
  """Return a value whose loads of written memory have a gate. What lanes share is left as it is: all of them read it.
  """
  new: dict[UOp, UOp] = {}
  for u in value.toposort():
    src = tuple([new[s] for s in u.src])
    if u.op in _SHARED: new[u] = u
    elif u.op is Ops.LOAD and u.src[0].src[0] in written:
      gate, other = once, u.const_like(0)
      if len(src) > 1: gate, other = make(Ops.AND, dtypes.bool, (src[1], once)), src[2]
      new[u] = UOp(Ops.LOAD, u.dtype, (src[0], gate, other), u.arg, u.tag)
    else: new[u] = u if src == u.src else UOp(u.op, u.dtype, src, u.arg, u.tag)
  return new[value]

def _single(src: tuple[UOp, ...]) -> UOp:
  """Return the value of a load from a STAGE of one element."""
  value = src[0].src[0].src[0]
  return value if len(src) == 1 else make(Ops.WHERE, value.dtype, (src[1], value, src[2]))

def _is_output(store: UOp) -> bool: return store.src[0].src[0].op is Ops.PARAM

def grid_size(sink: UOp) -> sint:
  """Return the number of work items of a flattened kernel."""
  for r in [r for store in sink.src for r in ranges_of(store) if r.arg == (FLAT, AxisType.GLOBAL)]:
    return int(r.src[0].arg) if r.src[0].op is Ops.CONST else r.src[0]
  return 1
