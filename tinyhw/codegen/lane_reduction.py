"""Reductions over lanes: each lane of the workgroup folds a part, and then all of them fold the lanes' results, which they share in local memory.

A LOCAL opt on the range of a reduction makes its innermost iterations lanes, so that memory that lies along the sum is read side by side.
`fold_lanes` turns such a REDUCE into a STAGE of what the lanes have, over all lanes, and a REDUCE that reads it. Every lane then has the whole
result; what stores it does not run over lanes, and is done by the first of them (grid.py).
"""
from __future__ import annotations

from tinyhw import trace
from tinyhw.codegen.grid import ranges_of, values_of
from tinyhw.codegen.stage import position_of
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

def fold_lanes(sink: UOp) -> UOp:
  """sink without a REDUCE over LOCAL ranges."""
  order = sink.toposort()
  found = [u for u in order if u.op is Ops.REDUCE and any(r.arg[1] is AxisType.LOCAL for r in ranges_of(u))]
  if not found: return sink
  fresh = 1 + max(u.arg[0] for u in order if u.op is Ops.RANGE)
  stage = 1 + max((u.arg[0] for u in order if u.op is Ops.STAGE), default=-1)
  new: dict[UOp, UOp] = {}
  for u in order:
    src = tuple([new[s] for s in u.src])
    new[u] = v = u if src == u.src else UOp(u.op, u.dtype, src, u.arg, u.tag)
    lanes = [r for r in ranges_of(v) if r.arg[1] is AxisType.LOCAL] if u.op is Ops.REDUCE else []
    if not lanes: continue
    loops = [r for r in ranges_of(v) if r not in lanes]
    part = UOp(Ops.REDUCE, v.dtype, (values_of(v)[0], *loops), v.arg) if loops else values_of(v)[0]
    shared = UOp(Ops.STAGE, v.dtype, (part, *lanes), (stage,))
    again = [UOp(Ops.RANGE, r.dtype, r.src, (fresh + k, AxisType.REDUCE)) for k, r in enumerate(lanes)]
    whole = UOp(Ops.LOAD, v.dtype, (UOp(Ops.INDEX, v.dtype, (shared, position_of(again))),))
    new[u] = UOp(Ops.REDUCE, v.dtype, (whole, *again), v.arg)
    fresh, stage = fresh + len(again), stage + 1
  trace.hand_on(new)
  return new[sink]
