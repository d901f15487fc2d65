"""Movement operations as index expressions: the index of a result element gives the index of the source element.
Nothing is copied.

A `GatedIndex` says where a node is read: one index expression per axis, and the condition under which the
element exists (PAD, GATHER). Reads with a false condition give 0 and do not touch memory. `move(u, gated)` takes a
gated index in u to the one in u's source.
"""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.dtype import dtypes
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, sint, sint_prod, to_index

ZERO = UOp(Ops.CONST, dtypes.weakint, (), 0)

class GatedIndex(NamedTuple):
  """An index expression per axis, and the condition for the element to exist (None: always)."""
  index: tuple[UOp, ...]  # type: ignore[assignment]  # hides tuple.index, which nobody wants here
  valid: UOp | None = None

def both(a: UOp | None, b: UOp | None) -> UOp | None:
  """Return the conjunction of two conditions, where None means true."""
  if a is None or b is None: return b if a is None else a
  return a if a is b else (a & b)

def unless_true(condition: UOp) -> UOp | None:
  """Return a condition; None for one that always holds."""
  return None if condition.op is Ops.CONST and condition.arg is True else condition

def flatten(index: tuple[UOp, ...], shape: tuple[sint, ...]) -> UOp:
  """Return the row-major position of an element with this index."""
  total: UOp | None = None
  stride: sint = 1
  for i, n in zip(reversed(index), reversed(shape)):
    if i is not ZERO:
      term = i if isinstance(stride, int) and stride == 1 else i * stride
      total = term if total is None else term + total
    stride = stride * n if isinstance(stride, UOp) or not isinstance(n, UOp) else n * stride
  return ZERO if total is None else total.simplify()

def unflatten(position: UOp, shape: tuple[sint, ...]) -> tuple[UOp, ...]:
  """Return the row-major index of the element at a position."""
  out: list[UOp] = []
  stride: sint = sint_prod(shape)
  size = stride
  for k, n in enumerate(shape):
    if isinstance(n, int) and n == 1:
      out.append(ZERO)
      continue
    inner = _quotient(stride, n, shape[k + 1:])
    i = position if inner == 1 else position // inner
    if stride is not size: i = i % n
    out.append(i.simplify())
    stride = inner
  return tuple(out)

def _quotient(stride: sint, n: sint, rest: tuple[sint, ...]) -> sint:
  return stride // n if isinstance(stride, int) and isinstance(n, int) and n else sint_prod(rest)

def _is_one(n: sint) -> bool: return isinstance(n, int) and n == 1

def blocks(a: tuple[sint, ...], b: tuple[sint, ...]) -> list[tuple[int, int, int, int]]:
  """Return the finest split of two shapes with one size into blocks (from, to in a; from, to in b) of equal products.

  Sizes of 1 belong to any block.
  """
  blocks, i, j = [], 0, 0
  while i < len(a) or j < len(b):
    i0, j0 = i, j
    x: sint = 1
    y: sint = 1
    if i < len(a):
      x = a[i]
      i += 1
    if j < len(b):
      y = b[j]
      j += 1
    while not _same(x, y):
      if isinstance(x, UOp) or isinstance(y, UOp) or x == 0 or y == 0: return [(0, len(a), 0, len(b))]
      if (x < y and i < len(a)) or j >= len(b):
        if i >= len(a): return [(0, len(a), 0, len(b))]
        if isinstance(a[i], UOp): return [(0, len(a), 0, len(b))]
        x *= a[i]
        i += 1
      else:
        if isinstance(b[j], UOp): return [(0, len(a), 0, len(b))]
        y *= b[j]
        j += 1
    blocks.append((i0, i, j0, j))
  return blocks

def _same(x: sint, y: sint) -> bool: return x is y or (isinstance(x, int) and isinstance(y, int) and x == y)

def reshape_index(index: tuple[UOp, ...], shape: tuple[sint, ...], source: tuple[sint, ...]) -> tuple[UOp, ...]:
  """Return the index in `source` of the element at `index` in `shape`. Both shapes have the same number of elements.

  Axes are matched in blocks, so that an unchanged axis needs no division.
  """
  places = [k for k, n in enumerate(shape) if not _is_one(n)]
  sources = [k for k, n in enumerate(source) if not _is_one(n)]
  inner, outer = tuple(index[k] for k in places), tuple(shape[k] for k in places)
  target = tuple(source[k] for k in sources)
  out = [ZERO] * len(source)
  for i0, i1, j0, j1 in blocks(outer, target):
    if i1 - i0 == 1 and j1 - j0 == 1: found: tuple[UOp, ...] = (inner[i0],)
    else: found = unflatten(flatten(inner[i0:i1], outer[i0:i1]), target[j0:j1])
    for k, i in zip(sources[j0:j1], found): out[k] = i
  return tuple(out)

def _reshape(u: UOp, p: GatedIndex) -> GatedIndex:
  return GatedIndex(reshape_index(p.index, u.shape, u.src[0].shape), p.valid)

def _permute(u: UOp, p: GatedIndex) -> GatedIndex:
  out = [ZERO] * len(u.arg)
  for k, axis in enumerate(u.arg): out[axis] = p.index[k]
  return GatedIndex(tuple(out), p.valid)

def _expand(u: UOp, p: GatedIndex) -> GatedIndex:
  return GatedIndex(tuple(ZERO if _is_one(n) else i for i, n in zip(p.index, u.src[0].shape)), p.valid)

def least(n: sint) -> int:
  """Return the smallest possible value of a size."""
  return n if isinstance(n, int) else int(n.vmin)

def _shrink(u: UOp, p: GatedIndex) -> GatedIndex:
  """Return the gated index in the source of a SHRINK.

  A condition is added if the bounds of Variables do not prove that the part lies inside the axis, though their values
  do.
  """
  out, valid = [], p.valid
  for i, (begin, end), n in zip(p.index, u.pairs, u.src[0].shape):
    if isinstance(begin, int) and begin == 0 and isinstance(end, int) and end <= least(n): out.append(i)
    else:
      there = (i + begin).simplify()
      if there.vmax >= least(n): valid = both(valid, unless_true((there < n).simplify()))
      if there.vmin < 0: valid = both(valid, _not_below(there, 0))
      out.append(there)
  return GatedIndex(tuple(out), valid)

def _flip(u: UOp, p: GatedIndex) -> GatedIndex:
  shape = u.src[0].shape
  return GatedIndex(tuple((to_index(shape[k]) - 1 - i).simplify() if k in u.arg else i for k, i in enumerate(p.index)),
                    p.valid)

def _pad(u: UOp, p: GatedIndex) -> GatedIndex:
  out, valid = [], p.valid
  for i, (before, after), n in zip(p.index, u.pairs, u.src[0].shape):
    if isinstance(before, int) and before == 0 and isinstance(after, int) and after == 0:
      out.append(i)
      continue
    if not (isinstance(before, int) and before == 0): valid = both(valid, _not_below(i, before))
    if not (isinstance(after, int) and after == 0):
      valid = both(valid, (i < (before + n if isinstance(before, int) else before + n)).simplify())
    out.append((i - before).simplify())
  return GatedIndex(tuple(out), None if valid is None else unless_true(valid))

def _not_below(i: UOp, limit: sint) -> UOp: return (i >= limit).simplify()

_RULES: dict[Ops, Callable[[UOp, GatedIndex], GatedIndex]] = {
  Ops.RESHAPE: _reshape, Ops.PERMUTE: _permute, Ops.EXPAND: _expand, Ops.SHRINK: _shrink, Ops.FLIP: _flip,
  Ops.PAD: _pad,
}

def move(u: UOp, gated: GatedIndex) -> GatedIndex:
  """Return the gated index in u's source of the element at `gated` in u, a movement operation."""
  return _RULES[u.op](u, gated)
