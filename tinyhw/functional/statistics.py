"""Statistics: quantiles, medians, modes, histograms, covariances, unique elements, searches in sorted vectors.

Indices and counts are int64. Unique elements and counts of a data-dependent number are read back.
"""
from __future__ import annotations
import math
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.functional.known import want_all
from tinyhw.functional.operands import as_row, axis_of, checked, floats, result_type, sizes, want_float, want_int
from tinyhw.functional.reductions import ValuesIndices, sort
from tinyhw.functional.shapes import cat, movedim, part
from tinyhw.methods.base import Handle
from tinyhw.methods.checks import is_number, real, whole
from tinyhw.named_tuple import NamedTuple
from tinyhw.tensor import Tensor

# ***** order statistics *****

def quantile(input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *,
             interpolation: str = "linear") -> Tensor:
  """Return the q-quantiles along an axis, or of all elements; NaN where there is one."""
  return _quantile("quantile", input, q, dim, keepdim, interpolation)

def nanquantile(input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *,
                interpolation: str = "linear") -> Tensor:
  """Return the q-quantiles of elements that are not NaN."""
  return _quantile("nanquantile", input, q, dim, keepdim, interpolation)

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")

def _quantile(name: str, input: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str) -> Tensor:
  want_float(name, checked(name, input))
  if interpolation not in _INTERPOLATIONS:
    raise ArgumentError(f"interpolation is one of {', '.join(_INTERPOLATIONS)}, not {interpolation!r}")
  if isinstance(q, Handle):
    if q.dtype is not input.dtype: raise DTypeError(f"q is a tensor of {q.dtype}, the input of {input.dtype}")
    if q.ndim > 1: raise ShapeError(f"q is a number or a vector, not {q.shape}")
  elif not 0 <= real("q", q) <= 1: raise ArgumentError(f"q is {q}; it is from 0 to 1")
  shares = q._self() if isinstance(q, Handle) else Tensor(float(q), dtype=input.dtype)
  many = shares.ndim == 1
  if isinstance(q, Handle): want_all("q has elements outside of 0..1", shares.ge(0).bitwise_and(shares.le(1)), q)
  axis = None if dim is None else axis_of(input, dim)
  x = input.flatten().unsqueeze(-1).transpose(0, 1).squeeze(0) if axis is None else as_row(input).transpose(axis, -1)
  n = sizes(x)[-1]
  if n == 0: raise ShapeError(f"{name} of no elements; the shape is {input.shape}")
  values = x.sort(-1)[0]
  counted = x.isnan().logical_not().sum(-1, keepdim=True).cast(x.dtype)
  last = counted.sub(1).maximum(0) if name == "nanquantile" else counted.const_like(n - 1)
  found = _between(values, last, as_row(shares), interpolation)   # (..., q)
  missing = counted.eq(0) if name == "nanquantile" else counted.lt(n)
  found = missing.where(math.nan, found)
  return _placed(found, input, axis, keepdim, many)

def _between(values: Tensor, last: Tensor, shares: Tensor, interpolation: str) -> Tensor:
  place = last.mul(shares)
  if interpolation == "nearest": place = place.round()
  low = place.ceil() if interpolation == "higher" else place.floor()
  below = values.gather(-1, low.int())
  if interpolation in ("lower", "higher", "nearest"): return below
  above = values.gather(-1, place.ceil().int())
  weight = place.sub(low) if interpolation == "linear" else place.const_like(0.5)
  return below.add(above.sub(below).mul(weight)) if interpolation == "linear" else below.lerp(above, weight)

def _placed(found: Tensor, input: Tensor, axis: int | None, keepdim: bool, many: bool) -> Tensor:
  """Return quantiles (..., q) with the axis of q in front, and the reduced axis where it was."""
  if axis is None:
    found = found.reshape(-1, *(1,) * input.ndim) if keepdim else found.reshape(-1)
    return found if many else found.squeeze(0) if keepdim else found.reshape(())
  moved = found.unsqueeze(0).transpose(0, -1).squeeze(-1) if found.ndim == 1 else movedim(found, -1, 0)
  if not input.ndim: return moved.reshape(-1) if many else moved.reshape(())
  shape = [d for i, d in enumerate(sizes(as_row(input).transpose(axis, -1))) if i != input.ndim - 1]
  back = moved.reshape(sizes(moved)[0], *shape, 1).transpose(axis + 1, -1)
  back = back if keepdim else back.squeeze(axis + 1)
  return back if many else back.squeeze(0)

def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
  """Return the lower median; with dim, (values, indices) along it. NaN where there is one."""
  return _median(checked("median", input), dim, keepdim, False)

def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
  """Return the lower median of elements that are not NaN; with dim, (values, indices) along it."""
  return _median(checked("nanmedian", input), dim, keepdim, True)

def _median(x: Tensor, dim: int | None, keepdim: bool, skips: bool) -> Any:
  if dim is None:
    if not x.numel(): return Tensor(math.nan, dtype=x.dtype)
    return _median(x.flatten(), 0, False, skips).values
  axis = axis_of(x, dim)
  if not x.ndim: return ValuesIndices(x.clone(), x.const_like(0, dtypes.int64))
  if not sizes(x)[axis]: raise ShapeError(f"median along axis {axis} of {x.shape}: there is no element")
  values, places = sort(x, axis)
  nans = x.isnan().sum(axis, keepdim=True) if dtypes.is_float(x.dtype) else x.const_like(0, dtypes.int32).max(axis,
                                                                                                              True)
  n = sizes(x)[axis]
  middle = nans.sub(n - 1, reverse=True).maximum(0).idiv(2) if skips else nans.gt(0).where(
    nans.sub(n, reverse=True), (n - 1) // 2)
  found = values.gather(axis, middle), places.gather(axis, middle)
  return ValuesIndices(*found) if keepdim else ValuesIndices(*(y.squeeze(axis) for y in found))

def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> ValuesIndices:
  """Return the most frequent value along an axis, the smallest of several, and the last index of it."""
  axis = axis_of(checked("mode", input), dim)
  if not input.ndim: return ValuesIndices(input.clone(), input.const_like(0, dtypes.int64))
  n = sizes(input)[axis]
  if not n: raise ShapeError(f"mode along axis {axis} of {input.shape}: there is no element")
  x = movedim(input, axis, -1)
  values, places = x.sort(-1)
  values = values.contiguous()
  position = Tensor.arange(n, dtype=dtypes.int32)
  begins = part(values, x.ndim - 1, 1, n).ne(part(values, x.ndim - 1, 0, n - 1)).pad([None] * (x.ndim - 1) + [(1, 0)])
  length = position.sub(begins.where(position, 0).cummax(-1)[0]).contiguous()
  last = places.gather(-1, length.argmax(-1, keepdim=True))     # the end of the first run of the greatest length
  found = (movedim(y, -1, axis) for y in (x.gather(-1, last), last.long()))
  return ValuesIndices(*found) if keepdim else ValuesIndices(*(y.squeeze(axis) for y in found))

# ***** histograms *****

def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
  """Return how often each whole number occurs, or the sum of its weights."""
  want_int("bincount", checked("bincount", input))
  if input.ndim != 1: raise ShapeError(f"bincount wants a vector, not {input.shape}")
  if minlength < 0: raise ArgumentError(f"minlength is {minlength}; it must be at least 0")
  if weights is not None and sizes(weights) != sizes(input):
    raise ShapeError("bincount wants a weight for each element")
  if not input.numel(): return Tensor.zeros(minlength, dtype=dtypes.int64)
  if input.min().item() < 0: raise ArgumentError("bincount wants elements that are not negative")
  n = max(int(input.max().item()) + 1, minlength)
  if weights is None: return _sums(input, n, input.const_like(1, dtypes.int32)).long()
  return _sums(input, n, weights if dtypes.is_float(weights.dtype) else weights.double())

def _sums(places: Tensor, n: int, weights: Tensor) -> Tensor:
  """Return, for each of n places, the sum of the weights that go there. A place of -1 is none."""
  if not weights.numel(): return Tensor.zeros(n, dtype=weights.dtype, device=weights.device)
  return weights.const_like(0)[:1].expand(n).scatter_reduce(0, places, weights, "sum")

def _range(x: Tensor, low: float, high: float) -> tuple[float, float]:
  if low == high == 0 and x.numel(): low, high = float(x.min().item()), float(x.max().item())
  if not (math.isfinite(low) and math.isfinite(high)): raise ArgumentError(f"the range {low}..{high} is not finite")
  if low > high: raise ArgumentError(f"the range {low}..{high} is empty; min is at most max")
  return (low - 1, high + 1) if low == high else (low, high)

def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
  """Return how many elements are in each of `bins` equal intervals of min..max (0, 0: of all elements)."""
  x, bins = checked("histc", input).flatten(), whole("bins", bins)
  if bins < 1: raise ArgumentError(f"bins is {bins}; it must be at least 1")
  want_float("histc", x)
  low, high = _range(x, float(min), float(max))
  place = x.sub(low).mul(bins).div(high - low).floor().minimum(bins - 1)
  inside = x.ge(low) & x.le(high)
  return _sums(inside.where(place, -1).int(), bins, x.const_like(1, dtypes.int32)).cast(x.dtype)

class Histogram(NamedTuple):
  """Counts or densities of intervals, and the edges of the intervals."""
  hist: Tensor
  bin_edges: Any

def histogram(input: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None,
              density: bool = False) -> Histogram:
  """Return counts of elements in intervals, and the edges. bins: their number, or the edges."""
  x = checked("histogram", input).flatten()
  found, edges = histogramdd(x.unsqueeze(1), [bins] if is_number(bins) else (bins,), range=range,
                             weight=None if weight is None else weight.flatten(), density=density)
  return Histogram(found, edges[0])

def histogramdd(input: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None,
                density: bool = False) -> Histogram:
  """Return counts of points (..., d) in the cells of a grid of d axes, and the edges along each.

  Edges ascend. If they do not, a point is searched between them as if they did, as PyTorch does.
  """
  want_float("histogram", checked("histogram", input))
  d = sizes(input)[-1]
  points = input.reshape(-1, d)
  given = [bins] * d if is_number(bins) else list(bins)
  if len(given) != d: raise ArgumentError(f"histogramdd wants bins for each of {d} axes, not {len(given)}")
  edges = [_edges(points[:, i], given[i], None if range is None else range[2 * i:2 * i + 2]) for i in _count(d)]
  counted = weight is None
  total = points.const_like(1, dtypes.int32 if counted else points.dtype)[:, 0]
  if weight is not None: total = weight.reshape(-1).cast(points.dtype)
  cell = points.const_like(0, dtypes.int32)[:, 0]
  for i, edge in enumerate(edges):
    column, n = points[:, i], sizes(edge)[0] - 1
    place = _counted(edge, column, True).sub(1).minimum(n - 1)     # the last interval has its upper edge, too
    place = (column.ge(edge[0]) & column.le(edge[-1])).where(place, -1)
    cell = (cell.ge(0) & place.ge(0)).where(cell.mul(n).add(place), -1)
  shape = [sizes(edge)[0] - 1 for edge in edges]
  counts = _sums(cell, math.prod(shape), total).cast(points.dtype).reshape(shape)
  if density:
    counts = counts.div(counts.sum())
    for i, edge in enumerate(edges):
      counts = counts.div(edge[1:].sub(edge[:-1]).reshape([-1 if k == i else 1 for k in _count(d)]))
  return Histogram(counts, edges)

_count = range

def _edges(x: Tensor, bins: Any, given: Any) -> Tensor:
  if isinstance(bins, Handle):
    return bins._self()
  n = whole("bins", bins, 1)
  low, high = (0.0, 1.0) if given is None else (float(given[0]), float(given[1]))
  if given is None and x.numel(): low, high = float(x.min().item()), float(x.max().item())
  if not low <= high: raise ArgumentError(f"the range {low}..{high} is empty")
  if low == high: low, high = low - 0.5, high + 0.5
  return Tensor.linspace(low, high, n + 1, dtype=x.dtype)

# ***** covariance *****

def cov(input: Tensor, *, correction: int = 1, fweights: Tensor | None = None,
        aweights: Tensor | None = None) -> Tensor:
  """Return the covariances of rows, whose columns are observations with whole and real weights."""
  x = floats(checked("cov", input))[0]
  if x.ndim > 2: raise ShapeError(f"cov wants a vector or a matrix, not {x.shape}")
  for name, w in (("fweights", fweights), ("aweights", aweights)):
    if w is None: continue
    if w.ndim > 1 or sizes(as_row(w))[0] != sizes(as_row(x))[-1]:
      raise ShapeError(f"{name} wants a weight for each of {sizes(as_row(x))[-1]} observations, not {w.shape}")
    if dtypes.is_float(w.dtype) == (name == "fweights"): raise DTypeError(f"{name} has type {w.dtype}")
    want_all(f"{name} has negative elements", w.ge(0), w)
  rows = x.reshape(1, -1) if x.ndim < 2 else x
  if not rows.numel(): return Tensor.full((), math.nan, x.dtype) if x.ndim < 2 else Tensor.full(
    (sizes(rows)[0],) * 2, math.nan, x.dtype)
  if aweights is not None: x = x.cast(result_type(x, aweights))
  rows = rows.cast(x.dtype)
  weights = None
  for w in (fweights, aweights):
    if w is not None: weights = w.cast(x.dtype) if weights is None else weights.mul(w.cast(x.dtype))
  n = sizes(rows)[1]
  total = weights.sum() if weights is not None else Tensor(float(n), dtype=x.dtype)
  mean = rows.mul(weights).sum(1, keepdim=True).div(total) if weights is not None else rows.mean(1, keepdim=True)
  divisor = total.sub(correction) if aweights is None or not correction else total.sub(
    weights.mul(aweights.cast(x.dtype)).sum().div(total).mul(correction))  # type: ignore[union-attr]
  centred = rows.sub(mean)
  weighted = centred if weights is None else centred.mul(weights)
  found = weighted.matmul(centred.transpose(0, 1)).div(divisor.maximum(0))
  return found.reshape(()) if sizes(found) == (1, 1) and x.ndim < 2 or sizes(found) == (1, 1) else found

def corrcoef(input: Tensor) -> Tensor:
  """Return the correlation coefficients of rows."""
  found = cov(input)
  if not found.ndim: return found.div(found)
  spread = found.diagonal().sqrt()
  return found.div(spread.unsqueeze(1)).div(spread.unsqueeze(0)).clamp(-1, 1)

# ***** unique *****

def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
           dim: int | None = None) -> Any:
  """Return the different elements, or rows along an axis, in order; where they went; how many there were."""
  x = checked("unique", input)
  rows = x.reshape(-1, 1) if dim is None else _as_rows(x, axis_of(x, dim))
  order = _order_of_rows(rows)
  back = order.argsort(0)
  ordered = rows[order]
  return _grouped(x, ordered, dim, return_inverse, return_counts, back)

def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False,
                       dim: int | None = None) -> Any:
  """Return the first of each group of adjacent equal elements, or rows along an axis."""
  x = checked("unique_consecutive", input)
  rows = x.reshape(-1, 1) if dim is None else _as_rows(x, axis_of(x, dim))
  return _grouped(x, rows, dim, return_inverse, return_counts, None)

def _as_rows(x: Tensor, axis: int) -> Tensor:
  moved = movedim(as_row(x), axis, 0)
  if 0 in sizes(moved)[1:] and sizes(moved)[0]:
    raise ShapeError(f"unique along axis {axis} of {x.shape}: rows have no elements")
  return moved.reshape(sizes(moved)[0], -1) if moved.numel() else moved.reshape(sizes(moved)[0], 1)

def _order_of_rows(rows: Tensor) -> Tensor:
  """Return the indices that sort rows, the first column first: stable sorts by each column, the last one first."""
  n, columns = sizes(rows)
  order = Tensor.arange(n, dtype=dtypes.int32) if n else Tensor.empty(0, dtype=dtypes.int32)
  for i in reversed(range(columns)) if n else ():
    order = order[_narrow(rows[:, i])[order].argsort(0)].contiguous().realize()
  return order

def _narrow(x: Tensor) -> Tensor:
  """Return numbers that sort as a vector does. Whole numbers are counted from the least one, so that a sort of few
  bits does. They are read."""
  if not dtypes.is_int(x.dtype) or x.dtype.itemsize < 4 or sizes(x)[0] < _MANY: return x
  low, high = int(x.min().item()), int(x.max().item())
  kind = next((k for k in (dtypes.uint8, dtypes.uint16, dtypes.uint32) if high - low <= int(k.max)), None)
  return x if kind is None or kind.itemsize >= x.dtype.itemsize else x.sub(low).cast(kind)

_MANY = 1 << 14      # elements of a vector, from which reading its extremes is less work than sorting all bits

def _grouped(x: Tensor, rows: Tensor, dim: int | None, inverse: bool, counted: bool, back: Tensor | None) -> Any:
  n = sizes(rows)[0]
  if n:
    first = rows[1:].ne(rows[:-1]).any(1) if n > 1 else Tensor.empty(0, dtype=dtypes.bool)
    first = cat([Tensor([True]), first], 0) if n > 1 else Tensor([True])
    starts = first.nonzero().squeeze(1).realize()
    kept = rows[starts]
    groups = first.int().cumsum(0).sub(1)
  else: kept, groups, starts = rows, Tensor.empty(0, dtype=dtypes.int32), Tensor.empty(0, dtype=dtypes.int32)
  if dim is None: values = kept.reshape(-1)
  else:
    axis = axis_of(x, dim)
    moved = movedim(as_row(x), axis, 0)
    values = movedim(kept.reshape(sizes(kept)[0], *sizes(moved)[1:]), 0, axis) if x.numel() else x
  found: list[Tensor] = [values]
  if inverse:
    where = groups if back is None else groups[back] if n else groups
    found.append(where.long().reshape(sizes(x)) if dim is None else where.long())
  if counted:
    ends = cat([starts[1:], Tensor([n], dtype=starts.dtype)], 0) if n else starts
    found.append(ends.sub(starts).long())
  return found[0] if len(found) == 1 else tuple(found)

# ***** searches *****

def searchsorted(sorted_sequence: Tensor, input: Any, *, out_int32: bool = False, right: bool = False,
                 side: str | None = None, sorter: Tensor | None = None) -> Tensor:
  """Return the index where each value goes into a sorted last axis: before equal elements, or (right) after them."""
  if side not in (None, "left", "right"): raise ArgumentError(f"side is 'left' or 'right', not {side!r}")
  if side == "left" and right: raise ArgumentError("side='left' contradicts right=True")
  edges = checked("searchsorted", sorted_sequence)
  if sorter is not None:
    if sizes(sorter) != sizes(edges): raise ShapeError(f"sorter has shape {sorter.shape}, not {edges.shape}")
    want_int("sorter", sorter)
    edges = edges.gather(-1, sorter)
  values = input._self() if isinstance(input, Handle) else Tensor(input, dtype=edges.dtype)
  if values.dtype is not edges.dtype: raise DTypeError(f"values are {values.dtype}, edges {edges.dtype}; cast one")
  if edges.ndim > 1 and (sizes(values)[:-1] != sizes(edges)[:-1] or not values.ndim):
    raise ShapeError(f"searchsorted: values {values.shape} and edges {edges.shape} differ before the last axis")
  found = _counted(edges, values, right or side == "right")
  return found.int() if out_int32 else found.long()

def _counted(edges: Tensor, values: Tensor, right: bool) -> Tensor:
  """Return the number of edges below each value, or (right) not above it, by halving. NaN comes after all edges."""
  n = sizes(edges)[-1]
  first, left = values.const_like(0, dtypes.int32), values.const_like(n, dtypes.int32)
  for _ in range(n.bit_length()):
    half = left.rshift(1)
    middle = (first + half).minimum(n - 1)
    edge = edges[middle] if edges.ndim < 2 else edges.gather(-1, middle)
    beyond = (edge.gt(values) if right else edge.ge(values)).logical_not() & left.gt(0)
    first, left = beyond.where(middle + 1, first), beyond.where(left - half - 1, half)
  return first

def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
  """Return the index of the interval of each value, between sorted boundaries."""
  if checked("bucketize", boundaries).ndim != 1: raise ShapeError(f"boundaries are a vector, not {boundaries.shape}")
  values = input._self() if isinstance(input, Handle) else Tensor(input)
  found = _counted(boundaries, values.cast(boundaries.dtype), right)
  return found.int() if out_int32 else found.long()

