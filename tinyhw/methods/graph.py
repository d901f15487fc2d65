"""Builders of tensor graph nodes: what tensor methods and gradients are written in. They take and give `UOp`s, check nothing that a caller has
checked already, and leave out what does nothing (a reshape to the same shape). They do not look through their operand (two reshapes stay two):
somebody may hold a tensor on it and ask for its gradient.

Shapes do not broadcast in the graph, so `broadcast` and `full` insert RESHAPE and EXPAND. Builders store the shape they know on the node; that
and a table of the constants in shapes make a node cost about 3 us.
"""
from __future__ import annotations
from collections.abc import Iterable, Sequence
from math import copysign
from sys import float_info

from tinyhw.dtype import ConstType, DType, dtypes, least_upper_dtype, truncate
from tinyhw.errors import ArgumentError, DTypeError, IndexRangeError, ShapeError
from tinyhw.methods.checks import real, whole
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, resolve, sint, sint_prod, to_indices

Shape = tuple[sint, ...]

_dims: dict[Shape, tuple[UOp, ...]] = {}
_constants: dict[tuple[DType, ConstType, Shape], UOp] = {}
_MOST_CACHED = 4096

def dims(shape: Shape) -> tuple[UOp, ...]:
  """A shape as sources of a movement node."""
  found = _dims.get(shape)
  if found is None:
    found = to_indices(shape)
    if all(isinstance(d, int) for d in shape):
      if len(_dims) >= _MOST_CACHED: _dims.clear()
      _dims[shape] = found
  return found

def node(op: Ops, dtype: DType, src: tuple[UOp, ...], arg: object, shape: Shape, tag: object = None) -> UOp:
  """A node whose shape is known."""
  u = UOp(op, dtype, src, arg, tag)
  u._shape_ = shape  # where the property `shape` would put it
  return u

def show(shape: Sequence[sint]) -> str:
  """A shape for messages: symbolic sizes as expressions."""
  parts = [str(d) if isinstance(d, int) else d.render() for d in shape]
  return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"

# ***** constants *****

def constant(dtype: DType, value: ConstType, device: str | tuple[str, ...] | None = None) -> UOp:
  """A constant of shape (); integers wrap to what the type holds. Raises DTypeError for an infinity or NaN that is to be an integer."""
  if dtypes.is_int(dtype):
    try: value = truncate[dtype](value)
    except (OverflowError, ValueError): raise DTypeError(f"cannot make {value} an element of {dtype}; use a float type") from None
  return UOp.const(dtype, value, device)

def check_number(what: str, dtype: DType, value: ConstType) -> ConstType:
  """value as a number of Python's. Raises ArgumentError for what is none, DTypeError for an int that the type does not hold; floats are rounded."""
  if isinstance(value, bool): return value
  value = real("a value to " + what, value)
  if not isinstance(value, int) or dtype is dtypes.bool: return value
  low, high = (-float_info.max, float_info.max) if dtypes.is_float(dtype) else dtype.limits()
  if low <= value <= high: return value
  number = value if value.bit_length() < 128 else f"a number of {value.bit_length()} bits"
  raise DTypeError(f"cannot {what} a tensor of {dtype} with {number}: the type holds {low} to {high}; cast the tensor to one that holds the number")

def full(shape: Shape, dtype: DType, value: ConstType, device: str | tuple[str, ...] | None = None) -> UOp:
  """A constant of any shape."""
  if device is not None or (value == 0 and copysign(1.0, value) < 0): return broadcast(constant(dtype, value, device), shape)  # -0.0 == 0.0
  key = (dtype, value, shape)
  found = _constants.get(key)
  if found is None:
    if len(_constants) >= _MOST_CACHED: _constants.clear()
    found = _constants[key] = broadcast(constant(dtype, value), shape)
  return found

def like(u: UOp, value: ConstType) -> UOp:
  """A constant with u's type and shape."""
  return full(u.shape, u.dtype, value)

# ***** movement *****

def reshape(u: UOp, shape: Shape) -> UOp:
  """Sizes that multiply to the same number."""
  return u if u.shape == shape else node(Ops.RESHAPE, u.dtype, (u, *dims(shape)), None, shape)

def expand(u: UOp, shape: Shape) -> UOp:
  """Axes of size 1 repeat."""
  return u if u.shape == shape else node(Ops.EXPAND, u.dtype, (u, *dims(shape)), None, shape)

def broadcast(u: UOp, shape: Shape) -> UOp:
  """u with leading axes of size 1, then expanded. The caller knows that it fits."""
  old = u.shape
  if old == shape: return u
  if len(old) < len(shape): u = reshape(u, (1,) * (len(shape) - len(old)) + old)
  return expand(u, shape)

def permute(u: UOp, order: tuple[int, ...]) -> UOp:
  """Axis i of the result is axis order[i] of u."""
  if order == tuple(range(len(order))): return u
  shape = u.shape
  return node(Ops.PERMUTE, u.dtype, (u,), order, tuple([shape[i] for i in order]))

def flip(u: UOp, axes: tuple[int, ...]) -> UOp:
  """The axes run backwards."""
  return node(Ops.FLIP, u.dtype, (u,), axes, u.shape) if axes else u

def _is(x: sint, value: int) -> bool: return isinstance(x, int) and x == value

def pad(u: UOp, pairs: Sequence[tuple[sint, sint]]) -> UOp:
  """Zeros before and after each axis, by count."""
  if all(_is(b, 0) and _is(e, 0) for b, e in pairs): return u
  return UOp(Ops.PAD, u.dtype, (u, *dims(tuple([x for pair in pairs for x in pair]))))

def shrink(u: UOp, pairs: Sequence[tuple[sint, sint]]) -> UOp:
  """The part from begin to end of each axis."""
  if all(_is(b, 0) and (e is d or (isinstance(d, int) and _is(e, d))) for (b, e), d in zip(pairs, u.shape)): return u
  return UOp(Ops.SHRINK, u.dtype, (u, *dims(tuple([x for pair in pairs for x in pair]))))

def shrink_axis(u: UOp, axis: int, begin: sint, end: sint) -> UOp:
  """The part from begin to end of one axis."""
  return shrink(u, [(begin, end) if i == axis else (0, d) for i, d in enumerate(u.shape)])

def pad_axis(u: UOp, axis: int, before: sint, after: sint) -> UOp:
  """Zeros before and after one axis."""
  return pad(u, [(before, after) if i == axis else (0, 0) for i in range(len(u.shape))])

def transpose(u: UOp, a: int, b: int) -> UOp:
  """Two axes change places."""
  order = list(range(len(u.shape)))
  order[a], order[b] = order[b], order[a]
  return permute(u, tuple(order))

def iota(n: sint, dtype: DType, device: str | tuple[str, ...] | None) -> UOp:
  """0, 1, ..., n-1."""
  src = dims((n,)) if device is None else (*dims((n,)), UOp(Ops.DEVICE, dtypes.void, (), device))
  return node(Ops.IOTA, dtype, src, None, (n,))

def positions(u: UOp, axis: int, dtype: DType = dtypes.int32) -> UOp:
  """For each element of u, its place along an axis."""
  shape = u.shape
  along = iota(shape[axis], dtype, u.device)
  return expand(reshape(along, tuple([d if i == axis else 1 for i, d in enumerate(shape)])), shape)

# ***** computation *****

def cast(u: UOp, dtype: DType) -> UOp:
  """u as another type."""
  return u if u.dtype is dtype else node(Ops.CAST, dtype, (u,), None, u.shape)

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
  """u on another device, or on several: in parts along an axis, or all of it on each."""
  return node(Ops.COPY, u.dtype, (u, UOp(Ops.DEVICE, dtypes.void, (), device)), axis, u.shape)
def detach(u: UOp) -> UOp: return unary(Ops.DETACH, u)
def after(u: UOp, *earlier: UOp) -> UOp: return node(Ops.AFTER, u.dtype, (u, *earlier), None, u.shape)

def accumulator(dtype: DType) -> DType:
  """The type in which a sum or product of such elements is formed: at least 32 bits wide; unsigned stays unsigned."""
  if dtypes.is_unsigned(dtype): return least_upper_dtype(dtype, dtypes.uint32)
  if dtypes.is_int(dtype) or dtype is dtypes.bool: return least_upper_dtype(dtype, dtypes.int32)
  return least_upper_dtype(dtype, dtypes.float32)

def reduce(u: UOp, op: Ops, axes: tuple[int, ...]) -> UOp:
  """Fold axes to size 1, in u's own type. Of no elements that is the operation's identity."""
  if not axes: return u
  shape = u.shape
  folded = tuple([1 if i in axes else d for i, d in enumerate(shape)])
  if any(_is(shape[i], 0) for i in axes): return _of_nothing(u, op, axes, folded)
  return node(Ops.REDUCE_AXIS, u.dtype, (u,), (op, axes), folded)

def _of_nothing(u: UOp, op: Ops, axes: tuple[int, ...], folded: Shape) -> UOp:
  """The fold of no elements. Of floats it still depends on u, so that u has a gradient."""
  identity = full(folded, u.dtype, {Ops.ADD: 0, Ops.MUL: 1, Ops.MAX: u.dtype.min}[op], u.device)
  if not dtypes.is_float(u.dtype) or not all(isinstance(d, int) for d in u.shape): return identity
  row = shrink(u, [(0, min(int(d), 1)) if i in axes else (0, d) for i, d in enumerate(u.shape)])
  return add(pad(row, [(0, 1 - int(d)) if i in axes else (0, 0) for i, d in enumerate(row.shape)]), identity)

def sum_to(u: UOp, shape: Shape) -> UOp:
  """Sum over the axes that broadcasting `shape` to u's shape has made: the transpose of `broadcast`. Narrow floats accumulate in float32."""
  old = u.shape
  if old == shape: return u
  lead = len(old) - len(shape)
  axes = tuple([i for i, d in enumerate(old) if i < lead or (_is(shape[i - lead], 1) and not _is(d, 1))])
  wide = accumulator(u.dtype) if dtypes.is_float(u.dtype) else u.dtype
  return reshape(cast(reduce(cast(u, wide), Ops.ADD, axes), u.dtype), shape)

def fold(u: UOp, op: Ops, axes: tuple[int, ...]) -> UOp:
  """Reduce, and drop the axes."""
  return reshape(reduce(u, op, axes), tuple([d for i, d in enumerate(u.shape) if i not in axes]))

# ***** shapes *****

def broadcast_shape(what: str, *shapes: Shape) -> Shape:
  """The common shape of operands. Raises ShapeError naming two that do not fit."""
  first = shapes[0]
  for other in shapes[1:]: first = _broadcast_two(what, first, other)
  return first

def _broadcast_two(what: str, a: Shape, b: Shape) -> Shape:
  if a == b or not b: return a
  if not a: return b
  n = max(len(a), len(b))
  left, right = (1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b
  shape: list[sint] = []
  for axis, (x, y) in enumerate(zip(left, right)):
    if _is(x, 1): shape.append(y)
    elif _is(y, 1) or x is y or (isinstance(x, int) and isinstance(y, int) and x == y) or equal(x, y): shape.append(x)
    else:
      raise ShapeError(f"cannot {what} {show(a)} and {show(b)}: axis {axis - n} is {show((x,))[1:-2]} and {show((y,))[1:-2]}, neither is 1; "
                       "reshape, expand or shrink one of them")
  return tuple(shape)

def equal(x: sint, y: sint) -> bool:
  """Sizes known to be equal."""
  if isinstance(x, int) and isinstance(y, int): return x == y
  if x is y: return True
  difference = (x - y) if isinstance(x, UOp) else -(y - x)
  return resolve(difference.simplify().eq(0), False) if isinstance(difference, UOp) else difference == 0

def size(shape: Shape) -> sint: return sint_prod(shape)

def refuse_shape(what: str, a: Shape, b: Shape) -> None:
  """Raise the ShapeError of an operation whose operands must have one shape."""
  raise ShapeError(f"cannot {what} {show(a)} and {show(b)}: the shapes must be equal; reshape or expand the second")

def axis_of(axis: int, n: int) -> int:
  """An axis of n, counted from the front. Raises IndexRangeError."""
  if type(axis) is not int: axis = whole("an axis", axis)
  if not -max(n, 1) <= axis < max(n, 1):
    raise IndexRangeError(f"axis {axis} does not exist: the tensor has {n} axes; use {-max(n, 1)} to {max(n, 1) - 1}")
  return axis + n if axis < 0 else axis

def axes_of(axes: Iterable[int], n: int) -> tuple[int, ...]:
  """Axes of n, counted from the front, sorted. Raises IndexRangeError; ArgumentError if one is named twice."""
  if not isinstance(axes, Iterable): raise ArgumentError(f"axes are an int or a tuple of ints, not {axes!r}")
  found = tuple(sorted(axis_of(a, n) for a in axes))
  if len(set(found)) != len(found): raise ArgumentError(f"axes {tuple(axes)} name one axis twice; name each once")
  return found

def fold_axis(u: UOp, axis: int) -> UOp:
  """Without an axis of size 1."""
  shape = u.shape
  return reshape(u, shape[:axis] + shape[axis + 1:])
