"""Functions of the notation: every declared function has an implementation for some type on some card; NaNs, signs of
zero, and roundings of those that all cards share."""
import math

import pytest

from tinyhw.emulator.amd.semantics import numerics as amd
from tinyhw.emulator.notation import FUNCTIONS
from tinyhw.emulator.nvidia.semantics import numerics as nvidia
from tinyhw.emulator.python.numerics import environment, float_to_integer, max_num, maximum, min_num, minimum

NAMES = environment()

@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_is_there(name: str) -> None:
  names = amd.environment(False).keys() | nvidia.environment().keys()
  assert name in names or any(f"{name}_{kind}" in names for kind in ("f32", "f16", "u32", "i32"))

def test_numbers_win_over_nan_or_not() -> None:
  assert min_num(math.nan, 2.0) == 2.0 == max_num(2.0, math.nan)
  assert math.isnan(minimum(math.nan, 2.0)) and math.isnan(maximum(2.0, math.nan))
  assert math.copysign(1.0, min_num(0.0, -0.0)) < 0 < math.copysign(1.0, max_num(-0.0, 0.0))

def test_conversions_saturate() -> None:
  numbers = (-200.0, 3.9, -3.9, 1e30, math.nan, -math.inf)
  assert [float_to_integer(x, -128, 127) for x in numbers] == [-128, 3, -3, 127, 0, -128]

def test_fused_half_precision_rounds_once() -> None:
  """The exact sum is just above a tie. A double of it would be the tie."""
  fma = NAMES["fma_f16"]
  assert fma(1.0, 1.0 + 2.0 ** -10, 2.0 ** -11) == 1.0 + 2.0 ** -9
  assert fma(2.0 ** -14, 2.0 ** -10, 1.0 + 2.0 ** -10) == 1.0 + 2.0 ** -10
  assert fma(32768.0, 32768.0, 2.0 ** -24) == math.inf
