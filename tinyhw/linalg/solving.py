"""Linear systems, inverses, determinants, powers, least squares. Batched, with gradients.

Systems go through LU with partial pivoting, as in LAPACK's gesv; least squares through QR, as in gels.
"""
from __future__ import annotations
import math
from collections.abc import Sequence

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.functional.operands import checked, common_shape, sizes
from tinyhw.linalg.factors import linalg_qr, pivoted, substitute, triangular, zero_pivot
from tinyhw.functional.rules import unbroadcast, with_rule
from tinyhw.linalg.rules import first_bad, identity, matrices, transposed
from tinyhw.methods.loops.kernel import in_order
from tinyhw.named_tuple import NamedTuple
from tinyhw.tensor import Tensor

class Solution(NamedTuple):
  """The solution, and the first column whose pivot is 0 (or 0)."""
  result: Tensor
  info: Tensor

class Inverse(NamedTuple):
  """The inverse, and the first column whose pivot is 0 (or 0)."""
  inverse: Tensor
  info: Tensor

class SignLog(NamedTuple):
  """The sign of a determinant, and the logarithm of its absolute value."""
  sign: Tensor
  logabsdet: Tensor

class LeastSquares(NamedTuple):
  """The solution, the sums of squared residuals, the rank, the singular values (the last three may be empty)."""
  solution: Tensor
  residuals: Tensor
  rank: Tensor
  singular_values: Tensor

def _solved(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
  """Return the solution and info of a @ x = b. No gradient."""
  both, order, pivots, _ = pivoted(a)
  lead = common_shape(sizes(a)[:-2], sizes(b)[:-2])
  n = sizes(a)[-1]
  wide = b.expand(*lead, *sizes(b)[-2:])
  rows = order.expand(*lead, n).unsqueeze(-1).expand(sizes(wide))
  x = substitute(both, wide.gather(-2, rows), False, True) if wide.numel() else wide
  return (substitute(both, x, True, False) if wide.numel() else wide), zero_pivot(pivots)

def system(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
  """Return the solution of a @ x = b, with gradients, and info."""
  x, info = _solved(a.detach(), b.detach())
  def rule(x: Tensor, g: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    gb = system(transposed(a), g)[0]
    return unbroadcast(gb.matmul(transposed(x)).neg(), sizes(a)), unbroadcast(gb, sizes(b))
  return with_rule(x, (a, b), rule), info

def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Solution:
  """Solve A @ X = B (left=False: X @ A = B) for matrices or vectors B. Return also info, the column of a pivot 0."""
  a = matrices("solve", A, True)
  b = checked("solve", B)
  if b.dtype is not a.dtype: raise DTypeError(f"solve wants one type, not {a.dtype} and {b.dtype}")
  if not b.ndim: raise ShapeError("solve wants B with an axis")
  vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and sizes(b) == sizes(a)[:-1])
  if vector and not left: raise ArgumentError("solve: left=False wants matrices B")
  b = b.unsqueeze(-1) if vector else b
  if sizes(b)[-2 if left else -1] != sizes(a)[-1]: raise ShapeError(f"solve: {A.shape} and {B.shape} do not fit")
  common_shape(sizes(a)[:-2], sizes(b)[:-2])
  x, info = system(a, b) if left else system(transposed(a), transposed(b))
  if check_errors: first_bad("solve", info, "is singular")
  x = x if left else transposed(x)
  return Solution(x.squeeze(-1) if vector else x, info)

def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
  """Solve A @ X = B. Raises ArgumentError for a singular matrix, and names the entry of the batch."""
  return solve_ex(A, B, left=left, check_errors=True).result

def inv_ex(A: Tensor, *, check_errors: bool = False) -> Inverse:
  """Return the inverse, and info: 0, or the column of a pivot 0."""
  a = matrices("inv", A, True)
  if not a.numel(): return Inverse(a.clone(), Tensor.zeros(*sizes(a)[:-2], dtype=dtypes.int32))
  x, info = _solved(a.detach(), identity(a))
  def rule(x: Tensor, g: Tensor, _: Tensor) -> tuple[Tensor]:
    t = transposed(x)
    return (t.matmul(g).matmul(t).neg(),)
  if check_errors: first_bad("inv", info, "is singular")
  return Inverse(with_rule(x, (a,), rule), info)

def inv(A: Tensor) -> Tensor:
  """Return the inverse. Raises ArgumentError for a singular matrix, and names the entry of the batch."""
  return inv_ex(A, check_errors=True).inverse

# ***** determinants *****

def det(A: Tensor) -> Tensor:
  """Return the determinant."""
  a = matrices("det", A, True)
  if not sizes(a)[-1]: return Tensor.ones(*sizes(a)[:-2], dtype=a.dtype)
  _, _, pivots, signs = pivoted(a.detach())
  found = pivots.prod(-1).mul(signs.prod(-1))
  def rule(y: Tensor, g: Tensor, a: Tensor) -> tuple[Tensor]:
    return (_cofactors(a).mul(g.unsqueeze(-1).unsqueeze(-1)),)
  return with_rule(found, (a,), rule)

def _cofactors(a: Tensor) -> Tensor:
  """Return the derivative of the determinant: det(A) A^-T, from the singular values, so that A may be singular."""
  u, s, v = a.svd()
  n = sizes(s)[-1]
  others = Tensor.eye(n, dtype=dtypes.bool).where(1, s.unsqueeze(-2).expand(*sizes(s), n)).prod(-1)
  sign = det(u.detach()).mul(det(v.detach())).round()
  return u.mul(others.unsqueeze(-2)).matmul(v).mul(sign.unsqueeze(-1).unsqueeze(-1))

def slogdet(A: Tensor) -> SignLog:
  """Return the sign of the determinant, and the logarithm of its absolute value: -inf for a singular matrix."""
  a = matrices("slogdet", A, True)
  lead = sizes(a)[:-2]
  if not sizes(a)[-1]: return SignLog(Tensor.ones(*lead, dtype=a.dtype), Tensor.zeros(*lead, dtype=a.dtype))
  _, _, pivots, signs = pivoted(a.detach())
  def rule(y: Tensor, g: Tensor, a: Tensor) -> tuple[Tensor]:
    return (transposed(inv_ex(a).inverse).mul(g.unsqueeze(-1).unsqueeze(-1)),)
  sign = pivots.sign().prod(-1).mul(signs.prod(-1))
  return SignLog(sign, with_rule(pivots.abs().log().sum(-1), (a,), rule))

def logdet(input: Tensor) -> Tensor:
  """Return the logarithm of the determinant: NaN where it is negative, -inf where it is 0."""
  found = slogdet(input)
  return found.sign.lt(0).where(math.nan, found.logabsdet)

# ***** powers and tensors *****

def matrix_power(A: Tensor, n: int) -> Tensor:
  """Return the n-th power of matrices; a negative one of their inverse."""
  a = checked("matrix_power", A)
  if a.ndim < 2 or sizes(a)[-1] != sizes(a)[-2]: raise ShapeError(f"matrix_power wants square matrices, not {a.shape}")
  if not isinstance(n, int): raise ArgumentError(f"n is a whole number, not {n!r}")
  if n == 0: return identity(a).expand(sizes(a)).clone()
  base, found = inv(a) if n < 0 else a, None
  n = abs(n)
  while n:
    if n & 1: found = base if found is None else found.matmul(base)
    n >>= 1
    if n: base = base.matmul(base)
  assert found is not None, "n is not 0"
  return found

def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
  """Return the inverse of a tensor whose first `ind` axes have as many elements as the others."""
  if not isinstance(ind, int) or ind < 1: raise ArgumentError(f"ind is {ind}; it must be at least 1")
  first, second = sizes(A)[:ind], sizes(A)[ind:]
  if math.prod(first) != math.prod(second):
    raise ShapeError(f"tensorinv: {first} and {second} differ in their elements")
  return inv(A.reshape(math.prod(first), math.prod(second))).reshape(*second, *first)

def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
  """Solve tensordot(A, X, X.ndim) = B. dims: axes of A to move to the end before."""
  if dims is not None:
    moved = [d % A.ndim for d in dims]
    A = A.permute([*[i for i in range(A.ndim) if i not in moved], *moved])
  shape = sizes(A)[B.ndim:]
  if math.prod(shape) != math.prod(sizes(A)[:B.ndim]):
    raise ShapeError(f"tensorsolve: {A.shape} and {B.shape} do not fit")
  return solve(A.reshape(-1, math.prod(shape)), B.reshape(-1)).reshape(shape)

# ***** least squares *****

_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")

def lstsq(input: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None) -> LeastSquares:
  """Return the X of the least |A @ X - B|, of the least norm where there are several. driver: as LAPACK's routines."""
  a = matrices("lstsq", input)
  if driver not in (None, *_DRIVERS): raise ArgumentError(f"driver is one of {', '.join(_DRIVERS)}, not {driver!r}")
  if b.dtype is not a.dtype: raise DTypeError(f"lstsq wants one type, not {a.dtype} and {b.dtype}")
  vector = b.ndim == a.ndim - 1
  right = b.unsqueeze(-1) if vector else b
  if right.ndim != a.ndim or sizes(right)[-2] != sizes(a)[-2]:
    raise ShapeError(f"lstsq: {input.shape} and {b.shape} do not fit")
  m, n = sizes(a)[-2:]
  lead = sizes(a)[:-2]
  empty = Tensor.empty(0, dtype=a.dtype)
  least = rcond if rcond is not None else 2.0 ** -dtypes.finfo(a.dtype)[1] * max(m, n)
  if driver == "gels" or not a.numel(): x, rank, values = _full_rank(a, right), None, empty
  elif driver in (None, "gelsy") and (found := _of_certain_rank(a, right, least)) is not None:
    x, rank, values = *found, empty
  else: x, rank, values = _by_singular_values(a, right, least)
  whole = rank is None or not rank.numel() or bool(rank.eq(n).all().item())
  residuals = right.sub(a.matmul(x)).square().sum(-2) if m > n and whole and driver not in (None, "gelsy") else empty
  if m > n and not right.numel() and driver not in (None, "gelsy"): residuals = Tensor.zeros(*lead, sizes(right)[-1],
                                                                                             dtype=a.dtype)
  x = x.squeeze(-1) if vector else x
  if driver == "gels": return LeastSquares(x, residuals, Tensor.empty(0, dtype=dtypes.int64), empty)
  if rank is None: rank = Tensor.zeros(*lead, dtype=dtypes.int64)
  return LeastSquares(x, residuals, rank, values.detach() if driver in ("gelsd", "gelss") else empty)

def _of_certain_rank(a: Tensor, b: Tensor, least: float) -> tuple[Tensor, Tensor] | None:
  """Return the solution and the rank by QR, where a bound of the condition number shows that all columns count. None
  where it does not."""
  m, n = sizes(a)[-2:]
  if m < n or not in_order(a): return None
  q, r = linalg_qr(a)
  inverse = substitute(r.detach(), identity(r).expand(*sizes(r)), True, False)
  bound = r.detach().square().sum((-2, -1)).mul(inverse.square().sum((-2, -1))).sqrt().max().item()
  if not bound * least < 1: return None      # or NaN
  x = triangular(r, transposed(q).matmul(b), True)
  return x, Tensor.full(sizes(a)[:-2], n, dtypes.int64)

def _full_rank(a: Tensor, b: Tensor) -> Tensor:
  m, n = sizes(a)[-2:]
  if not m or not n: return Tensor.zeros(*sizes(a)[:-2], n, sizes(b)[-1], dtype=a.dtype)
  if m >= n:
    q, r = linalg_qr(a)
    return triangular(r, transposed(q).matmul(b), True)
  q, r = linalg_qr(transposed(a))
  return q.matmul(triangular(transposed(r), b, False))

def _by_singular_values(a: Tensor, b: Tensor, least: float) -> tuple[Tensor, Tensor, Tensor]:
  u, s, v = a.svd(full_matrices=False)
  kept = s.gt(s.detach().max(-1, keepdim=True).mul(least))
  inverse = kept.where(kept.where(s, 1).reciprocal(), 0)
  x = transposed(v).matmul(transposed(u).matmul(b).mul(inverse.unsqueeze(-1)))
  rank = kept.long().sum(-1)
  if bool(rank.eq(sizes(s)[-1]).all().item()): x = _full_rank(a, b)
  return x, rank, s

