"""Waves of 64 lanes on RDNA: kernels with masks, in local loops and around accesses. The emulator executes them, and
the interpreter checks the results."""
from __future__ import annotations

import pytest

from test.codegen.kernels import axis
from test.isa.amd.machine import check
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

N = 150

def places(dtypes_: tuple[DType, ...]) -> tuple[UOp, list[UOp]]:
  """A range, and the elements at its index of the results' buffer (0) and of the operands' buffers."""
  r = axis(N, 0)
  return r, [UOp.param(k, dtype, N).index(r) for k, dtype in enumerate(dtypes_)]

def unary(op: str) -> UOp:
  if op == "gather":
    r, (out, _, index) = places((dtypes.float32, dtypes.float32, dtypes.int32))
    at, table = index.load(), UOp.param(1, dtypes.float32, N)
    gate = (at >= 0) & (at < N)
    return UOp.sink(out.store(table.index(at).load(gate, UOp.const(dtypes.float32, 0.0)), r))
  dtype = dtypes.float32 if op == "sin" else dtypes.int32 if op == "int32 // x" else dtypes.int64
  r, (out, a, b) = places((dtype, dtype, dtype))
  value = {"sin": lambda: a.load().alu(Ops.SIN), "int64 // 7": lambda: a.load() // 7,
           "int32 // x": lambda: a.load() // b.load(),
           "int64 % x": lambda: a.load() % b.load()}[op]()
  return UOp.sink(out.store(value, r))

@pytest.mark.parametrize("arch", ("gfx1100:wave64", "gfx1200:wave64"))
@pytest.mark.parametrize("op", ("sin", "int64 // 7", "int32 // x", "int64 % x", "gather"))
def test_kernels(op: str, arch: str) -> None:
  check(unary(op), arch, tolerance=4e-7 if op == "sin" else 0, what=op)
