"""Bring any product to one range of rows, one of columns and one of the sum, so that the matrix unit's tiles fit it.

A convolution is a sum over channels and positions of the kernel. Its columns are images and positions in them. Merge
the output ranges of the first operand into one row range, those of the second into one column range, and the shared
reduction ranges into one k range. Each old range is a digit of the new one. Ranges that both operands have in the
output (a batch) stay.

The k range is padded to a multiple of the unit's steps. In the padding operands are 0, and memory is not touched.
Divisions cost little: operands are staged in shared memory once for many products (matrix.py).
"""
from __future__ import annotations
import itertools
import math

from tinyhw import trace
from tinyhw.codegen.kernel.access import StridedAccess, access_of
from tinyhw.codegen.kernel.affine import linear, make, number
from tinyhw.codegen.kernel.grid import ranges_of, values_of
from tinyhw.codegen.matrix.matrix import factors, is_zero
from tinyhw.codegen.transform.tiling import size_of, substitute
from tinyhw.codegen.transform.window import pair_of
from tinyhw.dtype import DType, dtypes
from tinyhw.machine.ir.target import Capabilities
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import Ops
from tinyhw.uop.matrix import PIECE_BYTES, Matrix
from tinyhw.uop.ops import UOp

STEPS = (1, 2, 4, 8, 16)   # of the unit between two barriers
# of these, the most that a sum is padded to a multiple of: in steps, or in terms
MOST_PADDED, MOST_PADDED_TERMS = 8, 128
MOST_PADDING = 16      # of a sum's steps, 1 in this many may be added so that more of them are staged at once

class ProductOfUnit(NamedTuple):
  """A product that a matrix unit takes: the ranges of rows, columns and the sum, the two factors, the unit's shape."""
  groups: list[list[UOp]]
  factors: tuple[UOp, UOp]
  matrix: Matrix

def one_range_each(sink: UOp, capabilities: Capabilities) -> UOp:
  """Return the kernel with one range each for the rows, columns and sum of its product.

  All stores must share the product. Other kernels, and those with gathered operands, are returned unchanged.
  """
  found = product_in(sink, capabilities)
  if found is None or found.matrix.lanes != capabilities.lanes: return sink
  groups = with_shifts_outside(found.groups, found.factors, found.matrix)
  return merged(sink, groups, found.factors, found.matrix)

def product_in(sink: UOp, capabilities: Capabilities) -> ProductOfUnit | None:
  """Return the kernel's product, if a matrix unit takes it: that of a wave rather than that of a group of waves."""
  reduces = [u for u in sink.toposort() if u.op is Ops.REDUCE]
  if len(reduces) != 1 or any(ranges_of(s) != ranges_of(sink.src[0]) for s in sink.src): return None
  outputs, summed = ranges_of(sink.src[0]), ranges_of(reduces[0])
  if not all(size_of(r) for r in (*outputs, *summed)): return None
  for matrix in sorted(capabilities.matrix, key=lambda matrix: matrix.lanes != capabilities.lanes):
    found = factors(reduces[0], matrix)
    if found is None: continue
    x, y = (frozenset(factor.ranges) for factor in found)
    free = [r for r in outputs if r in x and r not in y], [r for r in outputs if r in y and r not in x]
    # inner ones are columns
    groups = [*sorted(free, key=lambda group: [r.arg[0] for r in group[-1:]]),
              [r for r in summed if r in x and r in y]]
    if any(u.op is Ops.LOAD and any(v.op is Ops.LOAD for v in u.src[0].src[1].toposort())
           for u in reduces[0].toposort()):
      return None
    if all(product_of(group) >= least for group, least in zip(groups, least_of(matrix))):
      return ProductOfUnit(groups, found, matrix)
  return None

def with_shifts_outside(groups: list[list[UOp]], found: tuple[UOp, UOp], matrix: Matrix) -> list[list[UOp]]:
  """Return the groups with shifting ranges as their outer digits.

  A range shifts if it only shifts the accesses of another range (`x + j` of a convolution: j, the shorter one). So a
  tile's steps, or columns, are channels. They are at equal distances in memory, and all have the same gate. The inner
  ranges must be a multiple of the unit's. No unshifted access may be closer in memory without this order.
  """
  accesses = [access_of(u) for x in found for u in x.toposort() if u.op is Ops.LOAD]
  pairs = [(a, one) for one, other in itertools.permutations([r for group in groups for r in group], 2)
           if size_of(one) < size_of(other)
           for a in accesses if pair_of(a, other, one) is not None]
  shifted, shifts = {a.node for a, _ in pairs}, {one for _, one in pairs}
  others = [a for a in accesses if a.node not in shifted]
  piece = PIECE_BYTES // matrix.operand.itemsize
  return ([outer_first(group, shifts, others, least) for group, least in zip(groups, (matrix.m, matrix.n, piece))]
          if shifts else groups)

def outer_first(group: list[UOp], outer: set[UOp], others: list[StridedAccess], least: int) -> list[UOp]:
  """Return a group with the outer ranges first.

  The other ranges must be a multiple of `least`. The accesses must be no farther apart along the new last range.
  """
  inner = [r for r in group if r not in outer]
  if not inner or product_of(inner) % least or any(abs(a.stride(inner[-1]) or 0) > abs(a.stride(group[-1]) or 0) > 0
                                                   for a in others):
    return group
  return [r for r in group if r in outer] + inner

def least_of(matrix: Matrix) -> tuple[int, int, int]:
  """Return the sizes of a product from which the unit pays. Half of its steps may be padding."""
  return matrix.m, matrix.n, matrix.k // 2 + 1

def product_of(ranges: list[UOp]) -> int: return math.prod(size_of(r) for r in ranges)

def padded(steps: int, matrix: Matrix) -> int:
  """Return a multiple of the unit's steps: of as many as are staged at once, if that adds few."""
  for count in sorted([n for n in STEPS if n <= MOST_PADDED or n * matrix.k <= MOST_PADDED_TERMS], reverse=True):
    whole = -(-steps // (matrix.k * count)) * matrix.k * count
    if (whole - steps) * MOST_PADDING <= steps: return whole
  return -(-steps // matrix.k) * matrix.k

def merged(sink: UOp, groups: list[list[UOp]], found: tuple[UOp, UOp], matrix: Matrix) -> UOp:
  """Return sink with one range for each group, in the position of the group's last range."""
  steps = product_of(groups[2])
  sizes = [product_of(groups[0]), product_of(groups[1]), padded(steps, matrix)]
  if all(len(group) == 1 for group in groups) and sizes[2] == steps: return sink
  digits: dict[UOp, UOp] = {}
  instead: dict[UOp, UOp] = {}
  changed: list[tuple[UOp, list[UOp]]] = []
  for group, size in zip(groups, sizes):
    if len(group) == 1 and size == size_of(group[0]): continue
    last = max(group, key=lambda r: r.arg)
    whole = instead[last] = UOp(Ops.RANGE, dtypes.weakint, (number(size),), last.arg)
    changed.append((whole, group))
    digits.update((r, digit(whole, group, k, k)) for k, r in enumerate(group))
  summed = max(groups[2], key=lambda r: r.arg)
  total = instead.get(summed, summed)
  inside = make(Ops.CMPLT, dtypes.bool, (total, number(steps)))
  gone = set(digits) - set(instead)
  # operands may be conversions that sink does not have
  below = dict.fromkeys((*found[0].toposort(), *found[1].toposort()))
  new = dict(digits)
  def source(u: UOp) -> UOp:
    return index_of(u, changed, digits) if u.dtype is dtypes.weakint and u.op is not Ops.RANGE else new[u]
  for u in (*below, *sink.toposort()):
    if u in new or u.dtype is dtypes.weakint and u.op is not Ops.RANGE: continue
    src = tuple([source(s) for s in u.src])
    if u.op is Ops.STORE or u.op is Ops.REDUCE:
      values = (tuple(new[s] for s in values_of(u)) if u.op is Ops.STORE
                else (multiplied(new[found[0]], new[found[1]], u.dtype),))
      new[u] = UOp(u.op, u.dtype, values + tuple(instead.get(r, r) for r in ranges_of(u) if r not in gone), u.arg)
    elif u.op is Ops.LOAD and u in below: new[u] = gated(src, inside, total)
    else: new[u] = u if src == u.src else make(u.op, u.dtype, src, u.arg)
    if u in found and not is_load(u) and total in new[u].ranges:
      new[u] = make(Ops.WHERE, u.dtype, (inside, new[u], UOp.const(u.dtype, 0)))
  trace.hand_on(new)
  return new[sink]

def digit(whole: UOp, ranges: list[UOp], first: int, last: int) -> UOp:
  """Return consecutive digits of a number. The ranges are its digits, the last one the fastest.

  The first digit is not reduced modulo its size.
  """
  at = make(Ops.IDIV, dtypes.weakint, (whole, number(product_of(ranges[last + 1:]))))
  return make(Ops.MOD, dtypes.weakint, (at, number(product_of(ranges[first:last + 1])))) if first else at

def index_of(u: UOp, changed: list[tuple[UOp, list[UOp]]], digits: dict[UOp, UOp]) -> UOp:
  """Return an index over the new ranges.

  Adjacent digits that the index uses as one number, like contiguous memory, are not taken apart.
  """
  terms, constant = linear(u)
  total = number(constant)
  for whole, ranges in changed:
    factors = [terms.pop(r, 0) for r in ranges]
    first = len(ranges)
    while first:
      last = first = first - 1
      while first and factors[first - 1] == factors[first] * size_of(ranges[first]): first -= 1
      if factors[last]: total = plus(total, digit(whole, ranges, first, last), factors[last])
  for term, factor in terms.items(): total = plus(total, substitute(term, digits), factor)
  return total

def plus(total: UOp, term: UOp, factor: int) -> UOp:
  return make(Ops.ADD, dtypes.weakint, (total, make(Ops.MUL, dtypes.weakint, (term, number(factor)))))

def multiplied(x: UOp, y: UOp, dtype: DType) -> UOp:
  """Return the product of operands, in the type of the sum."""
  return UOp(Ops.MUL, dtype, tuple([s if s.dtype is dtype else UOp(Ops.CAST, dtype, (s,)) for s in (x, y)]))

def gated(src: tuple[UOp, ...], condition: UOp, total: UOp) -> UOp:
  """Return a load over these sources. If it depends on `total`, it runs where a condition holds, and elsewhere gives 0.
  """
  element = src[0].dtype
  if total not in src[0].ranges: return UOp(Ops.LOAD, element, src)
  gate = make(Ops.AND, dtypes.bool, (src[1], condition)) if len(src) > 1 else condition
  return make(Ops.LOAD, element, (src[0], gate, src[2] if len(src) > 2 else UOp.const(element, 0)))

def is_load(u: UOp) -> bool:
  """Is this an element of memory, 0 where its gate is false?"""
  while u.op is Ops.CAST: u = u.src[0]
  return u.op is Ops.LOAD and (len(u.src) < 3 or is_zero(u.src[2]))
