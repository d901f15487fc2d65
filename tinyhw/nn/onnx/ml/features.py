"""Operators of ai.onnx.ml on features: vectors of numbers. Source: ONNX operator schemas (ai.onnx.ml)."""
from __future__ import annotations

from tinyhw.nn.onnx.operator import operator
from tinyhw.nn.onnx.ops.indexing import wrapped
from tinyhw.tensor import Tensor

ML = "ai.onnx.ml"

@operator("ArrayFeatureExtractor", 1, ML)
def array_feature_extractor(x: Tensor, indices: Tensor) -> Tensor:
  y = x[..., wrapped(indices, int(x.shape[-1])).flatten()]
  return y.reshape(1, -1) if x.ndim == 1 else y

@operator("Binarizer", 1, ML)
def binarizer(x: Tensor, *, threshold: float = 0.0) -> Tensor: return (x > threshold).cast(x.dtype)
