"""Division by constants of every kind, and remaining divisions that cannot trap."""
import random

import pytest
from hypothesis import given, strategies as st

from test.codegen.kernels import ALL_TARGETS, AVX2, HALVES, axis, check, count
from tinyhw.codegen.math.division import reciprocal
from tinyhw.codegen.passes import lower
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

@given(st.integers(1, 1 << 31), st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 32) - 1))
def test_a_reciprocal_is_exact_up_to_its_limit(divisor: int, largest: int, x: int) -> None:
  m, s = reciprocal(divisor, largest)
  x = min(x, largest)
  multiple = x // divisor * divisor
  for y in (x, largest, multiple, max(multiple - 1, 0)): assert y * m >> s == y // divisor

def by_constant(op: Ops, dtype: DType, divisor: int, lanes: int = 1) -> UOp:
  r, v = axis(16 // lanes, 0), axis(lanes, 1, "VECTOR")
  i = r * lanes + v
  value = UOp.param(1, dtype, 16).index(i).load().alu(op, UOp.const(dtype, divisor))
  return UOp.sink(UOp.param(0, dtype, 16).index(i).store(value, r, v))

@pytest.mark.parametrize("lanes", (1, 8))
@pytest.mark.parametrize("target", ALL_TARGETS)
@pytest.mark.parametrize("dtype", dtypes.ints)
def test_constants(dtype: DType, target: str, lanes: int) -> None:
  low, high = int(dtype.min), int(dtype.max)
  values = [low, low + 1, low // 2, -8 if low else 8, -7 if low else 9, -1 if low else 1, 0, 1, 6, 7, 8, 100, high // 3,
            high // 2, high - 1, high]
  for divisor in (1, 2, 3, 7, 64, 100, high, *(() if low == 0 else (-1, -3, low)), 0):
    for op in (Ops.IDIV, Ops.MOD):
      check(by_constant(op, dtype, divisor, lanes), ALL_TARGETS[target], data={0: [0] * 16, 1: values})

def test_no_division_is_left_where_a_multiplication_does() -> None:
  out, a = UOp.param(0, dtypes.float32, 700), UOp.param(1, dtypes.float32, 100)
  r = axis(700, 0)
  program = lower(UOp.sink(out.index(r).store(a.index(r // 7).load(), r)), AVX2, "seventh")
  assert count(program, Ops.IDIV) == 0 and count(program, Ops.MUL) == 1 and count(program, Ops.SHR) == 1
  for dtype in (dtypes.int32, dtypes.uint8, dtypes.int16):
    assert count(lower(by_constant(Ops.IDIV, dtype, 7), AVX2, "x"), Ops.IDIV) == 0

def test_a_divisor_that_may_be_zero_is_guarded() -> None:
  out, a, b = [UOp.param(k, dtypes.int32, 8) for k in range(3)]
  r = axis(8, 0)
  kernel = UOp.sink(out.index(r).store(a.index(r).load() // b.index(r).load(), r))
  values = {0: [0] * 8, 1: [-1 << 31, -1 << 31, 7, -7, 7, -7, 0, 5], 2: [-1, 0, 2, 2, -2, -2, 0, 0]}
  for target in ALL_TARGETS.values(): check(kernel, target, data=values)

@pytest.mark.parametrize("dtype", (dtypes.uint32, dtypes.int32, dtypes.uint64, dtypes.int64))
def test_estimated_quotients_are_exact(dtype: DType) -> None:
  """Dividends next to multiples of the divisor, where an estimate is most easily wrong."""
  rng, n = random.Random(int(dtype.bitsize)), 256
  pairs = []
  for _ in range(n):
    b = rng.getrandbits(rng.randint(1, dtype.bitsize - (dtype in dtypes.sints))) or 1
    a = min(int(dtype.max),
            rng.randint(0, int(dtype.max) // b) * b + rng.choice((0, b - 1, -1 if b > 1 else 0, rng.randrange(b))))
    pairs.append((max(a, 0), b))
  pairs[:6] = [(int(dtype.max), b) for b in (1, 2, 3, int(dtype.max), int(dtype.max) - 1, int(dtype.max) // 2 + 1)]
  for op in (Ops.IDIV, Ops.MOD):
    out, a, b = [UOp.param(k, dtype, n) for k in range(3)]
    r = axis(n, 0)
    kernel = UOp.sink(out.index(r).store(a.index(r).load().alu(op, b.index(r).load()), r))
    check(kernel, HALVES, data={0: [0] * n, 1: [x for x, _ in pairs], 2: [y for _, y in pairs]})
