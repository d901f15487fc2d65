"""NVIDIA's functions of the notation: 8-bit floats saturate, and functions of upper words have no lower one."""
import math

from tinyhw.emulator.nvidia.semantics.numerics import environment
from tinyhw.emulator.python.floats import bits_of_float64

NAMES = environment()

def test_eight_bit_floats() -> None:
  assert NAMES["fp8_to_f32"](0x38) == 1.0 == NAMES["bf8_to_f32"](0x3c)
  assert NAMES["f32_to_fp8"](1e9) == 0x7e == NAMES["f32_to_fp8"](math.inf) and NAMES["f32_to_bf8"](-1e9) == 0xfb
  assert NAMES["f32_to_fp8"](math.nan) == 0x7f == NAMES["f32_to_bf8"](math.nan)

def test_approximate_functions() -> None:
  assert NAMES["rcp_f32"](4.0) == 0.25 and NAMES["exp_f32"](3.0) == 8.0 and NAMES["log_f32"](8.0) == 3.0
  assert NAMES["rcp_upper"](bits_of_float64(-math.inf) >> 32) == bits_of_float64(-0.0) >> 32
  assert NAMES["rcp_upper"](bits_of_float64(0.5) >> 32) - (bits_of_float64(2.0) >> 32) in (0, 1)
