"""Operators of ONNX on quantized numbers, x = (q - zero_point) * scale, and those of ONNX Runtime (com.microsoft).

Source: ONNX operator schemas.
"""
from __future__ import annotations
from typing import Any

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.nn.onnx.data import dtype_of
from tinyhw.nn.onnx.narrow import NARROW, narrowed
from tinyhw.nn.onnx.operator import Ints, define, operator
from tinyhw.nn.onnx.ops.math import cast_number
from tinyhw.nn.onnx.ops.windows import convolve, per_channel
from tinyhw.nn.onnx.ops.shape import axis_of, sizes
from tinyhw.tensor import Tensor

MICROSOFT = "com.microsoft"

def _aligned(v: Tensor, x: Tensor, axis: int, block_size: int) -> Tensor:
  """Return a scale or zero point in a shape that broadcasts with x. It has one number, one per element of an axis, or
  one per block of an axis."""
  if v.numel() == 1: return v.reshape([1] * x.ndim)
  axis = axis_of(axis, x.ndim)
  if v.ndim == 1 and not block_size:
    if v.shape[0] != x.shape[axis]: raise ShapeError(f"{v.shape[0]} scales for axis {axis} of {x.shape}")
    return v.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
  if v.ndim != x.ndim: raise ShapeError(f"scales of shape {v.shape} for blocks of {x.shape}")
  if not block_size: block_size = -(-int(x.shape[axis]) // int(v.shape[axis]))
  return v.repeat_interleave(block_size, axis).shrink([(0, d) if i == axis else (0, n)
                                                       for i, (d, n) in enumerate(zip(sizes(x), sizes(v)))])

def _limits(number: int | None, dtype: DType) -> tuple[int, int]:
  """Return the least and largest number of an integer type."""
  if number in NARROW: return NARROW[number].limits
  return int(dtype.min), int(dtype.max)

def quantize(x: Tensor, scale: Tensor, zero: Tensor | None, dtype: DType, limits: tuple[int, int]) -> Tensor:
  """Quantize: round to the nearest (ties to even) and saturate. scale and zero broadcast with x."""
  scaled = x.cast(dtypes.float32) / scale.cast(dtypes.float32)
  if dtypes.is_float(dtype):
    return cast_number(scaled if zero is None else scaled + zero.cast(dtypes.float32), _number(dtype))
  rounded = scaled.round() if zero is None else scaled.round() + zero.cast(dtypes.float32)
  if dtype.itemsize < 4: return rounded.clamp(*limits).cast(dtype)
  return rounded.cast(dtypes.float64).clamp(*limits).cast(dtypes.int64).cast(dtype)

# as in TensorProto.DataType
_NUMBERS = {dtypes.fp8e4m3: 17, dtypes.fp8e4m3fnuz: 18, dtypes.fp8e5m2: 19, dtypes.fp8e5m2fnuz: 20}
def _number(dtype: DType) -> int:
  if dtype not in _NUMBERS: raise ArgumentError(f"cannot quantize to {dtype}")
  return _NUMBERS[dtype]

def quantize_linear(x: Tensor, scale: Tensor, zero: Tensor | None = None, *, axis: int = 1, block_size: int = 0,
                    output_dtype: int = 0,
                    precision: int = 0, saturate: int = 1) -> Tensor:
  if output_dtype: dtype = NARROW[output_dtype].holder if output_dtype in NARROW else dtype_of(output_dtype)
  else: dtype = dtypes.uint8 if zero is None else zero.dtype
  s = _aligned(scale, x, axis, block_size)
  z = None if zero is None else _aligned(zero, x, axis, block_size)
  if output_dtype in NARROW and dtypes.is_float(dtype):
    y = x.cast(dtypes.float32) / s.cast(dtypes.float32)
    return narrowed(y if z is None else y + z.cast(dtypes.float32), output_dtype).reshape(x.shape)
  if not saturate and dtype in dtypes.fp8s: return cast_number(x / s, _number(dtype), False)
  return quantize(x, s, z, dtype, _limits(output_dtype, dtype) if dtypes.is_int(dtype) else (0, 0)).reshape(x.shape)

def dequantize(x: Tensor, scale: Tensor, zero: Tensor | None, axis: int = 1, block_size: int = 0,
               dtype: DType | None = None) -> Tensor:
  """Return (x - zero) * scale, with the type of scale, or another."""
  wide = x.cast(dtypes.int32) if dtypes.is_int(x.dtype) else x.cast(dtypes.float32)
  if zero is not None: wide = wide - _aligned(zero, x, axis, block_size).cast(wide.dtype)
  factor = _aligned(scale, x, axis, block_size).cast(dtypes.float32)
  return (wide.cast(dtypes.float32) * factor).cast(dtype or scale.dtype).reshape(x.shape)

def dequantize_linear(x: Tensor, scale: Tensor, zero: Tensor | None = None, *, axis: int = 1, block_size: int = 0,
                      output_dtype: int = 0) -> Tensor:
  return dequantize(x, scale, zero, axis, block_size, dtype_of(output_dtype) if output_dtype else None)

for _domain in ("", MICROSOFT):
  define("QuantizeLinear", quantize_linear, 1 if _domain else 10, _domain)
  define("DequantizeLinear", dequantize_linear, 1 if _domain else 10, _domain)

@operator("DynamicQuantizeLinear", 11)
def dynamic_quantize_linear(x: Tensor) -> Any:
  """Quantize to uint8, with a scale and zero point computed from the range of x. Return all three."""
  low, high = x.min().minimum(0), x.max().maximum(0)
  scale = (high - low) / 255
  safe = scale.eq(0).where(1.0, scale)
  zero = (-low / safe).clamp(0, 255).round()
  y = ((x / safe).round() + zero).clamp(0, 255).cast(dtypes.uint8)
  return y, scale, zero.cast(dtypes.uint8)

# ***** integer products *****

def _centred(x: Tensor, zero: Tensor | None) -> Tensor:
  wide = x.cast(dtypes.int32)
  return wide if zero is None else wide - zero.cast(dtypes.int32)

def _row_zero(zero: Tensor | None) -> Tensor | None:
  """Return the zero point of the left factor of a product: one per row."""
  return zero.unsqueeze(-1) if zero is not None and zero.ndim == 1 and zero.shape[0] != 1 else zero

@operator("MatMulInteger", 10)
def matmul_integer(a: Tensor, b: Tensor, a_zero: Tensor | None = None, b_zero: Tensor | None = None) -> Tensor:
  return _centred(a, _row_zero(a_zero)).matmul(_centred(b, b_zero))

@operator("MatMulIntegerToFloat", 1, MICROSOFT)
def matmul_integer_to_float(a: Tensor, b: Tensor, a_scale: Tensor, b_scale: Tensor, a_zero: Tensor | None = None,
                            b_zero: Tensor | None = None,
                            bias: Tensor | None = None) -> Tensor:
  y = matmul_integer(a, b, a_zero, b_zero).cast(dtypes.float32) * a_scale * b_scale
  return y if bias is None else y + bias

@operator("DynamicQuantizeMatMul", 1, MICROSOFT)
def dynamic_quantize_matmul(a: Tensor, b: Tensor, b_scale: Tensor, b_zero: Tensor | None = None,
                            bias: Tensor | None = None) -> Tensor:
  q, scale, zero = dynamic_quantize_linear(a)
  return matmul_integer_to_float(q, b, scale, b_scale, zero, b_zero, bias)

@operator("ConvInteger", 10)
def conv_integer(x: Tensor, w: Tensor, x_zero: Tensor | None = None, w_zero: Tensor | None = None, *,
                 auto_pad: str = "NOTSET",
                 dilations: Ints | None = None, group: int = 1, kernel_shape: Ints | None = None,
                 pads: Ints | None = None,
                 strides: Ints | None = None) -> Tensor:
  wz = (w_zero.reshape(-1, *[1] * (w.ndim - 1)) if w_zero is not None and w_zero.ndim == 1 and w_zero.shape[0] != 1
        else w_zero)
  return convolve(_centred(x, x_zero), _centred(w, wz), None, auto_pad, dilations, group, kernel_shape, pads, strides,
                  dtypes.int32)

@operator("QLinearMatMul", 21)
@operator("QLinearMatMul", 10)
def qlinear_matmul(a: Tensor, a_scale: Tensor, a_zero: Tensor, b: Tensor, b_scale: Tensor, b_zero: Tensor,
                   y_scale: Tensor, y_zero: Tensor) -> Tensor:
  product = _centred(a, _row_zero(a_zero)).matmul(_centred(b, b_zero)).cast(dtypes.float32)
  rows = _row_zero(a_scale)
  assert rows is not None
  scale = rows.cast(dtypes.float32) * b_scale.cast(dtypes.float32)
  return quantize(product * scale, y_scale, y_zero, y_zero.dtype, _limits(None, y_zero.dtype))

@operator("QLinearConv", 10)
def qlinear_conv(x: Tensor, x_scale: Tensor, x_zero: Tensor, w: Tensor, w_scale: Tensor, w_zero: Tensor,
                 y_scale: Tensor, y_zero: Tensor,
                 b: Tensor | None = None, *, auto_pad: str = "NOTSET", dilations: Ints | None = None, group: int = 1,
                 kernel_shape: Ints | None = None, pads: Ints | None = None, strides: Ints | None = None) -> Tensor:
  total = conv_integer(x, w, x_zero, w_zero, auto_pad=auto_pad, dilations=dilations, group=group,
                       kernel_shape=kernel_shape, pads=pads,
                       strides=strides)
  if b is not None: total = total + per_channel(b.cast(dtypes.int32), x.ndim)
  scale = w_scale.reshape(1, -1, *[1] * (x.ndim - 2)) if w_scale.ndim else w_scale
  return quantize(total.cast(dtypes.float32) * (x_scale * scale), y_scale, y_zero, y_zero.dtype,
                  _limits(None, y_zero.dtype))

# ***** ONNX Runtime's operators between quantized tensors: computed on the dequantized numbers *****

def _requantized(y: Tensor, scale: Tensor, zero: Tensor | None, like: Tensor) -> Tensor:
  dtype = like.dtype if zero is None else zero.dtype
  return quantize(y, scale, zero, dtype, _limits(None, dtype))

@operator("QLinearAdd", 1, MICROSOFT)
def qlinear_add(a: Tensor, a_scale: Tensor, a_zero: Tensor | None, b: Tensor, b_scale: Tensor, b_zero: Tensor | None,
                c_scale: Tensor,
                c_zero: Tensor | None = None) -> Tensor:
  return _requantized(dequantize(a, a_scale, a_zero) + dequantize(b, b_scale, b_zero), c_scale, c_zero, a)

@operator("QLinearMul", 1, MICROSOFT)
def qlinear_mul(a: Tensor, a_scale: Tensor, a_zero: Tensor | None, b: Tensor, b_scale: Tensor, b_zero: Tensor | None,
                c_scale: Tensor,
                c_zero: Tensor | None = None) -> Tensor:
  return _requantized(dequantize(a, a_scale, a_zero) * dequantize(b, b_scale, b_zero), c_scale, c_zero, a)

@operator("QLinearSigmoid", 1, MICROSOFT)
def qlinear_sigmoid(x: Tensor, x_scale: Tensor, x_zero: Tensor | None, y_scale: Tensor,
                    y_zero: Tensor | None = None) -> Tensor:
  return _requantized(dequantize(x, x_scale, x_zero).sigmoid(), y_scale, y_zero, x)

@operator("QLinearLeakyRelu", 1, MICROSOFT)
def qlinear_leaky_relu(x: Tensor, x_scale: Tensor, x_zero: Tensor | None, y_scale: Tensor, y_zero: Tensor | None = None,
                       *,
                       alpha: float = 0.01) -> Tensor:
  return _requantized(dequantize(x, x_scale, x_zero).leaky_relu(alpha), y_scale, y_zero, x)

@operator("QLinearGlobalAveragePool", 1, MICROSOFT)
def qlinear_global_average_pool(x: Tensor, x_scale: Tensor, x_zero: Tensor | None, y_scale: Tensor,
                                y_zero: Tensor | None = None, *,
                                channels_last: int = 0) -> Tensor:
  axes = tuple(range(1, x.ndim - 1)) if channels_last else tuple(range(2, x.ndim))
  return _requantized(dequantize(x, x_scale, x_zero).mean(axes, keepdim=True), y_scale, y_zero, x)
