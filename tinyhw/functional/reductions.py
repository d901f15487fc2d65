"""Reductions with PyTorch's results: values with their indices, sums without NaN, variances with a correction.

Indices are int64. An axis is not reduced twice, and a tensor without axes has axis 0.
"""
from __future__ import annotations
import math
from typing import Any

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.functional.arithmetic import maximum, minimum
from tinyhw.functional.operands import axes_of, axis_of, checked, dtype_or, rank, sizes, want_float, want_inexact
from tinyhw.functional.shapes import part
from tinyhw.methods.base import Handle
from tinyhw.methods.checks import is_number, whole
from tinyhw.named_tuple import NamedTuple
from tinyhw.tensor import Tensor

class ValuesIndices(NamedTuple):
  """Values along an axis, and their indices there."""
  values: Tensor
  indices: Tensor

class MinMax(NamedTuple):
  """The smallest and the largest elements."""
  min: Tensor
  max: Tensor

def _sum_type(x: Tensor, dtype: Any) -> DType:
  return dtype_or(dtype, x.dtype if rank(x.dtype) > 1 else dtypes.int64)

def _over(name: str, x: Tensor, dim: Any, keepdim: bool, **keywords: Any) -> Tensor:
  axes = axes_of(checked(name, x), dim)
  return getattr(x, name)(axes or None, keepdim, **keywords) if axes or not x.ndim else x

def sum(input: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
  """Return the sum over axes. Sums of integers are int64."""
  kind = _sum_type(checked("sum", input), dtype)
  return _over("sum", input.cast(kind), dim, keepdim).cast(kind)     # of bools, too

def prod(input: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
  """Return the product over an axis, or of all elements."""
  kind = _sum_type(checked("prod", input), dtype)
  return _over("prod", input.cast(kind), dim, keepdim).cast(kind)

def mean(input: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
  """Return the mean over axes. Raises DTypeError for integers without a dtype."""
  if dtype is not None: input = checked("mean", input).cast(dtype_or(dtype, input.dtype))
  want_inexact("mean", checked("mean", input))
  return _over("mean", input, dim, keepdim)

def nansum(input: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
  """Return the sum of elements that are not NaN."""
  x = checked("nansum", input)
  return sum(x.isnan().where(0, x) if dtypes.is_float(x.dtype) else x, dim, keepdim, dtype)

def nanmean(input: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
  """Return the mean of elements that are not NaN."""
  want_float("nanmean", checked("nanmean", input))
  x = input.cast(dtype_or(dtype, input.dtype))
  return nansum(x, dim, keepdim).div(sum(x.isnan().logical_not(), dim, keepdim).cast(x.dtype))

def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
  """Return log(sum(exp(input))) over axes."""
  x = checked("logsumexp", input)
  x = x if dtypes.is_float(x.dtype) else x.float()
  axes = axes_of(x, dim)
  if any(sizes(x)[a] == 0 for a in axes): return _over("sum", x.exp(), dim, keepdim).log()
  return x.logsumexp(axes, keepdim) if axes else x

# ***** spread *****

def _moments(name: str, input: Tensor, dim: Any, unbiased: Any, keepdim: bool, correction: Any) -> Any:
  want_inexact(name, checked(name, input))
  if isinstance(dim, bool): dim, unbiased = None, dim
  if unbiased is not None: correction = int(unbiased)
  if correction is None: correction = 1
  if not is_number(correction): raise ArgumentError(f"correction is a number, not {correction!r}")
  axes = axes_of(input, dim)
  if float(correction) == int(correction):
    return getattr(input, name)(axes or None, keepdim, correction=int(correction))
  count = math.prod(sizes(input)[a] for a in axes)
  rest = count - float(correction)
  scale = count / rest if rest > 0 else math.inf
  first, mean = input.var_mean(axes or None, keepdim, correction=0)
  first = first.mul(scale)
  first = first.sqrt() if name.startswith("std") else first
  return (first, mean) if name.endswith("mean") else first

def var(input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *,
        correction: Any = None) -> Tensor:
  """Return the variance over axes. The divisor is the count minus `correction`."""
  return _moments("var", input, dim, unbiased, keepdim, correction)  # type: ignore[no-any-return]

def std(input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *,
        correction: Any = None) -> Tensor:
  """Return the standard deviation over axes."""
  return _moments("std", input, dim, unbiased, keepdim, correction)  # type: ignore[no-any-return]

def var_mean(input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *,
             correction: Any = None) -> tuple[Tensor, Tensor]:
  """Return variance and mean over axes."""
  return _moments("var_mean", input, dim, unbiased, keepdim, correction)  # type: ignore[no-any-return]

def std_mean(input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *,
             correction: Any = None) -> tuple[Tensor, Tensor]:
  """Return standard deviation and mean over axes."""
  return _moments("std_mean", input, dim, unbiased, keepdim, correction)  # type: ignore[no-any-return]

# ***** extremes *****

def _extreme(name: str, input: Tensor, dim: Any, keepdim: bool) -> Any:
  if isinstance(dim, Handle): return (maximum if name == "max" else minimum)(input, dim._self())
  x = checked(name, input)
  if dim is None: return getattr(x, name)()
  axis = axis_of(x, dim)
  if not x.ndim: return ValuesIndices(x.clone(), x.const_like(0, dtypes.int64))
  places = getattr(x, f"arg{name}")(axis, True)
  values = _picked(x, axis, places)
  return ValuesIndices(values if keepdim else values.squeeze(axis),
                       (places if keepdim else places.squeeze(axis)).long())

def _picked(x: Tensor, axis: int, places: Tensor) -> Tensor:
  return x.gather(axis, places)

def max(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
  """Return the largest element; with dim, (values, indices) along it; with a tensor, the larger of each pair."""
  return _extreme("max", input, dim if other is None else other, keepdim)

def min(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
  """Return the smallest element; with dim, (values, indices) along it; with a tensor, the smaller of each pair."""
  return _extreme("min", input, dim if other is None else other, keepdim)

def amax(input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
  """Return the largest elements over axes."""
  return _over("max", input, dim, keepdim)

def amin(input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
  """Return the smallest elements over axes."""
  return _over("min", input, dim, keepdim)

def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> MinMax:
  """Return the smallest and the largest elements along an axis, or of all."""
  return MinMax(_over("min", input, dim, keepdim), _over("max", input, dim, keepdim))

def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
  """Return the index of the largest element."""
  return _place("argmax", input, dim, keepdim)

def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
  """Return the index of the smallest element."""
  return _place("argmin", input, dim, keepdim)

def _place(name: str, input: Tensor, dim: int | None, keepdim: bool) -> Tensor:
  x = checked(name, input)
  axis = None if dim is None else axis_of(x, dim)
  return getattr(x, name)(axis if x.ndim else None, keepdim).long()  # type: ignore[no-any-return]

# ***** in order *****

def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> ValuesIndices:
  """Return (sorted values, their indices) along an axis. Equal values keep their order."""
  values, places = checked("sort", input).sort(axis_of(input, dim), descending)
  return ValuesIndices(values, places.long())

def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
  """Return the indices that sort an axis."""
  return checked("argsort", input).argsort(axis_of(input, dim), descending).long()

def msort(input: Tensor) -> Tensor:
  """Return the tensor sorted along its first axis."""
  return sort(input, 0).values

def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> ValuesIndices:
  """Return (the k largest or smallest values, their indices) along an axis."""
  values, places = checked("topk", input).topk(k, axis_of(input, dim), largest)
  return ValuesIndices(values, places.long())

def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> ValuesIndices:
  """Return (the k-th smallest value, its index) along an axis."""
  axis, k = axis_of(checked("kthvalue", input), dim), whole("k", k)
  n = sizes(input)[axis] if input.ndim else 1
  if not 1 <= k <= n: raise ArgumentError(f"kthvalue: k is {k}; it is from 1 to {n}")
  return _nth(input, axis, k - 1, keepdim)

def _nth(x: Tensor, axis: int, n: int, keepdim: bool) -> ValuesIndices:
  if not x.ndim: return ValuesIndices(x.clone(), x.const_like(0, dtypes.int64))
  values, places = sort(x, axis)
  found = ValuesIndices(part(values, axis, n, n + 1), part(places, axis, n, n + 1))
  return found if keepdim else ValuesIndices(found.values.squeeze(axis), found.indices.squeeze(axis))

def cumsum(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
  """Return running sums along an axis."""
  return checked("cumsum", input).cast(_sum_type(input, dtype)).cumsum(axis_of(input, dim))

def cumprod(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
  """Return running products along an axis."""
  return checked("cumprod", input).cast(_sum_type(input, dtype)).cumprod(axis_of(input, dim))

def cummax(input: Tensor, dim: int) -> ValuesIndices:
  """Return running maxima along an axis, and their indices."""
  return _running("cummax", input, dim)

def cummin(input: Tensor, dim: int) -> ValuesIndices:
  """Return running minima along an axis, and their indices."""
  return _running("cummin", input, dim)

def _running(name: str, input: Tensor, dim: int) -> ValuesIndices:
  axis = axis_of(checked(name, input), dim)
  if not input.ndim: return ValuesIndices(input.clone(), input.const_like(0, dtypes.int64))
  values, places = getattr(input, name)(axis)
  return ValuesIndices(values, places.long())

def logcumsumexp(input: Tensor, dim: int) -> Tensor:
  """Return the logarithm of running sums of exponentials."""
  want_float("logcumsumexp", checked("logcumsumexp", input))
  return input.logcumsumexp(axis_of(input, dim)) if input.ndim else input.clone()

# ***** softmax and its relatives *****

def _soft(name: str, input: Tensor, dim: int | None, dtype: Any) -> Tensor:
  x = checked(name, input)
  if dim is None: dim = 0 if x.ndim in (0, 1, 3) else 1
  axis = axis_of(x, dim)
  x = x.cast(dtype_or(dtype, x.dtype))
  if not dtypes.is_float(x.dtype): raise DTypeError(f"{name} wants floats, not {x.dtype}; give dtype=")
  if not x.numel(): return x
  return getattr(x.reshape(1), name)(0).reshape(()) if not x.ndim else getattr(x, name)(axis)  # type: ignore[no-any-return]

def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
  """Return exp(input) divided by its sum along an axis."""
  return _soft("softmax", input, dim, dtype)

def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
  """Return softmax(-input)."""
  return _soft("softmin", input, dim, dtype)

def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
  """Return the logarithm of softmax."""
  return _soft("log_softmax", input, dim, dtype)

def torch_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
  """Return softmax, with the parameters of torch.softmax."""
  return _soft("softmax", input, dim, dtype)

def torch_log_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
  """Return log_softmax, with the parameters of torch.log_softmax."""
  return _soft("log_softmax", input, dim, dtype)

def safe_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
  """Return softmax, with zeros where all elements are -inf."""
  x = input.cast(dtype_or(dtype, input.dtype))
  if not x.ndim: return _soft("softmax", x, dim, None)
  empty = x.eq(-math.inf).all(axis_of(x, dim), keepdim=True)
  return empty.where(0, _soft("softmax", empty.where(0, x), dim, None))

def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
  """Return the p-norm of the difference."""
  return _norm_of(input.sub(other), float(p))

def _norm_of(x: Tensor, p: float) -> Tensor:
  x = x.abs()
  if p == math.inf: return x.max() if x.numel() else x.sum()
  if p == -math.inf: return x.min()
  if p == 0: return x.ne(0).cast(x.dtype).sum()
  if p == 1: return x.sum()
  if p == 2: return x.square().sum().sqrt()
  return x.pow(p).sum().pow(1 / p)

def trace(input: Tensor) -> Tensor:
  """Return the sum of the diagonal of a matrix."""
  if checked("trace", input).ndim != 2: raise ShapeError(f"trace wants a matrix, not {input.shape}")
  return sum(input.diagonal())

