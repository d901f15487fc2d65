"""Registers of all lanes as numbers, and back: float32, float64 of pairs, 64-bit integers.

Rounding is to nearest, ties to even.
"""
from __future__ import annotations
import math
import struct

from tinyhw.arithmetic import round_float32
from tinyhw.emulator.nvidia.execute.state import LANES

_WORDS, _FLOATS = struct.Struct(f"<{LANES}I"), struct.Struct(f"<{LANES}f")
_LONGS, _DOUBLES = struct.Struct(f"<{LANES}Q"), struct.Struct(f"<{LANES}d")
_ONE_WORD, _ONE_FLOAT, _ONE_LONG, _ONE_DOUBLE = struct.Struct("<I"), struct.Struct("<f"), struct.Struct(
  "<Q"), struct.Struct("<d")
WORD, LONG = (1 << 32) - 1, (1 << 64) - 1

def floats_of(words: list[int]) -> list[float]: return list(_FLOATS.unpack(_WORDS.pack(*words)))

def words_of(floats: list[float]) -> list[int]:
  """Return the bits of numbers rounded to float32."""
  try: return list(_WORDS.unpack(_FLOATS.pack(*floats)))
  except OverflowError: return list(_WORDS.unpack(_FLOATS.pack(*map(round_float32, floats))))

def longs_of(low: list[int], high: list[int]) -> list[int]: return [h << 32 | l for l, h in zip(low, high)]

def halves_of(longs: list[int]) -> tuple[list[int], list[int]]:
  return [x & WORD for x in longs], [x >> 32 & WORD for x in longs]

def doubles_of(longs: list[int]) -> list[float]: return list(_DOUBLES.unpack(_LONGS.pack(*longs)))
def longs_of_doubles(doubles: list[float]) -> list[int]: return list(_LONGS.unpack(_DOUBLES.pack(*doubles)))

# struct gives Any
def float_of(word: int) -> float: return _ONE_FLOAT.unpack(_ONE_WORD.pack(word))[0]  # type: ignore[no-any-return]
def word_of(x: float) -> int:
  return _ONE_WORD.unpack(_ONE_FLOAT.pack(round_float32(x)))[0]  # type: ignore[no-any-return]
def double_of(long: int) -> float: return _ONE_DOUBLE.unpack(_ONE_LONG.pack(long))[0]  # type: ignore[no-any-return]
def long_of_double(x: float) -> int: return _ONE_LONG.unpack(_ONE_DOUBLE.pack(x))[0]  # type: ignore[no-any-return]

def signed(x: int, bits: int = 32) -> int: return x - (1 << bits) if x >> bits - 1 & 1 else x

def to_integer(x: float, low: int, high: int) -> int:
  """Truncate x and saturate it. NaN gives 0."""
  if x != x: return 0
  if math.isinf(x): return low if x < 0 else high
  return min(max(math.trunc(x), low), high)
