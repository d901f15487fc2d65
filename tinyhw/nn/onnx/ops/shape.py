"""Operators of ONNX that create and move elements. Source: ONNX operator schemas (ai.onnx)."""
from __future__ import annotations
import math
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, IndexRangeError, ShapeError
from tinyhw.nn.onnx.data import dtype_of
from tinyhw.nn.onnx.operator import (
  Floats, Int, Ints, Known, Outputs, Strings, Value, as_numbers, as_tensor, of_numbers, operator)
from tinyhw.nn.onnx.texts import TextTensor
from tinyhw.tensor import Tensor

MOST_ELEMENTS = 1 << 31   # for operators that create tensors from numbers alone (Range, ConstantOfShape, OneHot)

def sizes(x: Tensor) -> tuple[int, ...]: return tuple(int(d) for d in x.shape)

def axis_of(axis: int, ndim: int) -> int:
  """Return an axis, counted from the front. Raises IndexRangeError."""
  if not -ndim <= axis < ndim: raise IndexRangeError(f"axis {axis} is outside of {ndim} axes")
  return axis % ndim

def check_count(count: int, what: str) -> None:
  if count > MOST_ELEMENTS: raise ArgumentError(f"{what} makes {count} elements, more than {MOST_ELEMENTS}")

# ***** creation *****

@operator("Constant")
def constant(*, sparse_value: Tensor | None = None, value: Value | None = None, value_float: float | None = None,
             value_floats: Floats | None = None, value_int: int | None = None, value_ints: Ints | None = None,
             value_string: str | None = None, value_strings: Strings | None = None) -> Any:
  """Return the attribute that is given."""
  if value is not None: return value
  if sparse_value is not None: return sparse_value
  if value_string is not None: return TextTensor([value_string], ())
  if value_strings is not None: return TextTensor(value_strings)
  if value_float is not None: return of_numbers([value_float], dtypes.float32, ())
  if value_int is not None: return of_numbers([value_int], dtypes.int64, ())
  if value_floats is not None: return of_numbers(value_floats, dtypes.float32)
  if value_ints is not None: return of_numbers(value_ints)
  raise ArgumentError("a Constant has one of value, sparse_value, value_float, value_floats, value_int, value_ints, "
                      "value_string and value_strings")

@operator("ConstantOfShape", 9)
def constant_of_shape(shape: Ints, *, value: Tensor | None = None) -> Tensor:
  check_count(math.prod(shape), "ConstantOfShape")
  if any(d < 0 for d in shape): raise ShapeError(f"a shape has no negative sizes: {shape}")
  if value is None: return Tensor.zeros(*shape, dtype=dtypes.float32)
  return Tensor.full(tuple(shape), value.item(), dtype=value.dtype)

@operator("Shape")
def shape_of(x: Tensor, *, start: int = 0, end: int | None = None) -> Known:
  return of_numbers(sizes(x)[slice(start, end)])
@operator("Size")
def size_of(x: Tensor) -> Known: return of_numbers([math.prod(sizes(x))], dtypes.int64, ())

@operator("Range", 11)
def range_of(start: Value, limit: Value, delta: Value, *, stash_type: int = 1) -> Tensor:
  """Return numbers from start to before limit. The three inputs are read."""
  a, b, step = (as_numbers(v)[0] for v in (start, limit, delta))
  if not step or not all(map(math.isfinite, (a, b, step))):
    raise ArgumentError(f"Range from {a} to {b} by {step} has no end")
  count = max(0, math.ceil((b - a) / step))
  check_count(count, "Range")
  kind = as_tensor(start).dtype
  whole: Tensor = Tensor.arange(count, dtype=kind if dtypes.is_int(kind) else dtypes.float64)
  return whole.mul(step).add(a).cast(kind)

@operator("EyeLike")
def eye_like(x: Tensor, *, dtype: int | None = None, k: int = 0) -> Tensor:
  if x.ndim != 2: raise ShapeError(f"EyeLike wants a matrix, not shape {x.shape}")
  rows, columns = sizes(x)
  place = Tensor.arange(columns, device=x.device).reshape(1, -1) - Tensor.arange(rows, device=x.device).reshape(-1, 1)
  return place.eq(k).cast(x.dtype if dtype is None else dtype_of(dtype))

@operator("OneHot", 9)
def one_hot(indices: Tensor, depth: Value, values: Tensor, *, axis: int = -1) -> Tensor:
  """Return a one-hot encoding. values: (off, on). Indices from -depth on count from the end. Other indices outside of
  the range give off everywhere."""
  n = int(as_numbers(depth)[0])
  check_count(n * math.prod(sizes(indices)), "OneHot")
  axis = axis_of(axis, indices.ndim + 1)
  index = indices.cast(dtypes.int64)
  index = (index < 0).where(index + n, index).unsqueeze(axis)
  place = Tensor.arange(n, dtype=dtypes.int64,
                        device=indices.device).reshape([-1 if i == axis else 1 for i in range(indices.ndim + 1)])
  return index.eq(place).where(values[1], values[0])

# ***** moving *****

@operator("Reshape", 5)
def reshape(x: Tensor, shape: Ints, *, allowzero: int = 0) -> Tensor:
  if not allowzero:
    if any(d == 0 and i >= x.ndim for i, d in enumerate(shape)):
      raise ShapeError(f"0 in the shape {shape} keeps an axis that {x.shape} has not")
    shape = [int(x.shape[i]) if d == 0 else d for i, d in enumerate(shape)]
  return x.reshape(shape)

@operator("Flatten")
def flatten(x: Tensor, *, axis: int = 1) -> Tensor:
  axis = axis if axis == x.ndim else axis_of(axis, x.ndim)
  return x.reshape(math.prod(sizes(x)[:axis]), math.prod(sizes(x)[axis:]))

@operator("Transpose")
def transpose(x: Tensor, *, perm: Ints | None = None) -> Tensor:
  return x.permute(tuple(reversed(range(x.ndim))) if perm is None else perm)

def _squeezed(x: Tensor, axes: list[int] | None) -> Tensor:
  wanted = {i for i, d in enumerate(sizes(x)) if d == 1} if axes is None else {axis_of(a, x.ndim) for a in axes}
  if any(x.shape[a] != 1 for a in wanted):
    raise ShapeError(f"cannot remove the axes {axes} of {x.shape}: not all have size 1")
  return x.reshape([d for i, d in enumerate(sizes(x)) if i not in wanted])

def _unsqueezed(x: Tensor, axes: list[int]) -> Tensor:
  n = x.ndim + len(axes)
  wanted = {axis_of(a, n) for a in axes}
  if len(wanted) != len(axes): raise ArgumentError(f"an axis stands twice in {axes}")
  rest = iter(sizes(x))
  return x.reshape([1 if i in wanted else next(rest) for i in range(n)])

@operator("Squeeze")
def squeeze_by_attribute(x: Tensor, *, axes: Ints | None = None) -> Tensor: return _squeezed(x, axes)
@operator("Squeeze", 13)
def squeeze(x: Tensor, axes: Ints | None = None) -> Tensor: return _squeezed(x, axes)
@operator("Unsqueeze")
def unsqueeze_by_attribute(x: Tensor, *, axes: Ints) -> Tensor: return _unsqueezed(x, axes)
@operator("Unsqueeze", 13)
def unsqueeze(x: Tensor, axes: Ints) -> Tensor: return _unsqueezed(x, axes)

@operator("Expand", 8)
def expand(x: Tensor, shape: Ints) -> Tensor:
  """Broadcast in both directions: where the shape has 1, the size of x stays."""
  n = max(x.ndim, len(shape))
  own, wanted = (1,) * (n - x.ndim) + sizes(x), [1] * (n - len(shape)) + shape
  return x.reshape(own).expand([d if w == 1 else w for d, w in zip(own, wanted)])

@operator("Tile", 6)
def tile(x: Tensor, repeats: Ints) -> Tensor:
  if len(repeats) != x.ndim or any(r < 0 for r in repeats):
    raise ShapeError(f"Tile wants a count for each axis of {x.shape}, not {repeats}")
  check_count(math.prod(d * r for d, r in zip(sizes(x), repeats)), "Tile")
  if 0 in repeats: return Tensor.zeros(*[d * r for d, r in zip(sizes(x), repeats)], dtype=x.dtype, device=x.device)
  return x.repeat(repeats) if x.ndim else x

@operator("Concat")
def concat(first: Tensor, *rest: Tensor, axis: int = 1) -> Tensor: return first.cat(*rest, dim=axis) if rest else first

def _split(x: Tensor, parts: list[int] | None, axis: int, count: int) -> tuple[Tensor, ...]:
  axis = axis_of(axis, x.ndim)
  size = int(x.shape[axis])
  if parts is None:
    if count < 1: raise ArgumentError(f"cannot split into {count} parts")
    each = -(-size // count)
    parts = [max(0, min(each, size - i * each)) for i in range(count)]
  if sum(parts) != size or any(p < 0 for p in parts):
    raise ShapeError(f"the parts {parts} do not make the {size} of axis {axis}")
  return x.split(parts, axis)

@operator("Split", 2)
def split_by_attribute(x: Tensor, *, axis: int = 0, split: Ints | None = None, outputs: Outputs = 1) -> Any:
  return _split(x, split, axis, outputs)
@operator("Split", 13)
def split(x: Tensor, parts: Ints | None = None, *, axis: int = 0, num_outputs: int | None = None,
          outputs: Outputs = 1) -> Any:
  return _split(x, parts, axis, outputs if num_outputs is None else num_outputs)

def _sliced(x: Tensor, starts: list[int], ends: list[int], axes: list[int] | None, steps: list[int] | None) -> Tensor:
  axes = list(range(len(starts))) if axes is None else axes
  steps = [1] * len(starts) if steps is None else steps
  if not len(starts) == len(ends) == len(axes) == len(steps):
    raise ArgumentError("Slice has starts, ends, axes and steps of different lengths")
  if 0 in steps: raise ArgumentError("Slice has a step of 0")
  index = [slice(None)] * x.ndim
  for a, b, axis, step in zip(starts, ends, axes, steps):
    axis = axis_of(axis, x.ndim)
    n = int(x.shape[axis])
    first, last, step = slice(a, b, max(-n - 1, min(n + 1, step))).indices(n)
    if len(range(first, last, step)) == 0: index[axis] = slice(0, 0)
    else: index[axis] = slice(first, last if last >= 0 else None, step)
  return x[tuple(index)]

@operator("Slice")
def slice_by_attributes(x: Tensor, *, starts: Ints, ends: Ints, axes: Ints | None = None) -> Tensor:
  return _sliced(x, starts, ends, axes, None)
@operator("Slice", 10)
def slice_(x: Tensor, starts: Ints, ends: Ints, axes: Ints | None = None, steps: Ints | None = None) -> Tensor:
  return _sliced(x, starts, ends, axes, steps)

# ONNX's name: the mode of Tensor.pad
_PAD_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}

def _padded(x: Tensor, pads: list[int], mode: str, value: Any, axes: list[int] | None) -> Tensor:
  where = list(range(x.ndim)) if axes is None else [axis_of(a, x.ndim) for a in axes]
  if len(pads) != 2 * len(where):
    raise ShapeError(f"Pad wants two counts for each of {len(where)} axes, not {len(pads)}")
  if mode not in _PAD_MODES: raise ArgumentError(f"the mode of Pad is one of {', '.join(_PAD_MODES)}, not {mode!r}")
  pairs = [(0, 0)] * x.ndim
  for i, axis in enumerate(where): pairs[axis] = pads[i], pads[i + len(where)]
  check_count(math.prod(d + max(0, b + e) for d, (b, e) in zip(sizes(x), pairs)), "Pad")
  while mode == "wrap" and any(max(p) > d > 0 for p, d in zip(pairs, sizes(x))):   # the padding is longer than the axis
    step = [(min(b, d), min(e, d)) for (b, e), d in zip(pairs, sizes(x))]
    x, pairs = x.pad(step, mode="circular"), [(b - s, e - t) for (b, e), (s, t) in zip(pairs, step)]
  return x.pad(pairs, mode=_PAD_MODES[mode], value=value)

@operator("Pad", 2)
def pad_by_attributes(x: Tensor, *, pads: Ints, mode: str = "constant", value: float = 0.0) -> Tensor:
  return _padded(x, pads, mode, value, None)
@operator("Pad", 11)
def pad(x: Tensor, pads: Ints, value: Value = None, axes: Ints | None = None, *, mode: str = "constant") -> Tensor:
  fill = as_numbers(value)[:1] if value is not None else []
  return _padded(x, pads, mode, fill[0] if fill else x.dtype.const(0), axes)

@operator("CenterCropPad", 18)
def center_crop_pad(x: Tensor, shape: Ints, *, axes: Ints | None = None) -> Tensor:
  where = list(range(x.ndim)) if axes is None else [axis_of(a, x.ndim) for a in axes]
  if len(where) != len(shape) or any(d < 0 for d in shape):
    raise ShapeError(f"CenterCropPad wants a size for each of {len(where)} axes, not {shape}")
  check_count(math.prod(shape), "CenterCropPad")
  for axis, size in zip(where, shape):
    d = int(x.shape[axis])
    begin = (d - size) // 2 if d >= size else 0
    if d > size: x = x.shrink([(begin, begin + size) if i == axis else (0, n) for i, n in enumerate(sizes(x))])
    else: x = x.pad([((size - d) // 2, size - d - (size - d) // 2) if i == axis else (0, 0) for i in range(x.ndim)])
  return x

def _blocks(x: Tensor, blocksize: int) -> tuple[int, int, int, int]:
  if x.ndim != 4 or blocksize < 1: raise ShapeError(f"blocks of {blocksize} need a shape (N, C, H, W), not {x.shape}")
  return sizes(x)  # type: ignore[return-value]  # it has four sizes

@operator("DepthToSpace")
def depth_to_space(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
  n, c, h, w = _blocks(x, blocksize)
  b = blocksize
  if mode == "DCR": y = x.reshape(n, b, b, c // (b * b), h, w).permute(0, 3, 4, 1, 5, 2)
  elif mode == "CRD": y = x.reshape(n, c // (b * b), b, b, h, w).permute(0, 1, 4, 2, 5, 3)
  else: raise ArgumentError(f"mode is DCR or CRD, not {mode!r}")
  return y.reshape(n, c // (b * b), h * b, w * b)

@operator("SpaceToDepth")
def space_to_depth(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
  n, c, h, w = _blocks(x, blocksize)
  b = blocksize
  if mode not in ("DCR", "CRD"): raise ArgumentError(f"mode is DCR or CRD, not {mode!r}")
  parts = x.reshape(n, c, h // b, b, w // b, b).permute((0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4))
  return parts.reshape(n, c * b * b, h // b, w // b)

@operator("Trilu", 14)
def trilu(x: Tensor, k: Int | None = None, *, upper: int = 1) -> Tensor:
  if x.ndim < 2: raise ShapeError(f"Trilu wants matrices, not shape {x.shape}")
  rows = Tensor.arange(int(x.shape[-2]), device=x.device).reshape(-1, 1)
  columns = Tensor.arange(int(x.shape[-1]), device=x.device).reshape(1, -1)
  far = int(x.shape[-2]) + int(x.shape[-1])
  limit = max(-far, min(far, k or 0))
  return ((columns - rows >= limit) if upper else (columns - rows <= limit)).where(x, x.zeros_like())

@operator("ReverseSequence", 10)
def reverse_sequence(x: Tensor, lengths: Tensor, *, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
  """Reverse the first lengths[b] elements along the time axis. The others stay."""
  if {batch_axis, time_axis} != {0, 1} or x.ndim < 2:
    raise ArgumentError("ReverseSequence has the batch and the time in axes 0 and 1")
  places = Tensor.arange(int(x.shape[time_axis]), device=x.device).reshape(*([1, -1] if time_axis else [-1, 1]))
  ends = lengths.cast(dtypes.int32).reshape(*([-1, 1] if time_axis else [1, -1]))
  index = (places < ends).where(ends - 1 - places, places)
  return x.gather(time_axis, index.reshape(*index.shape, *[1] * (x.ndim - 2)).expand(x.shape))
