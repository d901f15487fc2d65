"""Store an operand of a matrix product as the lanes of a CPU read it best: in rows along the sum, in the type of the
sum.

All lanes of a vector share one operand of a product: each of its elements is multiplied by a vector of the other
operand. A tile reads a few rows of the shared operand at once. There are two cases in which a buffer pays that a small
kernel writes:

    a.T @ b     a tile would read a piece of each row of a, in another page for each term. The shared operand is the one
                of which no axis is adjacent in the result.
    float16     each tile would convert the operand again. The smaller one is converted once; for the other one panels
                do that (`panel_value` of codegen/transform/stage.py).

    MUL(EXPAND(a), EXPAND(b))  ->  MUL(EXPAND(PERMUTE(CONTIGUOUS(PERMUTE(CAST(a))))), EXPAND(b))

On a GPU, lanes copy operands to shared memory (weights.py). Input and output are tensor graphs. Cost: linear in the
graph.
"""
from __future__ import annotations
import math

from tinyhw.dtype import dtypes
from tinyhw.engine.schedule.weights import narrowest, with_factors
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

LEAST_ROWS = 16          # of an operand that is stored anew
# From these numbers on transposing an operand pays: terms of a sum times uses of an element, and uses alone. Fewer uses
# do not pay for another trip through memory.
LEAST_PRODUCTS, LEAST_USES = 1 << 16, 128
# From these numbers on converting an operand first pays: terms of a sum, and uses of an element.
CONVERTED_TERMS, CONVERTED_USES = 128, 256
CONVERTED = frozenset({dtypes.float16})   # types that vectors convert in several operations

class Factor(NamedTuple):
  """A factor of a product. array: before it is repeated. rows: the one axis that is not summed. adjacent: its axis that
  is adjacent in memory. uses: how often the product reads an element."""
  node: UOp
  array: UOp
  rows: int
  adjacent: int | None
  uses: int

def store_operands(roots: list[UOp], came: dict[UOp, UOp] | None = None) -> list[UOp]:
  """Return the same graph with operands stored anew. came: as for `with_factors`."""
  return with_factors(roots, stored, came)

def stored(product: UOp, summed: tuple[int, ...]) -> tuple[UOp, ...]:
  """Return the factors of a product, one of them with its array stored anew if that pays."""
  factors = factors_of(product, summed)
  if factors is None: return product.src
  last = max(f.rows for f in factors)              # adjacent in the result
  lanes, shared = sorted(factors, key=lambda f: f.rows != last)
  k = next(k for k in summed if product.shape[k] != 1)
  terms = product.shape[k]
  transposes = bool(lanes.adjacent == lanes.rows and shared.adjacent == shared.rows
                    and shared.uses >= LEAST_USES and shared.uses * terms >= LEAST_PRODUCTS)
  chosen = shared if transposes else min(factors, key=lambda f: f.array.size)
  converts = bool(narrowest(chosen.array).dtype in CONVERTED and terms >= CONVERTED_TERMS
                  and chosen.uses >= CONVERTED_USES)
  if not transposes and not converts or chosen.array.shape[chosen.rows] < LEAST_ROWS: return product.src
  return tuple([_stored(f, k, transposes, converts) if f is chosen.node else f for f in product.src])

def factors_of(product: UOp, summed: tuple[int, ...]) -> tuple[Factor, Factor] | None:
  """Return the factors of a matrix product of numbers, which may be batched; None for another sum."""
  if product.dtype not in (dtypes.float32, dtypes.float64): return None
  if not all(f.op is Ops.EXPAND for f in product.src) or not all(isinstance(n, int) for n in product.shape): return None
  inside = [k for k in summed if product.shape[k] != 1]
  if len(inside) != 1: return None
  found = []
  for f in product.src:
    array = f.src[0]
    if array.shape[inside[0]] == 1 or not array.size: return None
    # axes of the result on which only one of the factors depends
    own = [k for k, n in enumerate(array.shape) if n != 1 and k not in inside and product.shape[k] != 1
           and any(g.src[0].shape[k] == 1 for g in product.src)]
    if len(own) != 1: return None
    found.append(Factor(f, array, own[0], adjacent_axis(array), f.size // array.size))
  a, b = found
  return None if a.rows == b.rows else (a, b)

def adjacent_axis(u: UOp) -> int | None:
  """Return the axis of an array whose elements are adjacent in memory; None if no axis is known to be.

  A value that is computed will have its own order.
  """
  if u.op is Ops.CAST: return adjacent_axis(u.src[0])
  long = [k for k, n in enumerate(u.shape) if n != 1]
  if u.op not in GroupOp.Movement: return long[-1] if long else None
  inner = adjacent_axis(u.src[0])
  if inner is None or u.op is Ops.EXPAND: return inner
  if u.op is Ops.PERMUTE: return int(u.arg.index(inner))
  if u.op is not Ops.RESHAPE: return inner
  shape, made = u.src[0].shape, u.shape
  if all(n == 1 for n in shape[inner + 1:]): return long[-1] if long else None
  if not all(isinstance(n, int) for n in (*shape, *made)): return None
  before, through = math.prod(shape[:inner]), math.prod(shape[:inner + 1])
  return next((k for k in long if math.prod(made[:k]) >= before and math.prod(made[:k + 1]) == through), None)

def _stored(f: UOp, k: int, transposes: bool, converts: bool) -> UOp:
  """Return a factor whose array has a buffer. transposes: with axis k innermost. converts: in the product's type."""
  array = f.src[0] if converts else narrowest(f.src[0])
  order = tuple(range(len(array.shape)))
  if transposes: order = (*[i for i in order if i != k], k)
  made = UOp(Ops.PERMUTE, array.dtype, (array,), order) if transposes else array
  made = UOp(Ops.CONTIGUOUS, array.dtype, (made,))
  if transposes: made = UOp(Ops.PERMUTE, array.dtype, (made,), tuple([order.index(i) for i in range(len(order))]))
  if made.dtype is not f.dtype: made = UOp(Ops.CAST, f.dtype, (made,))
  return UOp(Ops.EXPAND, f.dtype, (made, *f.src[1:]), f.arg, f.tag)
