"""Order the output loops of a reduction so that operands come from near caches.

A loop that an operand does not depend on reads it again in each iteration. x @ w.T for 128 rows is an example. With the
loop over rows outside, each four rows read all of w, from memory. With the loop over columns outside, each three
columns of w stay in the first cache for all rows.

    bytes of an operand, again = runs of the loop * (iterations - 1) * bytes of the operand's inner loops

It comes from the smallest cache that holds what all operands read in one iteration of the loop, since that is read in
between. The cost of a byte is relative to the third cache. What is read for the first time is the same in each order.
Cost: a few products for each operand and order; kernels have two or three such loops.
"""
from __future__ import annotations
import itertools
import math
from collections.abc import Mapping, Sequence

from tinyhw.codegen.kernel.access import StridedAccess
from tinyhw.codegen.transform.tiling import size_of
from tinyhw.uop.ops import UOp

# Of a byte from the first, second and third cache, and from memory. One core of a Cascade Lake reads 238, 106, 24 and
# 12 GB/s from them.
LEVEL_COSTS = (0.05, 0.12, 1.0, 2.0)
BEYOND_FIRST = (0.0, *LEVEL_COSTS[1:])   # where the instructions that load count otherwise
MOST_LOOPS = 4             # more are not permuted
CACHE_SHARE = 0.8          # of a cache, that the operands of a kernel find
NEARLY = 0.03              # of all that is read: an order that costs so little more is as good

def ordered(loops: Sequence[UOp], steps: Mapping[UOp, int], reads: Sequence[StridedAccess],
            caches: Sequence[int]) -> list[UOp]:
  """Return loops, outermost first: of the orders that cost nearly the least, the first one, as the loops are given.

  steps: iterations of each loop. reads: loads under all loops. caches: bytes of the caches, nearest first.
  """
  permuted = [r for r in loops if steps[r] > 1]
  if not 1 < len(permuted) <= MOST_LOOPS or not caches: return list(loops)
  costs = {order: cost(order, steps, reads, caches) for order in itertools.permutations(permuted)}
  least, once = min(costs.values()), sum([bytes_inside(access, frozenset(), steps) for access in reads])
  best = next(order for order, found in costs.items() if found <= least + NEARLY * (least + once))
  return [*best, *[r for r in loops if r not in permuted]]

def least_cost(loops: Sequence[UOp], outside: frozenset[UOp], steps: Mapping[UOp, int],
               reads: Sequence[StridedAccess], caches: Sequence[int]) -> float:
  """Return the cost, beyond the first cache, of the best order in which the loops of `outside` are around all others.
  """
  if not caches or not reads or not loops: return 0.0
  first, rest = [r for r in loops if r in outside], [r for r in loops if r not in outside]
  if len(loops) > MOST_LOOPS: return cost(first + rest, steps, reads, caches, BEYOND_FIRST)
  return min(cost((*a, *b), steps, reads, caches, BEYOND_FIRST) for a in itertools.permutations(first)
             for b in itertools.permutations(rest))

def cost(order: Sequence[UOp], steps: Mapping[UOp, int], reads: Sequence[StridedAccess],
         caches: Sequence[int], costs: Sequence[float] = LEVEL_COSTS) -> float:
  """Return the cost of what is read again, in bytes from the third cache."""
  total, runs = 0.0, 1
  for k, r in enumerate(order):
    outside = frozenset(order[:k + 1])
    sizes = [bytes_inside(access, outside, steps) for access in reads]
    each = level_cost(sum(sizes), caches, costs)
    total += runs * (steps[r] - 1) * sum([n for access, n in zip(reads, sizes) if not access.depends(r)]) * each
    runs *= steps[r]
  return total

def bytes_inside(access: StridedAccess, outside: frozenset[UOp], steps: Mapping[UOp, int]) -> int:
  """Return the bytes that an access reads in one iteration of the loops outside of it."""
  n: int = access.node.dtype.itemsize
  for r in frozenset(access.strides) | access.opaque:
    n *= -(-max(size_of(r), 1) // steps[r]) if r in outside else max(size_of(r), 1)
  return n

def level_cost(size: int, caches: Sequence[int], costs: Sequence[float] = LEVEL_COSTS) -> float:
  """Return the cost of a byte of this many that are read in turn."""
  for held, each in zip(caches, costs):
    if size <= held * CACHE_SHARE: return each
  return costs[-1]

def steps_by_range(loops: Sequence[UOp], factors: Mapping[UOp, int]) -> dict[UOp, int]:
  """Return the iterations of loops over tiles. factors: the elements of a tile along each loop."""
  return {r: max(math.ceil(size_of(r) / factors[r]), 1) for r in loops}
