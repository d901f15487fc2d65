"""Choose the opts of a kernel's loops: which range becomes lanes, which ranges are unrolled into registers, which form
the grid.

Each store is handled by itself. Kernels come in three shapes:
    elementwise   no reduction inside the innermost loops: lanes along the contiguous range, a few repetitions to
                  overlap latencies
    tile          a reduction under all output loops (matmul, convolution, matrix-vector): a search over lanes and
                  register tiles (register_tile.py)
    rows          reductions under outer loops only (softmax), or reductions that need each other (variance): each
                  reduction and the output loop get lanes of their own
"""
from __future__ import annotations
import math

from tinyhw.codegen.kernel.access import StridedAccess, access_of
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.plan.loop_order import ordered, steps_by_range
from tinyhw.codegen.plan.reads import CHUNKS_PER_THREAD, PAGE_BYTES
from tinyhw.codegen.plan.register_tile import MOST_OVERLAP, tile
from tinyhw.codegen.transform.keep import kept_terms
from tinyhw.codegen.transform.tiling import (
  LEAST_LANES, MOST_STRIDE, OF_BUFFERS, Opt, OptOps, factor_of, lanes_along, size_of, width_along)
from tinyhw.dtype import dtypes
from tinyhw.machine.ir.target import CACHE_LINE_BYTES, Capabilities
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

ACCUMULATORS = 4           # of a row's reduction, so that an addition does not wait for the previous one
# associativity of the first-level cache, in lines whose addresses are a page apart: at least this on any processor
WAYS = 8
STRIDED_ELEMENT_COST = 3.0  # of a strided element of a vector register, in operations
MOST_ACROSS = 512          # operations of all repetitions of a body that reads across lines
MOST_COLUMNS = 2           # registers of adjacent rows that are reduced side by side
SHORT_BODY = 24            # operations; longer elementwise bodies need no repetitions to fill the pipes

class Nest(NamedTuple):
  """One store and its inputs: its ranges, the reductions in its value, all accesses."""
  store: UOp
  ranges: tuple[UOp, ...]
  reduces: list[UOp]
  accesses: list[StridedAccess]
  operations: int
  arithmetic: int  # of these, the operations on data, including computed addresses that are loaded from memory
  in_place: bool  # whether the kernel reads the buffer that it overwrites; then no element may be computed twice

def nest_of(store: UOp, in_place: bool = False) -> Nest:
  """Return the nest of a store. in_place: another store of the kernel overwrites a buffer that this one reads."""
  nodes = store.toposort()
  reduces = [u for u in nodes if u.op is Ops.REDUCE]
  found = [access_of(u) for u in nodes if u.op in (Ops.LOAD, Ops.STORE)]
  operations = [u for u in nodes if u.op in GroupOp.ALU]
  return Nest(store, ranges_of(store), reduces, found, len(operations),
              sum(u.dtype is not dtypes.weakint for u in operations),
              in_place or any(not a.is_store and a.node.src[0].src[0] is store.src[0].src[0] for a in found))

def lanes_of(nest: Nest, capabilities: Capabilities) -> int:
  """Return the lanes for the widest element that is loaded, computed or stored. All vectors then have equally many
  lanes."""
  values = [u.dtype for u in nest.store.toposort() if u.op in GroupOp.Elementwise or u.op in (Ops.LOAD, Ops.REDUCE)]
  sizes = [dtype.itemsize for dtype in values if dtype.itemsize <= 8 and not dtype.name.startswith("weak")]
  widest = max(sizes + [access.node.src[0].dtype.itemsize for access in nest.accesses])
  lanes = capabilities.vector_bytes // widest
  return min(lanes, capabilities.vector_lanes) if capabilities.vector_lanes else lanes

def choose(store: UOp, capabilities: Capabilities, in_place: bool = False) -> tuple[Opt, ...]:
  """Return the opts for the loops of one store. in_place: as for nest_of."""
  opts: tuple[Opt, ...]
  nest = nest_of(store, in_place)
  if capabilities.lanes:
    from tinyhw.codegen.plan import matrix_tile, workgroup  # for GPUs; with `matrix` 2 ms to load
    opts = grid(nest, workgroup.spread(nest, capabilities), capabilities)
    return matrix_tile.in_order(opts, {r.arg[0]: size_of(r) for r in nest.ranges}, capabilities)
  lanes = lanes_of(nest, capabilities)
  if lanes < 2: return grid(nest, (), capabilities)
  if any(a.node.src[0].src[0].op is Ops.STAGE for a in nest.accesses):
    from tinyhw.codegen.plan.kept_rows import kept_rows, rows_of  # for attention; 0.3 ms to load
    if (shared := rows_of(nest)) is not None: return kept_rows(nest, shared, lanes, capabilities)
  nested = {v for u in nest.reduces for v in u.src[0].toposort() if v.op is Ops.REDUCE}
  inner = [u for u in nest.reduces if len(u.ranges) == len(nest.ranges) and u not in nested]
  transposed = capabilities.transposed_bytes
  if nested and are_rows(nest, lanes): opts = keeping(nest, rows(nest, lanes, transposed), capabilities)
  elif nested and are_blocks(nest, nested): opts = rows(nest, lanes, transposed)
  elif inner: opts = tile(nest, inner, lanes, capabilities)
  elif nest.reduces: opts = keeping(nest, rows(nest, lanes, transposed), capabilities)
  else: opts = elementwise(nest, nest.ranges, nest.accesses, lanes, transposed)
  return grid(nest, opts, capabilities)

# ***** elementwise *****

def elementwise(nest: Nest, ranges: tuple[UOp, ...], accesses: list[StridedAccess], lanes: int,
                transposed: tuple[int, ...] = ()) -> tuple[Opt, ...]:
  """Return lanes along the range with most adjacent accesses, and repetitions for a short body.

  transposed: sizes of elements that the target transposes.
  """
  best, most = None, 0
  for r in ranges:
    if size_of(r) < LEAST_LANES: continue
    if size_of(r) < lanes and not part_pays(nest, accesses, r, width_along(r, lanes)): continue
    score = sum(lane_score(access, r) for access in accesses) * width_along(r, lanes)
    if best is None or score >= most: best, most = r, score
  if best is None or most <= 0: return ()
  width = width_along(best, lanes)
  opts = [Opt(OptOps.VECTOR, best.arg[0], width)]
  across = across_lines(best, ranges, accesses, transposed)
  if across is not None:
    repetitions = min(size_of(across[0]), across[1])
    while repetitions * nest.operations > MOST_ACROSS: repetitions //= 2
    return (*opts, Opt(OptOps.UPCAST, across[0].arg[0], repetitions)) if repetitions > 1 else tuple(opts)
  repetitions = repetitions_along(best, width, 4 if nest.operations <= SHORT_BODY else 1)
  if repetitions > 1: opts.append(Opt(OptOps.UPCAST, best.arg[0], repetitions))
  return tuple(opts)

def part_pays(nest: Nest, accesses: list[StridedAccess], r: UOp, width: int) -> bool:
  """Do lanes that fill part of a register gain more in arithmetic than they lose in strided accesses?

  The last lanes of a row are computed twice.
  """
  strided = sum(access.stride(r) not in (0, 1) for access in accesses)
  work = nest.arithmetic + len(accesses)
  step = work - strided + STRIDED_ELEMENT_COST * width * strided
  return not strided or -(-size_of(r) // width) * step < size_of(r) * work

def repetitions_along(r: UOp, width: int, most: int) -> int:
  """Return the largest number of repetitions of the lanes along a range, at which the last step repeats little work."""
  while most > 1 and (size_of(r) < most * width or overlap(r, most * width) > MOST_OVERLAP * overlap(r, width)):
    most //= 2
  return most

def overlap(r: UOp, step: int) -> float:
  """Return the iterations of steps of this size over the iterations of the range. The last step overlaps the previous
  one."""
  n = size_of(r)
  return -(-n // step) * step / n

def across_lines(lanes: UOp, ranges: tuple[UOp, ...], accesses: list[StridedAccess],
                 transposed: tuple[int, ...] = ()) -> tuple[UOp, int] | None:
  """Return the range along which strided loads are adjacent, and the number of their elements in a cache line.

  A transpose has such loads. With repetitions for a whole line, each line is used up while it is in the cache.
  Otherwise it is evicted first, if the range of the lanes is long. That also happens where addresses differ by a large
  part of a page, since they then compete for few sets. A target that shuffles needs the repetitions to transpose rows.
  """
  strided = [access for access in accesses if not access.is_store and access.stride(lanes) not in (0, 1)
             and (is_transposed(access, lanes, transposed)
                  or size_of(lanes) > lines_kept((access.stride(lanes) or 0) * access.node.dtype.itemsize))]
  found = [(r, CACHE_LINE_BYTES // access.node.dtype.itemsize) for r in ranges for access in strided if r is not lanes
           and access.stride(r) == 1]
  return max(found, key=lambda item: item[1], default=None)

def is_transposed(access: StridedAccess, lanes: UOp, transposed: tuple[int, ...]) -> bool:
  """Are the lanes of a load too far apart to be picked from one piece of memory, on a target that shuffles?"""
  return (len(access.node.src) == 1 and access.node.dtype.itemsize in transposed
          and abs(access.stride(lanes) or 0) > MOST_STRIDE)

def lines_kept(step: int) -> int:
  """Return the number of lines that stay in the first-level cache if their addresses are this many bytes apart."""
  return WAYS * min(PAGE_BYTES // math.gcd(step, PAGE_BYTES), PAGE_BYTES // CACHE_LINE_BYTES)

def lane_score(access: StridedAccess, r: UOp) -> int:
  """Score lanes along r for an access: adjacent elements 4 (stores 8), a shared element 1 (stores -8), strided 0
  (stores -4).

  Scattered loads, as of an interpolation, therefore still allow lanes as long as the stores are adjacent.
  """
  stride = access.stride(r)
  if stride == 1: return 8 if access.is_store else 4
  if stride == 0: return -8 if access.is_store else 1
  return -4 if access.is_store else 0

# ***** reductions of rows *****

def are_rows(nest: Nest, lanes: int) -> bool:
  """Are all reductions under the output loops, with enough terms to fill a register? Then each gets lanes of its own.

  This matters where reductions need each other. A register tile gives lanes to the last one only: the row's mean, or
  its largest element, would be computed one element at a time.
  """
  if any(len(u.ranges) != len(nest.ranges) for u in nest.reduces): return False
  return sum(o.op is OptOps.VECTOR and o.amount == lanes for o in rows(nest, lanes)) == len(nest.reduces)

def are_blocks(nest: Nest, nested: set[UOp]) -> bool:
  """Do sums of blocks inside of a larger sum read memory along the blocks, and nowhere along an output loop?"""
  blocks = [u for u in nested if len(u.ranges) > len(nest.ranges)]   # one for each term of the larger sum
  inside = [access_of(v) for u in blocks for v in u.src[0].toposort() if v.op is Ops.LOAD]
  along = {r for u in blocks for r in ranges_of(u)}
  if any(a.stride(r) == 1 for a in inside for r in nest.ranges): return False
  return any(a.stride(r) == 1 for a in inside for r in along)

def rows(nest: Nest, lanes: int, transposed: tuple[int, ...] = ()) -> tuple[Opt, ...]:
  """Vectorise each row's reductions along memory, then its output loop. Rows that are columns of memory are done side
  by side."""
  shared = {r for u in nest.reduces for r in u.ranges}
  if adjacent := columns(nest, lanes): return adjacent
  opts = list(elementwise(nest, tuple(r for r in nest.ranges if r not in shared), nest.accesses, lanes, transposed))
  done: set[UOp] = set()
  for u in nest.reduces:
    inside = [access_of(v) for v in u.src[0].toposort() if v.op is Ops.LOAD]
    candidates = [r for r in ranges_of(u) if size_of(r) >= LEAST_LANES and r not in done
                  and all(a.stride(r) in (0, 1) for a in inside)]
    if not candidates: continue
    r = max(candidates, key=lambda r: r.arg)
    done.update(ranges_of(u))
    width = width_along(r, lanes)
    opts.append(Opt(OptOps.VECTOR, r.arg[0], width))
    repetitions = min(size_of(r) // width, ACCUMULATORS)
    if repetitions > 1: opts.append(Opt(OptOps.UPCAST, r.arg[0], repetitions))
    for other in ranges_of(u):
      more = ACCUMULATORS // repetitions
      if other is r or more < 2 or not size_of(other) or size_of(other) % more: continue
      opts.append(Opt(OptOps.UPCAST, other.arg[0], more))
      repetitions *= more
  return tuple(opts)

def columns(nest: Nest, lanes: int) -> tuple[Opt, ...]:
  """Return lanes along an output loop, each of which reduces a row, if adjacent elements belong to different rows.

  The softmax of columns is an example. Empty for rows along which memory is adjacent.
  """
  inside = [access_of(v) for u in nest.reduces for v in u.src[0].toposort() if v.op is Ops.LOAD]
  along = [r for u in nest.reduces for r in ranges_of(u)]
  if any(a.stride(r) == 1 for a in inside for r in along): return ()
  found = [r for r in nest.ranges if size_of(r) >= lanes and all(r in u.ranges for u in nest.reduces)
           and all(a.stride(r) in (0, 1) for a in nest.accesses) and any(a.stride(r) == 1 for a in inside)]
  if not found: return ()
  repetitions = repetitions_along(found[-1], lanes, MOST_COLUMNS)
  opts = (Opt(OptOps.VECTOR, found[-1].arg[0], lanes),)
  return (*opts, Opt(OptOps.UPCAST, found[-1].arg[0], repetitions)) if repetitions > 1 else opts

def keeping(nest: Nest, opts: tuple[Opt, ...], capabilities: Capabilities) -> tuple[Opt, ...]:
  """Return the opts with KEEP for rows whose functions of elements are needed twice, while shared memory has room.

  Registers keep the values of loops that are fully unrolled. A row of less than two registers is not kept: its vectors
  overlap, and a load of parts of two stores waits for both.
  """
  nodes, room, out = nest.store.toposort(), capabilities.local_bytes, [*opts]
  if not any(u.op in GroupOp.Transcendental for u in nodes): return opts
  for r in dict.fromkeys(r for u in nest.reduces for r in ranges_of(u) if len(ranges_of(u)) == 1):
    terms = kept_terms(nodes, r) if size_of(r) >= 2 * lanes_along(r, opts) else []
    loops = {p for term in terms for p, _ in term.uses}
    room -= sum(term.bytes for term in terms)
    if room < 0: break
    if not terms or all(factor_of(p, opts) == size_of(p) for p in loops): continue
    out.append(Opt(OptOps.KEEP, r.arg[0], repetitions_along(r, lanes_along(r, opts), ACCUMULATORS)))
  return tuple(out)

# ***** the grid *****

def grid(nest: Nest, opts: tuple[Opt, ...], capabilities: Capabilities) -> tuple[Opt, ...]:
  """Add outer output loops to the grid until there is work for all threads.

  On a CPU, loops are in the order that reads least from far caches (loop_order.py). Loops inside of a work item have
  the order of their ids, so others follow until that is the order of the rest. A loop that some reduction does not
  depend on stays inside.
  """
  if any(o.op in OF_BUFFERS for o in opts): return opts
  outer = [r for r in nest.ranges if all(r in u.ranges for u in nest.reduces)] if nest.reduces else list(nest.ranges)
  out = list(opts)
  items = 1
  factors = {r: math.prod(o.amount for o in opts if o.axis == r.arg[0]) for r in outer}
  if nest.reduces and not capabilities.lanes:
    reads = [access for access in nest.accesses if not access.is_store]
    outer = ordered(outer, steps_by_range(outer, factors), reads, capabilities.cache_bytes)
  for k, r in enumerate(outer):
    factor = factors[r]
    n = size_of(r)
    # two tiles that overlap are one work item of a CPU, and two workgroups of a GPU
    if n and (-(-n // factor) if capabilities.lanes else n // factor) <= 1: continue
    if n == 0 and (items > 1 or len(outer) > 1): continue
    out.append(Opt(OptOps.GRID, r.arg[0]))
    items *= max(n // factor, 1)
    rest = [q.arg[0] for q in outer[k + 1:] if size_of(q) > factors[q]]
    if items >= capabilities.threads * CHUNKS_PER_THREAD and rest == sorted(rest): break
  return tuple(out)
