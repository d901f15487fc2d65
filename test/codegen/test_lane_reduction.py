"""Reductions that lanes share: results as before, one stage over all lanes for each, the first lane stores what does not run over lanes."""
from __future__ import annotations

import pytest

from test.codegen.kernels import agree, axis, count
from test.codegen.test_workgroup import F32, LANES, opts, run
from tinyhw.codegen.lane_reduction import fold_lanes
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.tiling import Opt, OptOps, apply
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

def rows(n: int, m: int, op: Ops = Ops.ADD, dtype: object = F32) -> UOp:
  """out[i] = fold of a[i, x] over x, and 1."""
  out, a = UOp.param(0, F32, n), UOp.param(1, F32, n * m)
  i, x = axis(n, 0), axis(m, 1, "REDUCE")
  return UOp.sink(out.index(i).store(a.index(i * m + x).load().reduce(op, x) + 1, i))

@pytest.mark.parametrize("op", (Ops.ADD, Ops.MUL, Ops.MAX))
@pytest.mark.parametrize("size", [(1, 16), (3, 64), (20, 40), (5, 37), (2, 24)])
def test_rows_whose_memory_lies_along_the_sum(size: tuple[int, int], op: Ops) -> None:
  kernel = rows(*size, op)
  assert any(o.op is OptOps.LOCAL and o.axis == 1 for o in opts(kernel))
  program = run(kernel)
  assert program.lanes in (8, 16) and count(program, Ops.DEFINE_LOCAL) == 1 and count(program, Ops.BARRIER) >= 1

def test_columns_are_lanes_where_memory_lies_along_them() -> None:
  out, a = UOp.param(0, F32, 32), UOp.param(1, F32, 64 * 32)
  i, x = axis(32, 0), axis(64, 1, "REDUCE")
  kernel = UOp.sink(out.index(i).store(a.index(x * 32 + i).load().reduce(Ops.ADD, x), i))
  assert opts(kernel)[:2] == (Opt(OptOps.LOCAL, 0, 16), Opt(OptOps.UPCAST, 0, 2)) and count(run(kernel), Ops.DEFINE_LOCAL) == 0

def test_short_sums_are_each_lane_s_own() -> None:
  assert not any(o.op is OptOps.LOCAL and o.axis == 1 for o in opts(rows(20, 15)))

def softmax(n: int, m: int) -> UOp:
  """Without exponentials: (x - max) * sum(x - max) of each row."""
  out, a = UOp.param(0, F32, n * m), UOp.param(1, F32, n * m)
  i, j, x, y = axis(n, 0), axis(m, 1), axis(m, 2, "REDUCE"), axis(m, 3, "REDUCE")
  top = a.index(i * m + x).load().reduce(Ops.MAX, x)
  total = (a.index(i * m + y).load() - top).reduce(Ops.ADD, y)
  return UOp.sink(out.index(i * m + j).store((a.index(i * m + j).load() - top) * total, i, j))

def lanes_of_axes(kernel: UOp) -> dict[int, int]: return {o.axis: o.amount for o in opts(kernel) if o.op is OptOps.LOCAL}

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
  """Unless their number is prime."""
  kernel = rows(2, 2 * lanes)
  folded = fold_lanes(apply(kernel, (Opt(OptOps.LOCAL, 1, lanes),)))
  assert sum(u.op is Ops.STAGE for u in folded.toposort()) == stages
  agree(kernel, folded)
  assert max(r.src[0].arg for u in folded.toposort() if u.op is Ops.REDUCE for r in u.src[1:]) <= max(16, lanes if stages == 1 else 0)

def test_integers_too() -> None:
  out, a = UOp.param(0, dtypes.int64, 1), UOp.param(1, dtypes.int64, 96)
  x = axis(96, 0, "REDUCE")
  kernel = UOp.sink(out.index(0).store(a.index(x).load().reduce(Ops.ADD, x)))
  assert optimize(kernel, LANES).arg.opts and run(kernel).lanes == 16
