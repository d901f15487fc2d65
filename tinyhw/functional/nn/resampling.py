"""Resampling: interpolation to other sizes, and at the points of a grid.

Along one axis, interpolation is a matrix product with few weights per row, so that any kernel of weights (linear,
cubic, area, antialiased) is one function. Source of the conventions: PyTorch's documentation; Keys 1981 for cubic.
"""
from __future__ import annotations
from collections.abc import Callable, Sequence
import math
from typing import Any

from tinyhw.dtype import dtypes, truncate
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.functional.operands import checked, sizes, want_float
from tinyhw.functional.nn.pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from tinyhw.tensor import Tensor

_AXES = {"nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "linear": (1,), "bilinear": (2,), "bicubic": (2,),
         "trilinear": (3,), "area": (1, 2, 3)}

def interpolate(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                antialias: bool = False) -> Tensor:
  """Resize the axes after the first two, to sizes or by factors."""
  n = checked("interpolate", input).ndim - 2
  if input.dtype is not dtypes.uint8: want_float("interpolate", input)
  if mode not in _AXES: raise ArgumentError(f"mode is one of {', '.join(_AXES)}, not {mode!r}")
  if n not in _AXES[mode]: raise ShapeError(f"mode {mode!r} does not resize {n} axes: the shape is {input.shape}")
  if (size is None) == (scale_factor is None): raise ArgumentError("interpolate wants size or scale_factor")
  if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
    raise ArgumentError(f"align_corners does not go with mode {mode!r}")
  if antialias and mode not in ("bilinear", "bicubic"): raise ArgumentError("antialias goes with bilinear and bicubic")
  old = sizes(input)[2:]
  wanted, factors = _wanted(old, size, scale_factor, n)
  if min(wanted) < 1 or 0 in old: raise ShapeError(f"interpolate: cannot resize {old} to {wanted}")
  if recompute_scale_factor: factors = [None] * n
  if mode == "area": return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[n - 1](input, wanted)
  x = input
  for i in range(n):
    if wanted[i] == old[i] and mode != "nearest-exact" and not (factors[i] and factors[i] != 1): continue
    x = _along(x, 2 + i, wanted[i], mode, bool(align_corners), factors[i], antialias)
  return x

def _wanted(old: Sequence[int], size: Any, scale_factor: Any, n: int) -> tuple[list[int], list[Any]]:
  given = size if size is not None else scale_factor
  many = list(given) if isinstance(given, (tuple, list)) else [given] * n
  if len(many) != n: raise ArgumentError(f"interpolate: {given!r} is not one number or {n}")
  if size is not None: return [int(d) for d in many], [None] * n
  return [int(math.floor(d * f)) for d, f in zip(old, many)], many

def _along(x: Tensor, axis: int, new: int, mode: str, align: bool, factor: float | None, antialias: bool) -> Tensor:
  old = sizes(x)[axis]
  step = 1 / factor if factor else old / new
  if mode.startswith("nearest"):
    shift = 0.5 if mode == "nearest-exact" else 0.0
    places = [min(int((i + shift) * _single(step)), old - 1) for i in range(new)]
    return x[(slice(None),) * axis + (places,)]
  cubic = mode == "bicubic"
  if align: step = (old - 1) / (new - 1) if new > 1 else 0.0
  rows = [(_smooth(i, old, step, cubic) if antialias else _sharp(i, old, step, align, cubic)) for i in range(new)]
  taps = max(len(row) for row in rows)
  grid = [[p for p, _ in row] + [0] * (taps - len(row)) for row in rows]
  weights = [[w for _, w in row] + [0.0] * (taps - len(row)) for row in rows]
  picked = x[(slice(None),) * axis + (grid,)]                    # (..., new, taps, ...)
  shape = (1,) * axis + (new, taps) + (1,) * (x.ndim - axis - 1)
  return picked.mul(Tensor(weights, dtype=x.dtype).reshape(shape)).sum(axis + 1)

def _single(x: float) -> float:
  """Return x as float32 holds it, as PyTorch computes places in that type."""
  return float(truncate[dtypes.float32](x))

def _sharp(i: int, old: int, step: float, align: bool, cubic: bool) -> list[tuple[int, float]]:
  """Return (place, weight) pairs of linear or cubic interpolation."""
  at = i * step if align else (i + 0.5) * step - 0.5
  if not cubic: at = max(at, 0.0)
  low = math.floor(at)
  t = at - low
  if not cubic: return [(min(low, old - 1), 1 - t), (min(low + 1, old - 1), t)]
  return [(min(max(low + k, 0), old - 1), _cubic(t - k, -0.75)) for k in range(-1, 3)]

def _cubic(x: float, a: float) -> float:
  x = abs(x)
  if x <= 1: return ((a + 2) * x - (a + 3)) * x * x + 1
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a if x < 2 else 0.0

def _smooth(i: int, old: int, step: float, cubic: bool) -> list[tuple[int, float]]:
  """Return (place, weight) pairs of an antialiased interpolation: the kernel is as wide as an output element."""
  scale = max(step, 1.0)
  reach, centre = (2.0 if cubic else 1.0) * scale, step * (i + 0.5)
  first, last = max(int(centre - reach + 0.5), 0), min(int(centre + reach + 0.5), old)
  kernel: Callable[[float], float] = (lambda x: _cubic(x, -0.5)) if cubic else (lambda x: max(0.0, 1 - abs(x)))
  weights = [kernel((j + first - centre + 0.5) / scale) for j in range(last - first)]
  total = sum(weights) or 1.0
  return [(first + j, w / total) for j, w in enumerate(weights)]

def upsample(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
             align_corners: bool | None = None) -> Tensor:
  """Return interpolate, by its old name."""
  return interpolate(input, size, scale_factor, mode, align_corners)

def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
  """Resize to the nearest elements."""
  return interpolate(input, size, scale_factor, "nearest")

def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
  """Resize two axes linearly, with the corners aligned."""
  return interpolate(input, size, scale_factor, "bilinear", True)

def upsample_bilinear2d_aa(input: Tensor, output_size: Any = None, align_corners: bool = False,
                           scale_factors: Any = None, scales_h: Any = None, scales_w: Any = None) -> Tensor:
  """Resize two axes linearly with antialiasing."""
  if output_size is None: return interpolate(input, None, scale_factors, "bilinear", align_corners, antialias=True)
  x = input
  for i, factor in enumerate((scales_h, scales_w)):
    x = _along(x, 2 + i, int(output_size[i]), "bilinear", align_corners, factor, True)
  return x

# ***** grids *****

_MODES, _PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")

def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool | None = None) -> Tensor:
  """Sample (N, C, H, W) or (N, C, D, H, W) at the points of a grid (N, ..., 2 or 3), from -1 to 1, x first."""
  n = checked("grid_sample", input).ndim - 2
  if n not in (2, 3) or checked("grid_sample", grid).ndim != n + 2:
    raise ShapeError(f"grid_sample wants 4 or 5 axes in both, not {input.shape} and {grid.shape}")
  if sizes(grid)[0] != sizes(input)[0] or sizes(grid)[-1] != n:
    raise ShapeError(f"grid_sample: a grid of {grid.shape} for {input.shape}; its last axis has {n} coordinates")
  if mode not in _MODES or padding_mode not in _PADDINGS or mode == "bicubic" and n == 3:
    raise ArgumentError(f"grid_sample: mode {mode!r} and padding_mode {padding_mode!r} do not go with {n} axes")
  if 0 in sizes(input)[2:]: raise ShapeError(f"grid_sample of no elements: the shape is {input.shape}")
  lengths, align = sizes(input)[2:], bool(align_corners)
  places = [_unnormalized(grid[..., n - 1 - i], d, align) for i, d in enumerate(lengths)]
  if mode != "bicubic": places = [_inside(p, d, padding_mode, align) for p, d in zip(places, lengths)]
  if mode == "nearest": return _gathered(input, [p.round() for p in places], lengths)
  corners: list[list[tuple[Tensor, Tensor]]] = []
  for p, d in zip(places, lengths):
    low = p.floor().detach()
    t = p.sub(low)
    if mode == "bilinear": corners.append([(low, t.sub(1, reverse=True)), (low.add(1), t)])
    else: corners.append([(_inside(low.add(k), d, padding_mode, align), _cubic_weight(t.sub(k))) for k in range(-1, 3)])
  return _weighted(input, corners, lengths)

def _weighted(input: Tensor, corners: list[list[tuple[Tensor, Tensor]]], lengths: Sequence[int]) -> Tensor:
  total: Tensor | None = None
  combos: list[list[tuple[Tensor, Tensor]]] = [[]]
  for axis in corners: combos = [[*c, pair] for c in combos for pair in axis]
  for combo in combos:
    weight = combo[0][1]
    for _, w in combo[1:]: weight = weight.mul(w)
    term = _gathered(input, [p for p, _ in combo], lengths).mul(weight.unsqueeze(1))
    total = term if total is None else total.add(term)
  assert total is not None, "a grid has corners"
  return total

def _cubic_weight(x: Tensor, a: float = -0.75) -> Tensor:
  x = x.abs()
  near = x.mul(a + 2).sub(a + 3).mul(x).mul(x).add(1)
  far = x.mul(a).sub(5 * a).mul(x).add(8 * a).mul(x).sub(4 * a)
  return x.le(1).where(near, x.lt(2).where(far, 0))

def _unnormalized(x: Tensor, d: int, align: bool) -> Tensor:
  return x.add(1).mul((d - 1) / 2) if align else x.add(1).mul(d).sub(1).mul(0.5)

def _inside(p: Tensor, d: int, padding_mode: str, align: bool) -> Tensor:
  if padding_mode == "zeros": return p
  if padding_mode == "reflection":
    low, span = (0.0, float(d - 1)) if align else (-0.5, float(d))
    if span == 0: return p.mul(0)
    away = p.sub(low).abs()
    rest = away.sub(away.div(span).floor().mul(span))
    odd = away.div(span).floor().mod(2).ne(0)
    p = odd.where(rest.sub(span, reverse=True), rest).add(low)
  return p.clamp(0, d - 1)

def _gathered(input: Tensor, places: list[Tensor], lengths: Sequence[int]) -> Tensor:
  """Return the elements at whole places, 0 outside. -> (N, C, *points)."""
  n, channels = sizes(input)[:2]
  points = sizes(places[0])[1:]
  valid, flat = None, None
  for p, d in zip(places, lengths):
    here = p.ge(0) & p.le(d - 1)
    valid = here if valid is None else valid & here
    index = p.clamp(0, d - 1).int()
    flat = index if flat is None else flat.mul(d).add(index)
  assert valid is not None and flat is not None, "there is an axis"
  count = math.prod(points)
  wide = flat.reshape(n, 1, count).expand(n, channels, count)
  found = input.reshape(n, channels, -1).gather(2, wide).reshape(n, channels, *points)
  return valid.unsqueeze(1).where(found, 0)

def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int,
                 align_corners: bool) -> Tensor:
  """Return grid_sample with modes by number."""
  return grid_sample(input, grid, _MODES[interpolation_mode], _PADDINGS[padding_mode], align_corners)

grid_sampler_2d = grid_sampler_3d = grid_sampler

def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool = False) -> Tensor:
  """Return the grid of an affine map (N, d, d + 1) for grid_sample, for an output (N, C, *size)."""
  lengths = [int(d) for d in size][2:]
  axes = []
  for d in lengths:
    line = Tensor.linspace(-1, 1, d) if d > 1 else Tensor.zeros(1)
    axes.append(line if align_corners else line.mul((d - 1) / d))
  grid = axes[0].meshgrid(*axes[1:])
  points = grid[-1].stack(*grid[-2::-1], grid[0].const_like(1.0), dim=-1).reshape(1, -1, len(lengths) + 1)
  return points.matmul(theta.transpose(1, 2)).reshape(int(size[0]), *lengths, len(lengths))
