"""Register tiles: the costs of the model, and its choices for the kernels that it was made for."""
from __future__ import annotations
from dataclasses import replace
from math import prod

import pytest

from test.codegen.kernels import AVX2, agree, axis
from test.codegen.transform.test_window import convolution
from tinyhw.codegen.optimize import with_opts
from tinyhw.codegen.plan.heuristic import lanes_of, nest_of
from tinyhw.codegen.plan.reads import RegisterTile
from tinyhw.codegen.plan.register_tile import CostModel, candidates, terms_of, tile, wasted
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.dtype import dtypes
from tinyhw.isa.x86.capabilities import capabilities
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

F32 = dtypes.float32
AVX512 = capabilities("x86_64:avx512")
LEVELS = {"avx2": AVX2, "avx512": AVX512}

def product(m: int, n: int, k: int) -> UOp:
  """Return the kernel of a matrix product."""
  out, a, b = UOp.param(0, F32, m * n), UOp.param(1, F32, m * k), UOp.param(2, F32, k * n)
  i, j, r = axis(m, 0), axis(n, 1), axis(k, 2, "REDUCE")
  return UOp.sink(out.index(i * n + j).store((a.index(i * k + r).load() * b.index(r * n + j).load()).reduce(Ops.ADD, r),
                                             i, j))

def model_of(kernel: UOp, level: str) -> CostModel:
  nest = nest_of(kernel.src[0])
  return CostModel(nest, nest.reduces, lanes_of(nest, LEVELS[level]), LEVELS[level])

def opts_of(kernel: UOp, level: str) -> tuple[Opt, ...]:
  nest = nest_of(kernel.src[0])
  return tile(nest, nest.reduces, lanes_of(nest, LEVELS[level]), LEVELS[level])

def amount(opts: tuple[Opt, ...], op: OptOps, at: int) -> int:
  return prod(o.amount for o in opts if o.op is op and o.axis == at)

def test_repetitions_share_what_does_not_depend_on_them() -> None:
  """The sums of bits of w, shifted twice, with x: a second row of x needs no second shift."""
  out, a, w = UOp.param(0, dtypes.int32, 4096), UOp.param(1, dtypes.int32, 4096), UOp.param(2, dtypes.int32, 4096)
  i, j, r = axis(64, 0), axis(64, 1), axis(64, 2, "REDUCE")
  word, x = w.index(r * 64 + j).load(), a.index(i * 64 + r).load()
  value = ((word & 15) * x) ^ ((word & 240) * (x + 1))
  kernel = UOp.sink(out.index(i * 64 + j).store(value.reduce(Ops.ADD, r), i, j))
  model = model_of(kernel, "avx512")
  one, rows, columns = (model.arithmetic(RegisterTile(j, {i: n, j: m})) for n, m in ((1, 1), (4, 1), (1, 4)))
  assert columns == 4 * one and rows == 4 * one - 3 * 2

@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n", (64, 256, 1024))
def test_a_matrix_product_fills_the_registers(level: str, n: int) -> None:
  """Lanes along columns, and as many accumulators as leave room for the operands."""
  opts = opts_of(product(n, n, n), level)
  lanes = amount(opts, OptOps.VECTOR, 1)
  rows, columns = amount(opts, OptOps.UPCAST, 0), amount(opts, OptOps.UPCAST, 1)
  assert lanes == LEVELS[level].vector_bytes // 4
  assert LEVELS[level].vector_registers // 2 <= rows * columns < LEVELS[level].vector_registers - min(rows, columns)

@pytest.mark.parametrize("level", LEVELS)
def test_a_large_product_stages_its_second_operand_and_a_small_one_nothing(level: str) -> None:
  assert Opt(OptOps.STAGE, 2) in opts_of(product(1024, 1024, 1024), level)
  assert not any(o.op is OptOps.STAGE for o in opts_of(product(16, 16, 16), level))

def test_the_grid_of_a_staged_product_has_work_for_all_threads() -> None:
  for threads in (1, 2, 8):
    target = replace(AVX512, threads=threads)
    nest = nest_of(product(512, 512, 512).src[0])
    opts = tile(nest, nest.reduces, 16, target)
    kernel = with_opts(product(512, 512, 512), opts)
    items = prod(int(r.src[0].arg) for r in kernel.toposort() if r.op is Ops.RANGE and r.arg[1].name == "GLOBAL")
    assert items >= threads

@pytest.mark.parametrize("level", LEVELS)
def test_a_padded_convolution_reads_through_a_window(level: str) -> None:
  kernel = convolution(40, 5, padding=2, channels=32, outputs=32)
  opts = opts_of(kernel, level)
  assert any(o.op is OptOps.WINDOW and o.axis == 1 for o in opts), opts

@pytest.mark.parametrize("level", LEVELS)
def test_choices_change_no_result(level: str) -> None:
  for kernel in (product(9, 33, 5), convolution(19, 3, padding=1, outputs=18), convolution(17, 5, outputs=32)):
    agree(kernel, with_opts(kernel, opts_of(kernel, level)))

@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("size, lanes", ((14, 8), (13, 8), (7, 4), (5, 4)))
@pytest.mark.parametrize("outputs", (1, 2, 3))
def test_a_convolution_of_small_images_to_few_channels_has_lanes(level: str, size: int, lanes: int,
                                                                 outputs: int) -> None:
  """Lanes are a part of a register where no range fills one. One element at a time took 25 times as long on AVX-512."""
  kernel = convolution(size, 3, padding=1, channels=8, outputs=outputs)
  opts = opts_of(kernel, level)
  assert [o.amount for o in opts if o.op is OptOps.VECTOR] == [lanes], opts
  agree(kernel, with_opts(kernel, opts))

@pytest.mark.parametrize("m, n, k", ((4, 8, 3), (3, 12, 12), (15, 15, 15), (5, 4, 5), (3, 3, 9)))
def test_a_small_product_has_lanes(m: int, n: int, k: int) -> None:
  kernel = product(m, n, k)
  opts = opts_of(kernel, "avx512")
  assert any(o.op is OptOps.VECTOR for o in opts), opts
  agree(kernel, with_opts(kernel, opts))

def test_what_storing_far_apart_costs_has_no_step() -> None:
  """Rows of 255 floats are less than 1024 bytes apart, those of 257 are more. Tiles of both have the same height."""
  def costs(n: int) -> float:
    model = model_of(product(64, n, 9), "avx512")
    i, j = model.nest.ranges
    return model.streams(RegisterTile(j, {i: 8}))
  assert 0 < costs(255) < costs(256) < costs(257) < 1.02 * costs(255) and costs(1024) == costs(4096) == 7

def test_a_tile_that_does_not_fit_has_no_cost() -> None:
  model = model_of(product(64, 64, 64), "avx2")
  i, j = model.nest.ranges
  plans = [o.plans(j) for o in model.loads]
  assert model.cost(RegisterTile(j, {i: 6, j: 2}), plans) is not None
  assert model.cost(RegisterTile(j, {i: 8, j: 2}), plans) is None

def sum_of_loads(count: int, n: int = 64, terms: int = 12) -> UOp:
  """Return the kernel of a sum of columns of several matrices, each element of which is read once."""
  i, r = axis(n, 0), axis(terms, 1, "REDUCE")
  total = UOp.param(1, F32, n * terms).index(r * n + i).load()
  for k in range(2, count + 1): total = total + UOp.param(k, F32, n * terms).index(r * n + i).load()
  return UOp.sink(UOp.param(0, F32, n).index(i).store(total.reduce(Ops.ADD, r), i))

@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("count", (2, 16, 20, 40))
def test_many_loads_leave_lanes_and_accumulators(level: str, count: int) -> None:
  """An element that is used once needs no register of its own. A sum of 16 loads was computed one by one."""
  kernel = sum_of_loads(count)
  opts = opts_of(kernel, level)
  assert amount(opts, OptOps.VECTOR, 0) == LEVELS[level].vector_bytes // 4
  assert amount(opts, OptOps.UPCAST, 0) * amount(opts, OptOps.UPCAST, 1) >= 4, "they hide the latency of additions"
  agree(kernel, with_opts(kernel, opts))

def test_elements_that_repetitions_share_take_registers() -> None:
  """All are kept if some other operand is read where it is used. Otherwise one of them is."""
  i, j, r = axis(64, 0), axis(64, 1), axis(64, 2, "REDUCE")
  a, b, c = UOp.param(1, F32, 4096), UOp.param(2, F32, 4096), UOp.param(3, F32, 1 << 18)
  product = a.index(i * 64 + r).load() * b.index(r * 64 + j).load()
  out = UOp.param(0, F32, 4096).index(i * 64 + j)
  found = []
  for term in (product, product * c.index((i * 64 + r) * 64 + j).load()):
    model = model_of(UOp.sink(out.store(term.reduce(Ops.ADD, r), i, j)), "avx2")
    plans = [o.plans(j) for o in model.loads]
    found.append([model.cost(RegisterTile(j, copies), plans) is not None
                  for copies in ({i: 4}, {i: 4, j: 2}, {i: 6, j: 2}, {i: 8, j: 2})])
  assert found == [[True, True, True, False], [True, True, False, False]]

@pytest.mark.parametrize("operations, unrolled", ((1, True), (3, True), (20, False)))
def test_a_short_loop_of_many_operations_is_not_unrolled(operations: int, unrolled: bool) -> None:
  """Its code would be long, and counting is a small part of its time."""
  i, r = axis(64, 0), axis(8, 1, "REDUCE")
  value = UOp.param(1, F32, 512).index(r * 64 + i).load()
  x = UOp.param(2, F32, 8).index(r).load()
  for _ in range(operations): value = value * x
  kernel = UOp.sink(UOp.param(0, F32, 64).index(i).store(value.reduce(Ops.ADD, r), i))
  opts = opts_of(kernel, "avx2")
  assert (amount(opts, OptOps.UPCAST, 1) == 8) == unrolled and amount(opts, OptOps.VECTOR, 0) == 8, opts

def test_more_reuse_costs_less() -> None:
  model = model_of(product(64, 64, 64), "avx2")
  i, j = model.nest.ranges
  plans = [o.plans(j) for o in model.loads]
  costs = [model.cost(RegisterTile(j, copies), plans) or 0.0 for copies in ({i: 1}, {i: 2}, {i: 4}, {i: 6, j: 2})]
  assert costs == sorted(costs, reverse=True)

def test_what_overlap_and_left_over_terms_waste() -> None:
  r, k, odd = axis(20, 0), axis(20, 1, "REDUCE"), axis(19, 1, "REDUCE")
  assert wasted(r, 1, 16) == 32 / 20 and wasted(r, 5, 1) == 1.0
  assert wasted(k, 1, 16) == 2 * 16 / 20 and wasted(odd, 1, 16) == 4 * 16 / 19, ("what is left is four lanes at once, "
                                                                                 "or three terms one by one")

def test_candidates_are_each_made_once_and_fit() -> None:
  model = model_of(product(10, 40, 6), "avx2")
  found = candidates(model.nest, model.nest.ranges[1], 8, 16)
  keys = [tuple(sorted((r.arg[0], n) for r, n in t.repetitions.items() if n > 1)) for t in found]
  assert len(keys) == len(set(keys)) and all(prod(t.repetitions.values()) <= 16 for t in found)

def test_terms() -> None: assert terms_of(next(u for u in product(2, 3, 7).toposort() if u.op is Ops.REDUCE)) == 7
