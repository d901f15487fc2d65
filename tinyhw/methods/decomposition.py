"""Decompositions of matrices: qr by Householder reflections, svd by one-sided Jacobi rotations. Both work over any
leading axes.

Steps differ only in the index on which they work. They read it from storage, so all steps run the same few kernels.
Matrices are first divided by their largest element, so that squares neither overflow nor underflow. Floats narrower
than 32 bits compute in float32, and results are rounded once.
"""
from __future__ import annotations
from typing import TYPE_CHECKING

from tinyhw.dtype import dtypes, least_upper_float
from tinyhw.errors import ShapeError
from tinyhw.gradient import define_gradient
from tinyhw.methods.checks import flag
from tinyhw.methods.data.interchange import Interchange
from tinyhw.methods.graph import graph
from tinyhw.methods.graph.views import static
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
if TYPE_CHECKING: from tinyhw.tensor import Tensor

class Reflection(NamedTuple):
  """A Householder reflection, I - factor * vector vector^T. vector: (..., m, 1), factor: (..., 1, 1)."""
  vector: Tensor
  factor: Tensor

  def of(self, x: Tensor) -> Tensor:
    """Return x, reflected from the left."""
    products = self.vector.mul(x).sum(-2, keepdim=True)
    return x.sub(self.vector.mul(self.factor.mul(products)))

class Decomposition(Interchange):
  """qr and svd."""
  __slots__ = ()

  def _matrix_sizes(self, what: str) -> tuple[tuple[int, ...], int, int]:
    if self.ndim < 2: raise ShapeError(f"{what} wants matrices, (..., m, n), not {graph.show(self.shape)}")
    *lead, m, n = [static(d, "decompose") for d in self.shape]
    return tuple(lead), m, n

  def _scaled(self) -> tuple[Tensor, Tensor]:
    """Return the matrix divided by its scale, and the scale, (..., 1, 1).

    The scale is the largest absolute value. Its gradient is ignored. The result has the type to compute in.
    """
    x = self.cast(graph.accumulator(least_upper_float(self.dtype)))
    top = x.detach().abs().max((-2, -1), keepdim=True)
    scale = top.eq(0).where(1, top)
    return x.div(scale), scale

  def qr(self) -> tuple[Tensor, Tensor]:
    """Return (Q, R) with self = Q @ R, for self (..., m, n). Q: (..., m, m), orthogonal. R: (..., m, n), zero below the
    diagonal.

    Signs are LAPACK's. Raises ShapeError for less than two axes. Source: Golub and Van Loan, Matrix Computations, 5.2.

    >>> q, r = Tensor([[3.0, 1.0], [4.0, 2.0]]).qr()
    >>> (q @ r).allclose(Tensor([[3.0, 1.0], [4.0, 2.0]]), atol=1e-5)
    True
    """
    return self._factored(self._matrix_sizes("qr")[1])

  def _factored(self, count: int) -> tuple[Tensor, Tensor]:
    """Return the first `count` columns of Q, and R, as qr does."""
    _, m, n = self._matrix_sizes("qr")
    out = least_upper_float(self.dtype)
    x, scale = self._scaled() if m and n else (self.cast(out), self._tensor(1).cast(out))
    q, r = _orthogonal(x, count)
    return q.cast(out), r.mul(scale).triu().cast(out)

  def _singular_values(self) -> Tensor:
    """Return the singular values (..., min(m, n)) in descending order, as svd does. They have no gradient."""
    x, scale = self.detach()._scaled()
    if int(x.shape[-2]) < int(x.shape[-1]): x = x.transpose(-2, -1)
    from tinyhw.methods.loops.rotations import orthogonal_columns  # 1 ms to load, for few programs
    s = orthogonal_columns(x, False)[0].square().sum(-2).sqrt().sort(-1, descending=True)[0]
    return s.mul(scale.squeeze(-1)).cast(least_upper_float(self.dtype))

  def svd(self, full_matrices: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Return (U, S, V) with self = U[..., :k] @ diag(S) @ V[..., :k, :], where k = min(m, n).

    S: (..., k), in descending order. U: (..., m, m) and V: (..., n, n) are orthogonal. full_matrices=False: U is (...,
    m, k), V is (..., k, n).

    The gradient needs singular values that differ. The rotations are computed when the call is made. Source: Hestenes
    1958; Golub and Van Loan 8.6.3; Townsend 2016 for the gradient.

    >>> [round(x, 4) for x in Tensor([[3.0, 0.0], [4.0, 5.0]]).svd()[1].tolist()]
    [6.7082, 2.2361]
    """
    lead, m, n = self._matrix_sizes("svd")
    full_matrices = flag("full_matrices", full_matrices)
    if m < n:
      u, s, v = self.transpose(-2, -1).svd(full_matrices)
      return v.transpose(-2, -1), s, u.transpose(-2, -1)
    out = least_upper_float(self.dtype)
    if not n or 0 in lead:
      empty = self._new(graph.full((*lead, 0), out, 0, self.device))
      wide = _identity(lead, m, m if full_matrices else n, empty)
      return wide, empty.reshape(*lead, n), _identity(lead, n, n, empty)
    x, scale = self._scaled()
    columns, v = _rotated(x.detach().contiguous())
    s = columns.square().sum(-2).sqrt()
    order = s.argsort(-1, descending=True)
    s = s.gather(-1, order)
    along = order.unsqueeze(-2)
    columns, v = columns.gather(-1, along.expand(columns.shape)), v.gather(-1, along.expand(v.shape))
    divisor = s.unsqueeze(-2)
    u = _completed(divisor.eq(0).where(0, columns.div(divisor.eq(0).where(1, divisor))), m if full_matrices else n)
    u, s, v = _differentiable(x, u, s, v)
    return u.cast(out), s.mul(scale.squeeze(-1)).cast(out), v.transpose(-2, -1).cast(out)

def _identity(lead: tuple[int, ...], m: int, n: int, like: Tensor) -> Tensor:
  return like.eye(m, n, dtype=like.dtype, device=like.device).expand(*lead, m, n)

def _triangle(x: Tensor, steps: int) -> tuple[list[Reflection], Tensor]:
  """Return reflections that clear the columns below the diagonal, and x after these reflections."""
  reflections: list[Reflection] = []
  rows = x._new(graph.positions(graph.shrink_axis(x.uop, x.ndim - 1, 0, 1), x.ndim - 2)) if steps > 0 else x
  for k in range(steps):
    at = x._tensor([k]).cast(dtypes.int32)
    column = x.gather(-1, at.reshape((1,) * x.ndim).expand(*x.shape[:-1], 1))
    below = (rows > at).where(column, 0)
    corner = rows.eq(at).where(column, 0).sum(-2, keepdim=True)
    rest = below.square().sum(-2, keepdim=True)
    done = rest.eq(0)                               # nothing to clear: no reflection
    norm = done.where(1, rest.add(corner.square())).sqrt()
    first = corner.add((corner < 0).where(norm.neg(), norm))     # away from 0, to avoid cancellation
    vector = below.add(rows.eq(at).where(first, 0)).contiguous()
    factor = done.where(0, done.where(1, norm.mul(norm.add(corner.abs()))).reciprocal()).contiguous()
    reflections.append(Reflection(vector, factor))
    x = reflections[-1].of(x).contiguous()
  return reflections, x

def _orthogonal(x: Tensor, count: int) -> tuple[Tensor, Tensor]:
  """Return the first `count` columns of Q, and R, with x = Q @ R."""
  *lead, m, n = [int(d) for d in x.shape]
  steps = min(m - 1, n)
  from tinyhw.methods.loops import columns  # 1 ms to load, for few programs
  from tinyhw.methods.loops.kernel import in_order  # as above
  if steps < 1 or 0 in lead or not in_order(x):
    reflections, r = _triangle(x, steps)
    return _product(reflections, tuple(lead), m, count, x), r
  vectors, scales, r = columns.triangle(x.detach(), steps)
  both = columns.product(vectors, scales, count).cat(r, dim=-1).contiguous()
  node = graph.node(Ops.DETACH, both.dtype, (both.uop, x.uop), None, both.shape)
  make = type(x)._new
  def backward(own: UOp, g: UOp) -> tuple[UOp]:      # that of the reflections, one after another
    given, slope = make(own.src[1]), make(g)
    reflections, r = _triangle(given, steps)
    found = _product(reflections, tuple(lead), m, count, given).cat(r, dim=-1)
    return (found.gradient(given, gradient=slope)[0].uop,)
  define_gradient(node, (x.uop,), backward)
  found = x._new(node)
  return found[..., :count], found[..., count:]

def _product(reflections: list[Reflection], lead: tuple[int, ...], m: int, n: int, like: Tensor) -> Tensor:
  """Return the first n columns of the product of reflections."""
  q = _identity(lead, m, n, like)
  for reflection in reversed(reflections): q = reflection.of(q).contiguous()
  return q

def _completed(u: Tensor, count: int) -> Tensor:
  """Complete orthonormal columns to `count` orthonormal columns. Columns of zeros at the end stand for missing ones."""
  *lead, m, n = [int(d) for d in u.shape]
  q, r = _orthogonal(u, count)
  signs = (r.diagonal(0, -2, -1) < 0).where(-1.0, u.const_like(1.0)[..., 0, :]).pad([None] * len(lead)
                                                                                    + [(0, count - n)], value=1.0)
  return q.mul(signs.unsqueeze(-2))

def _rotated(x: Tensor) -> tuple[Tensor, Tensor]:
  """Return x @ V with orthogonal columns, and the orthogonal V. Each sweep rotates every pair of columns once.

  A round rotates pairs of neighbours in a circle. Then all columns but the first move on by one position.
  """
  *lead, m, n = [int(d) for d in x.shape]
  from tinyhw.methods.loops.kernel import in_order  # 1 ms to load, for few programs
  if in_order(x):
    from tinyhw.methods.loops.rotations import orthogonal_columns  # as above
    columns, v = orthogonal_columns(x)
    assert v is not None, "it is wanted"
    return columns, v
  size = n + n % 2
  none: list[tuple[int, int] | None] = [None] * len(lead)
  both = x.pad([*none, None, (0, size - n)]).cat(_identity(tuple(lead), size, size, x), dim=-2).contiguous().realize()
  half = size // 2
  top, bottom = list(range(half)), list(range(half, size))
  moved = [*top[:1], *bottom[:1], *top[1:-1], *bottom[1:], *top[-1:]] if half > 1 else [*top, *bottom]
  places = x._tensor(moved)
  sweeps = 6 + size.bit_length()
  def sweep(columns: Tensor) -> Tensor:
    for _ in range(size - 1): columns = _round(columns, m)[..., places].contiguous()
    return columns
  if n > 1:
    step = both._again(sweep)
    for _ in range(sweeps): both = step(both)
  return both[..., :m, :n], both[..., m:m + n, :n]

def _round(both: Tensor, m: int) -> Tensor:
  """Rotate each column of the first half with that of the second half, so that their first m elements are
  orthogonal."""
  *lead, rows, size = [int(d) for d in both.shape]
  pairs = both.reshape(*lead, rows, 2, size // 2)
  p, q = pairs[..., 0, :], pairs[..., 1, :]
  a, b = p[..., :m, :], q[..., :m, :]
  products = a.square().stack(b.square(), a.mul(b), dim=-3).sum(-2).contiguous()
  first, second, mixed = products[..., 0, :], products[..., 1, :], products[..., 2, :]
  none = mixed.eq(0)
  ratio = second.sub(first).div(none.where(1, mixed.mul(2)))
  tangent = (ratio < 0).where(-1.0,
                              none.where(0, ratio.const_like(1.0))).div(ratio.abs().add(ratio.square().add(1).sqrt()))
  tangent = none.where(0, tangent)
  cosine = tangent.square().add(1).sqrt().reciprocal()
  sine = cosine.mul(tangent).unsqueeze(-2)
  cosine = cosine.unsqueeze(-2)
  return p.mul(cosine).sub(q.mul(sine)).stack(p.mul(sine).add(q.mul(cosine)), dim=-2).reshape(*lead, rows, size)

def _differentiable(x: Tensor, u: Tensor, s: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
  """Return the same factors with a gradient rule for x = u[..., :n] @ diag(s) @ v^T.

  The factors are parts of one node, and the rule gets that node. So the rule has derivatives too.
  """
  *lead, m, k = [int(d) for d in u.shape]
  n, count = int(s.shape[-1]), m * k
  packed = u.flatten(-2).cat(s, v.flatten(-2), dim=-1).contiguous()
  node = graph.node(Ops.DETACH, packed.dtype, (packed.uop, x.uop), None, packed.shape)
  def parts(t: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    flat = [t._new(graph.shrink_axis(t.uop, len(lead), *span)) for span in ((0, count), (count, count + n),
                                                                            (count + n, count + n + n * n))]
    return flat[0].reshape(*lead, m, k), flat[1], flat[2].reshape(*lead, n, n)
  make = type(x)._new
  def backward(own: UOp, g: UOp) -> tuple[UOp]: return (_gradient(*parts(make(own)), *parts(make(g))).uop,)
  define_gradient(node, (x.uop,), backward)
  return parts(x._new(node))

def _gradient(u: Tensor, s: Tensor, v: Tensor, gu: Tensor, gs: Tensor, gv: Tensor) -> Tensor:
  """Return the gradient of u[..., :n] diag(s) v^T, from those of its factors.

  The columns of u from n on are an arbitrary orthonormal completion. Their gradient is right for functions that do not
  depend on which completion it is.
  """
  n = int(s.shape[-1])
  added, g_added, u, gu = u[..., n:], gu[..., n:], u[..., :n], gu[..., :n]
  row, column = s.unsqueeze(-1), s.unsqueeze(-2)
  gap = column.square().sub(row.square())
  equal = gap.eq(0)
  weight = equal.where(0, equal.where(1, gap).reciprocal())
  zero = column.eq(0)
  inverse = zero.where(0, zero.where(1, column).reciprocal())
  def skew(a: Tensor) -> Tensor: return a.sub(a.transpose(-2, -1))
  ut, vt = u.transpose(-2, -1), v.transpose(-2, -1)
  inner = skew(ut.dot(gu)).mul(weight).mul(column).add(skew(vt.dot(gv)).mul(weight).mul(row))
  inner = inner.add(s.eye(n, dtype=s.dtype, device=s.device).mul(gs.unsqueeze(-1)))
  outside = gu.sub(u.dot(ut.dot(gu))).sub(added.dot(g_added.transpose(-2, -1).dot(u)))
  return u.dot(inner).add(outside.mul(inverse)).dot(vt)
