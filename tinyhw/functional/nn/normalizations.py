"""Normalizations by the statistics of a batch, of channels, of groups, of the last axes; of neighbours; by norms.

Source of the formulas: PyTorch's documentation. Sums are in float32 at least, and results are rounded once.
"""
from __future__ import annotations
from collections.abc import Sequence
import math
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.functional.operands import axis_of, checked, sizes
from tinyhw.functional.nn.pooling import avg_pool2d
from tinyhw.methods.graph import graph
from tinyhw.tensor import Tensor

def _wide(x: Tensor) -> Tensor: return x.cast(graph.accumulator(x.dtype))

def _channel(x: Tensor, v: Tensor | None) -> Tensor | None:
  return None if v is None else v.reshape(1, -1, *(1,) * (x.ndim - 2))

def _scaled(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
  if weight is not None: x = x.mul(weight)
  return x if bias is None else x.add(bias)

def _check_channels(what: str, n: int, *vectors: Tensor | None) -> None:
  for v in vectors:
    if v is not None and sizes(v) != (n,):
      raise ShapeError(f"{what} wants a number for each of {n} channels, not {v.shape}")

def _normalized(x: Tensor, axes: Sequence[int], eps: float) -> tuple[Tensor, Tensor, Tensor]:
  """Return (x - mean) * rstd, mean and rstd, over axes that stay with size 1."""
  wide = _wide(x)
  mean = wide.mean(tuple(axes), keepdim=True)
  centred = wide.sub(mean)
  rstd = centred.square().mean(tuple(axes), keepdim=True).add(eps).rsqrt()
  return centred.mul(rstd), mean, rstd

def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
               bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
  """Normalize each channel (axis 1), by the batch's statistics (training, which updates the running ones) or these."""
  return native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]

def native_batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
                      running_var: Tensor | None, training: bool, momentum: float,
                      eps: float) -> tuple[Tensor, Tensor, Tensor]:
  """Return batch_norm, and the mean and reciprocal deviation of the batch (empty without training; no gradient)."""
  if checked("batch_norm", input).ndim == 1 and not input.numel(): return input.clone(), input, input
  if input.ndim < 2: raise ShapeError(f"batch_norm wants two axes at least, not {input.shape}")
  channels = sizes(input)[1]
  _check_channels("batch_norm", channels, weight, bias, running_mean, running_var)
  axes = [i for i in range(input.ndim) if i != 1]
  w, b = _channel(input, weight), _channel(input, bias)
  if not training:
    if running_mean is None or running_var is None:
      raise ArgumentError("batch_norm wants running statistics to evaluate")
    rstd = _wide(running_var).add(eps).rsqrt()
    x = _wide(input).sub(_channel(input, running_mean)).mul(_channel(input, rstd))
    empty = Tensor.empty(0, dtype=input.dtype)
    return _scaled(x, w, b).cast(input.dtype), empty, empty
  count = math.prod(sizes(input)[i] for i in axes)
  if count == 1 and input.numel():
    raise ShapeError(f"batch_norm wants more than one value per channel, not {input.shape}")
  x, mean, rstd = _normalized(input, axes, eps)
  if count: _update(running_mean, mean.reshape(-1), momentum)   # an empty batch has no statistics
  if running_var is not None and count:
    var = _wide(input).var(tuple(axes))
    _update(running_var, var, momentum)
  return _scaled(x, w, b).cast(input.dtype), *_statistics(input, weight, mean.reshape(-1), rstd.reshape(-1))

def _statistics(x: Tensor, weight: Tensor | None, mean: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor]:
  """Return statistics without a gradient, in the type of the weight, or of the input if there is none."""
  kind = x.dtype if weight is None else weight.dtype
  return mean.detach().cast(kind), rstd.detach().cast(kind)

def _update(running: Tensor | None, value: Tensor, momentum: float) -> None:
  if running is None: return
  running.assign(running.mul(1 - momentum).add(value.detach().mul(momentum)).cast(running.dtype))

def native_batch_norm_legit(input: Tensor, weight: Tensor | None, bias: Tensor | None, *rest: Any) -> Any:
  """Return native_batch_norm, with or without running statistics."""
  if len(rest) == 3: rest = (None, None, *rest)
  return native_batch_norm(input, weight, bias, *rest)

def batch_norm_with_update(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor,
                           running_var: Tensor, momentum: float, eps: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
  """Return native_batch_norm in training, and an empty reserve."""
  found = native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
  return (*found, Tensor.empty(0, dtype=dtypes.uint8))

def instance_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
                  weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True,
                  momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
  """Normalize each channel of each element of the batch."""
  if checked("instance_norm", input).ndim < 3:
    raise ShapeError(f"instance_norm wants 3 axes at least, not {input.shape}")
  _check_channels("instance_norm", sizes(input)[1], weight, bias, running_mean, running_var)
  if not use_input_stats: return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
  axes = tuple(range(2, input.ndim))
  if math.prod(sizes(input)[2:]) == 1: raise ShapeError(f"instance_norm wants more than one value, not {input.shape}")
  x, mean, _ = _normalized(input, axes, eps)
  _update(running_mean, mean.mean(0).reshape(-1), momentum)
  if running_var is not None: _update(running_var, _wide(input).var(axes).mean(0), momentum)
  return _scaled(x, _channel(input, weight), _channel(input, bias)).cast(input.dtype)

def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Tensor:
  """Normalize groups of channels of each element of the batch."""
  if checked("group_norm", input).ndim < 2: raise ShapeError(f"group_norm wants two axes at least, not {input.shape}")
  n, channels, *rest = sizes(input)
  return native_group_norm(input, weight, bias, n, channels, math.prod(rest), num_groups, eps)[0]

def native_group_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int,
                      eps: float) -> tuple[Tensor, Tensor, Tensor]:
  """Return group_norm, and the mean and reciprocal deviation of each group."""
  if group < 1 or C % group: raise ArgumentError(f"group_norm: {C} channels do not divide into {group} groups")
  _check_channels("group_norm", C, weight, bias)
  shape = sizes(input)
  if not input.numel():
    empty = Tensor.zeros(N, group, dtype=input.dtype)
    return input.clone(), empty, empty.add(math.nan)
  x, mean, rstd = _normalized(input.reshape(N, group, -1), (2,), eps)
  x = _scaled(x.reshape(shape), _channel(input, weight), _channel(input, bias))
  kind = input.dtype if weight is None else weight.dtype
  return x.cast(input.dtype), mean.reshape(N, group).cast(kind), rstd.reshape(N, group).cast(kind)

def layer_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None,
               bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
  """Normalize the last axes, whose shape is given."""
  return native_layer_norm(input, normalized_shape, weight, bias, eps)[0]

def native_layer_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None,
                      eps: float) -> tuple[Tensor, Tensor, Tensor]:
  """Return layer_norm, and the mean and reciprocal deviation."""
  axes = _last_axes("layer_norm", input, normalized_shape, weight, bias)
  x, mean, rstd = _normalized(input, axes, eps)
  return _scaled(x, weight, bias).cast(input.dtype), *_statistics(input, weight, mean, rstd)

def _last_axes(what: str, input: Tensor, shape: Sequence[int], *vectors: Tensor | None) -> tuple[int, ...]:
  wanted = tuple(int(d) for d in shape)
  if not wanted or sizes(checked(what, input))[-len(wanted):] != wanted:
    raise ShapeError(f"{what}: the last axes of {input.shape} are not {wanted}")
  for v in vectors:
    if v is not None and sizes(v) != wanted: raise ShapeError(f"{what} wants weights of shape {wanted}, not {v.shape}")
  return tuple(range(input.ndim - len(wanted), input.ndim))

def rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None,
             eps: float | None = None) -> Tensor:
  """Divide the last axes by the root of their mean square."""
  axes = _last_axes("rms_norm", input, normalized_shape, weight)
  x = _wide(input)
  least = 2.0 ** -dtypes.finfo(x.dtype)[1] if eps is None else eps
  x = x.mul(x.square().mean(axes, keepdim=True).add(least).rsqrt())
  return _scaled(x, weight, None).cast(input.dtype)

def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
  """Divide by a power of the mean square over neighbouring channels. Source: Krizhevsky et al. 2012."""
  if checked("local_response_norm", input).ndim < 3:
    raise ShapeError(f"local_response_norm wants 3 axes, not {input.shape}")
  if not input.numel(): return input
  n, channels, *rest = sizes(input)
  flat = input.square().reshape(n, 1, channels, -1)
  padded = flat.pad([None, None, (size // 2, (size - 1) // 2), None])
  mean = avg_pool2d(padded, (size, 1), 1).reshape(n, channels, *rest)
  return input.div(mean.mul(alpha).add(k).pow(beta))

def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Tensor:
  """Divide by the p-norm over axes, which counts as eps at least."""
  axes = tuple([axis_of(input, d) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))])
  size = input.abs()
  if not input.ndim: return input.div(size.maximum(eps))
  if math.isinf(p): norm = size.max(axes, keepdim=True)
  elif p == 0: norm = size.ne(0).cast(input.dtype).sum(axes, keepdim=True)
  else: norm = size.square().sum(axes, keepdim=True).sqrt() if p == 2 else size.pow(p).sum(axes,
                                                                                           keepdim=True).pow(1 / p)
  return input.div(norm.maximum(eps))

