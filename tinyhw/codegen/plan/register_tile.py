"""Choose a register tile for the reductions under all loops of a store: lanes along one loop, repetitions along others,
operands staged or not.

The model counts the instructions that a core issues in one iteration of the innermost loop: multiply-adds and other
arithmetic, and loads. An operand is read in the cheapest of three ways: in place, from a panel, or from a window
(reads.py). To these add cycles that arithmetic does not hide: waiting for distant rows, copying, operations on the
results, traffic of the caches, and threads without work.
"""
from __future__ import annotations
import itertools
import math
from typing import TYPE_CHECKING

from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.plan.loop_order import least_cost, steps_by_range
from tinyhw.codegen.plan.reads import (
  CACHE_CYCLES, CHUNKS_PER_THREAD, PAGE_BYTES, SET_CONFLICT, STAGE_REUSE, OperandRead, ReadPlan, ReductionLoad,
  RegisterTile, computed, is_data, steps_of)
from tinyhw.codegen.transform.tiling import (
  LEAST_LANES, Opt, OptOps, cuts_of, is_reduce, rows_copies, size_of, width_along)
from tinyhw.machine.ir.target import Capabilities
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

if TYPE_CHECKING:
  from tinyhw.codegen.plan.heuristic import Nest

TILE_FACTORS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16)
HIDDEN = 0.1               # part of the instructions outside of the bottleneck that is not hidden
SLOWED = 0.4               # part of the shorter one of arithmetic and cache traffic that the longer one does not hide
LOOP_COST = 1.0            # cycles per iteration for counting and branching, shared by all work of the iteration
ADD_LATENCY = 4.0          # cycles that accumulators must hide
MOST_OTHER_AXES = 3        # axes without adjacent accesses that are tried all the same, since an operand can be staged
SHORT_LOOP = 8             # iterations; a reduction loop of at most this length is unrolled
MOST_UNROLLED = 100        # operations of an unrolled body
# Iterations of a long sum in one body. A processor fetches the address at which each load is expected next. One
# iteration of a tile is shorter than the second-level cache takes, four are not.
TOGETHER = 4
UNFETCHED = 0.22           # part of the time of the second-level cache that a body of one iteration does not hide
# of the elements that iterations of an unrolled body share: the part that is live in registers at a time
SHARED_ALIVE = 0.5
EXIT_COST = 10.0           # cycles for the mispredicted end of a short loop that is not unrolled
SHORT_BODY = 24            # operations; a longer body needs no repetitions to hide the cost of counting
MOST_OVERLAP = 1.1         # of a range's iterations, when it is cut into blocks
STORE_LANE_COST = 3.0      # of storing a single lane, in loads
FUNCTION_OPERATIONS = 20   # of a vector instruction each, in a function such as exp
FOLD_COST = 4.0            # of adding half of a register's lanes to the others, after the loop, in loads
STORE_STREAM_COST = 20.0   # of storing to one more page, in loads; addresses that are less than a page apart share it
# of a tile that is larger than its range, whose vectors overlap: an equal tile without overlap is preferred
TWICE_COST = 1.002

class TileWork(NamedTuple):
  """The work of a tile in an iteration of the innermost loop, besides reading operands.

  arithmetic: operations on vectors. latency: cycles that accumulators need at least. loop: cycles of counting.
  storing: loads that cost as much as its stores. after: cycles of operations on results, after the loop. share: by
  which cycles become those of an element and reduction step.
  """
  arithmetic: float
  latency: float
  loop: float
  storing: float
  after: float
  share: float

class CostModel:
  """The cost of tiles of one store, with vectors of a given number of lanes."""
  def __init__(self, nest: Nest, reduces: list[UOp], lanes: int, capabilities: Capabilities):
    self.nest, self.lanes, self.capabilities = nest, lanes, capabilities
    self.rate = capabilities.vector_rate
    self.terms = max(terms_of(u) for u in reduces)
    self.reduces = [u for u in reduces if terms_of(u) == self.terms]    # the others are small compared to it
    self.reduce_ranges = tuple(dict.fromkeys(r for u in self.reduces for r in ranges_of(u)))
    self.last = max(self.reduce_ranges, key=lambda r: r.arg)
    bodies = {v: u.src[0] for u in self.reduces for v in computed(u.src[0])}
    self.loads = [ReductionLoad(v, body, nest, self.reduce_ranges, lanes, capabilities) for v, body in bodies.items()
                  if v.op is Ops.LOAD]
    self.stores = [a for a in nest.accesses if a.is_store]
    # operations on a result after the loop, on each lane alone if lanes are along the sum
    after = nest.store.toposort(lambda u: u.op not in (Ops.REDUCE, Ops.STAGE))
    self.after = sum(FUNCTION_OPERATIONS if u.op in GroupOp.Transcendental else 1 for u in after
                     if is_data(u) and u.op is not Ops.REDUCE)
    # part of a page between stores of neighbouring iterations, which are adjacent in no loop of these
    self.pages: dict[UOp, float] = {}
    for a in self.stores:
      for r, c in a.strides.items():
        if abs(c) != 1:
          self.pages[r] = max(self.pages.get(r, 0.0), min(abs(c) * a.node.src[0].dtype.itemsize / PAGE_BYTES, 1.0))
    alone = {v for o in self.loads for v in computed(o.value)}
    # operations of the body by the loops of the output that they depend on: other loops' repetitions share them
    self.body: dict[frozenset[UOp], int] = {}
    for v in bodies:
      if not is_data(v) or v in alone: continue
      own = frozenset(r for r in nest.ranges if r in v.ranges)
      self.body[own] = self.body.get(own, 0) + 1
    if not self.body: self.body[frozenset(nest.ranges)] = 1
    copied = {v for o in self.loads if o.windows for v in computed(o.value)}
    self.operations = max(1, sum(is_data(v) and v not in copied for v in bodies))   # of one iteration, in code

  def cost(self, t: RegisterTile, plans: list[list[ReadPlan]], limit: float = math.inf) -> float | None:
    """Return the cycles per element and reduction step.

    Return None for a tile that does not fit into the registers, or whose cost reaches the limit.
    """
    work = self.work(t)
    if work is None or (max(work.arithmetic / self.rate, work.latency) + work.loop) * work.share >= limit: return None
    return self._cheapest(t, plans, work, limit)[0]

  def readings(self, t: RegisterTile, plans: list[list[ReadPlan]]) -> list[OperandRead]:
    """Return how a tile that fits reads its operands."""
    work = self.work(t)
    return [] if work is None else self._cheapest(t, plans, work, math.inf)[1]

  def work(self, t: RegisterTile) -> TileWork | None:
    """Return the work of a tile besides reading operands; None if it does not fit into the registers."""
    repetitions = math.prod(t.repetitions.values())
    accumulators = repetitions * len(self.reduces)
    read = [operand.elements_read(t.repetitions) for operand in self.loads]
    # Elements that repetitions share are kept, of all operands but one.
    shared = [n for n in read if n < repetitions]
    kept = sum(shared) - (max(shared, default=0) if len(shared) == len(read) else 0)
    if accumulators + kept + 1 > self.capabilities.vector_registers: return None
    waste = 1.0
    for r in dict.fromkeys((t.vector, *t.repetitions)):
      waste *= wasted(r, t.repetitions.get(r, 1), self.lanes if r is t.vector else 1)
    if t.repetitions.get(t.vector, 1) * self.lanes > size_of(t.vector): waste *= TWICE_COST
    latency = ADD_LATENCY / (8 // accumulators) if accumulators < 8 else 0.0
    after = repetitions / self.terms * self.after * (self.lanes if is_reduce(t.vector) else 1)
    if is_reduce(t.vector): after += FOLD_COST * accumulators * self.lanes / self.terms * math.log2(self.lanes)
    storing = STORE_STREAM_COST * self.streams(t) / self.terms
    if not is_reduce(t.vector): storing += self.store_cost(t) * repetitions / self.terms
    return TileWork(self.arithmetic(t), latency, self.loop_cost(t, accumulators), storing, after / 2,
                    waste / (repetitions * self.lanes))

  def arithmetic(self, t: RegisterTile) -> int:
    """Return the operations of a tile's body on vectors."""
    return sum([n * math.prod([k for r, k in t.repetitions.items() if r in own]) for own, n in self.body.items()])

  def _cheapest(self, t: RegisterTile, plans: list[list[ReadPlan]], work: TileWork, limit: float
                ) -> tuple[float | None, list[OperandRead]]:
    """Return the least cost, and how operands are read for it; None if it reaches the limit.

    Each operand is read in its cheapest way: if loads are the bottleneck, and if arithmetic hides them.
    """
    cost: float | None = None
    best: list[OperandRead] = []
    for weight in (1 / self.rate, HIDDEN):
      chosen = [operand.cheapest(mine, t, weight) for operand, mine in zip(self.loads, plans)]
      if [one.plan for one in chosen] == [one.plan for one in best]: continue
      found = self.cycles_of(t, chosen, work, limit)
      if found is not None: cost, best, limit = found, chosen, found
    return cost, best

  def cycles_of(self, t: RegisterTile, chosen: list[OperandRead], work: TileWork,
                limit: float = math.inf) -> float | None:
    """Return the cycles per element and reduction step; None if they reach the limit.

    t: the tile, or several that share what they read (TileWork is for one of them).
    """
    issue = work.storing + sum(one.issue for one in chosen)
    arithmetic = work.arithmetic + sum(one.work for one in chosen)
    near = sum(o.near_cycles(t) for o, one in zip(self.loads, chosen) if one.plan.window is None)
    core = max(issue / self.rate, arithmetic / self.rate, work.latency, (issue + arithmetic) / 4, near) + HIDDEN * issue
    if not self.goes_together(t): core += UNFETCHED * near
    core = (core + work.loop + work.after + sum(one.cycles for one in chosen)) * work.share
    if core >= limit: return None
    plans = [one.plan for one in chosen]
    memory = self.traffic(t, plans) + sum(o.memory_cycles(t) for o in self.loads)
    found = (max(core, memory) + SLOWED * min(core, memory)) * self.imbalance(t, plans)
    return found if found < limit else None

  def imbalance(self, t: RegisterTile, plans: list[ReadPlan]) -> float:
    """Return the time of the busiest thread over that of all on average, where a panel decides the work items."""
    threads = self.capabilities.threads
    staged = next(((o, plan) for o, plan in zip(self.loads, plans) if plan.opt is not None), None)
    if staged is None or any(plan.window is not None for plan in plans): return 1.0
    items = staged[0].work_items(staged[1], t).items
    return -(-items // threads) * threads / items if items < threads * CHUNKS_PER_THREAD else 1.0

  def store_cost(self, t: RegisterTile) -> float:
    """Return the cost of storing a vector of results whose lanes are not adjacent, in loads."""
    worst = 0.0
    for a in self.stores:
      stride, size = a.stride(t.vector), a.node.src[0].dtype.itemsize
      if stride == 1: continue
      lane = STORE_LANE_COST * (SET_CONFLICT if stride and stride * size % PAGE_BYTES == 0 else 1.0)
      pieces = size in self.capabilities.transposed_bytes and any(
        n % rows_copies(size) == 0 and a.stride(r) == 1 for r, n in t.repetitions.items())
      worst = max(worst, self.lanes * (lane / rows_copies(size) if pieces else lane))
    return worst

  def traffic(self, t: RegisterTile, plans: list[ReadPlan]) -> float:
    """Return the cycles per element and reduction step in which the caches deliver what is read again.

    An operand with a panel is read once, since the loops that it does not depend on are inside of the others.
    """
    elements = {r: t.repetitions.get(r, 1) * (self.lanes if r is t.vector else 1) for r in self.nest.ranges}
    steps = steps_by_range(self.nest.ranges, elements)
    loops = [r for r in self.nest.ranges if steps[r] > 1]
    reads = [o.access for o, plan in zip(self.loads, plans) if plan.opt is None and not o.kept]
    panels = [o for o, plan in zip(self.loads, plans) if plan.opt is not None and plan.window is None]
    outside = frozenset(r for o in panels[:1] for r in o.ranges)
    again = least_cost(loops, outside, steps, reads, self.capabilities.cache_bytes)
    return again * CACHE_CYCLES / (math.prod(max(size_of(r), 1) for r in self.nest.ranges) * self.terms)

  def streams(self, t: RegisterTile) -> float:
    """Return the number of pages that a tile is stored to, besides the first."""
    n = 1.0 + (self.lanes - 1) * self.pages.get(t.vector, 0.0)
    for r, k in t.repetitions.items(): n *= 1.0 + (k - 1) * self.pages.get(r, 0.0)
    return n - 1.0

  def short_loop(self, vector: UOp) -> int:
    """Return the iterations of the innermost loop if they are few, else 0."""
    return size_of(self.last) if self.last is not vector and 1 < size_of(self.last) <= SHORT_LOOP else 0

  def unrolls(self, t: RegisterTile, short: int, accumulators: int) -> bool:
    """Is a short innermost loop unrolled?

    It is not where the elements that its iterations share would take the registers of the accumulators.
    """
    if not 0 < short * accumulators * self.operations <= MOST_UNROLLED: return False
    pairs = [p for o in self.loads for p in (o.windows[-1].pairs if o.windows else ()) if p.inner is self.last
             and t.repetitions.get(p.output, 1) > 1]
    shared = sum(t.repetitions[p.output] + short - 1 for p in pairs)
    return accumulators + 2 + SHARED_ALIVE * shared <= self.capabilities.vector_registers

  def goes_together(self, t: RegisterTile) -> bool:
    """Does the body of a large tile of products have several iterations of a long loop?"""
    accumulators = len(self.reduces) * math.prod(t.repetitions.values())
    return (len(self.loads) > 1 and not is_reduce(t.vector) and size_of(self.last) >= SHORT_LOOP * TOGETHER
            and accumulators >= 8 and self.arithmetic(t) * len(self.reduces) > SHORT_BODY // 2
            and TOGETHER * accumulators * self.operations <= MOST_UNROLLED)

  def loop_cost(self, t: RegisterTile, accumulators: int) -> float:
    """Return the cycles per iteration for counting and branching."""
    short = self.short_loop(t.vector)
    if not short: return LOOP_COST / 2
    return LOOP_COST / 2 / short if self.unrolls(t, short, accumulators) else LOOP_COST / 2 + EXIT_COST / short

  def best(self, axes: list[UOp], limit: float = math.inf) -> tuple[float, RegisterTile] | None:
    """Return the cheapest tile with lanes along one of these ranges, and its cost; None if none is below the limit."""
    found: tuple[float, RegisterTile] | None = None
    for v in self.vector_axes(axes):
      plans = [operand.plans(v) for operand in self.loads]
      for t in candidates(self.nest, v, self.lanes, self.capabilities.vector_registers // len(self.reduces)):
        cost = self.cost(t, plans, limit)
        if cost is not None and cost < limit: found, limit = (cost, t), cost
    return found

  def vector_axes(self, long: list[UOp]) -> list[UOp]:
    """Return the ranges for lanes among the long ones.

    Such a range is adjacent in memory for some access, or all lanes share some operand.
    """
    adjacent = [r for r in long if any(a.stride(r) == 1 for a in self.stores)
                or any(o.access.strides.get(r) == 1 for o in self.loads)]
    other = [r for r in self.nest.ranges if r in long and r not in adjacent and sum(r in o.ranges for o in self.loads)
             < len(self.loads)]
    return adjacent + other[:MOST_OTHER_AXES]

def tile(nest: Nest, reduces: list[UOp], lanes: int, capabilities: Capabilities) -> tuple[Opt, ...]:
  """Return the opts of the cheapest tile for the reductions under all loops of a store.

  Lanes along a short range fill a part of a register.
  """
  by_width: dict[int, list[UOp]] = {lanes: []}
  for r in (*nest.ranges, *dict.fromkeys(r for u in reduces for r in ranges_of(u))):
    if size_of(r) >= min(lanes, LEAST_LANES): by_width.setdefault(width_along(r, lanes), []).append(r)
  best: tuple[float, RegisterTile] | None = None
  for width, axes in sorted(by_width.items(), reverse=True):
    if not axes: continue
    tried = CostModel(nest, reduces, width, capabilities)
    found = tried.best(axes, math.inf if best is None else best[0])
    if found is not None: best, model = found, tried
  if best is None: return ()
  if capabilities.matrix and model.lanes == lanes and any(u.src[0].op in (Ops.DOT4, Ops.DOT2) for u in reduces):
    from tinyhw.codegen.plan import tile_unit  # for sums of words on CPUs with a matrix unit; 0.4 ms to load
    unit = tile_unit.best(model, best[0])
    if unit is not None: return unit.opts
  chosen = best[1]
  opts = [Opt(OptOps.VECTOR, chosen.vector.arg[0], model.lanes)]
  opts += [Opt(OptOps.UPCAST, r.arg[0], n) for r, n in chosen.repetitions.items() if n > 1]
  opts += unroll_reduction(chosen, model)
  return tuple(opts + stage(model, chosen))

def terms_of(reduce: UOp) -> int:
  """Return the number of terms of a REDUCE."""
  n = 1
  for r in ranges_of(reduce): n *= max(size_of(r), 1)
  return n

def candidates(nest: Nest, v: UOp, lanes: int, most: int) -> list[RegisterTile]:
  """Return tiles with repetitions along up to two output ranges, as many as registers allow.

  One of the ranges may be the lanes' own. Large tiles, the likely ones, come first.
  """
  room = {r: size_of(r) // (lanes if r is v else 1) for r in nest.ranges if size_of(r) > 1}
  # the last vector of a tile for the whole range overlaps the previous one
  if v in room and not nest.in_place: room[v] = -(-size_of(v) // lanes)
  factors = {r: [n for n in TILE_FACTORS if n <= limit] for r, limit in room.items()}
  out, seen = [], set()
  if not room: return [RegisterTile(v, {})]
  for a, b in itertools.combinations(room, 2) if len(room) > 1 else ((a, a) for a in room):
    for n in factors[a]:
      for m in factors[b] if b is not a else (1,):
        if n * m > most: break
        key = frozenset((r, k) for r, k in ((a, n), (b, m)) if k > 1)
        if key in seen: continue
        seen.add(key)
        out.append(RegisterTile(v, {a: n, b: m} if b is not a else {a: n}))
  return sorted(out, key=lambda t: math.prod(t.repetitions.values()), reverse=True)

def wasted(r: UOp, repetitions: int, lanes: int) -> float:
  """Return the work of a tile along a range over the necessary work.

  The last tile overlaps. The left-over terms of a reduction have fewer lanes.
  """
  n = size_of(r)
  if is_reduce(r): return (n // lanes + sum(steps for steps, _ in cuts_of(n % lanes, lanes))) * lanes / n
  return -(-n // (repetitions * lanes)) * repetitions * lanes / n

def unroll_reduction(t: RegisterTile, model: CostModel) -> list[Opt]:
  """Return repetitions of a short reduction body: more accumulators when there are few, less counting otherwise."""
  repetitions = len(model.reduces) * math.prod(t.repetitions.values())
  if model.unrolls(t, model.short_loop(t.vector), repetitions):
    return [Opt(OptOps.UPCAST, model.last.arg[0], size_of(model.last))]
  last = t.vector if is_reduce(t.vector) else model.last
  if model.goes_together(t): return [Opt(OptOps.UPCAST, last.arg[0], TOGETHER)]
  if repetitions >= 8 and model.arithmetic(t) * len(model.reduces) > SHORT_BODY // 2: return []
  if model.operations * repetitions > SHORT_BODY: return []
  wanted = 1
  while wanted * repetitions < 8: wanted *= 2
  lanes = 1 if last is not t.vector else 8
  while wanted > 1 and size_of(last) < wanted * lanes * 2: wanted //= 2
  return [Opt(OptOps.UPCAST, last.arg[0], wanted)] if wanted > 1 else []

# ***** shared memory *****

def stage(model: CostModel, t: RegisterTile) -> list[Opt]:
  """Return opts for the chosen copies to shared memory, and for a grid that makes them worth their cost."""
  if is_reduce(t.vector): return []
  readings = model.readings(t, [o.plans(t.vector) for o in model.loads])
  plans = [(o, one.plan) for o, one in zip(model.loads, readings)]
  opts = list(dict.fromkeys(plan.opt for _, plan in plans if plan.opt is not None))
  if not opts: return []
  panels = [(o, plan) for o, plan in plans if plan.opt is not None and plan.window is None]
  windows = [plan.window for _, plan in plans if plan.window is not None]
  closed = {r for w in windows for r in w.closed}
  if not panels:
    return opts + stage_grid(model, t, {r for w in windows for r in w.value.ranges} - closed, closed, STAGE_REUSE)
  operand, plan = panels[0]
  return opts + stage_grid(model, t, set(operand.ranges), closed, operand.reuse_worth(plan, t))

def stage_grid(model: CostModel, t: RegisterTile, outside: set[UOp], closed: set[UOp], reuse: int) -> list[Opt]:
  """Return the grid of a kernel that stages operands.

  outside: loops that the staged operand depends on. Other loops stay inside, unless the grid still needs them. Loops
  that a window closes always stay inside.
  reuse: minimum of steps inside. With fewer, only a thread that would be idle makes a copy of its own.
  """
  items, opts = 1, []
  loops = model.nest.ranges
  for r in loops:
    if r not in outside or steps_of(r, t, model.lanes) <= 1: continue
    opts.append(Opt(OptOps.GRID, r.arg[0]))
    items *= steps_of(r, t, model.lanes)
  threads = model.capabilities.threads
  inside = math.prod(steps_of(r, t, model.lanes) for r in loops if r not in outside)
  for r in loops:
    if items >= threads * CHUNKS_PER_THREAD: break
    if r in outside or r in closed: continue
    wanted = min(-(-threads * CHUNKS_PER_THREAD // items), max(-(-2 * threads // items), inside // reuse))
    parts = parts_of(r, t, model.lanes, wanted, inside, -(-threads // items))
    if parts == 1: continue
    block = -(-steps_of(r, t, model.lanes) // parts)
    if block > 1: opts.append(Opt(OptOps.BLOCK, r.arg[0], block))
    opts.append(Opt(OptOps.GRID, r.arg[0]))
    items, inside = items * parts, inside // parts
  return opts

def parts_of(r: UOp, t: RegisterTile, lanes: int, wanted: int, inside: int, idle: int) -> int:
  """Return the number of blocks into which a loop over tiles is cut.

  This is the wanted number, or the largest with little overlap and enough reuse inside of a block. idle: the parts that
  are worth it without reuse, since threads have no work otherwise.
  """
  loops = steps_of(r, t, lanes)
  covered = t.repetitions.get(r, 1) * (lanes if r is t.vector else 1)
  best = 1
  for parts in range(2, min(loops, wanted) + 1):
    if inside // parts < STAGE_REUSE and parts > idle: break
    if parts * -(-loops // parts) * covered > MOST_OVERLAP * loops * covered: continue
    best = parts
  return best
