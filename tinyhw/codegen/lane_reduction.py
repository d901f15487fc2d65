"""Reductions over lanes: each lane of the workgroup folds a part, and then all of them fold the lanes' results, which they share in local memory.

A LOCAL opt on the range of a reduction makes its innermost iterations lanes, so that memory that lies along the sum is read side by side.
`fold_lanes` turns such a REDUCE into a STAGE of what the lanes have, over all lanes, and a REDUCE that reads it. Every lane then has the whole
result. A store that does not run over lanes is done by the first of them (grid.py). Several reductions, and a store over lanes, as a softmax has
them, are one after the other over the same lanes: their LOCAL ranges become one range.
"""
from __future__ import annotations

import math

from tinyhw import trace
from tinyhw.codegen.affine import number
from tinyhw.codegen.grid import ranges_of, values_of
from tinyhw.codegen.stage import position_of
from tinyhw.codegen.tiling import size_of, substitute
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

MOST_AT_ONCE = 64   # results of lanes that are folded without a loop

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
  fresh = 1 + max(u.arg[0] for u in order if u.op is Ops.RANGE)
  stage = 1 + max((u.arg[0] for u in order if u.op in (Ops.STAGE, Ops.DEFINE_LOCAL)), default=-1)
  new: dict[UOp, UOp] = {}
  for u in order:
    src = tuple([new[s] for s in u.src])
    new[u] = v = u if src == u.src else UOp(u.op, u.dtype, src, u.arg, u.tag)
    lanes = lanes_of(v) if u.op is Ops.REDUCE else []
    if not lanes: continue
    loops = [r for r in ranges_of(v) if r not in lanes]
    part = UOp(Ops.REDUCE, v.dtype, (values_of(v)[0], *loops), v.arg) if loops else values_of(v)[0]
    shared = UOp(Ops.STAGE, v.dtype, (part, *lanes), (stage,))
    again = [UOp(Ops.RANGE, lanes[0].dtype, (number(size),), (fresh + k, kind))
             for k, (size, kind) in enumerate(loops_over(math.prod(size_of(r) for r in lanes)))]
    whole = UOp(Ops.LOAD, v.dtype, (UOp(Ops.INDEX, v.dtype, (shared, position_of(again))),))
    new[u] = UOp(Ops.REDUCE, v.dtype, (whole, *again), v.arg)
    fresh, stage = fresh + len(again), stage + 1
  trace.hand_on(new)
  return new[sink]
