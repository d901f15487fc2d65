"""Reads and writes at indices: PyTorch's index_, scatter_ and masked_ families, take and put, parts replaced by others.

Nothing is written in place: each function returns the new tensor. Indices are tensors of integers, or lists.
"""
from __future__ import annotations
from collections.abc import Callable, Sequence
import math
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.functional.known import is_known, want_index, want_indices
from tinyhw.functional.operands import as_row, axis_of, checked, common_shape, sizes, tensor, want_int
from tinyhw.functional.shapes import linalg_diagonal, movedim, part
from tinyhw.methods.base import Handle
from tinyhw.methods.checks import is_number
from tinyhw.tensor import Tensor

def _vector(what: str, index: Tensor) -> Tensor:
  want_int(f"an index of {what}", checked(f"an index of {what}", index))
  if index.ndim > 1: raise ShapeError(f"{what} wants a vector of indices, not {index.shape}")
  return as_row(index)

def _along(x: Tensor, axis: int, index: Tensor) -> Tensor:
  """Return an index vector expanded to x's shape, but for the axis."""
  shape = [sizes(index)[0] if i == axis else 1 for i in range(x.ndim)]
  return index.reshape(shape).expand([sizes(index)[0] if i == axis else d for i, d in enumerate(sizes(x))])

def _nonnegative(index: Tensor, n: int) -> Tensor: return index.lt(0).where(index.add(n), index)

def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
  """Return the elements of an axis that a vector names."""
  index = _vector("index_select", index)
  axis = axis_of(checked("index_select", input), dim)
  if not input.ndim: return input.reshape(1).gather(0, index).reshape(() if sizes(index) == (1,) else (-1,))
  want_index("an index of index_select", index, sizes(input)[axis])
  return input[(slice(None),) * axis + (index,)]

def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
  """Return input with a value at the indices of an axis."""
  if isinstance(value, Handle) and value.ndim: raise ShapeError(f"value has shape {value.shape}; it has no axes")
  axis, index, x = axis_of(input, dim), _vector("index_fill", index), as_row(input)
  want_index("an index of index_fill", index, sizes(x)[axis], -sizes(x)[axis])
  places = _along(x, axis, _nonnegative(index, sizes(x)[axis]))
  values = tensor(value, input, x.dtype).expand(sizes(places))
  return x.scatter(axis, places, values).reshape(sizes(input))

def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
  """Return input with rows of source at the indices of an axis."""
  axis, index, x, source = _row_operands("index_copy", input, dim, index, source)
  return x.scatter(axis, _along(x, axis, index), source).reshape(sizes(input))

def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
  """Return input with alpha times the rows of source added at the indices of an axis."""
  axis, index, x, source = _row_operands("index_add", input, dim, index, source)
  if isinstance(alpha, float) and not dtypes.is_float(x.dtype): raise DTypeError(f"alpha {alpha} is no integer")
  if x.dtype is dtypes.bool: return index_reduce(input, dim, index, source.mul(alpha).bool(), "amax")
  return x.scatter_reduce(axis, _along(x, axis, index), source.mul(alpha), "sum").reshape(sizes(input))

def index_reduce(input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *,
                 include_self: bool = True) -> Tensor:
  """Return input with the rows of source reduced into the indices of an axis: prod, mean, amax or amin."""
  if reduce not in ("prod", "mean", "amax", "amin"):
    raise ArgumentError(f"reduce is 'prod', 'mean', 'amax' or 'amin', not {reduce!r}")
  axis, index, x, source = _row_operands("index_reduce", input, dim, index, source)
  found = x.scatter_reduce(axis, _along(x, axis, index), source, reduce, include_self)
  return found.reshape(sizes(input))

def _row_operands(what: str, input: Tensor, dim: int, index: Tensor, source: Tensor) -> tuple[int, Tensor, Tensor,
                                                                                               Tensor]:
  axis, index, x = axis_of(checked(what, input), dim), _vector(what, index), as_row(input)
  source = checked(what, source)
  if source.dtype is not x.dtype: raise DTypeError(f"{what} wants one type, not {x.dtype} and {source.dtype}")
  wanted = tuple([sizes(index)[0] if i == axis else d for i, d in enumerate(sizes(x))])
  found = sizes(as_row(source)) if x.ndim == 1 else sizes(source)
  if found != wanted: raise ShapeError(f"{what} wants a source of shape {wanted}, not {source.shape}")
  want_index(f"an index of {what}", index, sizes(x)[axis])
  return axis, index, x, source.reshape(wanted)

def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
  """Return out[i][j] = input[index[i][j]][j] for dim 0."""
  axis = axis_of(checked("gather", input), dim)
  want_int("gather's index", checked("gather", index))
  x = as_row(input)
  if not index.numel(): return Tensor.empty(*sizes(index), dtype=x.dtype)
  if max(index.ndim, 1) != x.ndim: raise ShapeError(f"gather: an index of {index.shape} for {input.shape}")
  want_index("an index of gather", index, sizes(x)[axis])
  return x.gather(axis, as_row(index)).reshape(sizes(index))

def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
  """Return elements along an axis that indices name; both broadcast in the other axes."""
  want_int("take_along_dim's indices", checked("take_along_dim", indices))
  if dim is None: return gather(input.reshape(-1), 0, indices.reshape(-1))
  axis = axis_of(checked("take_along_dim", input), dim)
  if input.ndim != indices.ndim: raise ShapeError(f"take_along_dim: {indices.shape} for {input.shape}; axes differ")
  shape = common_shape([1 if i == axis else d for i, d in enumerate(sizes(input))],
                       [1 if i == axis else d for i, d in enumerate(sizes(indices))])
  wide = [input.expand([sizes(x)[i] if i == axis else d for i, d in enumerate(shape)]) if x is input else
          indices.expand([sizes(x)[i] if i == axis else d for i, d in enumerate(shape)]) for x in (input, indices)]
  want_index("an index of take_along_dim", indices, sizes(input)[axis], -sizes(input)[axis])
  return gather(wide[0], axis, _nonnegative(wide[1], sizes(input)[axis]))

def take(input: Tensor, index: Tensor) -> Tensor:
  """Return elements of the flattened tensor."""
  want_int("take's index", checked("take", index))
  flat = input.reshape(-1)
  if not index.numel(): return Tensor.empty(*sizes(index), dtype=input.dtype)
  want_index("an index of take", index, sizes(flat)[0], -sizes(flat)[0])
  return flat.gather(0, _nonnegative(index, sizes(flat)[0]).reshape(-1)).reshape(sizes(index))

def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
  """Return input with values at indices of the flattened tensor, or added there."""
  want_int("put's index", checked("put", index))
  if source.dtype is not input.dtype: raise DTypeError(f"put wants one type, not {input.dtype} and {source.dtype}")
  if source.numel() != index.numel(): raise ShapeError(f"put: {source.numel()} values for {index.numel()} indices")
  flat = input.reshape(-1)
  if not index.numel(): return input.clone()
  want_index("an index of put", index, sizes(flat)[0], -sizes(flat)[0])
  places = _nonnegative(index, sizes(flat)[0]).reshape(-1)
  values = source.reshape(-1)
  found = flat.scatter_reduce(0, places, values, "sum") if accumulate else flat.scatter(0, places, values)
  return found.reshape(sizes(input))

def index_put(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
  """Return input with values at indices, one tensor for each of the first axes, or added there."""
  chosen = tuple([slice(None) if i is None else i for i in indices])
  want_indices(input, chosen)
  places = _numbered(input)[chosen]
  wide = checked("index_put", values).cast(input.dtype).expand(sizes(places))
  return put(input, places.contiguous(), wide.contiguous(), accumulate)

def _numbered(x: Tensor) -> Tensor:
  return Tensor.arange(int(x.numel()), dtype=dtypes.int32).reshape(sizes(x))

def masked_index(input: Tensor, mask: Tensor, indices: Sequence[Any], fill: Any) -> Tensor:
  """Return input[indices] where mask is true, else fill."""
  kept = [i if i is None else mask.where(i, 0) for i in indices]
  return mask.where(input[tuple([slice(None) if i is None else i for i in kept])], fill)

def masked_index_put_accumulate(input: Tensor, mask: Tensor, indices: Sequence[Any], values: Tensor) -> Tensor:
  """Return input with values added at indices where mask is true."""
  kept = [i if i is None else mask.where(i, 0) for i in indices]
  return index_put(input, kept, mask.where(values, 0), True)

# ***** scatter *****

def scatter(input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None,
            reduce: str | None = None) -> Tensor:
  """Return input with input[index[i][j]][j] = src[i][j] for dim 0. src may be a number. reduce: "add", "multiply"."""
  if src is None: src = value
  x, axis = as_row(checked("scatter", input)), axis_of(input, dim)
  want_int("scatter's index", checked("scatter", index))
  if not index.numel(): return input.clone()
  if max(index.ndim, 1) != x.ndim: raise ShapeError(f"scatter: an index of {index.shape} for {input.shape}")
  want_index("an index of scatter", index, sizes(x)[axis])
  if isinstance(src, Handle):
    if src.dtype is not x.dtype: raise DTypeError(f"scatter wants one type, not {x.dtype} and {src.dtype}")
    values = as_row(src._self())
  else: values = tensor(src, input, x.dtype).expand(sizes(as_row(index)))
  return x.scatter(axis, as_row(index), values, reduce).reshape(sizes(input))

def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
  """Return input with src added at the indices along an axis."""
  return scatter_reduce(input, dim, index, src, "sum")

def scatter_reduce(input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *,
                   include_self: bool = True) -> Tensor:
  """Return input with all values for an element reduced: sum, prod, mean, amax or amin."""
  x, axis = as_row(checked("scatter_reduce", input)), axis_of(input, dim)
  want_int("scatter_reduce's index", checked("scatter_reduce", index))
  if checked("scatter_reduce", src).dtype is not x.dtype:
    raise DTypeError(f"scatter_reduce wants one type, not {x.dtype} and {src.dtype}")
  if not index.numel(): return input.clone()
  want_index("an index of scatter_reduce", index, sizes(x)[axis])
  return x.scatter_reduce(axis, as_row(index), as_row(src), reduce, include_self).reshape(sizes(input))

# ***** parts replaced *****

def _replaced(input: Tensor, places: Tensor, src: Tensor, what: str) -> Tensor:
  if sizes(places) != sizes(src): raise ShapeError(f"{what} wants a source of shape {places.shape}, not {src.shape}")
  return put(input, places.contiguous(), src.cast(input.dtype).contiguous())

def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
  """Return input with src at an index of an axis."""
  places = _numbered(input)[(slice(None),) * axis_of(input, dim) + (index,)]
  return _replaced(input, places, src, "select_scatter")

def slice_scatter(input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None,
                  step: int = 1) -> Tensor:
  """Return input with src at a slice of an axis."""
  places = _numbered(input)[(slice(None),) * axis_of(input, dim) + (slice(start, end, step),)]
  return _replaced(input, places, src, "slice_scatter")

def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
  """Return input with src on a diagonal."""
  places = linalg_diagonal(_numbered(input), offset=offset, dim1=dim1, dim2=dim2)
  return _replaced(input, places, src, "diagonal_scatter")

def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
  """Return input with the elements of source, in order, where mask is true."""
  if checked("a mask", mask).dtype is not dtypes.bool: raise DTypeError(f"a mask holds bools, not {mask.dtype}")
  if source.dtype is not input.dtype: raise DTypeError(f"masked_scatter wants one type, not {source.dtype}")
  shape = common_shape(sizes(input), sizes(mask))
  wide, flat = mask.expand(shape).reshape(-1), source.reshape(-1)
  if is_known(mask) and (count := wide.int().sum().item()) > source.numel():
    raise ShapeError(f"masked_scatter wants {count} values, and source has {source.numel()}")
  if not source.numel(): return input.expand(shape)
  order = wide.int().cumsum(0).sub(1).maximum(0)
  return wide.where(flat.gather(0, order), input.expand(shape).reshape(-1)).reshape(shape)

def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
  """Return the coordinates of indices of a flattened tensor of a shape."""
  want_int("unravel_index", checked("unravel_index", indices))
  lengths = [int(shape)] if is_number(shape) else [int(d) for d in shape]
  found, rest = [], indices
  for d in reversed(lengths):
    found.append(rest.mod(d).long())
    rest = rest.idiv(d)
  return tuple(reversed(found))

def segment_reduce(data: Tensor, reduce: str, *, lengths: Tensor | None = None, offsets: Tensor | None = None,
                   indices: Any = None, axis: int = 0, unsafe: bool = False, initial: Any = None) -> Tensor:
  """Reduce segments of an axis, given by lengths or offsets: sum, mean, prod, max or min."""
  if reduce not in _EMPTY: raise ArgumentError(f"reduce is one of {', '.join(_EMPTY)}, not {reduce!r}")
  dim = axis_of(data, axis)
  x = movedim(data, dim, dim)
  if offsets is None:
    counts = lengths._self()  # type: ignore[union-attr]
    ends = counts.int().cumsum(-1)
    begins = ends.sub(counts.int())
  else: begins, ends = part(offsets, offsets.ndim - 1, 0, sizes(offsets)[-1] - 1), part(
    offsets, offsets.ndim - 1, 1, sizes(offsets)[-1])
  n, rest = sizes(x)[dim], x.ndim - dim - 1
  place = Tensor.arange(n, dtype=dtypes.int32) if n else Tensor.empty(0, dtype=dtypes.int32)
  inside = place.ge(begins.unsqueeze(-1)) & place.lt(ends.unsqueeze(-1))
  inside = inside.reshape(*sizes(inside), *(1,) * rest)
  wide = x.unsqueeze(dim)
  empty, method = _EMPTY[reduce]
  start = empty if initial is None else initial
  chosen = inside.where(wide, empty if reduce != "mean" else 0)
  found: Tensor = getattr(chosen, method)(dim + 1)
  count = inside.cast(x.dtype).sum(dim + 1)
  if reduce == "mean":
    return count.eq(0).where(math.nan if initial is None else start, found.add(start or 0).div(count))
  if initial is None: return found
  fold: dict[str, Callable[[Any], Tensor]] = {"sum": found.add, "prod": found.mul, "max": found.maximum,
                                              "min": found.minimum}
  return fold[reduce](start)

# reduction: (its value of nothing, the method)
_EMPTY = {"sum": (0.0, "sum"), "mean": (0.0, "sum"), "prod": (1.0, "prod"), "max": (-math.inf, "max"),
          "min": (math.inf, "min")}
