"""Choose a register tile for the reductions under all loops of a store: lanes along one loop, repetitions along others,
operands staged or not.

The model counts the instructions that a core issues in one iteration of the innermost loop: multiply-adds and other
arithmetic, and the cost of reading each operand, in loads. An operand is read in the cheapest of three ways:
    in place        a load; expensive if lanes are not adjacent, if it has a gate, or if steps of the loop are far apart
    from a panel    STAGE: packed for a tile, in the order in which the reduction reads it; loops that it does not
                    depend on reuse it
    from a window   WINDOW: the elements that several outputs read, copied once; see window.py
The cost of copying is shared by the iterations between two copies.
"""
from __future__ import annotations
import itertools
import math
from typing import TYPE_CHECKING

from tinyhw.codegen.kernel.access import access_of
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.plan.loop_order import least_cost, steps_by_range
from tinyhw.codegen.transform.tiling import (
  LEAST_LANES, MOST_STRIDE, PANEL_COPIES, Opt, OptOps, cuts_of, is_reduce, is_unrolled_in_panels, size_of,
  width_along)
from tinyhw.codegen.transform.window import LoopPair, Window, values_from, window_of
from tinyhw.machine.ir.target import Capabilities
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

if TYPE_CHECKING:
  from tinyhw.codegen.plan.heuristic import Nest

TILE_FACTORS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16)
STRIDED_COST = 1.5         # of one lane of a strided load, in loads
PICK_COST = 1.5            # of a vector that lanes are picked from, in loads; lanes n elements apart are in n of these
TRANSPOSE_COST = 0.75      # of one lane of a vector that is made by transposing pieces of rows, in loads
# addresses that differ by a multiple of it compete for the same sets of the first-level cache; a set has cache bytes /
# PAGE_BYTES lines
PAGE_BYTES = 4096
SMALL_CACHE = 32 * 1024    # bytes of the first-level cache where that is not known
OTHER_STREAMS = 1          # of these lines, those that another operand needs
STREAM_COST = 4.0          # of each line of an operand that finds no room, in loads
# distant addresses at which memory is read in turn, when each element is read once; more are slower by 4 to 8 %
MOST_STREAMS = 4
HIDDEN = 0.1               # part of the instructions outside of the bottleneck that is not hidden
PANEL_COST = 1.5           # of a vector of a panel, which comes from the second-level cache, in loads
LOOP_COST = 1.0            # cycles per iteration for counting and branching, shared by all work of the iteration
ADD_LATENCY = 4.0          # cycles that accumulators must hide
MOST_OTHER_AXES = 3        # axes without adjacent accesses that are tried all the same, since an operand can be staged
SHORT_LOOP = 8             # iterations; a reduction loop of at most this length is unrolled
MOST_UNROLLED = 100        # operations of an unrolled body
# of the elements that iterations of an unrolled body share: the part that is live in registers at a time
SHARED_ALIVE = 0.5
EXIT_COST = 10.0           # cycles for the mispredicted end of a short loop that is not unrolled
SHORT_BODY = 24            # operations; a longer body needs no repetitions to hide the cost of counting
STAGE_REUSE = 4            # times that a staged element is read; with fewer, copying costs more than it saves
FILL_SHARE = 0.1           # of the time, for copying, where the grid has work for all threads
MOST_OVERLAP = 1.1         # of a range's iterations, when it is cut into blocks
GATE_COST = 3.0            # of a gate, in loads
FAR_BYTES = 1024           # steps of a loop that are further apart meet a new page every few iterations
FAR_COST = 6.0             # of a vector at such a distance, in loads
FAR_SHARED_COST = 2.5      # of such an element that all lanes share, in loads
FAR_TOTAL_BYTES = 1 << 15  # if they leave the first-level cache
COPY_COST = 3.0            # of copying a vector of adjacent elements, in loads; a gate costs extra
SET_CONFLICT = 4.0         # factor for copying strided elements whose addresses differ by multiples of a page
STORE_LANE_COST = 3.0      # of storing a single lane, in loads
CACHE_CYCLES = 0.125       # for a byte from the third cache
FOLD_COST = 2.0            # of adding half of a register's lanes to the others, after the loop, in loads
STORE_STREAM_COST = 20.0   # of storing to one more page, in loads; addresses that are less than a page apart share it
# of a tile that is larger than its range, whose vectors overlap: an equal tile without overlap is preferred
TWICE_COST = 1.002
LINE_BYTES = 64            # an unaligned vector crosses two lines for bytes / LINE_BYTES of the addresses
CHUNKS_PER_THREAD = 8      # work items that each worker should find

class RegisterTile(NamedTuple):
  """A candidate: lanes along `vector`, repetitions by range."""
  vector: UOp
  repetitions: dict[UOp, int]

class ReadPlan(NamedTuple):
  """How to read an operand.

  load: cost of a copy of the body, in loads.
  fill: cost of copying the operand to shared memory, in loads for one iteration of the innermost loop. It is multiplied
  by the tile's repetitions along `within`, and for a panel by the tile's repetitions of the operand.
  opt: None where nothing is staged.
  """
  load: float
  fill: float = 0.0
  within: tuple[UOp, ...] = ()
  opt: Opt | None = None
  window: Window | None = None

class ReductionLoad:
  """A load under the reduction, with the numbers that the model needs."""
  def __init__(self, load: UOp, body: UOp, nest: Nest, reduce_ranges: tuple[UOp, ...], lanes: int,
               capabilities: Capabilities):
    self.access = access_of(load)
    self.nest, self.reduce_ranges, self.lanes, self.capabilities = nest, reduce_ranges, lanes, capabilities
    array = load.src[0].src[0]
    # of an array that another loop has filled: the loops that it was filled in, with lanes where this loop has them
    self.kept = frozenset(array.ranges) if array.op is Ops.STAGE else frozenset()
    self.ranges = frozenset(self.access.strides) | self.access.opaque | self.kept
    self.itemsize = load.dtype.itemsize
    self.slot = load.src[0].src[0].arg[0] if load.src[0].src[0].op is Ops.PARAM else None
    self.gated = len(load.src) > 1
    self.gathered = any(u.op is Ops.LOAD for u in load.src[0].src[1].toposort())
    self.far = self._far()
    self.room = max(max(capabilities.cache_bytes[:1], default=SMALL_CACHE) // PAGE_BYTES - OTHER_STREAMS, 1)
    self.free = [r for r in nest.ranges if r not in self.ranges]
    self.streams = [r for r in nest.ranges if r in self.ranges - self.kept
                    and self._is_stream(self.access.strides.get(r, 0) * self.itemsize)]
    if not self.free: self.room = min(self.room, MOST_STREAMS)
    self.value = values_from(load, body)[-1]
    self.work = float(sum(is_data(v) for v in computed(self.value)))     # operations on an element alone
    self.pairs: tuple[LoopPair, ...] = ()     # of the largest window, whether it fits or not
    self.windows = self._windows(body) if self.slot is not None and not self.gathered else []
    # of each window: bytes, and the loops outside of it
    self.sizes = {w: (w.elements(lanes) * self.itemsize, set(w.value.ranges).difference(w.closed))
                  for w in self.windows}

  def _is_stream(self, step: int) -> bool:
    """Do elements at this distance in bytes compete for a cache line? Or for the prefetcher, where each is read once?
    """
    return step % PAGE_BYTES == 0 or not self.free and abs(step) >= PAGE_BYTES

  def _far(self) -> float:
    """Return how often a step of the reduction's loops goes far, in iterations of the innermost one."""
    inner, share = 1, 0.0
    for r in reversed(self.reduce_ranges):
      step = abs(self.access.strides.get(r, 0)) * self.itemsize
      if step >= FAR_BYTES and size_of(r) * step > FAR_TOTAL_BYTES: share = max(share, 1 / inner)
      inner *= max(size_of(r), 1)
    return share

  def _windows(self, body: UOp) -> list[Window]:
    """Return the windows that fit into half of shared memory. The window that closes fewest loops comes first."""
    whole = window_of(self.access, body, self.nest.ranges, self.reduce_ranges)
    if whole is None: return []
    self.pairs = whole.pairs
    cut = [whole.closing(n) for n in range(1, len(whole.pairs) + 1)]
    return [w for w in cut if w.elements(self.lanes) * self.itemsize <= self.capabilities.local_bytes // 2]

  def plans(self, vector: UOp) -> list[ReadPlan]:
    """Return the plans to read the operand with lanes along a range."""
    found = [ReadPlan(self.direct_cost(vector) + self.work)]
    if self.slot is None or self.gathered: return found
    if vector in self.ranges and not is_reduce(vector): found.append(self._panel(vector))
    return found + [plan for w in self.windows if (plan := self._window(w, vector)) is not None]

  def direct_cost(self, vector: UOp) -> float:
    """Return the cost of a copy that is read in place, in loads."""
    gate = GATE_COST if self.gated else 0.0
    if vector in self.kept: return 1.0
    if vector not in self.ranges: return 1.0 + self.far * (FAR_SHARED_COST - 1.0) + gate
    if self.access.strides.get(vector) != 1: return self._strided(vector) + gate * self.lanes
    return self._crossing(vector) + (0.0 if is_reduce(vector) else self.far * (FAR_COST - 1.0)) + gate

  def _strided(self, vector: UOp) -> float:
    """Return the cost of a vector whose lanes are not adjacent, in loads."""
    stride = abs(self.access.strides.get(vector, 0))
    picks = not self.gated and vector not in self.access.opaque and self.itemsize in self.capabilities.shuffled_bytes
    return PICK_COST * max(stride, 2) if picks and 0 < stride <= MOST_STRIDE else STRIDED_COST * self.lanes

  def _crossing(self, vector: UOp) -> float:
    """Return the loads of a vector of adjacent elements. Unless it is aligned, it often crosses two lines."""
    aligned = all(c % self.lanes == 0 for r, c in self.access.strides.items() if r is not vector)
    return 1.0 if aligned else 1.0 + self.lanes * self.itemsize / LINE_BYTES

  def _panel(self, vector: UOp) -> ReadPlan:
    stride = self.access.strides.get(vector, 0)
    gate = GATE_COST if self.gated else 0.0
    conflict = SET_CONFLICT if stride * self.itemsize % PAGE_BYTES == 0 else 1.0
    if stride == 1: copying = COPY_COST + gate
    elif self._is_transposed(): copying = self.lanes * TRANSPOSE_COST
    else: copying = (STRIDED_COST + gate) * self.lanes * conflict
    reuse = math.prod(max(size_of(r), 1) for r in self.free)
    return ReadPlan(PANEL_COST + self.work, copying / reuse, tuple(self.free), Opt(OptOps.STAGE, self.slot or 0))

  def _is_transposed(self) -> bool:
    """Is a panel filled by transposing pieces of rows? They lie along a loop of the reduction."""
    return not self.gated and self.itemsize in self.capabilities.shuffled_bytes and any(
      self.access.strides.get(r) == 1 and is_unrolled_in_panels(r) for r in self.reduce_ranges)

  def _window(self, w: Window, vector: UOp) -> ReadPlan | None:
    """Return the plan through a window; None where lanes would run along a loop outside of the window."""
    load = 1.0
    if vector in w.closed:
      pair = next(p for p in w.pairs if p.output is vector)
      load = (1.0 + self.lanes * self.itemsize / LINE_BYTES if pair is w.pairs[0] and pair.step == 1
              else STRIDED_COST * self.lanes)
    elif vector in w.value.ranges: return None
    inside = [r for r in self.nest.ranges if r in w.closed or r not in w.value.ranges]
    times = math.prod(max(size_of(r), 1) for r in (*inside, *self.reduce_ranges)) / (self.lanes if vector in inside
                                                                                     else 1)
    fill = w.elements(self.lanes) / self.lanes * (COPY_COST + self.work + (GATE_COST if self.gated else 0.0))
    return ReadPlan(load, fill / times, self.nest.ranges, Opt(OptOps.WINDOW, self.slot or 0, len(w.pairs)), w)

  def elements_read(self, tile: dict[UOp, int]) -> int:
    """Return the number of different elements (or vectors) of the operand that a tile reads."""
    n = 1
    for r, k in tile.items():
      if r in self.ranges: n *= k
    return n

  def reuse(self, tile: dict[UOp, int]) -> int:
    """Return how often a tile's elements are read again by loops that they do not depend on."""
    n = 1
    for r in self.free: n *= max(size_of(r) // tile.get(r, 1), 1)
    return n

  def panel_bytes(self, tile: dict[UOp, int]) -> int:
    """Return the bytes of shared memory of a panel."""
    size = self.lanes * self.itemsize * self.elements_read(tile)
    for r in self.reduce_ranges:
      if r in self.ranges: size *= size_of(r)
    return size

  def window_bytes(self, window: Window, tile: dict[UOp, int]) -> int:
    """Return the bytes of shared memory of a window, with the tile's repetitions that it does not close."""
    size, outside = self.sizes[window]
    for r, n in tile.items():
      if r in outside: size *= n
    return size

  def distinct(self, window: Window | None, tile: dict[UOp, int]) -> float:
    """Return the part of a window's elements that differs between a tile's repetitions.

    Neighbouring rows of an image share elements where the window has no loop for them.
    """
    share = 1.0
    if window is None: return share
    for p in self.pairs[len(window.pairs):]:
      n, k = tile.get(p.output, 1), size_of(p.inner)
      if n > 1: share *= min(1.0, ((n - 1) * p.step + (k - 1) * p.dilation + 1) / (n * k))
    return share

  def cheapest(self, plans: list[ReadPlan], tile: dict[UOp, int]) -> tuple[float, ReadPlan]:
    """Return the cheapest plan for a tile, and its cost in loads for an iteration."""
    n = self.elements_read(tile)
    best, cost = plans[0], n * plans[0].load
    streams = 1
    for r in self.streams: streams *= tile.get(r, 1)
    if streams > self.room: cost += (streams - self.room) * STREAM_COST
    for plan in plans[1:]:
      if plan.window is None:
        if self.reuse(tile) < STAGE_REUSE or self.panel_bytes(tile) > self.capabilities.local_bytes: continue
      elif self.window_bytes(plan.window, tile) > self.capabilities.local_bytes // 2: continue
      times = 1 if plan.window is not None else n
      for r in plan.within: times *= tile.get(r, 1)
      other = n * plan.load + plan.fill * times * self.distinct(plan.window, tile)
      if other < cost: best, cost = plan, other
    return cost, best

class CostModel:
  """The cost of tiles of one store, with vectors of a given number of lanes."""
  def __init__(self, nest: Nest, reduces: list[UOp], lanes: int, capabilities: Capabilities):
    self.nest, self.lanes, self.capabilities = nest, lanes, capabilities
    self.terms = max(terms_of(u) for u in reduces)
    self.reduces = [u for u in reduces if terms_of(u) == self.terms]    # the others are small compared to it
    self.reduce_ranges = tuple(dict.fromkeys(r for u in self.reduces for r in ranges_of(u)))
    self.last = max(self.reduce_ranges, key=lambda r: r.arg)
    bodies = {v: u.src[0] for u in self.reduces for v in computed(u.src[0])}
    self.loads = [ReductionLoad(v, body, nest, self.reduce_ranges, lanes, capabilities) for v, body in bodies.items()
                  if v.op is Ops.LOAD]
    self.stores = [a for a in nest.accesses if a.is_store]
    # part of a page between stores of neighbouring iterations, which are adjacent in no loop of these
    self.pages: dict[UOp, float] = {}
    for a in self.stores:
      for r, c in a.strides.items():
        if abs(c) != 1:
          self.pages[r] = max(self.pages.get(r, 0.0), min(abs(c) * a.node.src[0].dtype.itemsize / PAGE_BYTES, 1.0))
    alone = {v for o in self.loads for v in computed(o.value)}
    self.body = max(1, sum(is_data(v) and v not in alone for v in bodies))
    copied = {v for o in self.loads if o.windows for v in computed(o.value)}
    self.operations = max(1, sum(is_data(v) and v not in copied for v in bodies))   # of one iteration, in code

  def cost(self, t: RegisterTile, plans: list[list[ReadPlan]], limit: float = math.inf) -> float | None:
    """Return the cycles per element and reduction step.

    Return None for a tile that does not fit into the registers, or whose arithmetic alone reaches the limit.
    """
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
    share = waste / (repetitions * self.lanes)
    arithmetic = repetitions * self.body
    latency = ADD_LATENCY / (8 // accumulators) if accumulators < 8 else 0.0
    loop = self.loop_cost(t, accumulators)
    if (max(arithmetic / 2, latency) + loop) * share >= limit: return None
    chosen = [operand.cheapest(mine, t.repetitions) for operand, mine in zip(self.loads, plans)]
    issue = sum(cost for cost, _ in chosen)
    if not is_reduce(t.vector): issue += self.store_cost(t) * repetitions / self.terms
    issue += STORE_STREAM_COST * self.streams(t) / self.terms
    if is_reduce(t.vector): issue += FOLD_COST * accumulators * self.lanes / self.terms * math.log2(self.lanes)
    core = (max(issue / 2, arithmetic / 2, latency, (issue + arithmetic) / 4) + HIDDEN * issue + loop) * share
    if core >= limit: return None
    memory = self.traffic(t, [plan for _, plan in chosen])
    return max(core, memory) + HIDDEN * memory

  def store_cost(self, t: RegisterTile) -> float:
    """Return the cost of storing a vector of results whose lanes are not adjacent, in loads."""
    worst = 0.0
    for a in self.stores:
      stride, size = a.stride(t.vector), a.node.src[0].dtype.itemsize
      if stride == 1: continue
      lane = STORE_LANE_COST * (SET_CONFLICT if stride and stride * size % PAGE_BYTES == 0 else 1.0)
      pieces = size in self.capabilities.shuffled_bytes and any(
        n % PANEL_COPIES == 0 and a.stride(r) == 1 for r, n in t.repetitions.items())
      worst = max(worst, self.lanes * (lane / PANEL_COPIES if pieces else lane))
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
  chosen = best[1]
  opts = [Opt(OptOps.VECTOR, chosen.vector.arg[0], model.lanes)]
  opts += [Opt(OptOps.UPCAST, r.arg[0], n) for r, n in chosen.repetitions.items() if n > 1]
  opts += unroll_reduction(chosen, model)
  return tuple(opts + stage(model, chosen))

def is_data(u: UOp) -> bool:
  """Does the node compute an element by more than an addition? An addition is free with a multiplication."""
  return (u.op in GroupOp.ALU and u.op is not Ops.ADD and not u.dtype.name.startswith("weak")
          and u.dtype.scalar().itemsize > 1)

def computed(u: UOp) -> dict[UOp, None]:
  """Return the nodes below a value, without those of arrays that another loop has filled."""
  return u.toposort(lambda v: v.op is not Ops.STAGE)

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
  if repetitions >= 8 and model.body * repetitions > SHORT_BODY // 2: return []
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
  plans = [(o, o.cheapest(o.plans(t.vector), t.repetitions)[1]) for o in model.loads]
  opts = list(dict.fromkeys(plan.opt for _, plan in plans if plan.opt is not None))
  if not opts: return []
  panels = [(o, plan) for o, plan in plans if plan.opt is not None and plan.window is None]
  windows = [plan.window for _, plan in plans if plan.window is not None]
  closed = {r for w in windows for r in w.closed}
  if not panels:
    return opts + stage_grid(model, t, {r for w in windows for r in w.value.ranges} - closed, closed, STAGE_REUSE)
  operand, plan = panels[0]
  worth = (plan.fill * math.prod(max(size_of(r), 1) for r in operand.free)
           * operand.elements_read(t.repetitions) / math.prod(t.repetitions.values()) / FILL_SHARE)
  return opts + stage_grid(model, t, set(operand.ranges), closed, max(STAGE_REUSE, round(worth)))

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
    parts = parts_of(r, t, model.lanes, wanted, inside)
    if parts == 1: continue
    block = -(-steps_of(r, t, model.lanes) // parts)
    if block > 1: opts.append(Opt(OptOps.BLOCK, r.arg[0], block))
    opts.append(Opt(OptOps.GRID, r.arg[0]))
    items, inside = items * parts, inside // parts
  return opts

def steps_of(r: UOp, t: RegisterTile, lanes: int) -> int:
  """Return the number of tiles along a range."""
  return -(-size_of(r) // (t.repetitions.get(r, 1) * (lanes if r is t.vector else 1)))

def parts_of(r: UOp, t: RegisterTile, lanes: int, wanted: int, inside: int) -> int:
  """Return the number of blocks into which a loop over tiles is cut.

  This is the wanted number, or the largest with little overlap and enough reuse inside of a block.
  """
  loops = steps_of(r, t, lanes)
  covered = t.repetitions.get(r, 1) * (lanes if r is t.vector else 1)
  best = 1
  for parts in range(2, min(loops, wanted) + 1):
    if inside // parts < STAGE_REUSE: break
    if parts * -(-loops // parts) * covered > MOST_OVERLAP * loops * covered: continue
    best = parts
  return best
