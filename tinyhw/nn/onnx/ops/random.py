"""Operators of ONNX that draw random numbers: those of Tensor.manual_seed. A seed in the model is ignored.

Source: ONNX operator schemas (ai.onnx).
"""
from __future__ import annotations
import math
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.nn.onnx.data import dtype_of
from tinyhw.nn.onnx.operator import Ints, Outputs, Scalar, operator
from tinyhw.nn.onnx.ops.shape import check_count, sizes
from tinyhw.tensor import Tensor

@operator("Dropout", 7)
def dropout_by_attribute(x: Tensor, *, ratio: float = 0.5, outputs: Outputs = 1) -> Any:
  """Return the input: a model that runs does not train."""
  return (x, x.ones_like(dtype=dtypes.bool)) if outputs > 1 else x

@operator("Dropout", 12, folds=False)
def dropout(x: Tensor, ratio: Scalar | None = None, training_mode: Scalar | None = None, *, seed: int | None = None,
            outputs: Outputs = 1) -> Any:
  p = 0.5 if ratio is None else float(ratio)
  if not training_mode or p == 0: return (x, x.ones_like(dtype=dtypes.bool)) if outputs > 1 else x
  kept = Tensor.rand(*x.shape, device=x.device) >= p
  y = kept.where(x / (1 - p), x.zeros_like())
  return (y, kept) if outputs > 1 else y
def _random(kind: str, shape: Any, a: float, b: float, dtype: Any) -> Tensor:
  check_count(math.prod(shape), "a random tensor")
  if any(d < 0 for d in shape): raise ShapeError(f"a shape has no negative sizes: {shape}")
  if not dtypes.is_float(dtype): raise ArgumentError(f"random numbers have a float type, not {dtype}")
  return (Tensor.normal(*shape, mean=a, std=b, dtype=dtype) if kind == "normal"
          else Tensor.uniform(*shape, low=a, high=b, dtype=dtype))

@operator("RandomNormal", folds=False)
def random_normal(*, shape: Ints, dtype: int = 1, mean: float = 0.0, scale: float = 1.0,
                  seed: float | None = None) -> Tensor:
  return _random("normal", shape, mean, scale, dtype_of(dtype))
@operator("RandomUniform", folds=False)
def random_uniform(*, shape: Ints, dtype: int = 1, low: float = 0.0, high: float = 1.0,
                   seed: float | None = None) -> Tensor:
  return _random("uniform", shape, low, high, dtype_of(dtype))
@operator("RandomNormalLike", folds=False)
def random_normal_like(x: Tensor, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0,
                       seed: float | None = None) -> Tensor:
  return _random("normal", sizes(x), mean, scale, x.dtype if dtype is None else dtype_of(dtype))
@operator("RandomUniformLike", folds=False)
def random_uniform_like(x: Tensor, *, dtype: int | None = None, low: float = 0.0, high: float = 1.0,
                        seed: float | None = None) -> Tensor:
  return _random("uniform", sizes(x), low, high, x.dtype if dtype is None else dtype_of(dtype))
@operator("Bernoulli", folds=False)
def bernoulli(x: Tensor, *, dtype: int | None = None, seed: float | None = None) -> Tensor:
  return (Tensor.rand(*x.shape, device=x.device) < x).cast(x.dtype if dtype is None else dtype_of(dtype))
@operator("Multinomial", folds=False)
def multinomial(x: Tensor, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> Tensor:
  check_count(sample_size, "Multinomial")
  return x.softmax(-1).multinomial(sample_size, replacement=True).cast(dtype_of(dtype))
