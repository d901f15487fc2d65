"""How a kernel touches memory: for each LOAD and STORE, its element index as a sum of ranges with strides.

What optimisation decides with: an access with stride 1 in a range can be a vector, one with stride 0 is shared by that range's iterations. Also
here: merging loops that all accesses walk as one.
"""
from __future__ import annotations
from dataclasses import dataclass

from tinyhw import trace
from tinyhw.codegen.affine import linear, number
from tinyhw.codegen.grid import ranges_of, values_of
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

@dataclass(frozen=True)
class Access:
  """One LOAD or STORE. strides: range -> elements per iteration; `opaque`: ranges that the index or the gate depends on in another way;
  gated: those of them that only the gate depends on so."""
  node: UOp
  strides: dict[UOp, int]
  opaque: frozenset[UOp]
  gated: frozenset[UOp] = frozenset()

  @property
  def is_store(self) -> bool: return self.node.op is Ops.STORE

  def stride(self, r: UOp) -> int | None:
    """Elements per iteration of r; None where that is not a constant."""
    return None if r in self.opaque else self.strides.get(r, 0)

  def distance(self, r: UOp) -> int | None:
    """The same between iterations that touch memory at all: what lanes read side by side, they do so where a gate holds for some of them, too."""
    return self.strides.get(r, 0) if r in self.gated else self.stride(r)

  def depends(self, r: UOp) -> bool: return r in self.opaque or r in self.strides

def access_of(u: UOp) -> Access:
  """The access of a LOAD or STORE."""
  strides, opaque = strides_of(u.src[0].src[1])
  gate = gate_of(u)
  if gate is None: return Access(u, strides, opaque)
  return Access(u, strides, opaque | frozenset(gate.ranges), frozenset(gate.ranges) - opaque)

def strides_of(index: UOp) -> tuple[dict[UOp, int], frozenset[UOp]]:
  """The strides of an index expression, and the ranges that it depends on in another way."""
  terms, _ = linear(index)
  strides = {t: c for t, c in terms.items() if t.op is Ops.RANGE}
  return strides, frozenset([r for t in terms if t.op is not Ops.RANGE for r in t.ranges])

def gate_of(u: UOp) -> UOp | None:
  """The condition of a LOAD or STORE."""
  if u.op is Ops.LOAD: return u.src[1] if len(u.src) > 1 else None
  values = values_of(u)
  return values[2] if len(values) > 2 else None

def accesses(sink: UOp) -> list[Access]:
  """Of all LOADs and STOREs, in order."""
  return [access_of(u) for u in sink.toposort() if u.op in (Ops.LOAD, Ops.STORE)]

def merge_ranges(sink: UOp) -> UOp:
  """Neighbouring loops that every access walks as one become one loop: a contiguous elementwise kernel has one, whatever its shape was.

  So do loops whose position in a flat array is a value itself, as in a counter that numbers random elements.
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
    if all(a not in opaque and b not in opaque and strides.get(a, 0) == strides.get(b, 0) * size for strides, opaque in found): return a, b
  return None

def _data_indices(sink: UOp) -> set[UOp]:
  """Index expressions that are used as data, not only in an address, a gate, or as a loop."""
  found: set[UOp] = set()
  seen: set[UOp] = set()
  stack = list(sink.src)
  while stack:
    u = stack.pop()
    if u in seen: continue
    seen.add(u)
    if u.dtype is dtypes.weakint: found.add(u)
    elif u.op is Ops.STORE: stack.append(u.src[1])
    elif u.op is Ops.LOAD: stack.extend(u.src[2:])
    elif u.op is Ops.REDUCE: stack.append(u.src[0])
    else: stack.extend(u.src)
  return found

def _without(sink: UOp, outer: UOp, inner: UOp, merged: UOp) -> UOp:
  """sink with two ranges replaced by one."""
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
      new[u] = u if src == u.src else _simple(UOp(u.op, u.dtype, src, u.arg))
  trace.hand_on(new)
  return new[sink]

def _simple(u: UOp) -> UOp: return u.simplify() if u.dtype is dtypes.weakint and (u.op is Ops.ADD or u.op is Ops.MUL) else u
