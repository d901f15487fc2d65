"""Operators of ONNX that select and place elements. Source: ONNX operator schemas (ai.onnx)."""
from __future__ import annotations
import math
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, IndexRangeError, ShapeError
from tinyhw.nn.onnx.operator import Int, Known, Value, as_numbers, as_tensor, define, of_numbers, operator
from tinyhw.nn.onnx.ops.shape import axis_of, sizes
from tinyhw.tensor import Tensor

def wrapped(index: Tensor, size: int) -> Tensor:
  """Let negative indices count from the end."""
  wide = index.cast(dtypes.int64) if index.dtype.itemsize > 4 else index.cast(dtypes.int32)
  return (wide < 0).where(wide + size, wide)

@operator("Gather")
def gather(x: Tensor, indices: Value, *, axis: int = 0) -> Tensor:
  axis = axis_of(axis, x.ndim)
  size = int(x.shape[axis])
  # a view: nothing is computed
  if isinstance(indices, Known) and len(indices.values) == 1 and dtypes.is_int(indices.dtype):
    i = indices.values[0]
    if not -size <= i < size: raise IndexRangeError(f"index {i} is outside of axis {axis} of {x.shape}")
    part = x.shrink([(i % size, i % size + 1) if k == axis else (0, d) for k, d in enumerate(sizes(x))])
    return part.reshape((*sizes(x)[:axis], *indices.shape, *sizes(x)[axis + 1:]))
  index = as_tensor(indices)
  if not dtypes.is_int(index.dtype): raise ArgumentError(f"Gather wants whole numbers as indices, not {index.dtype}")
  return x[(slice(None),) * axis + (wrapped(index, size),)]

@operator("GatherElements", 11)
def gather_elements(x: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
  axis = axis_of(axis, x.ndim)
  return x.gather(axis, wrapped(indices, int(x.shape[axis])))

def _linear(shape: tuple[int, ...], indices: Tensor) -> Tensor:
  """Convert tuples of indices (the last axis) to indices in row-major order."""
  wide = indices.cast(dtypes.int64)
  place = None
  for i, d in enumerate(shape):
    part = wrapped(wide[..., i], d)
    place = part if place is None else place * d + part
  assert place is not None
  return place

@operator("GatherND", 11)
def gather_nd(x: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
  k, b, shape = int(indices.shape[-1]), batch_dims, sizes(x)
  if not 0 <= b < min(x.ndim, indices.ndim) or not 1 <= k <= x.ndim - b or shape[:b] != sizes(indices)[:b]:
    raise ShapeError(f"cannot gather from {x.shape} by tuples of shape {indices.shape} with {b} batch axes")
  batch, rest = math.prod(shape[:b]), shape[b + k:]
  place = _linear(shape[b:b + k], indices.reshape(batch, -1, k))
  inner = math.prod(shape[b:b + k])
  offset = Tensor.arange(batch, dtype=dtypes.int64, device=x.device).reshape(-1, 1) * inner
  return x.reshape(batch * inner, *rest)[(place + offset).flatten()].reshape((*shape[:b], *sizes(indices)[b:-1], *rest))

_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}

def _placed(x: Tensor, axis: int, index: Tensor, updates: Tensor, reduction: str) -> Tensor:
  if reduction == "none": return x.scatter(axis, index, updates)
  if reduction not in _REDUCTIONS:
    raise ArgumentError(f"reduction is none, {', '.join(_REDUCTIONS)}, not {reduction!r}")
  return x.scatter_reduce(axis, index, updates, _REDUCTIONS[reduction])

def scatter_elements(x: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "none") -> Tensor:
  axis = axis_of(axis, x.ndim)
  return _placed(x, axis, wrapped(indices, int(x.shape[axis])), updates, reduction)

define("ScatterElements", scatter_elements, 11)
define("Scatter", scatter_elements, 9)

@operator("ScatterND", 11)
def scatter_nd(x: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none") -> Tensor:
  shape, k = sizes(x), int(indices.shape[-1])
  if not 1 <= k <= x.ndim or sizes(updates) != sizes(indices)[:-1] + shape[k:]:
    raise ShapeError(f"cannot scatter {updates.shape} into {shape} by tuples of shape {indices.shape}")
  rest = math.prod(shape[k:])
  place = _linear(shape[:k], indices).reshape(-1, 1)
  flat = _placed(x.reshape(math.prod(shape[:k]), rest), 0, place.expand(place.shape[0], rest),
                 updates.reshape(-1, rest), reduction)
  return flat.reshape(shape)

@operator("TopK", 1)
def top_k_by_attribute(x: Tensor, *, k: int, axis: int = -1) -> Any: return _top(x, k, axis, 1)
@operator("TopK", 10)
def top_k(x: Tensor, k: Int, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> Any:
  return _top(x, k, axis, largest)

def _top(x: Tensor, k: int, axis: int, largest: int) -> tuple[Tensor, Tensor]:
  values, places = x.topk(k, axis_of(axis, x.ndim), bool(largest))
  return values, places.cast(dtypes.int64)

@operator("NonZero", 9)
def non_zero(x: Value) -> Any:
  """Return the indices of nonzero elements, one column for each.

  The values have to be known, since the shape of the result depends on them.
  """
  if not isinstance(x, Known): return as_tensor(x).nonzero().cast(dtypes.int64).transpose()
  shape = x.shape or (1,)
  flat = [i for i, v in enumerate(x.values) if v]
  strides = [math.prod(shape[i + 1:]) for i in range(len(shape))]
  return of_numbers([i // s % d for s, d in zip(strides, shape) for i in flat], dtypes.int64, (len(shape), len(flat)))

@operator("Compress", 9)
def compress(x: Tensor, condition: Value, *, axis: int | None = None) -> Tensor:
  if axis is None: x, axis = x.flatten(), 0
  axis = axis_of(axis, x.ndim)
  chosen = [i for i, v in enumerate(as_numbers(condition)) if v]
  if chosen and chosen[-1] >= int(x.shape[axis]):
    raise IndexRangeError(f"Compress names element {chosen[-1]} of axis {axis} of {x.shape}")
  if not chosen: return x.shrink([(0, 0) if i == axis else (0, d) for i, d in enumerate(sizes(x))])
  return x[(slice(None),) * axis + (Tensor(chosen, device=x.device),)]

@operator("Unique", 11)
def unique(x: Tensor, *, axis: int | None = None, sorted: int = 1) -> Any:
  """Return the distinct elements (or slices), the index where each first occurs, the number of each element, and the
  counts.

  The values are read.
  """
  t = x
  if axis is None: t, axis = t.flatten(), 0
  axis = axis_of(axis, t.ndim)
  order = [axis, *(i for i in range(t.ndim) if i != axis)]
  rows = t.permute(order).reshape(int(t.shape[axis]), -1).tolist()
  first: dict[tuple[Any, ...], int] = {}
  for i, row in enumerate(rows): first.setdefault(tuple(row), i)
  kept = _sorted(first) if sorted else list(first)
  number = {row: i for i, row in enumerate(kept)}
  inverse = [number[tuple(row)] for row in rows]
  counts = [0] * len(kept)
  for i in inverse: counts[i] += 1
  firsts = [first[row] for row in kept]
  values = t[(slice(None),) * axis + (Tensor(firsts, device=t.device),)] if firsts else t
  return values, *(Tensor(numbers, dtype=dtypes.int64, device=t.device) for numbers in (firsts, inverse, counts))

def _sorted(rows: Any) -> list[Any]: return sorted(rows)

@operator("TensorScatter", 24)
def tensor_scatter(x: Tensor, update: Tensor, start: Value = None, *, axis: int = -2, mode: str = "linear") -> Tensor:
  """Write update over the elements of x from start[batch] on along an axis. circular: continue at the beginning of the
  axis."""
  axis = axis_of(axis, x.ndim)
  n, count, batch = int(x.shape[axis]), int(update.shape[axis]), int(x.shape[0])
  if mode not in ("linear", "circular"): raise ArgumentError(f"mode is linear or circular, not {mode!r}")
  begin = (Tensor.zeros(batch, dtype=dtypes.int64, device=x.device) if start is None
           else as_tensor(start).cast(dtypes.int64))
  if axis == 0 or begin.shape != (batch,):
    raise ShapeError(f"a TensorScatter along axis {axis} with starts of shape {begin.shape}")
  place = begin.reshape(-1, 1) + Tensor.arange(count, dtype=dtypes.int64, device=x.device)
  if mode == "circular": place = place % n
  shape = [batch if i == 0 else count if i == axis else 1 for i in range(x.ndim)]
  return x.scatter(axis, place.reshape(shape).expand(update.shape), update)

@operator("NonMaxSuppression", 10)
def non_max_suppression(boxes: Value, scores: Value, most: Value = None, iou_threshold: Value = None,
                        score_threshold: Value = None, *,
                        center_point_box: int = 0) -> Any:
  """Return (batch, class, box) of the best boxes. Such a box overlaps no better one by more than iou_threshold.

  The values are read.
  """
  limit = int(as_numbers(most)[0]) if most is not None else 0
  overlap = float(as_numbers(iou_threshold)[0]) if iou_threshold is not None else 0.0
  least = float(as_numbers(score_threshold)[0]) if score_threshold is not None else -math.inf
  found: list[int] = []
  for b, (corners, by_class) in enumerate(zip(as_tensor(boxes).tolist(), as_tensor(scores).tolist())):
    areas = [_corners(box, center_point_box) for box in corners]
    for c, values in enumerate(by_class):
      kept: list[int] = []
      for i in sorted((i for i, v in enumerate(values) if v > least), key=lambda i: -values[i]):
        if len(kept) >= limit: break
        if all(_overlap(areas[i], areas[k]) <= overlap for k in kept): kept.append(i)
      for i in kept: found += [b, c, i]
  return of_numbers(found, dtypes.int64, (len(found) // 3, 3))

def _corners(box: list[float], centre: int) -> tuple[float, float, float, float]:
  if centre:
    x, y, w, h = box
    return y - h / 2, x - w / 2, y + h / 2, x + w / 2
  y1, x1, y2, x2 = box
  return min(y1, y2), min(x1, x2), max(y1, y2), max(x1, x2)

def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> float:
  """Return the area that two boxes share, divided by the area that they cover together."""
  height, width = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
  if height <= 0 or width <= 0: return 0.0
  shared = height * width
  covered = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared
  return shared / covered if covered > 0 else 0.0
