"""Bounds hold for every value, and are tight where codegen relies on that."""
from __future__ import annotations
import itertools
import math
import random

import pytest
from hypothesis import given, strategies as st

from generators.expressions import condition, integer, random_point, value_at, variables
from tinyhw.codegen.math.division import reciprocal
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, Variable

a, b = Variable("a", 0, 10), Variable("b", -3, 5)

def bounds(u: UOp) -> tuple[object, object]: return u.vmin, u.vmax

@pytest.mark.parametrize("u, expected", [
  (a * 10, (0, 100)), (a - b, (-5, 13)), (a * b, (-30, 50)), (a // 3, (0, 3)), (b // 2, (-2, 2)), (a // -3, (-4, 0)),
  (a % 4, (0, 3)),
  (a % 20, (0, 10)),
  ((a + 20) % 40, (20, 30)), (b % 4, (0, 3)), (b % -4, (-3, 0)), (a % (a + 1), (0, 10)), (a // 0, (-10, 10)),
  (a.maximum(b), (0, 10)), (-a, (-10, 0)),
  (a < 11, (True, True)), (a < 0, (False, False)), (a < 5, (False, True)), (a.eq(11), (False, False)),
  (a.ne(11), (True, True)), (a & 3,
                             (0, 3)), (a | 3, (3, 15)),
  (a ^ 3, (0, 15)), (a << 2, (0, 40)), (b >> 1, (-2, 2)), ((a < 5).where(a, b), (-3, 10)),
  (a.cast(dtypes.int8), (0, 10)),
  (a.cast(dtypes.bool), (False, True)),
  ((a < 5).cast(dtypes.int32), (False, True)), (UOp.range(8, 0), (0, 7)), (UOp.range(a, 0), (0, 9)),
  (a.bind(4) + 1, (1, 11)),
  (b.alu(Ops.NEG), (-5, 3)),
])
def test_examples(u: UOp, expected: tuple[object, object]) -> None: assert bounds(u) == expected

def test_what_may_wrap_has_the_limits_of_its_type() -> None:
  x = UOp.variable("x", 0, 100, dtypes.int8)
  assert bounds(x + 27) == (27, 127) and bounds(x + 28) == (-128, 127) and bounds(x * 2) == (-128, 127)
  assert bounds(x.cast(dtypes.uint8) - 1) == (0, 255)
  assert (bounds(UOp(Ops.CONST, dtypes.uint8, (), 300)) == (0, 255) and bounds(UOp.const(dtypes.int32, 2**31 - 1) + 1)
          == (-2**31, 2**31 - 1))

def quotient(x: UOp, multiplier: int, shift: int, dtype: DType = dtypes.int32, between: DType = dtypes.int32) -> UOp:
  """x times a number, shifted: the form of a division by a constant in codegen. dtype: of the product; between: of the
  quotient before its last cast."""
  wide = x.cast(dtype) if dtype is not x.dtype else x
  made = UOp(Ops.SHR, dtype, (UOp(Ops.MUL, dtype, (wide, UOp.const(dtype, multiplier))), UOp.const(dtype, shift)))
  return made.cast(between) if between is not dtype else made

def left_over(x: UOp, taken: UOp, n: int) -> UOp:
  """x - taken * n, in the form that a pass writes."""
  return UOp(Ops.SUB, x.dtype, (x, UOp(Ops.MUL, x.dtype, (taken, UOp.const(x.dtype, n)))))

@pytest.mark.parametrize("most, multiplier, shift, n, is_remainder", [
  (351, 373, 13, 22, True), (351, 372, 13, 22, False), (351, 373, 13, 21, False), (2000, 373, 13, 22, False),
  (351, 373, 13, -22, False)])
def test_a_remainder_by_way_of_a_quotient(most: int, multiplier: int, shift: int, n: int, is_remainder: bool) -> None:
  x = UOp.variable("x", 0, most, dtypes.int32)
  for dtype in (dtypes.int32, dtypes.int64):
    u = left_over(x, quotient(x, multiplier, shift, dtype), n)
    assert (bounds(u) == (0, n - 1)) == is_remainder
    values = [k - (k * multiplier >> shift) * n for k in range(most + 1)]
    assert u.vmin <= min(values) and max(values) <= u.vmax
  assert bounds(left_over(x, UOp(Ops.IDIV, dtypes.int32, (x, UOp.const(dtypes.int32, 22))), 22)) == (0, 21)

def test_no_remainder_of_what_wraps_or_is_negative() -> None:
  w = UOp.variable("w", 0, 1000, dtypes.int32)
  narrow = UOp(Ops.IDIV, dtypes.uint8, (w.cast(dtypes.uint8), UOp.const(dtypes.uint8, 16))).cast(dtypes.int32)
  assert bounds(left_over(w, narrow, 16)) == (-240, 1000)   # 1000 is 232 in eight bits
  for shift in (-1, 64): assert bounds(left_over(w, quotient(w, 1, shift), 16))[1] != 15
  x = UOp.variable("x", 0, 1 << 20, dtypes.int32)
  multiplier, shift = reciprocal(22, 1 << 20)
  assert bounds(left_over(x, quotient(x, multiplier, shift, dtypes.int64), 22)) == (0, 21)
  assert bounds(left_over(x, quotient(x, multiplier, shift), 22)) != (0, 21)   # the product has more than 32 bits
  z = UOp.variable("z", 0, 5000, dtypes.int32)
  assert bounds(left_over(z, quotient(z, *reciprocal(22, 5000), dtypes.int64), 22)) == (0, 21)
  for narrow in (dtypes.int64, dtypes.int8), (dtypes.int8, dtypes.int32):   # numbers on the way are cut off
    assert (bounds(UOp(Ops.SUB, dtypes.int32, (z, quotient(z, *reciprocal(22, 5000), *narrow).cast(dtypes.int32) * 22)))
            != (0, 21))
  y = UOp.variable("x", -1, 300, dtypes.int32)
  assert bounds(left_over(y, quotient(y, 373, 13), 22)) != (0, 21)

@given(st.integers(2, 200), st.integers(0, 3000), st.integers(0, 400), st.integers(0, 16))
def test_bounds_of_any_such_difference_hold(n: int, most: int, multiplier: int, shift: int) -> None:
  x = UOp.variable("x", 0, most, dtypes.int32)
  u = left_over(x, quotient(x, multiplier, shift), n)
  assert all(u.vmin <= k - (k * multiplier >> shift) * n <= u.vmax for k in range(most + 1))

def test_floats_loads_and_vectors() -> None:
  place = UOp.param(0, dtypes.int16, 8).index(a)
  f = UOp.const(dtypes.float32, 2.0)
  assert bounds(place.load()) == (-32768, 32767) and bounds(f) == (2.0, 2.0) and bounds(f + f) == (-math.inf, math.inf)
  assert bounds(f < f) == (False, True)
  ints = UOp(Ops.VECTORIZE, dtypes.int32.vec(2), (a.cast(dtypes.int32), b.cast(dtypes.int32)))
  assert bounds(ints) == (-3, 10) and bounds(UOp(Ops.GEP, dtypes.int32, (ints,), 0)) == (-3, 10)
  assert (bounds(UOp(Ops.BROADCAST, dtypes.int32.vec(4), (a.cast(dtypes.int32),))) == (0, 10)
          and bounds(UOp(Ops.DEVICE, arg="CPU")) == (0, 0))
  assert (bounds(UOp(Ops.ACC, dtypes.int32, (a.cast(dtypes.int32),), 0)) == (-2**31, 2**31 - 1)
          and bounds(f.cast(dtypes.uint8)) == (0, 255))

def test_huge_products_do_not_grow_for_ever() -> None:
  u = a
  for _ in range(40): u = u * u + 1
  assert u.vmax.bit_length() < 2000

@pytest.mark.parametrize("op", [Ops.ADD, Ops.SUB, Ops.MUL, Ops.IDIV, Ops.MOD, Ops.MAX, Ops.AND, Ops.OR, Ops.XOR,
                                Ops.SHL, Ops.SHR,
                                Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE])
def test_all_pairs_of_small_intervals(op: Ops) -> None:
  ends = (-5, -2, -1, 0, 1, 3, 4)
  intervals = [(x, y) for x in ends for y in ends if x <= y]
  for (x0, x1), (y0, y1) in itertools.product(intervals, intervals):
    for dtype in (dtypes.weakint, dtypes.int8):
      x, y = UOp.variable("x", x0, x1, dtype), UOp.variable("y", y0, y1, dtype)
      u = x.alu(op, y)
      values = [value_at(u, {x: i, y: j}) for i in range(x0, x1 + 1) for j in range(y0, y1 + 1)]
      assert u.vmin <= min(values) and max(values) <= u.vmax, (op, (x0, x1), (y0, y1), bounds(u))

@pytest.mark.parametrize("dtype", [dtypes.weakint, dtypes.int8, dtypes.uint8, dtypes.int32])
def test_random_expressions_stay_inside(dtype: DType) -> None:
  rng = random.Random(5)
  for _ in range(150):
    leaves = variables(rng, 3, dtype, 0 if dtypes.is_unsigned(dtype) else -8)
    u = rng.choice([integer, condition])(rng, leaves, 4)
    for _ in range(6):
      value = value_at(u, random_point(rng, leaves))
      assert u.vmin <= value <= u.vmax
