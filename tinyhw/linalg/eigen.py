"""Eigenvalues and eigenvectors of general matrices, real or complex. Results are complex: two real planes.

Matrices go through Schur's form in float64 (methods/loops/schur.py), on a device that runs long loops: others send them
to the CPU. So an imaginary part of an eigenvalue that is only rounding, as of a real one of a real matrix, is 0.
Eigenvectors have length 1, and their largest element is real. The order of eigenvalues is not LAPACK's. Source of the
gradients: Boeddeker et al. 2017; PyTorch's linalg_eig_backward.
"""
from __future__ import annotations
from typing import Any

from tinyhw.dtype import dtypes, plane_of
from tinyhw.engine.thread import this_thread
from tinyhw.errors import DTypeError, FunctionError, ShapeError
from tinyhw.functional.operands import checked, sizes
from tinyhw.functional.rules import with_rule
from tinyhw.linalg.rules import transposed
from tinyhw.linalg.solving import system
from tinyhw.methods.base import complex_room
from tinyhw.methods.loops.kernel import in_order
from tinyhw.methods.loops.schur import triangle_vectors, triangular_form
from tinyhw.named_tuple import NamedTuple
from tinyhw.tensor import Tensor

class GeneralEigen(NamedTuple):
  """Eigenvalues, and eigenvectors as columns: A @ vectors = vectors * values."""
  eigenvalues: Any
  eigenvectors: Any

class MatrixPlanes(NamedTuple):
  """The planes of complex matrices."""
  re: Tensor
  im: Tensor

  def matmul(self, other: MatrixPlanes) -> MatrixPlanes:
    """Return the product."""
    return MatrixPlanes(self.re.matmul(other.re).sub(self.im.matmul(other.im)),
                self.re.matmul(other.im).add(self.im.matmul(other.re)))

  def adjoint(self) -> MatrixPlanes: return MatrixPlanes(transposed(self.re), transposed(self.im).neg())
  def times(self, other: MatrixPlanes) -> MatrixPlanes:
    """Return the product of elements."""
    return MatrixPlanes(self.re.mul(other.re).sub(self.im.mul(other.im)),
                        self.re.mul(other.im).add(self.im.mul(other.re)))

  def square(self) -> Tensor: return self.re.square().add(self.im.square())

def _planes(what: str, x: Any) -> tuple[MatrixPlanes, bool]:
  """Return the planes of square matrices, and whether they are complex."""
  found = checked(what, x)
  if found.ndim < 2 or sizes(found)[-1] != sizes(found)[-2]:
    raise ShapeError(f"{what} wants square matrices, not {tuple(found.shape)}")
  kind = plane_of(found.dtype) if found.holds_complex else found.dtype
  if kind not in (dtypes.float32, dtypes.float64):
    raise DTypeError(f"{what} wants float32 or float64, or complex numbers, not {found.dtype}; cast with .float()")
  if found.holds_complex: return MatrixPlanes(*found._planes), True
  return MatrixPlanes(found, found.const_like(0)), False

def _decomposed(what: str, a: MatrixPlanes, is_complex: bool, wanted: bool) -> tuple[MatrixPlanes, MatrixPlanes | None]:
  """Return eigenvalues and (if they are wanted) eigenvectors, in float64."""
  if this_thread.traced is not None:
    raise FunctionError(f"{what} reads its matrices, which have no values inside of function {this_thread.traced}")
  home = a.re.device
  x = MatrixPlanes(*[p.detach().cast(dtypes.float64) for p in a])
  if not in_order(x.re): x = MatrixPlanes(*[p.to("CPU") for p in x])
  top = x.re.abs().maximum(x.im.abs()).max((-2, -1), keepdim=True)
  scale = top.eq(0).bitwise_or(top.isfinite().logical_not()).where(1, top)
  t, z = triangular_form(x.re.div(scale), x.im.div(scale), wanted)
  values = MatrixPlanes(*[p.diagonal(0, -2, -1).mul(scale.squeeze(-1)) for p in t])
  least = top.squeeze(-1).mul(2.0 ** -48 * sizes(x.re)[-1])
  if not is_complex: values = MatrixPlanes(values.re, values.im.abs().lt(least).where(0, values.im))
  if not wanted: return MatrixPlanes(*[p.to(home) for p in values]), None
  rows = MatrixPlanes(*triangle_vectors(t)).matmul(MatrixPlanes(*z))
  size = rows.square()
  largest = size.argmax(-1, keepdim=True)
  corner = MatrixPlanes(rows.re.gather(-1, largest), rows.im.gather(-1, largest))
  length = size.sum(-1, keepdim=True).mul(corner.square()).sqrt()
  safe = length.eq(0).where(1, length)
  rotated = rows.times(MatrixPlanes(corner.re.div(safe), corner.im.neg().div(safe)))
  return MatrixPlanes(*[p.to(home) for p in values]), MatrixPlanes(*[transposed(p).to(home) for p in rotated])

def _solved(a: MatrixPlanes, b: MatrixPlanes) -> MatrixPlanes:
  """Solve a @ x = b, as a real system of twice the size."""
  n = sizes(a.re)[-1]
  both = a.re.cat(a.im.neg(), dim=-1).cat(a.im.cat(a.re, dim=-1), dim=-2)
  x, _ = system(both, b.re.cat(b.im, dim=-2))
  none = [None] * (x.ndim - 2)
  return MatrixPlanes(x.shrink([*none, (0, n), None]), x.shrink([*none, (n, 2 * n), None]))

def eig(A: Any) -> GeneralEigen:
  """Return eigenvalues and eigenvectors of square matrices. Both are complex."""
  a, is_complex = _planes("eig", A)
  n, kind = sizes(a.re)[-1], a.re.dtype
  room = complex_room()
  if not a.re.numel(): return GeneralEigen(room.joined(a.re.sum(-1), a.re.sum(-1)), room.joined(a.re, a.re.clone()))
  values, vectors = _decomposed("eig", a, is_complex, True)
  assert vectors is not None, "they are wanted"
  packed = vectors.re.cat(vectors.im, values.re.unsqueeze(-2), values.im.unsqueeze(-2), dim=-2).cast(kind)
  none: list[Any] = [None] * (packed.ndim - 2)
  def parts(x: Tensor) -> tuple[MatrixPlanes, MatrixPlanes]:
    v = MatrixPlanes(x.shrink([*none, (0, n), None]), x.shrink([*none, (n, 2 * n), None]))
    return v, MatrixPlanes(x[..., 2 * n, :], x[..., 2 * n + 1, :])
  def rule(y: Tensor, g: Tensor, *_: Tensor) -> tuple[Tensor, ...]:
    return tuple(_gradient(*parts(y), *parts(g)))[:1 + is_complex]
  inputs = (a.re, a.im) if is_complex else (a.re,)
  v, w = parts(with_rule(packed, inputs, rule))
  return GeneralEigen(room.joined(*w), room.joined(*v))

def _gradient(v: MatrixPlanes, w: MatrixPlanes, gv: MatrixPlanes, gw: MatrixPlanes) -> MatrixPlanes:
  """Return the gradient of the matrix, from those of eigenvectors of length 1 and of eigenvalues."""
  n = sizes(v.re)[-1]
  eye = v.re.eye(n, dtype=v.re.dtype, device=v.re.device)
  inner = v.adjoint().matmul(gv)
  along = inner.re.mul(eye).sum(-2, keepdim=True)              # the real diagonal
  gram = v.adjoint().matmul(v)
  inner = MatrixPlanes(inner.re.sub(gram.re.mul(along)), inner.im.sub(gram.im.mul(along)))
  gap = MatrixPlanes(w.re.unsqueeze(-2).sub(w.re.unsqueeze(-1)), w.im.unsqueeze(-2).sub(w.im.unsqueeze(-1)))
  size = gap.square()
  equal = size.eq(0)
  weight = equal.where(0, equal.where(1, size).reciprocal())
  # the quotient by the conjugate of the gap: times the gap, over its square
  rest = inner.times(MatrixPlanes(gap.re.mul(weight), gap.im.mul(weight)))
  whole = MatrixPlanes(rest.re.add(eye.mul(gw.re.unsqueeze(-2))), rest.im.add(eye.mul(gw.im.unsqueeze(-2))))
  return _solved(v.adjoint(), whole.matmul(v.adjoint()))

def eigvals(A: Any) -> Any:
  """Return the eigenvalues of square matrices, which are complex."""
  a, is_complex = _planes("eigvals", A)
  room = complex_room()
  if not a.re.numel(): return room.joined(a.re.sum(-1), a.re.sum(-1))
  values, _ = _decomposed("eigvals", a, is_complex, False)
  packed = values.re.unsqueeze(-2).cat(values.im.unsqueeze(-2), dim=-2).cast(a.re.dtype)
  def rule(y: Tensor, g: Tensor, *planes: Tensor) -> tuple[Tensor, ...]:
    given = MatrixPlanes(*planes) if is_complex else MatrixPlanes(planes[0], planes[0].const_like(0))
    x = eig(room.joined(*given) if is_complex else given.re)
    v, eye = MatrixPlanes(*x.eigenvectors._planes), given.re.eye(sizes(given.re)[-1], dtype=given.re.dtype)
    slopes = MatrixPlanes(eye.mul(g[..., 0, :].unsqueeze(-2)), eye.mul(g[..., 1, :].unsqueeze(-2)))
    return tuple(_solved(v.adjoint(), slopes.matmul(v.adjoint())))[:1 + is_complex]
  found = with_rule(packed, (a.re, a.im) if is_complex else (a.re,), rule)
  return room.joined(found[..., 0, :], found[..., 1, :])
