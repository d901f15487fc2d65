"""Put the weights of convolutions in the order in which products copy them, on devices whose lanes copy operands to
shared memory.

A product there copies pieces of 16 bytes. The sum of a convolution runs over positions of its kernel, and over channels
inside of these: for one position, the channels of an image are read with one gate. But weights have channels outside
of positions, and in the gradient of the image they are reversed. Then a lane would load each element alone. A buffer in
the right order takes a small kernel of its own:

    MUL(image, EXPAND(w))  ->  MUL(image, EXPAND(PERMUTE(CONTIGUOUS(PERMUTE(w)))))

On a CPU, panels do that. Input and output are tensor graphs. Cost: linear in the graph, and some 2 ms for a small
factor of products: where its elements and those of the other factor are in memory.
"""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.dtype import dtypes
from tinyhw.engine.schedule.indexing import GatedIndex, flatten, move
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.matrix import PIECE_BYTES
from tinyhw.uop.ops import UOp

MOST_WEIGHTS = 1 << 22  # elements of weights: more would take longer to write than they save
LEAST_USES = 256        # of each element by products, from which a kernel pays that writes and reads it once more

def order_weights(roots: list[UOp], came: dict[UOp, UOp] | None = None) -> list[UOp]:
  """Return the same graph with weights in order. came: as for `with_factors`."""
  return with_factors(roots, ordered_factors, came)

def with_factors(roots: list[UOp], change: Callable[[UOp, tuple[int, ...]], tuple[UOp, ...]],
                 came: dict[UOp, UOp] | None = None) -> list[UOp]:
  """Return the same graph with other factors in its sums of products.

  change: the factors of a MUL, by the MUL and the summed axes. came: receives, for each new node, the node that it
  replaces.
  """
  nodes = [u for u in UOp.sink(*roots).toposort() if u.op is not Ops.SINK]
  new: dict[UOp, UOp] = {}
  changed = False
  for u in nodes:
    src = tuple([new[s] for s in u.src])
    new[u] = u if src == u.src else UOp(u.op, u.dtype, src, u.arg, u.tag)
    if u.op is not Ops.REDUCE_AXIS or u.arg[0] is not Ops.ADD: continue
    products = new[u].src[0]
    if products.op is not Ops.MUL: continue
    factors = change(products, u.arg[1])
    if factors == products.src: continue
    new[u] = UOp(u.op, u.dtype, (UOp(products.op, products.dtype, factors, products.arg, products.tag),), u.arg, u.tag)
    changed = True
  if not changed: return roots
  if came is not None: came.update((v, came.get(u, u)) for u, v in new.items() if v is not u)
  return [new[r] for r in roots]

def ordered_factors(products: UOp, summed: tuple[int, ...]) -> tuple[UOp, ...]:
  """Return the factors of products with weights in order."""
  if not all(is_repeated(f) for f in products.src): return products.src
  x, y = products.src
  return ordered(x, summed, y), ordered(y, summed, x)

def is_repeated(f: UOp) -> bool:
  """Is a factor an array whose elements several products use, as both operands of a matrix product are?"""
  return f.op is Ops.EXPAND or f.op is Ops.CAST and f.src[0].op is Ops.EXPAND

def ordered(f: UOp, summed: tuple[int, ...], other: UOp) -> UOp:
  """Return a factor with its memory in order, if it is a small array that many products use along several summed axes.

  One summed axis becomes the innermost one (`innermost`). Others keep their order, those of the result outermost.
  """
  if f.op is Ops.CAST:
    inner = ordered(f.src[0], summed, other)
    return f if inner is f.src[0] else UOp(f.op, f.dtype, (inner,), f.arg, f.tag)
  if f.op is not Ops.EXPAND or not all(isinstance(n, int) for n in f.shape): return f
  w = f.src[0]
  inside = [k for k in summed if w.shape[k] != 1]
  if len(inside) < 2 or w.size > MOST_WEIGHTS or f.size < LEAST_USES * w.size: return f
  last = innermost(w, inside, other)
  if w.shape[last] % (PIECE_BYTES // narrowest(w).dtype.itemsize) or is_adjacent(w, last): return f
  order = (*[k for k in range(len(w.shape)) if k not in inside], *[k for k in inside if k != last], last)
  narrow = narrowest(w)
  stored = UOp(Ops.CONTIGUOUS, narrow.dtype, (UOp(Ops.PERMUTE, narrow.dtype, (narrow,), order),))
  back = UOp(Ops.PERMUTE, narrow.dtype, (stored,), tuple([order.index(k) for k in range(len(order))]))
  if back.dtype is not w.dtype: back = UOp(Ops.CAST, w.dtype, (back,))
  return UOp(Ops.EXPAND, f.dtype, (back, *f.src[1:]), f.arg, f.tag)

def innermost(w: UOp, inside: list[int], other: UOp) -> int:
  """Return the summed axis that should be the innermost one of an array.

  It is that along which the other factor is adjacent in memory, as in the gradient of weights. Where the other factor
  is adjacent along an axis of the result, as an image is, it is the longest one.
  """
  adjacent = longest_adjacent(other)
  return adjacent if adjacent in inside else max(inside, key=lambda k: w.shape[k])

def longest_adjacent(u: UOp) -> int | None:
  """Return the longest axis along which an array is adjacent in memory."""
  while u.op in (Ops.EXPAND, Ops.CAST): u = u.src[0]     # repeated elements have no distance
  sizes = [n for n in u.shape if isinstance(n, int)]
  if len(sizes) < len(u.shape): return None
  return next((k for k in sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True) if is_adjacent(u, k)), None)

def is_adjacent(u: UOp, k: int) -> bool:
  """Are neighbours along an axis, in the middle of an array, adjacent in memory?"""
  if u.shape[k] == 1: return False
  middle = [int(n) // 2 for n in u.shape]
  return abs(place_of(u, middle) - place_of(u, [*middle[:k], middle[k] - 1, *middle[k + 1:]])) == 1

def place_of(u: UOp, index: list[int]) -> int:
  """Return the position in memory of an element of an array; a negative number where that depends on a variable."""
  at = GatedIndex(tuple([UOp.const(dtypes.weakint, i) for i in index]))
  while u.op in GroupOp.Movement or u.op is Ops.CAST:
    if u.op is not Ops.CAST: at = move(u, at)
    u = u.src[0]
  place = flatten(at.index, u.shape).simplify()
  return int(place.arg) if place.op is Ops.CONST else -1

def narrowest(w: UOp) -> UOp:
  """Return the same array in the type from which it was widened: movements come after the CAST then."""
  base, moves = w, []
  while base.op in GroupOp.Movement:
    moves.append(base)
    base = base.src[0]
  if base.op is not Ops.CAST or base.dtype.itemsize <= base.src[0].dtype.itemsize: return w
  narrow = base.src[0]
  for u in reversed(moves): narrow = UOp(u.op, narrow.dtype, (narrow, *u.src[1:]), u.arg, u.tag)
  return narrow
