"""Operators in the form of ONNX's first operator sets, 1 to 6. Source: ONNX operator schemas (ai.onnx).

Operators of two operands broadcast the second only where `broadcast` says so, from `axis` on. Types, shapes and counts
that are inputs today were attributes, and a few attributes had other names or types.
"""
from __future__ import annotations
from collections.abc import Callable
import math
from typing import Any

from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.nn.onnx.data import TYPES
from tinyhw.nn.onnx.operator import Int, Ints, Outputs, Value, define, operator
from tinyhw.nn.onnx.ops.math import BINARY, LOGICAL, cast, clip_by_attributes, gemm, power
from tinyhw.nn.onnx.ops.normalization import instance_normalization
from tinyhw.nn.onnx.ops.random import dropout_by_attribute
from tinyhw.nn.onnx.ops.resize import upsample_by_attribute
from tinyhw.nn.onnx.ops.shape import axis_of, concat, pad_by_attributes, reshape, sizes, split
from tinyhw.nn.onnx.ops.windows import global_lp_pool, lp_pool
from tinyhw.tensor import Tensor

# ***** two operands *****

def stretched(b: Tensor, a: Tensor, axis: int | None) -> Tensor:
  """Return b with axes of size 1 behind its own, so that its first axis is axis `axis` of a. None: the last axes
  match."""
  if axis is None or b.numel() == 1: return b
  behind = a.ndim - axis_of(axis, a.ndim) - b.ndim
  if behind < 0: raise ShapeError(f"{b.shape} from axis {axis} on does not fit into {a.shape}")
  return b.reshape(*b.shape, *[1] * behind)

def _with_broadcast(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
  def compute(a: Tensor, b: Tensor, *, axis: int | None = None, broadcast: int = 0) -> Tensor:
    return function(a, stretched(b, a, axis) if broadcast else b)
  return compute

for _name in ("Add", "Sub", "Mul", "Div", "Equal", "Less", "Greater"): define(_name, _with_broadcast(BINARY[_name]))
for _name in ("And", "Or", "Xor"): define(_name, _with_broadcast(LOGICAL[_name]))
define("Pow", _with_broadcast(power))

@operator("Gemm")
def gemm_of_old(a: Tensor, b: Tensor, c: Tensor, *, alpha: float = 1.0, beta: float = 1.0, broadcast: int = 0,
                transA: int = 0, transB: int = 0) -> Tensor:
  return gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)

# ***** attributes that became inputs, or changed *****

@operator("Cast")
def cast_by_name(x: Value, *, to: str) -> Any:
  """Cast to a type that has the name of TensorProto.DataType, such as FLOAT."""
  number = next((n for n, row in TYPES.items() if row.name.upper() == to.upper()), None)
  if number is None: raise ArgumentError(f"the model asks for the element type {to!r}, which ONNX does not define")
  return cast(x, to=number)

define("Clip", clip_by_attributes)

@operator("Reshape")
def reshape_by_attribute(x: Tensor, *, shape: Ints) -> Tensor: return reshape(x, shape)

@operator("Pad")
def pad_by_paddings(x: Tensor, *, paddings: Ints, mode: str = "constant", value: float = 0.0) -> Tensor:
  return pad_by_attributes(x, pads=paddings, mode=mode, value=value)

@operator("Split")
def split_by_either(x: Tensor, parts: Ints | None = None, *, axis: int = 0, split: Ints | None = None,
                    outputs: Outputs = 1) -> Any:
  return split_parts(x, parts if split is None else split, axis=axis, outputs=outputs)

split_parts = split   # its name is an attribute above

@operator("Tile")
def tile_axis(x: Tensor, tiles: Int, axis: Int) -> Tensor:
  if tiles < 1: raise ArgumentError(f"Tile wants one copy or more, not {tiles}")
  return concat(*[x] * tiles, axis=axis_of(axis, x.ndim))

@operator("Upsample")
def upsample_image(x: Tensor, *, height_scale: float, width_scale: float, mode: str = "nearest") -> Tensor:
  if x.ndim != 4: raise ShapeError(f"Upsample wants a shape (N, C, H, W), not {x.shape}")
  return upsample_by_attribute(x, scales=[1.0, 1.0, height_scale, width_scale], mode=mode)

@operator("Dropout")
def dropout_of_old(x: Tensor, *, is_test: int = 0, ratio: float = 0.5, outputs: Outputs = 1) -> Any:
  """Return the input: a model that runs does not train, whatever is_test says."""
  return dropout_by_attribute(x, ratio=ratio, outputs=outputs)

define("InstanceNormalization", instance_normalization)

def _whole(p: float) -> int:
  if p != int(p): raise ArgumentError(f"p={p} is no whole number")
  return int(p)

@operator("LpPool")
def lp_pool_of_old(x: Tensor, *, kernel_shape: Ints, p: float = 2.0, auto_pad: str = "NOTSET", pads: Ints | None = None,
                   strides: Ints | None = None) -> Tensor:
  return lp_pool(x, kernel_shape=kernel_shape, p=_whole(p), auto_pad=auto_pad, pads=pads, strides=strides)

@operator("GlobalLpPool")
def global_lp_pool_of_old(x: Tensor, *, p: float = 2.0) -> Tensor: return global_lp_pool(x, p=_whole(p))

# ***** regions of interest *****

@operator("MaxRoiPool")
def max_roi_pool(x: Tensor, regions: Tensor, *, pooled_shape: Ints, spatial_scale: float = 1.0) -> Tensor:
  """Return the largest element in each bin of each region. x: (N, C, H, W)  regions: (R, 5), an image's index and two
  corners  ->  (R, C, *pooled_shape). Empty bins have 0. Source: Girshick 2015."""
  if x.ndim != 4 or regions.ndim != 2 or regions.shape[1] != 5 or len(pooled_shape) != 2 or min(pooled_shape) < 1:
    raise ShapeError(f"MaxRoiPool of {x.shape} by regions of {regions.shape} to bins of {pooled_shape}")
  part = x[regions[:, 0].int()]
  corners = (regions[:, 1:] * spatial_scale + 0.5).floor()
  for axis, (first, last, bins) in enumerate(((1, 3, pooled_shape[0]), (0, 2, pooled_shape[1]))):
    inside = _bins(corners[:, first], corners[:, last], bins, sizes(x)[2 + axis])         # (R, bins, size)
    shape = (inside.shape[0], 1, bins, -1, 1) if axis == 0 else (inside.shape[0], 1, 1, bins, inside.shape[2])
    there = inside.reshape(shape).where(part.unsqueeze(2 + axis), -math.inf)
    part = there.max(3 if axis == 0 else 4)
  return part.eq(-math.inf).where(0, part).cast(x.dtype)

def _bins(first: Tensor, last: Tensor, bins: int, size: int) -> Tensor:
  """Return which places of an axis are in which bin: (regions, bins, size) bools."""
  first, length = first.reshape(-1, 1, 1), ((last - first).maximum(0) + 1).reshape(-1, 1, 1)
  k = Tensor.arange(bins, device=first.device).reshape(1, -1, 1)
  place = Tensor.arange(size, device=first.device).reshape(1, 1, -1) - first
  inside: Tensor = (place >= (k * length / bins).floor()) & (place < ((k + 1) * length / bins).ceil())
  return inside
