"""Batch an expression: from the graph of one item, make the graph of many items at once.

`batched(results, known)` walks the nodes between placeholders and results. `known` gives for each placeholder a node
with one more axis in front: the items. A node that depends on a placeholder becomes the same operation with that axis;
a node that does not is repeated where it meets one that does. Nothing is computed. Cost: linear in the graph.

A node with a gradient rule of its own keeps it: the rule is called for one item, and what it returns is batched. Writes
to memory, and operations between several devices, are refused.
"""
from __future__ import annotations
from collections.abc import Callable, Sequence

from tinyhw.engine.memory.writes import fresh_tag, unique
from tinyhw.errors import FunctionError
from tinyhw.gradient import Custom, custom_of, define_gradient
from tinyhw.methods.graph import graph
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

def placeholder(shape: graph.Shape, like: UOp) -> UOp:
  """Return a node that stands for one item: it equals no other, and is never computed."""
  return unique(graph.full(shape, like.dtype, 0, like.device if isinstance(like.device, str) else None))

def batched(results: Sequence[UOp], known: dict[UOp, UOp], count: int) -> list[UOp]:
  """Return each result for `count` items, along a new first axis. known: that of each placeholder.

  Raises FunctionError for an operation that has no form for many items.
  """
  many = Items(known, count)
  many.walk(results)
  return [many.lifted(u) for u in results]

class Items:
  """The nodes for many items, by those for one."""
  def __init__(self, known: dict[UOp, UOp], count: int):
    self.known, self.count = dict(known), count

  def walk(self, results: Sequence[UOp]) -> None:
    """Make the nodes on which results depend."""
    for u in UOp.sink(*results).toposort(lambda u: u not in self.known):
      if u in self.known or u.op is Ops.SINK or not any(s in self.known for s in u.src): continue
      self.known[u] = self.made(u)
      custom = custom_of(u)
      if custom is not None: self.with_rule(u, custom)

  def lifted(self, u: UOp) -> UOp:
    """Return a node for many items, which all have the same value if the node depends on no placeholder."""
    found = self.known.get(u)
    return graph.broadcast(u, (self.count, *u.shape)) if found is None else found

  def made(self, u: UOp) -> UOp:
    """Return the operation of u on many items."""
    make = _FORMS.get(u.op)
    if make is None:
      raise FunctionError(f"{u.op.name} of {u.dtype} has no form for many items at once; call the function in a loop")
    return make(self, u)

  def with_rule(self, u: UOp, custom: Custom) -> None:
    """Give the node for many items the gradient rule of the node for one."""
    if not any(s in self.known for s in custom.sources): return
    ends = set(custom.sources)
    inner = UOp.sink(u).toposort(lambda v: v not in ends)
    between = {v: self.known[v] for v in (*inner, *ends) if v in self.known and v is not u}
    count, sources = self.count, tuple([self.lifted(s) for s in custom.sources])
    def rule(own: UOp, g: UOp) -> tuple[UOp | None, ...]:
      one = placeholder(u.shape, u)
      found = custom.rule(u, one)
      wanted = [d for d in found if d is not None]
      parts = iter(batched(wanted, {**between, u: own, one: g}, count))
      return tuple([None if d is None else next(parts) for d in found])
    define_gradient(self.known[u], sources, rule)

# ***** forms *****

def _elementwise(items: Items, u: UOp) -> UOp:
  return UOp(u.op, u.dtype, tuple([items.lifted(s) for s in u.src]), u.arg)

def _again(items: Items, u: UOp) -> UOp:
  src = (items.lifted(u.src[0]), *[items.lifted(s) for s in u.src[1:]])
  return UOp(u.op, u.dtype, src, u.arg, None if u.tag is None else fresh_tag())

def _reduce(items: Items, u: UOp) -> UOp:
  op, axes = u.arg
  return graph.reduce(items.lifted(u.src[0]), op, tuple([a + 1 for a in axes]))

def _sized(items: Items, u: UOp) -> UOp:
  make = graph.reshape if u.op is Ops.RESHAPE else graph.expand
  return make(items.lifted(u.src[0]), (items.count, *u.shape))

def _permute(items: Items, u: UOp) -> UOp:
  return graph.permute(items.lifted(u.src[0]), (0, *[a + 1 for a in u.arg]))

def _flip(items: Items, u: UOp) -> UOp:
  return graph.flip(items.lifted(u.src[0]), tuple([a + 1 for a in u.arg]))

def _padded(items: Items, u: UOp) -> UOp:
  ends = tuple([x for pair in ((0, 0), *u.pairs) for x in pair])
  return UOp(Ops.PAD, u.dtype, (items.lifted(u.src[0]), *graph.dims(ends)), None, u.tag)

def _shrunk(items: Items, u: UOp) -> UOp:
  return graph.shrink(items.lifted(u.src[0]), [(0, items.count), *u.pairs])

def _gather(items: Items, u: UOp) -> UOp:
  x, index = (items.lifted(s) for s in u.src)
  return graph.node(Ops.GATHER, u.dtype, (x, index), u.arg + 1, index.shape)

def _scatter(items: Items, u: UOp) -> UOp:
  base, index, value = (items.lifted(s) for s in u.src)
  size = int(graph.size(u.src[0].shape))
  index = graph.cast(index, graph.place_type(size * items.count, least=index.dtype))
  inside = graph.binary(Ops.AND, graph.compare(Ops.CMPLT, graph.like(index, -1), index),
                        graph.compare(Ops.CMPLT, index, graph.like(index, size)))
  moved = graph.add(index, graph.mul(graph.positions(index, 0, index.dtype), graph.like(index, size)))
  index = graph.where(inside, moved, graph.like(index, -1))
  return UOp(Ops.SCATTER, u.dtype, (base, index, value), u.arg, None if u.tag is None else fresh_tag())

def _copy(items: Items, u: UOp) -> UOp:
  device = u.src[1].arg
  if u.arg is not None or not isinstance(device, str):
    raise FunctionError("a tensor on several devices has no form for many items at once")
  return graph.copy(items.lifted(u.src[0]), device)

def _after(items: Items, u: UOp) -> UOp:
  return graph.after(items.lifted(u.src[0]), *[items.known.get(s, s) for s in u.src[1:]])

_FORMS: dict[Ops, Callable[[Items, UOp], UOp]] = {
  **dict.fromkeys(GroupOp.Elementwise, _elementwise),
  **dict.fromkeys((Ops.CONTIGUOUS, Ops.CONTIGUOUS_BACKWARD, Ops.DETACH), _again),
  Ops.REDUCE_AXIS: _reduce, Ops.RESHAPE: _sized, Ops.EXPAND: _sized, Ops.PERMUTE: _permute, Ops.FLIP: _flip,
  Ops.PAD: _padded, Ops.SHRINK: _shrunk, Ops.GATHER: _gather, Ops.SCATTER: _scatter, Ops.COPY: _copy,
  Ops.AFTER: _after}
