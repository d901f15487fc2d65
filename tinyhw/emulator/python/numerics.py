"""The functions of the notation that are the same on all cards, on one lane, in Python numbers.

notation.py has their parameters and results. A card's own functions are in its room: AMD's in
amd/semantics/numerics.py, NVIDIA's in nvidia/semantics/numerics.py. Floats are Python floats that their type can hold.
Conversions of floats to integers truncate and saturate, and NaN gives 0. Signalling NaNs are taken as quiet ones.
"""
from __future__ import annotations
import math
from collections.abc import Callable
from typing import Any

from tinyhw.arithmetic import (
  decode_bfloat16, decode_float16, encode_bfloat16, encode_float16, fused_float32, fused_float64, fused_to_odd,
  int_to_float32, round_bfloat16, round_float16, round_float32, truncate_float)
from tinyhw.emulator.python.floats import HALVES, bits_of_float32, bits_of_float64, float32_of, float64_of

# ***** conversions *****

def float_to_integer(x: float, low: int, high: int) -> int:
  """Truncate x and clamp it to low..high. NaN gives 0."""
  if x != x: return 0
  if x <= low: return low
  return high if x >= high else int(x)

def integer_to_f16(x: int) -> float: return round_float16(float(x))
def integer_to_f64(x: int) -> float: return float(x)

# ***** comparisons and choices *****

def lane_bits(mask: int, lanes: int) -> tuple[bool, ...]:
  """Return a mask as one boolean for each lane."""
  return tuple([character == "1" for character in f"{mask & (1 << lanes) - 1:0{lanes}b}"[::-1]])

def least(a: Any, b: Any) -> Any: return a if a < b else b
def most(a: Any, b: Any) -> Any: return a if a > b else b

def min_num(a: float, b: float) -> float:
  """Return the smaller number. Of a number and a NaN it is the number. -0 is below +0."""
  if a != a: return b
  if b != b: return a
  if a == b: return a if math.copysign(1.0, a) < 0 else b
  return a if a < b else b

def max_num(a: float, b: float) -> float:
  """Return the greater number. Of a number and a NaN it is the number. -0 is below +0."""
  if a != a: return b
  if b != b: return a
  if a == b: return b if math.copysign(1.0, a) < 0 else a
  return a if a > b else b

def minimum(a: float, b: float) -> float: return math.nan if a != a or b != b else min_num(a, b)
def maximum(a: float, b: float) -> float: return math.nan if a != a or b != b else max_num(a, b)

# ***** arithmetic *****

def _fused_half(rounding: Callable[[float], float]) -> Callable[[float, float, float], float]:
  """Fuse a multiplication and addition of a 16-bit type. A double holds the product of two such floats. Its sum with a
  third one is rounded to odd first, so that the last rounding is correct."""
  return lambda a, b, c: rounding(fused_to_odd(a, b, c))

_FUSED = {"f16": _fused_half(round_float16), "bf16": _fused_half(round_bfloat16), "f32": fused_float32,
          "f64": fused_float64}

def _by_type() -> dict[str, Callable[..., Any]]:
  """Return implementations of functions that differ by type: name_type."""
  found: dict[str, Callable[..., Any]] = {}
  for name, fused in _FUSED.items():
    found |= {f"{f.__name__}_{name}": f for f in (min_num, max_num, minimum, maximum)}
    found |= {f"fma_{name}": fused, f"magnitude_{name}": abs, f"isnan_{name}": math.isnan,
              f"trunc_{name}": truncate_float}
  for name in (f"{sign}{bits}" for bits in (8, 16, 32, 64) for sign in "ui"):
    found |= {f"least_{name}": least, f"most_{name}": most, f"magnitude_{name}": abs}
  return found

def environment() -> dict[str, Any]:
  """Return the names that generated Python functions may use."""
  plain = (lane_bits, float_to_integer, integer_to_f16, integer_to_f64, float32_of, bits_of_float32, float64_of,
           bits_of_float64, round_float16, round_bfloat16, round_float32, encode_float16, decode_float16,
           encode_bfloat16, decode_bfloat16)
  return {f.__name__: f for f in plain} | _by_type() | {
    "integer_to_f32": int_to_float32, "as_f32": float32_of, "as_f64": float64_of, "as_f16": HALVES.__getitem__,
    "as_bf16": decode_bfloat16, "raw_f32": bits_of_float32, "raw_f16": encode_float16, "raw_bf16": encode_bfloat16,
    "HALVES": HALVES, "inf": math.inf, "nan": math.nan}
