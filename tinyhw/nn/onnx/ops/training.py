"""Operators of ONNX for training (ai.onnx.preview.training): gradients of a part of the graph, steps of optimizers.

Optimizers update several tensors. Their inputs are the learning rate R, the number T of earlier updates, all tensors,
all gradients, and then each kind of state. Source: ONNX operator schemas (ai.onnx.preview.training 1).
"""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

from tinyhw.errors import ArgumentError
from tinyhw.nn.onnx.operator import Body, Outputs, Strings, as_tensor, operator
from tinyhw.tensor import Tensor

TRAINING = "ai.onnx.preview.training"

def _each(tensors: tuple[Tensor, ...], kinds: int, update: Callable[..., tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
  """Update tensors one by one. kinds: how many tensors belong to one: itself, its gradient, its states. The results are
  all new tensors, then all new states of each kind."""
  count, rest = divmod(len(tensors), kinds)
  if rest or not count: raise ArgumentError(f"{len(tensors)} tensors are no whole number of groups of {kinds}")
  rows = [[new.cast(tensors[i].dtype) for new in update(*tensors[i::count])] for i in range(count)]
  return tuple(row[k] for k in range(kinds - 1) for row in rows)

@operator("Adagrad", 1, TRAINING)
def adagrad(rate: Tensor, times: Tensor, *tensors: Tensor, decay_factor: float = 0.0, epsilon: float = 1e-6,
            norm_coefficient: float = 0.0) -> Any:
  """Source: Duchi et al. 2011."""
  r = rate / (times.float() * decay_factor + 1)
  def update(x: Tensor, g: Tensor, squares: Tensor) -> tuple[Tensor, ...]:
    g = g + x * norm_coefficient
    total = squares + g * g
    return x - r * g / (total.sqrt() + epsilon), total
  return _each(tensors, 3, update)

@operator("Adam", 1, TRAINING)
def adam(rate: Tensor, times: Tensor, *tensors: Tensor, alpha: float = 0.9, beta: float = 0.999, epsilon: float = 1e-6,
         norm_coefficient: float = 0.0, norm_coefficient_post: float = 0.0) -> Any:
  """Source: Kingma and Ba 2015."""
  t = times.float()
  r = (times > 0).where(rate * (1 - beta ** t).sqrt() / (1 - alpha ** t.maximum(1)), rate)
  def update(x: Tensor, g: Tensor, mean: Tensor, squares: Tensor) -> tuple[Tensor, ...]:
    g = g + x * norm_coefficient
    mean, squares = mean * alpha + g * (1 - alpha), squares * beta + g * g * (1 - beta)
    return (x - r * mean / (squares.sqrt() + epsilon)) * (1 - norm_coefficient_post), mean, squares
  return _each(tensors, 4, update)

@operator("Momentum", 1, TRAINING)
def momentum(rate: Tensor, times: Tensor, *tensors: Tensor, alpha: float, beta: float, mode: str,
             norm_coefficient: float) -> Any:
  """Source: Sutskever et al. 2013."""
  if mode not in ("standard", "nesterov"): raise ArgumentError(f"mode is standard or nesterov, not {mode!r}")
  factor = (times > 0).where(beta, 1.0)
  def update(x: Tensor, g: Tensor, velocity: Tensor) -> tuple[Tensor, ...]:
    g = g + x * norm_coefficient
    velocity = velocity * alpha + g * factor
    return x - rate * (velocity if mode == "standard" else g + velocity * alpha), velocity
  return _each(tensors, 3, update)

@operator("Gradient", 1, TRAINING, folds=False)
def gradient(*values: Tensor, xs: Strings, y: str, part: Body, zs: Strings | None = None,
             outputs: Outputs = 1) -> Any:
  """Return the gradients of the sum of y by each of xs. part: the nodes between xs, zs and y, as a function. The graph
  adds it to the node.

  The part is differentiated at placeholders, since two names may have one value. Then the values replace them, so
  that the gradients can be differentiated again.
  """
  if len(values) != len(xs) + len(zs or ()):
    raise ArgumentError(f"Gradient has {len(values)} inputs for the names {[*xs, *(zs or ())]}")
  flat = [Tensor.empty(x.numel(), dtype=x.dtype, device=x.device) for x in values[:len(xs)]]
  leaves = [leaf.reshape(x.shape) for leaf, x in zip(flat, values)]
  result = as_tensor(part(*leaves, *values[len(xs):])[0])
  given = {leaf.uop: x.flatten().uop for leaf, x in zip(flat, values)}
  return tuple(Tensor(found.uop.substitute(given)) for found in result.sum().gradient(*leaves))
