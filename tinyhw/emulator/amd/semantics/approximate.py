"""Functions that the hardware approximates, with the largest error that it may have: reciprocals, roots, exponentials,
logarithms, sines, v_trig_preop.

An inexact float32 result is one of its two neighbours: the nearer or the other one, as the operand's bits and
EMULATE_SEED decide. So no program can rely on correct rounding. Denormals are flushed. A float64 result has the 24 bits
that the hardware promises. Sources: ISA guides; LLVM's AMDGPU backend, which corrects the errors of these instructions
(legalizeFDIV, legalizeFSQRT).
"""
from __future__ import annotations
import math
from collections.abc import Callable

from tinyhw.arithmetic import divide, round_float32
from tinyhw.config import EMULATE_SEED
from tinyhw.emulator.amd.semantics.floats import flush_f32
from tinyhw.emulator.python.floats import bits_of_float32, bits_of_float64, float32_of, float64_of

ONES = 0x7fffff  # a mantissa
chance = EMULATE_SEED.value  # another number gives another choice of neighbours

def approximate(exact: Callable[[float], float]) -> Callable[[float], float]:
  """Make a float32 function as the hardware has it: denormals are flushed, inexact results are less than 1 unit in the
  last place off."""
  def call(x: float) -> float:
    x = flush_f32(x)
    value = exact(x)
    result = round_float32(value)
    if result == value or result != result or math.isinf(result): return flush_f32(result)
    bits = bits_of_float32(x)
    # guess: exact, else no division by such a number could be (Markstein 1990, theorem 8.3)
    if bits & ONES == ONES: return flush_f32(result)
    if (bits ^ chance * 0x61c88647) * 2654435761 >> 31 & 1: return flush_f32(result)
    return flush_f32(float32_of(bits_of_float32(result) + (1 if abs(value) > abs(result) else -1)))
  return call

def coarse(exact: Callable[[float], float]) -> Callable[[float], float]:
  """Make a float64 function as the hardware has it: 24 bits are right."""
  def call(x: float) -> float:
    value = exact(x)
    return float64_of(bits_of_float64(value) >> 29 << 29) if math.isfinite(value) else value
  return call

def exponential(x: float) -> float:
  if x != x: return x
  return 0.0 if x < -1080 else math.inf if x >= 1024 else math.pow(2.0, x)

def logarithm(x: float) -> float:
  if x > 0: return math.log2(x)
  return -math.inf if x == 0 else math.nan

def reciprocal(x: float) -> float: return divide(1.0, x)
def reciprocal_root(x: float) -> float: return divide(1.0, math.sqrt(x) if x > 0 else x if x == 0 else math.nan)

def _turns(function: Callable[[float], float], outside: float) -> Callable[[float], float]:
  """Make sin or cos of x revolutions. The range is -256..256."""
  def call(x: float) -> float:
    if not math.isfinite(x): return math.nan
    if abs(x) > 256: return outside
    fraction = math.fmod(x, 1.0) * 4  # quarters are exact
    if fraction == int(fraction):
      return (function is math.sin and (0.0, 1.0, 0.0, -1.0) or (1.0, 0.0, -1.0, 0.0))[int(fraction) % 4]
    return function(fraction * (math.pi / 2))
  return call

sine, cosine = _turns(math.sin, 0.0), _turns(math.cos, 1.0)

def trig_preop(x: float, segment: int) -> float:
  """Return 53 bits of 2/pi, scaled, from the position that the exponent of x and `segment` give. The product with x is
  a part of x * 2/pi."""
  exponent = bits_of_float64(x) >> 52 & 0x7ff
  shift = (segment & 31) * 53 + max(exponent - 1077, 0)
  value = (TWO_OVER_PI << shift & (1 << 1201) - 1) >> 1201 - 53
  scale = -53 - shift + (128 if exponent >= 1968 else 0)
  return math.ldexp(float(value), scale)

def _two_over_pi() -> int:
  """Return floor(2/pi * 2**1201), with Machin's formula for pi."""
  unit = 1 << 1400
  def arctangent_of_inverse(n: int) -> int:
    total, term, k = 0, unit // n, 1
    while term:
      total += term // k if k % 4 == 1 else -(term // k)
      term //= n * n
      k += 2
    return total
  pi = 4 * (4 * arctangent_of_inverse(5) - arctangent_of_inverse(239))
  return (unit << 1202) // pi

TWO_OVER_PI = _two_over_pi()
