"""The ways to read an operand of a reduction, and what each costs a register tile (register_tile.py).

    in place        a load; expensive if lanes are not adjacent, if it has a gate, or if steps of the loop are far apart
    from a panel    STAGE: packed for a tile, in the order in which the reduction reads it; loops that it does not
                    depend on reuse it
    from a window   WINDOW: the elements that several outputs read, copied once; see window.py

A step to a distant row waits for a cache, in part while arithmetic goes on. The second-level cache holds few rows whose
distance is divided by a high power of two, since their addresses share few of its sets. Copying to a panel comes before
the loop that reads it, so arithmetic does not hide it. It is shared by the iterations between two copies. Loops that
share a panel are cut where threads would be idle, and each part has a copy of its own.
"""
from __future__ import annotations
import math
from typing import TYPE_CHECKING

from tinyhw.codegen.kernel.access import access_of
from tinyhw.codegen.plan.loop_order import CACHE_SHARE
from tinyhw.codegen.transform.stage import panel_value, values_from
from tinyhw.codegen.transform.tiling import (
  MOST_STRIDE, Opt, OptOps, is_reduce, is_unrolled_in_panels, size_of)
from tinyhw.codegen.transform.window import LoopPair, Window, window_of
from tinyhw.dtype import DType, dtypes
from tinyhw.machine.ir.target import CACHE_LINE_BYTES, Capabilities
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

if TYPE_CHECKING:
  from tinyhw.codegen.plan.heuristic import Nest

STRIDED_COST = 1.5         # of one lane of a strided load, in loads
PICK_COST = 1.5            # of a vector that lanes are picked from, in loads; lanes n elements apart are in n of these
TRANSPOSE_COST = 0.75      # of one lane of a vector that is made by transposing pieces of rows, in loads
# addresses that differ by a multiple of it compete for the same sets of the first-level cache; a set has cache bytes /
# PAGE_BYTES lines
PAGE_BYTES = 4096
SMALL_CACHE = 32 * 1024    # bytes of the first-level cache where that is not known
OTHER_STREAMS = 1          # of these lines, those that another operand needs
STREAM_COST = 4.0          # of each line of an operand that finds no room, in loads
SCATTERED = 1.2            # factor for the time in which several streams come from memory, instead of one
# distant addresses at which memory is read in turn, when each element is read once; more are slower by 4 to 8 %
MOST_STREAMS = 4
PANEL_COST = 1.5           # of a vector of a panel, which comes from the second-level cache, in loads
STAGE_REUSE = 4            # times that a staged element is read; with fewer, copying costs more than it saves
FILL_SHARE = 0.1           # of the time, for copying, where the grid has work for all threads
GATE_COST = 3.0            # of a gate, in loads
FAR_BYTES = 1024           # steps of a loop that are further apart meet a new page every few iterations
FAR_CYCLES = 2.5           # of a step to such a distance, which adjacent vectors share
FARTHEST_CYCLES = 20.0     # if the third-level cache does not hold the operand
NEAR_CYCLES = 1.0          # if the second-level cache holds all rows
FAR_TOTAL_BYTES = 1 << 15  # if they leave the first-level cache
COPY_COST = 3.0            # of copying a vector of adjacent elements, in loads; a gate costs extra
SET_CONFLICT = 4.0         # factor for copying strided elements whose addresses differ by multiples of a page
CACHE_CYCLES = 0.125       # for a byte from the third cache
MEMORY_CYCLES = 0.25       # for a byte from memory
SPREAD_WORK = 2.0          # operations of spreading a computed number to all lanes; a loaded one is spread by its load
WIDENING: dict[DType, int] = {dtypes.float16: 2, dtypes.bfloat16: 1}     # operations of widening a vector
CHUNKS_PER_THREAD = 8      # work items that each worker should find

class RegisterTile(NamedTuple):
  """A candidate: lanes along `vector`, repetitions by range."""
  vector: UOp
  repetitions: dict[UOp, int]

class ReadPlan(NamedTuple):
  """How to read an operand.

  load: cost of a copy of the body, in loads. work: its operations on the element alone, such as a cast.
  fill: cycles of copying the operand to shared memory, for one iteration of the innermost loop. It is multiplied
  by the tile's repetitions along `within`, and for a panel by the tile's repetitions of the operand.
  opt: None where nothing is staged.
  """
  load: float
  fill: float = 0.0
  within: tuple[UOp, ...] = ()
  opt: Opt | None = None
  window: Window | None = None
  work: float = 0.0

class OperandRead(NamedTuple):
  """The cost of an operand for an iteration of the innermost loop: loads that arithmetic hides, cycles that it does
  not, and operations on vectors."""
  issue: float
  cycles: float
  plan: ReadPlan
  work: float = 0.0

class WorkItems(NamedTuple):
  """The number of work items, and the number of parts into which loops that share a panel are cut for them."""
  items: int
  parts: int

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
    self.bytes = self.itemsize * math.prod(max(size_of(r), 1) for r in self.ranges)
    self.caches = (*capabilities.cache_bytes, 0, 0, 0)
    self.far = self._far()
    self.room = max(max(capabilities.cache_bytes[:1], default=SMALL_CACHE) // PAGE_BYTES - OTHER_STREAMS, 1)
    self.free = [r for r in nest.ranges if r not in self.ranges]
    self.streams = [r for r in nest.ranges if r in self.ranges - self.kept
                    and self._is_stream(self.access.strides.get(r, 0) * self.itemsize)]
    if not self.free: self.room = min(self.room, MOST_STREAMS)
    self.value = values_from(load, body)[-1]
    self.work = float(sum(operations_of(v) for v in computed(self.value)))     # on an element alone
    self.staged = panel_value(load, body)     # what a panel has
    self.staged_work = float(sum(operations_of(v) for v in computed(self.staged)))
    self.pairs: tuple[LoopPair, ...] = ()     # of the largest window, whether it fits or not
    self.windows = self._windows(body) if self.slot is not None and not self.gathered else []
    # of each window: bytes, and the loops outside of it
    self.sizes = {w: (w.elements(lanes) * self.itemsize, set(w.value.ranges).difference(w.closed))
                  for w in self.windows}

  def _is_stream(self, step: int) -> bool:
    """Do elements at this distance in bytes compete for a cache line? Or for the prefetcher, where each is read once?
    """
    return step % PAGE_BYTES == 0 or not self.free and abs(step) >= PAGE_BYTES

  def _far(self) -> tuple[float, bool]:
    """Return how often a step of the reduction's loops goes far, in iterations of the innermost one, and whether the
    second-level cache holds all rows that it goes to."""
    inner, share, near = 1, 0.0, True
    for r in reversed(self.reduce_ranges):
      step = abs(self.access.strides.get(r, 0)) * self.itemsize
      if step >= FAR_BYTES and size_of(r) * step > FAR_TOTAL_BYTES:
        share, near = max(share, 1 / inner), near and size_of(r) <= self._rows_near(step)
      inner *= max(size_of(r), 1)
    return share, near

  def row_cycles(self, t: RegisterTile) -> float:
    """Return the cycles of steps to distant rows, which adjacent elements of a row share."""
    share, near = self.far
    if not share or self.kept: return 0.0
    if not self.free: return share * self.elements_read(t.repetitions) * FAR_CYCLES    # each is read once
    along = next((r for r, c in self.access.strides.items() if c == 1 and not is_reduce(r)), None)
    width = t.repetitions.get(along, 1) * (self.lanes if along is t.vector else 1) if along is not None else 1
    rows = self.elements_read(t.repetitions) / (1 if along is None else t.repetitions.get(along, 1))
    lines = -(-width * self.itemsize // CACHE_LINE_BYTES)
    # of a line that a tile reads in part
    parts = lines * CACHE_LINE_BYTES / max(width * self.itemsize, CACHE_LINE_BYTES)
    first = (NEAR_CYCLES if self.bytes <= self.caches[1] else FAR_CYCLES if self.bytes <= self.caches[2]
             else FARTHEST_CYCLES)
    again = NEAR_CYCLES if near else first
    level = again + (first - again) / self.reuse(t)
    return share * rows * level * parts * self.capabilities.vector_rate / 2

  def _rows_near(self, step: int) -> int:
    """Return how many rows at this distance in bytes the second-level cache holds, a few lines of each.

    Addresses whose distance is divided by a high power of two share few of its sets.
    """
    return self.caches[1] // max(step & -step, CACHE_LINE_BYTES)

  def _windows(self, body: UOp) -> list[Window]:
    """Return the windows that fit into half of shared memory. The window that closes fewest loops comes first."""
    whole = window_of(self.access, body, self.nest.ranges, self.reduce_ranges)
    if whole is None: return []
    self.pairs = whole.pairs
    cut = [whole.closing(n) for n in range(1, len(whole.pairs) + 1)]
    return [w for w in cut if w.elements(self.lanes) * self.itemsize <= self.capabilities.local_bytes // 2]

  def plans(self, vector: UOp) -> list[ReadPlan]:
    """Return the plans to read the operand with lanes along a range."""
    spread = SPREAD_WORK if self.work and vector not in self.ranges else 0.0
    found = [ReadPlan(self.direct_cost(vector), work=self.work + spread)]
    if self.slot is None or self.gathered: return found
    if vector in self.ranges and not is_reduce(vector): found.append(self._panel(vector))
    return found + [plan for w in self.windows if (plan := self._window(w, vector)) is not None]

  def direct_cost(self, vector: UOp) -> float:
    """Return the cost of a copy that is read in place, in loads, besides that of steps to distant rows."""
    gate = GATE_COST if self.gated else 0.0
    if vector in self.kept: return 1.0
    if vector not in self.ranges: return 1.0 + gate
    if self.access.strides.get(vector) != 1: return self._strided(vector) + gate * self.lanes
    return self._crossing(vector) + gate

  def _strided(self, vector: UOp) -> float:
    """Return the cost of a vector whose lanes are not adjacent, in loads."""
    stride = abs(self.access.strides.get(vector, 0))
    picks = not self.gated and vector not in self.access.opaque and self.itemsize in self.capabilities.shuffled_bytes
    return PICK_COST * max(stride, 2) if picks and 0 < stride <= MOST_STRIDE else STRIDED_COST * self.lanes

  def _crossing(self, vector: UOp) -> float:
    """Return the loads of a vector of adjacent elements. Unless it is aligned, it often crosses two lines."""
    aligned = all(c % self.lanes == 0 for r, c in self.access.strides.items() if r is not vector)
    return 1.0 if aligned else 1.0 + self.lanes * self.itemsize / CACHE_LINE_BYTES

  def _panel(self, vector: UOp) -> ReadPlan:
    stride = self.access.strides.get(vector, 0)
    gate = GATE_COST if self.gated else 0.0
    conflict = SET_CONFLICT if stride * self.itemsize % PAGE_BYTES == 0 else 1.0
    if stride == 1: copying = COPY_COST + gate
    elif self._is_transposed(): copying = self.lanes * TRANSPOSE_COST * conflict
    else: copying = (STRIDED_COST + gate) * self.lanes * conflict
    reuse = math.prod(max(size_of(r), 1) for r in self.free)
    cycles = (copying + self.staged_work) / 2 + self._far_cycles()
    return ReadPlan(PANEL_COST, cycles / reuse, tuple(self.free), Opt(OptOps.STAGE, self.slot or 0), None,
                    self.work - self.staged_work)

  def _is_transposed(self) -> bool:
    """Is a panel filled by transposing pieces of rows? They lie along a loop of the reduction."""
    return not self.gated and self.itemsize in self.capabilities.transposed_bytes and any(
      self.access.strides.get(r) == 1 and is_unrolled_in_panels(r, self.itemsize) for r in self.reduce_ranges)

  def _window(self, w: Window, vector: UOp) -> ReadPlan | None:
    """Return the plan through a window; None where lanes would run along a loop outside of the window."""
    load = 1.0
    if vector in w.closed:
      pair = next(p for p in w.pairs if p.output is vector)
      load = (1.0 + self.lanes * self.itemsize / CACHE_LINE_BYTES if pair is w.pairs[0] and pair.step == 1
              else STRIDED_COST * self.lanes)
    elif vector in w.value.ranges: return None
    inside = [r for r in self.nest.ranges if r in w.closed or r not in w.value.ranges]
    times = math.prod(max(size_of(r), 1) for r in (*inside, *self.reduce_ranges)) / (self.lanes if vector in inside
                                                                                     else 1)
    fill = w.elements(self.lanes) / self.lanes * (COPY_COST + self.work + (GATE_COST if self.gated else 0.0)) / 2
    return ReadPlan(load, fill / times, self.nest.ranges, Opt(OptOps.WINDOW, self.slot or 0, len(w.pairs)), w)

  def elements_read(self, tile: dict[UOp, int]) -> int:
    """Return the number of different elements (or vectors) of the operand that a tile reads."""
    n = 1
    for r, k in tile.items():
      if r in self.ranges: n *= k
    return n

  def reuse(self, t: RegisterTile) -> int:
    """Return how often a tile's elements are read again by loops that they do not depend on."""
    n = 1
    for r in self.free: n *= max(size_of(r) // (t.repetitions.get(r, 1) * (self.lanes if r is t.vector else 1)), 1)
    return n

  def panel_bytes(self, tile: dict[UOp, int]) -> int:
    """Return the bytes of shared memory of a panel."""
    size = self.lanes * self.staged.dtype.itemsize * self.elements_read(tile)
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

  def cheapest(self, plans: list[ReadPlan], t: RegisterTile, weight: float) -> OperandRead:
    """Return the cheapest plan for a tile. weight: cycles of a load."""
    tile, n = t.repetitions, self.elements_read(t.repetitions)
    streams = 1
    for r in self.streams: streams *= tile.get(r, 1)
    plan = plans[0]
    crowd = max(streams - self.room, 0) * STREAM_COST
    best = OperandRead(n * plan.load + crowd, self.row_cycles(t), plan, n * plan.work)
    cost = (best.issue + best.work) * weight + best.cycles
    for plan in plans[1:]:
      if plan.window is None:
        if self.reuse(t) < STAGE_REUSE or self.panel_bytes(tile) > self.capabilities.local_bytes: continue
      elif self.window_bytes(plan.window, tile) > self.capabilities.local_bytes // 2: continue
      times = 1 if plan.window is not None else n * self.work_items(plan, t).parts
      for r in plan.within: times *= tile.get(r, 1)
      fill = plan.fill * times * self.distinct(plan.window, tile)
      other = OperandRead(n * plan.load, fill, plan, n * plan.work)
      total = (other.issue + other.work) * weight + other.cycles
      if total < cost: best, cost = other, total
    return best

  def near_cycles(self, t: RegisterTile) -> float:
    """Return the cycles of a step's vectors that come from the second-level cache, since the first one does not hold
    what a tile reads."""
    rate = self.capabilities.second_level_rate
    if not rate or t.vector not in self.ranges: return 0.0
    size = self.panel_bytes(t.repetitions) // (self.lanes if is_reduce(t.vector) else 1)    # lanes are terms of the sum
    if size <= self.caches[0] * CACHE_SHARE: return 0.0
    return self.elements_read(t.repetitions) * self.lanes * self.itemsize / rate

  def memory_cycles(self, t: RegisterTile) -> float:
    """Return the cycles of an element and step in which the operand comes from memory for the first time. A small one
    may be in the second cache from an earlier kernel."""
    if self.bytes <= self.caches[1]: return 0.0
    if self.free: return self.itemsize * MEMORY_CYCLES / math.prod(max(size_of(r), 1) for r in self.free)
    return self.itemsize * MEMORY_CYCLES * (1.0 if self._is_one_stream(t) else SCATTERED)

  def _is_one_stream(self, t: RegisterTile) -> bool:
    """Are the elements that a tile reads in an iteration adjacent? Otherwise it reads several rows in turn. The
    innermost loop of the sum may close gaps between lanes, as in pooling."""
    steps = [(abs(self.access.strides.get(r, 0)) * (self.lanes if r is t.vector else 1), n, True)
             for r, n in t.repetitions.items() if n > 1]
    steps.append((abs(self.access.strides.get(t.vector, 0)), self.lanes, True))
    last = max(self.reduce_ranges, key=lambda r: r.arg)
    if last is not t.vector: steps.append((abs(self.access.strides.get(last, 0)), size_of(last), False))
    extent = 1
    for step, n, together in sorted(steps):
      if step <= extent: extent = max(extent, step * n)
      elif together: return False
    return True

  def _far_cycles(self) -> float:
    """Return the cycles in which a vector comes from the third cache; 0 if the second one holds the whole operand."""
    return 0.0 if self.bytes <= self.caches[1] else CACHE_CYCLES * self.lanes * self.itemsize

  def reuse_worth(self, plan: ReadPlan, t: RegisterTile) -> int:
    """Return the steps inside of a work item from which copying takes no more than FILL_SHARE of the time."""
    copying = 2 * plan.fill * math.prod(max(size_of(r), 1) for r in self.free)
    return max(STAGE_REUSE, round(copying * self.elements_read(t.repetitions) / math.prod(t.repetitions.values())
                                  / FILL_SHARE))

  def work_items(self, plan: ReadPlan, t: RegisterTile) -> WorkItems:
    """Return the work items of a kernel with a panel: loops that it does not depend on are cut for idle threads, and
    where that is worth copying it again."""
    items = inside = 1
    for r in self.nest.ranges:
      if r in self.ranges: items *= steps_of(r, t, self.lanes)
      else: inside *= steps_of(r, t, self.lanes)
    threads = self.capabilities.threads
    wanted = min(-(-threads * CHUNKS_PER_THREAD // items), max(-(-2 * threads // items),
                                                               inside // self.reuse_worth(plan, t)))
    parts = max(min(wanted, max(inside // STAGE_REUSE, -(-threads // items)), inside), 1)
    return WorkItems(items * parts, parts)

def steps_of(r: UOp, t: RegisterTile, lanes: int) -> int:
  """Return the number of tiles along a range."""
  return max(-(-size_of(r) // (t.repetitions.get(r, 1) * (lanes if r is t.vector else 1))), 1)

def is_data(u: UOp) -> bool:
  """Does the node compute an element by more than an addition? An addition is free with a multiplication."""
  return (u.op in GroupOp.ALU and u.op is not Ops.ADD and not u.dtype.name.startswith("weak")
          and u.dtype.scalar().itemsize > 1)

def operations_of(u: UOp) -> int:
  """Return the operations of a node on a vector. Widening 16-bit floats takes some; other casts are part of loads."""
  return WIDENING.get(u.src[0].dtype, 0) if u.op is Ops.CAST else int(is_data(u))

def computed(u: UOp) -> dict[UOp, None]:
  """Return the nodes below a value, without those of arrays that another loop has filled."""
  return u.toposort(lambda v: v.op is not Ops.STAGE)
