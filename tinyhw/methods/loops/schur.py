"""Eigenvalues and eigenvectors of general matrices, in three kernels (loops/kernel.py). Complex numbers are two planes.

`hessenberg_kernel` clears what is below the first subdiagonal by reflections from both sides: H = Q^H A Q.
`schur_kernel` does QR steps with implicit single shifts, until H is the triangle T of Schur's form: A = Z T Z^H. A step
chases a bulge down the part that has not converged, by rotations of neighbouring rows and columns. `vectors_kernel`
solves (T - t I) y = 0 for each diagonal element t, from the bottom up. Eigenvectors are Z y.

A step of the second kernel looks for the last negligible element below the diagonal, above the end of what is left. If
it is at that end, an eigenvalue has converged. Sources: Golub and Van Loan, Matrix Computations, 7.4 to 7.6; EISPACK's
comqr2.
"""
from __future__ import annotations
import functools
from typing import TYPE_CHECKING

from tinyhw.dtype import DType, dtypes
from tinyhw.methods.loops.kernel import Loops, MatrixParam, count_of, equal, magnitude, quotient, root, run, width_of
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import KernelInfo, UOp
if TYPE_CHECKING: from tinyhw.tensor import Tensor

STEPS = 30       # of the QR iteration for each eigenvalue, at most: 2 to 3 are usual
STUCK = 10       # steps after which a shift is taken from elsewhere

class ComplexTerm(NamedTuple):
  """A complex number: its real and imaginary parts."""
  re: UOp
  im: UOp

  def plus(self, other: ComplexTerm) -> ComplexTerm: return ComplexTerm(self.re + other.re, self.im + other.im)
  def minus(self, other: ComplexTerm) -> ComplexTerm: return ComplexTerm(self.re - other.re, self.im - other.im)
  def times(self, other: ComplexTerm) -> ComplexTerm:
    return ComplexTerm(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

  def scaled(self, factor: UOp | float) -> ComplexTerm: return ComplexTerm(self.re * factor, self.im * factor)
  def over(self, divisor: UOp) -> ComplexTerm:
    return ComplexTerm(quotient(self.re, divisor), quotient(self.im, divisor))
  def conjugate(self) -> ComplexTerm: return ComplexTerm(self.re, self.im * -1.0)
  def square(self) -> UOp: return self.re * self.re + self.im * self.im
  def size(self) -> UOp: return root(self.square())
  def rough_size(self) -> UOp: return magnitude(self.re) + magnitude(self.im)
  def if_(self, condition: UOp, other: ComplexTerm) -> ComplexTerm:
    """Return this number where a condition holds, else another."""
    return ComplexTerm(condition.where(self.re, other.re), condition.where(self.im, other.im))

  def divided(self, other: ComplexTerm, none: UOp) -> ComplexTerm:
    """Return the quotient, and this number where `none` says that the divisor is 0."""
    square = other.square()
    return self.times(other.conjugate()).over(none.where(square * 0.0 + 1.0, square)).if_(none.logical_not(), self)

class ComplexParam:
  """A parameter of complex matrices: two real ones, in adjacent slots."""
  def __init__(self, loops: Loops, slot: int, lead: int, rows: int, columns: int):
    self.parts = [MatrixParam(loops, slot + k, lead, rows, columns) for k in range(2)]

  def __call__(self, row: UOp | int, column: UOp | int) -> ComplexTerm:
    return ComplexTerm(*[p(row, column) for p in self.parts])
  def store(self, row: UOp | int, column: UOp | int, value: ComplexTerm, *ranges: UOp) -> list[UOp]:
    """Return the stores of an element."""
    return [p.at(row, column).store(v, *ranges) for p, v in zip(self.parts, value)]

def _whole(i: UOp) -> UOp: return i.cast(dtypes.int32)

def _sum(terms: ComplexTerm, *ranges: UOp) -> ComplexTerm:
  return ComplexTerm(terms.re.reduce(Ops.ADD, *ranges), terms.im.reduce(Ops.ADD, *ranges))

@functools.lru_cache(256)
def hessenberg_kernel(lead: int, n: int, dtype: DType) -> UOp:
  """h: (lead, n, room), the matrices; q: (lead, n, room), identities, which become Q; v, w: (lead, room); scale:
  (lead, 1). n is at least 3."""
  loops = Loops(lead, dtype)
  room, _ = width_of(n, dtype)
  h, q = ComplexParam(loops, 0, lead, n, room), ComplexParam(loops, 2, lead, n, room)
  v, w = ComplexParam(loops, 4, lead, 1, room), ComplexParam(loops, 6, lead, 1, room)
  scales = MatrixParam(loops, 8, lead, 1, 1)
  zero, one = loops.number(0), loops.number(1)
  none = ComplexTerm(zero, zero)
  k = loops.steps(n - 2)
  own = (*loops.each, k)
  i = loops.terms(n)
  rest = (k + 1 < i).where(h(i, k).square(), zero).reduce(Ops.ADD, i)
  corner = h(k + 1, k)
  done, length = equal(rest, zero), corner.size()
  norm = root(rest + corner.square())
  flat = equal(length, zero)
  phase = corner.over(flat.where(one, length)).if_(flat.logical_not(), ComplexTerm(one, zero))
  scale = done.where(one, norm * (norm + length))
  i = loops.loop(room)
  row = i.minimum(n - 1)
  first = none.if_(done, corner.plus(phase.scaled(norm)))
  below = h(row, k).if_((k + 1 < i) & (i < n), none)
  stores = [*v.store(0, i, first.if_(equal(_whole(i), _whole(k + 1)), none.if_(done, below)), *own, i),
            scales.at(0, 0).store(scale, *own)]
  j, i = loops.loop(room), loops.terms(n)
  sums = _sum(v(0, i).conjugate().times(h(i, j)), i).over(scales(0, 0))
  stores += w.store(0, j, sums, *own, j)
  row, j = loops.loop(n), loops.loop(room)
  stores += h.store(row, j, h(row, j).minus(v(0, row).times(w(0, j))), *own, row, j)
  for matrix in (h, q):
    row, i = loops.loop(n), loops.terms(room)
    along = _sum(matrix(row, i).times(v(0, i)), i).over(scales(0, 0))
    j = loops.loop(room)
    stores += matrix.store(row, j, matrix(row, j).minus(along.times(v(0, j).conjugate())), *own, row, j)
  return UOp.sink(*stores, arg=KernelInfo())

@functools.lru_cache(256)
def schur_kernel(lead: int, n: int, wanted: bool, dtype: DType) -> UOp:
  """h: (lead, n, room), Hessenberg matrices, which become triangles. Only their diagonals do if vectors are not wanted:
  then rotations end where the part does that has not converged. z: (lead, n, room), columns of Q as rows, which
  become Schur's vectors. left: (lead, 3): the end of the part that has not converged, its beginning, and the steps
  since an eigenvalue converged. state: (lead, 2), the shift. n is at least 2."""
  loops = Loops(lead, dtype)
  room, width = width_of(n, dtype)
  h, z = ComplexParam(loops, 0, lead, n, room), ComplexParam(loops, 2, lead, n, room)
  left, state = MatrixParam(loops, 4, lead, 1, 3, dtypes.int32), ComplexParam(loops, 5, lead, 1, 1)
  zero, one = loops.number(0), loops.number(1)
  none, unit = ComplexTerm(zero, zero), ComplexTerm(one, zero)
  def place(i: UOp) -> UOp: return i.cast(dtypes.weakint).maximum(0).minimum(n - 1)
  t = loops.steps(STEPS * n)
  own = (*loops.each, t)
  i = loops.terms(n - 1)
  eps = 2.0 ** -dtypes.finfo(dtype)[1]
  size = (h(i, i).rough_size() + h(i + 1, i + 1).rough_size()) * eps + eps * eps
  kept = size < h(i + 1, i).rough_size()                     # NaN is not kept, so that the loop ends
  found = (kept.logical_not() & (_whole(i) < left(0, 0))).where(_whole(i) + 1, UOp.const(dtypes.int32, 0))
  stores = [left.at(0, 1).store(found.reduce(Ops.MAX, i), *own)]
  lo, hi = place(left(0, 1)), place(left(0, 0))
  before = (hi - 1).maximum(0)
  stores += h.store(lo, (lo - 1).maximum(0), h(lo, lo).if_(lo < 1, none), *own)
  stores += state.store(0, 0, _shift(h, hi, before, left(0, 2), unit), *own)
  u = loops.steps((place(left(0, 0)) - place(left(0, 1))).maximum(0))
  inner = (*own, u)
  k = (place(left(0, 1)) + u).minimum(n - 2)
  back, first = (k - 1).maximum(0), u < 1
  x = h(k, k).minus(state(0, 0)).if_(first, h(k, back))
  y = h(k + 1, k).if_(first, h(k + 1, back))
  a, r = x.size(), root(x.square() + y.square())
  still, straight = equal(r, zero), equal(a, zero)
  safe = still.where(one, r)
  cosine = still.where(one, quotient(a, safe))
  phase = x.over(straight.where(one, a)).if_(straight.logical_not(), unit)
  sine = phase.times(y.conjugate()).over(safe)
  rotation = MatrixParam(loops, 7, lead, 1, 3)
  stores += [rotation.at(0, place_).store(value, *inner) for place_, value in enumerate((cosine, sine.re, sine.im))]
  c, s = rotation(0, 0), ComplexTerm(rotation(0, 1), rotation(0, 2))
  start = UOp(Ops.IDIV, dtypes.weakint, (back, UOp.const(dtypes.weakint, width)))
  blocks = room // width - start
  if not wanted:
    last = UOp(Ops.IDIV, dtypes.weakint, (hi, UOp.const(dtypes.weakint, width))) + 1 - start
    blocks = last.maximum(0).minimum(blocks)
  block, j = loops.loop(blocks), loops.loop(width)
  at = (start + block) * width + j
  p, q = h(k, at), h(k + 1, at)
  stores += [*h.store(k, at, p.scaled(c).plus(s.times(q)), *inner, block, j),
             *h.store(k + 1, at, q.scaled(c).minus(s.conjugate().times(p)), *inner, block, j)]
  stores += h.store(k + 1, back, h(k + 1, back).if_(first, none), *inner)
  above = 0 if wanted else place(left(0, 1))
  below = loops.loop(((k + 3).minimum(hi + 1).minimum(n) - above).maximum(0))
  row = (below + above).minimum(n - 1)
  p, q = h(row, k), h(row, k + 1)
  stores += [*h.store(row, k, p.scaled(c).plus(s.conjugate().times(q)), *inner, below),
             *h.store(row, k + 1, q.scaled(c).minus(s.times(p)), *inner, below)]
  if wanted:
    block, j = loops.loop(room // width), loops.loop(width)
    at = block * width + j
    p, q = z(k, at), z(k + 1, at)
    stores += [*z.store(k, at, p.scaled(c).plus(s.conjugate().times(q)), *inner, block, j),
               *z.store(k + 1, at, q.scaled(c).minus(s.times(p)), *inner, block, j)]
  moves = left(0, 1) < left(0, 0)
  count, end = left(0, 2), left(0, 0)
  nothing = UOp.const(dtypes.int32, 0)
  stores += [left.at(0, 2).store(moves.where(count + 1, nothing), *own),
             left.at(0, 0).store(moves.where(end, (nothing < end).where(end + -1, end)), *own)]
  return UOp.sink(*stores, arg=KernelInfo())

def _shift(h: ComplexParam, hi: UOp, before: UOp, count: UOp, unit: ComplexTerm) -> ComplexTerm:
  """Return the eigenvalue of the last two rows and columns that is nearer to the last element.

  Every STUCK steps without success, return another number.
  """
  last = h(hi, hi)
  half = h(before, before).minus(last).scaled(0.5)
  product = h(before, hi).times(h(hi, before))
  inner = half.times(half).plus(product)
  size = inner.size()
  large = root((size + magnitude(inner.re)) * 0.5)
  flat = equal(large, large * 0.0)
  small = quotient(inner.im, flat.where(unit.re, large) * 2.0)
  low = inner.re < large * 0.0
  signed = (inner.im < large * 0.0).where(large * -1.0, large)
  found = ComplexTerm(low.where(magnitude(small), large), low.where(signed, small))
  away = half.re * found.re + half.im * found.im < large * 0.0
  divisor = half.plus(found.scaled(-1.0).if_(away, found))
  none = equal(divisor.square(), large * 0.0)
  usual = last.minus(product.divided(divisor, none))
  other = ComplexTerm(magnitude(h(hi, before).re) + magnitude(h(hi, before).im), large * 0.0)
  stuck = equal(count - UOp(Ops.IDIV, dtypes.int32, (count, UOp.const(dtypes.int32, STUCK))) * STUCK,
                UOp.const(dtypes.int32, STUCK - 1))
  return last.plus(other).if_(stuck, usual)

@functools.lru_cache(256)
def vectors_kernel(lead: int, n: int, dtype: DType) -> UOp:
  """y: (lead, n, room), the eigenvectors of triangles t: (lead, n, room) as rows; least: (lead, 1), the distance of
  eigenvalues that count as equal."""
  loops = Loops(lead, dtype)
  room, width = width_of(n, dtype)
  y, t = ComplexParam(loops, 0, lead, n, room), ComplexParam(loops, 2, lead, n, room)
  least = MatrixParam(loops, 4, lead, 1, 1)
  zero, one = loops.number(0), loops.number(1)
  none = ComplexTerm(zero, zero)
  k = loops.loop(n)
  step = loops.steps(n)
  i = (step * -1) + (n - 1)
  start = UOp(Ops.IDIV, dtypes.weakint, (i, UOp.const(dtypes.weakint, width)))
  b, j = loops.terms(room // width - start), loops.terms(width)
  at = (start + b) * width + j
  sums = _sum(t(i, at).times(y(k, at)).if_((i < at) & (at < n), none), b, j)
  gap = t(i, i).minus(t(k, k))
  near = gap.size() < least(0, 0)
  gap = ComplexTerm(least(0, 0), zero).if_(near, gap)
  value = sums.scaled(-1.0).divided(gap, equal(gap.square(), zero))
  value = value.if_(i < k, ComplexTerm(one, zero).if_(equal(_whole(i), _whole(k)), none))
  return UOp.sink(*y.store(k, i, value, *loops.each, k, step), arg=KernelInfo())

def triangular_form(re: Tensor, im: Tensor, wanted: bool = True) -> tuple[list[Tensor], list[Tensor]]:
  """Return Schur's form of matrices (..., n, n): the planes of the triangle T, and those of the transpose of Z. If
  vectors are not wanted, only the diagonal of T is right.

  The largest element should be near 1.
  """
  *lead, _, n = [int(d) for d in re.shape]
  count, room = count_of(lead), width_of(n, re.dtype)[0]
  def new(*shape: int) -> Tensor: return re.empty(count, *shape, dtype=re.dtype, device=re.device)
  def wide(x: Tensor) -> Tensor: return x.reshape(count, n, n).pad((None, None, (0, room - n))).clone()
  h = [wide(re), wide(im)]
  eye = re.eye(n, dtype=re.dtype, device=re.device).expand(count, n, n)
  q = [wide(eye), wide(eye * 0)]
  if n > 2: run(hessenberg_kernel(count, n, re.dtype), (*h, *q, *[new(room) for _ in range(4)], new(1)))
  z = [wide(x[..., :n].transpose(-2, -1)) for x in q]
  left = re._tensor([n - 1, 0, 0]).cast(dtypes.int32).expand(count, 3).clone()
  if n > 1: run(schur_kernel(count, n, wanted, re.dtype), (*h, *z, left, new(1), new(1), new(3)))
  def narrow(x: Tensor) -> Tensor: return x[..., :n].reshape(*lead, n, n)
  return [narrow(x) for x in h], [narrow(x) for x in z]

def triangle_vectors(t: list[Tensor]) -> list[Tensor]:
  """Return the planes of the eigenvectors of upper triangles (..., n, n), as rows."""
  *lead, _, n = [int(d) for d in t[0].shape]
  count, room, kind = count_of(lead), width_of(n, t[0].dtype)[0], t[0].dtype
  def wide(x: Tensor) -> Tensor: return x.reshape(count, n, n).pad((None, None, (0, room - n))).contiguous()
  y = [t[0].empty(count, n, room, dtype=kind, device=t[0].device) for _ in range(2)]
  top = t[0].abs().add(t[1].abs()).max((-2, -1)).reshape(count, 1)
  least = top.mul(2.0 ** -dtypes.finfo(kind)[1]).maximum(2.0 ** -400 if kind is dtypes.float64 else 2.0 ** -60)
  run(vectors_kernel(count, n, kind), (*y,), (*[wide(x) for x in t], least.contiguous()))
  return [x[..., :n].reshape(*lead, n, n) for x in y]
