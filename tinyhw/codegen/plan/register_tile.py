"""Choose a register tile for the reductions under all loops of a store: lanes along one loop, copies along others,
operands staged or not.

The model counts, for one iteration of the innermost loop, what a core issues: multiply-adds and other arithmetic, and
for each operand what reading it costs, in loads. There are three ways to read an operand, of which the cheapest is
taken:
  where it is     a load; dear if lanes are not adjacent, if it has a gate, or if steps of the loop are far apart
  from a panel    STAGE: copied for a tile, in the order in which the reduction reads it; loops that it does not depend
                  on use it again
  from a window   WINDOW: what several outputs read of it, copied once; see window.py
What copying costs is shared by the iterations between two copies.
"""
from __future__ import annotations
import itertools
import math
from typing import TYPE_CHECKING

from tinyhw.codegen.kernel.access import access_of
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.transform.tiling import LEAST_LANES, Opt, OptOps, cuts_of, is_reduce, size_of, width_along
from tinyhw.codegen.transform.window import Pair, Window, values_from, window_of
from tinyhw.machine.ir.target import Capabilities
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

if TYPE_CHECKING:
  from tinyhw.codegen.plan.heuristic import Nest

TILE_FACTORS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16)
STRIDED_COST = 1.5         # of one lane of a strided load, in loads
PAGE_BYTES = 4096          # addresses that differ by a multiple of it compete for the same lines of the first-level
                           # cache: its bytes / PAGE_BYTES
SMALL_CACHE = 32 * 1024    # bytes of the first-level cache where that is not known
OTHER_STREAMS = 4          # of these lines, which other operands and the stack need
STREAM_COST = 4.0          # of each operand's line that finds no room, in loads
MOST_STREAMS = 4           # places far apart at which memory is read in turn, when each element is read once: more are
                           # slower by 4 to 8 %
HIDDEN = 0.1               # of what is issued beside the bottleneck: how much of it is not hidden
PANEL_COST = 1.5           # of a vector of a panel, which comes from the second-level cache, in loads
LOOP_COST = 1.0            # cycles per iteration for counting and branching, shared by all that the iteration does
ADD_LATENCY = 4.0          # cycles that accumulators must hide
MOST_OTHER_AXES = 3        # axes that no access is adjacent along, which are tried all the same: an operand can be
                           # staged
SHORT_LOOP = 8             # iterations; a reduction loop that is not longer is unrolled
MOST_UNROLLED = 100        # terms of an unrolled body
SHARED_ALIVE = 0.5         # of the elements that an unrolled body's iterations share: how many are in registers at a
                           # time
EXIT_COST = 10.0           # cycles for the end of a short loop that is not unrolled: it is mispredicted
SHORT_BODY = 24            # operations; a longer body needs no copies to hide what counting costs
STAGE_REUSE = 4            # times that a staged element is read, below which copying it costs more than it saves
FILL_SHARE = 0.1           # of the time that copying may take where the grid has work for all threads
MOST_OVERLAP = 1.1         # of a range's iterations, when it is cut into blocks
GATE_COST = 3.0            # of a gate, in loads
FAR_BYTES = 1024           # steps of a loop that are further apart meet a new page every few iterations
FAR_COST = 6.0             # of a vector there, in loads
FAR_SHARED_COST = 2.5      # of an element that all lanes share, in loads
FAR_TOTAL_BYTES = 1 << 15  # if they leave the first-level cache
COPY_COST = 3.0            # of copying a vector of adjacent elements, in loads; a gate's besides
SET_CONFLICT = 4.0         # times that copying strided elements takes longer if their addresses differ by multiples of
                           # a page
STORE_LANE_COST = 2.0      # of storing a lane by itself, in loads
FOLD_COST = 2.0            # of adding half of a register's lanes to the others, after the loop, in loads
STORE_STREAM_COST = 20.0   # of storing to one more page, in loads; places that are less than that apart share it
TWICE_COST = 1.002         # of a tile that is larger than its range, whose vectors overlap: what is as good without
                           # that is taken
LINE_BYTES = 64            # a vector that is not aligned to its size meets two lines that often: bytes / LINE_BYTES
CHUNKS_PER_THREAD = 8      # work items that each worker should find

class Tile(NamedTuple):
  """A candidate: lanes along `vector`, copies by range."""
  vector: UOp
  copies: dict[UOp, int]

class Way(NamedTuple):
  """How to read an operand. load: of a copy, in loads. fill: of copying it to local memory, in loads for one iteration
  of the innermost loop, times the tile's copies along `within`, times its copies of the operand for a panel. opt: None
  where nothing is staged."""
  load: float
  fill: float = 0.0
  within: tuple[UOp, ...] = ()
  opt: Opt | None = None
  window: Window | None = None

class Operand:
  """A load under the reduction as the model sees it."""
  def __init__(self, load: UOp, body: UOp, nest: Nest, reduce_ranges: tuple[UOp, ...], lanes: int,
               capabilities: Capabilities):
    self.access = access_of(load)
    self.nest, self.reduce_ranges, self.lanes, self.capabilities = nest, reduce_ranges, lanes, capabilities
    self.ranges = frozenset(self.access.strides) | self.access.opaque
    self.itemsize = load.dtype.itemsize
    self.slot = load.src[0].src[0].arg[0] if load.src[0].src[0].op is Ops.PARAM else None
    self.gated = len(load.src) > 1
    self.gathered = any(u.op is Ops.LOAD for u in load.src[0].src[1].toposort())
    self.far = self._far()
    self.room = max(max(capabilities.cache_bytes[:1], default=SMALL_CACHE) // PAGE_BYTES - OTHER_STREAMS, 1)
    self.free = [r for r in nest.ranges if r not in self.ranges]
    self.streams = [r for r in nest.ranges if r in self.ranges
                    and self._is_stream(self.access.strides.get(r, 0) * self.itemsize)]
    if not self.free: self.room = min(self.room, MOST_STREAMS)
    self.value = values_from(load, body)[-1]
    self.work = float(sum(is_data(v) for v in self.value.toposort()))     # what is computed of an element alone
    self.pairs: tuple[Pair, ...] = ()     # of the largest window, whether it fits or not
    self.windows = self._windows(body) if self.slot is not None and not self.gathered else []
    # of each window: bytes, and the loops outside of it
    self.sizes = {w: (w.elements(lanes) * self.itemsize, set(w.value.ranges).difference(w.closed))
                  for w in self.windows}

  def _is_stream(self, step: int) -> bool:
    """Do elements so many bytes apart compete for a line of the cache, or, where each is read once, for what fetches
    ahead?"""
    return step % PAGE_BYTES == 0 or not self.free and abs(step) >= PAGE_BYTES

  def _far(self) -> float:
    """How often a step of the reduction's loops goes far, in iterations of the innermost one."""
    inner, share = 1, 0.0
    for r in reversed(self.reduce_ranges):
      step = abs(self.access.strides.get(r, 0)) * self.itemsize
      if step >= FAR_BYTES and size_of(r) * step > FAR_TOTAL_BYTES: share = max(share, 1 / inner)
      inner *= max(size_of(r), 1)
    return share

  def _windows(self, body: UOp) -> list[Window]:
    """Windows that fit into half of local memory, the one that closes fewest loops first."""
    whole = window_of(self.access, body, self.nest.ranges, self.reduce_ranges)
    if whole is None: return []
    self.pairs = whole.pairs
    cut = [whole.closing(n) for n in range(1, len(whole.pairs) + 1)]
    return [w for w in cut if w.elements(self.lanes) * self.itemsize <= self.capabilities.local_bytes // 2]

  def ways(self, vector: UOp) -> list[Way]:
    """The ways to read it with lanes along a range."""
    found = [Way(self.direct_cost(vector) + self.work)]
    if self.slot is None or self.gathered: return found
    if vector in self.ranges and not is_reduce(vector): found.append(self._panel(vector))
    return found + [way for w in self.windows if (way := self._window(w, vector)) is not None]

  def direct_cost(self, vector: UOp) -> float:
    """Of a copy where it is, in loads."""
    gate = GATE_COST if self.gated else 0.0
    if vector not in self.ranges: return 1.0 + self.far * (FAR_SHARED_COST - 1.0) + gate
    if self.access.strides.get(vector) != 1: return (STRIDED_COST + gate) * self.lanes
    return self._crossing(vector) + (0.0 if is_reduce(vector) else self.far * (FAR_COST - 1.0)) + gate

  def _crossing(self, vector: UOp) -> float:
    """Loads of a vector of adjacent elements: two lines for many of them, unless they are aligned."""
    aligned = all(c % self.lanes == 0 for r, c in self.access.strides.items() if r is not vector)
    return 1.0 if aligned else 1.0 + self.lanes * self.itemsize / LINE_BYTES

  def _panel(self, vector: UOp) -> Way:
    stride = self.access.strides.get(vector, 0)
    gate = GATE_COST if self.gated else 0.0
    conflict = SET_CONFLICT if stride * self.itemsize % PAGE_BYTES == 0 else 1.0
    copying = COPY_COST + gate if stride == 1 else (STRIDED_COST + gate) * self.lanes * conflict
    reuse = math.prod(max(size_of(r), 1) for r in self.free)
    return Way(PANEL_COST + self.work, copying / reuse, tuple(self.free), Opt(OptOps.STAGE, self.slot or 0))

  def _window(self, w: Window, vector: UOp) -> Way | None:
    """None where lanes would run along a loop outside of the window."""
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
    return Way(load, fill / times, self.nest.ranges, Opt(OptOps.WINDOW, self.slot or 0, len(w.pairs)), w)

  def copies(self, tile: dict[UOp, int]) -> int:
    """Different elements (or vectors) that a tile reads of it."""
    n = 1
    for r, k in tile.items():
      if r in self.ranges: n *= k
    return n

  def reuse(self, tile: dict[UOp, int]) -> int:
    """How often a tile's elements are read again by loops that they do not depend on."""
    n = 1
    for r in self.free: n *= max(size_of(r) // tile.get(r, 1), 1)
    return n

  def panel_bytes(self, tile: dict[UOp, int]) -> int:
    """Of local memory that a panel takes."""
    size = self.lanes * self.itemsize * self.copies(tile)
    for r in self.reduce_ranges:
      if r in self.ranges: size *= size_of(r)
    return size

  def window_bytes(self, window: Window, tile: dict[UOp, int]) -> int:
    """Of local memory that a window takes, with the tile's copies that it does not close."""
    size, outside = self.sizes[window]
    for r, n in tile.items():
      if r in outside: size *= n
    return size

  def distinct(self, window: Window | None, tile: dict[UOp, int]) -> float:
    """How much of what a tile's copies want of a window is not the same: neighbouring rows of an image share theirs,
    where the window has no loop for them."""
    share = 1.0
    if window is None: return share
    for p in self.pairs[len(window.pairs):]:
      n, k = tile.get(p.output, 1), size_of(p.inner)
      if n > 1: share *= min(1.0, ((n - 1) * p.step + (k - 1) * p.dilation + 1) / (n * k))
    return share

  def cheapest(self, ways: list[Way], tile: dict[UOp, int]) -> tuple[float, Way]:
    """The way that costs a tile least, in loads for an iteration."""
    n = self.copies(tile)
    best, cost = ways[0], n * ways[0].load
    streams = 1
    for r in self.streams: streams *= tile.get(r, 1)
    if streams > self.room: cost += (streams - self.room) * STREAM_COST
    for way in ways[1:]:
      if way.window is None:
        if self.reuse(tile) < STAGE_REUSE or self.panel_bytes(tile) > self.capabilities.local_bytes: continue
      elif self.window_bytes(way.window, tile) > self.capabilities.local_bytes // 2: continue
      times = 1 if way.window is not None else n
      for r in way.within: times *= tile.get(r, 1)
      other = n * way.load + way.fill * times * self.distinct(way.window, tile)
      if other < cost: best, cost = way, other
    return cost, best

class Model:
  """What tiles of one store cost whose vectors have so many lanes."""
  def __init__(self, nest: Nest, reduces: list[UOp], lanes: int, capabilities: Capabilities):
    self.nest, self.lanes, self.capabilities = nest, lanes, capabilities
    self.terms = max(terms_of(u) for u in reduces)
    self.reduces = [u for u in reduces if terms_of(u) == self.terms]    # the others are small beside it
    self.reduce_ranges = tuple(dict.fromkeys(r for u in self.reduces for r in ranges_of(u)))
    self.last = max(self.reduce_ranges, key=lambda r: r.arg)
    bodies = {v: u.src[0] for u in self.reduces for v in u.src[0].toposort()}
    self.loads = [Operand(v, body, nest, self.reduce_ranges, lanes, capabilities) for v, body in bodies.items()
                  if v.op is Ops.LOAD]
    self.stores = [a for a in nest.accesses if a.is_store]
    self.pages: dict[UOp, float] = {}     # how much of a page is between stores of neighbouring iterations, which are
                                          # adjacent in no loop of these
    for a in self.stores:
      for r, c in a.strides.items():
        if abs(c) != 1:
          self.pages[r] = max(self.pages.get(r, 0.0), min(abs(c) * a.node.src[0].dtype.itemsize / PAGE_BYTES, 1.0))
    alone = {v for o in self.loads for v in o.value.toposort()}
    self.body = max(1, sum(is_data(v) and v not in alone for v in bodies))

  def cost(self, t: Tile, ways: list[list[Way]], limit: float = math.inf) -> float | None:
    """Cycles per element and reduction step; None for a tile that does not fit into the registers, or whose arithmetic
    alone reaches the limit."""
    copies = math.prod(t.copies.values())
    accumulators = copies * len(self.reduces)
    read = [operand.copies(t.copies) for operand in self.loads]
    # all but one operand are kept
    if accumulators + sum(read) - max(read, default=0) + 1 > self.capabilities.vector_registers: return None
    waste = 1.0
    for r in dict.fromkeys((t.vector, *t.copies)):
      waste *= wasted(r, t.copies.get(r, 1), self.lanes if r is t.vector else 1)
    if t.copies.get(t.vector, 1) * self.lanes > size_of(t.vector): waste *= TWICE_COST
    share = waste / (copies * self.lanes)
    arithmetic = copies * self.body
    latency = ADD_LATENCY / (8 // accumulators) if accumulators < 8 else 0.0
    loop = self.loop_cost(t, accumulators)
    if (max(arithmetic / 2, latency) + loop) * share >= limit: return None
    issue = sum(operand.cheapest(mine, t.copies)[0] for operand, mine in zip(self.loads, ways))
    if not is_reduce(t.vector) and any(a.stride(t.vector) != 1 for a in self.stores):
      issue += STORE_LANE_COST * self.lanes * copies / self.terms
    issue += STORE_STREAM_COST * self.streams(t) / self.terms
    if is_reduce(t.vector): issue += FOLD_COST * accumulators * self.lanes / self.terms * math.log2(self.lanes)
    return (max(issue / 2, arithmetic / 2, latency, (issue + arithmetic) / 4) + HIDDEN * issue + loop) * share

  def streams(self, t: Tile) -> float:
    """Pages that a tile is stored to, besides the first."""
    n = 1.0 + (self.lanes - 1) * self.pages.get(t.vector, 0.0)
    for r, k in t.copies.items(): n *= 1.0 + (k - 1) * self.pages.get(r, 0.0)
    return n - 1.0

  def short_loop(self, vector: UOp) -> int:
    """The iterations of the innermost loop if they are few, else 0."""
    return size_of(self.last) if self.last is not vector and 1 < size_of(self.last) <= SHORT_LOOP else 0

  def unrolls(self, t: Tile, short: int, accumulators: int) -> bool:
    """Is a short innermost loop unrolled?

    Not where what its iterations share would take the accumulators' registers.
    """
    if not 0 < short * accumulators <= MOST_UNROLLED: return False
    pairs = [p for o in self.loads for p in (o.windows[-1].pairs if o.windows else ()) if p.inner is self.last
             and t.copies.get(p.output, 1) > 1]
    shared = sum(t.copies[p.output] + short - 1 for p in pairs)
    return accumulators + 2 + SHARED_ALIVE * shared <= self.capabilities.vector_registers

  def loop_cost(self, t: Tile, accumulators: int) -> float:
    """Cycles per iteration that counting and branching take."""
    short = self.short_loop(t.vector)
    if not short: return LOOP_COST / 2
    return LOOP_COST / 2 / short if self.unrolls(t, short, accumulators) else LOOP_COST / 2 + EXIT_COST / short

  def best(self, axes: list[UOp], limit: float = math.inf) -> tuple[float, Tile] | None:
    """The cheapest tile with lanes along one of these ranges, and what it costs; None if none costs less than the
    limit."""
    found: tuple[float, Tile] | None = None
    for v in self.vector_axes(axes):
      ways = [operand.ways(v) for operand in self.loads]
      for t in candidates(self.nest, v, self.lanes, self.capabilities.vector_registers // len(self.reduces)):
        cost = self.cost(t, ways, limit)
        if cost is not None and cost < limit: found, limit = (cost, t), cost
    return found

  def vector_axes(self, long: list[UOp]) -> list[UOp]:
    """Those of long enough ranges along which lanes may be: adjacent in memory for some access, or such that some
    operand is shared by all lanes."""
    adjacent = [r for r in long if any(a.stride(r) == 1 for a in self.stores)
                or any(o.access.strides.get(r) == 1 for o in self.loads)]
    other = [r for r in self.nest.ranges if r in long and r not in adjacent and sum(r in o.ranges for o in self.loads)
             < len(self.loads)]
    return adjacent + other[:MOST_OTHER_AXES]

def tile(nest: Nest, reduces: list[UOp], lanes: int, capabilities: Capabilities) -> tuple[Opt, ...]:
  """The opts of the cheapest tile for the reductions under all loops of a store.

  Lanes along a short range fill a part of a register.
  """
  by_width: dict[int, list[UOp]] = {lanes: []}
  for r in (*nest.ranges, *dict.fromkeys(r for u in reduces for r in ranges_of(u))):
    if size_of(r) >= min(lanes, LEAST_LANES): by_width.setdefault(width_along(r, lanes), []).append(r)
  best: tuple[float, Tile] | None = None
  for width, axes in sorted(by_width.items(), reverse=True):
    if not axes: continue
    tried = Model(nest, reduces, width, capabilities)
    found = tried.best(axes, math.inf if best is None else best[0])
    if found is not None: best, model = found, tried
  if best is None: return ()
  chosen = best[1]
  opts = [Opt(OptOps.VECTOR, chosen.vector.arg[0], model.lanes)]
  opts += [Opt(OptOps.UPCAST, r.arg[0], n) for r, n in chosen.copies.items() if n > 1]
  opts += unroll_reduction(chosen, model)
  return tuple(opts + stage(model, chosen))

def is_data(u: UOp) -> bool:
  """Does it compute an element, other than by an addition, which a multiplication takes with it?"""
  return (u.op in GroupOp.ALU and u.op is not Ops.ADD and not u.dtype.name.startswith("weak")
          and u.dtype.scalar().itemsize > 1)

def terms_of(reduce: UOp) -> int:
  """The number of terms of a REDUCE."""
  n = 1
  for r in ranges_of(reduce): n *= max(size_of(r), 1)
  return n

def candidates(nest: Nest, v: UOp, lanes: int, most: int) -> list[Tile]:
  """Copies along up to two output ranges (and along the lanes' own), as many as registers allow; large tiles, the
  likely ones, first."""
  room = {r: size_of(r) // (lanes if r is v else 1) for r in nest.ranges if size_of(r) > 1}
  # the last vector of a tile for the whole range overlaps the one before
  if v in room and not nest.in_place: room[v] = -(-size_of(v) // lanes)
  factors = {r: [n for n in TILE_FACTORS if n <= limit] for r, limit in room.items()}
  out, seen = [], set()
  if not room: return [Tile(v, {})]
  for a, b in itertools.combinations(room, 2) if len(room) > 1 else ((a, a) for a in room):
    for n in factors[a]:
      for m in factors[b] if b is not a else (1,):
        if n * m > most: break
        key = frozenset((r, k) for r, k in ((a, n), (b, m)) if k > 1)
        if key in seen: continue
        seen.add(key)
        out.append(Tile(v, {a: n, b: m} if b is not a else {a: n}))
  return sorted(out, key=lambda t: math.prod(t.copies.values()), reverse=True)

def wasted(r: UOp, copies: int, lanes: int) -> float:
  """What a tile does along a range, over what there is to do: the last tile overlaps, a reduction's left-over terms
  have fewer lanes."""
  n = size_of(r)
  if is_reduce(r): return (n // lanes + sum(steps for steps, _ in cuts_of(n % lanes, lanes))) * lanes / n
  return -(-n // (copies * lanes)) * copies * lanes / n

def unroll_reduction(t: Tile, model: Model) -> list[Opt]:
  """Copies of a short reduction body: more accumulators when there are few, less counting otherwise."""
  copies = len(model.reduces) * math.prod(t.copies.values())
  if model.unrolls(t, model.short_loop(t.vector), copies):
    return [Opt(OptOps.UPCAST, model.last.arg[0], size_of(model.last))]
  last = t.vector if is_reduce(t.vector) else model.last
  if copies >= 8 and model.body * copies > SHORT_BODY // 2: return []
  wanted = 1
  while wanted * copies < 8: wanted *= 2
  lanes = 1 if last is not t.vector else 8
  while wanted > 1 and size_of(last) < wanted * lanes * 2: wanted //= 2
  return [Opt(OptOps.UPCAST, last.arg[0], wanted)] if wanted > 1 else []

# ***** local memory *****

def stage(model: Model, t: Tile) -> list[Opt]:
  """What the chosen ways of reading operands copy to local memory, and a grid that keeps copies worth their cost."""
  if is_reduce(t.vector): return []
  ways = [(o, o.cheapest(o.ways(t.vector), t.copies)[1]) for o in model.loads]
  opts = list(dict.fromkeys(way.opt for _, way in ways if way.opt is not None))
  if not opts: return []
  panels = [(o, way) for o, way in ways if way.opt is not None and way.window is None]
  windows = [way.window for _, way in ways if way.window is not None]
  closed = {r for w in windows for r in w.closed}
  if not panels:
    return opts + stage_grid(model, t, {r for w in windows for r in w.value.ranges} - closed, closed, STAGE_REUSE)
  operand, way = panels[0]
  worth = (way.fill * math.prod(max(size_of(r), 1) for r in operand.free)
           * operand.copies(t.copies) / math.prod(t.copies.values()) / FILL_SHARE)
  return opts + stage_grid(model, t, set(operand.ranges), closed, max(STAGE_REUSE, round(worth)))

def stage_grid(model: Model, t: Tile, outside: set[UOp], closed: set[UOp], reuse: int) -> list[Opt]:
  """The grid of a kernel that stages. outside: loops that the staged operand depends on; others stay inside, except for
  what the grid still needs, and those that a window closes stay there in any case. reuse: steps inside, below which a
  copy is made only for a thread that would be idle."""
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

def steps_of(r: UOp, t: Tile, lanes: int) -> int:
  """Tiles along a range."""
  return -(-size_of(r) // (t.copies.get(r, 1) * (lanes if r is t.vector else 1)))

def parts_of(r: UOp, t: Tile, lanes: int, wanted: int, inside: int) -> int:
  """Into how many blocks a loop over tiles is cut: as many as wanted, or as can be with little overlap and enough
  reuse inside of a block."""
  loops = steps_of(r, t, lanes)
  covered = t.copies.get(r, 1) * (lanes if r is t.vector else 1)
  best = 1
  for parts in range(2, min(loops, wanted) + 1):
    if inside // parts < STAGE_REUSE: break
    if parts * -(-loops // parts) * covered > MOST_OVERLAP * loops * covered: continue
    best = parts
  return best
