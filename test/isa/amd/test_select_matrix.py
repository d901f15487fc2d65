"""Groups of registers: which elements stand beside each other, and how others are put together."""
from __future__ import annotations

import pytest

from test.codegen.kernels import axis
from test.isa.amd.machine import ARCHS, check
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.amd.capabilities import capabilities
from tinyhw.isa.amd.select import Selector
from tinyhw.codegen.program import Program
from tinyhw.uop.enums import Ops
from tinyhw.uop.matrix import by_columns
from tinyhw.uop.ops import UOp

HALF = dtypes.float16
LOCAL = UOp(Ops.DEFINE_LOCAL, HALF, (), (0, 64))
BASE = UOp(Ops.DEFINE_VAR, dtypes.int32, (), ("n", 0, 8))

@pytest.mark.parametrize("arch", ARCHS)
def test_factors_that_are_loaded_whole(arch: str) -> None:
  """Eight or sixteen halves of a factor are one or two loads."""
  out, a, b = UOp.param(0, dtypes.float32, 64 * 64), UOp.param(1, HALF, 64 * 64), UOp.param(2, HALF, 64 * 64)
  i, j, x = axis(64, 0), axis(64, 1), axis(64, 2, "REDUCE")
  total = a.index(i * 64 + x).load().cast(dtypes.float32) * b.index(x * 64 + j).load().cast(dtypes.float32)
  kernel = UOp.sink(out.index(i * 64 + j).store(total.reduce(Ops.ADD, x), i, j))
  program = lower(optimize(kernel, capabilities(arch)), capabilities(arch), "p")
  names = [inst.row.name for block in Selector(program, arch).run().blocks for inst in block.insts]
  assert sum(name.startswith("load_") for name in names) == 2 and not any(name.startswith("pack") for name in names)
  check(kernel, arch)

def test_another_shape_is_refused() -> None:
  places = [UOp(Ops.INDEX, HALF, (LOCAL, BASE + k if k else BASE)) for k in range(4)]
  factor = UOp(Ops.VECTORIZE, HALF.vec(4), tuple(UOp(Ops.LOAD, HALF, (place,)) for place in places))
  zero = UOp(Ops.CONST, dtypes.float32.vec(4), (), 0.0)
  product = UOp(Ops.MMA, dtypes.float32.vec(4), (factor, factor, zero), by_columns(4, 8, 4, HALF, dtypes.float32, 8))
  with pytest.raises(CompileError, match="gfx1100 has no matrix unit for Matrix.m=4"):
    Selector(Program("k", (BASE, LOCAL, *factor.src, factor, zero, product)), "gfx1100").run()
