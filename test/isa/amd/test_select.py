"""Kernels as AMD code, executed by the emulator's waves under all its checks, beside the interpreter: memory, loops, local arrays, gates, lanes."""
from __future__ import annotations
from typing import Any

import pytest

from test.codegen.kernels import axis, compare, data_for
from test.codegen.random_kernels import Generator
from test.isa.amd.machine import ARCHS, check, execute
from tinyhw.codegen.passes import lower
from tinyhw.codegen.program import Program
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.amd.capabilities import capabilities
from tinyhw.isa.amd.select import select
from tinyhw.isa.amd.target import assemble, target
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.evaluate import evaluate
from tinyhw.uop.ops import UOp

F32 = dtypes.float32

@pytest.mark.parametrize("seed", range(45))
def test_random_kernels(seed: int) -> None:
  generator, arch = Generator(seed), ARCHS[seed % len(ARCHS)]
  kernel = generator.kernel()
  expected, found = data_for(kernel), data_for(kernel)
  evaluate(kernel, expected, generator.variables)
  execute(lower(kernel, capabilities(arch), "random"), arch, found, generator.variables, seed)
  compare(arch, expected, found, 1e-6)

@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("n", (1, 31, 64, 100, 500))
def test_elementwise(arch: str, n: int) -> None:
  out, a, b = [UOp.param(k, F32, n) for k in range(3)]
  r = axis(n, 0)
  check(UOp.sink(out.index(r).store(a.index(r).load() * b.index(r).load() + a.index(r).load(), r)), arch)

@pytest.mark.parametrize("arch", ARCHS)
def test_a_sum_of_rows(arch: str) -> None:
  out, a = UOp.param(0, F32, 70), UOp.param(1, F32, 70 * 9)
  i, r = axis(70, 0), axis(9, 1, "REDUCE")
  check(UOp.sink(out.index(i).store(a.index(i * 9 + r).load().reduce(Ops.ADD, r), i)), arch)

@pytest.mark.parametrize("arch", ARCHS)
def test_lanes_share_local_memory(arch: str) -> None:
  """What several waves put into local memory is read by all of them in another order, with barriers between."""
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
  inside = r < n // 2
  value = UOp(Ops.LOAD, dtype, (a.index(r), inside, UOp.const(dtype, 1)))
  check(UOp.sink(out.index(r).store(value, r)), arch, optimized=False)
  kernel = UOp.sink(UOp(Ops.STORE, dtypes.void, (out.index(r), UOp.const(dtype, 1), r % 3 < 1, r)))
  check(kernel, arch, optimized=False)

@pytest.mark.parametrize("arch", ARCHS)
def test_indices_that_reach_far(arch: str) -> None:
  """More than 4 GiB behind the pointer: 64-bit addresses. Nothing lies between, so a wrong one faults."""
  n, far = 1 << 31, (1 << 31) - 40
  out, a = UOp.param(0, dtypes.int32, 32), UOp.param(1, dtypes.int32, n)
  r = axis(32, 0, "LOCAL")
  program = lower(UOp.sink(out.index(r).store(a.index(r + far).load(), r)), capabilities(arch), "far")
  text = [repr(inst) for block in assemble(program, arch)[0].blocks for inst in block.insts]
  assert not any("global_load" in line and "s[" in line for line in text), "the offset does not fit 32 bits"

@pytest.mark.parametrize("arch", ARCHS)
def test_uniform_values_are_computed_once(arch: str) -> None:
  """The workgroup's number and what is made of it stay in the scalar unit; the row's factor is loaded by it."""
  out, a, rows = UOp.param(0, F32, 64 * 8), UOp.param(1, F32, 64 * 8), UOp.param(2, F32, 8)
  g, r = axis(8, 0, "GLOBAL"), axis(64, 1, "LOCAL")
  kernel = UOp.sink(out.index(g * 64 + r).store(a.index(g * 64 + r).load() * rows.index(g).load(), g, r))
  function = select(lower(kernel, capabilities(arch), "scaled"), target(arch))
  names = [inst.row.name for block in function.blocks for inst in block.insts]
  assert names.count("global_load_b32") == 1 and "s_load_b32" in names and "v_mul_lo_u32" not in names
  check(kernel, arch, optimized=False)

def test_a_condition_that_lanes_take_differently_is_refused() -> None:
  lane = UOp(Ops.RANGE, dtypes.int32, (UOp.const(dtypes.int32, 32),), (0, AxisType.LOCAL))
  less = UOp(Ops.CMPLT, dtypes.bool, (lane, UOp.const(dtypes.int32, 3)))
  condition = UOp(Ops.IF, dtypes.void, (less,))
  with pytest.raises(CompileError, match="gate its stores"): select(Program("k", (lane, less, condition)), target("gfx1100"))

@pytest.mark.parametrize("arch", ARCHS)
def test_a_place_that_no_lane_reaches_may_be_anywhere(arch: str) -> None:
  """Lanes whose gate is false have an index below 0; the others' is within the buffer, so that 32 bits are enough for all."""
  out, a, lane = UOp.param(0, dtypes.float32, 40), UOp.param(1, dtypes.float32, 32), axis(40, 0, "LOCAL")
  kernel = UOp.sink(out.index(lane).store(a.index(lane * 3 - 60).load((lane > 19) & (lane < 30)), lane))
  program = lower(kernel, capabilities(arch), "before")
  names = [inst.row.name for block in select(program, target(arch)).blocks for inst in block.insts]
  assert any("global_load" in name for name in names) and "add64" not in names
  check(kernel, arch, optimized=False)
