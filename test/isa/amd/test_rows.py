"""Rows that lanes share: a softmax and a variance, as the engine makes them. The emulator executes them, and the
interpreter checks the results."""
from __future__ import annotations

import pytest

from test.codegen.kernels import axis
from test.isa.amd.machine import ARCHS, check
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.transform.tiling import OptOps
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.amd.capabilities import capabilities
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def softmax(n: int, m: int, dtype: DType) -> UOp:
  out, a = UOp.param(0, dtype, n * m), UOp.param(1, dtype, n * m)
  i, j, x, y = axis(n, 0), axis(m, 1), axis(m, 2, "REDUCE"), axis(m, 3, "REDUCE")
  def row(r: UOp) -> UOp: return a.index(i * m + r).load().cast(dtypes.float32)
  top = row(x).reduce(Ops.MAX, x)
  total = (row(y) - top).alu(Ops.EXP).reduce(Ops.ADD, y)
  return UOp.sink(out.index(i * m + j).store(((row(j) - top).alu(Ops.EXP) / total).cast(dtype), i, j))

def variance(n: int, m: int) -> UOp:
  out, a = UOp.param(0, dtypes.float32, n), UOp.param(1, dtypes.float32, n * m)
  i, x, y = axis(n, 0), axis(m, 1, "REDUCE"), axis(m, 2, "REDUCE")
  mean = a.index(i * m + x).load().reduce(Ops.ADD, x) * (1 / m)
  difference = a.index(i * m + y).load() - mean
  return UOp.sink(out.index(i).store((difference * difference).reduce(Ops.ADD, y) * (1 / m), i))

@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("columns", (256, 200, 131))
def test_rows(columns: int, arch: str) -> None:
  for dtype, tolerance in ((dtypes.float32, 4e-6), (dtypes.float16, 1e-3)):
    kernel = softmax(3, columns, dtype)
    lanes = {o.amount for o in optimize(kernel, capabilities(arch)).arg.opts if o.op is OptOps.LOCAL}
    assert len(lanes) == 1 and lanes.pop() >= capabilities(arch).lanes
    check(kernel, arch, tolerance=tolerance, what=f"softmax of {dtype}")
  check(variance(3, columns), arch, tolerance=4e-6, what="variance")
