"""EXP and EXP2 as operations that every target has.

x is a multiple of a power of two's logarithm plus a rest near 0: exp(x) = 2**k * exp(rest). A polynomial gives
exp(rest). A final fused addition to 1 rounds it once, so that the exponential of 0 is 1. The power of two is applied in
two exact multiplications. The last one rounds where the result is subnormal, and overflows to infinity. Coefficients:
test/numerics/minimax.py.
"""
from __future__ import annotations

from tinyhw.codegen.math.floating import FloatEncoding, clamp, fma, format_of, polynomial, real, signed, subtract
from tinyhw.dtype import DType, dtypes
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.ops import UOp

# exp(r) - 1 - r for |r| <= log 2, from r**2; relative errors of the exponential: 2**-26.0 and 2**-56.5
EXP: dict[DType, tuple[float, ...]] = {
  dtypes.float32: (0.5000003576278687, 0.166666179895401, 0.041661228984594345, 0.008335930295288563,
                   0.0014104752335697412, 0.0001963055838132277),
  dtypes.float64: (0.4999999999999992, 0.16666666666667274, 0.04166666666670365, 0.008333333333234121,
                   0.0013888888883430983, 0.00019841269910832282,
                   2.480159089025716e-05, 2.755729594874155e-06, 2.755614669208112e-07, 2.5055644871427445e-08,
                   2.106312738337037e-09,
                   1.5904165060332133e-10),
}
# (2**f - 1) / f for |f| <= 1/2, from f**0; relative errors of the power: 2**-28.3 and 2**-57.8
EXP2: dict[DType, tuple[float, ...]] = {
  dtypes.float32: (0.6931471824645996, 0.24022647738456726, 0.05550359934568405, 0.009618505835533142,
                   0.0013390806270763278, 0.00015326471475418657),
  dtypes.float64: (0.6931471805599453, 0.24022650695910108, 0.05550410866482173, 0.009618129107601604,
                   0.0013333558146544809, 0.00015403530449036124,
                   1.5252733635195483e-05, 1.32154388362244e-06, 1.0178159614893147e-07, 7.073232955459604e-09,
                   4.4389186218232674e-10),
}
# the same with a relative error of 2**-18.4; at the limit, whose rest is 0, the power of two has the code of 0
ROUGH_EXP2 = (0.6931241869013846, 0.24024098953041367, 0.05590645992667446, 0.009582845358419351)
ROUGH_LIMIT = -127.0
# log 2 in two parts; the first is so short that its product with an exponent is exact
LOG_OF_2: dict[DType, tuple[float, float]] = {
  dtypes.float32: (0.693145751953125, 1.428606765330187e-06),
  dtypes.float64: (0.6931471805598903, 5.497923018708371e-14),
}
LOG2_OF_E = 1.4426950408889634
# At the first number a factor is 0, above the second one an exponential is infinite. An exponential rounds to 0 from
# -104 on (-151 for powers of two). But a product that rounds to 0 is done in microcode by an Intel core, and a product
# with 0 is not. So the masked elements of a softmax, which are about -1e30, get a factor of 0.
LIMITS: dict[DType, tuple[float, float]] = {dtypes.float32: (-176.0, 89.0), dtypes.float64: (-1418.0, 710.0)}
LIMITS_OF_2: dict[DType, tuple[float, float]] = {dtypes.float32: (-191.0, 129.0), dtypes.float64: (-1535.0, 1025.0)}

def power_of_two(shifted: UOp, f: FloatEncoding) -> UOp:
  """Return 2**k where `shifted` is k + f.rounder: a normal number, or 0 for the k below the least one."""
  return real(signed(shifted) << f.mantissa)

def exp(u: UOp, fused: bool) -> UOp:
  """Compute EXP with an even k: 2**k is then the square of a number that does not overflow."""
  f, scalar = format_of(u), u.dtype.scalar()
  high, low = LOG_OF_2[scalar]
  x = clamp(u.src[0], *LIMITS[scalar])
  shifted = fma(x, LOG2_OF_E / 2, f.rounder)
  half = shifted - f.rounder
  rest = fma(half, -2 * low, fma(half, -2 * high, x))
  root = power_of_two(shifted, f)
  return polynomial(rest, (1.0, 1.0) + EXP[scalar]) * root * root

def exp2(u: UOp, fused: bool) -> UOp:
  x = clamp(u.src[0], *LIMITS_OF_2[u.dtype.scalar()])
  power = nearest_power(x)
  return scaled(power, subtract(x, power.whole))

def rough_exp2(x: UOp) -> UOp:
  """Compute EXP2 of numbers below 128 to 18 bits (ROUGH)."""
  f = format_of(x)
  y = (x < ROUGH_LIMIT).where(x.const_like(ROUGH_LIMIT), x)    # NaN stays
  shifted = y + f.rounder
  rest = subtract(y, subtract(shifted, x.const_like(f.rounder)))
  return polynomial(rest, (1.0,) + ROUGH_EXP2) * power_of_two(shifted, f)

class Power(NamedTuple):
  """2**whole, `whole` an integer, as the product of two powers of two that are normal numbers."""
  whole: UOp
  first: UOp
  second: UOp

def nearest_power(x: UOp) -> Power:
  """Return 2 to the integer nearest to x, for all x within LIMITS_OF_2.

  The second power is a constant for each sign of x.
  """
  f = format_of(x)
  offset = (f.bias + 1) // 2
  below = x < 0.0
  bias = below.where(x.const_like(f.rounder + offset), x.const_like(f.rounder - offset))
  shifted = x + bias
  second = below.where(x.const_like(2.0 ** -offset), x.const_like(2.0 ** offset))
  return Power(subtract(shifted, bias), power_of_two(shifted, f), second)

def scaled(power: Power, rest: UOp) -> UOp:
  """Return 2**(power.whole + rest) for a rest of at most 1/2, rounded once more where that is subnormal."""
  return polynomial(rest, (1.0,) + EXP2[rest.dtype.scalar()]) * power.first * power.second
