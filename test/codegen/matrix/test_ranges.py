"""Products of many ranges as products of three, and sums whose length is not a multiple of the unit's steps."""
from __future__ import annotations

import math
from dataclasses import replace

import pytest

from test.codegen.kernels import AVX2, agree, axis, count
from test.codegen.matrix.test_matrix import matmul
from test.codegen.plan.test_workgroup import F32, LANES, run
from test.codegen.products import convolution, gradient
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.matrix.local import distance_along
from tinyhw.codegen.matrix.ranges import one_range_each, padded
from tinyhw.codegen.optimize import with_few_ranges
from tinyhw.codegen.transform.tiling import size_of
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.matrix import by_columns
from tinyhw.uop.ops import UOp

def sizes(kernel: UOp) -> tuple[list[int], list[int]]:
  """Return the sizes of the ranges of the store, and of the sum."""
  reduce = next(u for u in kernel.toposort() if u.op is Ops.REDUCE)
  return [size_of(r) for r in ranges_of(kernel.src[0])], [size_of(r) for r in ranges_of(reduce)]

@pytest.mark.parametrize("pad", [0, 1])
def test_a_convolution_has_three_ranges(pad: int) -> None:
  kernel = convolution(2, 3, 6, 8, 3, pad)
  places = 6 + 2 * pad - 2
  changed = one_range_each(kernel, LANES)
  assert sizes(changed) == ([8, 2 * places * places], [28])
  agree(kernel, changed)

@pytest.mark.parametrize("shape", [(2, 3, 6, 8, 3, 1), (1, 8, 8, 4, 3, 0), (3, 5, 5, 9, 2, 1), (2, 4, 9, 12, 1, 0)])
def test_convolutions(shape: tuple[int, int, int, int, int, int]) -> None:
  assert count(run(convolution(*shape)), Ops.MMA) >= 1

@pytest.mark.parametrize("shape", [(2, 8, 6, 8, 3, 1), (1, 16, 7, 4, 3, 0), (3, 5, 5, 9, 2, 1)])
def test_gradients_of_weights(shape: tuple[int, int, int, int, int, int]) -> None:
  assert count(run(gradient(*shape)), Ops.MMA) >= 1

@pytest.mark.slow
def test_what_shifts_is_outside() -> None:
  """Adjacent columns are channels, which are at equal distances in memory.

  Too few channels for the unit stay inside.
  """
  for channels in (8, 5):
    kernel = gradient(1, channels, 8, 8, 3, 1)
    changed = one_range_each(kernel, LANES)
    agree(kernel, changed)
    load = next(u for u in changed.toposort() if u.op is Ops.LOAD and u.src[0].src[0].arg[0] == 1)
    columns = next(r for r in ranges_of(changed.src[0]) if r in load.ranges)
    assert distance_along(load.src[0].src[1], columns, 8) == (64 if channels == 8 else math.inf)

@pytest.mark.slow
def test_weights_stay_in_a_row() -> None:
  """Their sum has the order of memory, unless channels are adjacent in memory."""
  kernel = convolution(2, 8, 6, 8, 3, 1)
  def distance(kernel: UOp) -> float:
    changed = one_range_each(kernel, LANES)
    agree(kernel, changed)
    weights = next(u for u in changed.toposort() if u.op is Ops.LOAD and u.src[0].src[0].arg[0] == 2)
    return distance_along(weights.src[0].src[1],
                          max(ranges_of(next(u for u in changed.toposort() if u.op is Ops.REDUCE))), 8)
  assert distance(kernel) == 1
  weights = next(u for u in kernel.toposort() if u.op is Ops.INDEX and u.src[0].arg[0] == 2)
  o, c, i, j = (next(r for r in kernel.toposort() if r.op is Ops.RANGE and r.arg[0] == k) for k in (1, 4, 5, 6))
  assert distance(kernel.substitute({weights: weights.src[0].index(((i * 3 + j) * 8 + o) * 8 + c)})) == 1

def test_batches_stay() -> None: assert sizes(one_range_each(matmul(8, 10, 8, batch=3), LANES)) == ([3, 8, 8], [12])

def test_a_product_of_three_ranges_is_left_alone() -> None:
  kernel = matmul(8, 16, 8)
  assert one_range_each(kernel, LANES) is kernel

@pytest.mark.parametrize("k", [3, 5, 13, 17, 30, 63])
def test_sums_of_any_length(k: int) -> None: assert count(run(matmul(8, k, 8)), Ops.MMA) >= 1

def test_few_steps_are_added() -> None:
  unit = by_columns(16, 16, 16, dtypes.float16, F32, 32)
  assert [padded(n, unit) for n in (16, 1, 40, 147, 1000, 4096, 4097)] == [16, 16, 48, 160, 1024, 4096, 4224]

def test_a_factor_that_is_computed_is_0_where_steps_were_added() -> None:
  """A constant that is added to 0 in the padding is not 0."""
  out, a, w = UOp.param(0, F32, 64), UOp.param(1, F32, 80), UOp.param(2, F32, 80)
  i, j, x = axis(8, 0), axis(8, 1), axis(10, 2, "REDUCE")
  left = a.index(i * 10 + x).load() + 1
  kernel = UOp.sink(out.index(i * 8 + j).store((left * w.index(x * 8 + j).load()).reduce(Ops.ADD, x), i, j))
  changed = one_range_each(kernel, LANES)
  assert sizes(changed)[1] == [12]
  agree(kernel, changed)
  assert count(run(kernel), Ops.MMA) >= 1

def test_other_kernels_and_targets() -> None:
  """No unit, too small, a reduction of something else, several reductions."""
  for kernel in (convolution(1, 1, 4, 2, 2), convolution(2, 1, 6, 8, 1)): assert one_range_each(kernel, LANES) is kernel
  product = convolution(2, 3, 6, 8, 3)
  assert one_range_each(product, replace(LANES, matrix=())) is product
  assert len(ranges_of(with_few_ranges(product, AVX2).src[0])) > 2
  out, a, i, x = UOp.param(0, F32, 8), UOp.param(1, F32, 80), axis(8, 0), axis(10, 1, "REDUCE")
  largest = UOp.sink(out.index(i).store(a.index(i * 10 + x).load().reduce(Ops.MAX, x), i))
  assert one_range_each(largest, LANES) is largest

def test_digits_that_memory_has_side_by_side_stay_together() -> None:
  """The channels and positions of a weight are contiguous in memory, so its index has no division."""
  changed = one_range_each(convolution(2, 3, 6, 8, 3, 1), LANES)
  loads = {u.src[0].src[0].arg[0]: u for u in changed.toposort() if u.op is Ops.LOAD}
  def divisions(u: UOp) -> int: return sum(v.op in (Ops.IDIV, Ops.MOD) for v in u.src[0].src[1].toposort())
  assert divisions(loads[2]) == 0 and divisions(loads[1]) > 0
  store = changed.src[0]
  assert {int(v.src[1].arg) for v in store.src[0].src[1].toposort()
          if v.op in (Ops.IDIV, Ops.MOD)} == {36}, "images apart, places together"

def test_what_a_factor_reads_by_numbers_from_memory_is_left_alone() -> None:
  out, a, w, rows = UOp.param(0, F32, 64), UOp.param(1, F32, 96), UOp.param(2, F32, 80), UOp.param(3, dtypes.int32, 8)
  i, j, x = axis(8, 0), axis(8, 1), axis(10, 2, "REDUCE")
  left = a.index((rows.index(i).load().cast(dtypes.weakint) % 8) * 10 + x).load()
  kernel = UOp.sink(out.index(i * 8 + j).store((left * w.index(x * 8 + j).load()).reduce(Ops.ADD, x), i, j))
  assert one_range_each(kernel, LANES) is kernel
  run(kernel)
