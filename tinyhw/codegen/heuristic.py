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
from tinyhw.machine.target import Capabilities
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

TILE_FACTORS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 14, 16)
STRIDED_COST = 1.5         # of one lane of a strided load, in loads
LOOP_COST = 1.0            # cycles per iteration for counting and branching, shared by all that the iteration does
ADD_LATENCY = 4.0
SHORT_BODY = 24            # operations; longer elementwise bodies need no copies to fill the pipes
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
  lanes = lanes_of(nest, capabilities)
  if lanes < 2: return grid(nest, (), capabilities)
  inner = [u for u in nest.reduces if len(u.ranges) == len(nest.ranges) and not any(u in other.src[0].toposort() for other in nest.reduces if other is not u)]
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

def tile(nest: Nest, inner: list[UOp], lanes: int, capabilities: Capabilities) -> tuple[Opt, ...]:
  """The cheapest tile for the reductions under all loops of a store."""
  reduce_ranges = tuple(dict.fromkeys(r for u in inner for r in ranges_of(u)))
  loads = [access_of(v) for v in dict.fromkeys(v for u in inner for v in u.src[0].toposort()) if v.op is Ops.LOAD]
  stores = [a for a in nest.accesses if a.is_store]
  body = max(1, sum(v.op in GroupOp.ALU and v.op is not Ops.ADD for u in inner for v in u.src[0].toposort() if not v.dtype.name.startswith("weak")))
  best: tuple[float, Tile] | None = None
  for t in candidates(nest, reduce_ranges, lanes):
    cost = tile_cost(t, inner, loads, stores, body, lanes, capabilities)
    if cost is not None and (best is None or cost < best[0]): best = (cost, t)
  if best is None: return ()
  chosen = best[1]
  opts = [Opt(OptOps.VECTOR, chosen.vector.arg[0], lanes)]
  opts += [Opt(OptOps.UPCAST, r.arg[0], n) for r, n in chosen.copies.items() if n > 1]
  return tuple(opts + unroll_reduction(chosen, inner, reduce_ranges, body))

def candidates(nest: Nest, reduce_ranges: tuple[UOp, ...], lanes: int) -> list[Tile]:
  """Lanes along any range that is long enough; copies along up to two output ranges (and along the lanes' own)."""
  out = []
  vectors = [r for r in nest.ranges + reduce_ranges if size_of(r) >= lanes]
  for v in vectors:
    axes = [r for r in nest.ranges if size_of(r) > 1]
    pairs = list(itertools.combinations(axes, 2)) or [(a,) for a in axes] or [()]
    seen: set[tuple[tuple[int, int], ...]] = set()
    for pair in pairs:
      for factors in itertools.product(TILE_FACTORS, repeat=len(pair)):
        copies = dict(zip(pair, factors))
        key = tuple(sorted((r.arg[0], n) for r, n in copies.items() if n > 1))
        if key in seen: continue
        seen.add(key)
        if all(size_of(r) >= n * (lanes if r is v else 1) for r, n in copies.items()): out.append(Tile(v, copies))
  return out

def covered(r: UOp, amount: int) -> float:
  """The share of a range's iterations that a factor's multiples reach; the rest is done by slower code."""
  n = size_of(r)
  return (n - n % amount) / n

def tile_cost(t: Tile, inner: list[UOp], loads: list[Access], stores: list[Access], body: int, lanes: int, capabilities: Capabilities) -> float | None:
  """Cycles per element and reduction step; None for a tile that does not fit into the registers."""
  copies = 1
  for n in t.copies.values(): copies *= n
  accumulators = copies * len(inner)
  issue, kept = 0.0, 0
  for access in loads:
    n = 1
    for r, k in t.copies.items():
      if access.depends(r): n *= k
    stride = access.stride(t.vector)
    cost = 1.0 if stride in (0, 1) else STRIDED_COST * lanes
    if stride == 0 and n == 1 and not any(access.depends(r) for r in (t.vector,)): kept += 1
    else: kept += 1 if n > 4 else n
    issue += n * cost
  if accumulators + min(kept, 3) > capabilities.vector_registers: return None
  if t.vector in t.copies or not is_reduce(t.vector):
    if any(a.stride(t.vector) != 1 for a in stores): issue += 2.0 * lanes * copies / 64
  arithmetic = copies * body
  cycles = max(issue / 2, arithmetic / 2, ADD_LATENCY / max(1, min(8, 8 // max(1, accumulators))) if accumulators < 8 else 0.0, (issue + arithmetic) / 4) + LOOP_COST / 2
  useful = copies * lanes
  share = covered(t.vector, lanes * t.copies.get(t.vector, 1))
  for r, n in t.copies.items():
    if r is not t.vector: share *= covered(r, n)
  slow = 4.0 if not is_reduce(t.vector) else 2.0
  return cycles / useful * (share + (1 - share) * slow)

def unroll_reduction(t: Tile, inner: list[UOp], reduce_ranges: tuple[UOp, ...], body: int) -> list[Opt]:
  """Copies of a short reduction body: more accumulators when there are few, less counting otherwise."""
  copies = len(inner)
  for n in t.copies.values(): copies *= n
  last = t.vector if is_reduce(t.vector) else max(reduce_ranges, key=lambda r: r.arg)
  if copies >= 8 and body * copies > SHORT_BODY // 2: return []
  wanted = 1
  while wanted * copies < 8: wanted *= 2
  lanes = 1 if last is not t.vector else 8
  while wanted > 1 and size_of(last) < wanted * lanes * 2: wanted //= 2
  return [Opt(OptOps.UPCAST, last.arg[0], wanted)] if wanted > 1 else []

# ***** the grid *****

def grid(nest: Nest, opts: tuple[Opt, ...], capabilities: Capabilities) -> tuple[Opt, ...]:
  """Outer output loops become the grid until there is work for everybody. A loop under which a row's reduction stands is left inside."""
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
