"""Losses. `reduction` is "mean", "sum" or "none" in all of them.

Classes are elements of a tensor, so only its device knows them. A class outside of 0..classes-1 raises no error, and
its loss is 0.
"""
from __future__ import annotations
from typing import TYPE_CHECKING, Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.methods.checks import real
from tinyhw.methods.convolution import Convolution
from tinyhw.methods.graph import graph
from tinyhw.methods.reduction import check_one_of
from tinyhw.trace import of_one_line
if TYPE_CHECKING: from tinyhw.tensor import Tensor

class Loss(Convolution):
  """Losses of predictions against targets."""
  __slots__ = ()

  def _reduced(self, reduction: str) -> Tensor:
    check_one_of("reduction", reduction, ("mean", "sum", "none"))
    if reduction == "none": return self._self()
    return self.mean() if reduction == "mean" else self.sum()

  def _mean_by(self, weights: Tensor) -> Tensor:
    """Return the sum divided by the sum of weights, both in float32 at least. So the mean of many small losses in half
    precision does not overflow."""
    wide = graph.accumulator(self.dtype)
    return self.sum(dtype=wide).div(weights.sum(dtype=graph.accumulator(weights.dtype))).cast(self.dtype)

  @of_one_line
  def binary_crossentropy(self, Y: Tensor, reduction: str = "mean") -> Tensor:
    """Return -(Y log(self) + (1 - Y) log(1 - self)) for probabilities. As in PyTorch, a logarithm is at least -100. A
    slope is at most 1e12.

    >>> Tensor([0.0, 1.0]).binary_crossentropy(Tensor([1.0, 1.0]), "none").tolist()
    [100.0, 0.0]
    """
    Y = self._operand("binary_crossentropy", Y)
    first, second = self._log_of_chance(), self.sub(1, reverse=True)._log_of_chance()
    return Y.mul(first).add(Y.sub(1, reverse=True).mul(second)).sub(0, reverse=True)._reduced(reduction)

  def _log_of_chance(self) -> Tensor:
    """Return log of numbers from 0 to 1, at least -100. Close to 0 the slope is constant: that at 1e-12, or at the
    least normal number of the type."""
    x = self._float()
    least = max(1e-12, 2.0 ** (2 - 2 ** (dtypes.finfo(x.dtype)[0] - 1)))
    small = x.lt(least)
    straight = x.log().maximum(-100).detach().add(x.sub(x.detach()).mul(1 / least))
    return small.where(straight, small.where(1, x).log())

  @of_one_line
  def binary_crossentropy_logits(self, Y: Tensor, reduction: str = "mean", pos_weight: Tensor | None = None) -> Tensor:
    """Return binary_crossentropy of sigmoid(self), without overflow. pos_weight multiplies the loss of positives.

    >>> Tensor([2.0, -1.0]).binary_crossentropy_logits(Tensor([1.0, 0.0])).realize()
    <Tensor () float32 on CPU, realized: 0.22009>
    """
    Y = self._operand("binary_crossentropy_logits", Y)
    positive = self.neg().softplus()  # -log(sigmoid(x))
    if pos_weight is not None: positive = positive.mul(pos_weight)
    return Y.mul(positive).add(Y.sub(1, reverse=True).mul(self.softplus()))._reduced(reduction)

  @of_one_line
  def sparse_categorical_crossentropy(self, Y: Tensor, ignore_index: int = -1, label_smoothing: float = 0.0,
                                      reduction: str = "mean") -> Tensor:
    """Return the cross-entropy of scores along the last axis with integer classes Y. Elements where Y is ignore_index
    do not count.

    >>> Tensor([[2.0, 0.0], [0.0, 3.0]]).sparse_categorical_crossentropy(Tensor([0, 1])).realize()
    <Tensor () float32 on CPU, realized: 0.087758>
    """
    if not 0 <= real("label_smoothing", label_smoothing) <= 1:
      raise ArgumentError(f"label_smoothing is a fraction of 1, not {label_smoothing}")
    check_one_of("reduction", reduction, ("mean", "sum", "none"))
    if _classes(self._operand("sparse_categorical_crossentropy", Y)).shape != self.shape[:-1]:
      raise ShapeError(f"classes of shape {graph.show(Y.shape)} do not fit scores of shape {graph.show(self.shape)}: "
                       f"drop the last axis")
    logs = self.log_softmax()
    counts = Y.ne(ignore_index)
    picked = counts.where(logs._at_class(Y, -1), 0)
    smooth = counts.where(logs.mean(-1), 0)
    losses = picked.mul(1 - label_smoothing).add(smooth.mul(label_smoothing)).neg() if label_smoothing else picked.neg()
    return losses._mean_by(counts) if reduction == "mean" else losses._reduced(reduction)

  def _at_class(self, Y: Tensor, axis: int) -> Tensor:
    """Return the element along an axis that Y names. It is a masked sum, so that the gradient is as cheap."""
    axis = self._axis(axis)
    names = self._new(graph.counting(Y.uop, self.shape[axis])).unsqueeze(axis).expand(self.shape)
    hit = names.eq(self._new(graph.positions(self.uop, axis, names.dtype)))
    return hit.where(self, 0).sum(axis)

  @of_one_line
  def cross_entropy(self, Y: Tensor, reduction: str = "mean", label_smoothing: float = 0.0) -> Tensor:
    """Return the cross-entropy of scores along axis 1 (0 for a vector). The target is integer classes, or probabilities
    of self's shape.

    >>> Tensor([[2.0, 0.0], [0.0, 3.0]]).cross_entropy(Tensor([0, 1])).realize()
    <Tensor () float32 on CPU, realized: 0.087758>
    """
    if not 0 <= real("label_smoothing", label_smoothing) <= 1:
      raise ArgumentError(f"label_smoothing is a fraction of 1, not {label_smoothing}")
    self._operand("cross_entropy", Y)
    axis = self._own_axis("take the cross-entropy of", min(self.ndim, 2) - 1)
    classes = int(self.shape[axis])
    logs = self.log_softmax(axis)
    if Y.ndim == self.ndim:
      if Y.shape != self.shape: graph.refuse_shape("take the cross-entropy of", self.shape, Y.shape)
      weights = Y.mul(1 - label_smoothing).add(label_smoothing / classes)
      losses = logs.mul(weights).sum(axis).neg()
    else:
      if Y.shape != self.shape[:axis] + self.shape[axis + 1:]:
        raise ShapeError(f"classes of shape {graph.show(Y.shape)} do not fit scores of shape "
                         f"{graph.show(self.shape)}: drop axis {axis}")
      if not dtypes.is_int(Y.dtype):
        raise ArgumentError(f"classes are integers, not {Y.dtype}; give probabilities the shape of the scores")
      losses = logs._at_class(Y, axis).neg()
      if label_smoothing: losses = losses.mul(1 - label_smoothing).sub(logs.mean(axis).mul(label_smoothing))
    return losses._reduced(reduction)

  @of_one_line
  def nll_loss(self, Y: Tensor, weight: Tensor | None = None, ignore_index: int | None = None,
               reduction: str = "mean") -> Tensor:
    """Return the negative of self at class Y along axis 1, for logarithms of probabilities. "mean" divides by the sum
    of weights.

    >>> Tensor([[2.0, 0.0], [0.0, 3.0]]).log_softmax().nll_loss(Tensor([0, 1])).realize()
    <Tensor () float32 on CPU, realized: 0.087758>
    """
    check_one_of("reduction", reduction, ("mean", "sum", "none"))
    _classes(self._operand("nll_loss", Y))
    axis = self._own_axis("take the loss of", min(self.ndim, 2) - 1)
    if Y.shape != self.shape[:axis] + self.shape[axis + 1:]:
      raise ShapeError(f"classes of shape {graph.show(Y.shape)} do not fit logarithms of shape "
                       f"{graph.show(self.shape)}: drop axis {axis}")
    if weight is not None and self._operand("nll_loss", weight).shape != self.shape[axis:axis + 1]:
      raise ShapeError(f"weights of shape {graph.show(weight.shape)} do not fit {self.shape[axis]} classes; give one "
                       f"number for each")
    weights: Any = self._new(graph.full(Y.shape, self.dtype, 1)) if weight is None else weight[Y]
    if ignore_index is not None: weights = Y.ne(ignore_index).where(weights, 0)
    losses = self._at_class(Y, axis).neg().mul(weights)
    return losses._mean_by(weights) if reduction == "mean" else losses._reduced(reduction)

def _classes(Y: Tensor) -> Tensor:
  """Return Y, whose elements must be integers. Raises ArgumentError for floats."""
  if dtypes.is_float(Y.dtype):
    raise ArgumentError(f"classes are integers, not {Y.dtype}; cast them: .cast(dtypes.int32)")
  return Y
