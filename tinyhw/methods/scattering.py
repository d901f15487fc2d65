"""Scatters of many values to many places, by sorting.

A comparison of each index with each place costs indices x places. Here the values are put in the order of their places,
which makes those of one place adjacent. A place finds its first and last value by a binary search:

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

class Groups:
  """The values of a scatter along an axis, by their places.

  u: the tensor with the places. index: for each value, its place along axis `dim`; its other sizes are u's. Indices
  that are out of range have no place.
  """
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

  def folded(self, src: Tensor, op: Ops, identity: ConstType) -> Tensor:
    """Return the reduction of the values of each place, of u's shape. The gradient of a sum reaches src."""
    x = src.detach().flatten().gather(0, self.order).contiguous()
    span = 1
    while span < self.n:
      parts = [x.uop]
      for k in range(1, min(4, -(-self.n // span))):
        same = self._later(self.keys, k * span, -1).eq(self.keys)
        parts.append(same.where(self._later(x, k * span, 0), identity).uop)
      total = parts[0]
      for part in parts[1:]: total = graph.binary(op, total, part)
      x, span = x._new(graph.contiguous(total)), 4 * span
    found = self.end.gt(self.first).where(x.gather(0, self.first.minimum(self.n - 1)), identity).reshape(self.shape)
    def backward(_: UOp, g: UOp) -> tuple[UOp]: return self._taken(src._new(g)).reshape(src.shape).uop,
    return self._with_rule(found, src, backward)

  def last(self, src: Tensor, others: Tensor) -> Tensor:
    """Return the last value of each place; where there is none, the element of `others`, of u's shape."""
    some = self.end.gt(self.first)
    winner = some.where(self.order.gather(0, self.end.sub(1).maximum(0)), -1).contiguous()
    found = src.detach().flatten().gather(0, winner).reshape(self.shape)
    def backward(_: UOp, g: UOp) -> tuple[UOp]:
      position = winner._new(graph.iota(self.n, winner.dtype, winner.device))
      wins = self._taken(winner).eq(position)
      return wins.where(self._taken(src._new(g)), 0).reshape(src.shape).uop,
    return some.reshape(self.shape).where(self._with_rule(found, src, backward), others)

  def _later(self, x: Tensor, shift: int, fill: int) -> Tensor:
    """Return the elements `shift` places later, and `fill` behind the end."""
    return x.shrink(((shift, self.n),)).pad(((0, shift),), value=fill)

  def _taken(self, x: Tensor) -> Tensor:
    """Return the element of x, of u's shape, at each value's place; 0 where it has none."""
    return x.flatten().gather(0, self.flat)

  def _with_rule(self, found: Tensor, src: Tensor, rule: Any) -> Tensor:
    node = graph.node(Ops.DETACH, found.dtype, (found.uop, src.uop), None, found.shape, fresh_tag())
    define_gradient(node, (src.uop,), rule)
    return found._new(node)
