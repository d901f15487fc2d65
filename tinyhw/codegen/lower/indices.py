"""Give index expressions a machine integer type, and an order of additions that suits loops and addressing modes.

Input: a kernel whose integers without a width (weakint) are index expressions over loops. Output: int32 where bounds
prove that it is enough, else int64. Every node is computed in a type that holds its value.

A sum is added from the outermost loop's terms to the innermost one's. Its constant is last: `((outer + inner) + 3)`. So
values that an outer loop determines are computed there, once. Unrolled copies differ in the constant. They share the
rest and put the constant into the addressing mode. Terms of one loop are added to each other first.
"""
from __future__ import annotations

import functools

from tinyhw import trace
from tinyhw.codegen.kernel.affine import linear
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

weakint, int32, int64 = dtypes.weakint, dtypes.int32, dtypes.int64
_LOW, _HIGH = -(1 << 31), (1 << 31) - 1

def fits(low: int, high: int) -> bool:
  """Does int32 hold low..high?"""
  return low >= _LOW and high <= _HIGH

def const(dtype: DType, value: int) -> UOp: return UOp(Ops.CONST, dtype, (), value)

def convert(x: UOp, dtype: DType) -> UOp:
  """Return an integer, scalar or vector, in another scalar type that holds it. Constants are converted at once."""
  target = dtype.vec(x.dtype.count)
  if x.dtype is target: return x
  if x.op is Ops.CONST: return UOp(Ops.CONST, target, (), int(x.arg))
  if x.op is Ops.BROADCAST or (x.op is Ops.VECTORIZE and all(s.op is Ops.CONST for s in x.src)):
    return UOp(x.op, target, tuple([convert(s, dtype) for s in x.src]))
  return UOp(Ops.CAST, target, (x,))

def join(operands: list[UOp], wide: bool) -> list[UOp]:
  """Return operands in one type: int64 if asked for or if one of them is int64."""
  if not wide: wide = any(x.dtype.scalar() is int64 for x in operands)
  return [convert(x, int64 if wide else int32) for x in operands]

def added(a: UOp, b: UOp, op: Ops = Ops.ADD) -> UOp:
  low, high = (a.vmin + b.vmin, a.vmax + b.vmax) if op is Ops.ADD else (a.vmin - b.vmax, a.vmax - b.vmin)
  a, b = join([a, b], not fits(int(low), int(high)))
  return UOp(op, a.dtype, (a, b))

def multiplied(a: UOp, factor: int) -> UOp:
  if factor == 1: return a
  ends = int(a.vmin) * factor, int(a.vmax) * factor
  if not fits(min(ends), max(ends)): a = convert(a, int64)
  return UOp(Ops.MUL, a.dtype, (a, const(a.dtype, factor)))

def depth(u: UOp) -> int:
  """Return the id of the innermost loop that u depends on; loops have ids in order.

  GLOBAL is -1. A node that depends on no loop is -2.
  """
  ranges = u.ranges
  return max([r.arg[0] for r in ranges]) if ranges else -2

class Indices:
  """The state of the walk: `new[u]` for all nodes; index expressions are added at their first use."""
  def __init__(self, lanes: bool) -> None:
    self.new: dict[UOp, UOp] = {}
    self.lanes = lanes

  def get(self, u: UOp) -> UOp:
    """Return the new node of u, a source of a node that the walk has reached."""
    found = self.new.get(u)
    if found is None:
      found = self.new[u] = self.sum_of(u) if u.op in _LINEAR and u.dtype is weakint else self.operation(u)
    return found

  def sum_of(self, u: UOp) -> UOp:
    """Build a sum loop by loop. Most sums are a shared node in normal form and a constant."""
    if u.op is Ops.ADD and u.src[1].op is Ops.CONST: return added(self.get(u.src[0]), self.get(u.src[1]))
    terms, constant = linear(u)
    levels: dict[int, list[tuple[UOp, int]]] = {}
    for term, factor in terms.items():
      if term is u: return self.operation(u)
      levels.setdefault(depth(term), []).append((term, factor))
    total: UOp | None = None
    for level in sorted(levels):
      part: UOp | None = None
      sign = -1 if total is not None and levels[level][0][1] < 0 else 1
      for term, factor in levels[level]: part = self._plus(part, self.get(term), factor * sign)
      assert part is not None
      total = part if total is None else added(total, part, Ops.ADD if sign > 0 else Ops.SUB)
    if total is None: return const(int32 if fits(constant, constant) else int64, constant)
    return added(total, const(int32 if fits(constant, constant) else int64, constant)) if constant else total

  def _plus(self, total: UOp | None, term: UOp, factor: int) -> UOp:
    if total is None: return multiplied(term, factor)
    if factor < 0: return added(total, multiplied(term, -factor), Ops.SUB)
    return added(total, multiplied(term, factor))

  def operation(self, u: UOp) -> UOp:
    """Build an index operation other than a sum, in the type that its bounds and operands need."""
    op, lanes = u.op, u.dtype.count
    wide = not fits(int(u.vmin), int(u.vmax))
    if op is Ops.CONST or op is Ops.DEFINE_VAR: return UOp(op, (int64 if wide else int32).vec(lanes), (), u.arg)
    if op is Ops.RANGE:
      end = self.get(u.src[0])
      return UOp(op, end.dtype, (end,), u.arg)
    if op is Ops.CAST: return convert(self.get(u.src[0]), int64 if wide else int32)
    if op is Ops.WHERE:
      pair = join([self.get(s) for s in u.src[1:]], wide)
      return UOp(op, pair[0].dtype, (self.get(u.src[0]), *pair))
    if op is Ops.BROADCAST:
      x = self.get(u.src[0])
      return UOp(op, x.dtype.vec(lanes), (x,))
    values = [s for s in u.src if s.op is not Ops.RANGE or op is not Ops.REDUCE]
    src = join([self.get(s) for s in values], wide)
    scalar = src[0].dtype.scalar()
    return UOp(op, scalar.vec(lanes), (*src, *[self.get(s) for s in u.src[len(values):]]), u.arg)

  def visit(self, u: UOp) -> None:
    """Build a node that is not an index expression. Index expressions below it are built on the way."""
    within = self.within(u) if self.lanes and u.op is Ops.AND and u.dtype is dtypes.bool else None
    if within is not None:
      self.new[u] = within
      return
    src = [self.get(s) for s in u.src]
    if u.op in GroupOp.Comparison and u.src[0].dtype.scalar() is weakint: src = join(src, False)
    elif u.op is Ops.CAST and src[0].dtype is u.dtype:
      self.new[u] = src[0]
      return
    new = tuple(src)
    self.new[u] = u if new == u.src else UOp(u.op, u.dtype, new, u.arg, u.tag)

  def within(self, u: UOp) -> UOp | None:
    """Return a conjunction with each pair of constant bounds of an index as one comparison; None if there is no pair.

    The comparison is of the distance from the lower bound, as an unsigned number. A gate then takes fewer instructions,
    and fewer predicates at a time.
    """
    parts = list(dict.fromkeys(u.split(Ops.AND)))
    lower, upper = ({p.src[1 - at]: p for p in parts if is_bound(p, at)} for at in (0, 1))
    found: dict[UOp, UOp | None] = {}
    for index in lower:
      if index not in upper: continue
      first, end = int(lower[index].src[0].arg) + 1, int(upper[index].src[1].arg)
      distance = added(self.get(index), const(int32, -first)) if first else self.get(index)
      if distance.dtype is not int32 or end <= first: continue
      found[lower[index]] = None
      found[upper[index]] = UOp(Ops.CMPLT, dtypes.bool,
                                (UOp(Ops.CAST, dtypes.uint32, (distance,)), const(dtypes.uint32, end - first)))
    if not found: return None
    made = [new for p in parts if (new := found.get(p, self.new[p])) is not None]
    return functools.reduce(lambda one, other: UOp(Ops.AND, dtypes.bool, (one, other)), made)

_LINEAR = frozenset({Ops.ADD, Ops.SUB, Ops.MUL, Ops.NEG, Ops.CONST})

def is_bound(u: UOp, at: int) -> bool:
  """Is this a comparison of an index with a constant, which is its source at 0 or 1?"""
  return (u.op is Ops.CMPLT and u.src[at].op is Ops.CONST and u.src[0].dtype is weakint
          and fits(*[int(u.src[at].arg)] * 2))

def lower_indices(sink: UOp, lanes: bool = False) -> UOp:
  """Give every index int32 or int64, by its bounds. lanes: whether they are threads."""
  walk = Indices(lanes)
  inherit = trace.inherit if trace.follows() else None
  for u in sink.toposort():
    if u.dtype.scalar() is weakint: continue
    walk.visit(u)
    if inherit is not None and walk.new[u] is not u: inherit(walk.new[u], u)
  return walk.new[sink]
