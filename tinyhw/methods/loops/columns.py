"""Factorizations column by column, each in one kernel (loops/kernel.py): LU with partial pivoting, Cholesky,
Householder reflections; triangular systems.

    for k in columns, in order:     choose the row p of the pivot; exchange rows k and p
                                    for later rows i and columns j:  x[i, j] -= x[i, k] / x[k, k] * x[k, j]

Sources: Golub and Van Loan, Matrix Computations, 3.1, 3.4.1, 4.2, 5.2.
"""
from __future__ import annotations
import functools
from typing import TYPE_CHECKING

from tinyhw.dtype import DType, dtypes
from tinyhw.methods.loops.kernel import (
  Loops, MatrixParam, count_of, equal, magnitude, quotient, root, run, sum_of, width_of)
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import KernelInfo, UOp
if TYPE_CHECKING: from tinyhw.tensor import Tensor

TOGETHER = 4     # columns after which an LU factorization changes the others
WHOLE = 1024     # columns of a matrix that one kernel factors, or solves for
MOST_COLUMNS = 256      # columns that one kernel factors, where the others are changed by products of matrices
WIDTH = 32       # columns of a right side that one worker solves

# ***** LU *****

@functools.lru_cache(256)
def lu_kernel(lead: int, m: int, n: int, dtype: DType) -> UOp:
  """x: (lead, m, room); order: (lead, m); pivots, signs: (lead, min(m, n)), the sign of each exchange.

  A few columns are factored first. So all others are loaded and stored once for these few.
  """
  loops = Loops(lead, dtype)
  room, width = width_of(n, dtype)
  x, order = MatrixParam(loops, 0, lead, m, room), MatrixParam(loops, 1, lead, 1, m, dtypes.int32)
  steps = min(m, n)
  pivots, signs = (MatrixParam(loops, slot, lead, 1, steps) for slot in (2, 3))
  count = next(c for c in (TOGETHER, 2, 1) if steps % c == 0)
  step = loops.steps(steps // count)
  start = step * count
  stores = _few_columns(loops, x, step, count, order, pivots, signs)
  if room > count:
    own = (*loops.each, step)
    end = start + count
    first = UOp(Ops.IDIV, dtypes.weakint, (start, UOp.const(dtypes.weakint, width)))
    j = loops.loop(room)
    solved = [x(start, j)]
    for t in range(1, count):
      solved.append(x(start + t, j) - sum_of([x(start + t, start + s) * solved[s] for s in range(t)]))
    later = end - 1 < j
    stores += [x.at(start + t, j).store(later.where(solved[t], x(start + t, j)), *own, j) for t in range(1, count)]
    if m > count:
      row = loops.loop(m - end)
      i, j = row + end, loops.loop(width)
      def rest(at: UOp) -> UOp: return x(i, at) - sum_of([x(i, start + t) * x(start + t, at) for t in range(count)])
      at = first * width + j
      stores.append(x.at(i, at).store((end - 1 < at).where(rest(at), x(i, at)), *own, row, j))
      if room > width:
        b, j = loops.loop(room // width - 1 - first), loops.loop(width)
        at = (first + b + 1) * width + j
        stores.append(x.at(i, at).store(rest(at), *own, row, b, j))
  return UOp.sink(*stores, arg=KernelInfo())

def _few_columns(loops: Loops, x: MatrixParam, step: UOp, count: int, order: MatrixParam, pivots: MatrixParam,
                 signs: MatrixParam) -> list[UOp]:
  """Return the stores that factor the next `count` columns, and exchange whole rows."""
  m, zero, one = x.rows, loops.number(0), loops.number(1)
  k = loops.steps(count)
  own, start = (*loops.each, step, k), step * count
  c = start + k
  def size(i: UOp) -> UOp:      # NaN is no pivot unless all are
    found = magnitude(x(c + i, c))
    return found.ne(found).where(zero, found)
  i = loops.terms(m - c)
  largest = size(i).reduce(Ops.MAX, i)
  i = loops.terms(m - c)
  first = equal(size(i), largest).where(i.cast(dtypes.int32) * -1, UOp.const(dtypes.int32, -m)).reduce(Ops.MAX, i) * -1
  p = (first.cast(dtypes.weakint) + c).maximum(0).minimum(m - 1)     # the bounds are for the verifier
  row, other = order(0, p), order(0, c)
  stores = [order.at(0, c).store(row, *own), order.at(0, p).store(other, *own), pivots.at(0, c).store(x(p, c), *own),
            signs.at(0, c).store(first.eq(0).where(one, one * -1.0), *own)]
  j = loops.loop(x.columns)
  stores += [x.at(c, j).store(x(p, j), *own, j), x.at(p, j).store(x(c, j), *own, j)]
  if m == 1: return stores
  below, j = loops.loop(m - 1 - c), loops.loop(count)
  i, at, pivot = below + (c + 1), start + j, x(c, c)
  factor = pivot.ne(zero).where(quotient(x(i, c), pivot), zero)
  value = (k < j).where(x(i, at) - factor * x(c, at), equal(j.cast(dtypes.int32), k.cast(dtypes.int32)).where(
    factor, x(i, at)))
  return [*stores, x.at(i, at).store(value, *own, below, j)]

class Pivoted(NamedTuple):
  """Both triangles of a[order] = L @ U in one matrix, the order of rows, U's diagonal, and a sign for each exchange."""
  both: Tensor
  order: Tensor
  pivots: Tensor
  signs: Tensor

def lu(a: Tensor) -> Pivoted:
  """Factor matrices (..., m, n) with partial pivoting."""
  *lead, m, n = [int(d) for d in a.shape]
  count, steps = count_of(lead), min(m, n)
  x = a.reshape(count, m, n).pad((None, None, (0, width_of(n, a.dtype)[0] - n))).clone()
  order = a.arange(m, dtype=dtypes.int32, device=a.device).expand(count, m).clone()
  x.realize(order)
  pivots, signs = (a.empty(count, steps, dtype=a.dtype, device=a.device) for _ in range(2))
  run(lu_kernel(count, m, n, a.dtype), (x, order, pivots, signs))
  return Pivoted(x[..., :n].reshape(*lead, m, n), order.reshape(*lead, m), pivots.reshape(*lead, steps),
                 signs.reshape(*lead, steps))

# ***** Cholesky *****

@functools.lru_cache(256)
def cholesky_kernel(lead: int, m: int, n: int, dtype: DType) -> UOp:
  """low: (lead, n, m), the first n columns of the triangle; a: the same of the matrix."""
  loops = Loops(lead, dtype)
  low, a = MatrixParam(loops, 0, lead, n, m), MatrixParam(loops, 1, lead, n, m)
  k = loops.steps(n)
  j = loops.terms(k)
  pivot = root(a(k, k) - (low(j, k) * low(j, k)).reduce(Ops.ADD, j))
  i = loops.loop(m)
  j = loops.terms(k)
  rest = quotient(a(k, i) - (low(j, i) * low(j, k)).reduce(Ops.ADD, j), pivot)
  return UOp.sink(low.at(k, i).store((i < k).where(loops.number(0), rest), *loops.each, k, i), arg=KernelInfo())

def cholesky(a: Tensor) -> Tensor:
  """Return the first columns (..., m, n) of the triangle of a positive definite matrix, from its first columns, of
  which the lower triangle is read. NaN from the first pivot on that is not positive."""
  *lead, m, n = [int(d) for d in a.shape]
  count = count_of(lead)
  low = a.empty(count, n, m, dtype=a.dtype, device=a.device)
  run(cholesky_kernel(count, m, n, a.dtype), (low,), (a.reshape(count, m, n).transpose(-2, -1).contiguous(),))
  return low.transpose(-2, -1).reshape(*lead, m, n)

# ***** triangular systems *****

@functools.lru_cache(256)
def substitution_kernel(lead: int, n: int, width: int, upper: bool, unit: bool, dtype: DType) -> UOp:
  """x, b: (lead, n, columns); a: (lead, n, n). A worker solves `width` columns."""
  loops = Loops(lead, dtype)
  blocks, width = (1, width) if width <= 2 * WIDTH else (width // WIDTH, WIDTH)
  each = loops.each
  x, a, b = (MatrixParam(loops, slot, lead, n, d) for slot, d in enumerate((blocks * width, n, blocks * width)))
  block = loops.loop(blocks) if blocks > 1 else None
  if block is not None: each = (*each, block)
  k = loops.steps(n)
  row = (k * -1) + (n - 1) if upper else k
  c = loops.loop(width)
  j = loops.terms(k)
  other = (j * -1) + (n - 1) if upper else j
  column = c if block is None else c + block * width
  value = b(row, column) - (a(row, other) * x(other, column)).reduce(Ops.ADD, j)
  if not unit: value = quotient(value, a(row, row))
  return UOp.sink(x.at(row, column).store(value, *each, k, c), arg=KernelInfo())

def substituted(a: Tensor, b: Tensor, upper: bool, unit: bool) -> Tensor:
  """Solve a @ x = b for a triangle of a (..., n, n) and b (..., n, k). The other triangle is not read."""
  *lead, n, k = [int(d) for d in b.shape]
  count = count_of(lead)
  more = -k % WIDTH if k > 2 * WIDTH else 0
  right = b.pad([None] * (b.ndim - 1) + [(0, more)]) if more else b
  x = a.empty(count, n, k + more, dtype=b.dtype, device=b.device)
  run(substitution_kernel(count, n, k + more, upper, unit, b.dtype), (x,), (a.expand(*lead, n, n), right))
  return x.reshape(*lead, n, k + more)[..., :k]

# ***** QR *****

@functools.lru_cache(256)
def qr_kernel(lead: int, m: int, n: int, steps: int, dtype: DType) -> UOp:
  """x: (lead, n, m), columns of the matrices. corner, norm, scale: (lead, steps), see `reflected`."""
  loops = Loops(lead, dtype)
  x = MatrixParam(loops, 0, lead, n, m)
  corners, norms, scales = (MatrixParam(loops, slot, lead, 1, steps) for slot in (1, 2, 3))
  zero, one = loops.number(0), loops.number(1)
  k = loops.steps(steps)
  i = loops.terms(m)
  below = (k < i).where(x(k, i), zero)
  rest = (below * below).reduce(Ops.ADD, i)
  corner = x(k, k)
  done = equal(rest, zero)                               # nothing to clear: no reflection
  norm = root(rest + corner * corner)
  signed = (corner < zero).where(norm * -1.0, norm)
  first = done.where(zero, corner + signed)              # away from 0, to avoid cancellation
  scale = done.where(one, norm * (norm + magnitude(corner)))
  def vector(i: UOp) -> UOp:
    return (k < i).where(x(k, i), equal(i.cast(dtypes.int32), k.cast(dtypes.int32)).where(first, zero))
  own = (*loops.each, k)
  stores = [corners.at(0, k).store(first, *own), norms.at(0, k).store(done.where(corner, signed * -1.0), *own),
            scales.at(0, k).store(scale, *own)]
  if n > 1:
    j = loops.loop(n - 1 - k)
    later = j + (k + 1)
    i = loops.terms(m)
    along = quotient((vector(i) * x(later, i)).reduce(Ops.ADD, i), scale)
    i = loops.loop(m)
    stores.append(x.at(later, i).store(x(later, i) - vector(i) * along, *own, j, i))
  return UOp.sink(*stores, arg=KernelInfo())

def reflected(a: Tensor, steps: int) -> tuple[Tensor, Tensor, Tensor]:
  """Clear the first columns below the diagonal by `steps` reflections I - v v^T / scale, the first one first.

  Return the vectors v as columns (..., m, steps), the scales (..., steps), and the matrix after the reflections.
  """
  *lead, m, n = [int(d) for d in a.shape]
  count = count_of(lead)
  x = a.reshape(count, m, n).transpose(-2, -1).clone()
  corners, norms, scales = (a.empty(count, steps, dtype=a.dtype, device=a.device) for _ in range(3))
  run(qr_kernel(count, m, n, steps, a.dtype), (x, corners, norms, scales))
  found = x.transpose(-2, -1)
  rows, columns = a.arange(m, device=a.device).unsqueeze(1), a.arange(n, device=a.device)
  same = rows.eq(columns) & (columns < steps)
  def wide(t: Tensor) -> Tensor: return t.pad(((0, 0), (0, n - steps))).unsqueeze(-2)
  kept = wide(corners).ne(0)
  vectors = same.where(wide(corners), ((rows > columns) & kept).where(found, 0))[..., :steps]
  upper = same.where(wide(norms), (rows > columns).where((columns < steps).where(0, found), found))
  return vectors.reshape(*lead, m, steps), scales.reshape(*lead, steps), upper.reshape(*lead, m, n)

def triangle(a: Tensor, steps: int) -> tuple[Tensor, Tensor, Tensor]:
  """As `reflected`. Many columns are cleared in panels, and each panel's reflections change the others as products."""
  m = int(a.shape[-2])
  if steps <= MOST_COLUMNS: return reflected(a, steps)
  none = [None] * (a.ndim - 2)
  vectors, scales, done = [], [], []
  rest = a
  for begin in range(0, steps, MOST_COLUMNS // 2):
    size = min(MOST_COLUMNS // 2, steps - begin)
    v, scale, top = reflected(rest[..., :size], size)
    later = rest[..., size:]
    small = compact(v, scale).transpose(-2, -1).contiguous()
    if int(later.shape[-1]):
      later = later.sub(v.matmul(substituted(small, v.transpose(-2, -1).matmul(later), False, False))).contiguous()
    vectors.append(v.pad((*none, (begin, 0), None)))
    scales.append(scale)
    done.append(top[..., :size, :].cat(later[..., :size, :], dim=-1).pad((*none, None, (begin, 0))))
    rest = later[..., size:, :]
  if m > steps: done.append(rest.pad((*none, None, (steps, 0))))
  return vectors[0].cat(*vectors[1:], dim=-1), scales[0].cat(*scales[1:], dim=-1), done[0].cat(*done[1:], dim=-2)

def compact(v: Tensor, scales: Tensor) -> Tensor:
  """Return the triangle S of a product of reflections, I - v S^-1 v^T. Source: Puglisi 1992."""
  steps = int(v.shape[-1])
  return v.transpose(-2, -1).matmul(v).triu(1).add(v.eye(steps, dtype=v.dtype, device=v.device).mul(
    scales.unsqueeze(-2)))

def product(v: Tensor, scales: Tensor, n: int) -> Tensor:
  """Return the first n columns of the product of reflections (`reflected`), (..., m, n)."""
  m = int(v.shape[-2])
  found = substituted(compact(v, scales), v[..., :n, :].transpose(-2, -1), True, False)
  return v.eye(m, n, dtype=v.dtype, device=v.device).sub(v.matmul(found))
