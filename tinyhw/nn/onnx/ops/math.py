"""Operators of ONNX that compute element by element, reduce, or multiply matrices.

Source: ONNX operator schemas (ai.onnx).
"""
from __future__ import annotations
from collections.abc import Callable
import math
from typing import Any

from tinyhw.dtype import dtypes, least_upper_dtype
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.nn.onnx.data import STRING, dtype_of, wide
from tinyhw.nn.onnx.narrow import NARROW, narrowed
from tinyhw.nn.onnx.operator import Int, Ints, Value, as_tensor, define, operator
from tinyhw.nn.onnx.ops.text import as_text, from_text
from tinyhw.nn.onnx.texts import TextTensor
from tinyhw.tensor import Tensor

# ***** one operand *****

def _unary(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
  def compute(x: Tensor) -> Tensor: return function(x)
  return compute

def _round(x: Tensor) -> Tensor: return x.round() if dtypes.is_float(x.dtype) else x

for _name, _function in {
  "Abs": Tensor.abs, "Neg": Tensor.neg, "Sign": Tensor.sign, "Floor": Tensor.floor, "Ceil": Tensor.ceil,
  "Round": _round, "Sqrt": Tensor.sqrt,
  "Exp": Tensor.exp, "Log": Tensor.log, "Erf": Tensor.erf, "Reciprocal": Tensor.reciprocal, "Not": Tensor.logical_not,
  "BitwiseNot": Tensor.bitwise_not, "IsNaN": Tensor.isnan,
  "Sin": Tensor.sin, "Cos": Tensor.cos, "Tan": Tensor.tan, "Asin": Tensor.asin, "Acos": Tensor.acos,
  "Atan": Tensor.atan, "Sinh": Tensor.sinh,
  "Cosh": Tensor.cosh, "Tanh": Tensor.tanh, "Asinh": Tensor.asinh, "Acosh": Tensor.acosh, "Atanh": Tensor.atanh,
  "Relu": Tensor.relu, "Sigmoid": Tensor.sigmoid, "Softplus": Tensor.softplus, "Softsign": Tensor.softsign,
  "HardSwish": Tensor.hardswish,
  "Mish": Tensor.mish,
}.items(): define(_name, _unary(_function))

@operator("LeakyRelu")
def leaky_relu(x: Tensor, *, alpha: float = 0.01) -> Tensor: return x.leaky_relu(alpha)
@operator("Elu")
def elu(x: Tensor, *, alpha: float = 1.0) -> Tensor: return x.elu(alpha)
@operator("Celu")
def celu(x: Tensor, *, alpha: float = 1.0) -> Tensor: return x.celu(alpha)
@operator("Selu")
def selu(x: Tensor, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875) -> Tensor:
  return x.selu(alpha, gamma)
@operator("HardSigmoid")
def hard_sigmoid(x: Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> Tensor: return x.hardsigmoid(alpha, beta)
@operator("ThresholdedRelu")
def thresholded_relu(x: Tensor, *, alpha: float = 1.0) -> Tensor: return (x > alpha).where(x, 0)
@operator("Swish", 24)
def swish(x: Tensor, *, alpha: float = 1.0) -> Tensor: return x * (x * alpha).sigmoid()
@operator("SwiGLU", 28)
def swiglu(gate: Tensor, x: Tensor, *, alpha: float = 1.0) -> Tensor:
  if gate.shape != x.shape: raise ShapeError(f"SwiGLU wants two equal shapes, not {gate.shape} and {x.shape}")
  return (swish(wide(gate), alpha=alpha) * wide(x)).cast(x.dtype)
@operator("PRelu", 7)
def prelu(x: Tensor, slope: Tensor) -> Tensor: return (x < 0).where(x * slope, x)
@operator("PRelu")
def prelu_of_channels(x: Tensor, slope: Tensor) -> Tensor:
  """Until version 7, a slope of several numbers has one for each channel."""
  return prelu(x, slope.reshape(1, -1, *[1] * (x.ndim - 2)) if slope.ndim == 1 and x.ndim > 1 else slope)
@operator("Gelu", 20)
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor: return x.gelu(approximate)

@operator("Shrink")
def shrink(x: Tensor, *, bias: float = 0.0, lambd: float = 0.5) -> Tensor:
  """Move elements towards zero by bias. Elements within lambd of zero become zero."""
  zero = x.zeros_like()
  return (x < -lambd).where((x + bias).cast(x.dtype), (x > lambd).where((x - bias).cast(x.dtype), zero))

@operator("IsInf")
def is_inf(x: Tensor, *, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
  return x.isinf(bool(detect_positive), bool(detect_negative))

@operator("Clip", 6)
def clip_by_attributes(x: Tensor, *, min: float | None = None, max: float | None = None) -> Tensor:
  return _clipped(x, min, max)
@operator("Clip", 11)
def clip(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor: return _clipped(x, low, high)

def _clipped(x: Tensor, low: Any, high: Any) -> Tensor:
  if low is not None: x = x.maximum(low)
  return x if high is None else x.minimum(high)

@operator("Cast", 6)
def cast(x: Value, *, to: int, saturate: int = 1, round_mode: str = "up") -> Any:
  if to == STRING: return x if isinstance(x, TextTensor) else as_text(x)
  if not isinstance(x, TextTensor): return cast_number(as_tensor(x), to, bool(saturate), round_mode)
  return from_text(x, dtype_of(to)) if to not in NARROW else narrowed(from_text(x, dtypes.float32).tensor, to)

def cast_number(x: Tensor, to: int, saturate: bool = True, round_mode: str = "up") -> Tensor:
  """Cast to a type of numbers, by its number in TensorProto.DataType."""
  return narrowed(x, to, saturate, round_mode) if to in NARROW else _cast(x, dtype_of(to), saturate)

@operator("CastLike")
def cast_like(x: Value, like: Value, *, saturate: int = 1, round_mode: str = "up") -> Any:
  if isinstance(like, TextTensor): return cast(x, to=STRING)
  return from_text(x, like.dtype) if isinstance(x, TextTensor) else _cast(as_tensor(x), like.dtype, bool(saturate))

@operator("BitCast", 26)
def bit_cast(x: Tensor, *, to: int) -> Tensor:
  """Keep the bits. A bool is a byte of 0 or 1."""
  if x.dtype is dtypes.bool: x = x.cast(dtypes.uint8)
  return x.ne(0) if dtype_of(to) is dtypes.bool else x.bitcast(dtype_of(to))

def _cast(x: Tensor, dtype: Any, saturate: bool) -> Tensor:
  """Convert to a type. If saturate, numbers too large for an 8-bit float become its largest number."""
  if dtype not in dtypes.fp8s or not saturate or not dtypes.is_float(x.dtype): return x.cast(dtype)
  largest = 57344.0 if dtype in (dtypes.fp8e5m2, dtypes.fp8e5m2fnuz) else float(dtype.max)
  wide = x.cast(least_upper_dtype(x.dtype, dtypes.float32))
  return wide.isnan().where(wide, wide.clamp(-largest, largest)).cast(dtype)

# ***** two operands and more *****

def _binary(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
  def compute(a: Tensor, b: Tensor) -> Tensor: return function(a, b)
  return compute

def _divide(a: Tensor, b: Tensor) -> Tensor:
  return a.div(b) if dtypes.is_float(a.dtype) else a.div(b, rounding_mode="trunc").cast(a.dtype)
def _logical(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
  return _binary(lambda a, b: function(a.bool(), b.bool()))

BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
  "Add": Tensor.add, "Sub": Tensor.sub, "Mul": Tensor.mul, "Div": _divide, "Equal": Tensor.eq, "Less": Tensor.lt,
  "Greater": Tensor.gt,
  "LessOrEqual": Tensor.le, "GreaterOrEqual": Tensor.ge, "BitwiseAnd": Tensor.bitwise_and,
  "BitwiseOr": Tensor.bitwise_or,
  "BitwiseXor": Tensor.bitwise_xor, "MatMul": Tensor.matmul,
}
LOGICAL = {"And": _logical(Tensor.bitwise_and), "Or": _logical(Tensor.bitwise_or), "Xor": _logical(Tensor.bitwise_xor)}
# Operators of version 7. Earlier ones are in old.py.
for _name, _two in {**BINARY, **LOGICAL}.items(): define(_name, _binary(_two), 1 if _name == "MatMul" else 7)

@operator("Pow", 7)
def power(x: Tensor, y: Tensor) -> Tensor:
  """Return x to the power y, with the type of x. Integers of up to 53 bits are exact."""
  if dtypes.is_float(x.dtype): return x.pow(y.cast(x.dtype))
  if dtypes.is_float(y.dtype): return x.cast(dtypes.float64).pow(y.cast(dtypes.float64)).cast(x.dtype)
  return x.pow(y.cast(x.dtype)).cast(x.dtype)

@operator("Identity")
def identity(x: Value) -> Value: return x

@operator("Mod")
def modulo(a: Tensor, b: Tensor, *, fmod: int = 0) -> Tensor: return a.fmod(b) if fmod else a.mod(b)

@operator("BitShift")
def bit_shift(a: Tensor, b: Tensor, *, direction: str) -> Tensor:
  if direction not in ("LEFT", "RIGHT"): raise ArgumentError(f"direction is LEFT or RIGHT, not {direction!r}")
  return a.lshift(b) if direction == "LEFT" else a.rshift(b)

@operator("Where")
def where(condition: Tensor, a: Tensor, b: Tensor) -> Tensor: return condition.bool().where(a, b)

def _folded(function: Callable[[Tensor, Tensor], Tensor], mean: bool = False) -> Callable[..., Tensor]:
  def compute(first: Tensor, *rest: Tensor) -> Tensor:
    total = wide(first) if mean else first
    for x in rest: total = function(total, x)
    return (total / (len(rest) + 1)).cast(first.dtype) if mean else total
  return compute

define("Sum", _folded(Tensor.add))
define("Mean", _folded(Tensor.add, mean=True))
define("Max", _folded(Tensor.maximum))
define("Min", _folded(Tensor.minimum))

# ***** reductions *****

def _axes(x: Tensor, axes: list[int] | None, noop: int = 0) -> tuple[int, ...] | None:
  """Return the axes to reduce. No given axes mean all, or none if noop."""
  if axes: return tuple(axes)
  return () if noop else tuple(range(x.ndim))

def _extreme(name: str) -> Callable[[Tensor, tuple[int, ...], bool], Tensor]:
  def compute(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    if 0 not in x.shape: return x.max(axes, keep) if name == "max" else x.min(axes, keep)
    kept = x.sum(axes, keep)   # for its shape: nothing is reduced
    return kept.zeros_like(dtype=x.dtype) + (x.dtype.min if name == "max" else x.dtype.max)
  return compute

def _log_sum_exp(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
  if 0 in x.shape: return x.exp().sum(axes, keep).log()
  v = wide(x)
  most = v.max(axes, True)
  most = most.isfinite().where(most, 0)
  total = ((v - most).exp().sum(axes, True).log() + most).cast(x.dtype)
  return total if keep else total.reshape(x.sum(axes).shape)

def _total(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor: return x.sum(axes, keep).cast(x.dtype)

def _of_wide(function: Callable[[Tensor, tuple[int, ...], bool], Tensor]) -> Callable[[Tensor, tuple[int, ...], bool],
                                                                                      Tensor]:
  """Reduce in several steps. Floats use float32 at least, and are rounded once. Integers use their own type."""
  def compute(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    return function(wide(x) if dtypes.is_float(x.dtype) else x, axes, keep).cast(x.dtype)
  return compute

# name: (the reduction, the result for an element where nothing is reduced, or None for the element itself)
_REDUCTIONS: dict[str, tuple[Callable[[Tensor, tuple[int, ...], bool], Tensor], Callable[[Tensor], Tensor] | None]] = {
  "ReduceSum": (_total, None), "ReduceMax": (_extreme("max"), None), "ReduceMin": (_extreme("min"), None),
  "ReduceMean": (lambda x, axes, keep: x.mean(axes, keep).cast(x.dtype), None),
  "ReduceProd": (lambda x, axes, keep: x.prod(axes, keep).cast(x.dtype), None),
  "ReduceL1": (_of_wide(lambda x, axes, keep: x.abs().sum(axes, keep)), Tensor.abs),
  "ReduceL2": (_of_wide(lambda x, axes, keep: wide(x).square().sum(axes, keep).sqrt()), Tensor.abs),
  "ReduceSumSquare": (_of_wide(lambda x, axes, keep: x.square().sum(axes, keep)), Tensor.square),
  "ReduceLogSum": (_of_wide(lambda x, axes, keep: x.sum(axes, keep).log()), Tensor.log),
  "ReduceLogSumExp": (_log_sum_exp, None),
}

def _define_reduction(name: str) -> None:
  reduce, single = _REDUCTIONS[name]
  def run(x: Tensor, axes: tuple[int, ...] | None, keepdims: int) -> Tensor:
    if not axes: return single(x) if single is not None else x   # with no axes, each element is a group of its own
    return reduce(x, axes, bool(keepdims))

  def by_attribute(x: Tensor, *, axes: Ints | None = None, keepdims: int = 1) -> Tensor:
    return run(x, _axes(x, axes), keepdims)
  def by_input(x: Tensor, axes: Ints | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Tensor:
    return run(x, _axes(x, axes, noop_with_empty_axes), keepdims)
  define(name, by_attribute)
  define(name, by_input, 13 if name == "ReduceSum" else 18)

for _name in _REDUCTIONS: _define_reduction(_name)

def _place_of(largest: bool) -> Callable[..., Tensor]:
  def compute(x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    find = Tensor.argmax if largest else Tensor.argmin
    if not select_last_index: return find(x, axis, bool(keepdims)).cast(dtypes.int64)
    return (int(x.shape[axis]) - 1 - find(x.flip(axis), axis, bool(keepdims))).cast(dtypes.int64)
  return compute

define("ArgMax", _place_of(True))
define("ArgMin", _place_of(False))

def _scanned(function: Callable[[Tensor, int], Tensor], start: int) -> Callable[..., Tensor]:
  def compute(x: Tensor, axis: Int, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    if not -x.ndim <= axis < x.ndim: raise ArgumentError(f"axis {axis} is outside of {x.ndim} axes")
    axis %= x.ndim
    if reverse: x = x.flip(axis)
    if exclusive:
      lead = [(1, 0) if i == axis else (0, 0) for i in range(x.ndim)]
      x = x.pad(lead, value=start).shrink([(0, x.shape[i]) for i in range(x.ndim)])
    total = function(x, axis).cast(x.dtype)
    return total.flip(axis) if reverse else total
  return compute

define("CumSum", _scanned(Tensor.cumsum, 0), 11)
define("CumProd", _scanned(Tensor.cumprod, 1), 26)

# ***** softmax *****

def _softmax_versions(name: str, function: Callable[[Tensor, int], Tensor]) -> None:
  def coerced(x: Tensor, *, axis: int = 1) -> Tensor:
    """Until version 13, the input counts as a matrix: the axes from `axis` on are one."""
    axis = axis % x.ndim if axis < 0 else axis
    rows = math.prod(int(d) for d in x.shape[:axis])
    return function(x.reshape(rows, -1), 1).reshape(x.shape)
  def plain(x: Tensor, *, axis: int = -1) -> Tensor: return function(x, axis)
  define(name, coerced)
  define(name, plain, 13)

def _hardmax(x: Tensor, axis: int) -> Tensor:
  axis = axis % x.ndim
  place = Tensor.arange(int(x.shape[axis]), device=x.device).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
  return place.eq(x.argmax(axis, keepdim=True)).cast(x.dtype)

_softmax_versions("Softmax", lambda x, axis: x.softmax(axis))
_softmax_versions("LogSoftmax", lambda x, axis: x.log_softmax(axis))
_softmax_versions("Hardmax", _hardmax)

# ***** matrices *****

@operator("Gemm", 7)
def gemm(a: Tensor, b: Tensor, c: Tensor | None = None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
         transB: int = 0) -> Tensor:
  """Return alpha * A B + beta * C. Either factor may be transposed."""
  product = (a.transpose() if transA else a).matmul(b.transpose() if transB else b,
                                                    dtype=wide(a).dtype if dtypes.is_float(a.dtype) else None)
  if alpha != 1: product = (product * alpha).cast(product.dtype)
  if c is None or beta == 0: return product.cast(a.dtype)
  return (product + (c if beta == 1 else (c * beta).cast(a.dtype))).cast(a.dtype)

@operator("Einsum", 12)
def einsum(*operands: Tensor, equation: str) -> Tensor: return Tensor.einsum(equation, *operands)

@operator("Det", 11)
def determinant(x: Tensor) -> Tensor:
  """Return the determinant over the last two axes, by elimination with pivots."""
  n = int(x.shape[-1])
  if x.ndim < 2 or x.shape[-2] != n: raise ArgumentError(f"a determinant is of square matrices, not of shape {x.shape}")
  m = x.reshape(-1, n, n)
  result = Tensor.ones(m.shape[0], dtype=x.dtype, device=x.device)
  rows = Tensor.arange(n, device=x.device).reshape(1, n, 1)
  for k in range(n):
    column = (rows[:, :, 0] >= k).where(m[:, :, k].abs(), -1.0)
    place = column.argmax(1).reshape(-1, 1, 1)
    pivot_row = rows.eq(place).where(m, 0).sum(1, keepdim=True)
    old_row = m[:, k:k + 1]
    m = rows.eq(k).where(pivot_row, rows.eq(place).where(old_row, m))
    pivot = m[:, k, k]
    result = result * pivot * place.reshape(-1).eq(k).where(1.0, -1.0)
    safe = pivot.eq(0).where(1.0, pivot).reshape(-1, 1, 1)
    m = (rows > k).where(m - m[:, :, k:k + 1] / safe * m[:, k:k + 1], m)
  return result.reshape(x.shape[:-2])
