"""Division in steps: v_div_scale, v_div_fmas and v_div_fixup, with an approximate reciprocal and fused multiply-adds
between them.

Sources: ISA guides, with the corrections that are marked; LLVM's legalizeFDIV32 and legalizeFDIV64 for the sequence.
"""
from __future__ import annotations
import math
from collections.abc import Callable
from fractions import Fraction

from tinyhw.arithmetic import fused_float32, fused_float64, round_float32
from tinyhw.emulator.amd.semantics.floats import SMALLEST_F32, SMALLEST_F64, scaled, scaled_f32
from tinyhw.emulator.python.floats import bits_of_float64

def _double_of(x: Fraction) -> float:
  """Round x to float64."""
  try: return float(x)
  except OverflowError: return math.inf if x > 0 else -math.inf

def _single_of(x: Fraction) -> float:
  """Round x once to float32: to odd in a double first."""
  value = _double_of(x)
  if math.isfinite(value) and Fraction(value) != x and not bits_of_float64(value) & 1:
    value = math.nextafter(value, math.inf if x > value else -math.inf)
  return round_float32(value)

class Division:
  """The three steps of a division in one float type, after the ISA guides."""
  def __init__(self, smallest: float, distance: int, scale: int, tiny: int, least_exponent: int, vanishing: int,
               rounding: Callable[[Fraction], float], fused: Callable[[float, float, float], float],
               ldexp: Callable[[float, int], float]):
    self.smallest, self.distance, self.scale, self.tiny, self.least_exponent = (smallest, distance, scale, tiny,
                                                                                least_exponent)
    self.vanishing, self.rounding, self.fused, self.ldexp = vanishing, rounding, fused, ldexp

  def exponent(self, x: float) -> int:
    """Return the exponent field: one value for all denormals and 0, one for infinities and NaN."""
    if not math.isfinite(x): return 1 - self.least_exponent
    return max(math.frexp(x)[1] - 1, self.least_exponent) if x else self.least_exponent

  def denormal(self, x: float) -> bool: return x != 0 and abs(x) < self.smallest
  def small(self, numerator: float, denominator: float) -> bool:
    """Return whether the quotient is a denormal, or rounds to 0."""
    if not math.isfinite(denominator) or numerator == 0: return False
    return (math.frexp(numerator)[1] - math.frexp(denominator)[1] <= math.frexp(self.smallest)[1]
            and abs(numerator / denominator) < self.smallest)

  def flag(self, denominator: float, numerator: float) -> bool:
    """Return VCC of v_div_scale: whether v_div_fmas has to scale the quotient back."""
    if denominator == 0 or numerator == 0 or denominator != denominator or numerator != numerator: return False
    if self.exponent(numerator) - self.exponent(denominator) >= self.distance: return True
    return not self.denormal(denominator) and self.small(numerator, denominator)

  def scaled(self, value: float, denominator: float, numerator: float) -> float:
    """Return the result of v_div_scale. `value` is the denominator or the numerator, and is scaled so that intermediate
    steps neither overflow nor vanish."""
    if denominator == 0 or numerator == 0: return math.nan
    if self.exponent(numerator) - self.exponent(denominator) >= self.distance:
      return self.ldexp(value, self.scale) if value == denominator else value
    if self.denormal(denominator): return self.ldexp(value, self.scale)
    inverse_small, quotient_small = self.small(1.0, denominator), self.small(numerator, denominator)
    if inverse_small and quotient_small: return self.ldexp(value, -self.scale) if value == denominator else value
    if inverse_small: return self.ldexp(value, -self.scale)
    if quotient_small: return self.ldexp(value, self.scale) if value == numerator else value
    if self.exponent(numerator) - self.least_exponent <= self.tiny: return self.ldexp(value, self.scale)
    return value

  def fmas(self, a: float, b: float, c: float, flag: bool) -> float:
    """Return a * b + c, the quotient, scaled back if the flag says so: up if it is large, else down."""
    if not flag: return self.fused(a, b, c)
    scale = self.scale if self.exponent(c) >= 1 else -self.scale
    if not all(map(math.isfinite, (a, b, c))): return self.ldexp(self.fused(a, b, c), scale)
    factor = Fraction(2) ** scale
    exact = (Fraction(a) * Fraction(b) + Fraction(c)) * factor
    return self.rounding(exact)

  def fixup(self, quotient: float, denominator: float, numerator: float) -> float:
    """Return the quotient with the right sign, and the special cases."""
    if numerator != numerator or denominator != denominator: return math.nan
    sign = math.copysign(1.0, denominator) * math.copysign(1.0, numerator)
    if denominator == 0 and numerator == 0 or math.isinf(denominator) and math.isinf(numerator): return math.nan
    if denominator == 0 or math.isinf(numerator): return math.copysign(math.inf, sign)
    if math.isinf(denominator) or numerator == 0: return math.copysign(0.0, sign)
    if self.exponent(numerator) - self.exponent(denominator) < self.vanishing: return math.copysign(0.0, sign)
    if quotient != quotient: return math.copysign(math.inf, sign)  # intermediate steps overflowed, so the quotient does
    return math.copysign(quotient, sign)

# ERRATA the guides have fmas multiply with 2**32 or 2**64 always, and div_scale enlarge a denominator that is too large
# already; no quotient would be right then. guess: as here; the sequence that compilers emit gives correctly rounded
# quotients
DIVISION = {"f32": Division(SMALLEST_F32, 96, 64, 23, -127, -150, _single_of, fused_float32, scaled_f32),
            "f64": Division(SMALLEST_F64, 768, 128, 53, -1023, -1075, _double_of, fused_float64, scaled(float))}
