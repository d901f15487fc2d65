"""Every elementwise operation of codegen, of every type, on corner cases, bit for bit like the interpreter."""
from __future__ import annotations

import math
import random

import pytest

from test.codegen.kernels import data_for, wild
from test.codegen.math.test_maximum import rows, with_nan
from test.isa.amd.select.test_alu import applied, operations
from test.isa.sass.machine import ARCHS, check
from tinyhw.arithmetic import from_bytes, round_to
from tinyhw.codegen.passes import lower
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.sass.capabilities import capabilities
from tinyhw.isa.sass.target import assemble
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype", (*dtypes.ints, dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16,
                                   dtypes.bool), ids=str)
def test_every_operation(dtype: DType, arch: str) -> None:
  for op in operations(dtype):
    kernel = applied(op, dtype, AxisType.LOCAL, 96)
    check(kernel, arch, data=data_for(kernel, int(op), wild), optimized=False, what=f"{op.name} of {dtype}")

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_choices(arch: str) -> None:
  for dtype in (dtypes.bool, dtypes.int8, dtypes.int32, dtypes.uint64, dtypes.float32, dtypes.float64, dtypes.bfloat16):
    r, n = UOp.range(40, 0, AxisType.LOCAL), 40
    a, b = (UOp.param(k, dtype, n).index(r).load() for k in (1, 2))
    flag = UOp.param(3, dtypes.int32, n).index(r).load() < 2
    kernel = UOp.sink(UOp.param(0, dtype, n).index(r).store(UOp(Ops.WHERE, dtype, (flag, a, b)), r))
    check(kernel, arch, data=data_for(kernel, 5, wild), optimized=False, what=f"WHERE of {dtype}")

@pytest.mark.slow
@pytest.mark.parametrize("bound", (2.0, -0.5, math.inf, 0.0))
def test_numbers_that_a_constant_bounds(bound: float) -> None:
  """One instruction suffices, with NaN as in the comparison. Zeros are excluded, because a maximum may mix up their
  signs."""
  numbers = [0.0, -0.0, 1.0, 2.0, -0.5, 3.0, -7.0, math.inf, -math.inf, math.nan, 2.0 ** -140]
  n = len(numbers)
  r = UOp.range(n, 0, AxisType.LOCAL)
  x, c = UOp.param(1, dtypes.float32, n).index(r).load(), UOp.const(dtypes.float32, bound)
  for test in ((x, c), (c, x)):
    for chosen in ((x, c), (c, x)):
      value = UOp(Ops.WHERE, dtypes.float32, (UOp(Ops.CMPLT, dtypes.bool, test), *chosen))
      kernel = UOp.sink(UOp.param(0, dtypes.float32, n).index(r).store(value, r))
      check(kernel, "sm_90", data={0: [0.0] * n, 1: numbers}, optimized=False, what=f"{bound}")
      names = {inst.row.name for _, inst, _ in assemble(lower(kernel, capabilities("sm_90"), "test"), "sm_90")[2]}
      assert ("FMNMX" in names) == ("FSETP" not in names) == bool(bound)

@pytest.mark.slow
@pytest.mark.parametrize("kind", ("loop", "unrolled", "both"))
def test_the_largest_of_many_is_one_instruction_each(kind: str) -> None:
  for dtype in (dtypes.float32, dtypes.float16):
    kernel = rows(dtype, kind)
    # the sign of a zero may differ
    check(kernel, "sm_80", data=with_nan(kernel), optimized=False, tolerance=1e-30, what=kind)
    found = [inst.row.name for _, inst, _ in assemble(lower(kernel, capabilities("sm_90"), "test"), "sm_90")[2]]
    assert "FMNMX" in found and not {"FSETP", "FFMA"} & set(found)

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_constants_of_every_kind_are_operands(arch: str) -> None:
  """Immediates of 32 bits, two of them at once, on either side, and those of 64 bits."""
  n = 16
  for dtype, values in ((dtypes.int32, (0, 64, -17, 1 << 30)), (dtypes.int64, (1, -5, 1 << 40, -(1 << 62))),
                        (dtypes.uint32, (0xffffffff,)),
                        (dtypes.float32, (0.0, 0.5, 3.14, -4.0)), (dtypes.float64, (1.0, 0.1))):
    for value in values:
      r = UOp.range(n, 0, AxisType.LOCAL)
      x, c, seven = UOp.param(1, dtype, n).index(r).load(), UOp.const(dtype, value), UOp.const(dtype, 7)
      total = UOp(Ops.ADD, dtype, (UOp(Ops.SUB, dtype, (UOp(Ops.MUL, dtype, (x, c)), c)), seven))
      less = UOp(Ops.CMPLT, dtypes.bool, (c, total))
      for chosen in (UOp(Ops.WHERE, dtype, (x < 3, total, c)), UOp(Ops.WHERE, dtype, (less, c, total)),
                     UOp(Ops.SUB, dtype, (c, total)),
                     UOp(Ops.WHERE, dtype, (less, c, seven))):
        check(UOp.sink(UOp.param(0, dtype, n).index(r).store(chosen, r)), arch, optimized=False,
              what=f"{value} of {dtype}")

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_division_of_float64(arch: str) -> None:
  """Some divisors have a mantissa of ones, whose reciprocal is close to the middle of two numbers. Some results are
  subnormal."""
  divisors = [x * 2.0 ** k for k in (-1000, -3, 0, 1, 900) for x in (1 - 2.0 ** -53, 1 - 2.0 ** -52, 1 - 3 * 2.0 ** -53,
                                                                     1 + 2.0 ** -52)]
  r = UOp.range(len(divisors), 0, AxisType.LOCAL)
  a, b = (UOp.param(k, dtypes.float64, len(divisors)).index(r).load() for k in (1, 2))
  kernel = UOp.sink(UOp.param(0, dtypes.float64, len(divisors)).index(r).store(UOp(Ops.FDIV, dtypes.float64, (a, b)),
                                                                               r))
  for dividend in (1.0, -4.0, 1 - 2.0 ** -53, 3.0, 1e-170, 3e-308, 5e-324, 7e-320):
    check(kernel, arch, data={0: [0.0] * len(divisors), 1: [dividend] * len(divisors), 2: divisors}, optimized=False,
          what=f"{dividend} divided")

@pytest.mark.parametrize("name, dtype",
                         [("FDIV", dtypes.float32), ("SQRT", dtypes.float32), ("RECIPROCAL", dtypes.float32),
                          ("FDIV", dtypes.float64), ("SQRT", dtypes.float64)])
def test_quotients_and_roots_are_correctly_rounded(name: str, dtype: DType) -> None:
  """Operands are random bits: all exponents, denormals, special numbers."""
  rng, n, op = random.Random(11), 512, Ops[name]
  kernel = applied(op, dtype, AxisType.LOCAL, n)
  numbers = [[from_bytes(rng.randbytes(dtype.itemsize), dtype) for _ in range(n)] for _ in range(2)]
  numbers[1] = [x * (1 + rng.choice((0, 1, -3)) * 2.0 ** -20) if rng.random() < 0.3 and x < 1e30 else y
                for x, y in zip(*numbers)]
  data = {0: [0.0] * n, **{k + 1: [round_to(dtype)(x) for x in numbers[k]] for k in range(2 if op is Ops.FDIV else 1)}}
  check(kernel, "sm_90", data=data, optimized=False, what=name)
