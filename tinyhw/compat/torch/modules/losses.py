"""Losses with parameters."""
from __future__ import annotations
import math
from typing import Any

from tinyhw.compat.torch.modules.module import Module
from tinyhw.compat.torch.modules.parametric import Linear, functional
from tinyhw.errors import ArgumentError, ShapeError

class LinearCrossEntropyLoss(Module):
  """The cross-entropy of a linear layer's scores. linear.weight: (num_classes * prod(out_features), in_features).

  out_features: axes of the scores after that of the classes. options: of PyTorch's kernels, accepted.
  """
  def __init__(self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False,
               device: Any = None, dtype: Any = None, reduction: str = "mean", weight: Any = None,
               ignore_index: int | None = None, label_smoothing: float = 0.0, options: Any = None):
    super().__init__()
    if weight is not None and tuple(weight.shape) != (num_classes,):
      raise ShapeError(f"LinearCrossEntropyLoss wants a weight for each of {num_classes} classes, not {weight.shape}")
    if not 0 <= label_smoothing <= 1: raise ArgumentError(f"label_smoothing is {label_smoothing}; it is from 0 to 1")
    self.register_buffer("weight", weight)
    self.num_classes, self.out_features, self.reduction = num_classes, tuple(out_features), reduction
    self.ignore_index, self.label_smoothing, self.options = ignore_index, label_smoothing, options
    self.linear = Linear(in_features, num_classes * math.prod(out_features), bias, device, dtype)

  def forward(self, input: Any, target: Any) -> Any:
    """Return the loss of features. target: classes, or probabilities of the shape of the scores."""
    shape, bias = (self.num_classes, *self.out_features), self.linear.bias
    return functional("linear_cross_entropy")(
      input, self.linear.weight.reshape(*shape, self.linear.in_features), target,
      linear_bias=None if bias is None else bias.reshape(*shape), weight=self.weight, reduction=self.reduction,
      ignore_index=self.ignore_index, label_smoothing=self.label_smoothing)

  def extra_repr(self) -> str:
    """Return the options."""
    return (f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}")
