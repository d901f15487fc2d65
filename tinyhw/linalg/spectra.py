"""Singular values and eigenvalues, and what follows from them: pseudo-inverse, rank, condition.

svd is one-sided Jacobi (methods/decomposition.py). eigh makes matrices tridiagonal on devices that run long loops
(methods/loops/tridiagonal.py). Elsewhere it is svd: a symmetric matrix plus a multiple of the identity is positive
semi-definite, and then its singular vectors are its eigenvectors. Eigenvalues are their Rayleigh quotients, with an
error of a few ULP of the norm.
"""
from __future__ import annotations
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError
from tinyhw.functional.operands import sizes
from tinyhw.linalg.factors import QR, linalg_qr
from tinyhw.functional.rules import with_rule
from tinyhw.linalg.rules import identity, matrices, transposed
from tinyhw.methods.base import Handle
from tinyhw.methods.loops.kernel import in_order
from tinyhw.methods.loops.tridiagonal import eigen
from tinyhw.named_tuple import NamedTuple
from tinyhw.tensor import Tensor

class SVD(NamedTuple):
  """A = U @ diag(S) @ Vh."""
  U: Tensor
  S: Tensor
  Vh: Tensor

class OldSVD(NamedTuple):
  """A = U @ diag(S) @ V^T."""
  U: Tensor
  S: Tensor
  V: Tensor

class Eigen(NamedTuple):
  """Eigenvalues in ascending order, and eigenvectors as columns."""
  eigenvalues: Tensor
  eigenvectors: Tensor

def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: Any = None) -> SVD:
  """Return (U, S, Vh) with A = U @ diag(S) @ Vh, S in descending order."""
  if driver is not None: raise ArgumentError("driver chooses a routine of CUDA's; leave it out")
  return SVD(*matrices("svd", A).svd(full_matrices))

def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> OldSVD:
  """Return (U, S, V) with A = U @ diag(S) @ V^T. some: reduced matrices. compute_uv=False: zeros for U and V."""
  a = matrices("svd", input)
  u, s, v = a.svd(not some or not compute_uv)
  if not compute_uv: return OldSVD(u.mul(0), s, v.mul(0))
  return OldSVD(u, s, transposed(v))

def svdvals(A: Tensor, *, driver: Any = None) -> Tensor:
  """Return the singular values in descending order."""
  if driver is not None or not in_order(A) or not A.numel(): return linalg_svd(A, False, driver=driver).S
  def rule(y: Tensor, g: Tensor, a: Tensor) -> tuple[Tensor]:
    u, _, v = a.svd(False)
    return (u.mul(g.unsqueeze(-2)).matmul(v),)
  a = matrices("svdvals", A)
  return with_rule(a._singular_values(), (a,), rule)

def eigh(A: Tensor, UPLO: str = "L") -> Eigen:
  """Return eigenvalues and eigenvectors of symmetric matrices, from one triangle of them."""
  a, full = _whole("eigh", A, UPLO)
  n = sizes(a)[-1]
  if not a.numel(): return Eigen(Tensor.empty(*sizes(a)[:-1], dtype=a.dtype), a.clone())
  values, vectors = _eigh(full.detach())
  packed = vectors.cat(values.unsqueeze(-2), dim=-2)
  def rule(y: Tensor, g: Tensor, _: Tensor) -> tuple[Tensor]:
    v, w = y.shrink([*[None] * (y.ndim - 2), (0, n), None]), y[..., n, :]
    gv, gw = g.shrink([*[None] * (y.ndim - 2), (0, n), None]), g[..., n, :]
    gap = w.unsqueeze(-2).sub(w.unsqueeze(-1))
    equal = gap.eq(0)
    weight = equal.where(0, equal.where(1, gap).reciprocal())
    inner = transposed(v).matmul(gv).mul(weight).add(identity(v).mul(gw.unsqueeze(-2)))
    found = v.matmul(inner).matmul(transposed(v))
    return (found.add(transposed(found)).mul(0.5),)
  packed = with_rule(packed, (a,), rule)     # symmetric, as PyTorch's
  return Eigen(packed[..., n, :], packed.shrink([*[None] * (a.ndim - 2), (0, n), None]))

def _whole(what: str, A: Tensor, uplo: Any) -> tuple[Tensor, Tensor]:
  """Return the matrices, and those that are symmetric and have one triangle of them."""
  if not isinstance(uplo, str) or uplo.upper() not in ("L", "U"):
    raise ArgumentError(f"UPLO is 'L' or 'U', not {uplo!r}")
  a = matrices(what, A, True)
  low = a.tril() if uplo.upper() == "L" else transposed(a.triu())
  return a, low.add(transposed(low.tril(-1)))

def _scaled(a: Tensor) -> tuple[Tensor, Tensor]:
  """Return matrices divided by their largest elements, and these, (..., 1)."""
  top = a.abs().max((-2, -1), keepdim=True)
  scale = top.eq(0).where(1, top)
  return a.div(scale), scale.squeeze(-1)

def _eigh(a: Tensor) -> tuple[Tensor, Tensor]:
  n = sizes(a)[-1]
  if in_order(a):
    x, scale = _scaled(a)
    values, vectors = eigen(x)
    assert vectors is not None, "they are wanted"
    values = values.mul(scale)
    order = values.argsort(-1)
    return values.gather(-1, order), vectors.gather(-1, order.unsqueeze(-2).expand(sizes(vectors)))
  shift = a.abs().sum(-1).max(-1)                      # at least the largest absolute eigenvalue
  u, _, _ = a.add(identity(a).mul(shift.unsqueeze(-1).unsqueeze(-1))).svd()
  values = transposed(u).matmul(a).mul(transposed(u)).sum(-1)
  order = values.argsort(-1)
  return values.gather(-1, order), u.gather(-1, order.unsqueeze(-2).expand(*sizes(order)[:-1], n, n))

def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
  """Return the eigenvalues of symmetric matrices in ascending order."""
  a, full = _whole("eigvalsh", A, UPLO)
  if not in_order(a) or not a.numel(): return eigh(A, UPLO).eigenvalues
  def rule(y: Tensor, g: Tensor, a: Tensor) -> tuple[Tensor]:
    v = eigh(a, UPLO).eigenvectors
    return (v.mul(g.unsqueeze(-2)).matmul(transposed(v)),)
  x, scale = _scaled(full.detach())
  return with_rule(eigen(x, False)[0].mul(scale).sort(-1)[0], (a,), rule)

# ***** what follows *****

def _least(s: Tensor, atol: Any, rtol: Any, m: int, n: int) -> Tensor:
  """Return the threshold of singular values: the larger of atol and rtol times the largest."""
  if rtol is None:
    usual = 2.0 ** -dtypes.finfo(s.dtype)[1] * max(m, n)
    rtol = usual if atol is None else atol._self().gt(0).where(0, usual) if isinstance(atol, Handle) else (
      0.0 if atol > 0 else usual)
  top = s.max(-1)
  def number(x: Any) -> Any: return x._self().cast(s.dtype) if isinstance(x, Handle) else x
  least = top.mul(number(rtol))
  return least if atol is None else least.maximum(number(atol))

def _values(A: Tensor, hermitian: bool) -> Tensor:
  return eigvalsh(A).abs() if hermitian else svdvals(A)

def matrix_rank(A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
  """Return the number of singular values above a threshold."""
  a = matrices("matrix_rank", A, hermitian)
  if isinstance(tol, bool): tol, hermitian = None, tol
  lead = sizes(a)[:-2]
  if not a.numel(): return Tensor.zeros(*lead, dtype=dtypes.int64)
  s = _values(a, hermitian)
  least = _least(s, tol if tol is not None else atol, 0.0 if tol is not None else rtol, *sizes(a)[-2:])
  return s.gt(least.unsqueeze(-1)).long().sum(-1)

def pinv(A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
  """Return the pseudo-inverse: singular values below a threshold count as 0."""
  a = matrices("pinv", A, hermitian)
  m, n = sizes(a)[-2:]
  if rcond is not None: rtol = rcond
  if not a.numel(): return Tensor.empty(*sizes(a)[:-2], n, m, dtype=a.dtype)
  if hermitian:
    w, v = eigh(a.detach())
    size, left, right = w.abs(), v, transposed(v)
    kept = size.gt(_least(size.detach().sort(-1, descending=True)[0], atol, rtol, m, n).unsqueeze(-1))
    found = left.mul(kept.where(kept.where(w, 1).reciprocal(), 0).unsqueeze(-2)).matmul(right)
    return with_rule(found, (a,), _pinv_rule)
  u, s, v = a.detach().svd(full_matrices=False)
  kept = s.gt(_least(s, atol, rtol, m, n).unsqueeze(-1))
  found = transposed(v).mul(kept.where(kept.where(s, 1).reciprocal(), 0).unsqueeze(-2)).matmul(transposed(u))
  return with_rule(found, (a,), _pinv_rule)

def _pinv_rule(p: Tensor, g: Tensor, a: Tensor) -> tuple[Tensor]:
  """Source: Golub and Pereyra 1973. It needs no singular values that differ. The order of factors is PyTorch's, which
  matters where a triangle of a alone was read."""
  gt, pt = transposed(g), transposed(p)
  if sizes(a)[-2] <= sizes(a)[-1]:
    k = gt.matmul(p)
    kp = k.matmul(pt)
    rest = kp.sub(a.matmul(p).matmul(kp)).add(pt.matmul(p).matmul(gt.sub(k.matmul(a))))
    return (rest.sub(transposed(p.matmul(k))),)
  k = p.matmul(gt)
  pk = pt.matmul(k)
  rest = gt.sub(a.matmul(k)).matmul(p).matmul(pt).add(pk).sub(pk.matmul(p).matmul(a))
  return (rest.sub(transposed(k.matmul(p))),)

def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
  """Return the pseudo-inverse."""
  return pinv(input, rcond)

def cond(A: Tensor, p: Any = None) -> Tensor:
  """Return the condition number, by singular values or by a norm."""
  from tinyhw.linalg.norms import matrix_norm  # hidden: norms of matrices use singular values
  from tinyhw.linalg.solving import inv
  a = matrices("cond", A, p not in (None, 2, -2))
  if p in (None, 2, -2):
    s = svdvals(a)
    return s[..., -1].div(s[..., 0]) if p == -2 else s[..., 0].div(s[..., -1])
  return matrix_norm(a, p).mul(matrix_norm(inv(a), p))

# ***** approximations *****

def svd_lowrank(A: Tensor, q: int = 6, niter: int = 2, M: Tensor | None = None) -> OldSVD:
  """Return the leading q singular values and vectors, by subspace iteration from random vectors. Source: Halko 2009."""
  a = matrices("svd_lowrank", A)
  if M is not None: a = a.sub(M)
  q = min(q, *sizes(a)[-2:])
  basis = linalg_qr(a.matmul(Tensor.randn(*sizes(a)[:-2], sizes(a)[-1], q, dtype=a.dtype))).Q
  for _ in range(niter):
    basis = linalg_qr(transposed(a).matmul(basis)).Q
    basis = linalg_qr(a.matmul(basis)).Q
  u, s, v = transposed(basis).matmul(a).svd(full_matrices=False)
  return OldSVD(basis.matmul(u), s, transposed(v))

def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> OldSVD:
  """Return the leading q principal components of rows."""
  a = matrices("pca_lowrank", A)
  most = min(sizes(a)[-2:])
  if q is None: q = min(6, most)
  if not 0 <= q <= most: raise ArgumentError(f"q is {q}; it is from 0 to {most}")
  return svd_lowrank(a.sub(a.mean(-2, keepdim=True)) if center else a, q, niter)

def torch_qr(input: Tensor, some: bool = True) -> QR:
  """Return (Q, R): reduced (some) or complete."""
  return linalg_qr(input, "reduced" if some else "complete")

