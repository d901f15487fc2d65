"""Kernels as NVIDIA code: requirements of this vendor's code alone. test/isa/test_select.py tests both vendors."""
from __future__ import annotations

import pytest

from test.codegen.kernels import axis
from test.isa.sass.machine import ARCHS, check
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.sass.capabilities import capabilities
from tinyhw.isa.sass.target import assemble, compile
from tinyhw.machine.ir.code import Code
from tinyhw.uop.enums import ROUGH, Ops
from tinyhw.uop.ops import UOp

F32 = dtypes.float32

@pytest.mark.parametrize("arch", ARCHS)
def test_indices_that_reach_far(arch: str) -> None:
  """An index reaches more than 4 GiB after the pointer. That exceeds the constant of an instruction, and 32 bits."""
  n, far = 1 << 31, (1 << 31) - 40
  out, a = UOp.param(0, dtypes.int32, 32), UOp.param(1, dtypes.int32, n)
  r = axis(32, 0, "LOCAL")
  program = lower(UOp.sink(out.index(r).store(a.index(r + far).load(), r)), capabilities(arch), "far")
  names = [inst.row.name for _, inst, _ in assemble(program, arch)[2]]
  assert "IMAD.WIDE" in names and "IADD3" in names

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_more_values_than_registers(arch: str) -> None:
  """More than a hundred doubles are live at once, and more bools than predicates. They are spilled to memory of the
  lanes."""
  n = 160
  a, r = UOp.param(1, dtypes.float64, 32 * n), axis(32, 0, "LOCAL")
  values = [a.index(r * n + k).load() for k in range(n)]
  total = values[0]
  for x in values[1:]: total = total + x
  for x in values: total = total * x
  out = UOp.param(0, dtypes.float64, 32)
  check(UOp.sink(out.index(r).store(total, r)), arch, data={0: [0.0] * 32, 1: [1.0 + k % 2 for k in range(32 * n)]},
        optimized=False)
  flags = [a.index(r * n + k).load() < 0 for k in range(20)]
  chosen: UOp = values[0]
  for flag in flags: chosen = UOp(Ops.WHERE, dtypes.float64, (flag, chosen + 1, chosen * 2))
  for flag in flags: chosen = UOp(Ops.WHERE, dtypes.float64, (flag, chosen + 3, chosen))
  check(UOp.sink(out.index(r).store(chosen, r)), arch, optimized=False)

@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype, count", [(dtypes.float32, 1), (dtypes.int8, 1), (dtypes.bfloat16, 1), (dtypes.bool, 1),
                                          (dtypes.int64, 2),
                                          (dtypes.float64, 2)])
def test_values_that_lanes_exchange(arch: str, dtype: DType, count: int) -> None:
  """SHFL exchanges a value of 64 bits by two instructions, a bool as a number. Only the scoreboard signals the
  result."""
  a, r = UOp.param(1, dtype, 64), axis(64, 0, "LOCAL")
  value = a.index(r).load()
  out = UOp.param(0, dtype, 64)
  kernel = UOp.sink(out.index(r).store(UOp(Ops.EXCHANGE, dtype, (UOp(Ops.EXCHANGE, dtype, (value,), 16),), 1), r))
  check(kernel, arch, optimized=False)
  names = [inst.row.name for _, inst, _ in assemble(lower(kernel, capabilities(arch), "exchange"), arch)[2]]
  assert sum(name.startswith("SHFL") for name in names) == 2 * count

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("op", (Ops.ADD, Ops.MAX, Ops.MUL))
def test_rows_that_lanes_share(arch: str, op: Ops) -> None:
  """One warp needs no shared memory. With several warps, each leaves four results."""
  for rows, columns in ((300, 64), (3, 96), (2, 256)):
    out, a = UOp.param(0, F32, rows), UOp.param(1, F32, rows * columns)
    i, x = axis(rows, 0), axis(columns, 1, "REDUCE")
    kernel = UOp.sink(out.index(i).store(a.index(i * columns + x).load().reduce(op, x), i))
    if rows < 10: check(kernel, arch)
    code, names = compiled(kernel, arch)
    alone = code.lanes == 32
    assert sum(name.startswith("SHFL") for name in names) == (5 if alone else 3)
    assert ("BAR" in names) is not alone and (code.local_bytes > 0) is not alone

def compiled(kernel: UOp, arch: str) -> tuple[Code, list[str]]:
  """Return the code of a kernel, and its instructions' names."""
  program = lower(optimize(kernel, capabilities(arch)), capabilities(arch), "rows")
  return compile(program, arch), [inst.row.name for _, inst, _ in assemble(program, arch)[2]]

@pytest.mark.parametrize("arch", ARCHS)
def test_rough_operations_are_one_instruction_each(arch: str) -> None:
  a, r = UOp.param(1, F32, 32), axis(32, 0, "LOCAL")
  x, most = a.index(r).load(), UOp(Ops.EXP2, F32, (a.index(r).load(),), ROUGH)
  kernel = UOp.sink(UOp.param(0, F32, 32).index(r).store(UOp(Ops.MAX, F32, (most, x), ROUGH), r))
  names = [inst.row.name for _, inst, _ in assemble(lower(kernel, capabilities(arch), "rough"), arch)[2]]
  assert names.count("MUFU") == names.count("FMNMX") == 1 and "FFMA" not in names
  data = {0: [0.0] * 32, 1: [float(k - 20) for k in range(32)]}
  check(kernel, arch, data=data, optimized=False, tolerance=2.0 ** -18)
