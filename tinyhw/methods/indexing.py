"""Tensor[...]: reads and writes of parts, and gather and scatter.

Slices, ints, None and ... are movements, so of storage they make views. Tensors (and lists) of integers gather, and
broadcast together. Their axes go where the first of them was, or to the front if another kind of index was between
them. Ints are applied before that and do not count, as in PyTorch. In NumPy they count.

Negative indices count from the end. An index out of range raises if its value is known when the call is made: an int, a
list, an array, a constant. Elsewhere it reads 0 and writes nothing, since only the device knows the elements of a
Tensor. A bool Tensor stands for the indices where it is true, which are read back first.

A write to storage through slices happens at once and in place. Views of the storage see the new values. Values computed
from it before keep the old ones. A tensor without storage takes a new value, and so do the tensors that share it
(memory.py). A write to an expanded view, whose elements share memory, is refused.
"""
from __future__ import annotations
from collections.abc import Callable, Sequence
import math
import operator
from typing import TYPE_CHECKING, Any

from tinyhw.device import on_disk
from tinyhw.dtype import dtypes
from tinyhw.engine.memory.writes import assign_of, is_detached, memory_of
from tinyhw.engine.run.realize import realize as realize_nodes
from tinyhw.errors import ArgumentError, DTypeError, IndexingError, IndexRangeError, ShapeError
from tinyhw.gradient import define_gradient, transposed
from tinyhw.helpers import ceildiv, fully_flatten
from tinyhw.methods.base import Handle, check_devices, realize_all
from tinyhw.methods.checks import flag
from tinyhw.methods.graph import graph
from tinyhw.methods.graph.memory import before_write, constant_value, is_storage, share, storage_view, written
from tinyhw.methods.graph.views import check_part, every, limits
from tinyhw.methods.matmul import Matmul
from tinyhw.methods.pointwise.casts import truth
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import alone
from tinyhw.uop.decide import holds
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, sint, sint_prod
if TYPE_CHECKING:
  from tinyhw.methods.scattering import Groups, Writes
  from tinyhw.tensor import Tensor

LEAST_WORK = 1 << 24    # multiplications of a sum over "index equals row" below which it takes less time than sorting
SORTING_GAIN = 16       # times as many multiplications as sorting has steps, from which sorting pays

SCATTER_GAIN = 8        # the same for scatters, which sort by a network of log2(n)**2 steps
WRITES_WORK = 1 << 16   # comparisons of a scatter, from which writing to places takes less time

class Parsed(NamedTuple):
  """Indices as movements, in this order: a part of each axis, rows of that part, axes to reverse. Then ints are dropped
  and None inserted. tensors: the Tensors, by axis of that shape."""
  pairs: list[tuple[sint, sint]]
  rows: list[tuple[int, int]]      # (step, place): the element at index `place` of each group of `step` elements
  reversed: tuple[int, ...]
  kept: list[int | None]           # for each axis of the result: the axis of the tensor, or None for a new one
  tensors: dict[int, Handle]

class Indexing(Matmul):
  """Tensor[...], gather, scatter."""
  __slots__ = ()

  def __getitem__(self, indices: Any) -> Tensor:
    parsed = self._parse(indices)
    u = _view(self.uop, parsed)
    return self._new(_gathered(u, parsed.tensors)) if parsed.tensors else self._view(u)

  @alone
  def __setitem__(self, indices: Any, v: Any) -> None:
    if self._alias is not None: before_write(self)
    if isinstance(indices, Handle) and indices.dtype is dtypes.bool and not isinstance(v, (Handle, list, tuple)):
      self._check_mask(indices, 0, False)
      # Tensor's
      mask = indices.reshape(*indices.shape, *(1,) * (self.ndim - indices.ndim))  # type: ignore[attr-defined]
      self._set(mask.where(v, self).cast(self.dtype))
      return
    parsed = self._parse(indices)
    if parsed.tensors:
      self._set(self._with_places(indices, self._cast_value(v)))
      return
    if storage_view(self.uop) is not None: realize_all((self,))   # writes that wait come first
    memory = storage_view(self.uop)
    view = self._written_place(_view(self.uop if memory is None else memory, parsed))
    value = graph.relabelled(graph.broadcast(self._cast_value(v).uop, self._fits(v, view.shape)), view.shape)
    if 0 in view.shape: return
    if on_disk(self.uop.device): self._new(view)._write_file(value)
    elif is_storage(view):
      realize_nodes([assign_of(written(graph.detach(view) if is_detached(self.uop) else view, value))])
    elif self._alias is not None: share(self, value, view)
    else:
      inside = transposed(graph.full(view.shape, dtypes.bool, True), view, self.uop)
      self._set(self._new(graph.where(inside, transposed(value, view, self.uop), self.uop)))

  def _cast_value(self, v: Any) -> Tensor:
    """Return v as a tensor of this type."""
    if isinstance(v, (list, tuple)): return self._tensor(v).cast(self.dtype)
    other = self._other(v)
    if not on_disk(self.uop.device): check_devices("assign", self.uop, other)
    return self._new(graph.cast(other, self.dtype))

  def _fits(self, v: Any, shape: tuple[sint, ...]) -> tuple[sint, ...]:
    """Return shape, if v broadcasts to it."""
    given = self._cast_value(v).shape
    if not graph.same_numbers(graph.broadcast_shape("assign", shape, given), shape):
      graph.refuse_shape("assign", shape, given)
    return shape

  def _set(self, value: Tensor) -> None:
    """Give this tensor a whole new value, in its storage if it has some."""
    if self._alias is not None: share(self, value.uop)
    elif memory_of(self.uop)[0] is None: self.replace(value)
    else: realize_all((self.assign(value),))

  def _with_places(self, indices: Any, v: Tensor) -> Tensor:
    """Return this tensor with v at the indexed elements. If an element is named more than once, the last value
    counts."""
    total = sint_prod(self.shape)
    numbered = self._new(graph.reshape(graph.iota(total, graph.place_type(total), self.device), self.shape)).add(1)
    picked = numbered[indices]  # indices from 1 on, 0 where an index is out of range
    v = self._new(graph.broadcast(v.uop, self._fits(v, picked.shape)))
    places = graph.reshape(picked.sub(1).uop, (sint_prod(picked.shape),))
    flat = self.flatten()._last_written(0, places, v.flatten().uop)
    return self._new(graph.reshape(flat.uop, self.shape))

  # ***** parsing *****

  def _parse(self, indices: Any) -> Parsed:
    """Parse and check indices.

    Raises IndexingError for a wrong kind or number of indices, IndexRangeError for ints outside of their axis.
    """
    if isinstance(indices, list) and any(x is None or x is ... or isinstance(x, slice) for x in indices):
      indices = tuple(indices)     # no numbers of one axis
    items = self._items(indices if isinstance(indices, tuple) else (indices,))
    pairs: list[tuple[sint, sint]] = []
    rows: list[tuple[int, int]] = []
    kept: list[int | None] = []
    tensors: dict[int, Handle] = {}
    backwards: list[int] = []
    for item in items:
      if item is None:
        kept.append(None)
        continue
      axis = len(pairs)
      size = self.shape[axis]
      row = 1, 0
      if isinstance(item, slice):
        begin, end, row = _slice(item, size, axis)
        if (item.step or 1) < 0: backwards.append(axis)
      elif isinstance(item, _Known):
        _check_known(item, size, axis)
        item, begin, end = item.tensor, 0, size
      elif isinstance(item, Handle): begin, end = 0, size
      else: begin, end = _place(item, size, axis)
      if isinstance(item, Handle): tensors[len(kept)] = item
      if isinstance(item, (slice, Handle)): kept.append(axis)
      pairs.append((begin, end))
      rows.append(row)
    return Parsed(pairs, rows, tuple(backwards), kept, tensors)

  def _items(self, indices: tuple[Any, ...]) -> list[Any]:
    """Return one item for each axis (and for each None). "..." becomes slices, lists become _Known, and a bool Tensor
    becomes the indices where it is true."""
    items: list[Any] = []
    for item in indices:
      known: tuple[int, int] | None = None
      if isinstance(item, bool):
        raise IndexingError(f"{item} as an index could be {int(item)} or a mask without axes; write the int, or None")
      if isinstance(item, (list, tuple, range)): item, known = _listed(self, list(item)), _extent(item)
      elif not isinstance(item, (Handle, slice, int, UOp, type(None), type(Ellipsis))):
        item, known = _foreign(self, item), _extent(item)
      if isinstance(item, Handle): self._on_this_device("index", item)
      if isinstance(item, Handle) and item.dtype is dtypes.bool:
        if not item.shape:
          raise IndexingError("a bool Tensor used as an index needs an axis; use where() for a single condition")
        self._check_mask(item, len([i for i in items if i is not None and i is not Ellipsis]),
                         Ellipsis in _plain(items))
        items.extend(item.nonzero().transpose(0, 1).split(1))  # type: ignore[attr-defined]  # Tensor's
        items[-item.ndim:] = [x.reshape(-1) for x in items[-item.ndim:]]
        continue
      if isinstance(item, Handle) and not dtypes.is_int(item.dtype):
        raise DTypeError(f"a Tensor used as an index holds integers or bools, not {item.dtype}")
      items.append(_known(item, known) if isinstance(item, Handle) else item)
    given = sum(1 for i in items if i is not None and i is not Ellipsis)
    dots = [k for k, i in enumerate(items) if i is Ellipsis]
    if len(dots) > 1: raise IndexingError("an index may have one ... only")
    if given > self.ndim:
      raise IndexingError(f"{given} indices for a tensor with {self.ndim} axes; drop some, or add axes with None")
    at = dots[0] if dots else len(items)
    return items[:at] + [slice(None)] * (self.ndim - given) + items[at + 1:]

  def _check_mask(self, mask: Handle, axis: int, after_dots: bool) -> None:
    sizes = self.shape[axis:axis + mask.ndim]
    if not after_dots and (len(sizes) != mask.ndim or not all(graph.equal(a, b) for a, b in zip(sizes, mask.shape))):
      raise IndexingError(f"a bool index of shape {graph.show(mask.shape)} for axes of sizes {graph.show(sizes)}; "
                          f"they must be equal")

  # ***** gather and scatter *****

  def gather(self, dim: int, index: Tensor) -> Tensor:
    """Return out[i][j] = self[index[i][j]][j] for dim 0. index has as many axes as this tensor, and is not larger,
    except along dim.

    >>> Tensor([[1, 2], [3, 4]]).gather(1, Tensor([[1], [0]])).tolist()
    [[2], [3]]
    """
    dim = self._axis(dim)
    self._check_index("gather", dim, index)
    if not self.ndim: return self.reshape(1).gather(0, index.reshape(1)).reshape(())
    u = graph.shrink(self.uop, [(0, d if i == dim else n) for i, (d, n) in enumerate(zip(self.shape, index.shape))])
    places = graph.shrink(index.uop, [(0, n if i == dim else d) for i, (d, n) in enumerate(zip(u.shape, index.shape))])
    return self._new(graph.node(Ops.GATHER, u.dtype, (u, places), dim, places.shape))

  def _check_index(self, what: str, dim: int, index: Tensor) -> None:
    self._on_this_device(what, index)
    if not dtypes.is_int(index.dtype): raise DTypeError(f"{what} wants integer indices, not {index.dtype}")
    if index.ndim != self.ndim or any(i != dim and _exceeds(n, d)
                                      for i, (d, n) in enumerate(zip(self.shape, index.shape))):
      raise ShapeError(f"cannot {what} with {graph.show(self.shape)} and an index of shape {graph.show(index.shape)}: "
                       f"the number of axes must be "
                       f"equal, and no size but that of axis {dim} larger")

  def scatter(self, dim: int, index: Tensor, src: Any, reduce: str | None = None) -> Tensor:
    """Return this tensor with self[index[i][j]][j] = src[i][j] for dim 0. If an element is named more than once, the
    last value counts. reduce: "add" or "multiply".

    >>> Tensor.zeros(3, dtype="int32").scatter(0, Tensor([2, 0]), Tensor([5, 6])).tolist()
    [6, 0, 5]
    """
    if reduce is not None:
      if reduce not in ("add", "multiply"):
        raise ArgumentError(f"reduce is None, 'add' or 'multiply', not {reduce!r}; scatter_reduce has more")
      return self.scatter_reduce(dim, index, self._source(index, src), {"add": "sum", "multiply": "prod"}[reduce])
    dim, source = self._axis(dim), self._source(index, src)
    if not self.ndim: return self._as_row(index, source, lambda x, i, s: x.scatter(0, i, s))
    index_u, src_u = self._scattered(dim, index, source)
    return self._last_written(dim, index_u, src_u)

  def _last_written(self, dim: int, index: UOp, src: UOp) -> Tensor:
    """Return this tensor with values at the elements that index names along dim. The last one for an element counts."""
    found = _places_of(self._self(), dim, index, None)
    return self._new(_last_wins(self.uop, dim, index, src)) if found is None else found.last(self._new(src),
                                                                                               self._self())

  def _source(self, index: Tensor, src: Any) -> Tensor:
    """Return the values that scatter writes, as a tensor of this type. A number fills the index's shape."""
    if isinstance(src, Handle):
      if src.dtype is not self.dtype:
        raise DTypeError(f"cannot scatter {src.dtype} into {self.dtype}; cast one of them")
      return self._on_this_device("scatter", src)
    return self._new(graph.full(self._operand("an index", index).shape, self.dtype,
                                graph.check_number("scatter into", self.dtype, src)))

  def _as_row(self, index: Tensor, src: Tensor, write: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Tensor:
    """Apply `write` to a tensor without axes as a row of one element."""
    self._check_index("scatter", 0, index)
    return write(self.reshape(1), index.reshape(1), src.reshape(1)).reshape(())

  def _scattered(self, dim: int, index: Tensor, src: Tensor) -> tuple[UOp, UOp]:
    """Return index and source, padded to this tensor's size in all axes but dim. The padding of the index is -1, which
    names no element."""
    self._check_index("scatter", dim, index)
    index = self._new(graph.counting(index.uop, self.shape[dim]))
    if src.ndim != index.ndim or any(_exceeds(n, d) for n, d in zip(index.shape, src.shape)):
      raise ShapeError(f"cannot scatter {graph.show(src.shape)} with an index of shape {graph.show(index.shape)}: "
                       "the source must be at least as large")
    cut = graph.shrink(src.uop, [(0, n) for n in index.shape])
    around = [(0, 0 if i == dim else graph.simple(d - n)) for i, (d, n) in enumerate(zip(self.shape, index.shape))]
    shifted = graph.pad(index.add(1).uop, around)
    return graph.add(shifted, graph.like(shifted, -1)), graph.pad(cut, around)

  def scatter_reduce(self, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool = True) -> Tensor:
    """Return this tensor with all values for an element reduced: "sum", "prod", "mean", "amax" or "amin". include_self:
    the old value takes part.

    >>> Tensor([1, 1]).scatter_reduce(0, Tensor([0, 0]), Tensor([5, 6]), "sum").tolist()
    [12, 1]
    """
    folds = {"sum": (Ops.ADD, 0), "mean": (Ops.ADD, 0), "prod": (Ops.MUL, 1), "amax": (Ops.MAX, self.dtype.min),
             "amin": (Ops.MAX, self.dtype.min)}
    if not isinstance(reduce, str) or reduce not in folds:
      raise ArgumentError(f"reduce is one of {', '.join(folds)}, not {reduce!r}")
    include_self = flag("include_self", include_self)
    dim, source = self._axis(dim), self._source(index, src)
    if not self.ndim:
      return self._as_row(index, source, lambda x, i, s: x.scatter_reduce(0, i, s, reduce, include_self))
    index_u, src_u = self._scattered(dim, index, source)
    op, identity = folds[reduce]
    mine = self._self()
    if reduce == "amin": mine, src_u = mine._mirror(), self._new(src_u)._mirror().uop
    if op is not Ops.MAX and dtypes.is_float(self.dtype):   # as any sum or product of floats: rounded once
      mine, src_u = mine.cast(graph.accumulator(self.dtype)), graph.cast(src_u, graph.accumulator(self.dtype))
    places = _places_of(mine, dim, index_u, op)
    if places is not None and include_self and reduce == "sum":
      return places.added(self._new(src_u), mine).cast(self.dtype)
    if places is not None: folded, count = places.folded(self._new(src_u), op, identity), places.count
    else:
      hit, spread = _hits(mine.uop, dim, index_u, src_u)
      folded = self._new(graph.fold(graph.where(hit, spread, graph.like(spread, identity)), op, (dim,)))
      count = self._new(graph.fold(graph.cast(hit, graph.place_type(index_u.shape[dim])), Ops.ADD, (dim,)))
    if include_self: result = self._new(graph.binary(op, mine.uop, folded.uop))
    else: result = count.eq(0).where(mine, folded)
    if reduce == "mean":
      divisor = count.add(1) if include_self else count.maximum(1)
      result = result.div(divisor, rounding_mode=None if dtypes.is_float(self.dtype) else "floor")
    return result._mirror() if reduce == "amin" else result.cast(self.dtype)

def _listed(self: Handle, item: list[Any]) -> Tensor:
  """Return a list of indices as a Tensor. An empty list selects nothing."""
  return self._tensor(item) if item else self._tensor(item).cast(dtypes.int32)

class _Known(NamedTuple):
  """An index Tensor whose least and greatest element the host knows."""
  tensor: Handle
  least: int
  most: int

def _extent(item: Any) -> tuple[int, int] | None:
  """Return the least and the greatest of the integers in lists or in an array. None if there are none, or if the host
  does not know them."""
  if isinstance(item, (list, tuple, range)):
    flat = fully_flatten(item)
    return (min(flat), max(flat)) if flat and all(type(i) is int for i in flat) else None
  if not getattr(item, "size", 0) or not hasattr(item, "min") or "int" not in str(getattr(item, "dtype", "")):
    return None
  return int(item.min()), int(item.max())

def _known(index: Handle, extent: tuple[int, int] | None) -> Handle | _Known:
  """Return an index Tensor, with its least and greatest element if the host knows them. It knows them for a
  constant."""
  if extent is None and 0 not in index.shape and (number := constant_value(index.uop)) is not None:
    extent = int(number), int(number)
  return index if extent is None else _Known(index, *extent)

def _check_known(index: _Known, size: sint, axis: int) -> None:
  for number in (index.least, index.most): _place(number, size, axis)

def _plain(items: Sequence[Any]) -> list[Any]: return [i for i in items if i is Ellipsis]

def _foreign(self: Handle, item: Any) -> Any:
  """Convert an index of another library: an array becomes a Tensor, an integer scalar an int."""
  if hasattr(item, "__index__") and not getattr(item, "shape", ()) and "bool" not in str(getattr(item, "dtype", "")):
    return item.__index__()
  if hasattr(item, "__array__") or hasattr(item, "__array_interface__"): return self._tensor(item)
  raise IndexingError(f"{item!r} of {type(item)} is no index; use ints, slices, None, ..., lists of ints or Tensors")

def _place(item: Any, size: sint, axis: int) -> tuple[sint, sint]:
  """Return the part that an int (or Variable) selects."""
  if isinstance(item, UOp):
    item = _from_front(item, size)
    check_part(axis, size, item, item + 1)
    return item, item + 1
  if not holds(size >= -item if item < 0 else size > item, True):
    raise IndexRangeError(f"index {item} is outside of axis {axis}, which has size {graph.show((size,))[1:-2]}"
                          + _choices(size))
  begin: sint = item + size if item < 0 else item
  return begin, begin + 1

def _choices(size: sint) -> str: return f"; use {-size} to {size - 1}" if isinstance(size, int) and size else ""

def _slice(item: slice, size: sint, axis: int) -> tuple[sint, sint, tuple[int, int]]:
  """Return (begin, end, (step, place)) as in Parsed, with begin <= end and step > 0. For a negative step, the caller
  reverses the axis afterwards."""
  step = 1 if item.step is None else item.step
  if isinstance(step, UOp) and dtypes.is_int(step.dtype): step = int(step)
  if not isinstance(step, int): raise IndexingError(f"the step of a slice is an int, not {step!r}")
  if step == 0: raise IndexingError("the step of a slice cannot be 0")
  if not isinstance(size, int) or isinstance(item.start, UOp) or isinstance(item.stop, UOp):
    return _symbolic_slice(item, size, axis, step)
  try: picked = range(size)[item]
  except TypeError as error:
    raise IndexingError(f"the bounds of a slice are ints, Variables or None: {item}") from error
  count, step = len(picked), abs(step)
  if not count: return 0, 0, (1, 0)
  first = min(picked[0], picked[-1])
  if count == 1: return first, first + 1, (1, 0)
  # Groups that begin earlier end where the axis ends, if there is room. Then nothing is padded.
  place = max(first + count * step - size, 0)
  if place > first: place = 0
  return first - place, min(first - place + count * step, size), (step, place)

def _symbolic_slice(item: slice, size: sint, axis: int, step: int) -> tuple[sint, sint, tuple[int, int]]:
  """Return the same as `_slice` where the size or a bound is symbolic.

  Numbers are limited to the axis, as in Python. Variables must be inside of it.
  """
  first, last = (0, size) if step > 0 else (size - 1, -1)
  begin, end = (_limited(x, size, first, last, step) for x in (item.start, item.stop))
  begin, end = first if begin is None else begin, last if end is None else end
  if step < 0: begin, end = end + 1, begin + 1
  if holds(begin > end):
    check_part(axis, size, begin, begin)
    return begin, begin, (1, 0)
  check_part(axis, size, begin, end)
  if abs(step) == 1: return begin, end, (1, 0)
  count = graph.simple(ceildiv(end - begin, abs(step)))
  if step < 0: begin = graph.simple(end - 1 - (count - 1) * -step)
  return begin, end, (abs(step), 0)

def _limited(x: Any, size: sint, first: sint, last: sint, step: int) -> sint | None:
  """Return a bound of a slice, counted from the front."""
  if x is None: return None
  if isinstance(x, UOp): return _from_front(x, size)
  try: x = operator.index(x)
  except TypeError: raise IndexingError(f"the bounds of a slice are ints, Variables or None, not {x!r}") from None
  x = x + size if x < 0 else x
  low, high = (first, last) if step > 0 else (last, first)
  if holds(x < low): return low
  return high if holds(x > high) else x

def _from_front(x: UOp, size: sint) -> UOp:
  """Return an index counted from the front. The value of x tells whether it counts from the end.

  Raises IndexingError for a float.
  """
  if dtypes.is_float(x.dtype):
    raise IndexingError(f"a place is a whole number, not the float {x.render()}; use // instead of /, or int()")
  return x + size if holds(x < 0) else x

def _exceeds(n: sint, d: sint) -> bool: return holds(n > d, limits(n)[1] > limits(d)[1])

def _view(u: UOp, parsed: Parsed) -> UOp:
  """Apply the movements of an index."""
  u = graph.shrink(u, parsed.pairs)
  for axis, (step, place) in enumerate(parsed.rows):
    if step > 1: u = every(u, axis, step, place)
  u = graph.flip(u, parsed.reversed)
  return graph.reshape(u, tuple([1 if axis is None else u.shape[axis] for axis in parsed.kept]))

def _gathered(u: UOp, tensors: dict[int, Handle]) -> UOp:
  """Index some axes of u by Tensors, which broadcast together.

  All indexed axes become one, and one GATHER reads from it.
  """
  axes = list(tensors)
  together = graph.broadcast_shape("index with", *(t.shape for t in tensors.values()))
  place = axes[0] if axes == list(range(axes[0], axes[-1] + 1)) else 0
  rest = [i for i in range(len(u.shape)) if i not in tensors]
  u = graph.permute(u, tuple(rest[:place] + axes + rest[place:]))
  sizes = [u.shape[place + k] for k in range(len(axes))]
  pre, post = u.shape[:place], u.shape[place + len(axes):]
  u = graph.reshape(u, (*pre, sint_prod(sizes), *post))
  linear = _linear([graph.broadcast(t.uop, together) for t in tensors.values()], sizes)
  count = sint_prod(together)
  shape = (*pre, count, *post)
  index = graph.expand(graph.reshape(linear, (*(1,) * len(pre), count, *(1,) * len(post))), shape)
  found = graph.node(Ops.GATHER, u.dtype, (u, index), place, shape)
  _sum_rows(found)
  return graph.reshape(found, (*pre, *together, *post))

def _sum_rows(found: UOp) -> None:
  """Let the gradient of rows that were read by many indices (an embedding) be summed by a loop over the indices
  (graph/places.py), or by sorting (graph/rows.py)."""
  rows, n, columns = found.src[0].shape[0], found.shape[0], sint_prod(found.shape[1:])
  if found.arg or not dtypes.is_float(found.dtype) or not isinstance(found.device, str): return
  if not (isinstance(rows, int) and isinstance(n, int) and isinstance(columns, int) and n * rows * columns >= LEAST_WORK
          and (n * rows * columns > SORTING_GAIN * (n * n + rows * columns) or _runs_in_order(found))):
    return
  def backward(node: UOp, g: UOp) -> tuple[UOp]:
    index = graph.shrink(node.src[1], [(0, n), *[(0, 1)] * (len(node.shape) - 1)])
    index = graph.counting(graph.reshape(index, (n,)), rows)
    if _runs_in_order(g):
      from tinyhw.methods.graph.places import ScatterPoints  # 0.3 ms to load, for gradients of large tables only
      wide = graph.expand(graph.reshape(index, (n, 1)), (n, columns))
      value = graph.cast(graph.reshape(g, (n, columns)), graph.accumulator(g.dtype))
      summed = ScatterPoints((rows, columns), 0, wide).folded(value, Ops.ADD, 0)
      return graph.reshape(graph.cast(summed, g.dtype), node.src[0].shape),
    from tinyhw.methods.graph.rows import rows_gradient  # 0.4 ms to load, as above
    return graph.reshape(rows_gradient(index, graph.reshape(g, (n, columns)), rows), node.src[0].shape),
  define_gradient(found, (found.src[0],), backward)

def _runs_in_order(u: UOp) -> bool:
  from tinyhw.methods.graph.places import runs_in_order  # 0.3 ms to load, for large tables only
  return runs_in_order(u)

def _linear(indices: list[UOp], sizes: list[sint]) -> UOp:
  """Return one index into the flattened axes. It is -1 where any index is out of range."""
  long = limits(sint_prod(sizes))[1] > 1 << 31 or any(u.dtype.itemsize == 8 or u.dtype is dtypes.uint32
                                                      for u in indices)
  wide = dtypes.int64 if long else dtypes.int32
  total: UOp | None = None
  inside: UOp | None = None
  for u, size in zip(indices, sizes):
    signed = not dtypes.is_unsigned(u.dtype)
    u = graph.cast(u, wide)
    length = graph.like(u, size) if isinstance(size, int) else graph.broadcast(graph.cast(size, wide), u.shape)
    if signed: u = graph.where(graph.compare(Ops.CMPLT, u, graph.like(u, 0)), graph.add(u, length), u)
    if len(sizes) == 1: return u
    fits = graph.binary(Ops.AND, graph.compare(Ops.CMPLT, graph.like(u, -1), u), graph.compare(Ops.CMPLT, u, length))
    inside = fits if inside is None else graph.binary(Ops.AND, inside, fits)
    total = u if total is None else graph.add(graph.mul(total, length), u)
  assert total is not None and inside is not None
  return graph.where(inside, total, graph.like(total, -1))

def _places_of(x: Tensor, dim: int, index: UOp, op: Ops | None) -> Writes | Groups | None:
  """Return the way to scatter to many places; None where it takes fewer steps to compare each index with each place.

  op: what reduces the values of a place; None if the last one counts.
  """
  if not graph.is_plain((*x.shape, *index.shape)) or isinstance(x.device, tuple): return None
  n, places = math.prod([int(d) for d in index.shape]), int(x.shape[dim])
  work = n * places
  if work < WRITES_WORK: return None
  from tinyhw.methods.scattering import Groups, Writes  # for large scatters only
  from tinyhw.methods.graph.places import runs_in_order
  if runs_in_order(x.uop): return Writes(x, dim, index)
  sorts = work >= LEAST_WORK and work > SCATTER_GAIN * n * n.bit_length()**2 and op in (None, Ops.ADD)
  return Groups(x, dim, index) if sorts else None

def _hits(u: UOp, dim: int, index: UOp, src: UOp) -> tuple[UOp, UOp]:
  """Return (index equals place, src). Both have the axis of the source before that of the place: (..., source, place,
  ...)."""
  count, places = index.shape[dim], u.shape[dim]
  lead, rest = u.shape[:dim], u.shape[dim + 1:]
  wide, column = (*lead, count, places, *rest), (*lead, count, 1, *rest)
  spread_index = graph.expand(graph.reshape(index, column), wide)
  place = graph.positions(spread_index, dim + 1, index.dtype)
  return graph.compare(Ops.CMPEQ, spread_index, place), graph.expand(graph.reshape(src, column), wide)

def _last_wins(u: UOp, dim: int, index: UOp, src: UOp) -> UOp:
  """Return u with src at the elements that index names along dim. If several name the same element, the last one
  counts."""
  if 0 in index.shape: return u      # nothing is written, and the reduction below would have no elements
  hit, _ = _hits(u, dim, index, src)
  which = graph.positions(hit, dim)
  last = graph.fold(graph.where(hit, graph.add(which, graph.like(which, 1)), graph.like(which, 0)), Ops.MAX, (dim,))
  zero = graph.like(last, 0)
  written = graph.node(Ops.GATHER, src.dtype, (src, graph.add(last, graph.like(last, -1))), dim, u.shape)
  return graph.where(graph.compare(Ops.CMPEQ, last, zero), u, written)

def masked(u: UOp, mask: UOp) -> UOp:
  """Return mask as bool, broadcast to u's shape."""
  return graph.broadcast(truth(mask), graph.broadcast_shape("mask", u.shape, mask.shape))
