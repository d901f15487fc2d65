"""AMD's functions of the notation: special cases of choices, conversions, bit counts."""
from __future__ import annotations
import math
import random

from tinyhw.emulator.amd.semantics import numerics
from tinyhw.emulator.amd.semantics.numerics import environment, median

NAMES = environment(False)

def test_the_middle_one_of_three() -> None:
  assert median(3.0, 1.0, 2.0) == 2.0 == median(2.0, 2.0, 5.0) and median(math.nan, 4.0, 3.0) == 3.0

def test_conversions_saturate() -> None:
  assert (numerics.f16_rtz(65519.0) == 0x7bff and numerics.f16_rtz(1e9) == 0x7bff
          and numerics.f16_rtz(math.inf) == 0x7c00)
  assert numerics.f16_rtz(1.0 + 2.0 ** -11 + 2.0 ** -12) == 0x3c00 and numerics.f16_rtz(-1.0009) == 0xbc00
  assert numerics.snorm(-2.0) == -32767 and numerics.unorm(0.5) == 32768 and numerics.snorm(math.nan) == 0

def test_bits_of_integers() -> None:
  assert NAMES["leading_zeros_u32"](0) == -1 and NAMES["leading_zeros_u32"](1) == 31
  assert (NAMES["leading_signs_i32"](-1) == -1 and NAMES["leading_signs_i32"](1) == 31
          and NAMES["leading_signs_i32"](-2) == 31)
  assert NAMES["trailing_zeros_u32"](8) == 3 and NAMES["trailing_zeros_u32"](0) == -1
  assert NAMES["reversed_u64"](1) == 1 << 63 and NAMES["ones_u32"](0xf0f) == 8
  assert NAMES["perm"](0x87654321, 0x01020304, 0x0d0c0b04) == 0xff00_ff21

def test_eight_bit_floats_of_the_two_families() -> None:
  fnuz = environment(True)
  assert NAMES["fp8_to_f32"](0x38) == 1.0 and fnuz["fp8_to_f32"](0x40) == 1.0
  assert NAMES["f32_to_bf8"](1.0) == 0x3c and fnuz["f32_to_bf8"](1.0) == 0x40
  assert math.isnan(NAMES["fp8_to_f32"](0x7f)) and math.isnan(fnuz["fp8_to_f32"](0x80))

def test_stochastic_rounding_goes_up_as_often_as_it_should() -> None:
  """1 + 1/32 lies a quarter of the way between two fp8 numbers."""
  source = random.Random(1)
  up = sum(NAMES["f32_to_fp8_random"](1.03125, source.getrandbits(32)) == 0x39 for _ in range(2000))
  assert 400 < up < 600
  assert NAMES["f32_to_fp8_random"](1.0, 0xffffffff) == 0x38
