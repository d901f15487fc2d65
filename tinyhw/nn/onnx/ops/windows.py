"""Operators of ONNX that slide windows over images: convolutions and pooling.

Source: ONNX operator schemas (ai.onnx).
"""
from __future__ import annotations
from collections.abc import Sequence
import math
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.helpers import ceildiv
from tinyhw.methods.convolution import window_view
from tinyhw.nn.onnx.operator import Ints, Outputs, operator
from tinyhw.nn.onnx.data import wide
from tinyhw.nn.onnx.ops.shape import check_count, sizes
from tinyhw.tensor import Tensor

def per_channel(v: Tensor, ndim: int) -> Tensor:
  """Return a vector shaped to broadcast along axis 1."""
  return v.reshape(1, -1, *[1] * (ndim - 2))

# ***** windows *****

def _listed(values: list[int] | None, n: int, default: int, what: str) -> list[int]:
  found = [default] * n if values is None else values
  if len(found) != n: raise ShapeError(f"{what}={found} has not one number for each of {n} spatial axes")
  if any(v < (0 if what == "output_padding" else 1) for v in found):
    raise ArgumentError(f"{what}={found} has a number that is too small")
  return found

def _pads(auto_pad: str, pads: list[int] | None, x: Sequence[int], kernel: Sequence[int], strides: Sequence[int],
          dilations: Sequence[int]) -> list[tuple[int, int]]:
  """Return (before, after) for each spatial axis. Raises ArgumentError for an unknown auto_pad."""
  n = len(x)
  if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
    total = [max(0, (ceildiv(d, s) - 1) * s + dil * (k - 1) + 1 - d)
             for d, k, s, dil in zip(x, kernel, strides, dilations)]
    return [(t // 2, t - t // 2) if auto_pad == "SAME_UPPER" else (t - t // 2, t // 2) for t in total]
  if auto_pad == "VALID": return [(0, 0)] * n
  if auto_pad != "NOTSET": raise ArgumentError(f"auto_pad is NOTSET, VALID, SAME_UPPER or SAME_LOWER, not {auto_pad!r}")
  found = [0] * 2 * n if pads is None else pads
  if len(found) != 2 * n: raise ShapeError(f"pads={found} has not two counts for each of {n} spatial axes")
  return list(zip(found[:n], found[n:]))

def last_first(pairs: Sequence[tuple[int, int]]) -> list[int]:
  """Return padding in the form of Tensor's methods: two counts for each axis, beginning with the last."""
  return [p for pair in reversed(pairs) for p in pair]

def spatial(x: Tensor) -> tuple[int, ...]:
  if x.ndim < 3: raise ShapeError(f"an operator on images wants a shape (N, C, ...), not {x.shape}")
  return sizes(x)[2:]

def convolve(x: Tensor, w: Tensor, bias: Tensor | None, auto_pad: str, dilations: list[int] | None, group: int,
             kernel_shape: list[int] | None,
             pads: list[int] | None, strides: list[int] | None, dtype: Any = None) -> Tensor:
  """Implement Conv and its integer variants."""
  n, kernel = len(spatial(x)), list(spatial(w))
  if kernel_shape is not None and kernel_shape != kernel:
    raise ShapeError(f"kernel_shape={kernel_shape} is not that of the weights, {kernel}")
  step, dilation = _listed(strides, n, 1, "strides"), _listed(dilations, n, 1, "dilations")
  pairs = _pads(auto_pad, pads, spatial(x), kernel, step, dilation)
  return x.conv2d(w, bias, group, step, dilation, last_first(pairs), dtype)

@operator("Conv")
def conv(x: Tensor, w: Tensor, b: Tensor | None = None, *, auto_pad: str = "NOTSET", dilations: Ints | None = None,
         group: int = 1,
         kernel_shape: Ints | None = None, pads: Ints | None = None, strides: Ints | None = None) -> Tensor:
  return convolve(x, w, b, auto_pad, dilations, group, kernel_shape, pads, strides)

@operator("ConvTranspose")
def conv_transpose(x: Tensor, w: Tensor, b: Tensor | None = None, *, auto_pad: str = "NOTSET",
                   dilations: Ints | None = None, group: int = 1,
                   kernel_shape: Ints | None = None, output_padding: Ints | None = None,
                   output_shape: Ints | None = None, pads: Ints | None = None,
                   strides: Ints | None = None) -> Tensor:
  kernel = spatial(w)
  n = len(spatial(x))
  if kernel_shape is not None and tuple(kernel_shape) != kernel:
    raise ShapeError(f"kernel_shape={kernel_shape} is not that of the weights, {kernel}")
  step, dilation = _listed(strides, n, 1, "strides"), _listed(dilations, n, 1, "dilations")
  extra = _listed(output_padding, n, 0, "output_padding")
  check_count(math.prod(d * s for d, s in zip(spatial(x), step)), "ConvTranspose")
  full = [(d - 1) * s + dil * (k - 1) + 1 + e for d, s, dil, k, e in zip(spatial(x), step, dilation, kernel, extra)]
  if output_shape is not None or auto_pad in ("SAME_UPPER", "SAME_LOWER"):
    wanted = [d * s for d, s in zip(spatial(x), step)] if output_shape is None else output_shape[-n:]
    total = [f - o for f, o in zip(full, wanted)]
    extra = [e + max(0, -t) for e, t in zip(extra, total)]
    total = [max(0, t) for t in total]
    pairs = [(t // 2, t - t // 2) if auto_pad == "SAME_UPPER" else (t - t // 2, t // 2) for t in total]
  else: pairs = _pads(auto_pad, pads, spatial(x), kernel, step, dilation)
  check_count(math.prod(f + max(0, -b - e) for f, (b, e) in zip(full, pairs)), "ConvTranspose")
  return x.conv_transpose2d(w, b, group, step, dilation,
                            last_first([(before, after - e) for (before, after), e in zip(pairs, extra)]))

@operator("DeformConv", 19)
def deform_conv(x: Tensor, w: Tensor, offset: Tensor, b: Tensor | None = None, mask: Tensor | None = None, *,
                dilations: Ints | None = None,
                group: int = 1, kernel_shape: Ints | None = None, offset_group: int = 1, pads: Ints | None = None,
                strides: Ints | None = None) -> Tensor:
  """Convolve images with taps at displaced positions. The values there are linearly interpolated.

  Source: Dai et al. 2017.
  """
  h, width = spatial(x)
  kh, kw = spatial(w)
  step, dilation = _listed(strides, 2, 1, "strides"), _listed(dilations, 2, 1, "dilations")
  pairs = _pads("NOTSET", pads, (h, width), (kh, kw), step, dilation)
  batch, channels = sizes(x)[:2]
  oh, ow = sizes(offset)[2:]
  moved = offset.reshape(batch, offset_group, kh * kw, 2, oh, ow)
  def base(count: int, kernel: int, axis: int) -> list[list[int]]:
    return [[o * step[axis] - pairs[axis][0] + k * dilation[axis] for o in range(count)] for k in range(kernel)]
  rows = Tensor(base(oh, kh, 0), device=x.device).reshape(kh, 1, oh, 1).expand(kh, kw, oh, ow).reshape(kh * kw, oh, ow)
  columns = Tensor(base(ow, kw, 1), device=x.device).reshape(1, kw, 1, ow).expand(kh, kw, oh,
                                                                                  ow).reshape(kh * kw, oh, ow)
  y, z = moved[:, :, :, 0] + rows, moved[:, :, :, 1] + columns      # (batch, offset group, taps, oh, ow)
  flat = x.reshape(batch, offset_group, channels // offset_group, h * width)
  total = None
  for dy in (0, 1):
    for dx in (0, 1):
      r, c = y.floor() + dy, z.floor() + dx
      weight = (1 - (y - r).abs()) * (1 - (z - c).abs()) * ((r >= 0) & (r < h) & (c >= 0) & (c < width)).cast(x.dtype)
      place = (r.clamp(0, h - 1) * width + c.clamp(0, width - 1)).cast(dtypes.int32).reshape(batch, offset_group, 1, -1)
      part = flat.gather(3, place.expand(batch, offset_group, channels // offset_group, place.shape[-1]))
      part = part * weight.reshape(batch, offset_group, 1, -1)
      total = part if total is None else total + part
  assert total is not None
  taps = total.reshape(batch, offset_group, channels // offset_group, kh * kw, oh, ow)
  if mask is not None: taps = taps * mask.reshape(batch, offset_group, 1, kh * kw, oh, ow)
  outputs = int(w.shape[0])
  taps = taps.reshape(batch, group, channels // group, kh * kw, oh * ow)
  weights = w.reshape(group, outputs // group, (channels // group) * kh * kw)
  result = weights.unsqueeze(0).matmul(taps.reshape(batch, group, (channels // group) * kh * kw,
                                                    oh * ow)).reshape(batch, outputs, oh, ow)
  return result if b is None else result + per_channel(b, 4)

@operator("Col2Im", 18)
def col2im(x: Tensor, image_shape: Ints, block_shape: Ints, *, dilations: Ints | None = None, pads: Ints | None = None,
           strides: Ints | None = None) -> Tensor:
  """Sum columns of blocks to an image: the transpose of a convolution with one weight of 1 per output channel and
  tap."""
  n, taps = len(image_shape), math.prod(block_shape)
  step, dilation = _listed(strides, n, 1, "strides"), _listed(dilations, n, 1, "dilations")
  pairs = _pads("NOTSET", pads, image_shape, block_shape, step, dilation)
  counts = [(d + b + e - dil * (k - 1) - 1) // s + 1
            for d, (b, e), dil, k, s in zip(image_shape, pairs, dilation, block_shape, step)]
  batch, channels = int(x.shape[0]), int(x.shape[1]) // taps
  blocks = x.reshape(batch * channels, taps, *counts)
  eye = Tensor.eye(taps, dtype=x.dtype, device=x.device).reshape(taps, 1, *block_shape)
  left = [(d + b + e - dil * (k - 1) - 1) % s for d, (b, e), dil, k, s in zip(image_shape, pairs, dilation, block_shape,
                                                                              step)]
  return blocks.conv_transpose2d(eye, None, 1, step, dilation, last_first(pairs),
                                 left).reshape(batch, channels, *image_shape)

# ***** pooling *****

class _Windows:
  """The windows of a pool: the padding (with that of ceil_mode), and the number of elements that count in each
  window."""
  def __init__(self, x: Tensor, kernel: list[int], auto_pad: str, ceil_mode: int, dilations: list[int] | None,
               pads: list[int] | None,
               strides: list[int] | None):
    shape = spatial(x)
    n = len(shape)
    self.kernel = _listed(kernel, n, 1, "kernel_shape")
    self.strides, self.dilations = _listed(strides, n, 1, "strides"), _listed(dilations, n, 1, "dilations")
    self.pads = _pads(auto_pad, pads, shape, self.kernel, self.strides, self.dilations)
    self.padding: list[tuple[int, int]] = []
    # For each axis and window: the number of elements inside of the input, and inside of the padded input.
    self.counts: list[tuple[list[int], list[int]]] = []
    for d, k, s, dil, (b, e) in zip(shape, self.kernel, self.strides, self.dilations, self.pads):
      span = dil * (k - 1) + 1
      room = d + b + e - span
      if room < 0: raise ShapeError(f"a window of {k} with dilation {dil} is larger than the padded {d + b + e}")
      count = (ceildiv(room, s) if ceil_mode else room // s) + 1
      # A window that begins in the padding at the end does not count.
      if ceil_mode and (count - 1) * s >= d + b: count -= 1
      check_count(count, "a pool")
      self.padding.append((b, max(0, (count - 1) * s + span - d - b)))
      starts = range(0, count * s, s)
      self.counts.append(([_inside(b - w, b + d - w, k, dil) for w in starts],
                          [_inside(0, d + b + e - w, k, dil) for w in starts]))

  def divisor(self, x: Tensor, include_pad: int) -> Tensor | float:
    """Return the number of elements in each window: a number, or a tensor that broadcasts to the result."""
    rows = [c[1 if include_pad else 0] for c in self.counts]
    if all(len(set(row)) <= 1 for row in rows): return float(math.prod(row[0] if row else 1 for row in rows))
    total = None
    for i, row in enumerate(rows):
      part = Tensor([float(c) for c in row], dtype=x.dtype,
                    device=x.device).reshape([-1 if i == j else 1 for j in range(len(rows))])
      total = part if total is None else total * part
    assert total is not None
    return total

def _inside(low: int, high: int, k: int, dilation: int) -> int:
  """Count those of the k indices 0, dilation, 2 * dilation, ... that are at least low and below high."""
  return max(0, min(k, -(-high // dilation)) - max(0, -(-low // dilation)))

@operator("AveragePool")
def average_pool(x: Tensor, *, kernel_shape: Ints, auto_pad: str = "NOTSET", ceil_mode: int = 0,
                 count_include_pad: int = 0,
                 dilations: Ints | None = None, pads: Ints | None = None, strides: Ints | None = None) -> Tensor:
  w = _Windows(x, kernel_shape, auto_pad, ceil_mode, dilations, pads, strides)
  return (_window_sum(wide(x), w) / w.divisor(wide(x), count_include_pad)).cast(x.dtype)

def _window_sum(x: Tensor, w: _Windows) -> Tensor:
  padded = x.pad([(0, 0), (0, 0), *w.padding])
  n = len(w.kernel)
  return Tensor(window_view(padded.uop, w.kernel, w.strides, w.dilations)).sum(tuple(range(2 + n, 2 + 2 * n)))

@operator("LpPool", 2)
def lp_pool(x: Tensor, *, kernel_shape: Ints, p: int = 2, auto_pad: str = "NOTSET", ceil_mode: int = 0,
            dilations: Ints | None = None,
            pads: Ints | None = None, strides: Ints | None = None) -> Tensor:
  if p < 1: raise ArgumentError(f"p={p}: give 1 or more")
  return _window_sum(wide(x).abs().pow(p), _Windows(x, kernel_shape, auto_pad, ceil_mode, dilations, pads,
                                                    strides)).pow(1 / p).cast(x.dtype)

@operator("MaxPool")
def max_pool(x: Tensor, *, kernel_shape: Ints, auto_pad: str = "NOTSET", ceil_mode: int = 0,
             dilations: Ints | None = None, pads: Ints | None = None,
             storage_order: int = 0, strides: Ints | None = None, outputs: Outputs = 1) -> Any:
  """Return the largest element of each window, and (if wanted) its index in the flattened input."""
  w = _Windows(x, kernel_shape, auto_pad, ceil_mode, dilations, pads, strides)
  padding = last_first(w.padding)
  if outputs < 2: return x.max_pool2d(tuple(w.kernel), tuple(w.strides), tuple(w.dilations), padding)
  values, places = x.max_pool2d(tuple(w.kernel), tuple(w.strides), tuple(w.dilations), padding, return_indices=True)
  count = math.prod(spatial(x))
  planes = int(x.shape[0]) * int(x.shape[1])
  places = places.cast(dtypes.int64)
  if storage_order:   # column-major
    place, index, stride = places, None, 1
    parts = []
    for d in reversed(spatial(x)):
      parts.append(place % d)
      place = place // d
    for d, part in zip(spatial(x), reversed(parts)):
      index = part * stride if index is None else index + part * stride
      stride *= d
    assert index is not None
    places = index
  base = Tensor.arange(planes, dtype=dtypes.int64, device=x.device).reshape(x.shape[0], x.shape[1],
                                                                            *[1] * (x.ndim - 2)) * count
  return values, places + base

@operator("MaxUnpool", 9)
def max_unpool(x: Tensor, places: Tensor, output_shape: Ints | None = None, *, kernel_shape: Ints,
               pads: Ints | None = None,
               strides: Ints | None = None) -> Tensor:
  """Put values at the indices that MaxPool gave, zeros elsewhere. The indices are those of the flattened result. If
  output_shape is given, they are those of the smaller result that it extends."""
  n = len(spatial(x))
  kernel, step = _listed(kernel_shape, n, 1, "kernel_shape"), _listed(strides, n, 1, "strides")
  pairs = _pads("NOTSET", pads, spatial(x), kernel, step, [1] * n)
  inferred = [(d - 1) * s - b - e + k for d, s, k, (b, e) in zip(spatial(x), step, kernel, pairs)]
  shape = [*sizes(x)[:2], *inferred]
  check_count(math.prod(shape), "MaxUnpool")
  flat = Tensor.zeros(math.prod(shape), dtype=x.dtype, device=x.device).scatter(0, places.flatten().cast(dtypes.int64),
                                                                                x.flatten())
  y = flat.reshape(shape)
  if output_shape is None: return y
  check_count(math.prod(output_shape), "MaxUnpool")
  return y.pad([(0, o - d) for o, d in zip(output_shape, shape)])

def spatial_axes(x: Tensor) -> tuple[int, ...]: return tuple(range(2, 2 + len(spatial(x))))
@operator("GlobalAveragePool")
def global_average_pool(x: Tensor) -> Tensor: return x.mean(spatial_axes(x), keepdim=True)
@operator("GlobalMaxPool")
def global_max_pool(x: Tensor) -> Tensor: return x.max(spatial_axes(x), keepdim=True)
@operator("GlobalLpPool", 2)
def global_lp_pool(x: Tensor, *, p: int = 2) -> Tensor:
  if p < 1: raise ArgumentError(f"p={p}: give 1 or more")
  return wide(x).abs().pow(p).sum(spatial_axes(x), keepdim=True).pow(1 / p).cast(x.dtype)
