"""Floats in AMD's modes: flushing, scaling, clamping; and a test for double rounding."""
from __future__ import annotations
import math
from array import array
from collections.abc import Callable

from tinyhw.arithmetic import round_float32

SMALLEST_F32, SMALLEST_F16, SMALLEST_F64 = 2.0 ** -126, 2.0 ** -14, 2.0 ** -1022  # normal numbers

def flush_f32(x: float) -> float: return math.copysign(0.0, x) if -SMALLEST_F32 < x < SMALLEST_F32 else x
def flush_f64(x: float) -> float: return math.copysign(0.0, x) if -SMALLEST_F64 < x < SMALLEST_F64 else x
def flush_f16(x: float) -> float: return math.copysign(0.0, x) if -SMALLEST_F16 < x < SMALLEST_F16 else x

def scaled(rounding: Callable[[float], float]) -> Callable[[float, int], float]:
  def call(x: float, n: int) -> float:
    try: return rounding(math.ldexp(x, n))
    except OverflowError: return math.copysign(math.inf, x)
  return call

def scaled_f32(x: float, n: int) -> float:
  if -1000 < n < 900: return round_float32(math.ldexp(x, n))
  return x if x == 0 or not math.isfinite(x) else math.copysign(math.inf if n > 0 else 0.0, x)

def clamp_float(x: float) -> float: return min(max(x, 0.0), 1.0) if x == x else 0.0
_LARGE = bytes(n for n in range(256) if n & 0x7f > 896 >> 4)  # last bytes of doubles that are no denormals as float32

def doubtful(sums: list[float]) -> list[int]:
  """Find the doubles that may not round to the correct float32. Each is an exact product plus a float32, rounded.

  Rounding may have made a tie between two float32 numbers. There fused_float32 has to decide. Single bytes settle most
  cases: a tie has the third one 0, a denormal a small last one. Takes 0.4 us for 32 numbers, 3 us where the bytes do
  not settle it (CPython 3.12).
  """
  data = array("d", sums).tobytes()
  if 0 not in data[2::8] and not data[7::8].translate(None, _LARGE): return []
  return [i for i, bits in enumerate(memoryview(data).cast("Q").tolist())
          if bits & 0x1fffffff == 0x10000000 or bits >> 52 & 0x7ff < 897 and bits << 1 & 0xffffffffffffffff]
