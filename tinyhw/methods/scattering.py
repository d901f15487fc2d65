"""Scatters of many values to many places.

A comparison of each index with each place costs indices x places. On CPUs, a loop writes the values to their places
(`Writes`; graph/places.py). Elsewhere the values are put in the order of their places (`Groups`), which makes those of
one place adjacent. A place finds its first and last value by a binary search:

    index        7  3  7  3  9        sorted   3  3  7  7  9
    value        a  b  c  d  e                 b  d  a  c  e       place 3: b and d, place 7: a and c, place 9: e

Reductions take four times as many values in each step, so n values need log4(n) kernels. Values are reduced in an order
that depends on positions alone: results are the same in each run. Cost: that of sorting the indices.
"""
from __future__ import annotations
import math
from typing import TYPE_CHECKING, Any

from tinyhw.dtype import ConstType
from tinyhw.engine.memory.writes import fresh_tag
from tinyhw.gradient import define_gradient
from tinyhw.methods.graph import graph
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
if TYPE_CHECKING: from tinyhw.tensor import Tensor

class Scatter:
  """What both ways share: the rules for gradients. Reductions have the gradients of PyTorch's.

  u: the tensor with the places. index: for each value, its place along axis `dim`; its other sizes are u's. Indices
  that are out of range have no place.
  """
  def taken(self, x: Tensor) -> Tensor:
    """Return the element of x, of u's shape, at each value's place, in the index's shape; 0 where it has none."""
    raise NotImplementedError

  def sums(self, x: Tensor, op: Ops = Ops.ADD, identity: ConstType = 0) -> Tensor:
    """Return the fold of the values of each place, without a gradient."""
    raise NotImplementedError

  def folded(self, src: Tensor, op: Ops, identity: ConstType) -> Tensor:
    """Return the fold of the values of each place, of u's shape."""
    make = type(src)._new     # a rule keeps no Tensor: what a captured function made is gone after it
    def backward(own: UOp, g: UOp) -> tuple[UOp]:
      found, values, grad = make(own.src[0]), make(own.src[1]), make(g)
      if op is Ops.ADD: return self.taken(grad).uop,
      if op is Ops.MUL: return self._of_product(values, grad).uop,
      hit = values.eq(self.taken(found))
      share = self.sums(hit.cast(values.dtype))
      return hit.where(self.taken(grad.div(share.maximum(1))), 0).uop,
    return self._with_rule(self.sums(src.detach(), op, identity), src, backward)

  def added(self, src: Tensor, mine: Tensor) -> Tensor:
    """Return mine, of u's shape, with the values of each place added."""
    return mine.add(self.folded(src, Ops.ADD, 0))

  def _of_product(self, values: Tensor, grad: Tensor) -> Tensor:
    """Return the gradient of factors: that of the product, times the product of the others."""
    zero = values.eq(0)
    zeros, rest = self.sums(zero.cast(values.dtype)), self.sums(zero.where(1, values), Ops.MUL, 1)
    others = self.taken(grad.mul(rest)).div(zero.where(1, values))
    return self.taken(zeros).eq(zero.cast(values.dtype)).where(others, 0)

  def _with_rule(self, found: Tensor, src: Tensor, rule: Any) -> Tensor:
    node = graph.node(Ops.DETACH, found.dtype, (found.uop, src.uop), None, found.shape, fresh_tag())
    define_gradient(node, (src.uop,), rule)
    return found._new(node)

class Writes(Scatter):
  """By loops that write to the places."""
  def __init__(self, u: Tensor, dim: int, index: UOp) -> None:
    from tinyhw.methods.graph.places import ScatterPoints  # 0.3 ms to load
    self.points, self.make = ScatterPoints(u.shape, dim, index), type(u)._new

  @property
  def count(self) -> Tensor:
    """The number of values of each place, of u's shape."""
    kind = graph.place_type(self.points.n)
    return self.make(self.points.folded(graph.full(self.points.given, kind, 1), Ops.ADD, 0))

  def sums(self, x: Tensor, op: Ops = Ops.ADD, identity: ConstType = 0) -> Tensor:
    return x._new(self.points.folded(x.uop, op, identity))

  def added(self, src: Tensor, mine: Tensor) -> Tensor:
    found = self.points.onto(graph.detach(mine.uop), graph.detach(src.uop), Ops.ADD)
    if found is None: return super().added(src, mine)
    node = graph.node(Ops.DETACH, found.dtype, (found, src.uop, mine.uop), None, found.shape, fresh_tag())
    define_gradient(node, (src.uop, mine.uop), lambda _, g: (self.taken(self.make(g)).uop, g))
    return self.make(node)

  def taken(self, x: Tensor) -> Tensor:
    place = x._new(self.points.each)
    return x.flatten().gather(0, place.flatten()).reshape(place.shape)

  def last(self, src: Tensor, others: Tensor) -> Tensor:
    """Return the last value of each place; where there is none, the element of `others`, of u's shape."""
    found = self.points.last(graph.detach(src.uop), graph.detach(others.uop))
    def backward(own: UOp, g: UOp) -> tuple[UOp, UOp]:
      shape = own.src[1].shape
      n, kind, grad = graph.size(shape), graph.place_type(graph.size(shape)), self.make(g)
      number = graph.reshape(graph.iota(n, kind, g.device), shape)
      last = self.make(self.points.last(number, graph.full(self.points.shape, kind, -1)))
      wins = self.taken(last).eq(self.make(number))
      return wins.where(self.taken(grad), 0).uop, last.lt(0).where(grad, 0).uop
    node = graph.node(Ops.DETACH, found.dtype, (found, src.uop, others.uop), None, found.shape, fresh_tag())
    define_gradient(node, (src.uop, others.uop), backward)
    return self.make(node)

class Groups(Scatter):
  """By sorting the values in the order of their places."""
  def __init__(self, u: Tensor, dim: int, index: UOp) -> None:
    shape: tuple[Any, ...] = u.shape
    self.shape, self.index = shape, u._new(index)
    self.n, self.places = math.prod([int(d) for d in index.shape]), math.prod(shape)
    m, rest = shape[dim], math.prod(shape[dim + 1:])
    kind = graph.place_type(self.places + 1)
    at = self.index.reshape(-1, index.shape[dim], rest).cast(kind)
    lead, last = (u._new(graph.positions(at.uop, axis, kind)) for axis in (0, 2))
    inside = at.ge(0).bitwise_and(at.lt(m))
    self.flat = inside.where(lead.mul(m).add(at).mul(rest).add(last), self.places).flatten().contiguous()
    self.order = self.flat.argsort().contiguous()
    self.keys = self.flat.gather(0, self.order).contiguous()
    place = u._new(graph.iota(self.places, kind, u.device))
    self.first, self.end = (self._below(place, right).contiguous() for right in (False, True))

  def _below(self, place: Tensor, right: bool) -> Tensor:
    """Return the number of sorted keys below each place, or (right) not above it."""
    first, left = place.const_like(0), place.const_like(self.n)
    for _ in range(self.n.bit_length()):
      half = left.rshift(1)
      key = self.keys.gather(0, first.add(half).minimum(self.n - 1))
      beyond = left.gt(0).bitwise_and(key.le(place) if right else key.lt(place))
      first, left = beyond.where(first.add(half).add(1), first), beyond.where(left.sub(half).sub(1), half)
    return first

  @property
  def count(self) -> Tensor:
    """The number of values of each place, of u's shape."""
    return self.end.sub(self.first).reshape(self.shape)

  def sums(self, src: Tensor, op: Ops = Ops.ADD, identity: ConstType = 0) -> Tensor:
    x = src.flatten().gather(0, self.order).contiguous()
    span = 1
    while span < self.n:
      parts = [x.uop]
      for k in range(1, min(4, -(-self.n // span))):
        same = self._later(self.keys, k * span, -1).eq(self.keys)
        parts.append(same.where(self._later(x, k * span, 0), identity).uop)
      total = parts[0]
      for part in parts[1:]: total = graph.binary(op, total, part)
      x, span = x._new(graph.contiguous(total)), 4 * span
    return self.end.gt(self.first).where(x.gather(0, self.first.minimum(self.n - 1)), identity).reshape(self.shape)

  def last(self, src: Tensor, others: Tensor) -> Tensor:
    """Return the last value of each place; where there is none, the element of `others`, of u's shape."""
    some = self.end.gt(self.first)
    winner = some.where(self.order.gather(0, self.end.sub(1).maximum(0)), -1).contiguous()
    found = src.detach().flatten().gather(0, winner).reshape(self.shape)
    def backward(_: UOp, g: UOp) -> tuple[UOp]:
      position = winner._new(graph.iota(self.n, winner.dtype, winner.device))
      wins = self.taken(winner).flatten().eq(position).reshape(src.shape)
      return wins.where(self.taken(src._new(g)), 0).uop,
    return some.reshape(self.shape).where(self._with_rule(found, src, backward), others)

  def _later(self, x: Tensor, shift: int, fill: int) -> Tensor:
    """Return the elements `shift` places later, and `fill` behind the end."""
    return x.shrink(((shift, self.n),)).pad(((0, shift),), value=fill)

  def taken(self, x: Tensor) -> Tensor:
    return x.flatten().gather(0, self.flat).reshape(self.index.shape)
