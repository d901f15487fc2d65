"""Movement: other shapes and orders of the same elements. Nothing is computed or copied until a kernel reads the
result.

Sizes may be symbolic (Variables). Negative axes count from the end. The methods that repeat, and the modes of padding,
consist of the graph's six movements.
"""
from __future__ import annotations
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.dtype import ConstType, least_upper_dtype
from tinyhw.engine.memory.writes import ROOM
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.helpers import argfix, ceildiv
from tinyhw.methods.base import Handle, check_devices
from tinyhw.methods.checks import size, sizes, whole, wholes
from tinyhw.methods.graph import graph
from tinyhw.methods.graph.views import (
  check_part, fixed, joined, new_shape, pad_constant, pad_pairs, pair, rearrange, reshaped, static, windows)
from tinyhw.methods.pointwise.activations import Activations
from tinyhw.uop.decide import holds
from tinyhw.uop.ops import UOp, sint, sint_prod
if TYPE_CHECKING: from tinyhw.tensor import Tensor

class Movement(Activations):
  """Reshape, expand, permute, pad, shrink, flip, and methods that use them."""
  __slots__ = ()

  # ***** shapes *****

  def reshape(self, shape: Any, *args: Any) -> Tensor:
    """Change the sizes of axes. Their product stays the same. One size may be -1, and None keeps the size of that axis.

    >>> Tensor.arange(6).reshape(2, -1).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    return self._view(reshaped(self.uop, argfix(shape, *args)))

  def view(self, shape: Any, *args: Any) -> Tensor:
    """Another name of reshape.

    >>> Tensor.arange(6).view(3, 2).tolist()
    [[0, 1], [2, 3], [4, 5]]
    """
    return self.reshape(shape, *args)

  def expand(self, shape: Any, *args: Any) -> Tensor:
    """Repeat axes of size 1. -1 and None keep a size. New axes are added in front.

    >>> Tensor([[1], [2]]).expand(2, 3).tolist()
    [[1, 1, 1], [2, 2, 2]]
    """
    old, wanted = self.uop.shape, tuple([n if n is None else size("a size", n) for n in argfix(shape, *args)])
    if len(wanted) < len(old):
      raise ShapeError(f"cannot expand {graph.show(old)} to {len(wanted)} axes, which are fewer; reshape first")
    old = (1,) * (len(wanted) - len(old)) + old
    new = tuple([d if n is None or (isinstance(n, int) and n == -1) else n for d, n in zip(old, wanted)])
    for axis, (d, n) in enumerate(zip(old, new)):
      if isinstance(n, int) and n < 0:
        raise ShapeError(f"cannot expand {graph.show(self.uop.shape)} to {graph.show(new)}: {n} is negative")
      if not graph.equal(d, n) and not graph.equal(d, 1):
        raise ShapeError(f"cannot expand {graph.show(self.uop.shape)} to {graph.show(new)}: axis {axis - len(new)} is "
                         f"{d}, and only 1 can become {n}")
    same = [d if not isinstance(d, int) and not graph.equal(d, 1) and graph.most(d) <= graph.most(n) else n
            for d, n in zip(old, new)]
    return self._view(graph.broadcast(self.uop, tuple(same)))

  def permute(self, order: Any, *args: Any) -> Tensor:
    """Reorder axes. Axis i of the result is axis order[i] of this tensor.

    >>> Tensor.zeros(2, 3, 4).permute(2, 0, 1).shape
    (4, 2, 3)
    """
    n, wanted = self.ndim, argfix(order, *args)
    axes = tuple([graph.axis_of(a, n) for a in wanted])
    if sorted(axes) != list(range(n)):
      raise ShapeError(f"cannot permute {graph.show(self.shape)} by {wanted}: the order must name each of the {n} "
                       f"axes once")
    return self._view(graph.permute(self.uop, axes))

  def transpose(self, dim0: int = 1, dim1: int = 0) -> Tensor:
    """Exchange two axes.

    >>> Tensor([[1, 2], [3, 4]]).transpose().tolist()
    [[1, 3], [2, 4]]
    """
    return self._view(graph.transpose(self.uop, self._axis(dim0), self._axis(dim1))) if self.ndim else self._self()

  @property
  def T(self) -> Tensor:
    """transpose(). A tensor with one axis or none is returned unchanged.

    >>> Tensor([[1, 2], [3, 4]]).T.tolist()
    [[1, 3], [2, 4]]
    """
    return self.transpose() if self.ndim > 1 else self._self()

  def flip(self, axis: Any, *args: Any) -> Tensor:
    """Reverse axes.

    >>> Tensor([[1, 2], [3, 4]]).flip(1).tolist()
    [[2, 1], [4, 3]]
    """
    return self._view(graph.flip(self.uop, self._axes(argfix(axis, *args))))

  def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Merge the axes start_dim to end_dim into one.

    >>> Tensor.zeros(2, 3, 4).flatten(1).shape
    (2, 12)
    """
    if not self.ndim: return self.reshape(1)
    start, end, shape = self._axis(start_dim), self._axis(end_dim), self.shape
    if start > end:
      raise ArgumentError(f"cannot flatten axes {start_dim} to {end_dim} of {graph.show(shape)}: the first is after "
                          f"the last")
    return self._view(graph.reshape(self.uop, (*shape[:start], sint_prod(shape[start:end + 1]), *shape[end + 1:])))

  def unflatten(self, dim: int, sizes: Sequence[sint]) -> Tensor:
    """Split axis dim into several. One size may be -1.

    >>> Tensor.zeros(2, 12).unflatten(1, (3, -1)).shape
    (2, 3, 4)
    """
    dim = self._own_axis("unflatten", dim)
    if not isinstance(sizes, (tuple, list)): raise ArgumentError(f"unflatten wants a tuple of sizes, not {sizes!r}")
    return self.reshape((*self.shape[:dim], *new_shape((self.shape[dim],), sizes), *self.shape[dim + 1:]))

  def squeeze(self, dim: int | None = None) -> Tensor:
    """Drop axis dim if its size is 1. If dim is None, drop all axes of size 1.

    >>> Tensor.zeros(1, 3, 1).squeeze().shape
    (3,)
    """
    shape = self.shape
    # axis 0 of a tensor without axes is valid, but does not exist
    asked = range(len(shape)) if dim is None else [self._axis(dim)][:len(shape)]
    axes = [k for k in asked if graph.equal(shape[k], 1)]
    u = graph.shrink(self.uop, [(0, 1 if k in axes else d) for k, d in enumerate(shape)])
    return (self._view(graph.reshape(u, tuple([d for k, d in enumerate(shape) if k not in axes]))) if axes
            or dim is None else self._self())

  def unsqueeze(self, dim: int) -> Tensor:
    """Add an axis of size 1 at dim.

    >>> Tensor.zeros(3).unsqueeze(0).shape
    (1, 3)
    """
    dim = self._axis(dim, extra=1)
    return self._view(graph.reshape(self.uop, (*self.shape[:dim], 1, *self.shape[dim:])))

  def size(self, dim: int | None = None) -> Any:
    """Return the shape, or the size of one axis.

    >>> Tensor.zeros(2, 3).size(1)
    3
    """
    return self.shape if dim is None else self.shape[self._own_axis("measure", dim)]

  def numel(self) -> sint:
    """Return the number of elements.

    >>> Tensor.zeros(2, 3).numel()
    6
    """
    return sint_prod(self.shape)

  def nbytes(self) -> int:
    """Return the bytes of the elements. A symbolic size counts with its maximum.

    >>> Tensor.zeros(2, 3).nbytes()
    24
    """
    return self.uop.size * self.dtype.itemsize

  # ***** parts *****

  def shrink(self, arg: Sequence[tuple[sint, sint] | None]) -> Tensor:
    """Return the part from begin to end of each axis. None keeps an axis.

    >>> Tensor.arange(5).shrink(((1, 3),)).tolist()
    [1, 2]
    """
    shape = self.shape
    if not isinstance(arg, (tuple, list)):
      raise ArgumentError(f"shrink wants a pair or None for each axis, not {arg!r}")
    if len(arg) != len(shape):
      raise ShapeError(f"cannot shrink {graph.show(shape)}: {len(arg)} pairs for {len(shape)} axes; use None to keep "
                       f"an axis")
    pairs = [(0, d) if part is None else pair("parts of axes", part) for part, d in zip(arg, shape)]
    for axis, ((begin, end), d) in enumerate(zip(pairs, shape)): check_part(axis, d, begin, end)
    return self._view(graph.shrink(self.uop, pairs))

  def shrink_to(self, shape: Any, *args: Any) -> Tensor:
    """Return the first shape[i] elements of each axis. None keeps an axis.

    >>> Tensor.zeros(4, 4).shrink_to(2, None).shape
    (2, 4)
    """
    return self.shrink([None if n is None else (0, size("a size", n)) for n in argfix(shape, *args)])

  def split(self, sizes: sint | Sequence[sint], dim: int = 0) -> tuple[Tensor, ...]:
    """Split an axis into parts: of `sizes` elements each (the last may be smaller), or of the listed sizes.

    >>> [t.tolist() for t in Tensor.arange(5).split(2)]
    [[0, 1], [2, 3], [4]]
    """
    dim = self._own_axis("split", dim)
    n = self.shape[dim]
    if isinstance(sizes, (tuple, list)):
      each = [size("the size of a part", d) for d in sizes]
      for d in each:
        if holds(d < 0): raise ArgumentError(f"the size of a part is {d}; it must be at least 0")
      ends = [graph.simple(sum(each[:i])) for i in range(len(each) + 1)]
      if not graph.equal(ends[-1], n):
        raise ShapeError(f"cannot split axis {dim} of {graph.show(self.shape)} into {list(sizes)}: the sum is not {n}")
    else:
      part = size("the size of a part", sizes)
      if holds(part < 1): raise ArgumentError(f"the size of a part is {part}; it must be at least 1")
      ends = [graph.simple(part * i) for i in range(max(static(ceildiv(n, part), "split"), 1))] + [n]
    return tuple([self._view(graph.shrink_axis(self.uop, dim, begin, end)) for begin, end in zip(ends, ends[1:])])

  def chunk(self, chunks: int, dim: int = 0) -> list[Tensor]:
    """Split an axis into at most `chunks` parts of equal size. The last may be smaller.

    >>> [t.tolist() for t in Tensor.arange(5).chunk(2)]
    [[0, 1, 2], [3, 4]]
    """
    chunks = whole("chunks", chunks, 1)
    n = self.shape[self._own_axis("split", dim)]
    return list(self.split([0] * min(chunks, 1 << 16) if graph.equal(n, 0) else graph.simple(ceildiv(n, chunks)),
                           dim=dim))

  def unfold(self, dim: int, size: int, step: int) -> Tensor:
    """Return windows of `size` elements along an axis, one every `step` elements. A new last axis holds the elements of
    a window.

    >>> Tensor.arange(4).unfold(0, 2, 1).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    dim, size, step = self._own_axis("unfold", dim), whole("the size of a window", size), whole("step", step, 1)
    n = self.shape[dim]
    if size < 1 or holds(size > n):
      raise ShapeError(f"cannot unfold axis {dim} of {graph.show(self.shape)}: a window of {size} does not fit")
    x = self._view(graph.transpose(self.uop, dim, self.ndim - 1)) if dim != self.ndim - 1 else self._self()
    rows = graph.transpose(windows(x.uop, x.ndim - 1, size, step, 1), x.ndim - 1, x.ndim)  # (..., window, element)
    x = x._view(rows) if isinstance(n, int) else x._new(rows)     # along a symbolic axis, windows are gathered
    order = list(range(x.ndim))
    order[dim], order[self.ndim - 1] = order[self.ndim - 1], order[dim]
    return x.permute(order)

  def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return the elements with index[dim2] - index[dim1] == offset, as the last axis.

    >>> Tensor([[1, 2], [3, 4]]).diagonal().tolist()
    [1, 4]
    """
    offset, dim1, dim2 = whole("offset", offset), self._axis(dim1), self._axis(dim2)
    if dim1 == dim2: raise ArgumentError("diagonal needs two different axes")
    rest = [i for i in range(self.ndim) if i not in (dim1, dim2)]
    x = self.permute([*rest, dim1, dim2])
    if not graph.is_plain(x.shape[-2:]): x = x._view(fixed(x.uop, "take the diagonal of"))
    rows, columns = (static(d, "take the diagonal of") for d in x.shape[-2:])
    top, left = max(-offset, 0), max(offset, 0)
    n = max(min(rows - top, columns - left), 0)
    x = x.shrink([None] * len(rest) + [(min(top, rows), min(top, rows) + n),
                                       (min(left, columns), min(left, columns) + n)])
    lead = x.shape[:-2]
    if n == 0: return x.reshape(*lead, 0)
    # no one reads the padding
    flat = x._view(graph.pad_axis(x.reshape(*lead, n * n).uop, len(lead), 0, n).replace(tag=ROOM))
    return flat.reshape(*lead, n, n + 1).shrink([None] * (len(lead) + 1) + [(0, 1)]).reshape(*lead, n)

  # ***** together *****

  def cat(self, *args: Any, dim: int = 0) -> Tensor:
    """Concatenate tensors along an axis. Their other sizes must be equal. Tensor.cat([a, b]) is a.cat(b).

    >>> Tensor([1]).cat(Tensor([2, 3])).tolist()
    [1, 2, 3]
    """
    tensors = _together("cat", self, args)
    first = tensors[0]
    dim = first._own_axis("cat", dim)
    for x in tensors:
      if x.ndim != first.ndim or not all(i == dim or graph.equal(a, b)
                                         for i, (a, b) in enumerate(zip(x.shape, first.shape))):
        raise ShapeError(f"cannot cat {graph.show(first.shape)} and {graph.show(x.shape)} along axis {dim}: the other "
                         f"sizes must be equal")
    if len(tensors) == 1: return first._own()
    dtype = least_upper_dtype(*(x.dtype for x in tensors))
    return first._new(joined(_alike([graph.cast(x.uop, dtype) for x in tensors], dim), dim))

  def stack(self, *args: Any, dim: int = 0) -> Tensor:
    """Join tensors of one shape along a new axis. Tensor.stack([a, b]) is a.stack(b).

    >>> Tensor([1, 2]).stack(Tensor([3, 4])).tolist()
    [[1, 2], [3, 4]]
    """
    tensors = _together("stack", self, args)
    first = tensors[0]
    for x in tensors:
      if x.shape != first.shape and (x.ndim != first.ndim
                                     or not all(graph.equal(a, b) for a, b in zip(x.shape, first.shape))):
        graph.refuse_shape("stack", first.shape, x.shape)
    dim = first._axis(dim, extra=1)
    return first.unsqueeze(dim).cat(*(x.unsqueeze(dim) for x in tensors[1:]), dim=dim)

  def repeat(self, repeats: Any, *args: Any) -> Tensor:
    """Repeat the whole tensor along each axis. More repeats than axes add axes in front.

    >>> Tensor([1, 2]).repeat(2, 2).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    counts = sizes("a count", argfix(repeats, *args))
    if any(isinstance(n, int) and n < 0 for n in counts):
      raise ArgumentError(f"cannot repeat by {counts}: counts are not negative")
    if len(counts) < self.ndim:
      raise ShapeError(f"cannot repeat {graph.show(self.shape)} by {counts}: give a count for each axis")
    shape = (1,) * (len(counts) - self.ndim) + self.shape
    pairs = [(n, d) for n, d in zip(counts, shape)]
    x = graph.reshape(self.uop, tuple([s for _, d in pairs for s in (1, d)]))
    x = graph.expand(x, tuple([s for n, d in pairs for s in (n, d)]))
    return self._own(graph.reshape(x, tuple([n * d for n, d in pairs])))

  def repeat_interleave(self, repeats: int, dim: int | None = None) -> Tensor:
    """Repeat each element along an axis, or in the flattened tensor.

    >>> Tensor([1, 2]).repeat_interleave(2).tolist()
    [1, 1, 2, 2]
    """
    repeats = whole("repeats", repeats, 0)
    x, axis = (self.flatten(), 0) if dim is None else (self._self(), self._axis(dim))
    shape = x.shape
    u = graph.expand(graph.reshape(x.uop, (*shape[:axis + 1], 1, *shape[axis + 1:])),
                     (*shape[:axis + 1], repeats, *shape[axis + 1:]))
    return self._own(graph.reshape(u, (*shape[:axis], shape[axis] * repeats, *shape[axis + 1:])))

  def roll(self, shifts: sint | Sequence[sint], dims: int | Sequence[int] | None = None) -> Tensor:
    """Rotate elements by `shifts` along axes. Elements that leave at the end enter at the start. dims None: roll the
    flattened tensor.

    A shift may be a Variable.

    >>> Tensor([1, 2, 3]).roll(1).tolist()
    [3, 1, 2]
    """
    steps = sizes("a shift", shifts if isinstance(shifts, (tuple, list, range)) else (shifts,))
    if dims is None:
      if len(steps) != 1: raise ArgumentError(f"roll without dims takes one shift, not {shifts!r}")
      return self.flatten().roll(steps, 0).reshape(self.shape)
    axes = wholes("an axis", dims)
    if len(axes) != len(steps): raise ArgumentError(f"roll wants a shift for each axis, not {shifts!r} for {dims!r}")
    x = self._self()
    for shift, dim in zip(steps, axes):
      axis = self._axis(dim)
      n = self.shape[axis]
      if isinstance(n, int) and n == 0: continue
      first = graph.simple(-shift % n)    # the index of the element that comes first
      if isinstance(first, int) and first == 0: continue
      x = self._new(graph.shrink_axis(x.repeat([2 if i == axis else 1 for i in range(self.ndim)]).uop, axis, first,
                                      first + n))
    return self._own(x.uop)

  def meshgrid(self, *args: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Return the coordinates of a grid, from one vector per axis. indexing "xy" swaps the first two axes.

    >>> [t.tolist() for t in Tensor([1, 2]).meshgrid(Tensor([3, 4]))]
    [[[1, 1], [2, 2]], [[3, 4], [3, 4]]]
    """
    if indexing not in ("ij", "xy"): raise ArgumentError(f"indexing is 'ij' or 'xy', not {indexing!r}")
    tensors = [self._self(), *(self._tensor(x) for x in args)]
    swap = indexing == "xy" and len(tensors) > 1
    places = [1, 0, *range(2, len(tensors))] if swap else list(range(len(tensors)))
    grid = [x.reshape([-1 if i == place else 1 for i in range(len(tensors))]) for x, place in zip(tensors, places)]
    shape = graph.broadcast_shape("mesh", *(x.shape for x in grid))
    return tuple([x.expand(shape) for x in grid])

  # ***** padding *****

  def pad(self, padding: Sequence[Any], mode: str = "constant", value: ConstType = 0) -> Tensor:
    """Add elements around the tensor. padding: a pair (before, after) or None per axis, or flat counts, from the last
    axis on (left, right, top, bottom, ...).

    Negative counts remove elements. mode: "constant" (with `value`), "reflect" (without the edge), "replicate" (the
    edge), "circular".

    >>> Tensor([1, 2]).pad((1, 2), value=9).tolist()
    [9, 1, 2, 9, 9]
    """
    if not isinstance(padding, (tuple, list)): raise ArgumentError(f"pad wants a tuple of counts, not {padding!r}")
    pairs = pad_pairs(self.shape, padding)
    if mode == "constant": return self._own(pad_constant(self.uop, pairs, value))
    if mode not in ("reflect", "replicate", "circular"):
      raise ArgumentError(f"padding mode is 'constant', 'reflect', 'replicate' or 'circular', not {mode!r}")
    x = self._self()
    for axis, (before, after) in enumerate(pairs):
      if isinstance(before, UOp) or isinstance(after, UOp) or before or after:
        x = x._pad_axis(axis, int(before), int(after), mode)
    return self._own(x.uop)

  def _pad_axis(self, axis: int, before: int, after: int, mode: str) -> Tensor:
    x = self._new(graph.shrink_axis(self.uop, axis, max(-before, 0), self.shape[axis] - max(-after, 0)))
    before, after, n = max(before, 0), max(after, 0), x.shape[axis]
    most: sint = {"reflect": n - 1, "circular": n, "replicate": 0 if graph.equal(n, 0) else max(before, after)}[mode]
    if holds(max(before, after) > most):
      raise ShapeError(f"cannot pad axis {axis} of {graph.show(self.shape)} by ({before}, {after}) in mode {mode}: at "
                       f"most {most} on a side")
    def part(begin: sint, end: sint) -> Tensor: return x._new(graph.shrink_axis(x.uop, axis, begin, end))
    def edge(begin: sint, count: int) -> Tensor:
      return part(begin, begin + 1).expand([count if i == axis else d for i, d in enumerate(x.shape)])
    if mode == "circular": front, back = part(n - before, n), part(0, after)
    elif mode == "reflect": front, back = part(1, before + 1).flip(axis), part(n - 1 - after, n - 1).flip(axis)
    else: front, back = edge(0, before), edge(n - 1, after)
    return (front if before else x).cat(*([x] if before else []), *([back] if after else []), dim=axis)

  def pad_to(self, shape: Any, *args: Any, value: ConstType = 0) -> Tensor:
    """Pad axes at their ends up to a shape. None keeps an axis.

    >>> Tensor([1, 2]).pad_to(4).tolist()
    [1, 2, 0, 0]
    """
    wanted = argfix(shape, *args)
    if len(wanted) != self.ndim:
      raise ShapeError(f"cannot pad {graph.show(self.shape)} to {wanted}: the number of axes differs")
    for n, d in zip(wanted, self.shape):
      if n is not None and holds(size("a size", n) < d):
        raise ShapeError(f"cannot pad {graph.show(self.shape)} to {wanted}: {d} is more than {n}; shrink_to() cuts")
    return self.pad([(0, 0) if n is None else (0, size("a size", n) - d) for n, d in zip(wanted, self.shape)],
                    value=value)

  def rearrange(self, formula: str, **sizes: int) -> Tensor:
    """Rearrange axes as einops does: "b (h w) c -> b c h w". Keywords give sizes by name. "..." stands for the axes
    that are not named. 1 is an axis of size 1.

    >>> Tensor.zeros(2, 3, 4).rearrange("b h w -> b (h w)").shape
    (2, 12)
    """
    return rearrange(self, formula, sizes)

def _alike(parts: list[UOp], axis: int) -> list[UOp]:
  """Give nodes the same sizes, where these are equal in number, in all axes but one."""
  if all(graph.is_plain(u.shape) for u in parts): return parts
  shapes = [u.shape[:axis] + (1,) + u.shape[axis + 1:] for u in parts]
  common = graph.broadcast_shape("cat", *shapes)
  return [graph.shrink(u, [(0, d if i == axis else n) for i, (d, n) in enumerate(zip(u.shape, common))]) for u in parts]

def _together(what: str, first: Any, others: tuple[Any, ...]) -> list[Tensor]:
  """Return the tensors of a.cat(b), a.cat([b]), Tensor.cat(a, b) and Tensor.cat([a, b]).

  Raises ArgumentError unless the first is a Tensor.
  """
  listed = [x for part in (first, *others) for x in (part if _is_list_of_tensors(part) else [part])]
  if not listed or not isinstance(listed[0], Handle):
    raise ArgumentError(f"{what} wants Tensors, or a list of them, not {first!r}")
  tensors = [listed[0]._self(), *(listed[0]._tensor(x) for x in listed[1:])]
  placed = [x.uop for x in tensors if x.uop.device is not None]
  for u in placed[1:]: check_devices(what, placed[0], u)
  return tensors

def _is_list_of_tensors(x: Any) -> bool:
  return isinstance(x, (list, tuple)) and any(isinstance(item, Handle) for item in x)
