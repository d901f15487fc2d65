"""Kernels as code of every GPU: memory, loops, shared arrays, gates, lanes. The emulator executes them under all its
checks, and the interpreter checks the results.

Tests of one vendor's code alone are in test/isa/amd and test/isa/sass.
"""
from __future__ import annotations
from typing import Any

import pytest

from test.codegen.kernels import axis, compare, data_for
from test.codegen.random_kernels import Generator
from test.isa.amd.machine import AMD
from test.isa.sass.machine import SASS
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.amd import target as amd
from tinyhw.isa.sass import target as sass
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

F32 = dtypes.float32
MACHINES = {arch: machine for machine in (AMD, SASS) for arch in machine.archs}
every_gpu = pytest.mark.parametrize("arch", MACHINES)

@pytest.mark.slow
@pytest.mark.parametrize("machine", (AMD, SASS), ids=("amd", "sass"))
@pytest.mark.parametrize("seed", range(45))
def test_random_kernels(seed: int, machine: Any) -> None:
  generator, arch = Generator(seed), machine.archs[seed % len(machine.archs)]
  kernel = generator.kernel()
  expected, found = data_for(kernel), data_for(kernel)
  evaluate(kernel, expected, generator.variables)
  machine.execute(lower(kernel, machine.capabilities(arch), "random"), arch, found, generator.variables, seed)
  compare(arch, expected, found, 1e-6)

@every_gpu
@pytest.mark.parametrize("n", (1, 31, 64, 100, 500))
def test_elementwise(arch: str, n: int) -> None:
  out, a, b = [UOp.param(k, F32, n) for k in range(3)]
  r = axis(n, 0)
  MACHINES[arch].check(UOp.sink(out.index(r).store(a.index(r).load() * b.index(r).load() + a.index(r).load(), r)), arch)

@every_gpu
def test_a_sum_of_rows(arch: str) -> None:
  out, a = UOp.param(0, F32, 70), UOp.param(1, F32, 70 * 9)
  i, r = axis(70, 0), axis(9, 1, "REDUCE")
  MACHINES[arch].check(UOp.sink(out.index(i).store(a.index(i * 9 + r).load().reduce(Ops.ADD, r), i)), arch)

@every_gpu
def test_a_sum_that_lanes_share(arch: str) -> None:
  """One long row: lanes sum parts, then each other's results, through shared memory."""
  n, capabilities = 600, MACHINES[arch].capabilities(arch)
  out, a, r = UOp.param(0, F32, 1), UOp.param(1, F32, n), axis(n, 0, "REDUCE")
  kernel = UOp.sink(out.index(UOp.const(dtypes.weakint, 0)).store(a.index(r).load().reduce(Ops.ADD, r)))
  program = lower(optimize(kernel, capabilities), capabilities, "sum")
  assert any(u.op is Ops.BARRIER for u in program.uops) and program.lanes >= 32
  MACHINES[arch].check(kernel, arch)

@every_gpu
def test_lanes_share_local_memory(arch: str) -> None:
  """Several waves write shared memory, and all of them read it in another order, with barriers between."""
  n = 150
  out, a = UOp.param(0, dtypes.int32, n), UOp.param(1, dtypes.int32, n)
  fill, lane = axis(n, 0, "LOCAL"), axis(n, 0, "LOCAL")
  staged = UOp(Ops.STAGE, dtypes.int32, (a.index(fill).load() * 3, fill), (0,))
  kernel = UOp.sink(out.index(lane).store(staged.index(UOp.const(dtypes.weakint, n - 1) - lane).load(), lane))
  found = {0: [0] * n, 1: list(range(n))}
  program = lower(kernel, MACHINES[arch].capabilities(arch), "reverse")
  assert any(u.op is Ops.BARRIER for u in program.uops) and program.local_bytes >= 4 * n
  MACHINES[arch].execute(program, arch, found)
  assert found[0] == [3 * (n - 1 - k) for k in range(n)]

@every_gpu
@pytest.mark.parametrize("dtype", (dtypes.bool, dtypes.int8, dtypes.uint16, dtypes.float16, dtypes.int64,
                                   dtypes.float64))
def test_gated_loads_and_stores(dtype: Any, arch: str) -> None:
  """A gate that differs between lanes: an element with a false gate is neither read (it is outside of the buffer) nor
  written."""
  n = 40
  out, a = UOp.param(0, dtype, n), UOp.param(1, dtype, n // 2)
  r = axis(n, 0, "LOCAL")
  value = UOp(Ops.LOAD, dtype, (a.index(r), r < n // 2, UOp.const(dtype, 1)))
  MACHINES[arch].check(UOp.sink(out.index(r).store(value, r)), arch, optimized=False)
  kernel = UOp.sink(UOp(Ops.STORE, dtypes.void, (out.index(r), UOp.const(dtype, 1), r % 3 < 1, r)))
  MACHINES[arch].check(kernel, arch, optimized=False)

@pytest.mark.parametrize("target", (amd.target("gfx1100"), sass.target("sm_90")), ids=lambda t: t.name)
def test_a_condition_that_lanes_take_differently_is_refused(target: Any) -> None:
  lane = UOp(Ops.RANGE, dtypes.int32, (UOp.const(dtypes.int32, 32),), (0, AxisType.LOCAL))
  less = UOp(Ops.CMPLT, dtypes.bool, (lane, UOp.const(dtypes.int32, 3)))
  condition = UOp(Ops.IF, dtypes.void, (less,))
  with pytest.raises(CompileError, match="gate its stores"):
    target.select(Program("k", (lane, less, condition)), target)
