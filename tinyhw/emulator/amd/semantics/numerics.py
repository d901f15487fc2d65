"""The functions of the notation: AMD's arithmetic on one lane, in Python numbers. No registers, no lanes.

notation.py has their parameters and results, `environment` the Python functions. The functions that all cards share are
in emulator/python/numerics.py. Source: ISA guides of RDNA3, RDNA4, CDNA3.
"""
from __future__ import annotations
import math
from collections.abc import Callable
from typing import Any

from tinyhw.arithmetic import (
  divide, encode_float16, fused_float32, round_bfloat16, round_float16, round_float32, square_root)
from tinyhw.dtype import DType, decode_float, dtypes, encode_float
from tinyhw.emulator.amd.semantics.approximate import (
  approximate, coarse, cosine, exponential, logarithm, reciprocal, reciprocal_root, sine, trig_preop)
from tinyhw.emulator.amd.semantics.division import DIVISION
from tinyhw.emulator.amd.semantics.floats import (
  clamp_float, doubtful, flush_f16, flush_f32, flush_f64, scaled, scaled_f32)
from tinyhw.emulator.python import numerics
from tinyhw.emulator.python.floats import HALVES, bits_of_float32, float32_of
from tinyhw.emulator.python.numerics import max_num, min_num

# ***** conversions *****

def f16_rtz(x: float) -> int:
  """Return the bits of x as float16, rounded toward zero. Too large a number becomes the largest one."""
  if x != x or math.isinf(x): return encode_float16(x)
  bits = encode_float16(x)
  return bits - 1 if abs(HALVES[bits]) > abs(x) else bits  # the code below is the next number toward zero

def snorm(x: float) -> int: return 0 if x != x else round(min(max(x, -1.0), 1.0) * 32767.0)
def unorm(x: float) -> int: return 0 if x != x else round(min(max(x, 0.0), 1.0) * 65535.0)
def saturate_i16(x: int) -> int: return min(max(x, -32768), 32767)
def saturate_u16(x: int) -> int: return min(x, 65535)
def saturate_u8(x: int) -> int: return min(max(x, 0), 255)

def _fp8(kind: DType) -> tuple[Callable[[int], float], Callable[[float], int], Callable[[float, int], int]]:
  """Return (decode, encode to nearest, encode with random bits added below the last one) of an 8-bit type."""
  values = tuple(decode_float(i, kind) for i in range(256))
  mantissa = 3 if kind in (dtypes.fp8e4m3, dtypes.fp8e4m3fnuz) else 2
  def stochastic(x: float, random: int) -> int:
    if x != x or math.isinf(x) or x == 0: return encode_float(x, kind)
    bits = bits_of_float32(x)
    cut = 23 - mantissa
    moved = (bits & 0x7fffffff) + (random >> (32 - cut))
    return encode_float(math.copysign(float32_of(moved >> cut << cut), x), kind)
  return values.__getitem__, lambda x: encode_float(x, kind), stochastic

# ***** comparisons and choices *****

def median(a: float, b: float, c: float) -> float:
  """Return the middle number; with a NaN the smallest of the numbers."""
  if a != a or b != b or c != c: return min_num(min_num(a, b), c)
  high = max_num(max_num(a, b), c)
  if high == a: return max_num(b, c)
  return max_num(a, c) if high == b else max_num(a, b)

def median_integer(a: int, b: int, c: int) -> int: return sorted((a, b, c))[1]

def _classify(bits: int, mask: int, exponent_bits: int, mantissa_bits: int) -> bool:
  """Return whether the float is of one of the classes in mask: bit 0 signalling NaN, 1 quiet NaN, 2 -inf, 3 -normal, 4
  -denormal, 5 -0, 6..9 +0 to +inf."""
  sign, exponent = bits >> exponent_bits + mantissa_bits, bits >> mantissa_bits & (1 << exponent_bits) - 1
  mantissa = bits & (1 << mantissa_bits) - 1
  if exponent == (1 << exponent_bits) - 1:
    if mantissa: return bool(mask & (2 if mantissa >> mantissa_bits - 1 else 1))
    kind = 2
  elif exponent: kind = 3
  else: kind = 4 if mantissa else 5
  return bool(mask >> (kind if sign else 11 - kind) & 1)

def class_f16(bits: int, mask: int) -> bool: return _classify(bits & 0xffff, mask, 5, 10)
def class_f32(bits: int, mask: int) -> bool: return _classify(bits, mask, 8, 23)
def class_f64(bits: int, mask: int) -> bool: return _classify(bits, mask, 11, 52)

# ***** float arithmetic *****

def floor(x: float) -> float: return (float(math.floor(x)) if x else x) if math.isfinite(x) else x
def ceil(x: float) -> float: return (math.copysign(float(math.ceil(x)), x) if x else x) if math.isfinite(x) else x
def rndne(x: float) -> float: return math.copysign(float(round(x)), x) if math.isfinite(x) else x

def _fract(largest: float, rounding: Callable[[float], float]) -> Callable[[float], float]:
  """Return x - floor(x), at most the largest number below 1."""
  return lambda x: min(rounding(x - math.floor(x)), largest) if math.isfinite(x) else math.nan

def frexp_mant(x: float) -> float: return math.frexp(x)[0] if math.isfinite(x) else x
def frexp_exp(x: float) -> int: return math.frexp(x)[1] if math.isfinite(x) else 0

def mul_zero(a: float, b: float) -> float: return 0.0 if a == 0 or b == 0 else round_float32(a * b)
def fma_zero(a: float, b: float, c: float) -> float:
  return round_float32(c) if a == 0 or b == 0 else fused_float32(a, b, c)

# ***** integers *****

def _leading_zeros(bits: int) -> Callable[[int], int]: return lambda x: bits - x.bit_length() if x else -1
def trailing_zeros(x: int) -> int: return (x & -x).bit_length() - 1

def _leading_signs(bits: int) -> Callable[[int], int]:
  """Count the bits from the top that equal the sign, including the sign itself; -1 if all do."""
  def call(x: int) -> int:
    rest = ~x if x < 0 else x
    return bits - rest.bit_length() if rest else -1
  return call

def ones(x: int) -> int: return bin(x).count("1")
def _reversed(bits: int) -> Callable[[int], int]: return lambda x: int(f"{x:0{bits}b}"[::-1], 2)

def perm(high: int, low: int, selectors: int) -> int:
  """Select four bytes from the eight of high:low. Selectors: 0..7 a byte, 8..11 the sign of a 16-bit half, 12 zero, 13
  and more 0xff."""
  source = high << 32 | low
  result = 0
  for i in range(4):
    selector = selectors >> 8 * i & 255
    if selector < 8: byte = source >> 8 * selector & 255
    elif selector < 12: byte = 255 * (source >> 16 * (selector - 8) + 15 & 1)
    else: byte = 0 if selector == 12 else 255
    result |= byte << 8 * i
  return result

def sum_differences(a: int, b: int) -> int:
  """Return the sum of the distances of four bytes."""
  return sum(abs((a >> i & 255) - (b >> i & 255)) for i in (0, 8, 16, 24))

def mask_to_bits(mask: int, lane: int) -> int:
  """Return the part of a 32-lane mask that is below a lane: mask & lower lanes, of the low 32 (lane counted from
  there).
  """
  return mask & (1 << lane) - 1

# ***** by name *****

def _halved(rounding: Callable[[float], float]) -> Callable[[Callable[[float], float]], Callable[[float], float]]:
  """Make functions of a 16-bit type: computed as doubles, rounded."""
  return lambda function: lambda x: rounding(function(x))

def _by_type() -> dict[str, Callable[..., Any]]:
  """Return implementations of functions that differ by type: name_type."""
  found: dict[str, Callable[..., Any]] = {}
  rounding: dict[str, Callable[[float], float]] = {"f16": round_float16, "bf16": round_bfloat16, "f32": round_float32,
                                                   "f64": float}
  for name, rounded in rounding.items():
    half = name in ("f16", "bf16")
    exact = _halved(rounded) if half else coarse if name == "f64" else approximate
    found |= {f"{f.__name__}_{name}": f for f in (median, floor, ceil, rndne, frexp_mant, frexp_exp)}
    found |= {
      f"ldexp_{name}": scaled_f32 if name == "f32" else scaled(rounded),
      f"fract_{name}": _fract(math.nextafter(1.0, 0.0) if name == "f64"
                              else 1 - 2.0 ** {"f16": -11, "bf16": -8, "f32": -24}[name], rounded),
      f"rcp_{name}": exact(reciprocal), f"rsq_{name}": exact(reciprocal_root), f"sqrt_{name}": exact(square_root),
      f"exp_{name}": exact(exponential), f"log_{name}": exact(logarithm), f"sin_{name}": exact(sine),
      f"cos_{name}": exact(cosine)}
  for name, division in DIVISION.items():
    found |= {f"div_scale_{name}": division.scaled, f"div_scale_flag_{name}": division.flag,
              f"div_fmas_{name}": division.fmas,
              f"div_fixup_{name}": division.fixup}
  found["div_fixup_f16"] = DIVISION["f32"].fixup
  found |= {"mul_zero_f32": mul_zero, "fma_zero_f32": fma_zero}
  for bits in (8, 16, 32, 64):
    for sign in "ui":
      name = f"{sign}{bits}"
      found |= {f"median_{name}": median_integer,
                f"leading_zeros_{name}": _leading_zeros(bits), f"trailing_zeros_{name}": trailing_zeros,
                f"leading_signs_{name}": _leading_signs(bits), f"ones_{name}": ones,
                f"reversed_{name}": _reversed(bits)}
  return found

def _float_code(fnuz: bool) -> dict[str, Callable[..., Any]]:
  """Return conversions of 8-bit floats: FNUZ (gfx942) or OCP (gfx950, gfx12)."""
  found: dict[str, Callable[..., Any]] = {}
  for name, kind in zip(("fp8", "bf8"), dtypes.fp8_fnuz if fnuz else dtypes.fp8_ocp):
    found[f"{name}_to_f32"], found[f"f32_to_{name}"], found[f"f32_to_{name}_random"] = _fp8(kind)
  return found

def environment(fnuz: bool) -> dict[str, Any]:
  """Return the names that generated Python functions may use."""
  plain = (class_f16, class_f32, class_f64, perm, f16_rtz, snorm, unorm, saturate_i16, saturate_u16, saturate_u8,
           sum_differences, mask_to_bits, trig_preop, clamp_float, doubtful, flush_f16, flush_f32, flush_f64, divide)
  return numerics.environment() | {f.__name__: f for f in plain} | _by_type() | _float_code(fnuz)
