"""Every elementwise operation that codegen uses, of every type, on corner values. Varying and uniform results are equal
to the interpreter's, bit for bit."""
from __future__ import annotations

import pytest

from test.codegen.kernels import data_for, wild
from test.isa.amd.machine import ARCHS, check
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.ops import UOp

INTEGER = (Ops.ADD, Ops.SUB, Ops.MUL, Ops.MAX, Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR, Ops.IDIV, Ops.MOD, Ops.NEG,
           *GroupOp.Comparison)
FLOAT = (Ops.ADD, Ops.SUB, Ops.MUL, Ops.MAX, Ops.FDIV, Ops.NEG, Ops.SQRT, Ops.TRUNC, Ops.RECIPROCAL, Ops.MULACC,
         *GroupOp.Comparison)
BOOL = (Ops.AND, Ops.OR, Ops.XOR, Ops.MAX, Ops.ADD, Ops.MUL, *GroupOp.Comparison)
SOURCES = {Ops.NEG: 1, Ops.SQRT: 1, Ops.TRUNC: 1, Ops.RECIPROCAL: 1, Ops.MULACC: 3}

def operations(dtype: DType) -> tuple[Ops, ...]:
  if dtype is dtypes.bool: return BOOL
  return FLOAT if dtypes.is_float(dtype) else INTEGER

def applied(op: Ops, dtype: DType, kind: AxisType, n: int) -> UOp:
  """One operation on each of n elements, in lanes or in one workgroup each."""
  r = UOp.range(n, 0, kind)
  sources = tuple(UOp.param(k + 1, dtype, n).index(r).load() for k in range(SOURCES.get(op, 2)))
  result = dtypes.bool if op in GroupOp.Comparison else dtype
  return UOp.sink(UOp.param(0, result, n).index(r).store(UOp(op, result, sources), r))

@pytest.mark.slow
@pytest.mark.parametrize("kind, n", [(AxisType.LOCAL, 96), (AxisType.GLOBAL, 24)])
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype", (*dtypes.ints, dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bool), ids=str)
def test_every_operation(dtype: DType, arch: str, kind: AxisType, n: int) -> None:
  for op in operations(dtype):
    kernel = applied(op, dtype, kind, n)
    check(kernel, arch, data=data_for(kernel, int(op), wild), optimized=False, what=f"{op.name} of {dtype}")

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("kind", (AxisType.LOCAL, AxisType.GLOBAL))
def test_choices(kind: AxisType, arch: str) -> None:
  for dtype in (dtypes.bool, dtypes.int8, dtypes.int32, dtypes.uint64, dtypes.float32, dtypes.float64, dtypes.bfloat16):
    n = 40
    r = UOp.range(n, 0, kind)
    a, b = (UOp.param(k, dtype, n).index(r).load() for k in (1, 2))
    flag = UOp.param(3, dtypes.int32, n).index(r).load() < 2
    kernel = UOp.sink(UOp.param(0, dtype, n).index(r).store(UOp(Ops.WHERE, dtype, (flag, a, b)), r))
    check(kernel, arch, data=data_for(kernel, 5, wild), optimized=False, what=f"WHERE of {dtype}")

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_constants_of_every_kind_are_operands(arch: str) -> None:
  """Inline constants, literals, two literals at once, and 64-bit constants that no instruction takes."""
  n = 16
  for dtype, values in ((dtypes.int32, (0, 64, 65, -16, -17, 1 << 30)), (dtypes.int64, (1, -5, 1 << 40, -(1 << 62))),
                        (dtypes.uint32, (0xffffffff,)),
                        (dtypes.float32, (0.5, 3.14, -4.0)), (dtypes.float64, (1.0, 0.1))):
    for value in values:
      for kind in (AxisType.LOCAL, AxisType.GLOBAL):
        r = UOp.range(n, 0, kind)
        x, c = UOp.param(1, dtype, n).index(r).load(), UOp.const(dtype, value)
        total = UOp(Ops.ADD, dtype, (UOp(Ops.MUL, dtype, (x, c)), UOp.const(dtype, 7)))
        chosen = UOp(Ops.WHERE, dtype, (x < 3, total, c))
        check(UOp.sink(UOp.param(0, dtype, n).index(r).store(chosen, r)), arch, optimized=False,
              what=f"{value} of {dtype}")
