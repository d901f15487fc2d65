"""The memory accesses of a kernel: for each LOAD and STORE, its element index as a sum of ranges with strides.

Optimisation decides by these strides. An access with stride 1 in a range can be a vector. An access with stride 0 is
shared by the iterations of that range. This file also merges loops that all accesses walk as one, and splits loops of
which an access uses parts.
"""
from __future__ import annotations

from tinyhw import trace
from tinyhw.codegen.kernel.affine import linear, make, number
from tinyhw.codegen.kernel.grid import ranges_of, values_of
from tinyhw.data_class import dataclass
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

@dataclass(frozen=True)
class StridedAccess:
  """One LOAD or STORE.

  `strides`: range -> elements per iteration. `opaque`: ranges that the index or the gate depends on in another way.
  `gated`: those opaque ranges that only the gate depends on.
  """
  node: UOp
  strides: dict[UOp, int]
  opaque: frozenset[UOp]
  gated: frozenset[UOp] = frozenset()

  @property
  def is_store(self) -> bool: return self.node.op is Ops.STORE

  def stride(self, r: UOp) -> int | None:
    """Return the elements per iteration of r; None where that is not a constant."""
    return None if r in self.opaque else self.strides.get(r, 0)

  def distance(self, r: UOp) -> int | None:
    """Return the stride between iterations whose gates are open. Lanes with adjacent elements are adjacent under gates,
    too."""
    return self.strides.get(r, 0) if r in self.gated else self.stride(r)

  def depends(self, r: UOp) -> bool: return r in self.opaque or r in self.strides

def access_of(u: UOp) -> StridedAccess:
  """Return the access of a LOAD or STORE."""
  strides, opaque = strides_of(u.src[0].src[1])
  gate = gate_of(u)
  if gate is None: return StridedAccess(u, strides, opaque)
  return StridedAccess(u, strides, opaque | frozenset(gate.ranges), frozenset(gate.ranges) - opaque)

def strides_of(index: UOp) -> tuple[dict[UOp, int], frozenset[UOp]]:
  """Return the strides of an index expression, and the ranges that it depends on in another way."""
  terms, _ = linear(index)
  strides = {t: c for t, c in terms.items() if t.op is Ops.RANGE}
  return strides, frozenset([r for t in terms if t.op is not Ops.RANGE for r in t.ranges])

def gate_of(u: UOp) -> UOp | None:
  """Return the condition of a LOAD or STORE."""
  if u.op is Ops.LOAD: return u.src[1] if len(u.src) > 1 and u.arg is None else None
  values = values_of(u)
  return values[2] if len(values) > 2 else None

def accesses(sink: UOp) -> list[StridedAccess]:
  """Return the accesses of all LOADs and STOREs, in order."""
  return [access_of(u) for u in sink.toposort() if u.op in (Ops.LOAD, Ops.STORE)]

def merge_ranges(sink: UOp) -> UOp:
  """Merge adjacent loops that every access walks as one: a contiguous elementwise kernel has one loop, whatever its
  shape.

  Loops may also be merged if their position in a flat array is used as a value, as in a counter that numbers random
  elements.
  """
  while True:
    pair = _mergeable(sink)
    if pair is None: return sink
    outer, inner = pair
    merged = UOp(Ops.RANGE, inner.dtype, (number(outer.src[0].arg * inner.src[0].arg),), inner.arg)
    sink = _without(sink, outer, inner, merged)

def _mergeable(sink: UOp) -> tuple[UOp, UOp] | None:
  order = sink.toposort()
  closing = [ranges_of(u) for u in order if u.op in (Ops.STORE, Ops.REDUCE)]
  pairs = list(dict.fromkeys((a, b) for ranges in closing for a, b in zip(ranges, ranges[1:])
                             if a.src[0].op is Ops.CONST and b.src[0].op is Ops.CONST and a.arg[1] is b.arg[1]))
  if not pairs: return None
  together = [frozenset(ranges) for ranges in closing]
  found = [(x.strides, x.opaque) for x in (access_of(u) for u in order if u.op in (Ops.LOAD, Ops.STORE))]
  found += [strides_of(u) for u in _data_indices(sink)]
  for a, b in pairs:
    if any((a in group) != (b in group) for group in together): continue
    size = b.src[0].arg
    if all(a not in opaque and b not in opaque and strides.get(a, 0) == strides.get(b, 0) * size
           for strides, opaque in found):
      return a, b
  return None

def split_ranges(sink: UOp, least: int) -> UOp:
  """Split loops whose index is divided somewhere. The inner loop has as many iterations as the divisor, at least
  `least`.

  A kernel that reads x[r] and a[r // 1024], as with channels of flattened groups, then has a stride in each loop. So
  its loops can become lanes. Ranges are numbered anew, in the same order.
  """
  while True:
    parts = _divided(sink, least)
    if not parts: return sink
    ordered = sorted((u for u in sink.toposort() if u.op is Ops.RANGE), key=lambda r: r.arg)
    pieces: dict[UOp, tuple[UOp, ...]] = {}
    for r in ordered:
      end, first = r.src[0], sum(map(len, pieces.values()))
      ends = (end,) if r not in parts else (number(end.arg // parts[r]), number(parts[r]))
      pieces[r] = tuple([UOp(Ops.RANGE, r.dtype, (e,), (first + k, *r.arg[1:])) for k, e in enumerate(ends)])
    sink = _replaced(sink, pieces)

def _divided(sink: UOp, least: int) -> dict[UOp, int]:
  """Return the loops that an index or a condition divides by a divisor of their size, and the smallest such divisor."""
  found: dict[UOp, int] = {}
  for u in sink.toposort():
    if (u.op not in (Ops.IDIV, Ops.MOD) or u.dtype is not dtypes.weakint or u.src[0].op is not Ops.RANGE
        or u.src[1].op is not Ops.CONST):
      continue
    r, n = u.src[0], u.src[1].arg
    if r.src[0].op is not Ops.CONST or not least <= n < r.src[0].arg or r.src[0].arg % n: continue
    found[r] = min(n, found.get(r, n))
  return found

def _replaced(sink: UOp, pieces: dict[UOp, tuple[UOp, ...]]) -> UOp:
  """Return sink with each range replaced by its pieces, outermost first."""
  new: dict[UOp, UOp] = {}
  for r, mine in pieces.items():
    new[r] = mine[0]
    for inner in mine[1:]:
      new[r] = make(Ops.ADD, dtypes.weakint, (make(Ops.MUL, dtypes.weakint, (new[r], inner.src[0])), inner))
  for u in sink.toposort():
    if u in new: continue
    if u.op in (Ops.STORE, Ops.REDUCE, Ops.STAGE):
      src = tuple(new[s] for s in values_of(u)) + tuple(p for r in ranges_of(u) for p in pieces[r])
    else: src = tuple([new[s] for s in u.src])
    if src == u.src: new[u] = u
    else: new[u] = make(u.op, u.dtype, src, u.arg) if u.tag is None else UOp(u.op, u.dtype, src, u.arg, u.tag)
  trace.hand_on(new)
  return new[sink]

def _data_indices(sink: UOp) -> set[UOp]:
  """Return the index expressions that are used as data, not only in an address, a gate, or as a loop."""
  found: set[UOp] = set()
  seen: set[UOp] = set()
  stack = list(sink.src)
  while stack:
    u = stack.pop()
    if u in seen: continue
    seen.add(u)
    if u.dtype is dtypes.weakint: found.add(u)
    elif u.op is Ops.STORE: stack.append(u.src[1])
    elif u.op is Ops.LOAD:
      array = u.src[0].src[0]
      if array.op is Ops.STAGE: stack.append(array)
      stack.extend(u.src[2:])
    elif u.op in (Ops.REDUCE, Ops.STAGE): stack.append(u.src[0])
    else: stack.extend(u.src)
  return found

def _without(sink: UOp, outer: UOp, inner: UOp, merged: UOp) -> UOp:
  """Return sink with two ranges replaced by one."""
  new: dict[UOp, UOp] = {}
  zero = number(0)
  for u in sink.toposort():
    if u is outer: new[u] = zero
    elif u is inner: new[u] = merged
    elif u.op in (Ops.STORE, Ops.REDUCE, Ops.STAGE):
      values = tuple(new[s] for s in values_of(u))
      ranges = tuple(new[r] for r in ranges_of(u) if r is not outer)
      new[u] = UOp(u.op, u.dtype, values + ranges, u.arg)
    else:
      src = tuple([new[s] for s in u.src])
      new[u] = u if src == u.src else _simple(UOp(u.op, u.dtype, src, u.arg, u.tag))
  trace.hand_on(new)
  return new[sink]

def _simple(u: UOp) -> UOp:
  return u.simplify() if u.dtype is dtypes.weakint and (u.op is Ops.ADD or u.op is Ops.MUL) else u
