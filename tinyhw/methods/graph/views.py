"""Computations of movement methods before they build nodes: shapes from arguments, padding, sliding windows, and the
formulas of `rearrange`."""
from __future__ import annotations
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.dtype import ConstType, dtypes
from tinyhw.engine.memory.writes import ROOM
from tinyhw.errors import ArgumentError, IndexRangeError, ShapeError
from tinyhw.gradient import define_gradient
from tinyhw.helpers import ceildiv
from tinyhw.methods.checks import size, sizes, whole
from tinyhw.methods.graph import graph
from tinyhw.uop.decide import holds, number, value
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, sint, sint_prod
if TYPE_CHECKING:
  from tinyhw.methods.movement import Movement
  from tinyhw.tensor import Tensor

MOST_ELEMENTS = 1 << 56     # so that byte counts, and sums of indices, stay in 64 bits
Pairs = list[tuple[sint, sint]]

def static(d: sint, what: str) -> int:
  """Return the present number of a size. A capture is for this number only.

  Raises ShapeError for a Variable without a value.
  """
  found = number(d)
  if found is None:
    raise ShapeError(f"cannot {what} an axis of symbolic size {_count(d)}, which has no value; bind its Variables")
  return found

def fixed(u: UOp, what: str) -> UOp:
  """Return u with numbers for its sizes. Raises ShapeError for a Variable without a value."""
  return u if graph.is_plain(u.shape) else graph.shrink(u, [(0, static(d, what)) for d in u.shape])

def check_elements(shape: Sequence[sint]) -> None:
  """Raise ShapeError for more elements than any device can count."""
  count = 1
  for d in shape: count *= max(limits(d)[1], 1)
  if count > MOST_ELEMENTS and not any(isinstance(d, int) and d == 0 for d in shape):
    raise ShapeError(f"a tensor of shape {graph.show(shape)} would have {count} elements, and at most 2**56 can be "
                     f"counted")

def limits(x: sint) -> tuple[int, int]:
  """Return the smallest and largest value of a size or offset, over all values to which its Variables may be bound."""
  return (x, x) if isinstance(x, int) else (int(x.vmin), int(x.vmax))

def new_shape(old: tuple[sint, ...], wanted: Sequence[sint | None]) -> tuple[sint, ...]:
  """Return the shape that reshape(*wanted) stands for. Raises ShapeError if the number of elements differs."""
  shape: list[sint] = []
  hole = None
  for i, n in enumerate(wanted):
    if n is None:
      if i >= len(old): raise ShapeError(f"cannot reshape {graph.show(old)}: None keeps axis {i}, which does not exist")
      n = old[i]
    n = size("a size", n)
    if isinstance(n, int):
      if n == -1:
        if hole is not None:
          raise ShapeError(f"cannot reshape {graph.show(old)} to {tuple(wanted)}: only one size can be -1")
        hole = i
      elif n < 0: raise ShapeError(f"cannot reshape {graph.show(old)} to {tuple(wanted)}: {n} is negative")
    shape.append(n)
  total = graph.simple(sint_prod(old))
  if hole is not None: shape[hole] = _fill(old, shape, hole, total)
  elif not graph.equal(sint_prod(shape), total):
    raise ShapeError(f"cannot reshape {graph.show(old)} to {graph.show(shape)}: {_count(total)} elements do not make "
                     f"{_count(sint_prod(shape))}; "
                     "use -1 for one size to let it be computed")
  return tuple(shape)

def _count(n: sint) -> str: return str(n) if isinstance(n, int) else n.render()

def _fill(old: tuple[sint, ...], shape: list[sint], hole: int, total: sint) -> sint:
  """Return the size for which -1 stands."""
  others = sint_prod([n for i, n in enumerate(shape) if i != hole])
  if isinstance(others, int) and isinstance(total, int):
    if others == 0 or total % others:
      raise ShapeError(f"cannot reshape {graph.show(old)} to {graph.show(shape)}: {total} elements are not a multiple "
                       f"of {others}")
    return total // others
  if isinstance(others, int) and others == 1: return total
  rest = list(old)  # symbolic: factors of both sides cancel
  for n in [n for i, n in enumerate(shape) if i != hole]:
    match = next((m for m in rest if graph.equal(m, n)), None)
    if match is not None: rest.remove(match)
    elif isinstance(n, int) and (whole := next((m for m in rest if isinstance(m, int) and n and m % n == 0),
                                               None)) is not None:
      rest[rest.index(whole)] = whole // n
    elif not isinstance(n, int) or n != 1:
      return _fill((static(total, "reshape"),), [static(n, "reshape") for n in shape], hole, static(total, "reshape"))
  return sint_prod(rest)

def reshaped(u: UOp, wanted: Sequence[sint | None]) -> UOp:
  """Return u in the shape that reshape(*wanted) stands for.

  Where the counts of elements are equal only for the present values of the Variables, these values become the sizes.
  """
  shape = new_shape(u.shape, wanted)
  if graph.is_plain(shape + u.shape): return graph.reshape(u, shape)
  if graph.simple(sint_prod(shape)) is graph.simple(sint_prod(u.shape)): return graph.reshape(u, shape)
  return graph.reshape(fixed(u, "reshape"), tuple([static(d, "reshape") for d in shape]))

# ***** padding *****

def pad_pairs(shape: tuple[sint, ...], padding: Sequence[Any]) -> Pairs:
  """Return (before, after) for each axis, from pairs or from the flat form that begins with the last axis."""
  n = len(shape)
  if not any(p is None or isinstance(p, (tuple, list)) for p in padding):
    counts = sizes("a count to pad by", padding)
    if len(padding) % 2 or len(padding) > 2 * n:
      raise ShapeError(f"cannot pad {graph.show(shape)} by {tuple(padding)}: give two counts for each of at most {n} "
                       f"axes, beginning with the last")
    flat = list(zip(counts[::2], counts[1::2]))
    return [(0, 0)] * (n - len(flat)) + flat[::-1]
  if len(padding) != n:
    raise ShapeError(f"cannot pad {graph.show(shape)}: {len(padding)} pairs for {n} axes; use None for an axis that "
                     f"stays")
  return [(0, 0) if p is None else pair("counts to pad by", p) for p in padding]

def pair(what: str, given: Any) -> tuple[sint, sint]:
  """Return two sizes. Raises ArgumentError."""
  if not isinstance(given, (tuple, list)) or len(given) != 2:
    raise ArgumentError(f"{what} are pairs (before, after) or None, not {given!r}")
  return size(what, given[0]), size(what, given[1])

def pad_constant(u: UOp, pairs: Pairs, value: ConstType) -> UOp:
  """Pad u with a constant. Negative counts cut."""
  before, after = [_adds(b) for b, _ in pairs], [_adds(e) for _, e in pairs]
  cut = [(0 if more else -b, d if more_after else d + e)
         for (b, e), d, more, more_after in zip(pairs, u.shape, before, after)]
  for begin, end in cut:
    if holds(begin > end):
      raise ShapeError(f"cannot pad {graph.show(u.shape)} by {pairs}: more is cut than there is")
  u = graph.shrink(u, cut)
  pairs = [(b if more else 0, e if more_after else 0) for (b, e), more, more_after in zip(pairs, before, after)]
  padded = graph.pad(u, pairs)
  value = graph.check_number("pad", u.dtype, value)
  if padded is u or (value == 0 and not (dtypes.is_float(u.dtype) and math.copysign(1, value) < 0)): return padded
  inside = graph.pad(graph.full(u.shape, dtypes.bool, True), pairs)
  return graph.where(inside, padded, graph.like(padded, value))

def _adds(count: sint) -> bool:
  """Does padding by a count add elements, rather than cut them?

  If its Variables have no values, it counts as adding unless it can never add.
  """
  return count >= 0 if isinstance(count, int) else holds(count >= 0, limits(count)[0] >= 0)

# At most FEW_JOINED nodes are joined by one kernel, since each element tests all of them. More nodes are joined in
# groups first. The size of a group is the root of the number of nodes, up to MOST_JOINED. Beyond that, groups are
# joined in groups.
FEW_JOINED = 8
MOST_JOINED = 18

def joined(parts: Sequence[UOp], axis: int) -> UOp:
  """Concatenate nodes of one type along an axis.

  Many nodes are joined in groups, and so are the groups. At each level an element costs as many terms as a group has.
  """
  most = min(max(FEW_JOINED, math.isqrt(len(parts) - 1) + 1), MOST_JOINED)
  while len(parts) > most:
    size = ceildiv(len(parts), ceildiv(len(parts), most))
    parts = [graph.contiguous(added_up(parts[k:k + size], axis)) for k in range(0, len(parts), size)]
  return added_up(parts, axis)

def added_up(parts: Sequence[UOp], axis: int) -> UOp:
  """Concatenate nodes at once: pad each with the neutral element of addition, and add all. It is -0.0, since 0.0 + -0.0
  is 0.0."""
  starts: list[sint] = [0]
  for u in parts: starts.append(starts[-1] + u.shape[axis])
  rests = [graph.simple(starts[-1] - end) for end in starts[1:]]
  around = [[(starts[k], rests[k]) if i == axis else (0, 0) for i in range(len(u.shape))] for k, u in enumerate(parts)]
  level = [pad_constant(u, pairs, -0.0) for u, pairs in zip(parts, around)]
  op = Ops.OR if parts[0].dtype is dtypes.bool else Ops.ADD
  while len(level) > 1:
    level = [graph.binary(op, *level[i:i + 2]) if i + 1 < len(level) else level[i] for i in range(0, len(level), 2)]
  return level[0]

# ***** windows *****

def windows(u: UOp, axis: int, size: int, stride: int, dilation: int) -> UOp:
  """Return sliding windows along an axis, which becomes two: (element of the window, window).

  The axis is repeated and cut into rows that are longer than the axis by `dilation`. So each row is shifted by
  `dilation` against the one before. The index of an element is window * stride + element * dilation. The gradient sums
  shifted rows the same way, instead of going back through the repetition.
  """
  n = u.shape[axis]
  if not isinstance(n, int): return _symbolic_windows(u, axis, size, stride, dilation)
  count = (n - dilation * (size - 1) - 1) // stride + 1
  lead, rest = u.shape[:axis], u.shape[axis + 1:]
  if size == 1 or (dilation == 1 and stride >= size):  # windows do not overlap
    rows = graph.reshape(_resize(u, axis, count * stride), (*lead, count, stride, *rest))
    return graph.transpose(graph.shrink_axis(rows, axis + 1, 0, size), axis, axis + 1)
  copies = ceildiv(size * (n + dilation), n)
  x = graph.expand(graph.reshape(u, (*lead, 1, n, *rest)), (*lead, copies, n, *rest))
  x = graph.shrink_axis(graph.reshape(x, (*lead, copies * n, *rest)), axis, 0, size * (n + dilation))
  x = _resize(graph.reshape(x, (*lead, size, n + dilation, *rest)), axis + 1, count * stride)
  if stride > 1: x = graph.shrink_axis(graph.reshape(x, (*lead, size, count, stride, *rest)), axis + 2, 0, 1)
  rows_shape = (*lead, size, count, *rest)
  define_gradient(x, (u,), lambda _, g: (unwindow(graph.reshape(g, rows_shape), axis, n, stride, dilation),))
  return graph.reshape(x, rows_shape)

def _symbolic_windows(u: UOp, axis: int, size: int, stride: int, dilation: int) -> UOp:
  """Return the same windows along an axis of symbolic size. Each element is gathered by its index, window * stride +
  element * dilation."""
  n = u.shape[axis]
  lead, rest = u.shape[:axis], u.shape[axis + 1:]
  count = graph.simple((n - (dilation * (size - 1) + 1)) // stride + 1)
  wide, out = (*lead, size, n, *rest), (*lead, size, count, *rest)
  element, window = graph.positions_in(u, out, axis), graph.positions_in(u, out, axis + 1)
  place = graph.add(graph.scale(window, stride), graph.scale(element, dilation))
  found = graph.node(Ops.GATHER, u.dtype, (graph.expand(graph.reshape(u, (*lead, 1, n, *rest)), wide), place), axis + 1,
                     out)
  define_gradient(found, (u,), lambda _, g: (unwindow(g, axis, n, stride, dilation),))
  return found

def _symbolic_unwindow(g: UOp, axis: int, n: sint, stride: int, dilation: int) -> UOp:
  """Return the transpose of `_symbolic_windows`. At each index, it sums over the elements of a window the window that
  has that element there, if any."""
  lead, size, rest = g.shape[:axis], g.shape[axis], g.shape[axis + 2:]
  wide = (*lead, size, n, *rest)
  begin = graph.add(graph.positions_in(g, wide, axis + 1), graph.scale(graph.positions_in(g, wide, axis), -dilation))
  zero, none = graph.like(begin, 0), graph.like(begin, -1)
  inside = graph.where(graph.compare(Ops.CMPLT, begin, zero), zero, begin)
  window, left = (graph.binary(op, inside, graph.like(begin, stride)) for op in (Ops.IDIV, Ops.MOD))
  fits = graph.binary(Ops.AND, graph.compare(Ops.CMPEQ, left, zero), graph.compare(Ops.CMPLT, none, begin))
  found = graph.node(Ops.GATHER, g.dtype, (g, graph.where(fits, window, none)), axis + 1, wide)
  return graph.fold(found, Ops.ADD, (axis,))

def _resize(u: UOp, axis: int, n: int) -> UOp:
  """Cut or pad an axis at its end to size n."""
  old = u.shape[axis]
  assert isinstance(old, int)
  return graph.shrink_axis(u, axis, 0, n) if n <= old else graph.pad_axis(u, axis, 0, n - old)

def every(u: UOp, axis: int, step: int, place: int) -> UOp:
  """Take the element at index `place` of each group of `step` elements along an axis. The last group may lack the
  elements after it."""
  n = u.shape[axis]
  lead, count, rest = u.shape[:axis], graph.simple(ceildiv(n, step)), u.shape[axis + 1:]
  more = graph.simple(count * step - n)
  if not isinstance(more, int) or more: u = graph.pad_axis(u, axis, 0, more).replace(tag=ROOM)
  rows = graph.reshape(u, (*lead, count, step, *rest))
  return graph.fold_axis(graph.shrink_axis(rows, axis + 1, place, place + 1), axis + 1)

def dilate(u: UOp, axis: int, stride: int) -> UOp:
  """Insert stride - 1 zeros between the elements of an axis."""
  n = u.shape[axis]
  if stride == 1 or isinstance(n, int) and n == 0: return u
  lead, rest = u.shape[:axis], u.shape[axis + 1:]
  x = graph.pad_axis(graph.reshape(u, (*lead, n, 1, *rest)), axis + 1, 0, stride - 1)
  return graph.shrink_axis(graph.reshape(x, (*lead, n * stride, *rest)), axis, 0, (n - 1) * stride + 1)

def unwindow(g: UOp, axis: int, n: sint, stride: int, dilation: int) -> UOp:
  """Return the transpose of `windows`: sum the values that were taken from the same index. g: (..., element, window,
  ...) -> (..., n, ...)."""
  if not isinstance(n, int): return _symbolic_unwindow(g, axis, n, stride, dilation)
  size = g.shape[axis]
  assert isinstance(size, int)
  g = dilate(g, axis + 1, stride)
  used, before = g.shape[axis + 1], (size - 1) * dilation
  assert isinstance(used, int)
  width = n + before
  lead, rest = g.shape[:axis], g.shape[axis + 2:]
  flat = graph.reshape(graph.pad_axis(g, axis + 1, before, n - used), (*lead, size * width, *rest))
  if size == 1: return graph.shrink_axis(flat, axis, 0, n)
  rows = graph.shrink_axis(flat, axis, before, before + size * (width - dilation))
  rows = graph.shrink_axis(graph.reshape(rows, (*lead, size, width - dilation, *rest)), axis + 1, 0, n)
  return graph.fold(rows, Ops.ADD, (axis,))

# ***** rearrange *****

_EACH = ["...", "each"]   # "..." outside of brackets: one group for each axis; inside, all are in one group

def _parse(side: str, formula: str) -> list[list[str]]:
  """Parse one side: "b (h w) ..." -> [["b"], ["h", "w"], _EACH]."""
  groups: list[list[str]] = []
  inside = False
  for token in re.findall(r"\.\.\.|\w+|[()]|\S", side):
    if token == "(" and not inside:
      groups.append([])
      inside = True
    elif token == ")" and inside: inside = False
    elif token != "..." and not re.fullmatch(r"\w+", token):
      raise ArgumentError(f"rearrange: {token!r} in {formula!r} is not understood")
    elif inside: groups[-1].append(token)
    elif token == "...": groups.append(_EACH)
    else: groups.append([token] if token != "1" else [])
  if inside: raise ArgumentError(f"rearrange: a bracket in {formula!r} is not closed")
  return groups

def _expand_dots(groups: list[list[str]], extra: int) -> list[list[str]]:
  names = [f".{i}" for i in range(extra)]
  result: list[list[str]] = []
  for group in groups:
    if group is _EACH: result.extend([name] for name in names)
    else: result.append([x for name in group for x in (names if name == "..." else [name])])
  return result

def rearrange(x: Movement, formula: str, sizes: dict[str, int]) -> Tensor:
  """See Movement.rearrange."""
  if not isinstance(formula, str):
    raise ArgumentError(f"rearrange wants a formula such as 'b (h w) -> b h w', not {formula!r}")
  formula = formula.replace("…", "...")
  sizes = {name: whole(f"the size of {name}", d, 0) for name, d in sizes.items()}
  if formula.count("->") != 1: raise ArgumentError(f"rearrange: {formula!r} needs one '->'")
  left, right = (_parse(side, formula) for side in formula.split("->"))
  extra = x.ndim - (len(left) - (_EACH in left))
  if extra < 0 or (extra and _EACH not in left):
    raise ShapeError(f"rearrange: {formula!r} does not fit {graph.show(x.shape)}")
  left, right = _expand_dots(left, extra), _expand_dots(right, extra)
  names = [name for group in left for name in group]
  if sorted(names) != sorted(name for group in right for name in group) or len(set(names)) != len(names):
    raise ArgumentError(f"rearrange: both sides of {formula!r} must have the same names, each once")
  if unknown := set(sizes) - set(names): raise ArgumentError(f"rearrange: {sorted(unknown)} is not in {formula!r}")
  found: dict[str, sint] = {}
  for group, d in zip(left, x.shape):
    wanted = [sizes.get(name, -1) if len(group) > 1 or name in sizes else d for name in group]
    found.update(zip(group, new_shape((d,), wanted)))
  y = x.reshape([found[name] for name in names]).permute([names.index(name) for group in right for name in group])
  return y.reshape([sint_prod([found[name] for name in group]) for group in right])

def check_part(axis: int, size: sint, begin: sint, end: sint) -> None:
  """Raise IndexRangeError unless 0 <= begin <= end <= size. This must hold for the present values of their Variables.
  If one has no value, it must hold for all values."""
  if end is size and (begin is size or isinstance(begin, int) and 0 <= begin <= limits(size)[0]): return
  if holds(begin >= 0, limits(begin)[0] >= 0) and holds(begin <= end,
                                                        True) and holds(end <= size, limits(end)[1] <= limits(size)[1]):
    return
  now = [value(x) for x in (begin, end, size) if isinstance(x, UOp)]
  known = (f": {', '.join(f'{_count(x)} is {value(x)}' for x in (begin, end, size) if isinstance(x, UOp))}" if now
           and None not in now else "")
  raise IndexRangeError(f"cannot take {_count(begin)} to {_count(end)} of axis {axis}, which has size "
                        f"{_count(size)}{known}")
