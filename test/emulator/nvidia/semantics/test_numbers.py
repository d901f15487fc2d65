"""Words as numbers, and back."""
import math

import pytest

from tinyhw.emulator.nvidia.execute.state import LANES
from tinyhw.emulator.nvidia.semantics import numbers as n

def test_there_and_back() -> None:
  floats = [0.5 * k for k in range(LANES)]
  assert n.floats_of(n.words_of(floats)) == floats and n.doubles_of(n.longs_of_doubles(floats)) == floats
  longs = [k << 40 | k for k in range(LANES)]
  assert n.longs_of(*n.halves_of(longs)) == longs
  assert n.float_of(n.word_of(-1.5)) == -1.5 and n.double_of(n.long_of_double(1e300)) == 1e300

def test_too_large_numbers_are_infinite() -> None:
  assert n.words_of([1e300, -1e300] * 16)[:2] == [0x7f800000, 0xff800000]

@pytest.mark.parametrize("x, found", [(1.9, 1), (-1.9, -1), (300.0, 127), (-math.inf, -128), (math.inf, 127),
                                      (math.nan, 0)])
def test_integers(x: float, found: int) -> None: assert n.to_integer(x, -128, 127) == found

def test_signs() -> None:
  assert n.signed(0xffffffff) == -1 and n.signed(0x7fffffff) == 0x7fffffff and n.signed(0x80, 8) == -128
