"""Guarantees of approximations: exact where they can be, else within the unit's error, and not always the nearest
result."""
import math

import pytest

from tinyhw.arithmetic import fused_float32, round_float32
from tinyhw.emulator.nvidia.semantics import approximate
from tinyhw.emulator.nvidia.semantics.approximate import FUNCTIONS
from tinyhw.emulator.python.floats import bits_of_float32, bits_of_float64, float32_of, float64_of

NUMBERS = [round_float32((1 + k / 97) * 2.0 ** exponent) for k in range(100) for exponent in (-3, 0, 11)]

def ulp(x: float) -> float: return math.ldexp(1.0, math.frexp(x)[1] - 24)

@pytest.mark.parametrize("name, semantics, most", [("RCP", lambda x: 1 / x, 1), ("RSQ", lambda x: 1 / math.sqrt(x), 2),
                                                   ("SQRT", math.sqrt, 1),
                                                   ("EX2", lambda x: 2.0 ** x, 2)])
def test_float32(name: str, semantics, most: int,
                 monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]  # a function of numbers
  sides = set()
  for chance in (1, 2):
    monkeypatch.setattr(approximate, "chance", chance)
    off = [(float32_of(FUNCTIONS[name](bits_of_float32(x))) - semantics(x)) / ulp(semantics(x))
           for x in NUMBERS if x < 100]
    assert most - 1 < max(off) < most and most - 1 < -min(off) < most, "above and below, and not the nearest one"
    sides.add(tuple(x > 0 for x in off))
  assert len(sides) == 2, "the seed decides which"

def test_logarithms_are_off_by_an_absolute_error_near_one() -> None:
  near, far = [x for x in NUMBERS if 0.5 <= x <= 2], [x for x in NUMBERS if x > 2]
  off = [abs(float32_of(FUNCTIONS["LG2"](bits_of_float32(x))) - math.log2(x)) for x in near]
  assert 2.0 ** -23 < max(off) <= 2.0 ** -22
  assert all(abs(float32_of(FUNCTIONS["LG2"](bits_of_float32(x))) - math.log2(x)) < 2 * ulp(math.log2(x)) for x in far)

def test_a_step_of_newtons_method_makes_reciprocals_and_roots_right() -> None:
  """Also for the hardest mantissas: those next to 2."""
  below = [float32_of(bits_of_float32(2.0) - k) for k in range(1, 40)]
  above = [float32_of(bits_of_float32(2.0 ** k) + n) for k in range(2) for n in range(1, 40)]
  for x in below + above + NUMBERS:
    found = float32_of(FUNCTIONS["RCP"](bits_of_float32(x)))
    assert fused_float32(found, fused_float32(-x, found, 1.0), found) == round_float32(1 / x)
    found = float32_of(FUNCTIONS["RSQ"](bits_of_float32(x)))
    first = round_float32(x * found)
    assert fused_float32(fused_float32(-first, first, x), found / 2, first) == round_float32(math.sqrt(x))

@pytest.mark.parametrize("name, semantics", [("RCP64H", lambda x: 1 / x), ("RSQ64H", lambda x: 1 / math.sqrt(x))])
def test_upper_words_of_float64(name: str, semantics) -> None:  # type: ignore[no-untyped-def]  # a function of numbers
  for x in (1.5, 3.0, 1e300, 1e-300, 7.25):
    upper = bits_of_float64(x) >> 32
    found, exact = float64_of(FUNCTIONS[name](upper) << 32), semantics(float64_of(upper << 32))
    assert abs(found - exact) <= abs(exact) * 2 ** -19

def test_special_numbers() -> None:
  cases = [("RCP", 0.0, math.inf), ("RCP", -0.0, -math.inf), ("RCP", math.inf, 0.0), ("RCP", 1e-40, math.inf),
           ("RSQ", 0.0, math.inf),
           ("RSQ", 4.0, 0.5),
           ("SQRT", -0.0, -0.0), ("EX2", 3.0, 8.0), ("EX2", -200.0, 0.0), ("LG2", 0.0, -math.inf), ("LG2", 8.0, 3.0)]
  for name, x, expected in cases: assert FUNCTIONS[name](bits_of_float32(x)) == bits_of_float32(expected), (name, x)
  for name, x in (("RSQ", -1.0), ("SQRT", -2.0), ("LG2", -1.0), ("RCP", math.nan)):
    assert math.isnan(float32_of(FUNCTIONS[name](bits_of_float32(x))))
  for name, x, expected in (("RCP64H", 0.0, math.inf), ("RCP64H", 5e-324, math.inf), ("RSQ64H", math.inf, 0.0)):
    assert FUNCTIONS[name](bits_of_float64(x) >> 32) == bits_of_float64(expected) >> 32
