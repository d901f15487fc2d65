"""Kernels as NVIDIA code, executed by the emulator's warps under all its checks, beside the interpreter: memory, loops, shared memory, gates,
spills."""
from __future__ import annotations
from typing import Any

import pytest

from test.codegen.kernels import axis, compare, data_for
from test.codegen.random_kernels import Generator
from test.isa.sass.machine import ARCHS, check, execute
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.codegen.program import Program
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.sass.capabilities import capabilities
from tinyhw.isa.sass.select import constant_part, select
from tinyhw.isa.sass.target import assemble, target
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.evaluate import evaluate
from tinyhw.uop.ops import UOp

F32 = dtypes.float32

@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("n", (1, 31, 64, 100, 500))
def test_elementwise(arch: str, n: int) -> None:
  out, a, b = [UOp.param(k, F32, n) for k in range(3)]
  r = axis(n, 0)
  check(UOp.sink(out.index(r).store(a.index(r).load() * b.index(r).load() + a.index(r).load(), r)), arch)

@pytest.mark.parametrize("seed", range(45))
def test_random_kernels(seed: int) -> None:
  generator, arch = Generator(seed), ARCHS[seed % len(ARCHS)]
  kernel = generator.kernel()
  expected, found = data_for(kernel), data_for(kernel)
  evaluate(kernel, expected, generator.variables)
  execute(lower(kernel, capabilities(arch), "random"), arch, found, generator.variables, seed)
  compare(arch, expected, found, 1e-6)

@pytest.mark.parametrize("arch", ARCHS)
def test_a_sum_of_rows(arch: str) -> None:
  out, a = UOp.param(0, F32, 70), UOp.param(1, F32, 70 * 9)
  i, r = axis(70, 0), axis(9, 1, "REDUCE")
  check(UOp.sink(out.index(i).store(a.index(i * 9 + r).load().reduce(Ops.ADD, r), i)), arch)

@pytest.mark.parametrize("arch", ARCHS)
def test_a_sum_that_lanes_share(arch: str) -> None:
  """One long row: lanes fold parts, then what each other has, by way of shared memory."""
  n = 600
  out, a, r = UOp.param(0, F32, 1), UOp.param(1, F32, n), axis(n, 0, "REDUCE")
  kernel = UOp.sink(out.index(UOp.const(dtypes.weakint, 0)).store(a.index(r).load().reduce(Ops.ADD, r)))
  program = lower(optimize(kernel, capabilities(arch)), capabilities(arch), "sum")
  assert any(u.op is Ops.BARRIER for u in program.uops) and program.lanes >= 32
  check(kernel, arch)

@pytest.mark.parametrize("arch", ARCHS)
def test_lanes_share_local_memory(arch: str) -> None:
  """What several warps put into shared memory is read by all of them in another order, with barriers between."""
  n = 150
  out, a = UOp.param(0, dtypes.int32, n), UOp.param(1, dtypes.int32, n)
  fill, lane = axis(n, 0, "LOCAL"), axis(n, 0, "LOCAL")
  staged = UOp(Ops.STAGE, dtypes.int32, (a.index(fill).load() * 3, fill), (0,))
  kernel = UOp.sink(out.index(lane).store(staged.index(UOp.const(dtypes.weakint, n - 1) - lane).load(), lane))
  found = {0: [0] * n, 1: list(range(n))}
  program = lower(kernel, capabilities(arch), "reverse")
  assert any(u.op is Ops.BARRIER for u in program.uops) and program.local_bytes >= 4 * n
  execute(program, arch, found)
  assert found[0] == [3 * (n - 1 - k) for k in range(n)]

@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype", (dtypes.bool, dtypes.int8, dtypes.uint16, dtypes.float16, dtypes.int64, dtypes.float64))
def test_gated_loads_and_stores(dtype: Any, arch: str) -> None:
  """A gate that differs between lanes: what it forbids is neither read (it is outside of the buffer) nor written."""
  n = 40
  out, a = UOp.param(0, dtype, n), UOp.param(1, dtype, n // 2)
  r = axis(n, 0, "LOCAL")
  value = UOp(Ops.LOAD, dtype, (a.index(r), r < n // 2, UOp.const(dtype, 1)))
  check(UOp.sink(out.index(r).store(value, r)), arch, optimized=False)
  check(UOp.sink(UOp(Ops.STORE, dtypes.void, (out.index(r), UOp.const(dtype, 1), r % 3 < 1, r))), arch, optimized=False)

@pytest.mark.parametrize("arch", ARCHS)
def test_indices_that_reach_far(arch: str) -> None:
  """More than 4 GiB behind the pointer: too far for the constant of an instruction, and for 32 bits."""
  n, far = 1 << 31, (1 << 31) - 40
  out, a = UOp.param(0, dtypes.int32, 32), UOp.param(1, dtypes.int32, n)
  r = axis(32, 0, "LOCAL")
  program = lower(UOp.sink(out.index(r).store(a.index(r + far).load(), r)), capabilities(arch), "far")
  names = [inst.row.name for _, inst, _ in assemble(program, arch)[2]]
  assert "IMAD.WIDE" in names and "IADD3" in names

@pytest.mark.parametrize("arch", ARCHS)
def test_more_values_than_registers(arch: str) -> None:
  """A hundred doubles and more that are alive at once, and more truths than predicates: memory of the lanes keeps them."""
  n = 160
  a, r = UOp.param(1, dtypes.float64, 32 * n), axis(32, 0, "LOCAL")
  values = [a.index(r * n + k).load() for k in range(n)]
  total = values[0]
  for x in values[1:]: total = total + x
  for x in values: total = total * x
  out = UOp.param(0, dtypes.float64, 32)
  check(UOp.sink(out.index(r).store(total, r)), arch, data={0: [0.0] * 32, 1: [1.0 + k % 2 for k in range(32 * n)]}, optimized=False)
  flags = [a.index(r * n + k).load() < 0 for k in range(20)]
  chosen: UOp = values[0]
  for flag in flags: chosen = UOp(Ops.WHERE, dtypes.float64, (flag, chosen + 1, chosen * 2))
  for flag in flags: chosen = UOp(Ops.WHERE, dtypes.float64, (flag, chosen + 3, chosen))
  check(UOp.sink(out.index(r).store(chosen, r)), arch, optimized=False)

def test_a_condition_that_lanes_take_differently_is_refused() -> None:
  lane = UOp(Ops.RANGE, dtypes.int32, (UOp.const(dtypes.int32, 32),), (0, AxisType.LOCAL))
  less = UOp(Ops.CMPLT, dtypes.bool, (lane, UOp.const(dtypes.int32, 3)))
  condition = UOp(Ops.IF, dtypes.void, (less,))
  with pytest.raises(CompileError, match="gate its stores"): select(Program("k", (lane, less, condition)), target("sm_90"))

def test_constant_parts_of_indices() -> None:
  n = UOp(Ops.DEFINE_VAR, dtypes.int32, (), ("n", 0, 8))
  assert constant_part(n + 5) == (5, n) and constant_part(n) == (0, n) and constant_part(UOp.const(dtypes.int32, 3)) == (3, None)
