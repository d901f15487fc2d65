"""Reductions and normalizations of the elements that a mask chooses: PyTorch's torch.masked.

mask: bools that broadcast with the input; None chooses all. A reduction of no element is its identity, or NaN.
"""
from __future__ import annotations
import math
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, DTypeError
from tinyhw.functional import reductions
from tinyhw.functional.operands import axes_of, axis_of, checked, common_shape, dtype_or, sizes
from tinyhw.functional.statistics import nanmedian
from tinyhw.tensor import Tensor

def _chosen(input: Tensor, mask: Tensor | None, fill: Any) -> Tensor:
  if mask is None: return input
  return _mask(input, mask).where(input, fill)

def _mask(input: Tensor, mask: Tensor | None) -> Tensor:
  if mask is None: return checked("masked", input).const_like(True, dtypes.bool)
  if checked("a mask", mask).dtype is not dtypes.bool: raise DTypeError(f"a mask holds bools, not {mask.dtype}")
  if common_shape(sizes(input), sizes(mask)) != sizes(input):
    raise ArgumentError(f"a mask of {mask.shape} does not expand to {input.shape}")
  return mask.expand(sizes(input))

def _count(input: Tensor, dim: Any, keepdim: bool, mask: Tensor | None) -> Tensor:
  return reductions.sum(_mask(input, mask), dim, keepdim)

def sum(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
        mask: Tensor | None = None) -> Tensor:
  """Return the sum of chosen elements."""
  return reductions.sum(_chosen(input, mask, 0), dim, keepdim, dtype)

def prod(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
         mask: Tensor | None = None) -> Tensor:
  """Return the product of chosen elements."""
  return reductions.prod(_chosen(input, mask, 1), dim, keepdim, dtype)

def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
  """Return running sums of chosen elements."""
  return reductions.cumsum(_chosen(input, mask, 0), dim, dtype=dtype)

def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
  """Return running products of chosen elements."""
  return reductions.cumprod(_chosen(input, mask, 1), dim, dtype=dtype)

def amax(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
         mask: Tensor | None = None) -> Tensor:
  """Return the largest chosen elements."""
  return reductions.amax(_chosen(_typed(input, dtype), mask, _typed(input, dtype).dtype.min), dim, keepdim)

def amin(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
         mask: Tensor | None = None) -> Tensor:
  """Return the smallest chosen elements."""
  return reductions.amin(_chosen(_typed(input, dtype), mask, _typed(input, dtype).dtype.max), dim, keepdim)

def _typed(x: Tensor, dtype: Any) -> Tensor: return x.cast(dtype_or(dtype, x.dtype))

def argmax(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
           mask: Tensor | None = None) -> Tensor:
  """Return the index of the largest chosen element."""
  x = _typed(input, dtype)
  return reductions.argmax(_chosen(x, mask, x.dtype.min), dim, keepdim).cast(x.dtype)

def argmin(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
           mask: Tensor | None = None) -> Tensor:
  """Return the index of the smallest chosen element."""
  x = _typed(input, dtype)
  return reductions.argmin(_chosen(x, mask, x.dtype.max), dim, keepdim).cast(x.dtype)

def mean(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
         mask: Tensor | None = None) -> Tensor:
  """Return the mean of chosen elements."""
  x = _typed(input, dtype)
  return sum(x, dim, keepdim=keepdim, mask=mask).div(_count(x, dim, keepdim, mask))

def median(input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None,
           mask: Tensor | None = None) -> Tensor:
  """Return the lower median of chosen elements along an axis."""
  x = _typed(input, dtype)
  if not dtypes.is_float(x.dtype): raise DTypeError(f"masked.median wants floats, not {x.dtype}")
  if mask is None: return reductions.ValuesIndices(*nanmedian(x, dim, keepdim)).values
  found: Tensor = nanmedian(_chosen(x, mask, math.nan), dim, keepdim).values
  return found

def norm(input: Tensor, ord: Any = 2.0, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
         mask: Tensor | None = None) -> Tensor:
  """Return the p-norm of chosen elements."""
  x = _chosen(_typed(input, dtype), mask, math.inf if ord == -math.inf else 0)
  if ord not in (None, 2) and not x.holds_complex: x = x.isnan().where(math.nan, x)     # as PyTorch: no gradient
  x = x.abs()
  p = 2.0 if ord is None else float(ord)
  if math.isinf(p):
    none = x.isnan()
    found = (reductions.amax if p > 0 else reductions.amin)(none.where(0 if p > 0 else math.inf, x), dim, keepdim)
    return none.any(axes_of(x, dim) or None, keepdim).where(math.nan, found) if x.ndim else none.where(math.nan, found)
  if p == 0: return reductions.sum(x.ne(0).cast(x.dtype), dim, keepdim)
  if p < 0 and mask is not None: x = _mask(x, mask).where(x, math.inf)
  if p == 1: return reductions.sum(x, dim, keepdim)
  if p == 2: return reductions.sum(x.square(), dim, keepdim).sqrt()
  return reductions.sum(x.pow(p), dim, keepdim).pow(1 / p)

def _variance(input: Tensor, dim: Any, unbiased: Any, keepdim: bool, dtype: Any, mask: Tensor | None,
              correction: Any) -> Tensor:
  if correction is None: correction = 1 if unbiased is None else int(bool(unbiased))
  x = _typed(input, dtype)
  x = x if dtypes.is_float(x.dtype) else x.float()
  centred = x.sub(mean(x, dim, keepdim=True, mask=mask)) if axes_of(x, dim) else x.mul(0)
  divisor = _count(x, dim, keepdim, mask).cast(x.dtype).sub(correction).maximum(0)
  return sum(centred.square(), dim, keepdim=keepdim, mask=mask).div(divisor)

def var(input: Tensor, dim: Any = None, unbiased: Any = None, *, correction: Any = None, keepdim: bool = False,
        dtype: Any = None, mask: Tensor | None = None) -> Tensor:
  """Return the variance of chosen elements."""
  return _variance(input, dim, unbiased, keepdim, dtype, mask, correction)

def std(input: Tensor, dim: Any = None, unbiased: Any = None, *, correction: Any = None, keepdim: bool = False,
        dtype: Any = None, mask: Tensor | None = None) -> Tensor:
  """Return the standard deviation of chosen elements."""
  return _variance(input, dim, unbiased, keepdim, dtype, mask, correction).sqrt()

def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
  """Return softmax of chosen elements."""
  return reductions.softmax(_chosen(_typed(input, dtype), mask, -math.inf), dim)

def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
  """Return log_softmax of chosen elements."""
  return reductions.log_softmax(_chosen(_typed(input, dtype), mask, -math.inf), dim)

def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
  """Return softmin of chosen elements."""
  return reductions.softmin(_chosen(_typed(input, dtype), mask, math.inf), dim)

def normalize(input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None,
              mask: Tensor | None = None) -> Tensor:
  """Divide chosen elements by their p-norm, which counts as eps at least."""
  x = _typed(input, dtype)
  axis = axis_of(x, dim)
  found = norm(x, ord, axis, keepdim=True, mask=mask).maximum(eps)
  return _chosen(x, mask, 0).div(found)

def logsumexp(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
              mask: Tensor | None = None) -> Tensor:
  """Return log(sum(exp)) of chosen elements."""
  x = _typed(input, dtype)
  found = reductions.logsumexp(_chosen(x, mask, -math.inf), dim, keepdim)
  return found if x.holds_complex else found.cast(x.dtype)          # PyTorch's type: that of the input

def logaddexp(input: Tensor, other: Tensor, *, dtype: Any = None, input_mask: Tensor | None = None,
              other_mask: Tensor | None = None) -> Tensor:
  """Return log(exp(input) + exp(other)) of chosen elements."""
  return _chosen(_typed(input, dtype), input_mask, -math.inf).logaddexp(
    _chosen(_typed(other, dtype), other_mask, -math.inf))
