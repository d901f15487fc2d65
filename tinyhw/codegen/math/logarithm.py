"""LOG and LOG2 as operations that every target has.

x = 2**e * m with m between sqrt(1/2) and sqrt(2), and f = m - 1, which is exact. Then log(x) = e*log(2) + log(1 + f).
For float32 log(1 + f) is f + f*f*P(f), a polynomial. For float64 it follows from log(1 + f) = 2*atanh(s), s = f/(2 +
f): f - h + s*(h + R(s*s)), h = f*f/2. Both add f (times 1/log(2), in two parts, for LOG2) last, so that small results
are accurate. Coefficients: test/numerics/minimax.py.
"""
from __future__ import annotations
import math

from tinyhw.codegen.math.exponential import LOG_OF_2
from tinyhw.codegen.math.floating import FloatEncoding, fast_sum, fma, format_of, polynomial, real, signed, subtract
from tinyhw.dtype import DType, dtypes
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.ops import UOp

# (log(1 + f) - f) / f**2, from f**0; relative error of log(1 + f): 2**-25.0
LOG_SINGLE = (-0.49999991059303284, 0.3333394527435303, -0.25001776218414307, 0.19962240755558014, -0.1657031774520874,
              0.1491634100675583,
              -0.14307670295238495, 0.08738762140274048)
# (log2(1 + f) - f/log(2)) / f**2, from f**0; relative error of log2(1 + f): 2**-27.7
LOG2_SINGLE = (-0.7213473320007324, 0.4808982014656067, -0.3606986701488495, 0.28857141733169556, -0.2395673543214798,
               0.20448657870292664,
               -0.19139085710048676, 0.18708820641040802, -0.11025572568178177)
# (log((1 + s)/(1 - s))/s - 2) / z for z = s*s, from z**0; relative error of the logarithm: 2**-59.5
ATANH = (0.6666666666666734, 0.39999999999416525, 0.2857142874207166, 0.2222219859918133, 0.18183563217969545,
         0.15314074091791435,
         0.14795753134857695)
# 1 / log(2) in two parts
LOG2_OF_E: dict[DType, tuple[float, float]] = {
  dtypes.float32: (1.4426950216293335, 1.925963033500011e-08),
  dtypes.float64: (1.4426950408889634, 2.0355273740931033e-17),
}
# by bits of the mantissa: the first float above sqrt(1/2), so that |log2(m)| < 1/2 below 1
SQRT_HALF = {23: 0x3f3504f4, 52: 0x3fe6a09e667f3bcd}

class Split(NamedTuple):
  """A positive number as 2**exponent * (1 + f), sqrt(1/2) <= 1 + f < sqrt(2). The exponent is a float with an integer
  value."""
  exponent: UOp
  f: UOp

def split(x: UOp) -> Split:
  """Split a positive finite number; subnormal ones are scaled up first."""
  f = format_of(x)
  least = SQRT_HALF[f.mantissa]
  tiny = x < f.smallest_normal
  bits = signed(tiny.where(x * 2.0 ** f.mantissa, x))
  mantissa = ((bits - least) & ((1 << f.mantissa) - 1)) + least
  exponent = _exponent(bits, tiny, f, least)
  return Split(exponent, real(mantissa) - 1.0)

def _exponent(bits: UOp, tiny: UOp, f: FloatEncoding, least: int) -> UOp:
  """Return the exponent by a shift and a conversion.

  Few vector units convert int64. For float64 the exponent therefore becomes the low bits of 2**52.
  """
  if f.mantissa == 23:
    above = bits - tiny.where(bits.const_like(least + (f.mantissa << 23)), bits.const_like(least))
    return (above >> 23).cast(dtypes.float32)
  biased = bits + (f.one - least)
  float_bits = (biased.bitcast(f.unsigned.vec(bits.dtype.count)) >> f.mantissa) | ((f.bias + f.mantissa) << f.mantissa)
  zero = real(bits).const_like(2.0 ** 52 + f.bias)
  return subtract(real(float_bits), tiny.where(zero + f.mantissa, zero))

def with_domain(x: UOp, result: UOp) -> UOp:
  """Return a logarithm where x is a positive number. It is infinity for infinity, -infinity at 0, NaN below and for
  NaN."""
  finite = (x < math.inf).where(result, x)
  return (x > 0.0).where(finite, x.eq(0.0).where(x.const_like(-math.inf), x.const_like(math.nan)))

class Tail(NamedTuple):
  """log(1 + f) = high + low, with small errors in high."""
  high: UOp
  low: UOp

def _tail(f: UOp) -> Tail:
  """Return the tail for float64."""
  s = f / (f + 2.0)
  z = s * s
  half = f * f * 0.5
  rest = s * fma(z, polynomial(z, ATANH), half)
  high, low = fast_sum(f, -half)
  return Tail(high, low + rest)

def log(u: UOp, fused: bool) -> UOp:
  x, scalar = u.src[0], u.dtype.scalar()
  e, f = split(x)
  high, low = LOG_OF_2[scalar]
  if scalar is dtypes.float32:
    square = f * f
    result = fma(e, high, f + fma(e, low, square * polynomial(f, LOG_SINGLE)))
  else:
    tail = _tail(f)
    result = fma(e, high, tail.high + fma(e, low, tail.low))
  return with_domain(x, result)

def log2(u: UOp, fused: bool) -> UOp:
  x, scalar = u.src[0], u.dtype.scalar()
  e, f = split(x)
  high, low = LOG2_OF_E[scalar]
  if scalar is dtypes.float32: result = fma(f, high, fma(f, low, f * f * polynomial(f, LOG2_SINGLE)))
  else:
    tail = _tail(f)
    result = fma(tail.high, high, fma(tail.high, low, tail.low * high))
  return with_domain(x, e + result)
