"""Reductions that lanes share: equal results, and one stage over all lanes for each reduction.

The first lane does the stores that do not run over lanes. Lanes that exchange values need no stage in one wave, and one
in several.
"""
from __future__ import annotations
import math
import struct
from dataclasses import replace

import pytest

from test.codegen.kernels import agree, axis, compare, count, data_for
from test.codegen.plan.test_workgroup import F32, LANES, opts, run
from tinyhw.codegen.kernel.access import access_of
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.codegen.transform.lane_reduction import fold_lanes
from tinyhw.codegen.transform.tiling import Opt, OptOps, apply
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp

def rows(n: int, m: int, op: Ops = Ops.ADD, dtype: object = F32) -> UOp:
  """Return out[i] = fold of a[i, x] over x, and 1."""
  out, a = UOp.param(0, F32, n), UOp.param(1, F32, n * m)
  i, x = axis(n, 0), axis(m, 1, "REDUCE")
  return UOp.sink(out.index(i).store(a.index(i * m + x).load().reduce(op, x) + 1, i))

@pytest.mark.parametrize("op", (Ops.ADD, Ops.MUL, Ops.MAX))
@pytest.mark.parametrize("size", [(1, 16), (3, 64), (20, 40), (5, 37), (2, 24)])
def test_rows_whose_memory_lies_along_the_sum(size: tuple[int, int], op: Ops) -> None:
  kernel = rows(*size, op)
  assert any(o.op is OptOps.LOCAL and o.axis == 1 for o in opts(kernel))
  program = run(kernel)
  assert program.lanes in (8, 10, 12, 16) and count(program, Ops.DEFINE_LOCAL) == 1 and count(program, Ops.BARRIER) >= 1

def test_columns_are_lanes_where_memory_lies_along_them() -> None:
  out, a = UOp.param(0, F32, 32), UOp.param(1, F32, 64 * 32)
  i, x = axis(32, 0), axis(64, 1, "REDUCE")
  kernel = UOp.sink(out.index(i).store(a.index(x * 32 + i).load().reduce(Ops.ADD, x), i))
  assert (opts(kernel)[:2] == (Opt(OptOps.LOCAL, 0, 16), Opt(OptOps.UPCAST, 0, 2))
          and count(run(kernel), Ops.DEFINE_LOCAL) == 0)

def test_short_sums_are_each_lane_s_own() -> None:
  assert not any(o.op is OptOps.LOCAL and o.axis == 1 for o in opts(rows(20, 15)))

def softmax(n: int, m: int) -> UOp:
  """Return a softmax without exponentials: (x - max) * sum(x - max) of each row."""
  out, a = UOp.param(0, F32, n * m), UOp.param(1, F32, n * m)
  i, j, x, y = axis(n, 0), axis(m, 1), axis(m, 2, "REDUCE"), axis(m, 3, "REDUCE")
  top = a.index(i * m + x).load().reduce(Ops.MAX, x)
  total = (a.index(i * m + y).load() - top).reduce(Ops.ADD, y)
  return UOp.sink(out.index(i * m + j).store((a.index(i * m + j).load() - top) * total, i, j))

def lanes_of_axes(kernel: UOp) -> dict[int, int]:
  return {o.axis: o.amount for o in opts(kernel) if o.op is OptOps.LOCAL}

@pytest.mark.parametrize("size", [(1, 16), (3, 64), (5, 40), (4, 37), (2, 50)])
def test_a_softmax_s_reductions_and_its_row_are_over_the_same_lanes(size: tuple[int, int]) -> None:
  kernel = softmax(*size)
  found = lanes_of_axes(kernel)
  assert len(found) == 3 and 0 not in found and len(set(found.values())) == 1, found
  program = run(kernel, tolerance=1e-6)
  assert program.grid == size[0] and program.lanes == found[1] and count(program, Ops.DEFINE_LOCAL) == 2

def test_two_reductions_to_one_number_for_each_row() -> None:
  out, a = UOp.param(0, F32, 4), UOp.param(1, F32, 4 * 64)
  i, x, y = axis(4, 0), axis(64, 1, "REDUCE"), axis(64, 2, "REDUCE")
  top = a.index(i * 64 + x).load().reduce(Ops.MAX, x)
  kernel = UOp.sink(out.index(i).store((a.index(i * 64 + y).load() - top).reduce(Ops.ADD, y), i))
  assert set(lanes_of_axes(kernel)) == {1, 2}
  run(kernel)

def test_two_reductions_over_one_range() -> None:
  out, a = UOp.param(0, F32, 4), UOp.param(1, F32, 4 * 64)
  i, x = axis(4, 0), axis(64, 1, "REDUCE")
  value = a.index(i * 64 + x).load()
  kernel = UOp.sink(out.index(i).store(value.reduce(Ops.MAX, x) + value.reduce(Ops.ADD, x), i))
  assert set(lanes_of_axes(kernel)) == {1}
  run(kernel)

def test_a_reduction_inside_of_another_one_is_each_lane_s_own() -> None:
  out, a = UOp.param(0, F32, 4), UOp.param(1, F32, 4 * 16 * 32)
  i, x, y = axis(4, 0), axis(16, 1, "REDUCE"), axis(32, 2, "REDUCE")
  top = a.index((i * 16 + x) * 32 + y).load().reduce(Ops.MAX, y)
  kernel = UOp.sink(out.index(i).store((top * 2).reduce(Ops.ADD, x), i))
  assert not set(lanes_of_axes(kernel)) & {1, 2}
  run(kernel)

def test_a_kernel_without_lanes_in_reductions_stays_as_it_is() -> None:
  kernel = rows(4, 8)
  assert fold_lanes(kernel) is kernel

def test_the_graph_means_the_same() -> None:
  kernel = rows(3, 64)
  split = apply(kernel, (Opt(OptOps.LOCAL, 1, 16),))
  folded = fold_lanes(split)
  assert not any(r.arg[1] is AxisType.LOCAL for u in folded.toposort() if u.op is Ops.REDUCE for r in u.src[1:])
  agree(kernel, folded)

@pytest.mark.parametrize("lanes, stages", [(32, 1), (64, 2), (48, 2), (37, 1), (256, 2)])
def test_many_lanes_fold_groups_first(lanes: int, stages: int) -> None:
  """They do, unless their number is prime."""
  kernel = rows(2, 2 * lanes)
  folded = fold_lanes(apply(kernel, (Opt(OptOps.LOCAL, 1, lanes),)))
  assert sum(u.op is Ops.STAGE for u in folded.toposort()) == stages
  agree(kernel, folded)
  assert max(r.src[0].arg for u in folded.toposort() if u.op is Ops.REDUCE
             for r in u.src[1:]) <= max(16, lanes if stages == 1 else 0)

@pytest.mark.parametrize("deep, stages", [(8, 1), (20, 1), (48, 2), (64, 2)])
def test_lanes_of_the_output_fold_their_own_results(deep: int, stages: int) -> None:
  """They are the faster lanes, so that adjacent lanes read adjacent elements, and a stage holds the results of all."""
  out, a = UOp.param(0, F32, 12), UOp.param(1, F32, 12 * 3 * deep)
  i, x = axis(12, 0), axis(3 * deep, 1, "REDUCE")
  kernel = UOp.sink(out.index(i).store(a.index(x * 12 + i).load().reduce(Ops.ADD, x), i))
  split = apply(kernel, (Opt(OptOps.LOCAL, 0, 4), Opt(OptOps.LOCAL, 1, deep)))
  local = sorted((u for u in split.toposort() if u.op is Ops.RANGE and u.arg[1] is AxisType.LOCAL), key=lambda r: r.arg)
  assert [r.src[0].arg for r in local] == [deep, 4]
  folded = fold_lanes(split, 8)
  assert sum(u.op is Ops.STAGE for u in folded.toposort()) == stages
  agree(kernel, folded)
  expected, found = data_for(kernel), data_for(kernel)
  evaluate(kernel, expected)
  evaluate(lower(folded, EXCHANGING, "columns"), found)
  compare("program", expected, found, 0.0)

@pytest.mark.parametrize("aligned, kind", [(True, OptOps.STRIPED), (False, OptOps.UPCAST)])
@pytest.mark.parametrize("columns", [521, 541])
def test_long_rows_that_nothing_divides_have_copies_too(columns: int, aligned: bool, kind: OptOps) -> None:
  """The remainder is done by all lanes, and then by each lane.

  Where accesses must be aligned, copies are outside of the lanes: neighbours would not be a wider access.
  """
  for kernel, reductions in ((rows(3, columns), {1}), (softmax(3, columns), {1, 2, 3})):
    card = replace(LANES, aligned=aligned, exchanges=True)
    found = optimize(kernel, card).arg.opts
    assert {o.axis for o in found if o.op is kind and o.amount == 4} == reductions, found
    run(kernel, card, 1e-5)

def test_copies_apart_are_around_lanes() -> None:
  """Iteration (loop, copy, lane) is loop * 16 + copy * 8 + lane."""
  out, a = UOp.param(0, F32, 64), UOp.param(1, F32, 64)
  i = axis(64, 0)
  kernel = UOp.sink(out.index(i).store(a.index(i).load(), i))
  split = apply(kernel, (Opt(OptOps.LOCAL, 0, 8), Opt(OptOps.STRIPED, 0, 2)))
  found = {r.arg[1]: access_of(split.src[0]).stride(r) for r in split.toposort() if r.op is Ops.RANGE}
  assert found == {AxisType.LOCAL: 1, AxisType.UPCAST: 8, AxisType.LOOP: 16}
  agree(kernel, split)

def test_integers_too() -> None:
  out, a = UOp.param(0, dtypes.int64, 1), UOp.param(1, dtypes.int64, 96)
  x = axis(96, 0, "REDUCE")
  kernel = UOp.sink(out.index(0).store(a.index(x).load().reduce(Ops.ADD, x)))
  assert optimize(kernel, LANES).arg.opts and run(kernel).lanes == 16

# ***** lanes that exchange values *****

EXCHANGING = replace(LANES, exchanges=True)

@pytest.mark.parametrize("op", (Ops.ADD, Ops.MUL, Ops.MAX))
@pytest.mark.parametrize("lanes, exchanges, stages", [(8, 3, 0), (2, 1, 0), (16, 1, 1), (24, 1, 1), (32, 1, 1),
                                                      (37, 0, 1), (12, 0, 1), (20, 0, 1)])
def test_one_wave_needs_no_stage(lanes: int, exchanges: int, stages: int, op: Ops) -> None:
  """A wave has 8 lanes.

  Each of several waves leaves four results, which are staged. All lanes are staged if no large group of them divides
  into waves.
  """
  kernel = rows(2, 2 * lanes, op)
  folded = fold_lanes(apply(kernel, (Opt(OptOps.LOCAL, 1, lanes),)), 8)
  assert [sum(u.op is found for u in folded.toposort()) for found in (Ops.EXCHANGE, Ops.STAGE)] == [exchanges, stages]
  agree(kernel, folded)
  program = lower(folded, EXCHANGING, "exchanges")
  assert count(program, Ops.DEFINE_LOCAL) == stages and (count(program, Ops.BARRIER) > 0) is (stages > 0)
  expected, found = data_for(kernel), data_for(kernel)
  evaluate(kernel, expected)
  evaluate(program, found)
  compare("program", expected, found, 0.0)

def test_many_waves_are_folded_as_they_were() -> None:
  """They would leave so many results that two stages are better."""
  folded = fold_lanes(apply(rows(2, 144), (Opt(OptOps.LOCAL, 1, 72),)), 8)
  assert not any(u.op is Ops.EXCHANGE for u in folded.toposort())

@pytest.mark.parametrize("size", [(2, 32), (3, 64), (4, 37), (2, 50)])
def test_a_softmax_of_lanes_that_exchange(size: tuple[int, int]) -> None:
  program = run(softmax(*size), EXCHANGING, 1e-6)
  waves = program.lanes // 8
  assert count(program, Ops.EXCHANGE) > 0 or size[1] % 8
  assert count(program, Ops.DEFINE_LOCAL) == (0 if waves == 1 and count(program, Ops.EXCHANGE) else 2)

def test_every_lane_has_the_same_bits() -> None:
  """All lanes add in the order of one tree: halves of the lanes to each other."""
  out, a, lane = UOp.param(0, F32, 8), UOp.param(1, F32, 8), axis(8, 0, "LOCAL")
  other = axis(8, 1, "LOCAL")
  total = a.index(other).load().reduce(Ops.ADD, other)
  kernel = fold_lanes(UOp.sink(out.index(lane).store(total, lane)).substitute({other: lane}), 8)
  values = [1e8, 1.0, -1e8, 3.0, 1e-3, 7e7, -7e7, 0.1]
  memory = {0: [0.0] * 8, 1: values}
  evaluate(lower(kernel, EXCHANGING, "bits"), memory)
  def added(values: list[float]) -> float:
    half = len(values) // 2
    return values[0] if not half else added([single(x + y) for x, y in zip(values[:half], values[half:])])
  assert set(memory[0]) == {added([single(x) for x in values])}

def single(x: float) -> float: return struct.unpack("<f", struct.pack("<f", x))[0]  # type: ignore[no-any-return]

def test_a_sum_of_negative_zeros_is_zero() -> None:
  folded = fold_lanes(apply(rows(1, 8).substitute({UOp.const(F32, 1.0): UOp.const(F32, -0.0)}),
                            (Opt(OptOps.LOCAL, 1, 8),)), 8)
  memory = {0: [1.0], 1: [-0.0] * 8}
  evaluate(lower(folded, EXCHANGING, "zeros"), memory)
  assert math.copysign(1.0, memory[0][0]) == 1.0

def test_sums_of_narrow_floats_are_exchanged_in_float32() -> None:
  kernel = fold_lanes(apply(rows(1, 16, dtype=dtypes.float16), (Opt(OptOps.LOCAL, 1, 8),)), 8)
  exchanges = [u for u in lower(kernel, EXCHANGING, "narrow").uops if u.op is Ops.EXCHANGE]
  assert len(exchanges) == 3 and exchanges[-1].dtype is F32
