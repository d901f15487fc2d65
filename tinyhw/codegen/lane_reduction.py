"""Reductions over lanes: each lane of the workgroup folds a part, and then all of them fold the lanes' results, which they share in local memory.

A LOCAL opt on the range of a reduction makes its innermost iterations lanes, so that memory that lies along the sum is read side by side.
`fold_lanes` turns such a REDUCE into a STAGE of what the lanes have, over all lanes, and a REDUCE that reads it. Where lanes are many, each of them
first folds a group of results, and a second STAGE holds those: a hundred additions are then some twenty. Every lane then has the whole result.
A store that does not run over lanes is done by the first of them (grid.py). Several reductions, and a store over lanes, as a softmax has them, are
one after the other over the same lanes: their LOCAL ranges become one range.
"""
from __future__ import annotations
import math
from collections.abc import Iterable

from tinyhw import trace
from tinyhw.codegen.affine import make, number
from tinyhw.codegen.grid import ranges_of, values_of
from tinyhw.codegen.stage import position_of
from tinyhw.codegen.tiling import size_of, substitute
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

MOST_AT_ONCE = 64    # results of lanes that are folded without a loop
MANY_LANES = 32      # results from which a second stage costs less than folding all

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
  unrolled = n if n <= MOST_AT_ONCE else max(d for d in range(1, MOST_AT_ONCE + 1) if n % d == 0)
  return [(n // unrolled, AxisType.REDUCE)] * (n > unrolled) + [(unrolled, AxisType.UNROLL)]

def fold_lanes(sink: UOp) -> UOp:
  """sink without a REDUCE over LOCAL ranges."""
  order = sink.toposort()
  found = [u for u in order if u.op is Ops.REDUCE and lanes_of(u)]
  if not found: return sink
  sink = over_the_same_lanes(sink, found)
  order = sink.toposort()
  folder = Folder(order)
  new: dict[UOp, UOp] = {}
  for u in order:
    src = tuple([new[s] for s in u.src])
    new[u] = v = u if src == u.src else UOp(u.op, u.dtype, src, u.arg, u.tag)
    if u.op is Ops.REDUCE and lanes_of(v): new[u] = folder.shared(v)
  trace.hand_on(new)
  return new[sink]

class Folder:
  """Makes the ranges and stages of shared reductions. ranges, stages: the next numbers that nothing in the kernel has."""
  def __init__(self, order: Iterable[UOp]):
    self.ranges = 1 + max(u.arg[0] for u in order if u.op is Ops.RANGE)
    self.stages = 1 + max((u.arg[0] for u in order if u.op in (Ops.STAGE, Ops.DEFINE_LOCAL)), default=-1)

  def shared(self, u: UOp) -> UOp:
    """A REDUCE over lanes as what each lane has of it, and folds of that: of all, or by each lane of a group, and then of the groups."""
    lanes = lanes_of(u)
    loops = [r for r in ranges_of(u) if r not in lanes]
    part = UOp(Ops.REDUCE, u.dtype, (values_of(u)[0], *loops), u.arg) if loops else values_of(u)[0]
    results, members = math.prod(size_of(r) for r in lanes), 1
    if results > MANY_LANES: members = max(d for d in range(1, math.isqrt(results) + 1) if results % d == 0)
    if members == 1: return self.fold(u, self.stage(part, lanes), results, number(0))
    group = make(Ops.MOD, dtypes.weakint, (position_of(lanes), number(results // members)))
    own = self.fold(u, self.stage(part, lanes), members, make(Ops.MUL, dtypes.weakint, (group, number(members))))
    return self.fold(u, self.stage(own, lanes), results // members, number(0))

  def stage(self, value: UOp, lanes: list[UOp]) -> UOp:
    """What each lane has, where all can read it."""
    self.stages += 1
    return UOp(Ops.STAGE, value.dtype, (value, *lanes), (self.stages - 1,))

  def fold(self, u: UOp, stage: UOp, count: int, first: UOp) -> UOp:
    """So many elements of a stage, folded as u folds."""
    again = [UOp(Ops.RANGE, dtypes.weakint, (number(size),), (self.ranges + k, kind)) for k, (size, kind) in enumerate(loops_over(count))]
    self.ranges += len(again)
    at = make(Ops.ADD, dtypes.weakint, (first, position_of(again)))
    return UOp(Ops.REDUCE, u.dtype, (UOp(Ops.LOAD, u.dtype, (UOp(Ops.INDEX, u.dtype, (stage, at)),)), *again), u.arg)
