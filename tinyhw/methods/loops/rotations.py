"""One-sided Jacobi rotations in one kernel (loops/kernel.py): columns become orthogonal, pair by pair.

A sweep rotates each pair of columns that is not orthogonal yet. The columns are nearly orthogonal at the beginning, so
a few sweeps suffice: the eigenvectors of A^T A (tridiagonal.py) are singular vectors of A, but for the small
singular values. A pair is orthogonal if its cosine is at most sqrt(m) * eps, as in LAPACK. After the first sweep in
which all are, the rest of the loop is empty. Sources: Hestenes
1958; Golub and Van Loan, Matrix Computations, 8.6.3.
"""
from __future__ import annotations
import functools
from typing import TYPE_CHECKING

from tinyhw.dtype import DType, dtypes
from tinyhw.methods.loops.kernel import (
  LANE_BYTES, Loops, MatrixParam, count_of, equal, magnitude, quotient, root, run, width_of)
from tinyhw.methods.loops.tridiagonal import eigen
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import KernelInfo, UOp
if TYPE_CHECKING: from tinyhw.tensor import Tensor

SWEEPS = 30      # at most

def layout(m: int, n: int, dtype: DType) -> tuple[int, int, int]:
  """Return the room for a column of m elements and one of n, and the width of steps along both."""
  if m < LANE_BYTES // dtype.itemsize: return m, n, 1 if m % n else n
  (first, step), (second, other) = width_of(m, dtype), width_of(max(n, LANE_BYTES // dtype.itemsize), dtype)
  return first, second, min(step, other)

@functools.lru_cache(256)
def rotation_kernel(lead: int, m: int, n: int, wanted: bool, dtype: DType) -> UOp:
  """x: (lead, n, room), columns as rows, whose first m elements become orthogonal, and what is turned with them.

  norms: (lead, n), squared; largest: (lead, 1), a cosine; ends: (lead, SWEEPS + 1), the number of rows to visit
  in each sweep; steps: (lead, 1), those of a rotation.
  """
  loops = Loops(lead, dtype)
  m, other, width = layout(m, n, dtype)
  room = m + other if wanted else m
  x, norms = MatrixParam(loops, 0, lead, n, room), MatrixParam(loops, 1, lead, 1, n)
  largest = MatrixParam(loops, 2, lead, 1, 1)
  ends, steps = (MatrixParam(loops, 3 + k, lead, 1, size, dtypes.int32) for k, size in enumerate((SWEEPS + 1, 1)))
  zero, one = loops.number(0), loops.number(1)
  least = 2.0 ** -dtypes.finfo(dtype)[1] * m ** 0.5
  s = loops.steps(SWEEPS)
  own = (*loops.each, s)
  row = loops.loop((ends(0, s).cast(dtypes.weakint) + 1).maximum(0).minimum(n))
  b, i = loops.terms(m // width), loops.terms(width)
  value = x(row, b * width + i)
  stores = [largest.at(0, 0).store(zero, *own),
            norms.at(0, row).store((value * value).reduce(Ops.ADD, b, i), *own, row)]
  p = loops.steps(ends(0, s).cast(dtypes.weakint).maximum(0).minimum(n - 1))
  later = loops.steps(n - 1 - p)
  q = later + (p + 1)
  pair = (*own, p, later)
  b, i = loops.terms(m // width), loops.terms(width)
  mixed = (x(p, b * width + i) * x(q, b * width + i)).reduce(Ops.ADD, b, i)
  first, second = norms(0, p), norms(0, q)
  length = root(first) * root(second)
  none = equal(length, zero)
  angle = none.where(zero, quotient(magnitude(mixed), none.where(one, length)))
  needed = loops.number(least) < angle
  ratio = quotient(second - first, needed.where(mixed, one) * 2.0)
  slope = quotient((ratio < zero).where(one * -1.0, one), magnitude(ratio) + root(ratio * ratio + one))
  tangent = needed.where(slope, zero)
  cosine = quotient(one, root(tangent * tangent + one))
  sine = cosine * tangent
  change = tangent * mixed
  stores += [norms.at(0, p).store((first - change).maximum(zero), *pair),
             norms.at(0, q).store((second + change).maximum(zero), *pair),
             largest.at(0, 0).store(needed.where(largest(0, 0).maximum(angle), largest(0, 0)), *pair),
             steps.at(0, 0).store(needed.where(UOp.const(dtypes.int32, room // width), UOp.const(dtypes.int32, 0)),
                                  *pair)]
  b = loops.loop(steps(0, 0).cast(dtypes.weakint).maximum(0).minimum(room // width))
  j = loops.loop(width)
  at = b * width + j
  stores += [x.at(p, at).store(cosine * x(p, at) - sine * x(q, at), *pair, b, j),
             x.at(q, at).store(sine * x(p, at) + cosine * x(q, at), *pair, b, j)]
  again = (zero < largest(0, 0)).where(ends(0, s), UOp.const(dtypes.int32, 0))
  return UOp.sink(*stores, ends.at(0, s + 1).store(again, *own), arg=KernelInfo())

def orthogonal_columns(x: Tensor, wanted: bool = True) -> tuple[Tensor, Tensor | None]:
  """Return x @ V with orthogonal columns, and the orthogonal V, if it is wanted, for x (..., m, n).

  The largest element should be near 1.
  """
  *lead, m, n = [int(d) for d in x.shape]
  count = count_of(lead)
  x = x.reshape(count, m, n)
  products = x.transpose(-2, -1).matmul(x)
  scale = products.max((-2, -1), keepdim=True)
  v = eigen(products.div((scale > 0).where(scale, 1)).contiguous())[1]
  assert v is not None, "they are wanted"
  room, other, width = layout(m, n, x.dtype)
  both = x.matmul(v).transpose(-2, -1).pad((None, None, (0, room - m)))
  if wanted: both = both.cat(v.transpose(-2, -1).pad((None, None, (0, other - n))), dim=-1)
  both = both.clone()
  def new(size: int) -> Tensor: return x.empty(count, size, dtype=x.dtype, device=x.device)
  ends = x._tensor([n - 1] + [0] * SWEEPS).cast(dtypes.int32).expand(count, SWEEPS + 1).clone()
  steps = x.empty(count, 1, dtype=dtypes.int32, device=x.device)
  if n > 1: run(rotation_kernel(count, m, n, wanted, x.dtype), (both, new(n), new(1), ends, steps))
  columns = both[..., :m].transpose(-2, -1).reshape(*lead, m, n)
  return columns, both[..., room:room + n].transpose(-2, -1).reshape(*lead, n, n) if wanted else None
