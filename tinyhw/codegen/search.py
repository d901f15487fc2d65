"""Beam search over Opts (BEAM=n), from the heuristic's choice.

Change one thing at a time, and keep the n fastest candidates, until a round finds nothing better. The cost of a
candidate comes from `measure`; this file runs nothing. A candidate that does not compile or does not fit costs
infinity. The search is deterministic except for the measurements: candidates come in a fixed order, and of two with
equal cost the earlier one stays. Cost: rounds x n x the neighbours of a choice, about ten for each range.
"""
from __future__ import annotations
from collections.abc import Callable, Iterator
import math

from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.optimize import keeps_rows, same_loops, with_few_ranges
from tinyhw.codegen.plan.heuristic import ACCUMULATORS, choose, grid, lanes_of, nest_of
from tinyhw.codegen.plan.register_tile import TILE_FACTORS
from tinyhw.codegen.plan.workgroup import products
from tinyhw.codegen.transform.keep import kept_terms
from tinyhw.codegen.transform.tiling import Opt, OptOps, size_of, without_statements
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

Opts = tuple[Opt, ...]

MAX_ROUNDS = 8
IMPROVEMENT = 0.99        # a round must reach this part of the best cost so far for another round to follow
MOST_REPETITIONS = 64     # product of the amounts of all UPCASTs
BLOCKS = (16, 64, 256)    # iterations of a loop of its own
WINDOWS = (0, 1, 2)       # loops of the output that a window closes
LOCALS = (1, 2, 4, 8, 16, 32, 64, 128, 256)

def search(sink: UOp, capabilities: Capabilities, measure: Callable[[Opts], float], width: int,
           say: Callable[[str], None] | None = None) -> Opts:
  """Return the fastest opts found for a kernel.

  measure: returns seconds, or infinity for a candidate that does not work. say: is called with each round's outcome.
  """
  if len(sink.src) > 1 and not same_loops(sink): return ()
  merged = without_statements(with_few_ranges(sink, capabilities))
  if keeps_rows(merged, capabilities):
    from tinyhw.codegen.attention.plan import choices  # for attention on GPUs
    return min(choices(merged, capabilities), key=measure)
  start = choose(merged.src[0], capabilities)
  seen = {canonical(start)}
  beam = [(measure(start), start)]
  if say is not None: say(f"start {beam[0][0] * 1e6:.2f} us {start}")
  for k in range(MAX_ROUNDS):
    found = list(beam)
    for _, opts in beam:
      for candidate in neighbours(merged, opts, capabilities):
        if canonical(candidate) in seen: continue
        seen.add(canonical(candidate))
        found.append((measure(candidate), candidate))
    found.sort(key=lambda item: item[0])    # stable: of equals the earlier one
    finished = found[0][0] >= beam[0][0] * IMPROVEMENT
    beam = [item for item in found if item[0] < math.inf][:width] or beam
    if say is not None: say(f"round {k + 1}: {beam[0][0] * 1e6:.2f} us of {len(seen)} candidates {beam[0][1]}")
    if finished: break
  return beam[0][1]

def canonical(opts: Opts) -> frozenset[Opt]:
  """Return a form that is equal for equivalent opts. Their order does not matter; MATRIX opts never change order."""
  return frozenset(opts)

def neighbours(sink: UOp, opts: Opts, capabilities: Capabilities) -> Iterator[Opts]:
  """Yield choices that differ in one thing, in a fixed order. sink: with merged loops."""
  outputs = ranges_of(sink.src[0])
  reduced = tuple(dict.fromkeys(r for u in sink.toposort() if u.op is Ops.REDUCE for r in ranges_of(u)))
  matrix = {o.axis for o in opts if o.op is OptOps.MATRIX}
  if matrix:
    nest = nest_of(sink.src[0])
    yield from (grid(nest, other, capabilities) for other in products(nest, capabilities))
  unit = bool(matrix) and not capabilities.lanes    # of a CPU: lanes are its columns, and it needs its panel
  for r in outputs + reduced:
    if not size_of(r) or r.arg[0] in matrix and not (unit and r in outputs): continue
    if not capabilities.lanes and not unit: yield from _vectors(sink, r, opts, capabilities)
    yield from _repetitions(r, opts)
    if r in outputs:
      yield from _amounts(OptOps.BLOCK, r, opts, (1, *BLOCKS))
      if capabilities.lanes: yield from _amounts(OptOps.LOCAL, r, opts, LOCALS)
      yield _toggled(Opt(OptOps.GRID, r.arg[0]), opts)
  yield from _kept(sink, reduced, opts)
  if reduced and not unit:
    for slot in _slots(sink):
      yield _toggled(Opt(OptOps.STAGE, slot), opts)
      yield from (_set(OptOps.WINDOW, slot, n, opts) for n in WINDOWS if n != _amount(OptOps.WINDOW, slot, opts, 0))

def _kept(sink: UOp, reduced: tuple[UOp, ...], opts: Opts) -> Iterator[Opts]:
  """Yield opts with kept values not kept, the other way round, or with another number of copies."""
  nodes = sink.toposort()
  for r in reduced:
    now = _amount(OptOps.KEEP, r.arg[0], opts, 0)
    if now or kept_terms(nodes, r):
      yield from (_set(OptOps.KEEP, r.arg[0], n, opts) for n in (0, 1, ACCUMULATORS) if n != now)

def _toggled(opt: Opt, opts: Opts) -> Opts: return tuple(o for o in opts if o != opt) if opt in opts else (*opts, opt)

def _set(op: OptOps, axis: int, amount: int, opts: Opts) -> Opts:
  """Return opts with another amount for one axis; an amount without effect removes the opt."""
  rest = tuple(o for o in opts if (o.op, o.axis) != (op, axis))
  return rest if amount == (0 if op in (OptOps.WINDOW, OptOps.KEEP) else 1) else (Opt(op, axis, amount), *rest)

def _amount(op: OptOps, axis: int, opts: Opts, none: int = 1) -> int:
  return next((o.amount for o in opts if (o.op, o.axis) == (op, axis)), none)

def _vectors(sink: UOp, r: UOp, opts: Opts, capabilities: Capabilities) -> Iterator[Opts]:
  """Yield lanes along r instead of another range, half as many lanes, and none."""
  lanes = lanes_of(nest_of(sink.src[0]), capabilities)
  axis, now = r.arg[0], _amount(OptOps.VECTOR, r.arg[0], opts)
  if lanes < 2: return
  if now > 1:
    yield _set(OptOps.VECTOR, axis, now // 2, opts)
    yield _set(OptOps.VECTOR, axis, 1, opts)
  elif size_of(r) >= lanes:
    yield (Opt(OptOps.VECTOR, axis, lanes), *[o for o in opts if o.op is not OptOps.VECTOR])

def _repetitions(r: UOp, opts: Opts) -> Iterator[Opts]:
  """Yield the next smaller and the next two larger tiles along r."""
  axis, now = r.arg[0], _amount(OptOps.UPCAST, r.arg[0], opts)
  others = math.prod(o.amount for o in opts if o.op is OptOps.UPCAST and o.axis != axis)
  smaller = [n for n in TILE_FACTORS if n < now][-1:]
  larger = [n for n in TILE_FACTORS if n > now][:2]
  for n in smaller + larger:
    if n <= size_of(r) and n * others <= MOST_REPETITIONS: yield _set(OptOps.UPCAST, axis, n, opts)

def _amounts(op: OptOps, r: UOp, opts: Opts, values: tuple[int, ...]) -> Iterator[Opts]:
  now = _amount(op, r.arg[0], opts)
  for n in values:
    if n != now and n < size_of(r): yield _set(op, r.arg[0], n, opts)

def _slots(sink: UOp) -> list[int]:
  """Return the buffers that are read under a reduction."""
  found: dict[int, None] = {}
  for u in sink.toposort():
    if u.op is not Ops.REDUCE: continue
    for v in u.src[0].toposort():
      if v.op is Ops.LOAD and v.src[0].src[0].op is Ops.PARAM: found.setdefault(v.src[0].src[0].arg[0])
  return sorted(found)
