"""Fill local memory by copies that go on by themselves, several iterations ahead, for targets that have such copies (`Capabilities.copies`).

A loop that fills local memory with what lies in memory as it is, then waits for all lanes, then computes, becomes

  the first stages - 1 fillings are started, each a group
  for each iteration: wait for the oldest group; all lanes meet; start the filling of the iteration stages - 1 further on; compute

with `stages` copies of each array, of which iteration i has number i % stages. One meeting of all lanes is enough: it says that everybody's part of
the filling is there, and that everybody has done with the array that is filled next. Behind the last iteration nothing is under way: copies of
iterations that there are not have a gate, their groups are empty. Loops that compute what they store, or store elements too small to be copied, are
pipeline.py's.

Where the matrix unit reads the arrays itself (PANEL), products of an iteration may go on in the next one. So the copies start an iteration later than
they could, into the array of the iteration before the last one, whose products are waited for together with the oldest group.

Input and output are the uops of a Program, in order; they compute the same. Cost: a few walks for each such loop.
"""
from __future__ import annotations
from typing import NamedTuple

from tinyhw import trace
from tinyhw.codegen.matrix_tile import WORKGROUPS
from tinyhw.codegen.pipeline import Body, Copier, bodies_of, without_unused
from tinyhw.dtype import dtypes
from tinyhw.machine.target import Capabilities
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

STAGES = (4, 2)  # numbers of arrays, best first: powers of two, so that an iteration's is a mask of its number

class Fill(NamedTuple):
  """A STORE of a body: its place in local memory, the place in memory that it is loaded from, and where it is done, if not by all lanes."""
  store: UOp
  goal: UOp
  place: UOp
  gate: UOp | None

  @property
  def sources(self) -> list[UOp]: return [self.goal.src[1], self.place, *([self.gate] if self.gate is not None else [])]

def fetch(uops: list[UOp], written: frozenset[int], capabilities: Capabilities) -> list[UOp]:
  """The uops with the fillings of local memory done ahead. written: slots of buffers."""
  if not capabilities.copies: return uops
  for body in reversed(bodies_of(uops)):   # from the last one on, so that positions stay true
    fills = fills_of(uops, body, written, capabilities.copies)
    late = in_panels(uops, fills)
    stages = stages_of(uops[body.start], fills, capabilities.local_bytes, 1 if late else WORKGROUPS)
    if stages: uops = without_unused(ahead(uops, body, fills, stages, late))
  return uops

def fills_of(uops: list[UOp], body: Body, written: frozenset[int], sizes: tuple[int, ...]) -> list[Fill]:
  """What fills the arrays of a body, if all of it can be copied and nothing else writes to these arrays."""
  counter, inside = uops[body.start], uops[body.start + 1:body.barrier]
  fills = [u for u in inside if u.op is Ops.STORE]
  arrays = {u.src[0].src[0] for u in fills}
  if any(u.op is Ops.STORE and u.src[0].src[0] in arrays for at, u in enumerate(uops) if not body.start < at < body.barrier): return []
  found: list[Fill] = []
  changing = {counter, *inside}
  for u in fills:
    load = u.src[1]
    if load.op is not Ops.LOAD or len(load.src) > 1 or load.dtype.itemsize not in sizes or load.src[0].src[0].op is not Ops.PARAM: return []
    if load.src[0].src[0].arg[0] in written or u.src[0].src[0].op is not Ops.DEFINE_LOCAL: return []
    fill = Fill(u, u.src[0], load.src[0], u.src[2] if len(u.src) > 2 else None)
    if any(v in changing and v.op in (Ops.LOAD, Ops.ACC) for s in fill.sources for v in s.toposort()): return []
    found.append(fill)
  return found

def in_panels(uops: list[UOp], fills: list[Fill]) -> bool:
  """Does the matrix unit read the arrays itself?"""
  arrays = {fill.goal.src[0] for fill in fills}
  return any(u.op is Ops.PANEL and u.src[0].src[0] in arrays for u in uops)

def stages_of(counter: UOp, fills: list[Fill], local_bytes: int, workgroups: int) -> int:
  """How many arrays of each kind fit, of no more iterations than there are; 0: none. workgroups: that should fit together."""
  arrays = {fill.goal.src[0] for fill in fills}
  size = sum(u.arg[1] * u.dtype.itemsize for u in arrays)
  if not fills or counter.src[0].op is not Ops.CONST: return 0
  return next((n for n in STAGES if n <= counter.src[0].arg and n * size * workgroups <= local_bytes), 0)

def ahead(uops: list[UOp], body: Body, fills: list[Fill], stages: int, late: bool) -> list[UOp]:
  """The uops with one body changed. late: products of the iteration before may go on, if there are arrays enough."""
  going = int(late and stages > 2)
  distance = stages - 1 - going   # iterations by which copies start ahead
  counter, inside = uops[body.start], uops[body.start + 1:body.barrier]
  arrays = {u: UOp(Ops.DEFINE_LOCAL, u.dtype, (), (u.arg[0], u.arg[1] * stages)) for u in (fill.goal.src[0] for fill in fills)}
  needed = {u for fill in fills for s in fill.sources for u in s.toposort()}
  nodes = [u for u in inside if u in needed]
  copier = Copier(uops, body)
  before: list[UOp] = [UOp(Ops.BARRIER)] if in_loop(uops[:body.start]) else []
  for k in range(distance):
    number = copier.put(UOp.const(counter.dtype, k))
    before += filled(copier, nodes, counter, number, fills, arrays, UOp.const(dtypes.int32, k), None)
  copier.visible.update((counter, *inside))
  later = copier.put(UOp(Ops.ADD, counter.dtype, (counter, copier.put(UOp.const(counter.dtype, distance)))))
  more = copier.put(UOp(Ops.CMPLT, dtypes.bool, (later, counter.src[0])))
  inner = filled(copier, nodes, counter, later, fills, arrays, slot_of(copier, later, stages), more)
  slot = slot_of(copier, counter, stages)
  offsets = {u: times(copier, slot, u.arg[1]) for u in arrays}
  start = [UOp(Ops.WAIT, dtypes.void, (), (distance - 1, going) if late else distance - 1), UOp(Ops.BARRIER)]
  inner += copier.made
  copier.made = []
  rest = moved_reads(copier, uops[body.barrier + 1:], arrays, offsets)
  gone = {fill.store for fill in fills}
  kept = [u for u in inside if u not in gone and u.op is not Ops.BARRIER]
  first = [arrays.get(u, u) for u in uops[:body.start]]
  return [*first, *before, counter, *start, *kept, *inner, *rest]

def in_loop(uops: list[UOp]) -> bool:
  """Is a loop open behind these uops, other than the grid's and the lanes'?"""
  closed = {u.src[0] for u in uops if u.op is Ops.END}
  return any(u.op is Ops.RANGE and u not in closed and u.arg[1] not in (AxisType.GLOBAL, AxisType.LOCAL) for u in uops)

def slot_of(copier: Copier, number: UOp, stages: int) -> UOp:
  """The array of an iteration, as int32."""
  if number.dtype is not dtypes.int32: number = copier.put(UOp(Ops.CAST, dtypes.int32, (number,)))
  return copier.put(UOp(Ops.AND, dtypes.int32, (number, copier.put(UOp.const(dtypes.int32, stages - 1)))))

def times(copier: Copier, slot: UOp, size: int) -> UOp:
  """Where the array of a slot begins."""
  if slot.op is Ops.CONST: return copier.put(UOp.const(dtypes.int32, slot.arg * size))
  return copier.put(UOp(Ops.MUL, dtypes.int32, (slot, copier.put(UOp.const(dtypes.int32, size)))))

def filled(copier: Copier, nodes: list[UOp], counter: UOp, number: UOp, fills: list[Fill], arrays: dict[UOp, UOp], slot: UOp,
           condition: UOp | None) -> list[UOp]:
  """The copies of iteration `number` to the arrays of a slot, done where a condition holds, as a group. What they need is made by the copier."""
  wanted = [s for fill in fills for s in fill.sources]
  made = iter(copier.copy(nodes, counter, number, wanted))
  found: list[UOp] = []
  for fill in fills:
    position, place, gate = next(made), next(made), next(made) if fill.gate is not None else None
    local = arrays[fill.goal.src[0]]
    at = shifted(copier, position, times(copier, slot, fill.goal.src[0].arg[1]))
    goal = copier.put(UOp(Ops.INDEX, fill.goal.dtype, (local, at)))
    gates = [g for g in (gate, condition) if g is not None]
    if len(gates) == 2: gates = [copier.put(UOp(Ops.AND, dtypes.bool, tuple(gates)))]
    started = UOp(Ops.FETCH, dtypes.void, (goal, place, *gates), fill.store.src[1].dtype.count)
    trace.inherit(started, fill.store)
    copier.made.append(started)
  copier.made.append(UOp(Ops.COMMIT))
  found, copier.made = copier.made, []
  return found

def shifted(copier: Copier, position: UOp, offset: UOp) -> UOp:
  """An index with an offset added; its constant stays last."""
  if offset.op is Ops.CONST and offset.arg == 0: return position
  if position.dtype is not offset.dtype: offset = copier.put(UOp(Ops.CAST, position.dtype, (offset,)))
  if position.op is Ops.ADD and position.src[1].op is Ops.CONST:
    return copier.put(UOp(Ops.ADD, position.dtype, (copier.put(UOp(Ops.ADD, position.dtype, (position.src[0], offset))), position.src[1])))
  return copier.put(UOp(Ops.ADD, position.dtype, (position, offset)))

def moved_reads(copier: Copier, uops: list[UOp], arrays: dict[UOp, UOp], offsets: dict[UOp, UOp]) -> list[UOp]:
  """The uops behind the filling, reading from the arrays of their iteration."""
  new: dict[UOp, UOp] = {}
  found: list[UOp] = []
  scopes: list[set[UOp]] = []   # what can be used around each open loop
  for u in uops:
    if u.op in (Ops.RANGE, Ops.IF): scopes.append(set(copier.visible))
    elif u.op in (Ops.END, Ops.ENDIF) and scopes: copier.visible = scopes.pop()
    src = tuple([new.get(s, s) for s in u.src])
    if u.op is Ops.INDEX and u.src[0] in arrays:
      src = arrays[u.src[0]], shifted(copier, src[1], offsets[u.src[0]])
      found += copier.made
      copier.made = []
    new[u] = u if src == u.src else UOp(u.op, u.dtype, src, u.arg, u.tag)
    if new[u] is not u: trace.inherit(new[u], u)
    found.append(new[u])
  return found
