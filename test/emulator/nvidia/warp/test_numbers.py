"""Words as numbers, and back."""
from tinyhw.emulator.nvidia.warp import numbers as n
from tinyhw.emulator.nvidia.warp.state import LANES

def test_there_and_back() -> None:
  floats = [0.5 * k for k in range(LANES)]
  assert n.floats_of(n.words_of(floats)) == floats and n.doubles_of(n.longs_of_doubles(floats)) == floats
  longs = [k << 40 | k for k in range(LANES)]
  assert n.longs_of(*n.halves_of(longs)) == longs

def test_too_large_numbers_are_infinite() -> None:
  assert n.words_of([1e300, -1e300] * 16)[:2] == [0x7f800000, 0xff800000]

def test_signs() -> None:
  assert n.signed(0xffffffff) == -1 and n.signed(0x7fffffff) == 0x7fffffff and n.signed(0x80, 8) == -128
