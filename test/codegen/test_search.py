"""The beam search with a fake clock: it is deterministic, never worse than its start, and ignores failing candidates.
"""
from __future__ import annotations
import math
import zlib

import pytest

from test.codegen.kernels import AVX2, agree, count
from test.codegen.lower.test_tiles import AMX, product as product_in_words
from test.codegen.products import product
from test.codegen.random_kernels import Nest
from tinyhw.codegen.kernel.access import merge_ranges
from tinyhw.codegen.optimize import optimize, with_few_ranges, with_opts
from tinyhw.codegen.passes import lower
from tinyhw.codegen.plan.heuristic import choose
from tinyhw.codegen.search import Opts, canonical, neighbours, search
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.dtype import dtypes
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.isa.sass.capabilities import capabilities
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def kernel(a: int = 32, b: int = 48, c: int = 64) -> UOp:
  out = Tensor.empty(a, b, device="PYTHON") @ Tensor.empty(b, c, device="PYTHON")
  return schedule(canonicalize([out.uop])).kernels[0].sink

def clock(opts: Opts) -> float: return 1.0 + zlib.crc32(repr(sorted(opts)).encode()) % 1000 / 1000

def test_two_searches_find_the_same() -> None:
  orders: list[list[Opts]] = [[], []]
  found = [search(kernel(), AVX2, lambda opts, order=order: order.append(opts) or clock(opts), 3)
           for order in orders]  # type: ignore[misc]
  assert found[0] == found[1] and orders[0] == orders[1]

def test_the_winner_is_the_fastest_that_was_measured() -> None:
  seen: dict[Opts, float] = {}
  found = search(kernel(), AVX2, lambda opts: seen.setdefault(opts, clock(opts)), 4)
  assert seen[found] == min(seen.values()) and len(seen) > 10
  assert len({canonical(o) for o in seen}) == len(seen), "a choice was measured twice"

def test_what_fails_is_passed_over() -> None:
  start = choose(merge_ranges(kernel()).src[0], AVX2)
  assert search(kernel(), AVX2, lambda opts: 1.0 if opts == start else math.inf, 2) == start

def test_it_stops_when_nothing_is_better() -> None:
  rounds: list[str] = []
  search(kernel(), AVX2, lambda opts: 1.0, 2, rounds.append)
  assert len(rounds) == 2 and rounds[0].startswith("start") and rounds[1].startswith("round 1")

def test_a_wider_beam_is_not_worse() -> None:
  times = [clock(search(kernel(), AVX2, clock, width)) for width in (1, 8)]
  assert times[1] <= times[0]

@pytest.mark.parametrize("opts", [(), (Opt(OptOps.VECTOR, 1, 8), Opt(OptOps.UPCAST, 0, 4), Opt(OptOps.GRID, 0))])
def test_neighbours_differ_and_stay_small(opts: Opts) -> None:
  found = list(neighbours(merge_ranges(kernel()), opts, AVX2))
  assert found and all(canonical(o) != canonical(opts) for o in found) and len(found) < 60
  assert all(math.prod(o.amount for o in n if o.op is OptOps.UPCAST) <= 64 for n in found)
  sink = kernel()
  for n in found[:12]: assert optimize(sink.replace(arg=type(sink.arg)(opts=n)), AVX2).arg.opts == n

@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_tried_computes_the_same(seed: int) -> None:
  """A walk through the choices, each a neighbour of the previous one."""
  nest = Nest(seed, in_place=seed % 2 == 0)
  sink = merge_ranges(nest.sink)
  opts = choose(sink.src[0], AVX2)
  for _ in range(6):
    tried = list(neighbours(sink, opts, AVX2))
    if not tried: return
    opts = nest.rng.choice(tried)
    agree(sink, with_opts(sink, opts))

def test_each_shape_of_the_matrix_unit_is_tried() -> None:
  """Products of one warp, and of four with each number of columns, whatever the heuristic chose."""
  capable = capabilities("sm_90")
  merged = with_few_ranges(product(1024, 1024, 1024, dtypes.float16, dtypes.float32), capable)
  start = choose(merged.src[0], capable)
  tried = {tuple(o.amount for o in opts if o.op is OptOps.MATRIX) for opts in neighbours(merged, start, capable)}
  assert {(16, 8, 16), (64, 64, 64), (64, 128, 64), (64, 256, 64)} <= tried

def test_what_is_tried_for_tiles_of_a_cpu_stays_on_the_unit() -> None:
  """Rows, columns and their grid vary. Without the lanes or the panel a sum would be unrolled for vectors."""
  sink = product_in_words(64, 96, 128)
  opts = choose(sink.src[0], AMX)
  tried = list(neighbours(sink, opts, AMX))
  products = [count(lower(with_opts(sink, o, AMX.matrix), AMX, "tried"), Ops.MMA) for o in tried]
  assert products and all(products)
  for axis in (4, 5): assert len({o.amount for n in tried for o in n if o.op is OptOps.UPCAST and o.axis == axis}) > 1
