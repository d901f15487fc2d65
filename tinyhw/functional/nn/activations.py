"""Activation functions with PyTorch's parameters, and dropout. `inplace` writes the result into the input.

Source of the formulas: PyTorch's documentation.
"""
from __future__ import annotations
from collections.abc import Callable
import functools
import math
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, DTypeError, IndexRangeError, ShapeError
from tinyhw.functional.known import extent, want_index
from tinyhw.functional.operands import axis_of, checked, sizes, want_float, want_int
from tinyhw.functional.shapes import part
from tinyhw.tensor import Tensor

def _maybe_in_place(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
  """Let a function take `inplace`: then its result is written into the input, too."""
  @functools.wraps(function)
  def called(input: Tensor, *args: Any, inplace: bool = False, **keywords: Any) -> Tensor:
    found = function(checked(function.__name__, input), *args, **keywords)
    return input.assign(found) if inplace else found
  return called

@_maybe_in_place
def relu(input: Tensor) -> Tensor:
  """Return max(input, 0)."""
  if input.dtype is dtypes.bool: raise DTypeError("relu wants numbers, not bools")
  return input.relu()

@_maybe_in_place
def relu6(input: Tensor) -> Tensor:
  """Return input limited to 0..6."""
  return input.relu6()

@_maybe_in_place
def leaky_relu(input: Tensor, negative_slope: float = 0.01) -> Tensor:
  """Return input where it is positive, else negative_slope * input."""
  return input.leaky_relu(negative_slope)

@_maybe_in_place
def elu(input: Tensor, alpha: float = 1.0) -> Tensor:
  """Return input where it is positive, else alpha * (exp(input) - 1)."""
  return input.elu(alpha)

@_maybe_in_place
def celu(input: Tensor, alpha: float = 1.0) -> Tensor:
  """Return input where it is positive, else alpha * (exp(input / alpha) - 1)."""
  return input.celu(alpha)

@_maybe_in_place
def selu(input: Tensor) -> Tensor:
  """Return the self-normalizing elu."""
  return input.selu()

@_maybe_in_place
def silu(input: Tensor) -> Tensor:
  """Return input * sigmoid(input)."""
  return input.silu()

@_maybe_in_place
def mish(input: Tensor) -> Tensor:
  """Return input * tanh(softplus(input))."""
  return input.mish()

@_maybe_in_place
def hardswish(input: Tensor) -> Tensor:
  """Return input * relu6(input + 3) / 6."""
  return input.hardswish()

@_maybe_in_place
def hardsigmoid(input: Tensor) -> Tensor:
  """Return relu6(input + 3) / 6."""
  return input.hardsigmoid()

@_maybe_in_place
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
  """Return input limited to min_val..max_val."""
  if min_val > max_val: raise ArgumentError(f"min_val {min_val} is above max_val {max_val}")
  if not dtypes.is_float(input.dtype): min_val, max_val = int(min_val), int(max_val)
  return input.hardtanh(min_val, max_val)

@_maybe_in_place
def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
  """Return input where it is above a threshold, else value."""
  return input.gt(threshold).where(input, value)

@_maybe_in_place
def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
  """Return leaky_relu with the mean slope, or (training) slopes drawn for each element."""
  if lower > upper: raise ArgumentError(f"rrelu: lower {lower} is above upper {upper}")
  if not training: return input.leaky_relu((lower + upper) / 2)
  slope = Tensor.uniform(*sizes(input), low=lower, high=upper, dtype=input.dtype)
  return input.ge(0).where(input, input.mul(slope))

def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
  """Return input times the cumulative function of the normal distribution; "tanh" approximates it."""
  return checked("gelu", input).gelu(approximate)

def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
  """Return log(1 + exp(beta * input)) / beta; input itself where beta * input is above the threshold."""
  x = checked("softplus", input)
  return x.mul(beta).gt(threshold).where(x, x.softplus(beta))

def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
  """Return input where it is outside of -lambd..lambd, else 0."""
  return (checked("hardshrink", input).ge(-lambd) & input.le(lambd)).where(0, input)

def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
  """Return input, moved towards 0 by lambd."""
  if lambd < 0: raise ArgumentError(f"lambd is {lambd}; it is not negative")
  x = checked("softshrink", input)
  return x.gt(lambd).where(x.sub(lambd), x.lt(-lambd).where(x.add(lambd), x.isnan().where(x, 0)))

def tanhshrink(input: Tensor) -> Tensor:
  """Return input - tanh(input)."""
  return checked("tanhshrink", input).sub(input.tanh())

def softsign(input: Tensor) -> Tensor:
  """Return input / (1 + abs(input))."""
  return checked("softsign", input).softsign()

def logsigmoid(input: Tensor) -> Tensor:
  """Return log(sigmoid(input))."""
  return checked("logsigmoid", input).logsigmoid()

def glu(input: Tensor, dim: int = -1) -> Tensor:
  """Return the first half of an axis times sigmoid of the second."""
  if not checked("glu", input).ndim: raise ShapeError("glu wants a tensor with an axis")
  axis = axis_of(input, dim)
  n = sizes(input)[axis]
  if n % 2: raise ShapeError(f"glu halves axis {axis}, and its size is {n}")
  return part(input, axis, 0, n // 2).mul(part(input, axis, n // 2, n).sigmoid())

def prelu(input: Tensor, weight: Tensor) -> Tensor:
  """Return input where it is positive, else input times a weight, one for all or one for each channel."""
  count = int(checked("prelu", weight).numel())
  channels = sizes(input)[1] if input.ndim > 1 else 1
  if weight.ndim > 1: raise ShapeError(f"prelu wants a vector of weights, not {weight.shape}")
  if count != 1 and (not input.ndim or count != channels):
    raise ShapeError(f"prelu: {count} weights for {channels} channels of {input.shape}")
  if weight.dtype is not input.dtype: raise DTypeError(f"prelu wants one type, not {input.dtype} and {weight.dtype}")
  shape = [1, count, *(1,) * (input.ndim - 2)] if input.ndim > 1 else [1] * input.ndim
  return input.gt(0).where(input, input.mul(weight.reshape(shape)))

def softmax_backward(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
  """Return the gradient of softmax from its result."""
  axis = axis_of(output, dim)
  product = grad_output.mul(output)
  total = product.sum(axis, keepdim=True) if output.ndim else product
  return product.sub(output.mul(total)).cast(input_dtype)

def logit(input: Tensor, eps: float | None = None) -> Tensor:
  """Return log(x / (1 - x)), with x limited to eps..1 - eps."""
  x = checked("logit", input)
  x = x if dtypes.is_float(x.dtype) else x.float()
  if eps is not None: x = x.clamp(eps, 1 - eps)
  return x.div(x.sub(1, reverse=True)).log()

# ***** dropout *****

def _chance(what: str, p: float) -> None:
  if not 0 <= p <= 1: raise ArgumentError(f"{what}: p is {p}; it is from 0 to 1")

def _kept(shape: tuple[int, ...], p: float) -> Tensor: return Tensor.rand(*shape).ge(p)

@_maybe_in_place
def dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
  """Set elements to zero with probability p, and divide the others by 1 - p."""
  _chance("dropout", p)
  if not training or p == 0: return input.clone()
  return input.mul(0) if p == 1 else _kept(sizes(input), p).where(input.div(1 - p), 0)

def _feature_dropout(what: str, input: Tensor, p: float, training: bool) -> Tensor:
  _chance(what, p)
  if not training or p == 0: return input.clone()
  shape = (*sizes(input)[:2], *(1,) * (input.ndim - 2))
  return input.mul(0) if p == 1 else _kept(shape, p).where(input.div(1 - p), 0)

@_maybe_in_place
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
  """Set whole channels to zero with probability p."""
  return _feature_dropout("dropout1d", input, p, training)

@_maybe_in_place
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
  """Set whole channels to zero with probability p."""
  return _feature_dropout("dropout2d", input, p, training)

@_maybe_in_place
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
  """Set whole channels to zero with probability p."""
  return _feature_dropout("dropout3d", input, p, training)

_SATURATED = -1.7580993408473766   # selu far below 0

def _alpha(what: str, input: Tensor, p: float, training: bool, shape: tuple[int, ...]) -> Tensor:
  """Source: Klambauer et al. 2017, section 3: dropped elements take selu's lower limit; mean and variance stay."""
  _chance(what, p)
  if not training or p == 0: return input.clone()
  want_float(what, input)
  if p == 1: return input.mul(0)
  scale = 1 / math.sqrt((1 - p) * (1 + p * _SATURATED ** 2))
  return _kept(shape, p).where(input, _SATURATED).mul(scale).add(-scale * p * _SATURATED)

@_maybe_in_place
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False) -> Tensor:
  """Return dropout that keeps mean and variance of selu's values."""
  return _alpha("alpha_dropout", input, p, training, sizes(input))

@_maybe_in_place
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False) -> Tensor:
  """Return alpha_dropout of whole channels."""
  return _alpha("feature_alpha_dropout", input, p, training, (*sizes(input)[:2], *(1,) * (input.ndim - 2)))

def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
  """Return the gradient of dropout: that of kept elements, times the scale."""
  return mask.cast(grad_output.dtype).mul(grad_output).mul(scale)

def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
  """Add a last axis with 1 at the index that each integer names."""
  want_int("one_hot", checked("one_hot", input))
  if num_classes > 0: want_index("one_hot: a class", input, num_classes)
  elif (found := extent(input)) is not None and found[0] < 0:
    raise IndexRangeError(f"one_hot: a class is {found[0]}; it is not negative")
  return input.long().one_hot(num_classes).long()

def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
  """Draw shares that are nearly one-hot for a small tau. hard: one-hot, with the gradient of the shares."""
  x = checked("gumbel_softmax", logits)
  u = Tensor.rand(*sizes(x), dtype=x.dtype, device=x.device).maximum(2.0 ** -24)
  axis = axis_of(x, dim)
  soft = (x - (-u.log()).log()).div(tau).softmax(axis)
  if not hard: return soft
  count = sizes(x)[axis]
  hot = soft.detach().argmax(axis).one_hot(count).cast(soft.dtype)
  last = [i for i in range(x.ndim) if i != axis]
  order = [last.index(i) if i != axis else x.ndim - 1 for i in range(x.ndim)]
  return hot.permute(order) - soft.detach() + soft
