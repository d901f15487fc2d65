"""Factorizations: LU with partial pivoting, Cholesky, Householder QR; triangular systems. Batched and blocked.

A panel of BLOCK columns is factored column by column; the rest is products of matrices. Sources: Golub and Van Loan,
Matrix Computations, 3.1, 3.4.1, 4.2, 5.2; the rules of gradients: Murray 2016, de Hoog et al. 2011.
"""
from __future__ import annotations
from collections.abc import Sequence
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.functional.operands import checked, common_shape, sizes
from tinyhw.functional.rules import unbroadcast, with_rule
from tinyhw.functional.shapes import cat, part
from tinyhw.linalg.rules import (
  BLOCK, column_at, columns_of, first_bad, identity, index, matrices, row_at, rows_of, transposed)
from tinyhw.methods.decomposition import _triangle
from tinyhw.methods.loops import columns as in_columns
from tinyhw.methods.loops.columns import Pivoted
from tinyhw.methods.loops.kernel import in_order
from tinyhw.named_tuple import NamedTuple
from tinyhw.tensor import Tensor

class LU(NamedTuple):
  """Permutation, unit lower and upper triangle: A = P @ L @ U."""
  P: Tensor
  L: Tensor
  U: Tensor

class Factored(NamedTuple):
  """Both triangles in one matrix, and LAPACK's row exchanges, which count from 1."""
  LU: Tensor
  pivots: Tensor

class FactoredInfo(NamedTuple):
  """The same, with the first column whose pivot is 0 (or 0)."""
  LU: Tensor
  pivots: Tensor
  info: Tensor

class QR(NamedTuple):
  """An orthogonal and an upper triangular matrix."""
  Q: Tensor
  R: Tensor

class CholeskyInfo(NamedTuple):
  """The triangle, and the first column whose pivot is not positive (or 0)."""
  L: Tensor
  info: Tensor

def block(x: Tensor, rows: tuple[int, int], columns: tuple[int, int]) -> Tensor:
  """Return a block of matrices."""
  return x.shrink([None] * (x.ndim - 2) + [rows, columns])

# ***** triangular systems *****

def substitute(a: Tensor, b: Tensor, upper: bool, unit: bool) -> Tensor:
  """Solve a @ x = b for triangular a (..., n, n) and b (..., n, k). Nothing has a gradient rule here."""
  n = sizes(a)[-1]
  if not n or not sizes(b)[-1]: return b
  if in_order(b) and n <= in_columns.WHOLE:
    lead = common_shape(sizes(a)[:-2], sizes(b)[:-2])
    return in_columns.substituted(a, b.expand(*lead, *sizes(b)[-2:]), upper, unit) if 0 not in lead else b
  if upper: return substitute(a.flip((-2, -1)), b.flip(-2), False, unit).flip(-2)
  size = in_columns.WHOLE if in_order(b) else BLOCK
  if n <= size: return _substitute_rows(a, b, unit)
  solved: list[Tensor] = []
  for begin in range(0, n, size):
    end = min(begin + size, n)
    rest = block(b, (begin, end), (0, sizes(b)[-1]))
    if solved: rest = rest.sub(block(a, (begin, end), (0, begin)).matmul(cat(solved, -2)))
    solved.append(substitute(block(a, (begin, end), (begin, end)), rest.contiguous(), False, unit).contiguous())
  return cat(solved, -2)

def _substitute_rows(a: Tensor, b: Tensor, unit: bool) -> Tensor:
  a = a.contiguous()
  x = b.expand(*common_shape(sizes(a)[:-2], sizes(b)[:-2]), *sizes(b)[-2:]).contiguous()
  rows, columns = rows_of(x), columns_of(a)
  for k in range(sizes(a)[-1]):
    at = index(k)
    row = row_at(a, at)
    below = columns.lt(at).where(row, 0)
    value = row_at(x, at).sub(transposed(below).mul(x).sum(-2, keepdim=True))
    if not unit: value = value.div(columns.eq(at).where(row, 0).sum(-1, keepdim=True))
    x = rows.eq(at).where(value, x).contiguous()
  return x

def triangular(a: Tensor, b: Tensor, upper: bool, unit: bool = False) -> Tensor:
  """Solve a @ x = b for triangular a, with gradients."""
  a = (a.triu() if upper else a.tril()) if not unit else a.triu(1) if upper else a.tril(-1)
  solid = a.add(identity(a)) if unit else a
  x = substitute(solid.detach(), b.detach(), upper, unit)
  def rule(x: Tensor, g: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    gb = triangular(transposed(a), g, not upper)
    ga = gb.matmul(transposed(x)).neg()
    ga = ga.triu() if upper else ga.tril()
    return unbroadcast(ga, sizes(a)), unbroadcast(gb, sizes(b))
  return with_rule(x, (solid, b), rule)

def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
  """Solve A @ X = B, or (left=False) X @ A = B, for triangular A."""
  a, b = matrices("solve_triangular", A, True), matrices("solve_triangular", B)
  if sizes(a)[-1] != sizes(b)[-2 if left else -1]:
    raise ShapeError(f"solve_triangular: {A.shape} and {B.shape} do not fit")
  if left: return triangular(a, b, upper, unitriangular)
  return transposed(triangular(transposed(a), transposed(b), not upper, unitriangular))

class Solved(NamedTuple):
  """The solution, and the triangular matrix."""
  solution: Tensor
  cloned_coefficient: Tensor

def triangular_solve(b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False,
                     unitriangular: bool = False) -> Solved:
  """Solve A @ X = b, or A^T @ X = b, for triangular A."""
  a = matrices("triangular_solve", A, True)
  if sizes(a)[-1] != sizes(matrices("triangular_solve", b))[-2]:
    raise ShapeError(f"triangular_solve: {A.shape}, {b.shape}")
  system, side = (transposed(a.triu() if upper else a.tril()), not upper) if transpose else (a, upper)
  return Solved(triangular(system, b, side, unitriangular), a.clone())

# ***** LU *****

def pivoted(a: Tensor) -> Pivoted:
  """Return both triangles of a[order] = L @ U in one matrix, the order (..., m) of rows, U's diagonal, and signs whose
  product is the order's. No gradient."""
  m, n = sizes(a)[-2:]
  lead = sizes(a)[:-2]
  fast = in_order(a) and a.numel()
  if fast and min(m, n) <= in_columns.WHOLE: return in_columns.lu(a)
  order = Tensor.arange(m, dtype=dtypes.int32).expand(*lead, m).contiguous()
  x, width = a.contiguous(), in_columns.MOST_COLUMNS if fast else BLOCK
  for begin in range(0, min(m, n), width):
    end = min(begin + width, m, n)
    columns = block(x, (begin, m), (begin, end)).contiguous()
    front, moved = in_columns.lu(columns)[:2] if fast else _pivoted_columns(columns, end - begin)
    def swapped(t: Tensor, moved: Tensor = moved) -> Tensor:
      return t.gather(-2, moved.unsqueeze(-1).expand(*sizes(moved), sizes(t)[-1]))
    order = cat([part(order, order.ndim - 1, 0, begin), part(order, order.ndim - 1, begin, m).gather(-1, moved)], -1)
    left, right = swapped(block(x, (begin, m), (0, begin))), swapped(block(x, (begin, m), (end, n)))
    size = end - begin
    if end < n:
      top = substitute(block(front, (0, size), (0, size)), block(right, (0, size), (0, n - end)), False, True)
      low = block(right, (size, m - begin), (0, n - end)).sub(block(front, (size, m - begin), (0, size)).matmul(top))
      right = cat([top, low], -2)
    lower = cat([left, front, right], -1) if begin or end < n else front
    x = (cat([block(x, (0, begin), (0, n)), lower], -2) if begin else lower).contiguous()
  return Pivoted(x, order, x.diagonal(0, -2, -1), _sign(order).unsqueeze(-1).cast(a.dtype))

def _sign(order: Tensor) -> Tensor:
  """Return the sign of each permutation: -1 to the number of pairs in reversed order. (...)"""
  place = Tensor.arange(sizes(order)[-1], dtype=dtypes.int32)
  later = place.unsqueeze(1).lt(place.unsqueeze(0))
  swapped = (order.unsqueeze(-1).gt(order.unsqueeze(-2)) & later).int().sum((-2, -1))
  return swapped.mod(2).mul(-2).add(1)

def _pivoted_columns(x: Tensor, steps: int) -> tuple[Tensor, Tensor]:
  """Factor a panel (..., m, k), column by column."""
  rows, columns = rows_of(x), columns_of(x)
  order = rows.expand(*sizes(x)[:-1], 1).contiguous()
  for k in range(steps):
    at = index(k)
    size = column_at(x, at).abs()
    place = rows.lt(at).where(-1, size.isnan().where(0, size)).argmax(-2, keepdim=True).contiguous()
    source = rows.eq(at).where(place, rows.eq(place).where(at, rows)).contiguous()
    x = x.gather(-2, source.expand(sizes(x))).contiguous()
    order = order.gather(-2, source).contiguous()
    top = row_at(x, at)
    pivot = columns.eq(at).where(top, 0).sum(-1, keepdim=True)
    zero = pivot.eq(0)
    factor = rows.gt(at).where(zero.where(0, column_at(x, at).div(zero.where(1, pivot))), 0).contiguous()
    x = columns.gt(at).where(x.sub(factor.mul(top)), (columns.eq(at) & rows.gt(at)).where(factor, x)).contiguous()
  return x, order.squeeze(-1)

def differentiable_lu(a: Tensor) -> tuple[Tensor, Tensor]:
  """Return pivoted(a), with the gradient of square, wide and tall matrices."""
  found, order = pivoted(a.detach())[:2]
  rows = order.uop     # a Tensor that the rule keeps would be one that a TinyJit cannot replay
  def rule(x: Tensor, g: Tensor, _: Tensor) -> tuple[Tensor]: return (_lu_gradient(x, g, Tensor._new(rows)),)
  return with_rule(found, (a,), rule), order

def _lu_gradient(x: Tensor, g: Tensor, order: Tensor) -> Tensor:
  """Return the gradient of P L U in both triangles, by that of the leading square block. Source: de Hoog et al."""
  m, n = sizes(x)[-2:]
  k = min(m, n)
  low, up = block(x, (0, m), (0, k)).tril(-1).add(Tensor.eye(m, k, dtype=x.dtype)), block(x, (0, k), (0, n)).triu()
  gl, gu = block(g, (0, m), (0, k)).tril(-1), block(g, (0, k), (0, n)).triu()
  low1, up1 = block(low, (0, k), (0, k)), block(up, (0, k), (0, k))
  inner = transposed(low).matmul(gl).tril(-1).add(gu.matmul(transposed(up)).triu())
  def right(y: Tensor) -> Tensor: return transposed(triangular(up1, transposed(y), True))        # y @ up1^-T
  if m == n: core = right(triangular(transposed(low1), inner, True, True))
  elif m < n:
    rest = block(gu, (0, k), (k, n))
    first = transposed(low).matmul(gl).tril(-1).add(block(gu, (0, k), (0, k)).matmul(transposed(up1)).triu())
    first = first.sub(rest.matmul(transposed(block(up, (0, k), (k, n)))).tril(-1))
    core = triangular(transposed(low1), cat([right(first), rest], -1), True, True)
  else:
    rest = block(gl, (k, m), (0, k))
    first = transposed(low1).matmul(block(gl, (0, k), (0, k))).tril(-1).add(gu.matmul(transposed(up)).triu())
    first = first.sub(transposed(block(low, (k, m), (0, k))).matmul(rest).triu())
    core = right(cat([triangular(transposed(low1), first, True, True), rest], -2))
  back = order.argsort(-1)
  return core.gather(-2, back.unsqueeze(-1).expand(sizes(core)))

def lu(A: Tensor, *, pivot: bool = True) -> LU:
  """Return (P, L, U) with A = P @ L @ U."""
  _pivots_only("lu", pivot)
  found, order = differentiable_lu(matrices("lu", A))
  return LU(_permutation(order, found), *_triangles(found))

def _pivots_only(what: str, pivot: bool) -> None:
  if not pivot: raise ArgumentError(f"{what}: pivot=False is not supported, as on PyTorch's CPU; rows are exchanged")

def _permutation(order: Tensor, x: Tensor) -> Tensor:
  m = sizes(x)[-2]
  return order.unsqueeze(-2).eq(Tensor.arange(m, dtype=dtypes.int32).unsqueeze(1)).cast(x.dtype)

def _triangles(x: Tensor) -> tuple[Tensor, Tensor]:
  m, n = sizes(x)[-2:]
  k = min(m, n)
  return block(x, (0, m), (0, k)).tril(-1).add(Tensor.eye(m, k, dtype=x.dtype)), block(x, (0, k), (0, n)).triu()

def _exchanges(order: Tensor, steps: int) -> Tensor:
  """Return LAPACK's exchanges from the order of rows: row k went to place order[k] of those that were left."""
  *lead, m = sizes(order)
  if not steps or not order.numel(): return Tensor.empty(*lead, steps, dtype=dtypes.int32)
  found = []
  for row in order.reshape(-1, m).tolist():
    now, swaps = list(range(m)), []
    for k in range(steps):
      at = now.index(row[k])
      swaps.append(at + 1)
      now[k], now[at] = now[at], now[k]
    found.append(swaps)
  return Tensor(found, dtype=dtypes.int32).reshape(*lead, steps)

def order_of(pivots: Tensor, m: int) -> Tensor:
  """Return the order of rows that exchanges give."""
  *lead, steps = sizes(pivots)
  found = []
  for swaps in pivots.reshape(-1, steps).tolist() if pivots.numel() else [[]] * max(1, 0 if 0 in lead else 1):
    now = list(range(m))
    for k, at in enumerate(swaps):
      if not 1 <= at <= m: raise ArgumentError(f"a pivot is {at}; it is a row from 1 to {m}")
      now[k], now[at - 1] = now[at - 1], now[k]
    found.append(now)
  if 0 in lead or m == 0: return Tensor.empty(*lead, m, dtype=dtypes.int32)
  return Tensor(found, dtype=dtypes.int32).reshape(*lead, m)

def zero_pivot(pivots: Tensor) -> Tensor:
  """Return the first column (from 1 on) whose pivot is 0, or 0. (...)"""
  n = sizes(pivots)[-1]
  if not n: return Tensor.zeros(*sizes(pivots)[:-1], dtype=dtypes.int32)
  first = pivots.eq(0).where(Tensor.arange(n, dtype=dtypes.int32).add(1), n + 1).min(-1)
  return first.gt(n).where(0, first)

def lu_factor(A: Tensor, *, pivot: bool = True) -> Factored:
  """Return both triangles in one matrix, and the row exchanges."""
  return Factored(*lu_factor_ex(A, pivot=pivot)[:2])

def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> FactoredInfo:
  """Return lu_factor, and the first column whose pivot is 0."""
  _pivots_only("lu_factor", pivot)
  found, order = differentiable_lu(matrices("lu_factor", A))
  info = zero_pivot(found.detach().diagonal(0, -2, -1))
  if check_errors: first_bad("lu_factor", info, "is singular")
  return FactoredInfo(found, _exchanges(order, min(sizes(found)[-2:])), info)

def torch_lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
  """Return lu_factor; with get_infos, also its info: the method lu."""
  found = lu_factor_ex(A, pivot=pivot)
  return found if get_infos else Factored(found.LU, found.pivots)

def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> LU:
  """Return (P, L, U) from lu_factor's result."""
  x = matrices("lu_unpack", LU_data)
  if checked("lu_unpack", LU_pivots).dtype is not dtypes.int32:
    raise ArgumentError(f"pivots are int32, not {LU_pivots.dtype}")
  if sizes(LU_pivots) != (*sizes(x)[:-2], min(sizes(x)[-2:])):
    raise ShapeError(f"pivots of {LU_pivots.shape} for {x.shape}")
  empty = Tensor.empty(0, dtype=x.dtype)
  p = _permutation(order_of(LU_pivots, sizes(x)[-2]), x) if unpack_pivots else empty
  return LU(p, *(_triangles(x) if unpack_data else (empty, empty)))

def linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
  """Solve A @ X = B (or with A^T, or from the right) from lu_factor's result."""
  x, b = matrices("lu_solve", LU, True), matrices("lu_solve", B)
  if sizes(b)[-2 if left else -1] != sizes(x)[-1]: raise ShapeError(f"lu_solve: {LU.shape} and {B.shape} do not fit")
  if not left: return transposed(linalg_lu_solve(LU, pivots, transposed(b), adjoint=not adjoint))
  order = order_of(pivots, sizes(x)[-1])
  lead = common_shape(sizes(x)[:-2], sizes(b)[:-2])
  b = b.expand(*lead, *sizes(b)[-2:])
  def moved(y: Tensor, o: Tensor) -> Tensor: return y.gather(-2, o.unsqueeze(-1).expand(sizes(y)))
  order = order.expand(*lead, sizes(x)[-1])
  if not adjoint: return triangular(x, triangular(x, moved(b, order), False, True), True)
  flipped = transposed(x)
  return moved(triangular(flipped, triangular(flipped, b, False), True, True), order.argsort(-1))

def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
  """Solve A @ X = b from lu_factor's result."""
  return linalg_lu_solve(LU_data, LU_pivots, b)

# ***** Cholesky *****

def _cholesky(a: Tensor) -> Tensor:
  """Return the lower triangle of a = L @ L^T; NaN from the first pivot on that is not positive. No gradient."""
  n = sizes(a)[-1]
  done: list[Tensor] = []
  rest, width = a.contiguous(), in_columns.MOST_COLUMNS if in_order(a) else BLOCK
  for begin in range(0, n, width):
    size, left = min(width, n - begin), n - begin
    column = _cholesky_panel(rest, size)
    if left > size:
      low = block(column, (size, left), (0, size))
      rest = block(rest, (size, left), (size, left)).sub(low.matmul(transposed(low))).contiguous()
    done.append(column.pad([None] * (a.ndim - 2) + [(begin, 0), (0, 0)]))
  return cat(done, -1).tril() if done else a

def _cholesky_panel(a: Tensor, size: int) -> Tensor:
  """Return the first columns of the triangle."""
  n = sizes(a)[-1]
  first = block(a, (0, n), (0, size))
  if in_order(a) and a.numel(): return in_columns.cholesky(first)
  top = _cholesky_columns(block(first, (0, size), (0, size)).contiguous())
  if n == size: return top
  low = transposed(substitute(top, transposed(block(first, (size, n), (0, size))), False, False)).contiguous()
  return cat([top, low], -2)

def _cholesky_columns(x: Tensor) -> Tensor:
  rows, columns = rows_of(x), columns_of(x)
  for k in range(sizes(x)[-1]):
    at = index(k)
    column = column_at(x, at)
    pivot = rows.eq(at).where(column, 0).sum(-2, keepdim=True)
    scaled = rows.ge(at).where(column.div(pivot.sqrt()), 0).contiguous()
    x = columns.eq(at).where(scaled, (columns.gt(at) & rows.gt(at)).where(x.sub(scaled.mul(transposed(scaled))),
                                                                          x)).contiguous()
  return x.tril()

def _cholesky_rule(low: Tensor, g: Tensor, _: Tensor) -> tuple[Tensor]:
  """Source: Murray 2016, section 4.3."""
  inner = transposed(low).matmul(g.tril()).tril()
  inner = inner.sub(inner.mul(identity(low)).mul(0.5))
  left = triangular(transposed(low), inner, True)
  both = transposed(triangular(transposed(low), transposed(left), True))
  return (both.add(transposed(both)).mul(0.5),)

def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> CholeskyInfo:
  """Return the triangle of A = L @ L^T (upper: U^T @ U), and the first column whose pivot is not positive, or 0."""
  a = matrices("cholesky", A, True)
  if upper: a = transposed(a)
  low = with_rule(_cholesky(a.detach()), (a,), _cholesky_rule)
  n = sizes(a)[-1]
  if n:
    diagonal = low.detach().diagonal(0, -2, -1)
    bad = diagonal.isfinite().logical_not() | diagonal.eq(0)
    first = bad.where(Tensor.arange(n, dtype=dtypes.int32).add(1), n + 1).min(-1)
    info = first.gt(n).where(0, first)
  else: info = Tensor.zeros(*sizes(a)[:-2], dtype=dtypes.int32)
  if check_errors: first_bad("cholesky", info, "is not positive definite")
  return CholeskyInfo(transposed(low) if upper else low, info)

def linalg_cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
  """Return the triangle of A = L @ L^T. Raises ArgumentError unless A is positive definite."""
  return cholesky_ex(A, upper=upper, check_errors=True).L

def cholesky(input: Tensor, upper: bool = False) -> Tensor:
  """Return the triangle of A = L @ L^T. Raises ArgumentError unless A is positive definite."""
  return linalg_cholesky(input, upper=upper)

def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
  """Solve A @ X = B from the triangle of A. The gradient of L is PyTorch's: as if all of L were read."""
  low = matrices("cholesky_solve", L, True)
  right = matrices("cholesky_solve", B)
  if sizes(right)[-2] != sizes(low)[-1]: raise ShapeError(f"cholesky_solve: {B.shape}, {L.shape}")
  def solved(b: Tensor, c: Tensor) -> Tensor:
    c = transposed(c) if upper else c
    return triangular(transposed(c), triangular(c, b, False), True)
  def rule(x: Tensor, g: Tensor, b: Tensor, c: Tensor) -> Sequence[Tensor]:
    first = cholesky_solve(g, c, upper)
    product = first.matmul(transposed(x))
    product = product.add(transposed(product))
    second = (c.matmul(product) if upper else product.matmul(c)).neg()
    return unbroadcast(first, sizes(b)), unbroadcast(second, sizes(c))
  return with_rule(solved(right.detach(), low.detach()), (right, low), rule)

def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
  """Return the inverse of A from its triangle."""
  low = matrices("cholesky_inverse", L, True)
  return cholesky_solve(identity(low).expand(sizes(low)), low, upper)

# ***** QR *****

def linalg_qr(A: Tensor, mode: str = "reduced") -> QR:
  """Return (Q, R) with A = Q @ R: reduced, complete, or R alone."""
  if mode not in ("reduced", "complete", "r"):
    raise ArgumentError(f"mode is 'reduced', 'complete' or 'r', not {mode!r}")
  a = matrices("qr", A)
  m, n = sizes(a)[-2:]
  k = min(m, n)
  if mode == "complete": return QR(*a.qr())
  q, r = a._factored(k)
  return QR(Tensor.empty(0, dtype=a.dtype) if mode == "r" else q, block(r, (0, k), (0, n)))

class Reflectors(NamedTuple):
  """R and the vectors of reflections below it, and their factors."""
  a: Tensor
  tau: Tensor

def geqrf(input: Tensor) -> Reflectors:
  """Return LAPACK's form of a QR factorization: H_k = I - tau_k v_k v_k^T, v_k has 1 at k and zeros before."""
  a = matrices("geqrf", input)
  m, n = sizes(a)[-2:]
  k = min(m, n)
  if not k or not a.numel(): return Reflectors(a.clone(), Tensor.zeros(*sizes(a)[:-2], k, dtype=a.dtype))
  reflections, r = _triangle(a, min(m - 1, n))
  rows, columns, taus = rows_of(a), columns_of(a), []
  found = columns.ge(rows).where(r, 0)
  for i, reflection in enumerate(reflections):
    corner = block(reflection.vector, (i, i + 1), (0, 1))
    zero = corner.eq(0)
    v = zero.where(0, reflection.vector.div(zero.where(1, corner)))
    taus.append(reflection.factor.mul(corner.square()).squeeze(-1))
    found = (columns.eq(i) & rows.gt(i)).where(v, found).contiguous()
  taus += [Tensor.zeros(*sizes(a)[:-2], 1, dtype=a.dtype)] * (k - len(reflections))
  return Reflectors(found, cat(taus, -1))

def _reflected(a: Tensor, tau: Tensor, x: Tensor, forwards: bool) -> Tensor:
  """Apply the reflections of geqrf's result to x from the left, the first one first (forwards) or last."""
  rows = rows_of(a)
  count = sizes(tau)[-1]
  for i in range(count) if forwards else reversed(range(count)):
    column = block(a, (0, sizes(a)[-2]), (i, i + 1))
    v = rows.gt(i).where(column, rows.eq(i).cast(a.dtype))
    factor = part(tau, tau.ndim - 1, i, i + 1).unsqueeze(-1)
    x = x.sub(v.mul(factor).mul(v.mul(x).sum(-2, keepdim=True))).contiguous()
  return x

def householder_product(A: Tensor, tau: Tensor) -> Tensor:
  """Return the first columns of the product of reflections (..., m, n)."""
  a = matrices("householder_product", A)
  m, n = sizes(a)[-2:]
  if m < n: raise ShapeError(f"householder_product wants at least as many rows as columns, not {A.shape}")
  if sizes(tau)[-1] > n: raise ShapeError(f"householder_product: {sizes(tau)[-1]} factors for {n} columns")
  if sizes(tau)[:-1] != sizes(a)[:-2]:
    raise ShapeError(f"householder_product: batches {A.shape} and {tau.shape} differ")
  return _reflected(a, tau, Tensor.eye(m, n, dtype=a.dtype).expand(*sizes(a)[:-2], m, n), False)

def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
  """Return Q @ other (or Q^T, or from the right) for the product Q of reflections."""
  a, c = matrices("ormqr", input), matrices("ormqr", other)
  if sizes(c)[-2 if left else -1] != sizes(a)[-2]:
    raise ShapeError(f"ormqr: {input.shape} and {other.shape} do not fit")
  if sizes(tau)[-1] > sizes(a)[-1]: raise ShapeError(f"ormqr: {sizes(tau)[-1]} factors for {input.shape}")
  if left: return _reflected(a, tau, c, transpose)
  return transposed(_reflected(a, tau, transposed(c), not transpose))

