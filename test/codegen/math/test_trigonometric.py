"""SIN and COS for hard arguments: near multiples of pi/2, and very large; the reduction against exact arithmetic.

test_transcendental.py tests the other errors.
"""
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
import ulps

from tinyhw.codegen.math import trigonometric
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

each_type = pytest.mark.parametrize("dtype", (dtypes.float32, dtypes.float64), ids=("float32", "float64"))
both = pytest.mark.parametrize("op", (Ops.SIN, Ops.COS), ids=lambda op: op.name)
# Floats closest to a multiple of pi/2, found by continued fractions; the remainders are below 2**-30 and 2**-60
HARDEST = {dtypes.float32: [16367173.0 * 2.0 ** 72], dtypes.float64: [6381956970095103.0 * 2.0 ** 797]}

def inverse_turn(bits: int) -> int:
  """Return 1/(2 pi) times 2**bits by Machin's formula, independent of the constant in the source."""
  one = 1 << (bits + 64)
  def arctan(n: int) -> int:
    total, term, k = 0, one // n, 1
    while term:
      total += term // k if k % 4 == 1 else -(term // k)
      term //= n * n
      k += 2
    return total
  pi = 4 * (4 * arctan(5) - arctan(239))
  return (one * one // (2 * pi)) >> 64

def test_bits_of_the_constant() -> None:
  bits = trigonometric.INVERSE_TURN_BITS
  assert trigonometric.INVERSE_TURN == inverse_turn(bits)

@each_type
def test_windows_are_the_bits_from_any_place(dtype: DType) -> None:
  word, zeros, most = (32, 24, 128) if dtype is dtypes.float32 else (64, 53, 1024)
  places = np.arange(most, dtype=f"u{word // 8}")
  unsigned = dtypes.uint32 if word == 32 else dtypes.uint64
  words = [ulps.compute(w, places) for w in trigonometric._window(UOp(Ops.NOOP, unsigned, (), 0), word, zeros, 3)]
  for place in range(most):
    whole = trigonometric.INVERSE_TURN << 200 >> (trigonometric.INVERSE_TURN_BITS + 200 + zeros - 3 * word - place)
    expected = whole & (1 << 3 * word) - 1
    assert sum(int(w[place]) << word * (2 - k) for k, w in enumerate(words)) == expected

def sine(x: Fraction) -> Fraction:
  """Return sin(x) to about 2**-150, by a reduction with 1500 bits and the series."""
  bits = 1500
  turns = x * Fraction(inverse_turn(bits), 1 << bits)
  part = turns - round(turns)
  angle = part / Fraction(inverse_turn(bits), 1 << bits)
  angle = Fraction(round(angle * (1 << 400)), 1 << 400)
  total = term = angle
  k = 1
  while abs(term) > Fraction(1, 1 << 300):
    term = Fraction(round(-term * angle * angle / ((k + 1) * (k + 2)) * (1 << 400)), 1 << 400)
    total, k = total + term, k + 2
  return total

@both
@each_type
def test_hard_arguments(op: Ops, dtype: DType) -> None:
  """Near multiples of pi/2 the result is small. Its relative error would show any lost bit of the argument."""
  kind = ulps.numpy_type(dtype)
  rng = np.random.default_rng(0)
  large = (rng.uniform(1, 2, 20) * 2.0 ** rng.uniform(0, 127 if dtype is dtypes.float32 else 1023, 20)).tolist()
  xs = np.array(HARDEST[dtype] + [k * math.pi / 2 for k in (1, 2, 3, 4, 5, 1000, 12345)] + large
                + [float(np.finfo(kind).max)], kind)
  got = ulps.compute(ulps.expression(op, dtype), xs)
  quarter = Fraction(1 << 1500, 4 * inverse_turn(1500)) if op is Ops.COS else 0
  bits = 24 if dtype is dtypes.float32 else 53
  for x, g in zip(xs, got):
    want = sine(Fraction(float(x)) + quarter)
    unit = Fraction(2) ** (math.frexp(float(want))[1] - bits)
    assert abs(Fraction(float(g)) - want) <= 2 * unit, f"{op.name} of {float(x)!r}"

@both
@each_type
def test_no_result_of_infinity_and_nan(op: Ops, dtype: DType) -> None:
  x = np.array([math.inf, -math.inf, math.nan], ulps.numpy_type(dtype))
  assert np.isnan(ulps.compute(ulps.expression(op, dtype), x)).all()

@each_type
def test_small_arguments(dtype: DType) -> None:
  kind = ulps.numpy_type(dtype)
  x = np.array([0.0, -0.0, float(np.finfo(kind).smallest_subnormal), 1e-30, -1e-12], kind)
  got = ulps.compute(ulps.expression(Ops.SIN, dtype), x)
  assert np.all(got == x) and np.all(np.signbit(got) == np.signbit(x))
  assert np.all(ulps.compute(ulps.expression(Ops.COS, dtype), x) == 1)

def test_the_test_knows_sines() -> None:
  with localcontext() as context:
    context.prec = 60
    assert abs(Decimal(sine(Fraction(1)).numerator) / Decimal(sine(Fraction(1)).denominator)
               - Decimal("0.841470984807896506652502321630298999622563060798371065673")) < Decimal("1e-50")
