"""Norms of vectors and matrices, and the exponential of matrices.

Source of the meanings: PyTorch's documentation. The gradient of a norm at 0 is 0.
"""
from __future__ import annotations
import math
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.functional.operands import axes_of, axis_of, checked, dtype_or, sizes
from tinyhw.functional.shapes import movedim
from tinyhw.linalg.rules import identity, matrices
from tinyhw.linalg.spectra import svdvals
from tinyhw.methods.checks import is_number
from tinyhw.tensor import Tensor

def vector_norm(x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
  """Return (sum |x|**ord)**(1 / ord) over axes; ord may be infinite, and 0 counts."""
  if not is_number(ord): raise ArgumentError(f"ord is a number, not {ord!r}")
  p = float(ord)
  if checked("norm", x).holds_complex: x = x.abs()
  if not dtypes.is_float(x.dtype): raise DTypeError(f"a norm wants floats, not {x.dtype}")
  if dtype is not None and not dtypes.is_float(dtype_or(dtype, x.dtype)):
    raise DTypeError(f"dtype is {dtype}, no float")
  x = x.cast(dtype_or(dtype, x.dtype))
  axes = axes_of(x, dim)
  if (p < 0 or p == math.inf) and any(sizes(x)[a] == 0 for a in axes):
    raise ShapeError(f"the norm of order {p} of no elements: the shape is {x.shape}")
  return _norm(x, p, axes, keepdim)

def _norm(x: Tensor, p: float, axes: tuple[int, ...], keepdim: bool) -> Tensor:
  size = x.isnan().where(math.nan, x).abs()             # the gradient at NaN is 0, as PyTorch's
  if not axes: return size if p else x.ne(0).cast(x.dtype)
  if p == math.inf: return size.max(axes, keepdim)
  if p == -math.inf: return size.min(axes, keepdim)
  if p == 0: return x.ne(0).cast(x.dtype).sum(axes, keepdim)
  if p == 1: return size.sum(axes, keepdim)
  total = x.square().sum(axes, keepdim) if p == 2 else _powers(size, p).sum(axes, keepdim)
  zero = total.eq(0)
  safe = zero.where(1, total)
  return zero.where(0 if p > 0 else math.inf, safe.sqrt() if p == 2 else safe.pow(1 / p))

def matrix_norm(A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *,
                dtype: Any = None) -> Tensor:
  """Return a norm of matrices: "fro", "nuc", inf, -inf, 1, -1, 2, -2."""
  if checked("matrix_norm", A).ndim < 2: raise ShapeError(f"matrix_norm wants matrices, not {A.shape}")
  if not isinstance(dim, (tuple, list)) or len(dim) != 2: raise ArgumentError(f"dim names two axes, not {dim!r}")
  row, column = (axis_of(A, d) for d in dim)
  if row == column: raise ArgumentError(f"dim names two different axes, not {dim!r}")
  if ord not in ("fro", "nuc", math.inf, -math.inf, 1, -1, 2, -2):
    raise ArgumentError(f"ord is 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2, not {ord!r}")
  if A.holds_complex and ord not in ("nuc", 2, -2): A = A.abs()   # the others are norms of magnitudes
  if not dtypes.is_float(A.dtype): raise DTypeError(f"a norm wants floats, not {A.dtype}")
  x = A.cast(dtype_or(dtype, A.dtype))
  if ord == "fro": return _norm(x, 2.0, (row, column), keepdim)
  if ord in ("nuc", 2, -2):
    if not sizes(x)[row] or not sizes(x)[column]:
      if ord == -2: raise ShapeError(f"the norm of order {ord} of no elements: the shape is {x.shape}")
      return x.sum((row, column), keepdim)
    s = svdvals(movedim(x, (row, column), (-2, -1)))
    found = s.sum(-1) if ord == "nuc" else s.max(-1) if ord == 2 else s.min(-1)
    return found.reshape([1 if i in (row, column) else d for i, d in enumerate(sizes(x))]) if keepdim else found
  summed, kept = (row, column) if abs(ord) == 1 else (column, row)
  sums = x.abs().sum(summed, keepdim=True)
  if not sizes(x)[kept]:
    if ord < 0: raise ShapeError(f"the norm of order {ord} of no elements: the shape is {x.shape}")
    return x.sum((row, column), keepdim)
  found = sums.max(kept, keepdim=True) if ord > 0 else sums.min(kept, keepdim=True)
  return found if keepdim else found.reshape([d for i, d in enumerate(sizes(x)) if i not in (row, column)])

def _powers(size: Tensor, p: float) -> Tensor:
  """Return size**p, whose gradient at 0 is 0."""
  none = size.eq(0)
  return none.where(0 if p > 0 else math.inf, none.where(1, size).pow(p))

def linalg_norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
  """Return a norm of vectors (one axis) or matrices (two axes); without ord, the 2-norm of all elements."""
  x = checked("norm", A)
  if ord is None: return vector_norm(x, 2, dim, keepdim, dtype=dtype)
  count = (x.ndim if dim is None else len(dim) if isinstance(dim, (tuple, list)) else 1)
  if dim is None and count not in (1, 2):
    raise ShapeError(f"norm with ord wants one or two axes, not {x.shape}; give dim=")
  if count == 1: return vector_norm(x, ord, dim, keepdim, dtype=dtype)
  return matrix_norm(x, ord, (0, 1) if dim is None else dim, keepdim, dtype=dtype)

def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
  """Return the p-norm over axes: "fro" is 2, "nuc" sums singular values of matrices."""
  x = checked("norm", input)
  if p == "nuc": return matrix_norm(x, "nuc", (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
  if isinstance(p, str) and p != "fro": raise ArgumentError(f"p is 'fro', 'nuc' or a number, not {p!r}")
  return vector_norm(x, 2 if p in ("fro", None) else p, dim, keepdim, dtype=dtype)

# ***** exponential *****

_TERMS = 18                                               # of Taylor's series
_LARGEST = {dtypes.float32: 3.0, dtypes.float64: 1.09}    # the norm up to which they suffice. Bader et al. 2019

def matrix_exp(A: Tensor) -> Tensor:
  """Return the exponential of square matrices, by scaling and squaring. The norms are read."""
  a = matrices("matrix_exp", A, True)
  if not a.numel(): return a.clone()
  size = a.detach().abs().sum(-2).max(-1)
  top = float(size.max().item())
  if not math.isfinite(top): raise ArgumentError("matrix_exp wants finite elements")
  squarings = max(0, math.ceil(math.log2(top / _LARGEST[a.dtype]))) if top > 0 else 0
  x = a.mul(0.5 ** squarings)
  eye = identity(a)
  found = eye.add(x.mul(1 / _TERMS))
  for k in range(_TERMS - 1, 0, -1): found = eye.add(x.mul(1 / k).matmul(found))
  for _ in range(squarings): found = found.matmul(found)
  return found

