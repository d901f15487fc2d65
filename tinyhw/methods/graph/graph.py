"""Builders of tensor graph nodes, for tensor methods and gradients. They take and return `UOp`s. They do not repeat the
checks of a caller, and they omit a node that would do nothing (a reshape to the same shape). They do not combine with
their operand: two reshapes stay two, since a user may hold a tensor on the first and ask for its gradient.

Shapes do not broadcast in the graph, so `broadcast` and `full` insert RESHAPE and EXPAND. Builders store the known
shape on the node. With that and a table of the constants in shapes, a node costs about 3 us.
"""
from __future__ import annotations
from collections.abc import Iterable, Sequence
from math import copysign
from sys import float_info

from tinyhw.dtype import ConstType, DType, dtypes, least_upper_dtype, truncate
from tinyhw.errors import ArgumentError, DTypeError, IndexRangeError, ShapeError
from tinyhw.methods.checks import real, whole
from tinyhw.uop.decide import holds, narrowed
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, sint, sint_prod, to_indices

Shape = tuple[sint, ...]

_dims: dict[Shape, tuple[UOp, ...]] = {}
_constants: dict[tuple[DType, ConstType, Shape], UOp] = {}
_MOST_CACHED = 4096
_broadcasts: dict[tuple[Shape, ...], Shape] = {}     # the common shapes of shapes of numbers

def dims(shape: Shape) -> tuple[UOp, ...]:
  """Return a shape as sources of a movement node."""
  found = _dims.get(shape)
  if found is None:
    if not is_plain(shape): return tuple([d.simplify() for d in to_indices(shape)])
    found = to_indices(shape)
    if len(_dims) >= _MOST_CACHED: _dims.clear()
    _dims[shape] = found
  return found

def is_plain(shape: Iterable[sint]) -> bool:
  """Are all sizes numbers?"""
  return all([type(d) is int for d in shape])

def settled(shape: Shape) -> Shape:
  """Return a shape with its symbolic sizes in simplest form, so that equal sizes are one node. Constant sizes become
  numbers."""
  return shape if shape in _dims else tuple([d if isinstance(d, int) else _settle(d) for d in shape])

def _settle(d: UOp) -> sint:
  d = d.simplify()
  return int(d.arg) if d.op is Ops.CONST else d

def simple(d: sint) -> sint:
  """Return a size in simplest form."""
  return d if isinstance(d, int) else _settle(d)

def node(op: Ops, dtype: DType, src: tuple[UOp, ...], arg: object, shape: Shape, tag: object = None) -> UOp:
  """Make a node whose shape is known, and whose device is that of the first source, if this has one."""
  u = UOp(op, dtype, src, arg, tag)
  u._shape_ = shape  # stored where the property `shape` caches it, as `device` caches the next
  u._device_ = src[0]._device_ or u._device_
  return u

def show(shape: Sequence[sint]) -> str:
  """Return a shape for messages, with symbolic sizes as expressions."""
  parts = [show_dimension(d) for d in shape]
  return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"

def show_dimension(size: sint) -> str: return str(size) if isinstance(size, int) else size.render()

# ***** constants *****

def constant(dtype: DType, value: ConstType, device: str | tuple[str, ...] | None = None) -> UOp:
  """Return a constant of shape (). Integers wrap to the range of the type.

  Raises DTypeError for an infinity or NaN in an integer type.
  """
  if dtypes.is_int(dtype):
    try: value = truncate[dtype](value)
    except (OverflowError, ValueError):
      raise DTypeError(f"cannot make {value} an element of {dtype}; use a float type") from None
  return UOp.const(dtype, value, device)

def check_number(what: str, dtype: DType, value: ConstType) -> ConstType:
  """Return value as a Python number.

  Raises ArgumentError if it is not a number, DTypeError for an int that the type cannot hold. Floats are rounded.
  """
  if isinstance(value, bool): return value
  value = real("a value to " + what, value)
  if not isinstance(value, int) or dtype is dtypes.bool: return value
  low, high = (-float_info.max, float_info.max) if dtypes.is_float(dtype) else dtype.limits()
  if low <= value <= high: return value
  number = value if value.bit_length() < 128 else f"a number of {value.bit_length()} bits"
  raise DTypeError(f"cannot {what} a tensor of {dtype} with {number}: the type holds {low} to {high}; cast the tensor "
                   f"to one that holds the number")

def full(shape: Shape, dtype: DType, value: ConstType, device: str | tuple[str, ...] | None = None) -> UOp:
  """Return a constant of any shape."""
  # -0.0 == 0.0, so it would share an entry of the table
  if device is not None or (value == 0 and copysign(1.0, value) < 0):
    return broadcast(constant(dtype, value, device), shape)
  key = (dtype, value, shape)
  found = _constants.get(key)
  if found is None:
    if len(_constants) >= _MOST_CACHED: _constants.clear()
    found = _constants.setdefault(key, broadcast(constant(dtype, value), shape))
  return found

def count(shape: Shape, dtype: DType, value: sint) -> UOp:
  """Return a number that may be symbolic, in any shape."""
  return full(shape, dtype, value) if isinstance(value, int) else broadcast(cast(value, dtype), shape)

def like(u: UOp, value: ConstType) -> UOp:
  """Return a constant with u's type and shape."""
  return full(u.shape, u.dtype, value)

# ***** movement *****

def reshape(u: UOp, shape: Shape) -> UOp:
  """Change the sizes of axes; their product stays the same."""
  if u.shape == shape: return u
  found = _dims.get(shape)
  if found is None:
    shape = settled(shape)
    if u.shape == shape: return u
    found = dims(shape)
  return node(Ops.RESHAPE, u.dtype, (u, *found), None, shape)

def expand(u: UOp, shape: Shape) -> UOp:
  """Repeat axes of size 1. A symbolic size that is equal in number to another is taken to be that one."""
  old = u.shape
  if old == shape: return u
  found = _dims.get(shape)
  if found is not None and (old in _dims or is_plain(old)): return node(Ops.EXPAND, u.dtype, (u, *found), None, shape)
  shape = settled(shape)
  if not is_plain(old) or not is_plain(shape):
    u = _fitted(u, shape)
    shape = tuple([n if _is(d, 1) else d for d, n in zip(u.shape, shape)])
  return u if u.shape == shape else node(Ops.EXPAND, u.dtype, (u, *dims(shape)), None, shape)

def _fitted(u: UOp, shape: Shape) -> UOp:
  """Return u with the sizes of `shape` where the sizes are equal only in number. A symbolic size that is 1, where that
  of `shape` is not, becomes 1."""
  ends: list[sint] = []
  for d, n in zip(u.shape, shape):
    if d is n or isinstance(d, int): ends.append(d)
    elif equal(d, n): ends.append(d if most(d) <= most(n) else n)
    else: ends.append(1)
  return shrink(u, [(0, end) for end in ends])

def broadcast(u: UOp, shape: Shape) -> UOp:
  """Add leading axes of size 1 to u, and expand it. The caller has checked that the shape fits."""
  old = u.shape
  if old == shape: return u
  if len(old) < len(shape): u = reshape(u, (1,) * (len(shape) - len(old)) + old)
  return expand(u, shape)

def permute(u: UOp, order: tuple[int, ...]) -> UOp:
  """Reorder axes. Axis i of the result is axis order[i] of u."""
  if order == tuple(range(len(order))): return u
  shape = u.shape
  return node(Ops.PERMUTE, u.dtype, (u,), order, tuple([shape[i] for i in order]))

def flip(u: UOp, axes: tuple[int, ...]) -> UOp:
  """Reverse axes."""
  return node(Ops.FLIP, u.dtype, (u,), axes, u.shape) if axes else u

def _is(x: sint, value: int) -> bool: return isinstance(x, int) and x == value

def pad(u: UOp, pairs: Sequence[tuple[sint, sint]]) -> UOp:
  """Add zeros before and after each axis. pairs: their counts."""
  if all(_is(b, 0) and _is(e, 0) for b, e in pairs): return u
  return UOp(Ops.PAD, u.dtype, (u, *dims(tuple([x for pair in pairs for x in pair]))))

def shrink(u: UOp, pairs: Sequence[tuple[sint, sint]]) -> UOp:
  """Return the part from begin to end of each axis.

  Bounds may exceed the axis for some values of their Variables, but not for the present values. The result has
  Variables with smaller bounds.
  """
  if all(_is(b, 0) and (e is d or (isinstance(d, int) and _is(e, d))) for (b, e), d in zip(pairs, u.shape)): return u
  ends = tuple([x for pair in pairs for x in pair])
  if ends not in _dims and not is_plain(ends):
    ends = tuple([x for (b, e), d in zip(pairs, u.shape) for x in _inside(b, e, d)])
  return UOp(Ops.SHRINK, u.dtype, (u, *dims(ends)))

def relabelled(u: UOp, shape: Shape) -> UOp:
  """Return u with the sizes of `shape`, which are equal in number."""
  return u if u.shape == shape else node(Ops.SHRINK, u.dtype, (u, *dims(tuple([x for d in shape for x in (0, d)]))),
                                         None, shape)

def _inside(begin: sint, end: sint, size: sint) -> tuple[sint, sint]:
  """Return a part of an axis, with Variables whose bounds keep it inside of the axis.

  For their present values it is inside.
  """
  if end is size and _is(begin, 0): return begin, end
  if isinstance(end, UOp) and end.vmax > most(size):
    changes = narrowed(end, 0, most(size))
    begin, end = (x.substitute(changes) if isinstance(x, UOp) else x for x in (begin, end))
  if isinstance(begin, UOp) and begin.vmin < 0:
    changes = narrowed(begin, 0, most(size))
    begin, end = (x.substitute(changes) if isinstance(x, UOp) else x for x in (begin, end))
  count = simple(end - begin)
  if isinstance(count, UOp) and count.vmin < 0:
    changes = narrowed(count, 0, most(size))
    begin, end = (x.substitute(changes) if isinstance(x, UOp) else x for x in (begin, end))
  return begin, end

def shrink_axis(u: UOp, axis: int, begin: sint, end: sint) -> UOp:
  """Return the part from begin to end of one axis."""
  return shrink(u, [(begin, end) if i == axis else (0, d) for i, d in enumerate(u.shape)])

def pad_axis(u: UOp, axis: int, before: sint, after: sint) -> UOp:
  """Add zeros before and after one axis."""
  return pad(u, [(before, after) if i == axis else (0, 0) for i in range(len(u.shape))])

def transpose(u: UOp, a: int, b: int) -> UOp:
  """Exchange two axes."""
  order = list(range(len(u.shape)))
  order[a], order[b] = order[b], order[a]
  return permute(u, tuple(order))

def iota(n: sint, dtype: DType, device: str | tuple[str, ...] | None) -> UOp:
  """Return 0, 1, ..., n-1."""
  src = dims((n,)) if device is None else (*dims((n,)), UOp(Ops.DEVICE, dtypes.void, (), device))
  return node(Ops.IOTA, dtype, src, None, (n,))

def place_type(*counts: sint, least: DType = dtypes.int32) -> DType:
  """Return the type of an index into that many elements. It also holds the counts: `least`, or the first wider type
  that does."""
  most = max(n if isinstance(n, int) else int(n.vmax) for n in counts)
  return next((d for d in (least, dtypes.int32) if most <= d.max), dtypes.int64)

def positions_in(u: UOp, shape: Shape, axis: int, dtype: DType | None = None) -> UOp:
  """Return, for each element of a tensor of that shape on u's device, its index along an axis. dtype: None is the
  place_type of all axes."""
  along = iota(shape[axis], place_type(*shape) if dtype is None else dtype, u.device)
  return expand(reshape(along, tuple([d if i == axis else 1 for i, d in enumerate(shape)])), shape)

def positions(u: UOp, axis: int, dtype: DType | None = None) -> UOp:
  """Return, for each element of u, its index along an axis. dtype: None is the place_type of all axes, so that indices
  along two of them compare."""
  return positions_in(u, u.shape, axis, dtype)

# ***** computation *****

def cast(u: UOp, dtype: DType) -> UOp:
  """Return u as another type. Raises DTypeError for a complex one: its two planes are two nodes."""
  if u.dtype is dtype: return u
  if dtype in dtypes.complexes: raise DTypeError(f"this function gives no {dtype}; cast its result")
  return node(Ops.CAST, dtype, (u,), None, u.shape)

def element(u: UOp, dtype: DType | None = None) -> UOp:
  """Return a number made of Variables as an element of a type. None: the default type of its kind.

  Other nodes are cast only if a type is given.
  """
  if dtype is None:
    dtype = {dtypes.weakint: dtypes.default_int, dtypes.weakfloat: dtypes.default_float}.get(u.dtype, u.dtype)
  return u.cast(dtype) if u.dtype is dtypes.weakfloat else cast(u, dtype)

def counting(index: UOp, places: sint) -> UOp:
  """Return an index in a type that can hold all indices of an axis. In 8 bits, index 256 would be 0."""
  kind = place_type(places)
  return cast(index, kind) if index.dtype.itemsize < kind.itemsize else index

def unary(op: Ops, u: UOp) -> UOp: return node(op, u.dtype, (u,), None, u.shape)
def binary(op: Ops, a: UOp, b: UOp) -> UOp: return node(op, a.dtype, (a, b), None, a.shape)
def compare(op: Ops, a: UOp, b: UOp) -> UOp: return node(op, dtypes.bool, (a, b), None, a.shape)
def where(c: UOp, x: UOp, y: UOp) -> UOp: return node(Ops.WHERE, x.dtype, (c, x, y), None, c.shape)
def add(a: UOp, b: UOp) -> UOp: return node(Ops.ADD, a.dtype, (a, b), None, a.shape)
def mul(a: UOp, b: UOp) -> UOp: return node(Ops.MUL, a.dtype, (a, b), None, a.shape)
def scale(u: UOp, value: ConstType) -> UOp: return mul(u, like(u, value))
def negate(u: UOp) -> UOp: return unary(Ops.NEG, u)
def contiguous(u: UOp) -> UOp: return unary(Ops.CONTIGUOUS, u)
def copy(u: UOp, device: str | tuple[str, ...], axis: int | None = None) -> UOp:
  """Return u on another device, or on several: in parts along an axis, or all of it on each."""
  made = UOp(Ops.COPY, u.dtype, (u, UOp(Ops.DEVICE, dtypes.void, (), device)), axis)
  made._shape_ = u.shape
  return made
def detach(u: UOp) -> UOp: return unary(Ops.DETACH, u)
def after(u: UOp, *earlier: UOp) -> UOp: return node(Ops.AFTER, u.dtype, (u, *earlier), None, u.shape)

def accumulator(dtype: DType) -> DType:
  """Return the type in which a sum or product of such elements is formed: at least 32 bits wide. Unsigned stays
  unsigned."""
  if dtypes.is_unsigned(dtype): return least_upper_dtype(dtype, dtypes.uint32)
  if dtypes.is_int(dtype) or dtype is dtypes.bool: return least_upper_dtype(dtype, dtypes.int32)
  return least_upper_dtype(dtype, dtypes.float32)

def reduce(u: UOp, op: Ops, axes: tuple[int, ...]) -> UOp:
  """Reduce axes to size 1, in u's own type. Without elements the result is the identity of the operation."""
  if not axes: return u
  shape = u.shape
  folded = tuple([1 if i in axes else d for i, d in enumerate(shape)])
  if any(_is(shape[i], 0) for i in axes): return _of_nothing(u, op, axes, folded)
  return node(Ops.REDUCE_AXIS, u.dtype, (u,), (op, axes), folded)

def _of_nothing(u: UOp, op: Ops, axes: tuple[int, ...], folded: Shape) -> UOp:
  """Return the reduction of no elements. For floats it still depends on u, so that u has a gradient."""
  identity = full(folded, u.dtype, {Ops.ADD: 0, Ops.MUL: 1, Ops.MAX: u.dtype.min}[op], u.device)
  if not dtypes.is_float(u.dtype) or not all(isinstance(d, int) for d in u.shape): return identity
  row = shrink(u, [(0, min(int(d), 1)) if i in axes else (0, d) for i, d in enumerate(u.shape)])
  return add(pad(row, [(0, 1 - int(d)) if i in axes else (0, 0) for i, d in enumerate(row.shape)]), identity)

def sum_to(u: UOp, shape: Shape) -> UOp:
  """Sum over the axes that broadcasting `shape` to u's shape has made: the transpose of `broadcast`.

  Floats narrower than 32 bits accumulate in float32.
  """
  old = u.shape
  if old == shape: return u
  lead = len(old) - len(shape)
  axes = tuple([i for i, d in enumerate(old) if i < lead or (_is(shape[i - lead], 1) and not _is(d, 1))])
  wide = accumulator(u.dtype) if dtypes.is_float(u.dtype) else u.dtype
  return reshape(cast(reduce(cast(u, wide), Ops.ADD, axes), u.dtype), shape)

def fold(u: UOp, op: Ops, axes: tuple[int, ...]) -> UOp:
  """Reduce axes, and drop them."""
  return reshape(reduce(u, op, axes), tuple([d for i, d in enumerate(u.shape) if i not in axes]))

# ***** shapes *****

def broadcast_shape(what: str, *shapes: Shape) -> Shape:
  """Return the common shape of operands. Raises ShapeError that names two that do not fit."""
  found = _broadcasts.get(shapes)
  if found is not None: return found
  first = shapes[0]
  for other in shapes[1:]: first = _broadcast_two(what, first, other)
  if all([is_plain(shape) for shape in shapes]):
    if len(_broadcasts) >= _MOST_CACHED: _broadcasts.clear()
    _broadcasts[shapes] = first
  return first

def _broadcast_two(what: str, a: Shape, b: Shape) -> Shape:
  if a == b or not b: return a
  if not a: return b
  n = max(len(a), len(b))
  left, right = (1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b
  shape: list[sint] = []
  for axis, (x, y) in enumerate(zip(left, right)):
    if _is(x, 1): shape.append(y)
    elif _is(y, 1) or x is y or (isinstance(x, int) and isinstance(y, int) and x == y): shape.append(x)
    elif equal(x, y): shape.append(x if most(x) <= most(y) else y)   # the numbers are equal
    elif not isinstance(x, int) and equal(x, 1): shape.append(y)
    elif not isinstance(y, int) and equal(y, 1): shape.append(x)
    else:
      raise ShapeError(f"cannot {what} {show(a)} and {show(b)}: axis {axis - n} is {show((x,))[1:-2]} and "
                       f"{show((y,))[1:-2]}, neither is 1; "
                       "reshape, expand or shrink one of them")
  return tuple(shape)

def equal(x: sint, y: sint) -> bool:
  """Are sizes equal? Sizes that are not equal for all values of their Variables compare by the values bound to these.
  Without bound values the answer is False."""
  if isinstance(x, int) and isinstance(y, int): return x == y
  if x is y: return True
  return holds((x - y if isinstance(x, UOp) else y - x).eq(0))  # type: ignore[union-attr]  # one of them is a UOp

def same_numbers(a: Shape, b: Shape) -> bool:
  """Are two shapes equal, with symbolic sizes compared as numbers?"""
  return a == b or len(a) == len(b) and all([equal(x, y) for x, y in zip(a, b)])

def most(d: sint) -> int:
  """Return the largest value of a size, over all values to which its Variables may be bound."""
  return d if isinstance(d, int) else int(d.vmax)

def size(shape: Shape) -> sint: return sint_prod(shape)

def refuse_shape(what: str, a: Shape, b: Shape) -> None:
  """Raise the ShapeError of an operation whose operands must have one shape."""
  raise ShapeError(f"cannot {what} {show(a)} and {show(b)}: the shapes must be equal; reshape or expand the second")

def axis_of(axis: int, n: int) -> int:
  """Return an axis of n, counted from the front. Raises IndexRangeError."""
  if type(axis) is not int: axis = whole("an axis", axis)
  if not -max(n, 1) <= axis < max(n, 1):
    raise IndexRangeError(f"axis {axis} does not exist: the tensor has {n} axes; use {-max(n, 1)} to {max(n, 1) - 1}")
  return axis + n if axis < 0 else axis

def axes_of(axes: Iterable[int], n: int) -> tuple[int, ...]:
  """Return axes of n, counted from the front and sorted. Raises IndexRangeError, and ArgumentError if one is named
  twice."""
  if not isinstance(axes, Iterable): raise ArgumentError(f"axes are an int or a tuple of ints, not {axes!r}")
  found = tuple(sorted(axis_of(a, n) for a in axes))
  if len(set(found)) != len(found): raise ArgumentError(f"axes {tuple(axes)} name one axis twice; name each once")
  return found

def fold_axis(u: UOp, axis: int) -> UOp:
  """Drop an axis of size 1."""
  shape = u.shape
  return reshape(u, shape[:axis] + shape[axis + 1:])
