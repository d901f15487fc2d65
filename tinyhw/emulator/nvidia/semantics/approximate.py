"""The functions of the special function unit, with the largest error that they may have.

An inexact result is the farthest one above or below the exact value, as the operand's bits and EMULATE_SEED decide. So
no program can rely on more than is promised. More is known of reciprocals and reciprocal roots: NVIDIA's own code for
rcp.rn and sqrt.rn makes them correctly rounded by one step of Newton's method. So a result is nearer where the farthest
one would spoil that. Denormal operands and results are zeros.

The units for float64 read and write only the upper word: 20 bits of the mantissa. Source: CUDA C++ programming guide,
"Mathematical Functions": maximum errors in units of the last place; of log2 between 0.5 and 2 an absolute one.
"""
from __future__ import annotations
import math
from collections.abc import Callable

from tinyhw.arithmetic import divide, exp2, fused_float32, log2, round_float32
from tinyhw.config import EMULATE_SEED
from tinyhw.emulator.nvidia.warp.numbers import WORD
from tinyhw.emulator.python.floats import bits_of_float32, bits_of_float64, float32_of, float64_of

SMALLEST_FLOAT, SMALLEST_DOUBLE = 2.0 ** -126, 2.0 ** -1022  # normal numbers
HASH = 2654435761
Bound = Callable[[float, float], float]  # from an operand and the exact result: largest error of a result
chance = EMULATE_SEED.value              # another number gives other results

def reciprocal(x: float) -> float: return divide(1.0, x)
def root(x: float) -> float: return math.sqrt(x) if x >= 0 else math.nan
def reciprocal_root(x: float) -> float: return divide(1.0, math.sqrt(x) if x > 0 else x if x == 0 else math.nan)

def flushed(x: float, smallest: float) -> float: return math.copysign(0.0, x) if abs(x) < smallest else x

def units(count: int) -> Bound: return lambda x, value: math.ldexp(count, max(math.frexp(value)[1] - 24, -149))
def near_one(x: float, value: float) -> float: return 2.0 ** -22 if 0.5 <= x <= 2 else units(2)(x, value)

def always(x: float, found: float) -> bool: return True
def inverts(x: float, found: float) -> bool:
  """Return whether one step of Newton's method makes a reciprocal correctly rounded."""
  step = fused_float32(found, fused_float32(-x, found, 1.0), found)
  return step == round_float32(divide(1.0, x)) or abs(step) < SMALLEST_FLOAT

def leads_to_root(x: float, found: float) -> bool:
  """Return whether one step of Newton's method from the reciprocal of a root makes the root correctly rounded."""
  mantissa, exponent = math.frexp(x)
  x, found = math.ldexp(mantissa, exponent % 2), math.ldexp(found, exponent // 2)
  first = round_float32(x * found)
  return fused_float32(fused_float32(-first, first, x), found / 2, first) == round_float32(math.sqrt(x))

def single(exact: Callable[[float], float], bound: Bound,
           fine: Callable[[float, float], bool] = always) -> Callable[[int], int]:
  """Make a function of float32, on bits. bound: its largest error; fine: whether a result is allowed for an operand."""
  def call(word: int) -> int:
    x = flushed(float32_of(word), SMALLEST_FLOAT)
    value = exact(x)
    nearest = round_float32(value)
    if nearest == value or nearest != nearest or math.isinf(nearest) or abs(value) < SMALLEST_FLOAT:
      return bits_of_float32(flushed(nearest, SMALLEST_FLOAT))
    side = 1 if (word ^ chance * 0x61c88647) * HASH >> 31 & 1 else -1
    most = bound(x, value)
    farthest = bits_of_float32(round_float32(value + side * most))
    inward = -side if float32_of(farthest) > 0 else side
    while abs(float32_of(farthest) - value) > most or not fine(x, float32_of(farthest)): farthest += inward
    return bits_of_float32(flushed(float32_of(farthest), SMALLEST_FLOAT))
  return call

def upper(exact: Callable[[float], float]) -> Callable[[int], int]:
  """Make a function of float64, on upper words."""
  def call(word: int) -> int:
    value = flushed(exact(flushed(float64_of(word << 32), SMALLEST_DOUBLE)), SMALLEST_DOUBLE)
    found = bits_of_float64(value) >> 32
    if not math.isfinite(value) or value == 0 or word * HASH >> 31 & 1: return found
    return found + 1 & WORD
  return call

FUNCTIONS: dict[str, Callable[[int], int]] = {
  "RCP": single(reciprocal, units(1), inverts), "RSQ": single(reciprocal_root, units(2), leads_to_root),
  "SQRT": single(root, units(1)),
  "EX2": single(exp2, units(2)), "LG2": single(log2, near_one), "RCP64H": upper(reciprocal),
  "RSQ64H": upper(reciprocal_root),
}
