"""Floats and their codes."""
import math

from tinyhw.emulator.python.floats import HALVES, bits_of_float32, bits_of_float64, float32_of, float64_of

def test_bits() -> None:
  assert float32_of(0x3fc00000) == 1.5 and bits_of_float32(1e60) == 0x7f800000 and bits_of_float32(-1e60) == 0xff800000
  assert float64_of(0x3ff8000000000000) == 1.5 and float64_of(bits_of_float64(-1e300)) == -1e300
  assert HALVES[0x3e00] == 1.5 and HALVES[0xfc00] == -math.inf and len(HALVES) == 65536
