"""Reductions over lanes: each lane of the workgroup folds a part, and then all of them fold the lanes' results, which
they share.

A LOCAL opt on the range of a reduction makes its innermost iterations lanes, so that memory that lies along the sum is
read side by side. `fold_lanes` turns such a REDUCE into one by each lane, and what folds the results of all. Every lane
then has the whole result. A store that does not run over lanes is done by the first of them (also grid.py). Several
reductions, and a store over lanes, as a softmax has them, are one after the other
over the same lanes: their LOCAL ranges become one range.

Lanes share their results in local memory: a STAGE of what they have, over all lanes, and a REDUCE that reads it. Where
lanes are many, each of them first folds a group of results, and a second STAGE holds those: a hundred additions are
then some twenty.

Lanes of a wave that can read each other's registers (`Capabilities.exchanges`) fold in pairs: each with the lane that
is half of the wave further, then a quarter, and so on, so five EXCHANGEs are enough for 32 lanes, without local memory
or a barrier. They wait for each other, though, so where lanes of several waves share a reduction each wave leaves LEFT
results, of lanes beside each other, which go through one STAGE. In the place of a wave there may be smaller groups, of
any power of two lanes.

There may be other LOCAL ranges, of the output: columns of a matrix, say, that lanes beside each other sum, each of them
a part of the rows. A stage is over all lanes, and each folds the results of its own column.
"""
from __future__ import annotations
import math
from collections.abc import Iterable

from tinyhw import trace
from tinyhw.codegen.kernel.affine import make, number, truth
from tinyhw.codegen.kernel.grid import ranges_of, values_of
from tinyhw.codegen.transform.fold import begun
from tinyhw.codegen.transform.stage import next_array, position_of
from tinyhw.codegen.transform.tiling import part_of, size_of, substitute
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

MOST_AT_ONCE = 64    # results of lanes that are folded without a loop
MANY_LANES = 32      # results from which a second stage costs less than folding all
LEFT = 4             # results of a wave that are staged, where there are several waves: one access loads them, and two
                     # EXCHANGEs more take longer

def lanes_of(u: UOp) -> list[UOp]:
  """The LOCAL ranges that a REDUCE or STORE closes."""
  return [r for r in ranges_of(u) if r.arg[1] is AxisType.LOCAL]

def over_the_same_lanes(sink: UOp, reduces: list[UOp]) -> UOp:
  """sink with one LOCAL range for all that have one of the same size each, and do not depend on another's."""
  groups = [lanes_of(u) for u in (*sink.src, *reduces)]
  main = next(group[0] for group in groups if group)
  if any(len(group) > 1 or group and size_of(group[0]) != size_of(main) for group in groups): return sink
  if any(r.arg[1] is AxisType.LOCAL for u in reduces for r in u.ranges): return sink
  changes = {group[0]: main for group in groups if group and group[0] is not main}
  return substitute(sink, changes) if changes else sink

def loops_over(n: int) -> list[tuple[int, AxisType]]:
  """Sizes and kinds of loops over n results."""
  unrolled = part_of(n, MOST_AT_ONCE)
  return [(n // unrolled, AxisType.REDUCE)] * (n > unrolled) + [(unrolled, AxisType.UNROLL)]

def fold_lanes(sink: UOp, wave: int = 1) -> UOp:
  """sink without a REDUCE over LOCAL ranges. wave: lanes that can exchange values."""
  order = sink.toposort()
  found = [u for u in order if u.op is Ops.REDUCE and lanes_of(u)]
  if not found: return sink
  sink = over_the_same_lanes(sink, found)
  order = sink.toposort()
  folder = Folder(order, wave)
  new: dict[UOp, UOp] = {}
  for u in order:
    src = tuple([new[s] for s in u.src])
    new[u] = v = u if src == u.src else UOp(u.op, u.dtype, src, u.arg, u.tag)
    if u.op is Ops.REDUCE and lanes_of(v): new[u] = folder.shared(v)
    elif u.op is Ops.STORE: new[u] = by_first_lane(v)
  trace.hand_on(new)
  return new[sink]

def by_first_lane(store: UOp) -> UOp:
  """A STORE of what each lane has: one of them does it."""
  values, own = values_of(store), ranges_of(store)
  free = [r for r in store.ranges if r.arg[1] is AxisType.LOCAL]
  if not free: return store
  gate = values[2] if len(values) > 2 else truth(True)
  for r in free: gate = make(Ops.AND, dtypes.bool, (gate, make(Ops.CMPEQ, dtypes.bool, (r, number(0)))))
  return UOp(Ops.STORE, store.dtype, (*values[:2], gate, *own, *free), store.arg)

def exchanged(op: Ops, value: UOp, lanes: int, left: int) -> UOp:
  """value folded over groups of so many lanes, down to `left` results, which the first lanes have, and all others that
  are so many further.

  Lanes that have the same result have the same bits, but for the sign of a zero that is a maximum."""
  while lanes > left:
    lanes //= 2
    value = UOp(op, value.dtype, (value, UOp(Ops.EXCHANGE, value.dtype, (value,), lanes)))
  return value

class Folder:
  """Makes the ranges and stages of shared reductions. ranges, stages: the next numbers that nothing in the kernel has.
  wave: lanes that can exchange values; 1 where the kernel has several LOCAL ranges, as then neighbours along one of
  them may be far apart."""
  def __init__(self, order: Iterable[UOp], wave: int):
    order = list(order)
    self.local = sorted([u for u in order if u.op is Ops.RANGE and u.arg[1] is AxisType.LOCAL], key=lambda r: r.arg)
    self.wave = wave if len(self.local) == 1 else 1
    self.ranges = 1 + max(u.arg[0] for u in order if u.op is Ops.RANGE)
    self.stages = next_array(order)

  def shared(self, u: UOp) -> UOp:
    """A REDUCE over lanes as what each lane has of it, and folds of that: of all, or by each lane of a group, and then
    of the groups."""
    lanes = lanes_of(u)
    loops = [r for r in ranges_of(u) if r not in lanes]
    part = UOp(Ops.REDUCE, u.dtype, (values_of(u)[0], *loops), u.arg) if loops else values_of(u)[0]
    results, members = math.prod(size_of(r) for r in lanes), 1
    group = math.gcd(results, self.wave)
    left = 1 if group == results else min(group, LEFT)
    if group > left and results // group * left <= MANY_LANES and lanes[0] in part.ranges:
      part = exchanged(u.arg, part if loops else begun(u.arg, part), group, left)
      return part if group == results else self.fold(u, self.stage(part), number(0), (results // group, group),
                                                     (left, 1))
    if results > MANY_LANES: members = max(d for d in range(1, math.isqrt(results) + 1) if results % d == 0)
    steps, beside = self.steps(lanes)
    if members == 1: return self.fold(u, self.stage(part), beside, (results, steps))
    first = make(Ops.MUL, dtypes.weakint,
                 (make(Ops.MOD, dtypes.weakint, (position_of(lanes), number(results // members))),
                  number(members * steps)))
    own = self.fold(u, self.stage(part), make(Ops.ADD, dtypes.weakint, (first, beside)), (members, steps))
    return self.fold(u, self.stage(own), beside, (results // members, steps))

  def steps(self, lanes: list[UOp]) -> tuple[int, UOp]:
    """How far results of these lanes are from each other in a stage, and the place of the first one: other lanes, which
    are the faster ones, have reductions of their own."""
    others = [r for r in self.local if r not in lanes]
    assert self.local == [*lanes, *others], "lanes of a reduction are the slower ones"
    return math.prod(size_of(r) for r in others), position_of(others)

  def stage(self, value: UOp) -> UOp:
    """What each lane has, where all can read it."""
    self.stages += 1
    return UOp(Ops.STAGE, value.dtype, (value, *self.local), (self.stages - 1,))

  def fold(self, u: UOp, stage: UOp, at: UOp, *counts: tuple[int, int]) -> UOp:
    """Elements of a stage, folded as u folds. at: the first one; counts: how many, and how far from one to the next."""
    again: list[UOp] = []
    for count, step in counts:
      loops = [UOp(Ops.RANGE, dtypes.weakint, (number(size),), (self.ranges + k, kind))
               for k, (size, kind) in enumerate(loops_over(count))]
      at = make(Ops.ADD, dtypes.weakint, (at, make(Ops.MUL, dtypes.weakint, (position_of(loops), number(step)))))
      self.ranges += len(loops)
      again += loops
    return UOp(Ops.REDUCE, u.dtype, (UOp(Ops.LOAD, u.dtype, (UOp(Ops.INDEX, u.dtype, (stage, at)),)), *again), u.arg)
