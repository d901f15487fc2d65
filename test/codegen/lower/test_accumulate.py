"""Variables of reductions: their start, their type, one leaf for each update."""
import pytest

from test.codegen.kernels import AVX2, EVERYTHING, axis, check, matmul
from tinyhw.codegen.kernel.grid import flatten_grid
from tinyhw.codegen.lower.accumulate import accumulate_reductions, start_of
from tinyhw.codegen.lower.expand import unroll
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def test_starts() -> None:
  assert start_of(Ops.ADD, dtypes.float32).arg == 0.0 and start_of(Ops.MUL, dtypes.int32).arg == 1
  assert start_of(Ops.MAX, dtypes.float32.vec(8)).arg == float("-inf") and start_of(Ops.MAX, dtypes.int8).arg == -128
  assert start_of(Ops.MAX, dtypes.bool).arg is False
  with pytest.raises(CompileError, match="ADD, MUL and MAX it can"): start_of(Ops.XOR, dtypes.int32)

def test_each_reduction_has_a_variable_and_each_update_a_leaf() -> None:
  kernel = accumulate_reductions(unroll(flatten_grid(matmul(12, 32, 8, unroll=4))), AVX2)
  reductions = [u for u in kernel.toposort() if u.op is Ops.REDUCE]
  assert len({r.src[0].arg[0] for r in reductions}) == 12
  for r in reductions:
    updates = [u for u in r.src[1:] if u.op is not Ops.RANGE]
    assert [u.op for u in updates] == [Ops.MULACC] * 4 and [u.src[2].arg for u in updates] == [(r.src[0].arg[0], 0, k)
                                                                                               for k in range(4)]

def test_equal_terms_are_each_counted() -> None:
  out, a = UOp.param(0, dtypes.float32, 1), UOp.param(1, dtypes.float32, 8)
  r, u = axis(2, 0, "REDUCE"), axis(16, 1, "UNROLL")
  program = check(UOp.sink(out.index(0).store(a.index(r).load().reduce(Ops.ADD, r, u))), AVX2)
  assert sum(u.op is Ops.ASSIGN_ACC for u in program.uops) == 2  # eight equal accumulators are one

def test_narrow_floats_accumulate_in_float32_where_they_have_no_addition() -> None:
  out, a = UOp.param(0, dtypes.bfloat16, 1), UOp.param(1, dtypes.bfloat16, 8)
  r = axis(8, 0, "REDUCE")
  x = a.index(r).load()
  kernel = UOp.sink(out.index(0).store((x * x).reduce(Ops.ADD, r)))
  def variable(target: Capabilities) -> UOp:
    return next(u for u in accumulate_reductions(kernel, target).toposort() if u.op is Ops.ACC)
  assert variable(AVX2).dtype is dtypes.float32 and variable(EVERYTHING).dtype is dtypes.bfloat16
  assert any(u.op is Ops.MULACC and u.dtype is dtypes.float32 for u in accumulate_reductions(kernel, AVX2).toposort())

def test_a_reduction_over_nothing_is_its_start() -> None:
  out, a = UOp.param(0, dtypes.float32, 1), UOp.param(1, dtypes.float32, 8)
  r = axis(0, 0, "REDUCE")
  check(UOp.sink(out.index(0).store(a.index(r).load().reduce(Ops.MAX, r))), AVX2)

def test_a_value_that_no_iteration_changes_is_added_each_time() -> None:
  out, a = UOp.param(0, dtypes.float32, 1), UOp.param(1, dtypes.float32, 8)
  r = axis(5, 0, "REDUCE")
  check(UOp.sink(out.index(0).store(a.index(3).load().reduce(Ops.ADD, r))), AVX2)
