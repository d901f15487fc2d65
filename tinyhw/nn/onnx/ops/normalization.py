"""Normalizations of ONNX. Source: ONNX operator schemas (ai.onnx)."""
from __future__ import annotations
from typing import Any

from tinyhw.errors import ArgumentError
from tinyhw.methods.convolution import window_view
from tinyhw.nn.onnx.data import wide
from tinyhw.nn.onnx.operator import Ints, Outputs, operator
from tinyhw.nn.onnx.ops.shape import axis_of
from tinyhw.nn.onnx.ops.windows import per_channel, spatial_axes
from tinyhw.tensor import Tensor

@operator("BatchNormalization")
def batch_normalization_of_old(x: Tensor, scale: Tensor, b: Tensor, mean: Tensor, var: Tensor, *, epsilon: float = 1e-5,
                               momentum: float = 0.9,
                               is_test: int = 0, spatial: int = 1) -> Tensor:
  return _normalized(x, scale, b, mean, var, epsilon)

@operator("BatchNormalization", 7)
def batch_normalization(x: Tensor, scale: Tensor, b: Tensor, mean: Tensor, var: Tensor, *, epsilon: float = 1e-5,
                        momentum: float = 0.9,
                        spatial: int = 1) -> Tensor:
  """Normalize with the given statistics. Version 7 may ask for training, but an exported model does not."""
  return _normalized(x, scale, b, mean, var, epsilon)

@operator("BatchNormalization", 14)
def batch_normalization_or_training(x: Tensor, scale: Tensor, b: Tensor, mean: Tensor, var: Tensor, *,
                                    epsilon: float = 1e-5, momentum: float = 0.9,
                                    training_mode: int = 0) -> Any:
  """Normalize. With training_mode, use the statistics of the batch, and also return the running statistics, moved
  towards them."""
  if not training_mode: return _normalized(x, scale, b, mean, var, epsilon)
  axes = tuple(i for i in range(x.ndim) if i != 1)
  new_mean, new_var = wide(x).mean(axes), wide(x).var(axes, correction=0)
  def moved(old: Tensor, new: Tensor) -> Tensor: return (old * momentum + new * (1 - momentum)).cast(old.dtype)
  return _normalized(x, scale, b, new_mean, new_var, epsilon), moved(mean, new_mean), moved(var, new_var)

def _normalized(x: Tensor, scale: Tensor, b: Tensor, mean: Tensor, var: Tensor, epsilon: float) -> Tensor:
  factor = per_channel((wide(var) + epsilon).rsqrt() * scale, x.ndim)
  return ((x - per_channel(mean, x.ndim)) * factor + per_channel(b, x.ndim)).cast(x.dtype)

def standardized(x: Tensor, axes: tuple[int, ...], epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
  """Return (x normalized to mean 0 and variance 1 over the axes, the mean, the inverse standard deviation), in float32
  at least."""
  v = wide(x)
  mean = v.mean(axes, keepdim=True)
  inverse = ((v - mean).square().mean(axes, keepdim=True) + epsilon).rsqrt()
  return (v - mean) * inverse, mean, inverse

@operator("LayerNormalization", 17)
@operator("LayerNormalization")
def layer_normalization(x: Tensor, scale: Tensor, b: Tensor | None = None, *, axis: int = -1, epsilon: float = 1e-5,
                        stash_type: int = 1,
                        outputs: Outputs = 1) -> Any:
  y, mean, inverse = standardized(x, tuple(range(axis_of(axis, x.ndim), x.ndim)), epsilon)
  y = y.cast(x.dtype) * scale
  results = (y if b is None else y + b).cast(x.dtype), mean, inverse
  return results[:max(1, outputs)]

@operator("RMSNormalization", 23)
def rms_normalization(x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5,
                      stash_type: int = 1) -> Tensor:
  v = wide(x)
  inverse = (v.square().mean(tuple(range(axis_of(axis, x.ndim), x.ndim)), keepdim=True) + epsilon).rsqrt()
  return (v * inverse).cast(x.dtype) * scale

@operator("InstanceNormalization", 6)
def instance_normalization(x: Tensor, scale: Tensor, b: Tensor, *, epsilon: float = 1e-5) -> Tensor:
  return (standardized(x, spatial_axes(x), epsilon)[0] * per_channel(scale, x.ndim)
          + per_channel(b, x.ndim)).cast(x.dtype)

def _grouped(x: Tensor, num_groups: int, epsilon: float) -> Tensor:
  if num_groups < 1 or int(x.shape[1]) % num_groups:
    raise ArgumentError(f"{x.shape[1]} channels do not make {num_groups} groups")
  return standardized(x.reshape(x.shape[0], num_groups, -1), (2,), epsilon)[0]

@operator("GroupNormalization", 18)
def group_normalization_per_group(x: Tensor, scale: Tensor, b: Tensor, *, num_groups: int,
                                  epsilon: float = 1e-5) -> Tensor:
  """Until version 21, scale and bias have one number per group."""
  y = _grouped(x, num_groups, epsilon)
  return (y * scale.reshape(1, -1, 1) + b.reshape(1, -1, 1)).reshape(x.shape).cast(x.dtype)

@operator("GroupNormalization", 21)
def group_normalization(x: Tensor, scale: Tensor, b: Tensor, *, num_groups: int, epsilon: float = 1e-5,
                        stash_type: int = 1) -> Tensor:
  y = _grouped(x, num_groups, epsilon).reshape(x.shape)
  return (y * per_channel(scale, x.ndim) + per_channel(b, x.ndim)).cast(x.dtype)

@operator("MeanVarianceNormalization", 9)
def mean_variance_normalization(x: Tensor, *, axes: Ints | None = None) -> Tensor:
  found = tuple(axis_of(a, x.ndim) for a in ([0, 2, 3] if axes is None else axes))
  v = wide(x)
  centred = v - v.mean(found, keepdim=True)
  return (centred / (centred.square().mean(found, keepdim=True).sqrt() + 1e-9)).cast(x.dtype)

@operator("LpNormalization")
def lp_normalization(x: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
  if p not in (1, 2): raise ArgumentError(f"p is 1 or 2, not {p}")
  v = wide(x)
  norm = v.abs().sum(axis, keepdim=True) if p == 1 else v.square().sum(axis, keepdim=True).sqrt()
  return norm.eq(0).where(0, v / norm).cast(x.dtype)

@operator("LRN")
def lrn(x: Tensor, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Tensor:
  """Divide each element by a power of the mean square of `size` channels around it. Source: Krizhevsky et al. 2012."""
  if size < 1 or x.ndim < 2: raise ArgumentError(f"LRN over {size} channels of shape {x.shape}")
  v = wide(x)
  flat = v.square().reshape(x.shape[0], 1, x.shape[1], -1)
  total = Tensor(window_view(flat.pad([None, None, ((size - 1) // 2, size // 2), None]).uop, (size, 1), (1, 1),
                             (1, 1))).sum((4, 5)).reshape(x.shape)
  return (v / (total * (alpha / size) + bias).pow(beta)).cast(x.dtype)
