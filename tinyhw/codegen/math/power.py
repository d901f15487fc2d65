"""POW as operations that every target has, with the special cases of C's pow (C17, F.10.4.4).

|x|**y is 2**(y * log2|x|). The logarithm needs about ten bits more than a float has, since errors of y * log2|x| are
relative errors of the result. It is computed as a sum of two floats:

    log2(m) = K*(s + s**3/3 + s**5*(...)), s = (m - 1)/(m + 1), K = 2/log(2)

The first two terms have two floats each. The rest, which is below 2**-12 of them, has one. Coefficients:
test/numerics/minimax.py.
"""
from __future__ import annotations
import math

from tinyhw.codegen.math.exponential import LIMITS_OF_2, nearest_power, scaled
from tinyhw.codegen.math.floating import (
  Precise, clamp, exact_product, fast_sum, fma, magnitude, polynomial, real, sign_bit, subtract, unsigned)
from tinyhw.codegen.math.logarithm import split
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

# K and K/3, each in two parts
SLOPE: dict[DType, tuple[float, float]] = {
  dtypes.float32: (2.885390043258667, 3.851926067000022e-08),
  dtypes.float64: (2.8853900817779268, 4.0710547481862066e-17),
}
CUBIC: dict[DType, tuple[float, float]] = {
  dtypes.float32: (0.9617967009544373, -7.028461812552678e-09),
  dtypes.float64: (0.9617966939259756, 5.0577616648125907e-17),
}
# K*(atanh(s)/s - 1 - z/3) / z**2 for z = s*s, from z**0; relative errors of the logarithm: 2**-36.8 and 2**-66.3
REST: dict[DType, tuple[float, ...]] = {
  dtypes.float32: (0.5770801901817322, 0.41184988617897034, 0.3378220200538635),
  dtypes.float64: (0.577078016355618, 0.4121985830919393, 0.3205989022738385, 0.2623077010878196, 0.22198400009768987,
                   0.191255093146286,
                   0.190386173296086),
}
# a larger |y| gives 0, infinity or, where |x| is 1, 1, as this one does
LARGEST_Y: dict[DType, float] = {dtypes.float32: 2.0 ** 40, dtypes.float64: 2.0 ** 80}

def _times(a: Precise, b: Precise, fused: bool) -> Precise:
  high, low = exact_product(a.high, b.high, fused)
  return Precise(high, low + fma(a.high, b.low, a.low * b.high))

def _constant(x: UOp, parts: tuple[float, float]) -> Precise:
  return Precise(x.const_like(parts[0]), x.const_like(parts[1]))

def _quotient(f: UOp, fused: bool) -> Precise:
  """Return f/(f + 2), with the error of the divisor and of the quotient."""
  divisor = f + 2.0
  lost = subtract(f, divisor - 2.0)
  inverse = divisor.alu(Ops.RECIPROCAL)
  first = f * inverse
  high, low = exact_product(first, divisor, fused)
  return Precise(first, subtract(subtract(subtract(f, high), low), first * lost) * inverse)

def _log2(x: UOp, fused: bool) -> Precise:
  scalar = x.dtype.scalar()
  exponent, f = split(x)
  s = _quotient(f, fused)
  square = _times(s, s, fused)
  cube = _times(square, s, fused)
  linear, cubic = _times(s, _constant(x, SLOPE[scalar]), fused), _times(cube, _constant(x, CUBIC[scalar]), fused)
  rest = cube.high * square.high * polynomial(square.high, REST[scalar])
  mantissa = fast_sum(linear.high, cubic.high)
  total = fast_sum(exponent, mantissa.high)
  return fast_sum(total.high, total.low + (mantissa.low + (linear.low + (cubic.low + rest))))

def _magnitude(x: UOp, y: UOp, fused: bool) -> UOp:
  """Return x**y for a positive finite x. The part of the exponent that a float cannot hold is added to the rest near 0.
  """
  scalar = x.dtype.scalar()
  limited = clamp(y, -LARGEST_Y[scalar], LARGEST_Y[scalar])
  logarithm = _log2(x, fused)
  high, low = exact_product(limited, logarithm.high, fused)
  power = clamp(high, *LIMITS_OF_2[scalar])
  inside = power.eq(high).where(fma(limited, logarithm.low, low), high.const_like(0.0))
  near = nearest_power(power)
  return scaled(near, subtract(power, near.whole) + inside)

def pow(u: UOp, fused: bool) -> UOp:
  x, y = u.src
  size, zero, nan = magnitude(x), x.const_like(0.0), x.const_like(math.nan)
  result = _magnitude(size, y, fused)
  # 0 and infinity
  grows = (size > 1.0) ^ (y < 0.0)
  result = (size * 0.5).eq(size).where(grows.where(x.const_like(math.inf), zero), result)
  # negative x
  whole, half = y.trunc().eq(y), y * 0.5
  odd = whole & half.trunc().ne(half)
  result = real(unsigned(result) | odd.where(sign_bit(x), unsigned(zero)))
  result = ((x < 0.0) & (x > -math.inf) & whole.logical_not()).where(nan, result)
  # NaN, and the cases that are 1 even for NaN
  result = (x.ne(x) | y.ne(y)).where(nan, result)
  return (y.eq(0.0) | x.eq(1.0)).where(x.const_like(1.0), result)
