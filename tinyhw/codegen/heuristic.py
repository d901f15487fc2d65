"""Choose tiles by a small cost model: which range becomes lanes, which become copies in registers, which feed the grid.

The model counts, for one iteration of the innermost loop, what a core issues: fused multiply-adds and other arithmetic, vector loads, broadcasts and
strided loads, per useful lane, and how many independent accumulators hide an addition's latency. It is the same count that DEBUG=7 prints for the
finished code; a choice that it cannot explain is a bug in the model.

Kernels come in three shapes, and each store is looked at by itself:
  elementwise   no reduction inside the innermost loops: lanes along the range that memory walks, a few copies to overlap latencies
  tile          a reduction under all output loops (matmul, convolution, matrix-vector): the search below over lanes and register tiles
  rows          reductions under outer loops only (softmax): each row's reductions and its output loop are vectorised by themselves
"""
from __future__ import annotations
import itertools
from typing import NamedTuple

from tinyhw.codegen.access import Access, access_of
from tinyhw.codegen.grid import ranges_of
from tinyhw.codegen.tiling import Opt, OptOps, is_reduce, size_of
from tinyhw.codegen.workgroup import spread
from tinyhw.machine.target import Capabilities
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

TILE_FACTORS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 14, 16)
STRIDED_COST = 1.5         # of one lane of a strided load, in loads
PAGE_BYTES = 4096          # addresses that differ by a multiple of it compete for the same lines of the first-level cache,
MOST_STREAMS = 4           # of which there are eight; half of them for one operand
STREAM_COST = 4.0          # of each further one, in loads
LEFT_OVER_TERM = 1.0       # of a vector's time: what one term without lanes takes
LOOP_COST = 1.0            # cycles per iteration for counting and branching, shared by all that the iteration does
ADD_LATENCY = 4.0
MOST_OTHER_AXES = 3        # axes that no access is adjacent along, which are tried all the same: an operand can be staged
SHORT_LOOP = 8             # iterations; a reduction loop that is not longer is unrolled
MOST_UNROLLED = 64         # terms of an unrolled body
SHORT_BODY = 24            # operations; longer elementwise bodies need no copies to fill the pipes
STAGE_REUSE = 4            # times that a staged element is read, below which copying it costs more than it saves
MOST_OVERLAP = 1.07        # of a range's iterations, when it is cut into blocks
GATE_COST = 3.0            # of a gate, in loads
FAR_BYTES = 1024           # steps of a loop that are further apart meet a new page every few iterations
FAR_COST = 6.0             # of a vector there, in loads
FAR_SHARED_COST = 2.5      # of an element that all lanes share, in loads
FAR_TOTAL_BYTES = 1 << 15  # if they leave the first-level cache
CHUNKS_PER_THREAD = 8      # work items that each worker should find

class Nest(NamedTuple):
  """One store and what it needs: its ranges, the reductions in its value, all accesses."""
  store: UOp
  ranges: tuple[UOp, ...]
  reduces: list[UOp]
  accesses: list[Access]
  operations: int

def nest_of(store: UOp) -> Nest:
  nodes = store.toposort()
  reduces = [u for u in nodes if u.op is Ops.REDUCE]
  found = [access_of(u) for u in nodes if u.op in (Ops.LOAD, Ops.STORE)]
  return Nest(store, ranges_of(store), reduces, found, sum(u.op in GroupOp.ALU for u in nodes))

def lanes_of(nest: Nest, capabilities: Capabilities) -> int:
  """Lanes of the widest element that is loaded, computed or stored, so that all vectors have one number of lanes."""
  widest = max([u.dtype.itemsize for u in nest.store.toposort() if u.op in GroupOp.Elementwise or u.op in (Ops.LOAD, Ops.REDUCE)
                if u.dtype.itemsize <= 8 and not u.dtype.name.startswith("weak")] + [access.node.src[0].dtype.itemsize for access in nest.accesses])
  return capabilities.vector_bytes // widest

def choose(store: UOp, capabilities: Capabilities) -> tuple[Opt, ...]:
  """The opts for the loops of one store."""
  nest = nest_of(store)
  if capabilities.lanes: return grid(nest, spread(nest, capabilities), capabilities)
  lanes = lanes_of(nest, capabilities)
  if lanes < 2: return grid(nest, (), capabilities)
  nested = {v for u in nest.reduces for v in u.src[0].toposort() if v.op is Ops.REDUCE}
  inner = [u for u in nest.reduces if len(u.ranges) == len(nest.ranges) and u not in nested]
  opts: tuple[Opt, ...]
  if inner: opts = tile(nest, inner, lanes, capabilities)
  elif nest.reduces: opts = rows(nest, lanes, capabilities)
  else: opts = elementwise(nest, nest.ranges, nest.accesses, lanes)
  return grid(nest, opts, capabilities)

# ***** elementwise *****

def elementwise(nest: Nest, ranges: tuple[UOp, ...], accesses: list[Access], lanes: int) -> tuple[Opt, ...]:
  """Lanes where most accesses are adjacent, and copies of short bodies."""
  best, most = None, 0
  for r in ranges:
    if size_of(r) < lanes: continue
    score = sum(lane_score(access, r) for access in accesses)
    if best is None or score >= most: best, most = r, score
  if best is None or most <= 0: return ()
  opts = [Opt(OptOps.VECTOR, best.arg[0], lanes)]
  copies = 4 if nest.operations <= SHORT_BODY else 1
  while copies > 1 and size_of(best) < copies * lanes: copies //= 2
  if copies > 1: opts.append(Opt(OptOps.UPCAST, best.arg[0], copies))
  return tuple(opts)

def lane_score(access: Access, r: UOp) -> int:
  """How welcome lanes along r are to an access: adjacent elements 4 (stores 8), a shared one 1, strided ones -4."""
  stride = access.stride(r)
  if stride == 1: return 8 if access.is_store else 4
  if stride == 0: return -8 if access.is_store else 1
  return -4

# ***** reductions of rows *****

def rows(nest: Nest, lanes: int, capabilities: Capabilities) -> tuple[Opt, ...]:
  """Vectorise each row's reductions along memory, then its output loop."""
  shared = {r for u in nest.reduces for r in u.ranges}
  opts = list(elementwise(nest, tuple(r for r in nest.ranges if r not in shared), [a for a in nest.accesses], lanes))
  done: set[UOp] = set()
  for u in nest.reduces:
    inside = [access_of(v) for v in u.src[0].toposort() if v.op is Ops.LOAD]
    candidates = [r for r in ranges_of(u) if size_of(r) >= lanes and r not in done and all(a.stride(r) in (0, 1) for a in inside)]
    if not candidates: continue
    r = max(candidates, key=lambda r: r.arg)
    done.update(ranges_of(u))
    opts.append(Opt(OptOps.VECTOR, r.arg[0], lanes))
    copies = 4
    while copies > 1 and size_of(r) < copies * lanes: copies //= 2
    if copies > 1: opts.append(Opt(OptOps.UPCAST, r.arg[0], copies))
  return tuple(opts)

# ***** register tiles *****

class Tile(NamedTuple):
  """A candidate: lanes along `vector`, copies by range."""
  vector: UOp
  copies: dict[UOp, int]

class Operand:
  """A load under the reduction as the model sees it: ranges it depends on, and how it is read along each vector axis."""
  __slots__ = ("access", "ranges", "gated", "plain", "far", "free_loops", "reduce_ranges")

  def __init__(self, access: Access, nest: Nest, reduce_ranges: tuple[UOp, ...]):
    self.access, self.reduce_ranges = access, reduce_ranges
    self.ranges = frozenset(access.strides) | access.opaque
    self.gated = len(access.node.src) > 1
    self.plain = access.node.src[0].src[0].op is Ops.PARAM and not gathered(access)
    size = access.node.dtype.itemsize
    steps = [(size_of(r), (access.stride(r) or 0) * size) for r in reduce_ranges]
    self.far = any(step >= FAR_BYTES and n * step > FAR_TOTAL_BYTES for n, step in steps)
    self.free_loops = [r for r in nest.ranges if r not in self.ranges]

  def reuse(self, copies: dict[UOp, int]) -> int:
    """How often a tile's elements are read again by loops that they do not depend on."""
    n = 1
    for r in self.free_loops: n *= max(size_of(r) // copies.get(r, 1), 1)
    return n

  def panel(self, t: Tile, lanes: int) -> int:
    """Bytes of local memory that staging the operand takes."""
    size = lanes * self.access.node.dtype.itemsize
    for r, n in t.copies.items():
      if r in self.ranges: size *= n
    for r in self.reduce_ranges:
      if r in self.ranges: size *= size_of(r)
    return size

  def is_bad(self, vector: UOp) -> bool: return self.access.stride(vector) != 1 or self.gated or self.far

def tile(nest: Nest, inner: list[UOp], lanes: int, capabilities: Capabilities) -> tuple[Opt, ...]:
  """The cheapest tile for the reductions under all loops of a store."""
  most = max(terms_of(u) for u in inner)
  inner = [u for u in inner if terms_of(u) == most]    # the others are small beside it
  reduce_ranges = tuple(dict.fromkeys(r for u in inner for r in ranges_of(u)))
  nodes = dict.fromkeys(v for u in inner for v in u.src[0].toposort())
  loads = [Operand(access_of(v), nest, reduce_ranges) for v in nodes if v.op is Ops.LOAD]
  stores = [a for a in nest.accesses if a.is_store]
  data = [v for v in nodes if v.op in GroupOp.ALU and not v.dtype.name.startswith("weak") and v.dtype.scalar().itemsize > 1]
  body = max(1, sum(v.op is not Ops.ADD for v in data))
  best: tuple[float, Tile] | None = None
  for v in vector_axes(nest, reduce_ranges, loads, stores, lanes):
    for t in candidates(nest, v, lanes, capabilities.vector_registers // len(inner)):
      cost = tile_cost(t, len(inner), loads, stores, body, lanes, capabilities)
      if cost is not None and (best is None or cost < best[0]): best = (cost, t)
  if best is None: return ()
  chosen = best[1]
  opts = [Opt(OptOps.VECTOR, chosen.vector.arg[0], lanes)]
  opts += [Opt(OptOps.UPCAST, r.arg[0], n) for r, n in chosen.copies.items() if n > 1]
  opts += unroll_reduction(chosen, inner, reduce_ranges, body)
  return tuple(opts + stage(nest, chosen, loads, reduce_ranges, lanes, capabilities))

def terms_of(reduce: UOp) -> int:
  """The number of terms of a REDUCE."""
  n = 1
  for r in ranges_of(reduce): n *= max(size_of(r), 1)
  return n

def vector_axes(nest: Nest, reduce_ranges: tuple[UOp, ...], loads: list[Operand], stores: list[Access], lanes: int) -> list[UOp]:
  """Ranges that lanes may run along: long enough, and adjacent in memory for some access, or such that some operand is shared by all lanes."""
  long = [r for r in nest.ranges + reduce_ranges if size_of(r) >= lanes]
  adjacent = [r for r in long if any(a.stride(r) == 1 for a in stores) or any(o.access.strides.get(r) == 1 for o in loads)]
  other = [r for r in nest.ranges if r in long and r not in adjacent and sum(r in o.ranges for o in loads) < len(loads)]
  return adjacent + other[:MOST_OTHER_AXES]

def candidates(nest: Nest, v: UOp, lanes: int, most: int) -> list[Tile]:
  """Copies along up to two output ranges (and along the lanes' own), as many as registers allow."""
  room = {r: size_of(r) // (lanes if r is v else 1) for r in nest.ranges if size_of(r) > 1}
  factors = {r: [n for n in TILE_FACTORS if n <= limit] for r, limit in room.items()}
  out, seen = [Tile(v, {})], set()
  for a, b in itertools.combinations(room, 2) if len(room) > 1 else ((a, a) for a in room):
    for n in factors[a]:
      for m in factors[b] if b is not a else (1,):
        if n * m > most: break
        key = (a, n, b, m) if n > 1 and m > 1 else (a, n) if m == 1 else (b, m)
        if key in seen: continue
        seen.add(key)
        out.append(Tile(v, {a: n, b: m} if b is not a else {a: n}))
  return out

def tile_cost(t: Tile, reductions: int, loads: list[Operand], stores: list[Access], body: int, lanes: int,
              capabilities: Capabilities) -> float | None:
  """Cycles per element and reduction step; None for a tile that does not fit into the registers."""
  vector, tiles = t.vector, t.copies
  copies = 1
  for n in tiles.values(): copies *= n
  accumulators = copies * reductions
  issue, kept = 0.0, 0
  for operand in loads:
    n = streams = 1
    for r, k in tiles.items():
      if r not in operand.ranges: continue
      n *= k
      if (operand.access.strides.get(r, 0) * operand.access.node.dtype.itemsize) % PAGE_BYTES == 0: streams *= k
    if streams > MOST_STREAMS: issue += (streams - MOST_STREAMS) * STREAM_COST
    kept += 1 if n > 4 else n
    issue += n * load_cost(operand, t, lanes, capabilities.local_bytes)
  if accumulators + min(kept, 3) > capabilities.vector_registers: return None
  if not is_reduce(vector) and any(a.stride(vector) != 1 for a in stores): issue += 2.0 * lanes * copies / 64
  arithmetic = copies * body
  latency = ADD_LATENCY / (8 // accumulators) if accumulators < 8 else 0.0
  cycles = max(issue / 2, arithmetic / 2, latency, (issue + arithmetic) / 4) + LOOP_COST / 2
  waste = 1.0
  for r in dict.fromkeys((vector, *tiles)):
    waste *= wasted(r, tiles.get(r, 1), lanes if r is vector else 1)
  return cycles * waste / (copies * lanes)

def wasted(r: UOp, copies: int, lanes: int) -> float:
  """What a tile does along a range, over what there is to do: the last tile overlaps, a reduction's left-over terms have no lanes."""
  n = size_of(r)
  if is_reduce(r): return (n // lanes + n % lanes * LEFT_OVER_TERM) * lanes / n
  return -(-n // (copies * lanes)) * copies * lanes / n

def load_cost(operand: Operand, t: Tile, lanes: int, local_bytes: int) -> float:
  """Loads that one copy of an operand costs: 1 if adjacent or shared; a staged one has been copied before; else one per lane."""
  stride = operand.access.stride(t.vector)
  gate = GATE_COST if operand.gated else 0.0
  if stride == 0: return (FAR_SHARED_COST if operand.far and not is_reduce(t.vector) else 1.0) + gate
  if t.vector in operand.ranges and not is_reduce(t.vector) and operand.plain and operand.is_bad(t.vector):
    reuse = operand.reuse(t.copies) if operand.panel(t, lanes) <= local_bytes else 0
    aligned = stride is not None and stride * operand.access.node.dtype.itemsize % PAGE_BYTES == 0
    copying = 2.0 + gate if stride == 1 else STRIDED_COST * lanes * (4 if aligned else 1)
    if reuse >= STAGE_REUSE: return 1.0 + copying / reuse
  if stride == 1: return (FAR_COST if operand.far and not is_reduce(t.vector) else 1.0) + gate
  return STRIDED_COST * lanes + gate * lanes

def unroll_reduction(t: Tile, inner: list[UOp], reduce_ranges: tuple[UOp, ...], body: int) -> list[Opt]:
  """Copies of a short reduction body: more accumulators when there are few, less counting otherwise."""
  copies = len(inner)
  for n in t.copies.values(): copies *= n
  last = t.vector if is_reduce(t.vector) else max(reduce_ranges, key=lambda r: r.arg)
  if last is not t.vector and 1 < size_of(last) <= SHORT_LOOP and size_of(last) * copies <= MOST_UNROLLED:
    return [Opt(OptOps.UPCAST, last.arg[0], size_of(last))]   # the end of a loop that is this short is mispredicted each time
  if copies >= 8 and body * copies > SHORT_BODY // 2: return []
  wanted = 1
  while wanted * copies < 8: wanted *= 2
  lanes = 1 if last is not t.vector else 8
  while wanted > 1 and size_of(last) < wanted * lanes * 2: wanted //= 2
  return [Opt(OptOps.UPCAST, last.arg[0], wanted)] if wanted > 1 else []

# ***** local memory *****

def stage(nest: Nest, t: Tile, loads: list[Operand], reduce_ranges: tuple[UOp, ...], lanes: int, capabilities: Capabilities) -> list[Opt]:
  """Copy the operand that lanes run along to local memory, where it is adjacent, if it is read badly where it is and read often."""
  if is_reduce(t.vector): return []
  for operand in loads:
    if t.vector not in operand.ranges or not operand.plain or not operand.is_bad(t.vector): continue
    if operand.reuse(t.copies) >= STAGE_REUSE and operand.panel(t, lanes) <= capabilities.local_bytes:
      free = [r for r in operand.free_loops if size_of(r) // t.copies.get(r, 1) > 1]
      return [Opt(OptOps.STAGE, operand.access.node.src[0].src[0].arg[0])] + stage_grid(nest, t, free, lanes, capabilities)
  return []

def gathered(access: Access) -> bool: return any(u.op is Ops.LOAD for u in access.node.src[0].src[1].toposort())

def stage_grid(nest: Nest, t: Tile, free: list[UOp], lanes: int, capabilities: Capabilities) -> list[Opt]:
  """The grid of a kernel that stages: loops that the staged operand does not depend on stay inside, except for what the grid still needs."""
  items, opts = 1, []
  for r in nest.ranges:
    factor = t.copies.get(r, 1) * (lanes if r is t.vector else 1)
    if r in free or size_of(r) // factor <= 1: continue
    opts.append(Opt(OptOps.GRID, r.arg[0]))
    items *= size_of(r) // factor
  wanted = capabilities.threads * CHUNKS_PER_THREAD
  inside = 1
  for r in free: inside *= steps_of(r, t)
  for r in free:
    if items >= wanted: break
    parts = parts_of(r, t, -(-wanted // items), inside)
    if parts == 1: continue
    opts += [Opt(OptOps.BLOCK, r.arg[0], -(-steps_of(r, t) // parts)), Opt(OptOps.GRID, r.arg[0])]
    items, inside = items * parts, inside // parts
  return opts

def steps_of(r: UOp, t: Tile) -> int:
  """Tiles along a range that has no lanes."""
  return -(-size_of(r) // t.copies.get(r, 1))

def parts_of(r: UOp, t: Tile, wanted: int, inside: int) -> int:
  """Into how many blocks a loop over tiles is cut: as many as wanted, or as can be with little overlap and enough reuse inside of a block."""
  loops, copies = steps_of(r, t), t.copies.get(r, 1)
  best = 1
  for parts in range(2, loops + 1):
    if inside // parts < STAGE_REUSE: break
    if parts * -(-loops // parts) * copies > MOST_OVERLAP * size_of(r): continue
    best = parts
    if parts >= wanted: break
  return best

# ***** the grid *****

def grid(nest: Nest, opts: tuple[Opt, ...], capabilities: Capabilities) -> tuple[Opt, ...]:
  """Outer output loops become the grid until there is work for everybody. A loop under which a row's reduction stands is left inside."""
  if any(o.op is OptOps.STAGE for o in opts): return opts
  outer = [r for r in nest.ranges if all(r in u.ranges for u in nest.reduces)] if nest.reduces else list(nest.ranges)
  out = list(opts)
  items = 1
  for r in outer:
    factor = 1
    for o in opts:
      if o.axis == r.arg[0]: factor *= o.amount
    n = size_of(r)
    if n and n // factor <= 1: continue
    if n == 0 and (items > 1 or len(outer) > 1): continue
    out.append(Opt(OptOps.GRID, r.arg[0]))
    items *= max(n // factor, 1)
    if items >= capabilities.threads * CHUNKS_PER_THREAD: break
  return tuple(out)
