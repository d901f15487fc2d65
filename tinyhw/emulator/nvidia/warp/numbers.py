"""Registers of all lanes as numbers, and back: float32, float64 of pairs, 64-bit integers.

Rounding is to nearest, ties to even.
"""
from __future__ import annotations
import struct

from tinyhw.arithmetic import round_float32
from tinyhw.emulator.nvidia.warp.state import LANES

_WORDS, _FLOATS = struct.Struct(f"<{LANES}I"), struct.Struct(f"<{LANES}f")
_LONGS, _DOUBLES = struct.Struct(f"<{LANES}Q"), struct.Struct(f"<{LANES}d")
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

def signed(x: int, bits: int = 32) -> int: return x - (1 << bits) if x >> bits - 1 & 1 else x
