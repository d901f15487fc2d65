"""Split reductions with many terms (split-K): partial results first, and their sum in a second kernel.

sum(x) of 64 M elements becomes 256 sums, so that all workers have something to do. The rows of a matrix of few columns
are split, too. Adjacent rows are joined until they fill registers: 16 rows of 17 elements are 17 registers of 16, while
each row by itself would take two. The gradient of a convolution's weight has all positions of all images as terms. It
is summed over a few images at a time, so that data that a tile reads repeatedly fits into shared memory.

A sum of several products becomes several sums, as a tile has two operands. Examples are the gradient of the operands of
queries, keys and values, and that of a weight that each step of a recurrent network uses. Other terms are summed
separately. The order of additions changes, but depends on shapes alone, so results are the same in each run and for any
number of threads. Input and output are tensor graphs. Cost: linear in the graph.
"""
from __future__ import annotations
import functools
import math

from tinyhw.engine.schedule.fuse import REUSE_LIMIT, extents, is_large_product, size_of, terms_per_element
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp, sint, to_indices

FEW_RESULTS = 16        # more results than this are enough to share among workers
MANY_TERMS = 1 << 16    # fewer terms than this are added faster than a second kernel starts
MAX_PARTS = 256
FEW_COLUMNS = 256       # more columns than this, 16 to a register, are enough to share among workers
MANY_ELEMENTS = 1 << 18     # fewer elements of columns are added faster than a second kernel starts
PART_ROWS = 256         # joined rows per part: a longer sum of floats is less exact
# float32 elements of the widest register. It is the same on each device, so that results are, too.
LANES = 16
PART_TERMS = 4096       # of a part of a sum of products
PANEL_BYTES = 1 << 14   # of the terms of a row for which an operand's panel (16 rows) fits into shared memory
PARTIAL_RESULTS = 1 << 22   # elements that partial results may take

_MOVES = GroupOp.Movement - {Ops.RESHAPE} | {Ops.GATHER}
_KEEPS_ORDER = GroupOp.Elementwise | {Ops.RESHAPE, Ops.DETACH, Ops.CONTIGUOUS_BACKWARD}

def split_reductions(roots: list[UOp], came: dict[UOp, UOp] | None = None) -> list[UOp]:
  """Return the same graph with large reductions in two steps. came: receives, for each new node, the node that it
  replaces."""
  new: dict[UOp, UOp] = {}
  changed = False
  nodes = [u for u in UOp.sink(*roots).toposort() if u.op is not Ops.SINK]
  extent, paths = extents(nodes), ReadPaths(nodes)
  for u in nodes:
    src = tuple([new[s] for s in u.src])
    v = new[u] = u if src == u.src else UOp(u.op, u.dtype, src, u.arg)
    if u.op is not Ops.REDUCE_AXIS: continue
    sums = []
    for terms in addends(u, extent):
      old = u.replace(src=(added(terms),))
      extent.setdefault(old.src[0], max([extent[x] for x in terms]))
      split = u.replace(src=(added([new[x] for x in terms]),))
      if is_columns(old) and terms_per_element(old, extent) <= 1 and Ops.PERMUTE not in paths.of(terms):
        sums.append(columns_in_parts(split, joined=not paths.of(terms)))
      else: sums.append(in_two_steps(split, parts_of(old, extent)))
    new[u] = added(sums)
    changed |= new[u] is not v
  if not changed: return roots
  if came is not None: came.update((v, u) for u, v in new.items() if v is not u)
  return [new[r] for r in roots]

def added(terms: list[UOp]) -> UOp:
  """Return the sum of nodes, from the first to the last."""
  return functools.reduce(lambda x, y: UOp(Ops.ADD, x.dtype, (x, y)), terms)

def addends(u: UOp, extent: dict[UOp, int]) -> list[list[UOp]]:
  """Return the addends of a reduction: each product that is large enough for a tile by itself, and the rest as one."""
  if u.arg[0] is not Ops.ADD: return [[u.src[0]]]
  found = terms_of(u.src[0])
  large = [x.op is Ops.MUL and is_large_product(u.replace(src=(x,)), extent) for x in found]
  if len(found) == 1 or not any(large): return [[u.src[0]]]
  rest = [x for x, is_large in zip(found, large) if not is_large]
  return [[x] for x, is_large in zip(found, large) if is_large] + ([rest] if rest else [])

def terms_of(u: UOp) -> list[UOp]:
  """Return the terms that add up to u, in order.

  A sum that is added in at several places is one term: its own terms may outnumber the nodes.
  """
  uses: dict[UOp, int] = {u: 0}
  stack = [u]
  while stack:
    x = stack.pop()
    if x.op is not Ops.ADD: continue
    for s in x.src:
      if s not in uses: stack.append(s)
      uses[s] = uses.get(s, 0) + 1
  found: list[UOp] = []
  stack = [u]
  while stack:
    x = stack.pop()
    if x.op is Ops.ADD and uses[x] <= 1: stack += reversed(x.src)
    else: found.append(x)
  return found

def parts_of(u: UOp, extent: dict[UOp, int]) -> tuple[int, int]:
  """Return the smallest and largest useful number of parts; (1, 1) for a reduction that is best done at once."""
  results = max(1, size_of(u.shape))
  terms = size_of(u.src[0].shape) // results
  if results <= FEW_RESULTS: return (FEW_RESULTS, MAX_PARTS) if terms >= MANY_TERMS else (1, 1)
  most = PANEL_BYTES // bytes_of_term(u)
  if terms <= most or terms_per_element(u, extent) <= REUSE_LIMIT or results * terms // PART_TERMS > PARTIAL_RESULTS:
    return 1, 1
  return terms // PART_TERMS, 4 * terms // PART_TERMS

def bytes_of_term(u: UOp) -> int:
  """Return the bytes of an element of the widest operand of a sum of products."""
  product = _origin(u.src[0])
  return max(_origin(x).dtype.itemsize for x in (product.src if product.op is Ops.MUL else (product,)))

def _origin(u: UOp) -> UOp:
  """Return a value before it was converted and moved."""
  while u.op is Ops.CAST or u.op in GroupOp.Movement: u = u.src[0]
  return u

# ***** columns *****

def is_columns(u: UOp) -> bool:
  """Are all rows of a matrix of few columns reduced, with enough elements for two kernels?"""
  shape, axes = u.src[0].shape, u.arg[1]
  if axes != tuple(range(len(axes))) or not all(isinstance(n, int) for n in shape): return False
  return 1 < size_of(shape[len(axes):]) <= FEW_COLUMNS and size_of(shape) >= MANY_ELEMENTS

class ReadPaths:
  """The operations through which nodes read memory, down to nodes that have a buffer.

  Operations on constants do not count, nor does RESHAPE, which keeps the order. All are found at the first request: few
  graphs have columns.
  """
  def __init__(self, nodes: list[UOp]):
    self.nodes = nodes
    self.found: dict[UOp, frozenset[Ops]] = {}
    self.constant: set[UOp] = set()

  def of(self, terms: list[UOp]) -> frozenset[Ops]:
    if not self.found:
      for u in self.nodes: self.found[u] = self._of(u)
    return frozenset().union(*[self.found[x] for x in terms])

  def _of(self, u: UOp) -> frozenset[Ops]:
    if u.op is Ops.CONST or u.op in GroupOp.Movement and u.src[0] in self.constant: self.constant.add(u)
    if u.op in _MOVES: return frozenset() if u in self.constant else frozenset({u.op})
    if u.op not in _KEEPS_ORDER: return frozenset()
    size = u.size
    return frozenset().union(*[self.found[s] for s in u.src if self.found[s] and s.size == size])

def columns_in_parts(u: UOp, joined: bool) -> UOp:
  """Split the rows into parts, then reduce all parts and the rest. joined: are several rows taken as one?"""
  op, source, columns = u.arg[0], u.src[0], u.size
  rows = source.size // columns
  together = LANES // math.gcd(columns, LANES) if joined else 1
  parts = max(FEW_RESULTS, min(MAX_PARTS, rows // together // PART_ROWS))
  steps = rows // (parts * together)
  whole = parts * together * steps
  flat = _reshaped(source, (rows, columns))
  partial = _reduced(_reshaped(_rows(flat, 0, whole), (parts, steps, together * columns)), op, 1)
  stored = UOp(Ops.CONTIGUOUS, u.dtype, (partial,))
  result = _reduced(_reshaped(stored, (parts * together, columns)), op, 0)
  if whole < rows: result = UOp(op, u.dtype, (result, _reduced(_rows(flat, whole, rows), op, 0)))
  return _reshaped(result, u.shape)

def _reshaped(u: UOp, shape: tuple[sint, ...]) -> UOp:
  return u if u.shape == shape else UOp(Ops.RESHAPE, u.dtype, (u, *to_indices(shape)))

def _reduced(u: UOp, op: Ops, axis: int) -> UOp: return UOp(Ops.REDUCE_AXIS, u.dtype, (u,), (op, (axis,)))

def _rows(u: UOp, begin: int, end: int) -> UOp:
  if (begin, end) == (0, u.shape[0]): return u
  return UOp(Ops.SHRINK, u.dtype, (u, *to_indices((begin, end, 0, u.shape[1]))))

# ***** other reductions *****

def in_two_steps(u: UOp, parts: tuple[int, int]) -> UOp:
  """Return the reduction of reductions; u itself if no reduced axis divides into enough parts."""
  shape, (fewest, most) = u.src[0].shape, parts
  if most == 1: return u
  for axis in sorted(u.arg[1]):
    n = shape[axis]
    if not isinstance(n, int) or n < fewest: continue
    pieces = range(min(most, n), fewest - 1, -1) if fewest == FEW_RESULTS else range(fewest, min(most, n) + 1)
    count = next((p for p in pieces if p > 1 and n % p == 0), 0)
    if not count: continue
    shifted = tuple(a + (a > axis) for a in u.arg[1] if a != axis)
    cut = UOp(Ops.RESHAPE, u.dtype, (u.src[0],) + to_indices(shape[:axis] + (count, n // count) + shape[axis + 1:]))
    partial = UOp(Ops.CONTIGUOUS, u.dtype,
                  (UOp(Ops.REDUCE_AXIS, u.dtype, (cut,), (u.arg[0], tuple(sorted(shifted + (axis + 1,))))),))
    whole = UOp(Ops.REDUCE_AXIS, u.dtype, (partial,), (u.arg[0], (axis,)))
    return UOp(Ops.RESHAPE, u.dtype, (whole,) + to_indices(u.shape))
  return u
