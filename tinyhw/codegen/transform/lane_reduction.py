"""Reductions over lanes: each lane of the workgroup folds a part, and then all lanes fold the results, which they
share.

A LOCAL opt on the range of a reduction turns its innermost iterations into lanes. Lanes then read memory that is
contiguous along the sum. `fold_lanes` turns such a REDUCE into a REDUCE by each lane and a fold of all results. Every
lane then has the whole result. A store that does not run over lanes is done by the first lane (also grid.py). Several
reductions and a store over lanes, as in a softmax, run one after the other over the same lanes: their LOCAL ranges
become one range.

Lanes share their results in shared memory: a STAGE of them, over all lanes, and a REDUCE that reads it. With many
lanes, each lane first folds a group of results, and a second STAGE holds the groups. A hundred additions become about
twenty.

Lanes of a wave may read each other's registers (`Capabilities.exchanges`). They fold in pairs: each with the lane at a
distance of half a wave, then a quarter, and so on. Five EXCHANGEs are enough for 32 lanes, without shared memory or a
barrier. EXCHANGEs wait for each other, though. So where several waves share a reduction, each wave leaves LEFT results
in adjacent lanes, which go through one STAGE. Smaller groups, of any power of two lanes, may take the place of a wave.

There may be other LOCAL ranges, of the output: for example, columns of a matrix that adjacent lanes sum, each lane a
part of the rows. A stage is over all lanes, and each lane folds the results of its own column.
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
# results of a wave that are staged, where there are several waves: one access loads them, and two more EXCHANGEs take
# longer
LEFT = 4

def lanes_of(u: UOp) -> list[UOp]:
  """Return the LOCAL ranges that a REDUCE or STORE closes."""
  return [r for r in ranges_of(u) if r.arg[1] is AxisType.LOCAL]

def over_the_same_lanes(sink: UOp, reduces: list[UOp]) -> UOp:
  """Return sink with one LOCAL range for all nodes that have one of equal size each and do not depend on another's."""
  groups = [lanes_of(u) for u in (*sink.src, *reduces)]
  main = next(group[0] for group in groups if group)
  if any(len(group) > 1 or group and size_of(group[0]) != size_of(main) for group in groups): return sink
  if any(r.arg[1] is AxisType.LOCAL for u in reduces for r in u.ranges): return sink
  changes = {group[0]: main for group in groups if group and group[0] is not main}
  return substitute(sink, changes) if changes else sink

def loops_over(n: int) -> list[tuple[int, AxisType]]:
  """Return the sizes and kinds of loops over n results."""
  unrolled = part_of(n, MOST_AT_ONCE)
  return [(n // unrolled, AxisType.REDUCE)] * (n > unrolled) + [(unrolled, AxisType.UNROLL)]

def fold_lanes(sink: UOp, wave: int = 1) -> UOp:
  """Return sink without a REDUCE over LOCAL ranges. wave: lanes that can exchange values."""
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
  """Return a STORE of a value that all lanes have, done by one of them."""
  values, own = values_of(store), ranges_of(store)
  free = [r for r in store.ranges if r.arg[1] is AxisType.LOCAL]
  if not free: return store
  gate = values[2] if len(values) > 2 else truth(True)
  for r in free: gate = make(Ops.AND, dtypes.bool, (gate, make(Ops.CMPEQ, dtypes.bool, (r, number(0)))))
  return UOp(Ops.STORE, store.dtype, (*values[:2], gate, *own, *free), store.arg)

def exchanged(op: Ops, value: UOp, lanes: int, left: int) -> UOp:
  """Fold value over groups of this many lanes, down to `left` results.

  The first lanes have the results, and so do all lanes at multiples of `left` from them. Lanes with the same result
  have the same bits, except for the sign of a zero that is a maximum.
  """
  while lanes > left:
    lanes //= 2
    value = UOp(op, value.dtype, (value, UOp(Ops.EXCHANGE, value.dtype, (value,), lanes)))
  return value

class Folder:
  """Makes the ranges and stages of shared reductions.

  `ranges`, `stages`: the next unused numbers. `wave`: lanes that can exchange values. It is 1 where the kernel has
  several LOCAL ranges, since neighbours along one of them may be far apart.
  """
  def __init__(self, order: Iterable[UOp], wave: int):
    order = list(order)
    self.local = sorted([u for u in order if u.op is Ops.RANGE and u.arg[1] is AxisType.LOCAL], key=lambda r: r.arg)
    self.wave = wave if len(self.local) == 1 else 1
    self.ranges = 1 + max(u.arg[0] for u in order if u.op is Ops.RANGE)
    self.stages = next_array(order)

  def shared(self, u: UOp) -> UOp:
    """Return a REDUCE over lanes as each lane's part and folds of the parts.

    The fold is of all parts, or by each lane of a group, and then of the groups.
    """
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
    steps, first_result = self.steps(lanes)
    if members == 1: return self.fold(u, self.stage(part), first_result, (results, steps))
    first = make(Ops.MUL, dtypes.weakint,
                 (make(Ops.MOD, dtypes.weakint, (position_of(lanes), number(results // members))),
                  number(members * steps)))
    own = self.fold(u, self.stage(part), make(Ops.ADD, dtypes.weakint, (first, first_result)), (members, steps))
    return self.fold(u, self.stage(own), first_result, (results // members, steps))

  def steps(self, lanes: list[UOp]) -> tuple[int, UOp]:
    """Return the distance between results of these lanes in a stage, and the position of the first one.

    The other lanes, which are the faster ones, have reductions of their own.
    """
    others = [r for r in self.local if r not in lanes]
    assert self.local == [*lanes, *others], "lanes of a reduction are the slower ones"
    return math.prod(size_of(r) for r in others), position_of(others)

  def stage(self, value: UOp) -> UOp:
    """Return a STAGE of each lane's value, which all lanes can read."""
    self.stages += 1
    return UOp(Ops.STAGE, value.dtype, (value, *self.local), (self.stages - 1,))

  def fold(self, u: UOp, stage: UOp, at: UOp, *counts: tuple[int, int]) -> UOp:
    """Fold elements of a stage as u folds. at: the first one. counts: how many, and the distance between them."""
    again: list[UOp] = []
    for count, step in counts:
      loops = [UOp(Ops.RANGE, dtypes.weakint, (number(size),), (self.ranges + k, kind))
               for k, (size, kind) in enumerate(loops_over(count))]
      at = make(Ops.ADD, dtypes.weakint, (at, make(Ops.MUL, dtypes.weakint, (position_of(loops), number(step)))))
      self.ranges += len(loops)
      again += loops
    return UOp(Ops.REDUCE, u.dtype, (UOp(Ops.LOAD, u.dtype, (UOp(Ops.INDEX, u.dtype, (stage, at)),)), *again), u.arg)
