"""Losses of ONNX, for classes in axis 1. Source: ONNX operator schemas (ai.onnx)."""
from __future__ import annotations
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError
from tinyhw.nn.onnx.data import wide
from tinyhw.nn.onnx.operator import Outputs, operator
from tinyhw.nn.onnx.ops.windows import per_channel
from tinyhw.tensor import Tensor

def _loss(log_probabilities: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int | None,
          reduction: str) -> Tensor:
  """Return the loss of classes in axis 1."""
  out, log_probabilities = log_probabilities.dtype, wide(log_probabilities)
  classes = int(log_probabilities.shape[1])
  index = target.cast(dtypes.int64)
  place = Tensor.arange(classes, dtype=dtypes.int64, device=target.device).reshape(1, -1, *[1] * (target.ndim - 1))
  hit = index.unsqueeze(1).eq(place)
  factor = hit.cast(log_probabilities.dtype) if weight is None else hit.where(per_channel(weight, target.ndim + 1), 0)
  factor = factor.sum(1)
  if ignore_index is not None: factor = index.eq(ignore_index).where(0, factor)
  loss = -hit.where(log_probabilities, 0).sum(1) * factor
  if reduction in ("none", "sum"): return (loss if reduction == "none" else loss.sum()).cast(out)
  if reduction != "mean": raise ArgumentError(f"reduction is none, mean or sum, not {reduction!r}")
  return (loss.sum() / wide(factor).sum() if weight is not None or ignore_index is not None else loss.mean()).cast(out)

@operator("NegativeLogLikelihoodLoss", 12)
def negative_log_likelihood_loss(x: Tensor, target: Tensor, weight: Tensor | None = None, *,
                                 ignore_index: int | None = None,
                                 reduction: str = "mean") -> Tensor:
  return _loss(x, target, weight, ignore_index, reduction)

@operator("SoftmaxCrossEntropyLoss", 12)
def softmax_cross_entropy_loss(x: Tensor, target: Tensor, weight: Tensor | None = None, *,
                               ignore_index: int | None = None, reduction: str = "mean",
                               outputs: Outputs = 1) -> Any:
  logs = x.log_softmax(1)
  loss = _loss(logs, target, weight, ignore_index, reduction)
  return (loss, logs) if outputs > 1 else loss
