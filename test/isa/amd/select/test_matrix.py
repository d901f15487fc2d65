"""Products that the matrix unit computes, and others that it does not."""
from __future__ import annotations

import pytest

from test.codegen.kernels import axis
from test.isa.amd.machine import ARCHS, check
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.config import Context
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.amd.capabilities import capabilities
from tinyhw.isa.amd.select.select import select
from tinyhw.isa.amd.target import assemble, target
from tinyhw.uop.enums import Ops
from tinyhw.uop.matrix import by_columns
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

HALF = dtypes.float16

@pytest.mark.parametrize("arch", ARCHS)
def test_factors_that_are_loaded_whole(arch: str) -> None:
  """Four, eight or sixteen float16 of a factor are one or two loads."""
  out, a, b = UOp.param(0, dtypes.float32, 64 * 64), UOp.param(1, HALF, 64 * 64), UOp.param(2, HALF, 64 * 64)
  i, j, x = axis(64, 0), axis(64, 1), axis(64, 2, "REDUCE")
  total = a.index(i * 64 + x).load().cast(dtypes.float32) * b.index(x * 64 + j).load().cast(dtypes.float32)
  kernel = UOp.sink(out.index(i * 64 + j).store(total.reduce(Ops.ADD, x), i, j))
  with Context(SPEC=1): program = lower(optimize(kernel, capabilities(arch)), capabilities(arch), "p")
  loads = [inst.row.name for block in assemble(program, arch)[0].blocks for inst in block.insts
           if inst.row.pipe == "lds" and "load" in inst.row.name]
  products = sum(u.op is Ops.MMA for u in program.uops)
  assert loads == {"gfx1100": ["ds_load_b128"] * 4, "gfx1200": ["ds_load_b128"] * 2,
                   "gfx942": ["ds_load_b64"] * 2}[arch] * products
  check(kernel, arch)

def test_another_shape_is_refused() -> None:
  factor = UOp(Ops.CONST, HALF.vec(4), (), 1.0)
  zero = UOp(Ops.CONST, dtypes.float32.vec(4), (), 0.0)
  product = UOp(Ops.MMA, dtypes.float32.vec(4), (factor, factor, zero), by_columns(4, 8, 4, HALF, dtypes.float32, 8))
  with pytest.raises(CompileError, match="gfx1100 has no matrix unit for Matrix.m=4"):
    select(Program("k", (factor, zero, product)), target("gfx1100"))
