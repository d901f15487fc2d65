"""Load two fragments of an operand at once, for targets whose lanes load blocks of shared memory together (FRAGMENT,
docs/design/program.md).

A FRAGMENT of two blocks takes the addresses of their rows from the first half of the lanes. The other half has the same
addresses. Two FRAGMENTs of one array, whose indices differ by a constant, become one of four blocks. The second half of
its lanes gives the addresses of the second two blocks. Pairs are neighbours in the order of their constants. All pairs
of an array have the same distance, so that they share the rest of their index. After this pass every FRAGMENT, paired
or not, has its address as the only source. Cost: one walk, and one look at the sum of each index.
"""
from __future__ import annotations

from tinyhw import trace
from tinyhw.codegen.kernel.affine import linear, make, number
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.matrix import FRAGMENT_LANES, blocks_of
from tinyhw.uop.ops import UOp

MOST_BLOCKS = 4

# array, transposed, type, the non-constant terms of the index
Key = tuple[UOp, bool, object, frozenset[tuple[UOp, int]]]

def widen_fragments(sink: UOp) -> UOp:
  """Return sink with pairs of fragments as one."""
  order = sink.toposort()
  found: dict[Key, dict[int, UOp]] = {}
  for u in order:
    if u.op is not Ops.FRAGMENT: continue
    terms, constant = linear(u.src[0].src[1])
    found.setdefault((u.src[0].src[0], u.arg, u.dtype, frozenset(terms.items())), {})[constant] = u
  if not found: return sink
  pairs: dict[UOp, tuple[UOp, UOp]] = {}  # each of two -> both
  for fragments in found.values():
    for first, second in paired(fragments): pairs[first] = pairs[second] = first, second
  new: dict[UOp, UOp] = {}
  wide: dict[UOp, UOp] = {}
  for u in order:
    src = tuple([new[s] for s in u.src])
    if u.op is not Ops.FRAGMENT: new[u] = u if src == u.src else UOp(u.op, u.dtype, src, u.arg, u.tag)
    elif u not in pairs: new[u] = UOp(u.op, u.dtype, src[:1], u.arg)
    else:
      first, second = pairs[u]
      if first not in wide: wide[first] = both(first, second, src[0].src[0])
      new[u] = UOp(Ops.GEP, u.dtype, (wide[first],), 0 if u is first else u.dtype.count)
  trace.hand_on(new)
  return new[sink]

def paired(fragments: dict[int, UOp]) -> list[tuple[UOp, UOp]]:
  """Return pairs of neighbours that all have the same distance, if two fragments fit into one."""
  places = sorted(fragments)
  if len(places) < 2 or 2 * blocks_of(fragments[places[0]].dtype) > MOST_BLOCKS: return []
  distance = places[1] - places[0]
  pairs, at = [], 0
  while at + 1 < len(places):
    if places[at + 1] - places[at] == distance:
      pairs.append((fragments[places[at]], fragments[places[at + 1]]))
      at += 2
    else: at += 1
  return pairs

def both(first: UOp, second: UOp, buffer: UOp) -> UOp:
  """Return one FRAGMENT for two. buffer: the new node of their array."""
  place, lane = first.src
  distance = linear(second.src[0].src[1])[1] - linear(place.src[1])[1]
  half = make(Ops.IDIV, dtypes.weakint, (lane, number(FRAGMENT_LANES // 2)))
  at = make(Ops.ADD, dtypes.weakint, (place.src[1], make(Ops.MUL, dtypes.weakint, (half, number(distance)))))
  scalar = first.dtype.scalar()
  return UOp(Ops.FRAGMENT, scalar.vec(2 * first.dtype.count), (UOp(Ops.INDEX, scalar, (buffer, at)),), first.arg)
