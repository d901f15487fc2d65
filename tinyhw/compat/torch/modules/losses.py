"""Losses with parameters. Source of the adaptive softmax: Grave et al. 2017."""
from __future__ import annotations
from collections.abc import Sequence
import math
from typing import Any

from tinyhw.compat.torch.modules.containers import ModuleList, Sequential
from tinyhw.compat.torch.modules.module import Module
from tinyhw.compat.torch.modules.parametric import Linear, functional
from tinyhw.compat.torch.table import find
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.functional.known import want_index
from tinyhw.named_tuple import NamedTuple

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

class AdaptiveOutput(NamedTuple):
  """The logarithm of the target's probability for each row, and the loss: minus their mean."""
  output: Any
  loss: Any

class AdaptiveLogSoftmaxWithLoss(Module):
  """A softmax over many classes: the frequent ones are scored first, beside clusters of the others.

  cutoffs: the first class of each cluster, ascending. A cluster's scores pass a layer that is div_value times narrower
  than the one before.
  """
  def __init__(self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0,
               head_bias: bool = False, device: Any = None, dtype: Any = None):
    super().__init__()
    ends = list(cutoffs)
    if not ends or ends != sorted(set(ends)) or ends[0] <= 0 or ends[-1] > n_classes - 1:
      raise ArgumentError(f"cutoffs are ascending, from 1 to {n_classes - 1}, not {ends}")
    self.in_features, self.n_classes, self.div_value, self.head_bias = in_features, n_classes, div_value, head_bias
    self.cutoffs, self.n_clusters, self.shortlist_size = [*ends, n_classes], len(ends), ends[0]
    self.head = Linear(in_features, self.shortlist_size + self.n_clusters, head_bias, device, dtype)
    self.tail = ModuleList()
    for k in range(self.n_clusters):
      width = int(in_features // div_value ** (k + 1))
      self.tail.append(Sequential(Linear(in_features, width, False, device, dtype),
                                  Linear(width, self.cutoffs[k + 1] - self.cutoffs[k], False, device, dtype)))

  def forward(self, input: Any, target: Any) -> AdaptiveOutput:
    """Return (output, loss). input: (N, in_features) or one row, target: classes."""
    if input.ndim != target.ndim + 1: raise ShapeError(f"classes {target.shape} do not go with rows {input.shape}")
    if not target.ndim:
      found = self(input.unsqueeze(0), target.unsqueeze(0))
      return AdaptiveOutput(found.output.squeeze(0), found.loss)
    want_index("a target", target, self.n_classes)
    output = self.log_prob(input).gather(1, target.unsqueeze(1)).squeeze(1)
    return AdaptiveOutput(output, -output.mean())

  def log_prob(self, input: Any) -> Any:
    """Return the logarithms of the probabilities of all classes, (N, n_classes)."""
    head = functional("log_softmax")(self.head(input), 1)
    parts = [head[:, :self.shortlist_size]]
    for k, cluster in enumerate(self.tail):
      at = self.shortlist_size + k
      parts.append(functional("log_softmax")(cluster(input), 1) + head[:, at:at + 1])
    return find("", "cat")(parts, 1)

  def predict(self, input: Any) -> Any:
    """Return the most probable class of each row."""
    return self.log_prob(input).argmax(1)
