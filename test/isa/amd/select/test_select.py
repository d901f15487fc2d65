"""Kernels as AMD code: tests of this vendor alone. test/isa/test_select.py tests all vendors."""
from __future__ import annotations

import pytest

from test.codegen.kernels import axis
from test.isa.amd.machine import ARCHS, check
from tinyhw.codegen.passes import lower
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.amd.capabilities import capabilities
from tinyhw.isa.amd.select.select import select
from tinyhw.isa.amd.target import assemble, target
from tinyhw.uop.enums import ROUGH, Ops
from tinyhw.uop.ops import UOp

F32 = dtypes.float32

@pytest.mark.parametrize("arch", ARCHS)
def test_indices_that_reach_far(arch: str) -> None:
  """More than 4 GiB after the pointer: whole addresses of 64 bits, since an offset to a scalar base has 32 bits."""
  n, far = 1 << 31, (1 << 31) - 40
  out, a = UOp.param(0, dtypes.int32, 32), UOp.param(1, dtypes.int32, n)
  r = axis(32, 0, "LOCAL")
  program = lower(UOp.sink(out.index(r).store(a.index(r + far).load(), r)), capabilities(arch), "far")
  text = [repr(inst) for block in assemble(program, arch)[0].blocks for inst in block.insts]
  assert not any("global_load" in line and "s[" in line for line in text), "the offset does not fit 32 bits"

@pytest.mark.parametrize("arch", ARCHS)
def test_uniform_values_are_computed_once(arch: str) -> None:
  """The workgroup's number and values that depend on it stay in the scalar unit, which also loads the row's factor."""
  out, a, rows = UOp.param(0, F32, 64 * 8), UOp.param(1, F32, 64 * 8), UOp.param(2, F32, 8)
  g, r = axis(8, 0, "GLOBAL"), axis(64, 1, "LOCAL")
  kernel = UOp.sink(out.index(g * 64 + r).store(a.index(g * 64 + r).load() * rows.index(g).load(), g, r))
  function = select(lower(kernel, capabilities(arch), "scaled"), target(arch))
  names = [inst.row.name for block in function.blocks for inst in block.insts]
  assert names.count("global_load_b32") == 1 and "s_load_b32" in names and "v_mul_lo_u32" not in names
  check(kernel, arch, optimized=False)

@pytest.mark.parametrize("arch", ARCHS)
def test_a_place_that_no_lane_reaches_may_be_anywhere(arch: str) -> None:
  """Lanes whose gate is false have an index below 0. The index of the others is within the buffer, so 32 bits are
  enough for all."""
  out, a, lane = UOp.param(0, dtypes.float32, 40), UOp.param(1, dtypes.float32, 32), axis(40, 0, "LOCAL")
  kernel = UOp.sink(out.index(lane).store(a.index(lane * 3 - 60).load((lane > 19) & (lane < 30)), lane))
  program = lower(kernel, capabilities(arch), "before")
  names = [inst.row.name for block in select(program, target(arch)).blocks for inst in block.insts]
  assert any("global_load" in name for name in names) and "add64" not in names
  check(kernel, arch, optimized=False)

@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype", (dtypes.float32, dtypes.int8, dtypes.bfloat16, dtypes.bool, dtypes.int64))
def test_values_that_lanes_exchange(arch: str, dtype: DType) -> None:
  """The crossbar of shared memory permutes among 32 lanes by a constant, and among all lanes by an address."""
  lanes = capabilities(arch).lanes
  a, out, r = UOp.param(1, dtype, lanes), UOp.param(0, dtype, lanes), axis(lanes, 0, "LOCAL")
  value = a.index(r).load()
  for distance in (1, 16, lanes // 2): value = UOp(Ops.EXCHANGE, dtype, (value,), distance)
  check(UOp.sink(out.index(r).store(value, r)), arch, optimized=False)

@pytest.mark.parametrize("arch", ARCHS)
def test_a_value_that_is_equal_in_all_lanes_needs_no_exchange(arch: str) -> None:
  out, r, g = UOp.param(0, dtypes.int32, 64), axis(32, 0, "LOCAL"), axis(2, 1, "GLOBAL")
  kernel = UOp.sink(out.index(g * 32 + r).store(UOp(Ops.EXCHANGE, dtypes.int32, (g.cast(dtypes.int32),), 8), g, r))
  names = [inst.row.name for block in select(lower(kernel, capabilities(arch), "uniform"), target(arch)).blocks
           for inst in block.insts]
  assert not any(name.startswith("ds_") for name in names)

@pytest.mark.parametrize("arch", ARCHS)
def test_rough_operations_are_one_instruction_each(arch: str) -> None:
  a, r = UOp.param(1, F32, 32), axis(32, 0, "LOCAL")
  x, most = a.index(r).load(), UOp(Ops.EXP2, F32, (a.index(r).load(),), ROUGH)
  kernel = UOp.sink(UOp.param(0, F32, 32).index(r).store(UOp(Ops.MAX, F32, (most, x), ROUGH), r))
  names = [inst.row.name for block in select(lower(kernel, capabilities(arch), "rough"), target(arch)).blocks
           for inst in block.insts]
  assert names.count("v_exp_f32") == names.count("v_max_f32") == 1 and not any("ldexp" in name for name in names)
  data = {0: [0.0] * 32, 1: [float(k - 20) for k in range(32)]}
  check(kernel, arch, data=data, optimized=False, tolerance=2.0 ** -18)
