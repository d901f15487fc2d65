"""TANH and ERF as operations that every target has.

Both are odd and approach 1. They are computed from |x| and E = exp(t) - 1, which is exact to its last bits where t is
near 0, and never below -1:

    tanh(x) = E/(E + 2) with t = 2x
    erf(x) = -E with t = log(1 - erf(x)), which is nearly a parabola, so that a polynomial gives it

Coefficients: test/numerics/minimax.py.
"""
from __future__ import annotations

from tinyhw.codegen.math.exponential import LOG2_OF_E, LOG_OF_2, power_of_two
from tinyhw.codegen.math.floating import fma, format_of, magnitude, minimum, polynomial, sign_bit, subtract, with_sign
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

# (exp(r) - 1 - r) / r**2 for |r| <= log(2)/2, from r**0; relative errors of exp(r) - 1: 2**-26.1 and 2**-55.6
EXPM1: dict[DType, tuple[float, ...]] = {
  dtypes.float32: (0.4999999701976776, 0.1666654646396637, 0.04166744276881218, 0.008366251364350319,
                   0.001386999967508018),
  dtypes.float64: (0.5000000000000006, 0.1666666666666665, 0.041666666666576306, 0.008333333333360475,
                   0.0013888888931375663,
                   0.0001984126976927964, 2.4801505629350586e-05, 2.75573704619571e-06, 2.762588037305818e-07,
                   2.5063703438130935e-08),
}
# log(1 - erf(x)) = x*(first + second + x*P(x)) for 0 <= x <= 4 (float64: 6): first + second is -2/sqrt(pi); P, from
# x**0. Relative errors of erf: 2**-27.8 and 2**-55.3
ERF_SLOPE: dict[DType, tuple[float, float]] = {
  dtypes.float32: (-1.128379225730896, 5.8635382771399236e-08),
  dtypes.float64: (-1.1283791670955126, -1.533545961316588e-17),
}
ERF: dict[DType, tuple[float, ...]] = {
  dtypes.float32: (-0.636619508266449, -0.10277688503265381, 0.019150052219629288, 0.0001652555220061913,
                   -0.0016712862998247147,
                   0.0006348722381517291, -0.00011813457240350544, 9.303120350523386e-06),
  dtypes.float64: (-0.6366197723675876, -0.10277260330144478, 0.019128446995374544, 0.00020919483117877268,
                   -0.0016962075257884528, 0.0005901318072032094, -2.5902569273666896e-05, -6.442491099273136e-05,
                   2.9583434057991536e-05, -3.180203294664785e-06, -3.1217445869669303e-06, 2.0277150831333732e-06,
                   -5.642521059950477e-07, 8.27228533099871e-09, 6.721196133949001e-08, -3.509094017422717e-08,
                   1.0909989927014976e-08, -2.389196528431793e-09, 3.8064728212933087e-10, -4.3553273691762374e-11,
                   3.4076110879252436e-12, -1.6364153663967872e-13, 3.641975051605938e-15),
}
# from here on the function is 1
TANH_LIMIT: dict[DType, float] = {dtypes.float32: 10.0, dtypes.float64: 20.0}
ERF_LIMIT: dict[DType, float] = {dtypes.float32: 4.0, dtypes.float64: 6.0}

def _expm1(t: UOp) -> UOp:
  """Return exp(t) - 1 where 2**k is a normal number."""
  f, scalar = format_of(t), t.dtype.scalar()
  high, low = LOG_OF_2[scalar]
  shifted = fma(t, LOG2_OF_E, f.rounder)
  k = shifted - f.rounder
  rest = fma(k, -low, fma(k, -high, t))
  near = fma(rest * rest, polynomial(rest, EXPM1[scalar]), rest)
  scale = power_of_two(shifted, f)
  return fma(scale, near, scale - 1.0)

def tanh(u: UOp, fused: bool) -> UOp:
  x = u.src[0]
  e = _expm1(minimum(magnitude(x), TANH_LIMIT[u.dtype.scalar()]) * 2.0)
  quotient = e / (e + 2.0) if u.dtype.scalar() is dtypes.float32 else _over_two_more(e, fused)
  return with_sign(quotient, sign_bit(x))

def _over_two_more(e: UOp, fused: bool) -> UOp:
  """Return e / (e + 2), corrected by the rounding error of the sum.

  Where products are rounded, too, the correction would gain nothing.
  """
  divisor = e + 2.0
  if not fused: return e / divisor
  inverse = divisor.alu(Ops.RECIPROCAL)
  first, lost = e * inverse, subtract(e, divisor - 2.0)
  return fma(fma(-first, lost, fma(-first, divisor, e)), inverse, first)

def erf(u: UOp, fused: bool) -> UOp:
  x, scalar = u.src[0], u.dtype.scalar()
  size = minimum(magnitude(x), ERF_LIMIT[scalar])
  first, second = ERF_SLOPE[scalar]
  t = fma(size, first, size * polynomial(size, (second,) + ERF[scalar]))
  return with_sign(magnitude(_expm1(t)), sign_bit(x))
