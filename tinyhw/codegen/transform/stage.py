"""Turn STAGE into a shared array, the stores that fill it, and reads of it.

Shared memory belongs to a workgroup; on a CPU it is scratch memory of a thread. STAGE(value, *ranges) becomes
AFTER(DEFINE_LOCAL, STORE(INDEX(local, position), value, *ranges)). An INDEX uses it as its buffer: "this array, after
that store". Elements are in row-major order of the stage's ranges.

The value may depend on a tile's ranges (UPCAST, UNROLL, VECTOR) that the stage does not close. These become axes of the
array, so that only loops stay free. They are inner axes, adjacent as a panel needs them. In a window (STAGE's arg is
(id, True)) copies become outer axes, so that its own rows stay whole.

Gates of loads inside the value are applied here, once. The loops that read the array need none.
"""
from __future__ import annotations
from collections.abc import Iterable
import math

from tinyhw import trace
from tinyhw.codegen.kernel.affine import make, number
from tinyhw.codegen.kernel.grid import ranges_of, values_of
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.ops import UOp

TILE = frozenset({AxisType.UPCAST, AxisType.UNROLL, AxisType.VECTOR})

def next_array(nodes: Iterable[UOp]) -> int:
  """Return the number of the next shared array of a kernel of these nodes."""
  return 1 + max((u.arg[0] for u in nodes if u.op in (Ops.STAGE, Ops.DEFINE_LOCAL)), default=-1)

def position_of(ranges: Iterable[UOp], values: dict[UOp, UOp] | None = None) -> UOp:
  """Return the row-major number of a point of ranges. values: of the ranges, where they are not the ranges."""
  position = number(0)
  for r in ranges: position = _append(position, r, r if values is None else values[r])
  return position

def _append(position: UOp, r: UOp, value: UOp) -> UOp:
  scaled = make(Ops.MUL, dtypes.weakint, (position, r.src[0]))
  return make(Ops.ADD, dtypes.weakint, (scaled, value))

def stage_values(sink: UOp) -> UOp:
  """Turn each STAGE into a shared array and the stores that fill it."""
  order = sink.toposort()
  if not any(u.op is Ops.STAGE for u in order): return sink
  fresh = 1 + max((u.arg[0] for u in order if u.op is Ops.RANGE), default=0)
  outer: dict[UOp, list[UOp]] = {}  # STAGE -> ranges of the tile that became outer axes, and
  inner: dict[UOp, list[UOp]] = {}  # those that became inner ones
  new: dict[UOp, UOp] = {}
  for u in order:
    src = tuple([new[s] for s in u.src])
    if u.op is Ops.STAGE:
      tile = [r for r in u.replace(src=src).ranges if r.arg[1] in TILE]
      outer[u] = [r for r in tile if r.arg[1] is not AxisType.VECTOR] if len(u.arg) > 1 else []
      inner[u] = [r for r in tile if r not in outer[u]]
      new[u] = _fill(u, u.replace(src=src), outer[u], inner[u], fresh)
      fresh += len(inner[u])
    elif u.op is Ops.INDEX and u.src[0].op is Ops.STAGE:
      position = src[1]
      if outer[u.src[0]]:
        own = number(size_of_stage(u.src[0]))
        position = make(Ops.ADD, dtypes.weakint, (make(Ops.MUL, dtypes.weakint, (position_of(outer[u.src[0]]), own)),
                                                  position))
      for r in inner[u.src[0]]: position = _append(position, r, r)
      new[u] = UOp(Ops.INDEX, u.dtype, (src[0], position))
    else: new[u] = u if src == u.src else UOp(u.op, u.dtype, src, u.arg, u.tag)
  trace.hand_on(new)
  return new[sink]

def values_from(load: UOp, body: UOp) -> list[UOp]:
  """Return the load, and values that depend on it alone, by loops that it depends on.

  They are a chain of values below a reduction's body, the load first. Their types must be types of memory: a loaded
  number that is an index somewhere is kept as it was loaded.
  """
  users: dict[UOp, list[UOp]] = {}
  for u in body.toposort():
    if u.op in GroupOp.Elementwise:
      for s in u.src: users.setdefault(s, []).append(u)
  found, u = [load], load
  known = set(load.ranges)
  while len(mine := users.get(u, [])) == 1 and known.issuperset(mine[0].ranges):
    u = mine[0]
    if u.dtype is dtypes.weakint: break
    if u.dtype is not dtypes.bool: found.append(u)
  return found

def panel_value(load: UOp, body: UOp) -> UOp:
  """Return what a panel has of a load: what the body of a reduction computes of it alone, such as its widening.

  It is the last one of `values_from` that has no other load.
  """
  own = load.toposort()
  return [u for u in values_from(load, body) if all(v.op is not Ops.LOAD or v in own for v in u.toposort())][-1]

def size_of_stage(stage: UOp) -> int:
  """Return the elements of a STAGE along its own ranges."""
  values = values_of(stage)
  if len(values) > 1: return int(values[1].vmax) + 1
  return math.prod(max(int(r.src[0].vmax), 0) for r in ranges_of(stage))

def _fill(old: UOp, stage: UOp, outer: list[UOp], inner: list[UOp], fresh: int) -> UOp:
  """Return the shared array of a STAGE after the store that fills it. old: the STAGE before its sources were replaced.

  outer, inner: ranges of the tile that became axes. fresh: the id of the first loop over inner ones.
  """
  changes = {r: UOp(Ops.RANGE, r.dtype, r.src, (fresh + k, AxisType.VECTOR)) for k, r in enumerate(inner)
             if r.arg[1] is AxisType.VECTOR}
  values, ranges = values_of(stage), ranges_of(stage)
  axes = [changes.get(r, r) for r in inner]
  size = math.prod([size_of_stage(old), *[int(r.src[0].vmax) for r in (*outer, *inner)]])
  if size > 1 << 40:
    raise CompileError(f"a STAGE of {size} elements does not fit in any memory; give its ranges ends that are bounded")
  local = UOp(Ops.DEFINE_LOCAL, stage.dtype, (), (stage.arg[0], size))
  position = position_of([*outer, *ranges])
  if len(values) > 1 or any(r.src[0].op is not Ops.CONST for r in ranges):
    own = make(Ops.MUL, dtypes.weakint, (position_of(outer), number(size_of_stage(old))))
    position = make(Ops.ADD, dtypes.weakint, (own, values[1] if len(values) > 1 else position_of([*ranges])))
  for r in axes: position = _append(position, r, r)
  store = UOp(Ops.STORE, dtypes.void, (UOp(Ops.INDEX, stage.dtype, (local, position)),
                                       values[0].substitute(changes), *outer, *ranges, *axes))
  return UOp(Ops.AFTER, stage.dtype, (local, store))
