"""Rewrite a kernel for a target: merge and split loops, choose tiles (heuristic.py), peel remainders, apply
(tiling.py).

Input and output are kernels (docs/design/uop.md); only ranges change, so `evaluate` gives the same for both. `NOOPT=1`
only makes the grid.
"""
from __future__ import annotations
from collections.abc import Iterable
from itertools import groupby

from tinyhw.codegen.kernel.access import access_of, merge_ranges, split_ranges
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.plan.heuristic import choose, lanes_of, nest_of
from tinyhw.codegen.transform.keep import keep_terms
from tinyhw.codegen.transform.lane_reduction import fold_lanes
from tinyhw.codegen.transform.tiling import (
  LEAST_LANES, SHARED, Opt, OptOps, apply_pieces, factor_of, peel_reductions, peel_store, size_of, stage_loads,
  without_statements)
from tinyhw.codegen.transform.window import stage_windows
from tinyhw.config import NOOPT
from tinyhw.data_class import replace
from tinyhw.dtype import dtypes
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.matrix import Matrix
from tinyhw.uop.ops import KernelInfo, UOp

def optimize(sink: UOp, capabilities: Capabilities) -> UOp:
  """Return the kernel with final AxisTypes. The chosen opts are in its KernelInfo."""
  info = sink.arg if isinstance(sink.arg, KernelInfo) else KernelInfo()
  if is_ordered(sink): return ordered_loops(without_statements(sink), capabilities)
  if keeps_rows(sink, capabilities):
    from tinyhw.codegen.attention.plan import with_attention  # for attention on GPUs; 1 ms to load
    return with_attention(without_statements(with_few_ranges(sink, capabilities)), info.opts, capabilities)
  if NOOPT or len(sink.src) > 1 and not same_loops(sink): return outer_grid(without_statements(sink))
  sink = with_few_ranges(sink, capabilities)
  opts = info.opts if info.opts is not None else choose_all(sink, capabilities)
  wave = capabilities.lanes if capabilities.exchanges and not capabilities.slow_exchanges else 1
  return with_opts(sink, opts, capabilities.matrix, wave, capabilities.aligned)

def keeps_rows(sink: UOp, capabilities: Capabilities) -> bool:
  """Does a kernel for lanes of a workgroup keep rows between two products? It is an attention (codegen/attention)."""
  return capabilities.lanes > 0 and any(u.op is Ops.STAGE for u in sink.toposort())

def with_few_ranges(sink: UOp, capabilities: Capabilities) -> UOp:
  """Return the kernel to whose ranges the opts refer.

  Loops that memory walks as one are merged. Loops of which memory uses parts are split. A product for the matrix unit
  has three ranges. Other products of narrow numbers are sums of DOT4s or DOT2s.
  """
  if capabilities.matrix and capabilities.lanes:
    from tinyhw.codegen.matrix.ranges import one_range_each, product_in  # for matrix units; 0.3 ms to load
    plain = merge_ranges(sink)
    if product_in(plain, capabilities) is not None: return one_range_each(plain, capabilities)
  return with_parts(merge_ranges(with_dots(sink, capabilities)), capabilities)

def with_parts(sink: UOp, capabilities: Capabilities) -> UOp:
  """Return the kernel with the loops split of which memory uses parts, for a CPU with vectors."""
  if not capabilities.vector_bytes or capabilities.lanes: return sink
  split = split_ranges(sink, LEAST_LANES)
  return sink if split is sink else merge_ranges(split)

def with_dots(sink: UOp, capabilities: Capabilities) -> UOp:
  """Return the kernel with DOT4s in its sums of products of bytes, and DOT2s in those of bfloat16."""
  narrow = (dtypes.int8, dtypes.uint8, dtypes.bfloat16)
  if not any(u.op is Ops.LOAD and u.dtype in narrow for u in sink.toposort()): return sink
  from tinyhw.codegen.transform.dot import use_dots  # 0.4 ms to load, for kernels that read narrow numbers only
  plain = merge_ranges(sink)
  split = with_parts(plain, capabilities)    # words lie in one part
  return use_dots(sink if split is plain else split, capabilities)

def has_symbolic_sizes(sink: UOp) -> bool:
  """Does the size of a loop depend on Variables?"""
  return any(u.op is Ops.RANGE and u.src[0].op is not Ops.CONST for u in sink.toposort())

def same_loops(sink: UOp) -> bool:
  """Do all stores of a kernel run over the same ranges?"""
  return all(ranges_of(s) == ranges_of(sink.src[0]) for s in sink.src)

def choose_all(sink: UOp, capabilities: Capabilities) -> tuple[Opt, ...]:
  """Return opts for the first store, which the others share.

  Products whose stores must be peeled are done without the matrix unit.
  """
  sink = without_statements(sink)
  if not capabilities.lanes and has_symbolic_sizes(sink):
    from tinyhw.codegen.transform.symbolic import largest  # for sizes with Variables; 0.3 ms to load
    sink, capabilities = largest(sink), replace(capabilities, local_bytes=0)    # nothing is copied for such loops
  opts = choose(sink.src[0], capabilities, len(sink.src) > 1 and reads_what_it_writes(sink, sink.toposort()))
  divided = all(size_of(r) % factor_of(r, opts) == 0 for r in ranges_of(sink.src[0]))
  if divided or not any(o.op is OptOps.MATRIX for o in opts) or not reads_what_it_writes(sink, list(sink.toposort())):
    return opts
  return choose(sink.src[0], replace(capabilities, matrix=()))

def reads_what_it_writes(sink: UOp, nodes: Iterable[UOp]) -> bool:
  """Does a kernel with these nodes read a buffer that it writes? Then no element may be computed twice."""
  stored = {store.src[0].src[0] for store in sink.src}
  return any(u.op is Ops.LOAD and u.src[0].src[0] in stored for u in nodes)

def is_ordered(sink: UOp) -> bool:
  """Do iterations of a kernel's loop see the stores of earlier ones?"""
  return any(r.arg[1] is AxisType.ORDERED for r in ranges_of(sink.src[0]))

def ordered_loops(sink: UOp, capabilities: Capabilities) -> UOp:
  """Return a kernel with an ordered loop: the loops around it are the grid, and loops inside of it become lanes."""
  sink = with_order(sink)
  ranges = ranges_of(sink.src[0])
  at = next(k for k, r in enumerate(ranges) if r.arg[1] is AxisType.ORDERED)
  opts = [Opt(OptOps.GRID, r.arg[0]) for r in ranges[:at]]
  if capabilities.lanes or NOOPT: return with_opts(sink, tuple(opts))
  lanes = min([lanes_of(nest_of(store), capabilities) for store in sink.src])
  for r in lanes_inside(sink) if lanes > 1 else ():
    n = size_of(r) or int(r.vmax) + 1
    if n >= lanes: opts.append(Opt(OptOps.VECTOR, r.arg[0], lanes))
    if n >= 2 * lanes: opts.append(Opt(OptOps.UPCAST, r.arg[0], min(n // lanes, 4)))
  return with_opts(sink, tuple(opts))

def with_order(sink: UOp) -> UOp:
  """Number the stores of an iteration by a tag, in their order. Adjacent ones with the same next loop have one number.
  """
  stores: list[UOp] = []
  last: UOp | None = None
  number = 0
  for store in sink.src:
    ranges = ranges_of(store)
    at = max(k for k, r in enumerate(ranges) if r.arg[1] is AxisType.ORDERED)
    head = ranges[min(at + 1, len(ranges) - 1)]
    if stores and head is not last: number += 1
    stores.append(store.replace(tag=number))
    last = head
  return sink.replace(src=tuple(stores)) if number else sink

def lanes_inside(sink: UOp) -> list[UOp]:
  """Return the loops inside of an ordered loop that can be lanes: memory is adjacent along each, or does not change."""
  found: dict[UOp, None] = {}
  for u in sink.toposort():
    if u.op is not Ops.STORE and u.op is not Ops.REDUCE: continue
    own = [access_of(v) for v in u.toposort() if v.op is Ops.LOAD or v is u and u.op is Ops.STORE]
    for r in ranges_of(u):
      if r.arg[1] is AxisType.ORDERED or r in found: continue
      strides = {a.distance(r) for a in own}
      if 1 in strides and strides <= {0, 1}: found[r] = None
  return list(found)

def outer_grid(sink: UOp) -> UOp:
  """Return the plain form: the outermost loop of a kernel with one store is the grid."""
  if len(sink.src) != 1 or not ranges_of(sink.src[0]): return sink
  outer = ranges_of(sink.src[0])[0]
  return sink.substitute({outer: outer.replace(arg=(outer.arg[0], AxisType.GLOBAL))})

def peel(store: UOp, opts: tuple[Opt, ...], fresh: int) -> list[UOp]:
  """Return a store as stores over loops that their factors divide. New ranges are numbered from `fresh`.

  All stores of a kernel are cut in the same way, over the same ranges. An element that one store overwrites and another
  needs stays in one loop.
  """
  pieces = [store]
  for r in ranges_of(store):
    n, factor = size_of(r), factor_of(r, opts)
    if factor <= 1 or n % factor == 0: continue
    pieces = [p for piece in pieces for p in (peel_store(piece, r, n - n % factor, fresh) if r in ranges_of(piece)
                                              else [piece])]
    fresh += 1
  return pieces

def with_opts(sink: UOp, opts: tuple[Opt, ...], matrices: tuple[Matrix, ...] = (), wave: int = 1,
              aligned: bool = False) -> UOp:
  """Return the kernel under opts: terms to keep and windows first, then peeled, then split.

  matrices: the shapes of the target's matrix unit, for MATRIX opts. wave: lanes that can exchange values. aligned:
  memory is accessed at multiples of the access size only.
  """
  filling: tuple[Opt, ...] = ()
  if any(o.op is OptOps.KEEP for o in opts) and not reads_what_it_writes(sink, sink.toposort()):
    sink, filling = keep_terms(without_statements(sink), opts)   # it keeps all terms
  sink, copying = stage_windows(sink, opts)
  applied = opts + filling + copying
  if has_symbolic_sizes(sink):
    from tinyhw.codegen.transform.symbolic import cut_symbolic  # for sizes with Variables; 0.3 ms to load
    sink, applied = cut_symbolic(sink, applied)
  nodes = sink.toposort()
  fresh = 1 + max((u.arg[0] for u in nodes if u.op is Ops.RANGE), default=0)
  stores = list(sink.src)
  if reads_what_it_writes(sink, nodes):
    runs = [[peel(store, opts, fresh) for store in run] for _, run in groupby(sink.src, ranges_of)]
    stores = [piece for run in runs for group in zip(*run) for piece in group]
    fresh += len(ranges_of(sink.src[0]))
  peeled = UOp.sink(*stores, arg=sink.arg)
  peeled, more = peel_reductions(peeled, applied, fresh)
  split = apply_pieces(without_statements(peeled), applied + more)
  done = split.sink
  masked = any(u.op is Ops.STAGE or u.op is Ops.WHERE for u in nodes) and all(o.op not in SHARED for o in applied)
  if masked:
    from tinyhw.codegen.transform import shorten  # for kernels with masks; 0.3 ms to load
    done = shorten.shorten(split, shorten.limits_of(peeled, applied + more))
  staged = [o for o in opts if o.op is OptOps.STAGE]
  done = stage_loads(done, frozenset(o.axis for o in staged), frozenset(o.axis for o in staged if o.amount))
  if masked: done = shorten.skip(done)
  if any(o.op is OptOps.MATRIX for o in opts) and all(m.lanes == 1 for m in matrices):
    from tinyhw.codegen.transform import tile_sums  # for matrix units of CPUs; 0.3 ms to load
    done = tile_sums.mark(done, opts, split.pieces, matrices)
  elif any(o.op is OptOps.MATRIX for o in opts):
    from tinyhw.codegen.matrix import matrix, operands  # for matrix units; 1.5 ms to load
    tile = operands.tile_of(opts, split.pieces, aligned)
    if tile is not None: done = matrix.use_matrix(done, tile, matrices)
  done = fold_lanes(done, wave)
  info = sink.arg if isinstance(sink.arg, KernelInfo) else KernelInfo()
  return done.replace(arg=KernelInfo(info.name, opts, info.origin))
