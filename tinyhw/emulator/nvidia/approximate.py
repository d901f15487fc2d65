"""The functions of the special function unit, as far off as they may be.

A result that is not exact is one of the numbers around it, the nearer or the other one as the operand's bits decide, so that no program can rely on
correct rounding. Denormal operands and results are zeros. The units for float64 see the upper word alone, and give one: 20 bits of the mantissa.
Source: CUDA C++ programming guide, "Intrinsic Functions": maximum errors in units of the last place.
"""
from __future__ import annotations
import math
from collections.abc import Callable

from tinyhw.arithmetic import divide, exp2, log2, round_float32
from tinyhw.emulator.nvidia.numbers import WORD, double_of, float_of, long_of_double, word_of

SMALLEST_FLOAT, SMALLEST_DOUBLE = 2.0 ** -126, 2.0 ** -1022  # normal numbers
HASH = 2654435761

def reciprocal(x: float) -> float: return divide(1.0, x)
def root(x: float) -> float: return math.sqrt(x) if x >= 0 else math.nan
def reciprocal_root(x: float) -> float: return divide(1.0, math.sqrt(x) if x > 0 else x if x == 0 else math.nan)

def flushed(x: float, smallest: float) -> float: return math.copysign(0.0, x) if abs(x) < smallest else x

def single(exact: Callable[[float], float]) -> Callable[[int], int]:
  """A function of float32, on bits."""
  def call(word: int) -> int:
    value = exact(flushed(float_of(word), SMALLEST_FLOAT))
    nearest = round_float32(value)
    if nearest == value or nearest != nearest or math.isinf(nearest) or word * HASH >> 31 & 1: return word_of(flushed(nearest, SMALLEST_FLOAT))
    other = word_of(nearest) + (1 if abs(value) > abs(nearest) else -1)
    return word_of(flushed(float_of(other), SMALLEST_FLOAT))
  return call

def upper(exact: Callable[[float], float]) -> Callable[[int], int]:
  """A function of float64, on upper words."""
  def call(word: int) -> int:
    value = flushed(exact(flushed(double_of(word << 32), SMALLEST_DOUBLE)), SMALLEST_DOUBLE)
    found = long_of_double(value) >> 32
    if not math.isfinite(value) or value == 0 or word * HASH >> 31 & 1: return found
    return found + 1 & WORD
  return call

FUNCTIONS: dict[str, Callable[[int], int]] = {
  "RCP": single(reciprocal), "RSQ": single(reciprocal_root), "SQRT": single(root), "EX2": single(exp2), "LG2": single(log2),
  "RCP64H": upper(reciprocal), "RSQ64H": upper(reciprocal_root),
}
