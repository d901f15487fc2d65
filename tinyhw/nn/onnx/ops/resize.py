"""Operators of ONNX that resample images: Resize, Upsample, GridSample, AffineGrid, RoiAlign. Source: ONNX operator
schemas (ai.onnx).

Resize is separable: along each axis an element of the result is a weighted sum of a few elements of the input.
Positions and weights depend on sizes alone. They are tables that small kernels compute, so that Python does no work for
each element of an axis.
"""
from __future__ import annotations
from collections.abc import Callable
import itertools
import math
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.nn.onnx.operator import Floats, Ints, operator
from tinyhw.nn.onnx.data import wide
from tinyhw.nn.onnx.ops.shape import axis_of, check_count, sizes
from tinyhw.tensor import Tensor

# ***** Resize *****

def _place_function(mode: str, old: int, new: int, scale: float, begin: float, end: float) -> Callable[[Any], Any]:
  """Return the position in the input of element i of the result. i: a number or a Tensor. old, new: sizes. begin, end:
  the region of tf_crop_and_resize."""
  resized = scale * old
  if mode == "half_pixel": return lambda i: (i + 0.5) / scale - 0.5
  if mode == "half_pixel_symmetric":
    adjust = new / resized
    return lambda i: old / 2 * (1 - adjust) + (i + 0.5) / scale - 0.5
  if mode == "pytorch_half_pixel": return lambda i: (i + 0.5) / scale - 0.5 if new > 1 else i * 0.0
  if mode == "align_corners": return lambda i: i * (old - 1) / (resized - 1) if resized > 1 else i * 0.0
  if mode == "asymmetric": return lambda i: i / scale
  if mode == "tf_half_pixel_for_nn": return lambda i: (i + 0.5) / scale
  if mode == "tf_crop_and_resize":
    if new > 1: return lambda i: begin * (old - 1) + i * (end - begin) * (old - 1) / (new - 1)
    return lambda i: i + 0.5 * (begin + end) * (old - 1)
  raise ArgumentError(f"coordinate_transformation_mode={mode!r} is not known")

_ROUNDINGS: dict[str, Callable[[Tensor], Tensor]] = {
  "round_prefer_floor": lambda x: (x - 0.5).ceil(), "round_prefer_ceil": lambda x: (x + 0.5).floor(),
  "floor": Tensor.floor, "ceil": Tensor.ceil,
}

def _linear_kernel(x: Tensor) -> Tensor: return (1 - x.abs()).relu()

def _cubic_kernel(a: float) -> Callable[[Tensor], Tensor]:
  """Return Keys' cubic convolution kernel with its parameter. It is 0 from 2 on. Source: Keys 1981."""
  def weight(x: Tensor) -> Tensor:
    x = x.abs()
    far = (x < 2).where(((a * x - 5 * a) * x + 8 * a) * x - 4 * a, 0)
    return (x <= 1).where(((a + 2) * x - (a + 3)) * x * x + 1, far)
  return weight

def _taps(place: Tensor, old: int, scale: float, kernel: Callable[[Tensor], Tensor], radius: int, exclude_outside: bool,
          antialias: bool) -> tuple[Tensor, Tensor]:
  """Return the indices of the elements that make up each element of the result, and their weights: (new, taps). place:
  (new, 1). antialias: a smaller result has a wider kernel."""
  stretch = min(scale, 1.0) if antialias else 1.0
  reach = radius / stretch
  width = math.ceil(2 * reach)    # the most whole numbers that can be less than reach away from a position
  check_count(width * int(place.shape[0]), "Resize")
  at = (place - reach).floor() + 1 + Tensor.arange(width, dtype=place.dtype, device=place.device)
  weights = kernel((place - at) * stretch)
  if exclude_outside: weights = ((at >= 0) & (at < old)).where(weights, 0)
  if exclude_outside or antialias:
    total = weights.sum(1, keepdim=True)
    weights = weights / total.eq(0).where(1, total)
  return at, weights

def _resized(x: Tensor, axis: int, new: int, scale: float, function: Callable[[Any], Any], mode: str, nearest_mode: str,
             cubic_coeff_a: float,
             exclude_outside: bool, antialias: bool, outside: float | None) -> Tensor:
  """Resize one axis. function: returns the positions of its elements. outside: the value beyond the input, or None."""
  old = int(x.shape[axis])
  if not old: raise ShapeError(f"cannot resize an axis of size 0 of {x.shape}")
  if not all(math.isfinite(function(i)) for i in (0, new - 1)):
    raise ArgumentError(f"Resize from {old} to {new} elements reads at infinite places")
  place = function(Tensor.arange(new, dtype=dtypes.float64, device=x.device)).reshape(-1, 1)
  weights = None
  if mode == "nearest": at = _ROUNDINGS[nearest_mode](place)
  else:
    kernel, radius = (_linear_kernel, 1) if mode == "linear" else (_cubic_kernel(cubic_coeff_a), 2)
    at, weights = _taps(place, old, scale, kernel, radius, exclude_outside, antialias)
  index = at.clamp(0, old - 1).cast(dtypes.int32 if old <= 1 << 31 else dtypes.int64).contiguous()
  rest = [1] * (x.ndim - 1 - axis)
  y = x[(slice(None),) * axis + (index,)]
  if weights is None: y = y.squeeze(axis + 1)
  else: y = (y * weights.cast(y.dtype).contiguous().reshape(*weights.shape, *rest)).sum(axis + 1)
  if outside is None: return y
  beyond: Tensor = (place < 0) | (place > old - 1)
  return beyond.reshape(-1, *rest).where(outside, y)

_MODES = {"nearest": "nearest", "linear": "linear", "bilinear": "linear", "trilinear": "linear", "cubic": "cubic"}

def _resize(x: Tensor, axes: list[int], scales: list[float], new: list[int], roi: list[float], mode: str,
            coordinates: str, nearest_mode: str,
            cubic_coeff_a: float, exclude_outside: bool, antialias: bool, extrapolation_value: float) -> Tensor:
  if mode not in _MODES: raise ArgumentError(f"mode is nearest, linear or cubic, not {mode!r}")
  if nearest_mode not in _ROUNDINGS:
    raise ArgumentError(f"nearest_mode is one of {', '.join(_ROUNDINGS)}, not {nearest_mode!r}")
  if any(not (s > 0 and math.isfinite(s)) for s in scales) or any(n < 1 for n in new):
    raise ArgumentError(f"cannot resize by {scales} to {new}")
  check_count(math.prod(new), "Resize")
  crop = coordinates == "tf_crop_and_resize"
  if crop and len(roi) != 2 * len(axes):
    raise ArgumentError(f"roi wants a begin and an end for each of {len(axes)} axes, not {len(roi)} numbers")
  y = x if _MODES[mode] == "nearest" else wide(x)
  for i, axis in enumerate(axes):
    begin, end = (roi[i], roi[i + len(axes)]) if crop else (0.0, 1.0)
    if new[i] == int(x.shape[axis]) and scales[i] == 1 and not crop: continue
    function = _place_function(coordinates, int(x.shape[axis]), new[i], scales[i], begin, end)
    y = _resized(y, axis, new[i], scales[i], function, _MODES[mode], nearest_mode, cubic_coeff_a, exclude_outside,
                 antialias,
                 extrapolation_value if crop else None)
  if dtypes.is_int(x.dtype) and y.dtype is not x.dtype: y = y.round().clamp(x.dtype.min, x.dtype.max)
  return y.cast(x.dtype)

@operator("Resize", 10)
def resize_by_scales(x: Tensor, scales: Floats, *, mode: str = "nearest") -> Tensor: return _upsampled(x, scales, mode)
@operator("Upsample", 7)
def upsample_by_attribute(x: Tensor, *, scales: Floats, mode: str = "nearest") -> Tensor:
  return _upsampled(x, scales, mode)
@operator("Upsample", 9)
def upsample(x: Tensor, scales: Floats, *, mode: str = "nearest") -> Tensor: return _upsampled(x, scales, mode)

def _upsampled(x: Tensor, scales: list[float], mode: str) -> Tensor:
  if len(scales) != x.ndim: raise ShapeError(f"{len(scales)} scales for {x.ndim} axes")
  new = [math.floor(d * s) for d, s in zip(sizes(x), scales)]
  return _resize(x, list(range(x.ndim)), scales, new, [], mode, "asymmetric", "floor", -0.75, False, False, 0.0)

@operator("Resize", 11)
def resize(x: Tensor, roi: Floats | None = None, scales: Floats | None = None, new_sizes: Ints | None = None, *,
           antialias: int = 0,
           axes: Ints | None = None, coordinate_transformation_mode: str = "half_pixel", cubic_coeff_a: float = -0.75,
           exclude_outside: int = 0,
           extrapolation_value: float = 0.0, keep_aspect_ratio_policy: str = "stretch", mode: str = "nearest",
           nearest_mode: str = "round_prefer_floor") -> Tensor:
  """Resize by scales or to sizes, along all axes or along those named."""
  where = list(range(x.ndim)) if axes is None else [axis_of(a, x.ndim) for a in axes]
  if not scales and not new_sizes: raise ArgumentError("Resize wants scales or sizes")
  if scales: new = [math.floor(int(x.shape[a]) * s) for a, s in zip(where, scales)]
  else:
    new = new_sizes or []
    scales = [n / int(x.shape[a]) for a, n in zip(where, new)]
    if keep_aspect_ratio_policy != "stretch":
      if keep_aspect_ratio_policy not in ("not_larger", "not_smaller"):
        raise ArgumentError(f"keep_aspect_ratio_policy={keep_aspect_ratio_policy!r}")
      scale = (min if keep_aspect_ratio_policy == "not_larger" else max)(scales)
      scales = [scale] * len(where)
      new = [math.floor(int(x.shape[a]) * scale + 0.5) for a in where]
  if len(new) != len(where): raise ShapeError(f"Resize has {len(new)} sizes for {len(where)} axes")
  return _resize(x, where, scales, new, roi or [], mode, coordinate_transformation_mode, nearest_mode, cubic_coeff_a,
                 bool(exclude_outside),
                 bool(antialias), extrapolation_value)

# ***** grids *****

@operator("AffineGrid", 20)
def affine_grid(theta: Tensor, size: Ints, *, align_corners: int = 0) -> Tensor:
  """Return the grid of an affine map. theta: (N, d, d + 1)  size: (N, C, ...)  ->  (N, ..., d), the last axis first."""
  n, spatial = size[0], size[2:]
  check_count(math.prod(spatial), "AffineGrid")
  if any(d < 1 for d in size): raise ShapeError(f"AffineGrid to the size {size}")
  axes = []
  for i, d in enumerate(spatial):
    line = [-1 + 2 * k / max(d - 1, 1) for k in range(d)] if align_corners else [-1 + (2 * k + 1) / d for k in range(d)]
    axes.append(Tensor(line, dtype=theta.dtype,
                       device=theta.device).reshape([-1 if i == j else 1 for j in range(len(spatial))]).expand(spatial))
  ones = Tensor.ones(*spatial, dtype=theta.dtype, device=theta.device)
  points = axes[-1].stack(*axes[-2::-1], ones, dim=-1).reshape(1, -1, len(spatial) + 1)
  return points.expand(n, *points.shape[1:]).matmul(theta.transpose(1, 2)).reshape(n, *spatial, len(spatial))

def _reflected(x: Tensor, low: float, high: float) -> Tensor:
  """Reflect positions at the borders until they are inside."""
  span = high - low
  if span <= 0: return x.zeros_like()
  folded = (x - low).abs()
  rest = folded - (folded / (2 * span)).floor() * (2 * span)
  return (rest > span).where(2 * span - rest, rest) + low

@operator("GridSample", 16)
def grid_sample(x: Tensor, grid: Tensor, *, align_corners: int = 0, mode: str = "bilinear",
                padding_mode: str = "zeros") -> Tensor:
  """Sample x at the positions of a grid. x: (N, C, ...)  grid: (N, ..., d), positions from -1 to 1, the last axis first
  ->  (N, C, ...) of the grid's sizes."""
  kind = _MODES.get(mode, {"bicubic": "cubic"}.get(mode))
  if kind is None: raise ArgumentError(f"mode is linear, nearest or cubic, not {mode!r}")
  if padding_mode not in ("zeros", "border", "reflection"): raise ArgumentError(f"padding_mode={padding_mode!r}")
  spatial = sizes(x)[2:]
  d = len(spatial)
  if x.ndim != grid.ndim or grid.shape[-1] != d or x.shape[0] != grid.shape[0] or not d:
    raise ShapeError(f"a grid of {grid.shape} for {x.shape}")
  out = sizes(grid)[1:-1]
  flat = x.reshape(*x.shape[:2], -1)
  # For each axis: (indices, weights) of its taps.
  per_axis: list[list[tuple[Tensor, Tensor | None]]] = []
  for i, n in enumerate(spatial):
    g = wide(grid[..., d - 1 - i].reshape(grid.shape[0], 1, -1))
    at = (g + 1) / 2 * (n - 1) if align_corners else ((g + 1) * n - 1) / 2
    low, high = (0.0, n - 1.0) if align_corners else (-0.5, n - 0.5)
    if kind != "cubic" and padding_mode == "border": at = at.clamp(0, n - 1)
    if kind != "cubic" and padding_mode == "reflection": at = _reflected(at, low, high).clamp(0, n - 1)
    if kind == "nearest": per_axis.append([(at.round(), None)])
    else:
      base = at.floor()
      t = at - base
      if kind == "linear": taps: list[tuple[Tensor, Tensor | None]] = [(base, 1 - t), (base + 1, t)]
      else: taps = [(base + k, _cubic_kernel(-0.75)(t - k)) for k in (-1, 0, 1, 2)]
      if kind == "cubic" and padding_mode == "border": taps = [(p.clamp(0, n - 1), w) for p, w in taps]
      if kind == "cubic" and padding_mode == "reflection":
        taps = [(_reflected(p, low, high).clamp(0, n - 1), w) for p, w in taps]
      per_axis.append(taps)
  total = None
  for corner in itertools.product(*per_axis):
    place: Tensor | None = None
    inside: Tensor | None = None
    weight: Tensor | None = None
    for (p, w), n in zip(corner, spatial):
      valid = (p >= 0) & (p <= n - 1)
      inside = valid if inside is None else inside & valid
      step = p.clamp(0, n - 1).cast(dtypes.int32)
      place = step if place is None else place * n + step
      if w is not None: weight = w if weight is None else weight * w
    assert place is not None and inside is not None
    part = flat.gather(2, place.expand(x.shape[0], x.shape[1], place.shape[2]))
    if weight is not None: part = part * weight
    if padding_mode == "zeros": part = inside.where(part, 0)
    total = part if total is None else total + part
  assert total is not None
  return total.reshape(*x.shape[:2], *out).cast(x.dtype)

@operator("RoiAlign", 10)
def roi_align_corner(x: Tensor, rois: Tensor, batch: Tensor, *, mode: str = "avg", output_height: int = 1,
                     output_width: int = 1,
                     sampling_ratio: int = 0, spatial_scale: float = 1.0) -> Tensor:
  return _roi_align(x, rois, batch, "output_half_pixel", mode, output_height, output_width, sampling_ratio,
                    spatial_scale)

@operator("RoiAlign", 16)
def roi_align(x: Tensor, rois: Tensor, batch: Tensor, *, coordinate_transformation_mode: str = "half_pixel",
              mode: str = "avg",
              output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0,
              spatial_scale: float = 1.0) -> Tensor:
  return _roi_align(x, rois, batch, coordinate_transformation_mode, mode, output_height, output_width, sampling_ratio,
                    spatial_scale)

def _roi_align(x: Tensor, rois: Tensor, batch: Tensor, coordinates: str, mode: str, height: int, width: int, ratio: int,
               scale: float) -> Tensor:
  """Return regions (x1, y1, x2, y2) as images of one size. Each pixel is made from ratio x ratio samples. The regions
  are read.

  Source: He et al. 2017.
  """
  if mode not in ("avg", "max") or height < 1 or width < 1 or ratio < 0:
    raise ArgumentError(f"RoiAlign in mode {mode!r} to {height}x{width}")
  half = 0.5 if coordinates == "half_pixel" else 0.0
  boxes, images = rois.tolist(), batch.tolist()
  h, w = sizes(x)[2:]
  results = []
  for (x1, y1, x2, y2), image in zip(boxes, images):
    if not 0 <= image < int(x.shape[0]): raise ArgumentError(f"RoiAlign names image {image} of {x.shape[0]}")
    left, top = x1 * scale - half, y1 * scale - half
    across, down = x2 * scale - half - left, y2 * scale - half - top
    if coordinates != "half_pixel": across, down = max(across, 1.0), max(down, 1.0)
    rows, columns = ratio or math.ceil(down / height), ratio or math.ceil(across / width)
    check_count(height * width * max(rows, 1) * max(columns, 1), "RoiAlign")
    ys = [top + down * (i + (k + 0.5) / rows) / height for i in range(height) for k in range(rows)]
    xs = [left + across * (i + (k + 0.5) / columns) / width for i in range(width) for k in range(columns)]
    plane = x[image]
    vertical = [_border_taps(p, h) for p in ys]
    horizontal = [_border_taps(p, w) for p in xs]
    parts = []
    for a, b in itertools.product(range(2), range(2)):
      part = plane[:, Tensor([t[a][0] for t in vertical], device=x.device)][:, :,
                                                                            Tensor([t[b][0] for t in horizontal],
                                                                                   device=x.device)]
      weights = [[v[a][1] * u[b][1] for u in horizontal] for v in vertical]
      parts.append(part * Tensor(weights, dtype=x.dtype, device=x.device))
    if mode == "avg": samples = Tensor.usum(*parts)
    else: samples = parts[0].maximum(parts[1]).maximum(parts[2]).maximum(parts[3])
    grid = samples.reshape(x.shape[1], height, rows, width, columns)
    results.append(grid.mean((2, 4)) if mode == "avg" else grid.max((2, 4)))
  if not results: return Tensor.zeros(0, x.shape[1], height, width, dtype=x.dtype, device=x.device)
  return results[0].stack(*results[1:])

def _border_taps(place: float, size: int) -> tuple[tuple[int, float], tuple[int, float]]:
  """Return the two elements around a position, and their weights. Positions more than one element beyond the border
  have weight 0."""
  if place < -1 or place > size: return (0, 0.0), (0, 0.0)
  place = max(place, 0.0)
  low = min(int(place), size - 1)
  high = min(low + 1, size - 1)
  t = 0.0 if low == high else place - low
  return (low, 1 - t), (high, t)
