"""Eigenvalues and eigenvectors of symmetric matrices, in two kernels (loops/kernel.py).

`reduction_kernel` makes a matrix tridiagonal by reflections from both sides: T = Q^T A Q. `iteration_kernel` does QL
steps with implicit shifts on T. A step chases a bulge by rotations of neighbours, from the end of the part that has not
converged to its beginning. Each rotation also turns two rows of the eigenvectors.

A step of the loop looks for the first negligible element beside the diagonal. If it is the first one of what is left,
an eigenvalue has converged. Sources: Golub and Van Loan, Matrix Computations, 8.3; Dubrulle 1970.
"""
from __future__ import annotations
import functools
from typing import TYPE_CHECKING

from tinyhw.dtype import DType, dtypes
from tinyhw.methods.loops.columns import product
from tinyhw.methods.loops.kernel import Loops, MatrixParam, count_of, equal, magnitude, quotient, root, run, width_of
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import KernelInfo, UOp
if TYPE_CHECKING: from tinyhw.tensor import Tensor

STEPS = 30       # of the QL iteration for each eigenvalue, at most: 1.7 are usual

@functools.lru_cache(256)
def reduction_kernel(lead: int, n: int, dtype: DType) -> UOp:
  """x: (lead, n, room); vectors: (lead, n, room), the reflections as rows; beside, scales: (lead, n); work: (lead,
  room). n is at least 2."""
  loops = Loops(lead, dtype)
  room, width = width_of(n, dtype)
  x, vectors = MatrixParam(loops, 0, lead, n, room), MatrixParam(loops, 1, lead, n, room)
  beside, scales = MatrixParam(loops, 2, lead, 1, n), MatrixParam(loops, 3, lead, 1, n)
  work = MatrixParam(loops, 4, lead, 1, room)
  zero, one = loops.number(0), loops.number(1)
  k = loops.steps(n - 1)
  own = (*loops.each, k)
  i = loops.terms(room)
  below = (k + 1 < i).where(x(k, i), zero)
  rest = (below * below).reduce(Ops.ADD, i)
  corner = x(k, k + 1)
  done = equal(rest, zero)
  norm = root(rest + corner * corner)
  signed = (corner < zero).where(norm * -1.0, norm)
  scale = done.where(one, norm * (norm + magnitude(corner)))
  i = loops.loop(room)
  first = done.where(zero, corner + signed)
  stores = [vectors.at(k, i).store((k + 1 < i).where(x(k, i), equal(
              i.cast(dtypes.int32), (k + 1).cast(dtypes.int32)).where(first, zero)), *own, i),
            beside.at(0, k).store(done.where(corner, signed * -1.0), *own), scales.at(0, k).store(scale, *own)]
  block = UOp(Ops.IDIV, dtypes.weakint, (k + 1, UOp.const(dtypes.weakint, width)))
  later = loops.loop(n - 1 - k)
  b, j = loops.terms(room // width - block), loops.terms(width)
  at = (block + b) * width + j
  sums = (x(later + (k + 1), at) * vectors(k, at)).reduce(Ops.ADD, b, j)
  stores.append(work.at(0, later + (k + 1)).store(quotient(sums, scale), *own, later))
  def sums_at(i: UOp) -> UOp: return ((k < i) & (i < n)).where(work(0, i), zero)    # the rest is not written
  i = loops.terms(room)
  half = quotient((sums_at(i) * vectors(k, i)).reduce(Ops.ADD, i), scale) * 0.5
  i = loops.loop(room)
  stores.append(work.at(0, i).store(sums_at(i) - half * vectors(k, i), *own, i))
  row = loops.loop(n - 1 - k)
  later = row + (k + 1)
  b, j = loops.loop(room // width - block), loops.loop(width)
  at = (block + b) * width + j
  change = vectors(k, later) * work(0, at) + work(0, later) * vectors(k, at)
  stores.append(x.at(later, at).store(x(later, at) - change, *own, row, b, j))
  return UOp.sink(*stores, arg=KernelInfo())

@functools.lru_cache(256)
def iteration_kernel(lead: int, n: int, wanted: bool, dtype: DType) -> UOp:
  """values, beside: (lead, n), the diagonal and the elements beside it; left: (lead, 2), the part that has not
  converged; state: (lead, 4); rows: (lead, n, room), eigenvectors as rows, if they are wanted."""
  loops = Loops(lead, dtype)
  room, width = width_of(n, dtype)
  d, e = MatrixParam(loops, 0, lead, 1, n), MatrixParam(loops, 1, lead, 1, n)
  left, state = MatrixParam(loops, 2, lead, 1, 2, dtypes.int32), MatrixParam(loops, 3, lead, 1, 4)
  rows = MatrixParam(loops, 4, lead, n, room)
  zero, one = loops.number(0), loops.number(1)
  eps = 2.0 ** -dtypes.finfo(dtype)[1]
  def place(i: UOp) -> UOp: return i.cast(dtypes.weakint).maximum(0).minimum(n - 1)
  def other(i: UOp) -> UOp: return (i + 1).minimum(n - 1)
  t = loops.steps(STEPS * n)
  own = (*loops.each, t)
  begin = left(0, 0)
  converged = begin.cast(dtypes.weakint).maximum(0).minimum(n)
  scanned = loops.terms(n - converged)     # nothing after the end
  i = (scanned + converged).minimum(n - 1)
  size = (magnitude(d(0, i)) + magnitude(d(0, other(i)))) * eps + eps * eps
  negligible = (size < magnitude(e(0, i))).logical_not() | (n - 2 < i)     # also NaN, so that the loop ends
  place_of_end = negligible.where((i * -1).cast(dtypes.int32), UOp.const(dtypes.int32, -n + 1))
  end = place_of_end.reduce(Ops.MAX, scanned) * -1
  stores = [left.at(0, 1).store(end, *own)]
  l, m = place(begin), place(end)
  moves = l < m
  slope = e(0, l)
  ratio = quotient(d(0, other(l)) - d(0, l), moves.where(slope, one) * 2.0)
  length = root(ratio * ratio + one)
  shift = d(0, m) - d(0, l) + quotient(slope, ratio + (ratio < zero).where(length * -1.0, length))
  stores += [state.at(0, k).store(v, *own) for k, v in ((0, one), (1, one), (2, shift), (3, zero))]
  last = place(left(0, 1))
  u = loops.steps((last - place(left(0, 0))).maximum(0))
  inner = (*own, u)
  s, c, g, p = (state(0, k) for k in range(4))
  i = (last - 1 - u).maximum(0)
  f, b = s * e(0, i), c * e(0, i)
  r = root(f * f + g * g)
  none = equal(r, zero)
  sine, cosine = none.where(zero, quotient(f, r)), none.where(one, quotient(g, r))
  above = d(0, other(i)) - p
  rotated = (d(0, i) - above) * sine + cosine * b * 2.0
  moved = sine * rotated
  stores += [e.at(0, other(i)).store((u < 1).where(zero, r), *inner),
             d.at(0, other(i)).store(above + moved, *inner),
             state.at(0, 0).store(sine, *inner), state.at(0, 1).store(cosine, *inner),
             state.at(0, 2).store(cosine * rotated - b, *inner), state.at(0, 3).store(moved, *inner)]
  if wanted:
    block, j = loops.loop(room // width), loops.loop(width)
    at = block * width + j
    low, high = rows(i, at), rows(other(i), at)
    stores += [rows.at(i, at).store(cosine * low - sine * high, *inner, block, j),
               rows.at(other(i), at).store(sine * low + cosine * high, *inner, block, j)]
  stores += [d.at(0, l).store(moves.where(d(0, l) - state(0, 3), d(0, l)), *own),
             e.at(0, l).store(moves.where(state(0, 2), zero), *own),
             left.at(0, 0).store(moves.where(begin, begin + 1), *own)]
  return UOp.sink(*stores, arg=KernelInfo())

def eigen(a: Tensor, wanted: bool = True) -> tuple[Tensor, Tensor | None]:
  """Return eigenvalues (..., n) of symmetric matrices, in no order, and eigenvectors as columns, if they are wanted.

  The largest element should be near 1.
  """
  *lead, _, n = [int(d) for d in a.shape]
  count, room = count_of(lead), width_of(n, a.dtype)[0]
  def new(*shape: int) -> Tensor: return a.empty(count, *shape, dtype=a.dtype, device=a.device)
  x = a.reshape(count, n, n).pad((None, None, (0, room - n))).clone()
  vectors, beside, scales = new(n, room), new(n), new(n)
  if n > 1: run(reduction_kernel(count, n, a.dtype), (x, vectors, beside, scales, new(room)))
  values = x.diagonal(0, -2, -1).clone()
  beside = beside[:, :n - 1].pad((None, (0, 1))).clone()
  rows = new(1, 1)
  if wanted and n > 1:
    q = product(vectors[:, :n - 1, :n].transpose(-2, -1), scales[:, :n - 1], n)
    rows = q.transpose(-2, -1).pad((None, None, (0, room - n))).clone()
  elif wanted: rows = x.eye(1, dtype=a.dtype, device=a.device).expand(count, 1, 1).clone()
  if n > 1:
    start = a._tensor([0, 0]).cast(dtypes.int32).expand(count, 2).clone()
    run(iteration_kernel(count, n, wanted, a.dtype), (values, beside, start, new(4), *((rows,) if wanted else ())))
  found = rows[..., :n].transpose(-2, -1).reshape(*lead, n, n) if wanted else None
  return values.reshape(*lead, n), found
