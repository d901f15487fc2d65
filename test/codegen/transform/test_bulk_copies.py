"""Operands of products as tensors for bulk copies: the tensors that are found, and equal results of the Programs."""
from __future__ import annotations
from dataclasses import replace

import pytest

from test.codegen.kernels import axis, compare, data_for
from test.codegen.products import product
from tinyhw.codegen.optimize import choose_all, optimize, with_few_ranges
from tinyhw.codegen.passes import lower
from tinyhw.codegen.transform.bulk_copies import tensor_of
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.sass.capabilities import capabilities
from tinyhw.isa.sass.table.matrix import product_of_group
from tinyhw.uop.enums import Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import KernelInfo, UOp
from tinyhw.uop.program import Program
from tinyhw.uop.verify.verify import verify

HALF = dtypes.float16
CAPABLE = replace(capabilities("sm_90"), matrix=(product_of_group(64, HALF),))

def boxed(kernel: UOp) -> Program:
  """Return the Program with the heuristic's opts, and BULK_COPY."""
  opts = choose_all(with_few_ranges(kernel, CAPABLE), CAPABLE)
  summed = [o.axis for o in opts if o.op is OptOps.MATRIX][2]
  if not any(o.op is OptOps.BULK_COPY for o in opts): opts = (*opts, Opt(OptOps.BULK_COPY, summed, 1))
  return lower(optimize(kernel.replace(arg=KernelInfo(opts=opts)), CAPABLE), CAPABLE, "product")

def same(kernel: UOp, program: Program) -> None:
  verify(program, 2)
  expected, found = data_for(kernel), data_for(kernel)
  evaluate(kernel, expected)
  evaluate(program, found)
  compare("boxes", expected, found, 0.0)

def count(program: Program, op: Ops) -> int: return sum(u.op is op for u in program.uops)

@pytest.mark.slow
@pytest.mark.parametrize("transposed", (False, True))
def test_a_product_with_boxes(transposed: bool) -> None:
  """Both operands are contiguous along the sum, or one across it. No lane computes an address of them."""
  kernel = product(64, 64, 256, HALF, dtypes.float32, transposed)
  program = boxed(kernel)
  assert count(program, Ops.SIGNALS) == 1 and not any(u.op is Ops.LOAD for u in program.uops)
  assert {u.src[1].arg.sizes for u in program.uops if u.op is Ops.ASYNC_COPY} == {(64, 64)}
  waits = [u for u in program.uops if u.op is Ops.WAIT]
  assert [len(u.src) for u in waits] == [2] and [u.arg for u in waits] == [(0, 1)]
  same(kernel, program)

def ranges(*sizes: int) -> list[UOp]: return [axis(n, k) for k, n in enumerate(sizes)]

def element(size: int, index: UOp) -> UOp: return UOp.param(1, HALF, size).index(index).load()

@pytest.mark.slow
@pytest.mark.parametrize("there", (64, 96, 100))
def test_gates_that_end_inside_or_at_the_end_of_a_tile(there: int) -> None:
  """Columns from `there` on are padding. Where a tile ends exactly there, its gate compares the tile's number only."""
  m, n, k = 64, 192, 256
  out, a, b = UOp.param(0, dtypes.float32, m * n), UOp.param(1, HALF, m * k), UOp.param(2, HALF, k * 128)
  i, j, x = axis(m, 0), axis(n, 1), axis(k, 2, "REDUCE")
  right = UOp(Ops.LOAD, HALF, (b.index(x * (-(-there // 8) * 8) + j), j < there, UOp.const(HALF, 0)))
  total = (a.index(i * k + x).load().cast(dtypes.float32) * right.cast(dtypes.float32)).reduce(Ops.ADD, x)
  kernel = UOp.sink(out.index(i * n + j).store(total, i, j))
  program = boxed(kernel)
  assert count(program, Ops.SIGNALS) == 1 and not any(u.op is Ops.LOAD for u in program.uops)
  same(kernel, program)

@pytest.mark.slow
@pytest.mark.parametrize("there", (8, 32, 64, 72))
def test_gates_that_end_in_the_first_step_of_a_sum(there: int) -> None:
  m, n, k = 64, 64, 256
  out, a, b = UOp.param(0, dtypes.float32, m * n), UOp.param(1, HALF, m * there), UOp.param(2, HALF, k * n)
  i, j, x = axis(m, 0), axis(n, 1), axis(k, 2, "REDUCE")
  left = UOp(Ops.LOAD, HALF, (a.index(i * there + x), x < there, UOp.const(HALF, 0)))
  total = (left.cast(dtypes.float32) * b.index(x * n + j).load().cast(dtypes.float32)).reduce(Ops.ADD, x)
  kernel = UOp.sink(out.index(i * n + j).store(total, i, j))
  program = boxed(kernel)
  assert count(program, Ops.SIGNALS) == 1 and not any(u.op is Ops.LOAD for u in program.uops)
  same(kernel, program)

def test_matrices_one_after_the_other_are_one_tensor() -> None:
  batch, row, step = ranges(3, 64, 128)
  found = tensor_of(element(3 * 64 * 128, batch * (64 * 128) + row * 128 + step), {step: 1}, {row: 1})
  assert found is not None and found.stride == 128 and found.dims == (128, 192)
  assert [u.render() for u in found.first] == ["0", "(r0*64)"]

def test_matrices_beside_each_other_are_one_tensor() -> None:
  """Heads of attention: a row of memory has a row of each."""
  head, row, step = ranges(4, 100, 64)
  found = tensor_of(element(100 * 256, row * 256 + head * 64 + step), {step: 1}, {row: 1})
  assert found is not None and found.stride == 256 and found.dims == (256, 100)

def test_a_slice_begins_where_it_does() -> None:
  row, step = ranges(64, 64)
  found = tensor_of(element(80 * 96, row * 96 + step + 3 * 96 + 5), {step: 1}, {row: 1})
  assert found is not None and [u.arg for u in found.first] == [5, 3] and found.dims == (69, 67)

def test_a_gate_at_the_end_of_the_sum_is_the_end_of_the_tensor() -> None:
  row, step = ranges(64, 128)
  gate = UOp(Ops.CMPLT, dtypes.bool, (step, UOp.const(dtypes.weakint, 104)))
  place = UOp.param(1, HALF, 64 * 104).index(row * 104 + step)
  x = UOp(Ops.LOAD, HALF, (place, gate, UOp.const(HALF, 0)))
  found = tensor_of(x, {step: 1}, {row: 1})
  assert found is not None and found.dims == (104, 64) and found.stride == 104
  other = UOp(Ops.CMPLT, dtypes.bool, (step * 2, UOp.const(dtypes.weakint, 104)))
  assert tensor_of(x.replace(src=(place, other, x.src[2])), {step: 1}, {row: 1}) is None
  assert tensor_of(x.replace(src=(place, gate, UOp.const(HALF, 1))), {step: 1}, {row: 1}) is None

def test_what_is_no_tensor() -> None:
  """Strides that are not whole pieces, lines across the end of a row of memory, strided elements, and rows at two
  different strides."""
  row, step, more = ranges(64, 64, 2)
  def found(size: int, index: UOp) -> object: return tensor_of(element(size, index), {step: 1}, {row: 1})
  assert found(64 * 64, row * 64 + step) is not None
  assert found(64 * 68, row * 68 + step) is None
  assert found(64 * 128, row * 64 + step + more * 32) is None
  assert found(64 * 128, row * 128 + step * 2) is None
  assert found(64 * 128, (row % 8) * 128 + (row // 8) * 512 + step) is None

@pytest.mark.slow
def test_a_sum_that_is_no_multiple_of_the_steps() -> None:
  """It gets zeros, the value of elements outside of the tensors."""
  kernel = product(64, 64, 504, HALF, dtypes.float32, True)
  opts = *(Opt(OptOps.MATRIX, axis, 64) for axis in range(3)), Opt(OptOps.BULK_COPY, 2, 1)
  program = lower(optimize(kernel.replace(arg=KernelInfo(opts=opts)), capabilities("sm_90")), CAPABLE, "product")
  assert {u.arg.dims[0] for u in program.uops if u.op is Ops.TENSOR_BOX} == {504}
  same(kernel, program)

@pytest.mark.slow
def test_a_loop_around_the_loop_begins_with_new_signals() -> None:
  n, m, k = 2, 64, 256
  out, a, b = UOp.param(0, dtypes.float32, m * 64), UOp.param(1, HALF, n * m * k), UOp.param(2, HALF, n * k * 64)
  i, j, batch, x = axis(m, 0), axis(64, 1), axis(n, 2, "REDUCE"), axis(k, 3, "REDUCE")
  left, right = a.index(batch * (m * k) + i * k + x).load(), b.index(batch * (k * 64) + x * 64 + j).load()
  total = (left.cast(dtypes.float32) * right.cast(dtypes.float32)).reduce(Ops.ADD, batch, x)
  opts = *(Opt(OptOps.MATRIX, axis, 64) for axis in (0, 1, 3)), Opt(OptOps.BULK_COPY, 3, 1)
  kernel = UOp.sink(out.index(i * 64 + j).store(total, i, j))
  program = lower(optimize(kernel.replace(arg=KernelInfo(opts=opts)), CAPABLE), CAPABLE, "product")
  at = next(k for k, u in enumerate(program.uops) if u.op is Ops.SIGNALS)
  assert program.uops[at - 1].op is program.uops[at + 1].op is Ops.BARRIER
  same(kernel, program)

def test_one_factor_that_is_no_tensor_and_both_are_copied_by_lanes() -> None:
  m, k = 64, 256
  out, a, b = UOp.param(0, dtypes.float32, m * 64), UOp.param(1, HALF, m * (k + 4)), UOp.param(2, HALF, k * 64)
  i, j, x = axis(m, 0), axis(64, 1), axis(k, 2, "REDUCE")
  left, right = (place.load().cast(dtypes.float32) for place in (a.index(i * (k + 4) + x), b.index(x * 64 + j)))
  opts = *(Opt(OptOps.MATRIX, axis, 64) for axis in range(3)), Opt(OptOps.BULK_COPY, 2, 1)
  kernel = UOp.sink(out.index(i * 64 + j).store((left * right).reduce(Ops.ADD, x), i, j), arg=KernelInfo(opts=opts))
  assert not count(lower(optimize(kernel, CAPABLE), CAPABLE, "product"), Ops.TENSOR_BOX)

def test_boxes_outside_of_a_loop_are_refused() -> None:
  kernel = product(64, 64, 64, HALF, dtypes.float32, True)
  opts = *(Opt(OptOps.MATRIX, axis, 64) for axis in range(3)), Opt(OptOps.BULK_COPY, 2, 1)
  with pytest.raises(CompileError, match="leave BULK_COPY out"):
    lower(optimize(kernel.replace(arg=KernelInfo(opts=opts)), CAPABLE), CAPABLE, "product")
