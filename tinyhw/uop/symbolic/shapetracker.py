"""`ShapeTracker` and `View`: movements of an array's axes as arithmetic on its indices. This is a small library over
the symbolic rules.

A `View` gives the position of the element at (i0, i1, …): offset + i0*strides[0] + … Every index must be inside of its
interval of the mask, else the element is 0. A movement that one View cannot express adds another. A `ShapeTracker` is
such a stack. The first View is the nearest to memory.

The engine has its own, more general method (engine/schedule/indexing.py). This is the library that users know.
"""
from __future__ import annotations
import math
from collections.abc import Sequence

from tinyhw.data_class import dataclass
from tinyhw.dtype import dtypes
from tinyhw.errors import ShapeError
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.symbolic.compare import clauses, constraint
from tinyhw.uop.symbolic.linear import linear, number, weakint
from tinyhw.uop.symbolic.symbolic import simplify

Ints = tuple[int, ...]
Mask = tuple[tuple[int, int], ...]

def strides_for_shape(shape: Sequence[int]) -> Ints:
  """Row-major strides. Axes of size 1 have stride 0."""
  strides: list[int] = []
  step = 1
  for n in reversed(shape):
    strides.append(0 if isinstance(n, int) and n == 1 else step)
    step *= n
  return tuple(reversed(strides))

def _indices(shape: Sequence[int]) -> list[UOp]:
  """Variables idx0, idx1, … for the axes of a shape."""
  return [UOp.variable(f"idx{i}", 0, max(n - 1, 0)) for i, n in enumerate(shape)]

@dataclass(frozen=True)
class View:
  """One strided view. mask: (begin, end) of the valid indices of each axis, or None if all are valid."""
  shape: Ints
  strides: Ints
  offset: int = 0
  mask: Mask | None = None

  @staticmethod
  def create(shape: Sequence[int], strides: Sequence[int] | None = None, offset: int = 0,
             mask: Sequence[tuple[int, int]] | None = None) -> View:
    """A view in normal form: axes of size 1 have stride 0, and a mask that excludes nothing is None.

    It is row-major if no strides are given.
    """
    shape = tuple(shape)
    if any(n < 0 for n in shape): raise ShapeError(f"a view cannot have the shape {shape}: sizes are at least 0")
    given = strides_for_shape(shape) if strides is None else tuple(strides)
    if len(given) != len(shape) or (mask is not None and len(mask) != len(shape)):
      raise ShapeError(f"a view of shape {shape} wants {len(shape)} strides and intervals of the mask, not {given} "
                       f"and {mask}")
    kept: Mask | None = None if mask is None or all((b, e) == (0, n) for (b, e), n in zip(mask, shape)) else tuple(mask)
    if kept is not None and any(b >= e for b, e in kept):
      kept, given, offset = ((0, 0),) * len(shape), (0,) * len(shape), 0
    if kept is not None:  # an axis with one valid index needs no stride
      offset += sum(s * b for s, (b, e), n in zip(given, kept, shape) if e == b + 1)
      given = tuple(0 if e == b + 1 else s for s, (b, e) in zip(given, kept))
    else: given = tuple(0 if n == 1 else s for s, n in zip(given, shape))
    return View(shape, given, offset, kept)

  @property
  def contiguous(self) -> bool:
    """Whether it is row-major from 0 on, and all of it is valid."""
    return self.offset == 0 and self.mask is None and self.strides == strides_for_shape(self.shape)

  @property
  def size(self) -> int: return math.prod(self.shape)

  def index(self, at: Sequence[UOp]) -> tuple[UOp, UOp]:
    """(position, validity) of the element at these indices, not simplified."""
    position, valid = number(weakint, self.offset), UOp(Ops.CONST, dtypes.bool, (), True)
    for i, stride in zip(at, self.strides): position = position + i * stride
    for i, n, (begin, end) in zip(at, self.shape, self.mask or ()):
      if begin > 0: valid = valid & (i >= begin)
      if end < n: valid = valid & (i < end)
    return position, valid

  # ***** movements; reshape returns None if one view cannot express it *****

  def permute(self, order: Sequence[int]) -> View:
    if sorted(order) != list(range(len(self.shape))):
      raise ShapeError(f"permute({tuple(order)}) does not name each axis of {self.shape} once")
    mask = None if self.mask is None else [self.mask[a] for a in order]
    return View.create([self.shape[a] for a in order], [self.strides[a] for a in order], self.offset, mask)

  def _window(self, pairs: Sequence[tuple[int, int]], mask: Mask | None) -> View:
    """The part from begin to end on each axis. Either may be outside of the axis."""
    offset = self.offset + sum(s * b for s, (b, _) in zip(self.strides, pairs))
    moved = mask
    if self.mask is not None:
      own = tuple((max(0, min(mb - b, e - b)), max(0, min(me - b, e - b)))
                  for (mb, me), (b, e) in zip(self.mask, pairs))
      moved = own if mask is None else tuple((max(a[0], m[0]), min(a[1], m[1])) for a, m in zip(own, mask))
    return View.create([e - b for b, e in pairs], self.strides, offset, moved)

  def pad(self, pairs: Sequence[tuple[int, int]]) -> View:
    """pairs: zeros before and after, for each axis."""
    if len(pairs) != len(self.shape) or any(b < 0 or e < 0 for b, e in pairs):
      raise ShapeError(f"cannot pad {self.shape} by {tuple(pairs)}")
    if not any(b or e for b, e in pairs): return self
    return self._window([(-b, n + e) for n, (b, e) in zip(self.shape, pairs)],
                        tuple((b, b + n) for n, (b, _) in zip(self.shape, pairs)))

  def shrink(self, pairs: Sequence[tuple[int, int]]) -> View:
    """pairs: begin and end, for each axis."""
    if len(pairs) != len(self.shape) or any(not 0 <= b <= e <= n for n, (b, e) in zip(self.shape, pairs)):
      raise ShapeError(f"cannot shrink {self.shape} to {tuple(pairs)}; give 0 <= begin <= end <= size for each axis")
    return self._window(pairs, None)

  def expand(self, shape: Sequence[int]) -> View:
    if len(shape) != len(self.shape) or any(n != m and n != 1 for n, m in zip(self.shape, shape)):
      raise ShapeError(f"cannot expand {self.shape} to {tuple(shape)}; only axes of size 1 grow")
    mask = None
    if self.mask is not None:
      mask = [(b, e) if n == m else (0, m if e > b else 0) for n, m, (b, e) in zip(self.shape, shape, self.mask)]
    return View.create(shape, [s if n == m else 0 for s, n, m in zip(self.strides, self.shape, shape)], self.offset,
                       mask)

  def flip(self, axes: Sequence[int]) -> View:
    flipped = {a % len(self.shape) for a in axes}
    offset = self.offset + sum(self.strides[a] * (self.shape[a] - 1) for a in flipped)
    mask = None if self.mask is None else [(n - e, n - b) if a in flipped else (b, e)
                                           for a, (n, (b, e)) in enumerate(zip(self.shape, self.mask))]
    return View.create(self.shape, [-s if a in flipped else s for a, s in enumerate(self.strides)], offset, mask)

  def reshape(self, shape: Sequence[int]) -> View | None:
    if math.prod(shape) != self.size:
      raise ShapeError(f"cannot reshape {self.shape} to {tuple(shape)}: they have {self.size} and {math.prod(shape)} "
                       f"elements")
    if tuple(shape) == self.shape: return self
    if self.size == 0: return View.create(shape)
    return _linear_view(shape, *self.index(_unflatten(_flatten(_indices(shape), shape), self.shape)))

def _flatten(at: Sequence[UOp], shape: Sequence[int]) -> UOp:
  flat = number(weakint, 0)
  for i, n in zip(at, shape): flat = flat * n + i
  return flat

def _unflatten(flat: UOp, shape: Sequence[int]) -> list[UOp]:
  at: list[UOp] = []
  step = 1
  for n in reversed(shape):
    at.append((flat // step) % n)
    step *= n
  return at[::-1]

def _linear_view(shape: Sequence[int], position: UOp, valid: UOp) -> View | None:
  """The one view with this position and validity, if there is one."""
  at = _indices(shape)
  form, gate = linear(simplify(position)), simplify(valid)
  if form is None or any(term not in at for term in form[0]): return None
  mask = [(0, n) for n in shape]
  for clause in () if gate.op is Ops.CONST else clauses(gate):
    says = constraint(clause)
    if says is None or says.expression not in at: return None
    axis = at.index(says.expression)
    mask[axis] = (int(max(mask[axis][0], says.least)), int(min(mask[axis][1] - 1, says.most)) + 1)
  if gate.op is Ops.CONST and not gate.arg: mask = [(0, 0) for _ in shape]
  return View.create(shape, [form[0].get(i, 0) for i in at], form[1], mask)

@dataclass(frozen=True)
class ShapeTracker:
  """A stack of views. The last one has the visible shape."""
  views: tuple[View, ...]

  @staticmethod
  def from_shape(shape: Sequence[int]) -> ShapeTracker: return ShapeTracker((View.create(shape),))

  @property
  def shape(self) -> Ints: return self.views[-1].shape

  @property
  def size(self) -> int: return self.views[-1].size

  @property
  def contiguous(self) -> bool: return len(self.views) == 1 and self.views[0].contiguous

  def _top(self, view: View) -> ShapeTracker: return ShapeTracker(self.views[:-1] + (view,))

  def permute(self, order: Sequence[int]) -> ShapeTracker: return self._top(self.views[-1].permute(order))
  def pad(self, pairs: Sequence[tuple[int, int]]) -> ShapeTracker: return self._top(self.views[-1].pad(pairs))
  def shrink(self, pairs: Sequence[tuple[int, int]]) -> ShapeTracker: return self._top(self.views[-1].shrink(pairs))
  def expand(self, shape: Sequence[int]) -> ShapeTracker: return self._top(self.views[-1].expand(shape))
  def flip(self, axes: Sequence[int]) -> ShapeTracker: return self._top(self.views[-1].flip(axes))

  def reshape(self, shape: Sequence[int]) -> ShapeTracker:
    """The same elements in another shape. It adds a second view if one cannot express it."""
    view = self.views[-1].reshape(shape)
    return ShapeTracker(self.views + (View.create(shape),)) if view is None else self._top(view)

  def expr_idxs(self, idxs: Sequence[UOp] | None = None) -> tuple[UOp, UOp]:
    """(position in memory, validity) of the element at idxs, in simplest form. The default of idxs is idx0, idx1, …"""
    at = _indices(self.shape) if idxs is None else list(idxs)
    valid = UOp(Ops.CONST, dtypes.bool, (), True)
    position = number(weakint, 0)
    for view, below in zip(reversed(self.views), (*reversed(self.views[:-1]), None)):
      position, allowed = view.index(at)
      position, valid = simplify(position), simplify(valid & allowed)
      if below is not None: at = _unflatten(position, below.shape)
    return position, valid

  def real_strides(self) -> tuple[int | None, ...]:
    """The stride of each axis in memory, or None for an axis without a single one."""
    at = _indices(self.shape)
    form = linear(self.expr_idxs()[0])
    if form is None: return (None,) * len(at)
    bent = {n for term in form[0] if term not in at for n in term.toposort()}
    return tuple(None if i in bent else form[0].get(i, 0) for i in at)

  def simplify(self) -> ShapeTracker:
    """Merge adjacent views where one view can express both."""
    views = list(self.views)
    at = len(views) - 1
    while at > 0:
      position, valid = ShapeTracker(tuple(views[at - 1:at + 1])).expr_idxs()
      one = _linear_view(views[at].shape, position, valid)
      if one is None: at -= 1
      else:
        views[at - 1:at + 1] = [one]
        at = len(views) - 1  # the views above may merge now
    return ShapeTracker(tuple(views)) if len(views) < len(self.views) else self
