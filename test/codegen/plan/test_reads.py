"""The cost of reading an operand depends on where it comes from, and a faster machine never makes it dearer."""
from __future__ import annotations
from dataclasses import replace

import pytest

from tinyhw import Tensor
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.optimize import with_few_ranges, with_opts
from tinyhw.codegen.plan.heuristic import choose, nest_of
from tinyhw.codegen.plan.reads import (
  FAR_CYCLES, FARTHEST_CYCLES, NEAR_CYCLES, SCATTERED, SPREAD_WORK, ReductionLoad, RegisterTile, steps_of)
from tinyhw.codegen.plan.register_tile import CostModel
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.isa.x86.capabilities import capabilities
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

AVX512 = replace(capabilities("x86_64:avx512"), cache_bytes=(32 << 10, 1 << 20, 32 << 20), local_bytes=1 << 19)

def sink_of(t: Tensor) -> UOp:
  kernels = [k.sink for k in schedule(canonicalize([t.uop])).kernels]
  return with_few_ranges(max(kernels, key=lambda k: len(k.toposort())), AVX512)

def model(m: int, k: int, n: int, target: Capabilities = AVX512) -> CostModel:
  nest = nest_of(sink_of(Tensor.empty(m, k) @ Tensor.empty(k, n)).src[0])
  return CostModel(nest, nest.reduces, 16, target)

def second(costs: CostModel) -> ReductionLoad: return next(o for o in costs.loads if o.slot == 2)

def tile(costs: CostModel, rows: int, vectors: int) -> RegisterTile:
  i, j = costs.nest.ranges
  return RegisterTile(j, {i: rows, j: vectors})

@pytest.mark.parametrize("k,n,cycles", (
  (256, 1024, NEAR_CYCLES),        # 256 rows that are 4 KB apart: one line of each is in the second cache of 1 MB
  (512, 1024, FAR_CYCLES),         # twice as many of them are not
  # those at 4,160 bytes share no sets; ten tiles read them, the first of them from the third cache
  (512, 1040, NEAR_CYCLES + (FAR_CYCLES - NEAR_CYCLES) / 10),
  (4096, 4096, FARTHEST_CYCLES),   # 64 MB
  (64, 16, 0),                     # rows of one line are adjacent
))
def test_steps_to_rows_cost_by_the_cache_that_holds_them(k: int, n: int, cycles: float) -> None:
  costs = model(64, k, n)
  assert second(costs).row_cycles(tile(costs, 6, 1)) == pytest.approx(cycles)

def test_rows_of_memory_are_far_for_the_first_tile() -> None:
  """All 31 rows are in one tile with lanes along the rows, which reads strips of 14 columns from memory."""
  costs = model(31, 1128, 3134, replace(AVX512, cache_bytes=(48 << 10, 2 << 20, 8 << 20)))
  i, j = costs.nest.ranges
  strips, rows = RegisterTile(i, {i: 2, j: 14}), RegisterTile(j, {i: 8, j: 3})
  assert second(costs).reuse(strips) == 1 and second(costs).row_cycles(strips) > 0.9 * FARTHEST_CYCLES
  assert second(costs).reuse(rows) == 3 and second(costs).row_cycles(rows) < FARTHEST_CYCLES

def test_adjacent_vectors_share_the_step_to_their_row() -> None:
  costs = model(64, 512, 1024)
  one, four = (second(costs).row_cycles(tile(costs, 6, n)) for n in (1, 4))
  assert one == four
  narrow = model(64, 512, 1024, replace(AVX512, vector_rate=1))
  assert second(narrow).row_cycles(tile(narrow, 6, 4)) == four / 2, "twice the arithmetic hides it"

@pytest.mark.parametrize("k,rows,vectors,is_one", (
  (768, 1, 8, True), (768, 16, 1, False), (768, 2, 8, False),
  (128, 2, 8, True),     # a row has 8 vectors, so the second row goes on where the first one ends
  (128, 2, 4, False), (16, 4, 1, True)))
def test_memory_is_one_stream_if_the_elements_of_an_iteration_are_adjacent(k: int, rows: int, vectors: int,
                                                                          is_one: bool) -> None:
  nest = nest_of(sink_of(Tensor.empty(1 << 21, k) @ Tensor.empty(k)).src[0])
  costs = CostModel(nest, nest.reduces, 16, AVX512)
  matrix, (i,), j = max(costs.loads, key=lambda o: o.bytes), nest.ranges, costs.last
  once = matrix.memory_cycles(RegisterTile(j, {i: 1, j: 1}))
  found = matrix.memory_cycles(RegisterTile(j, {i: rows, j: vectors}))
  assert found == (once if is_one else SCATTERED * once)

def test_a_panel_that_is_transposed_from_rows_a_page_apart_costs_more() -> None:
  def fill(k: int) -> float:
    costs = model(512, k, 512)
    first, i = next(o for o in costs.loads if o.slot == 1), costs.nest.ranges[0]
    return next(p.fill for p in first.plans(i) if p.opt is not None and p.opt.op is OptOps.STAGE)
  assert fill(1024) > 2 * fill(1040)

def test_loops_that_share_a_panel_are_cut_for_idle_threads() -> None:
  def items(m: int, n: int, threads: int) -> tuple[int, int]:
    costs = model(m, 256, n, replace(AVX512, threads=threads))
    operand, t = second(costs), tile(costs, 6, 4)
    plan = next(p for p in operand.plans(t.vector) if p.opt is not None)
    return tuple(operand.work_items(plan, t))  # type: ignore[return-value]
  assert items(600, 4096, 2) == (64, 1)
  found, parts = items(600, 64, 4)
  assert found == parts >= 4, "all columns are one tile, so rows are cut"
  assert items(6, 64, 4) == (1, 1), "nothing is left to cut"

def test_steps_of_a_symbolic_size_are_one() -> None:
  n = UOp.variable("n", 1, 64)
  r = UOp.range(n, 0)
  assert steps_of(r, RegisterTile(r, {}), 16) == 1

@pytest.mark.parametrize("shape", ((64, 256, 1024), (128, 768, 3072), (512, 512, 512), (17, 100, 300)))
def test_a_faster_resource_never_raises_the_cost(shape: tuple[int, int, int]) -> None:
  def cost(**facts: object) -> float:
    costs = model(*shape, replace(AVX512, **facts))  # type: ignore[arg-type]  # fields by name
    found = costs.best([r for r in costs.nest.ranges if int(r.src[0].arg) >= 16])
    assert found is not None
    return found[0]
  plain = cost(vector_rate=1)
  assert cost() <= plain
  small = cost(cache_bytes=(32 << 10, 256 << 10, 8 << 20))
  assert cost(cache_bytes=(48 << 10, 2 << 20, 64 << 20)) <= cost() <= small * 1.001
  assert cost() <= cost(second_level_rate=100) <= cost(second_level_rate=50)

def test_vectors_from_the_second_cache_are_as_many_as_it_gives() -> None:
  """A tile of 12 rows and 2 vectors reads 2 of them in a step, one of 3 rows and 8 vectors 8."""
  facts = {"cache_bytes": (48 << 10, 2 << 20, 480 << 20), "local_bytes": 1 << 20}
  plain, dear = (model(2048, 2048, 2048, replace(AVX512, **facts, second_level_rate=rate)) for rate in (0, 28))
  few, many = tile(plain, 12, 2), tile(plain, 3, 8)
  assert second(plain).near_cycles(few) == 0
  assert (second(dear).near_cycles(few), second(dear).near_cycles(many)) == (128 / 28, 512 / 28)
  found = dear.best([*dear.nest.ranges])
  assert found is not None and found[1].repetitions[dear.nest.ranges[1]] <= 5
  short = model(2048, 64, 2048, dear.capabilities)
  assert second(short).near_cycles(tile(short, 12, 2)) == 0, "the first cache holds 64 rows of 128 bytes"

def test_lanes_along_the_sum_read_the_second_cache_too() -> None:
  """Rows of 12 KB: four of them with 6 columns are 120 KB, which a step reads 640 bytes of."""
  facts = {"cache_bytes": (48 << 10, 2 << 20, 8 << 20), "local_bytes": 1 << 20, "second_level_rate": 128.0}
  costs = model(128, 3072, 768, replace(AVX512, **facts))
  i, j = costs.nest.ranges
  t = RegisterTile(costs.last, {i: 4, j: 6})
  assert sum(o.near_cycles(t) for o in costs.loads) == 10 * 64 / 128
  assert all(o.near_cycles(RegisterTile(costs.last, {i: 1, j: 2})) == 0 for o in costs.loads)

@pytest.mark.parametrize("dtype, widening", [("float16", 2), ("bfloat16", 1), ("float32", 0)])
def test_widening_takes_operations_of_each_element(dtype: str, widening: int) -> None:
  """Lanes that share an element widen it as a number, which must then be spread."""
  x, w = (Tensor.empty(n, 256, dtype=dtype).float() for n in (64, 128))
  nest = nest_of(sink_of(x @ w.T).src[0])
  costs = CostModel(nest, nest.reduces, 16, AVX512)
  i, k = costs.nest.ranges[0], costs.last
  assert [o.plans(k)[0].work for o in costs.loads] == [widening] * 2
  lanes_share = next(o for o in costs.loads if i not in o.ranges)
  assert lanes_share.plans(i)[0].work == (widening + SPREAD_WORK if widening else 0)
  t = RegisterTile(k, {i: 4, costs.nest.ranges[1]: 6})
  assert sum(one.work for one in costs.readings(t, [o.plans(k) for o in costs.loads])) == 10 * widening

@pytest.mark.parametrize("dtype, widening", [("float16", 2), ("bfloat16", 1), ("float32", 0)])
def test_a_panel_has_widened_elements(dtype: str, widening: int) -> None:
  """They take the bytes of float32, and no work when they are read."""
  x, w = (Tensor.empty(n, 256, dtype=dtype).float() for n in (64, 128))
  nest = nest_of(sink_of(x @ w.T).src[0])
  costs = CostModel(nest, nest.reduces, 16, AVX512)
  i = costs.nest.ranges[1]
  operand = next(o for o in costs.loads if i in o.ranges)
  direct, panel = operand.plans(i)
  assert (direct.work, panel.work) == (widening, 0) and panel.opt is not None
  assert operand.panel_bytes({i: 2}) == 256 * 2 * 16 * 4 and operand.staged.dtype.name == "float"
  tiled = with_opts(sink_of(x @ w.T), (Opt(OptOps.VECTOR, i.arg[0], 16), panel.opt))
  assert [u.dtype.name for u in tiled.toposort() if u.op is Ops.STAGE] == ["float"]

def test_a_product_of_symbolic_rows_has_a_tile() -> None:
  rows = Tensor.empty(64, 32)[:UOp.variable("n", 8, 64).bind(16)]
  sink = sink_of(rows @ Tensor.empty(32, 48))
  assert choose(sink.src[0], AVX512)

def test_loops_inside_of_a_work_item_are_in_the_best_order() -> None:
  """An image comes from the second cache for each of 17 outputs, unless its part is the outer loop."""
  sink = sink_of(Tensor.empty(16, 3, 91, 91).conv2d(Tensor.empty(17, 3, 1, 1)))
  opts = choose(sink.src[0], replace(capabilities("x86_64:avx2"), threads=2))
  pixels = max(ranges_of(sink.src[0]), key=lambda r: int(r.src[0].arg))
  assert any(o.op is OptOps.GRID and o.axis == pixels.arg[0] for o in opts)
