"""Shapes: splits, stacks, moved and repeated axes, diagonals, grids. Movements only, so that most results are views.

Source of the meanings: PyTorch's documentation.
"""
from __future__ import annotations
from collections.abc import Sequence
import itertools
import math
from typing import Any

from tinyhw.dtype import dtypes, least_upper_dtype, to_dtype
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.functional.operands import as_row, axes_of, axis_of, broadcast, checked, common_shape, rank, sizes
from tinyhw.helpers import argfix
from tinyhw.methods.base import Handle
from tinyhw.methods.checks import whole
from tinyhw.methods.data.layout import layout
from tinyhw.tensor import Tensor
from tinyhw.uop.symbolic.shapetracker import View

def part(x: Tensor, dim: int, begin: int, end: int) -> Tensor:
  """Return elements begin..end of an axis, as a view."""
  return x.shrink([(begin, end) if i == dim else None for i in range(x.ndim)])

def _listed(what: str, given: tuple[Any, ...]) -> list[Tensor]:
  """Return tensors given one by one or in a sequence."""
  found = given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given
  return [checked(what, x) for x in found]

def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
  """Return `length` elements of an axis from start on."""
  if not checked("narrow", input).ndim: raise ShapeError("narrow wants a tensor with an axis")
  dim, n = axis_of(input, dim), whole("length", length, 0)
  if isinstance(start, Handle) and (start.ndim or not dtypes.is_int(start.dtype)):
    raise ArgumentError(f"narrow: start is a whole number, or a tensor of one without axes, not {start!r}")
  begin = int(start._self().item()) if isinstance(start, Handle) else whole("start", start)
  size = sizes(input)[dim]
  if not -size <= begin <= size: raise ShapeError(f"start {begin} is outside of {-size}..{size}")
  begin = begin + size if begin < 0 else begin
  if begin + n > size: raise ShapeError(f"narrow: start {begin} and length {n} exceed the size {size} of axis {dim}")
  return part(input, dim, begin, begin + n)

def select(input: Tensor, dim: int, index: int) -> Tensor:
  """Return the part of an axis at an index, without that axis."""
  if not checked("select", input).ndim: raise ShapeError("select wants a tensor with an axis")
  dim = axis_of(input, dim)
  return input[(slice(None),) * dim + (whole("index", index),)]

def slice_of(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
  """Return every `step`-th element of an axis from start to end."""
  dim = axis_of(checked("slice", input), dim)
  return input[(slice(None),) * dim + (slice(start, end, step),)]

def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
  """Move axes to other positions; the others keep their order."""
  given = [[axis_of(input, d) for d in (x if isinstance(x, (tuple, list)) else (x,))] for x in (source, destination)]
  if len(given[0]) != len(given[1]) or any(len(set(x)) != len(x) for x in given):
    raise ArgumentError(f"movedim wants as many sources as destinations, each once, not {source!r} and {destination!r}")
  if not input.ndim: return input
  places = dict(zip(given[1], given[0]))
  rest = iter([d for d in range(input.ndim) if d not in given[0]])
  return input.permute([places[i] if i in places else next(rest) for i in range(input.ndim)])

moveaxis = movedim

def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
  """Swap two axes."""
  a, b = axis_of(checked("transpose", input), dim0), axis_of(input, dim1)
  return input.transpose(a, b) if input.ndim else input

swapaxes = swapdims = transpose

def t(input: Tensor) -> Tensor:
  """Transpose a matrix; fewer axes stay."""
  if checked("t", input).ndim > 2: raise ShapeError(f"t wants at most two axes, not {input.shape}; use transpose")
  return input.transpose(0, 1) if input.ndim == 2 else input

def permute(input: Tensor, *order: Any, dims: Any = None) -> Tensor:
  """Put axes in another order."""
  order = argfix(*order) if order else () if dims is None else tuple(dims)
  if len(order) != checked("permute", input).ndim:
    raise ShapeError(f"permute wants {input.ndim} axes, not {tuple(order)}")
  return input.permute(order) if order else input

def flip(input: Tensor, *axes: Any, dims: Any = None) -> Tensor:
  """Reverse axes."""
  axes = argfix(*axes) if axes else () if dims is None else tuple(argfix(dims))
  found = axes_of(checked("flip", input), tuple(axes)) if axes else ()
  return input.flip(found) if found else input.clone()

def fliplr(input: Tensor) -> Tensor:
  """Reverse the second axis."""
  if checked("fliplr", input).ndim < 2: raise ShapeError(f"fliplr wants two axes, not {input.shape}")
  return input.flip(1)

def flipud(input: Tensor) -> Tensor:
  """Reverse the first axis."""
  if not checked("flipud", input).ndim: raise ShapeError("flipud wants an axis")
  return input.flip(0)

def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
  """Rotate by k right angles, from the first towards the second of two axes."""
  if len(dims) != 2: raise ArgumentError(f"rot90 wants two axes, not {dims!r}")
  a, b = (axis_of(input, d) for d in dims)
  if a == b or input.ndim < 2: raise ArgumentError(f"rot90 wants two different axes, not {dims!r} of {input.shape}")
  k = whole("k", k) % 4
  if k == 0: return input.clone()
  if k == 2: return input.flip((a, b))
  return input.flip(b).transpose(a, b) if k == 1 else input.flip(a).transpose(a, b)

def roll(input: Tensor, shifts: Any, dims: Any = ()) -> Tensor:
  """Rotate elements along axes; without dims, those of the flattened tensor."""
  if isinstance(dims, (tuple, list)) and not dims: dims = None
  steps = shifts if isinstance(shifts, (tuple, list)) else (shifts,)
  if not steps: raise ArgumentError("roll wants a shift at least")
  if dims is not None and not input.ndim: raise ShapeError("roll along an axis wants a tensor with axes")
  if not input.numel() or not input.ndim: return input.clone()
  return input.roll(shifts, dims)

def squeeze(input: Tensor, dim: Any = None) -> Tensor:
  """Drop axes of size 1: all, or those of `dim` that have this size."""
  axes = axes_of(checked("squeeze", input), dim) if dim is not None else tuple(range(input.ndim))
  if isinstance(dim, (tuple, list)) and not dim: return input.reshape(sizes(input))
  shape = sizes(input)
  return input.reshape([d for i, d in enumerate(shape) if i not in axes or d != 1])

def unsqueeze(input: Tensor, dim: int) -> Tensor:
  """Insert an axis of size 1."""
  return input.unsqueeze(axis_of(checked("unsqueeze", input), dim, 1) if input.ndim else axis_of(input, dim))

def ravel(input: Tensor) -> Tensor:
  """Return the elements as a vector."""
  return checked("ravel", input).reshape(-1)

def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
  """Join adjacent axes."""
  a, b = axis_of(checked("flatten", input), start_dim), axis_of(input, end_dim)
  if a > b: raise ShapeError(f"flatten: start_dim {start_dim} is after end_dim {end_dim}")
  if not input.ndim: return input.reshape(1)
  shape = sizes(input)
  return input.reshape((*shape[:a], math.prod(shape[a:b + 1]), *shape[b + 1:]))

def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
  """Split an axis into several; one size may be -1."""
  if not sizes: raise ArgumentError("unflatten wants a size at least")
  return input.unflatten(axis_of(input, dim), tuple(sizes))

def expand(input: Tensor, *size: Any) -> Tensor:
  """Repeat axes of size 1; new ones are added in front."""
  return checked("expand", input).expand(tuple(argfix(*size)) if size else ())

def expand_as(input: Tensor, other: Tensor) -> Tensor:
  """Expand to the shape of another tensor."""
  return input.expand(sizes(other))

def broadcast_to(input: Tensor, size: Any) -> Tensor:
  """Expand to a shape."""
  return input.expand(tuple(size))

def broadcast_tensors(*tensors: Any) -> list[Tensor]:
  """Expand tensors to their common shape."""
  return broadcast(*_listed("broadcast_tensors", tensors))

def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
  """Return the shape to which shapes broadcast."""
  return common_shape(*[(s,) if isinstance(s, int) else tuple(s) for s in shapes])

def reshape(input: Tensor, *shape: Any) -> Tensor:
  """Change the sizes of axes; one may be -1."""
  return input.reshape(tuple(argfix(*shape)) if shape else ())

def view(input: Tensor, *shape: Any) -> Tensor:
  """Change the sizes of axes, or (a dtype) read the bits as another type."""
  if len(shape) == 1 and not isinstance(shape[0], (int, tuple, list)): return input.bitcast(to_dtype(shape[0]))
  return reshape(input, *shape)

def view_as(input: Tensor, other: Tensor) -> Tensor:
  """Change the shape to that of another tensor."""
  return input.reshape(sizes(other))

reshape_as = view_as

def repeat(input: Tensor, *repeats: Any) -> Tensor:
  """Repeat the whole tensor along each axis."""
  counts = tuple(argfix(*repeats)) if repeats else ()
  return input.repeat(counts) if counts else input.clone()

def tile(input: Tensor, *dims: Any) -> Tensor:
  """Repeat the tensor along its last axes."""
  counts = tuple(argfix(*dims)) if dims else ()
  counts = (1,) * (input.ndim - len(counts)) + counts
  return input.repeat(counts) if counts else input.clone()

def repeat_interleave(input: Tensor, repeats: Any, dim: int | None = None, output_size: int | None = None) -> Tensor:
  """Repeat each element along an axis: each as often, or as a vector of counts says."""
  if not isinstance(repeats, Handle): return as_row(input).repeat_interleave(repeats, dim)
  x, axis = (as_row(input).flatten(), 0) if dim is None else (input, axis_of(input, dim))
  counts = [int(n) for n in as_row(repeats._self()).tolist()]
  if len(counts) == 1: return x.repeat_interleave(counts[0], axis)
  if len(counts) != sizes(x)[axis]: raise ShapeError(f"{len(counts)} counts for {sizes(x)[axis]} elements")
  if any(n < 0 for n in counts): raise ArgumentError(f"counts are not negative: {counts}")
  places = [i for i, n in enumerate(counts) for _ in range(n)]
  if not places: return part(x, axis, 0, 0)
  return x[(slice(None),) * axis + (places,)]

# ***** parts *****

def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
  """Return the parts of an axis, without it."""
  if not checked("unbind", input).ndim: raise ShapeError("unbind wants a tensor with an axis")
  dim = axis_of(input, dim)
  return tuple([select(input, dim, i) for i in range(sizes(input)[dim])])

def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
  """Split an axis into parts of a size, or of the listed sizes."""
  return tensor.split(split_size_or_sections, axis_of(tensor, dim))

def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
  """Split an axis into parts of the listed sizes."""
  return input.split(list(split_sizes), axis_of(input, dim))

def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
  """Split an axis into at most `chunks` parts of equal size."""
  return tuple(input.chunk(chunks, axis_of(input, dim)))

def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
  """Split an axis into a number of parts, or at indices."""
  if not checked("tensor_split", input).ndim: raise ShapeError("tensor_split wants a tensor with an axis")
  dim = axis_of(input, dim)
  if isinstance(indices_or_sections, Handle): indices_or_sections = indices_or_sections._self().tolist()
  n = sizes(input)[dim]
  if isinstance(indices_or_sections, int):
    count = whole("sections", indices_or_sections, 1)
    ends = [sum(n // count + (i < n % count) for i in range(k)) for k in range(count + 1)]
  else: ends = [0, *[slice(None, i).indices(n)[1] for i in indices_or_sections], n]
  return tuple([part(input, dim, begin, max(begin, end)) for begin, end in zip(ends, ends[1:])])

def _axis_split(what: str, axis: int, least: int, input: Tensor, given: Any) -> tuple[Tensor, ...]:
  if checked(what, input).ndim < least: raise ShapeError(f"{what} wants {least} axes at least, not {input.shape}")
  if isinstance(given, int) and (given < 1 or sizes(input)[axis] % given):
    raise ShapeError(f"{what}: {sizes(input)[axis]} elements do not divide into {given} parts")
  return tensor_split(input, given, axis)

def hsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
  """Split the second axis, or the only one."""
  return _axis_split("hsplit", 0 if input.ndim == 1 else 1, 1, input, indices_or_sections)

def vsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
  """Split the first of two axes or more."""
  return _axis_split("vsplit", 0, 2, input, indices_or_sections)

def dsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
  """Split the third axis."""
  return _axis_split("dsplit", 2, 3, input, indices_or_sections)

# ***** together *****

def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
  """Concatenate tensors along an axis. Empty vectors count as nothing."""
  found = _listed("cat", (tensors,)) if isinstance(tensors, (tuple, list)) else []
  if not found: raise ArgumentError("cat wants a sequence of tensors, one at least")
  kind = least_upper_dtype(*[x.dtype for x in found])
  some = [x for x in found if sizes(x) != (0,)] or found[:1]
  if not some[0].ndim: raise ShapeError("cat wants tensors with axes; use stack for those without")
  dim = axis_of(some[0], dim)
  return some[0].cast(kind).cat(*[x.cast(kind) for x in some[1:]], dim=dim)

concat = concatenate = cat

def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
  """Join tensors of one shape along a new axis."""
  found = _listed("stack", (tensors,)) if isinstance(tensors, (tuple, list)) else []
  if not found: raise ArgumentError("stack wants a sequence of tensors, one at least")
  return found[0].stack(*found[1:], dim=axis_of(found[0], dim, 1) if found[0].ndim else axis_of(found[0], dim))

def atleast_1d(*tensors: Any) -> Any:
  """Return tensors with one axis at least."""
  return _at_least(tensors, lambda x: as_row(x))

def atleast_2d(*tensors: Any) -> Any:
  """Return tensors with two axes at least; new ones come first."""
  return _at_least(tensors, lambda x: x if x.ndim > 1 else x.reshape(1, -1))

def atleast_3d(*tensors: Any) -> Any:
  """Return tensors with three axes at least."""
  return _at_least(tensors, lambda x: x if x.ndim > 2 else x.unsqueeze(-1) if x.ndim == 2 else x.reshape(1, -1, 1))

def _at_least(given: tuple[Any, ...], made: Any) -> Any:
  if len(given) == 1 and isinstance(given[0], Handle): return made(given[0])
  return tuple([made(x) for x in _listed("atleast", given)])

def hstack(tensors: Sequence[Tensor]) -> Tensor:
  """Concatenate along the second axis, or the only one."""
  found = [as_row(x) for x in _listed("hstack", (tensors,))]
  if not found: raise ArgumentError("hstack wants a tensor at least")
  return cat(found, 0 if found[0].ndim == 1 else 1)

def vstack(tensors: Sequence[Tensor]) -> Tensor:
  """Concatenate rows."""
  return cat(list(atleast_2d(list(tensors))), 0)

row_stack = vstack

def dstack(tensors: Sequence[Tensor]) -> Tensor:
  """Concatenate along the third axis."""
  return cat(list(atleast_3d(list(tensors))), 2)

def column_stack(tensors: Sequence[Tensor]) -> Tensor:
  """Concatenate columns; vectors are columns."""
  return cat([x.reshape(-1, 1) if x.ndim < 2 else x for x in _listed("column_stack", (tensors,))], 1)

def block_diag(*tensors: Any) -> Tensor:
  """Return a matrix with matrices along its diagonal."""
  blocks = []
  for x in _listed("block_diag", tensors):
    if x.ndim > 2: raise ShapeError(f"block_diag wants at most two axes, not {x.shape}")
    blocks.append(x.reshape(1, -1) if x.ndim < 2 else x)
  if not blocks: return Tensor.zeros(1, 0)
  kind, width = least_upper_dtype(*[x.dtype for x in blocks]), sum(sizes(x)[1] for x in blocks)
  rows, left = [], 0
  for x in blocks:
    rows.append(x.cast(kind).pad([None, (left, width - left - sizes(x)[1])]))
    left += sizes(x)[1]
  return cat(rows, 0)

def cartesian_prod(*tensors: Any) -> Tensor:
  """Return all tuples of elements of vectors, a row for each."""
  found = _listed("cartesian_prod", tensors)
  if len(found) == 1: return found[0]
  grid = found[0].meshgrid(*found[1:])
  return grid[0].flatten().stack(*[x.flatten() for x in grid[1:]], dim=1)

def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
  """Return all combinations of r elements of a vector, a row for each."""
  if checked("combinations", input).ndim != 1: raise ShapeError(f"combinations wants a vector, not {input.shape}")
  r, n = whole("r", r, 0), sizes(input)[0]
  if r == 0: return Tensor.empty(0, dtype=input.dtype)
  make = itertools.combinations_with_replacement if with_replacement else itertools.combinations
  rows = [list(row) for row in make(range(n), r)]
  return input[rows] if rows else Tensor.empty(0, r, dtype=input.dtype)

def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
  """Return the coordinates of a grid, from vectors."""
  found = _listed("meshgrid", tensors)
  if not found: raise ArgumentError("meshgrid wants a tensor at least")
  for x in found:
    if x.ndim > 1: raise ShapeError(f"meshgrid wants vectors, not {x.shape}")
    if x.dtype is not found[0].dtype: raise ArgumentError("meshgrid wants tensors of one type")
  found = [as_row(x) for x in found]
  return found[0].meshgrid(*found[1:], indexing=indexing)

# ***** diagonals *****

def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
  """Return a diagonal as the last axis."""
  if checked("diagonal", input).ndim < 2: raise ShapeError(f"diagonal wants two axes, not {input.shape}")
  return input.diagonal(offset, axis_of(input, dim1), axis_of(input, dim2))

def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
  """Return a diagonal of the last two axes."""
  return diagonal(A, offset, dim1, dim2)

def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
  """Return matrices with the last axis as a diagonal."""
  n, offset = sizes(input)[-1], whole("offset", offset)
  size = n + abs(offset)
  a, b = (axis_of(input, d, 1) for d in (dim1, dim2))
  if a == b: raise ArgumentError(f"diag_embed wants two different axes, not {dim1} and {dim2}")
  column = input.unsqueeze(-1).pad([None] * (input.ndim - 1) + [(max(-offset, 0), max(offset, 0)), (0, size - 1)])
  rows = Tensor.arange(size).reshape(size, 1)
  here = Tensor.arange(size).eq(rows.add(offset))
  wide = part(column, input.ndim, 0, 1).expand(*sizes(input)[:-1], size, size)
  made = here.where(wide, wide.const_like(0))
  return movedim(made, (-2, -1), (a, b)) if a < b else movedim(made, (-2, -1), (a, b))

def diag(input: Tensor, diagonal: int = 0) -> Tensor:
  """Return a matrix with a vector as a diagonal, or the diagonal of a matrix."""
  if checked("diag", input).ndim not in (1, 2): raise ShapeError(f"diag wants a vector or a matrix, not {input.shape}")
  return diag_embed(input, diagonal) if input.ndim == 1 else input.diagonal(diagonal)

def diagflat(input: Tensor, offset: int = 0) -> Tensor:
  """Return a matrix with the flattened tensor as a diagonal."""
  return diag_embed(input.reshape(-1), offset)

def tril(input: Tensor, diagonal: int = 0) -> Tensor:
  """Set the elements above a diagonal to zero."""
  return checked("tril", input).tril(diagonal)

def triu(input: Tensor, diagonal: int = 0) -> Tensor:
  """Set the elements below a diagonal to zero."""
  return checked("triu", input).triu(diagonal)

def tril_indices(row: int, col: int, offset: int = 0, dtype: Any = None, device: Any = None,
                 layout: Any = None) -> Tensor:
  """Return rows and columns of the elements on and below a diagonal."""
  return _indices([(i, j) for i in range(whole("row", row, 0)) for j in range(whole("col", col, 0)) if j - i <= offset],
                  dtype)

def triu_indices(row: int, col: int, offset: int = 0, dtype: Any = None, device: Any = None,
                 layout: Any = None) -> Tensor:
  """Return rows and columns of the elements on and above a diagonal."""
  return _indices([(i, j) for i in range(whole("row", row, 0)) for j in range(whole("col", col, 0)) if j - i >= offset],
                  dtype)

def _indices(pairs: list[tuple[int, int]], dtype: Any) -> Tensor:
  kind = dtypes.int64 if dtype is None else to_dtype(dtype)
  if not pairs: return Tensor.empty(2, 0, dtype=kind)
  return Tensor([list(row) for row in zip(*pairs)], dtype=kind)

def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
  """Return the powers 0..N-1 of elements as a last axis, the highest first unless increasing."""
  if not checked("vander", x).ndim: return vander(x.reshape(1), N, increasing)
  n = sizes(x)[-1] if N is None else whole("N", N)
  if n < 0: raise ArgumentError(f"N is {n}; it must be at least 0")
  kind = dtypes.int64 if rank(x.dtype) < 2 else x.dtype
  powers = Tensor.arange(n, dtype=dtypes.int32) if n else Tensor.empty(0, dtype=dtypes.int32)
  powers = powers if increasing else powers.flip(0)
  base = x.cast(kind).unsqueeze(-1).expand(*sizes(x), n)
  return powers.eq(0).where(1, base.pow(powers.cast(kind) if rank(kind) > 1 else powers)).cast(kind)

def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
  """Return the powers 0..N-1 of elements as a last axis."""
  if N is not None and N <= 1: raise ArgumentError(f"N is {N}; it must be above 1")
  return vander(x, N, True)

def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
  """Return windows along an axis as a last axis."""
  n = sizes(as_row(input))[axis_of(input, dimension)]
  if not 0 <= size <= n: raise ShapeError(f"unfold: a window of {size} for {n} elements")
  if step < 1: raise ArgumentError(f"step is {step}; it must be at least 1")
  if not input.ndim: return part(input.reshape(1), 0, 0, size)
  axis = axis_of(input, dimension)
  if size: return input.unfold(axis, size, step)
  shape = sizes(input)
  return Tensor.empty(*shape[:axis], n // step + 1, *shape[axis + 1:], 0, dtype=input.dtype)

def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
  """Return elements of the tensor's memory at offset + index . stride. It is a gather, not a view.

  The memory is that of the storage of which the tensor is a view; else it is the tensor's own elements in order.
  """
  if len(size) != len(stride): raise ShapeError(f"as_strided: {len(size)} sizes and {len(stride)} strides")
  if any(d < 0 for d in (*size, *stride)): raise ArgumentError("as_strided: sizes and strides are not negative")
  flat, begin = _memory(input)
  places, offset = _strided(size, stride, begin if storage_offset is None else storage_offset)
  if not places.numel(): return Tensor.empty(*size, dtype=input.dtype)
  most = offset + sum((d - 1) * s for d, s in zip(size, stride))
  if most >= sizes(flat)[0] or offset < 0:
    raise ShapeError(f"as_strided: element {most} is outside of memory of {sizes(flat)[0]} elements")
  return flat[places.reshape(-1)].reshape(tuple(size))

def _memory(x: Tensor) -> tuple[Tensor, int]:
  """Return the elements of the storage of which x is a view, and the first one of x."""
  found = layout(x.uop)
  if found is None or found[0].dtype is not x.dtype: return x.reshape(-1), 0
  node, view = found
  if view.offset == 0 and node.size == x.numel() and view.strides == View.create(view.shape).strides:
    return x.reshape(-1), 0        # all of the storage, in order: gradients reach x
  return x._new(node), view.offset

def _strided(size: Sequence[int], stride: Sequence[int], offset: int) -> tuple[Tensor, int]:
  places = Tensor.full(tuple(size), offset, dtypes.int32)
  for i, (d, s) in enumerate(zip(size, stride)):
    steps = Tensor.arange(d, dtype=dtypes.int32) if d else Tensor.empty(0, dtype=dtypes.int32)
    places = places.add(steps.mul(s).reshape([-1 if k == i else 1 for k in range(len(size))]))
  return places, offset

def as_strided_scatter(input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int],
                       storage_offset: int | None = None) -> Tensor:
  """Return input with src at the elements that as_strided names."""
  if sizes(src) != tuple(size): raise ShapeError(f"as_strided_scatter: src has shape {src.shape}, not {tuple(size)}")
  places, offset = _strided(size, stride, storage_offset or 0)
  if not places.numel(): return input.clone()
  if offset + sum((d - 1) * s for d, s in zip(size, stride)) >= input.numel():
    raise ShapeError("as_strided_scatter: an element is outside of the tensor")
  flat = input.reshape(-1)
  return flat.scatter(0, places.reshape(-1), src.cast(input.dtype).reshape(-1)).reshape(sizes(input))
