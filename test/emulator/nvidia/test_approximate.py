"""What approximations may be relied on: exact where they can be, else as near as the units are, and not always the nearest."""
import math

import pytest

from tinyhw.emulator.nvidia.approximate import FUNCTIONS
from tinyhw.emulator.nvidia.numbers import double_of, float_of, long_of_double, word_of

@pytest.mark.parametrize("name, meaning", [("RCP", lambda x: 1 / x), ("RSQ", lambda x: 1 / math.sqrt(x)), ("SQRT", math.sqrt),
                                           ("EX2", lambda x: 2.0 ** x), ("LG2", math.log2)])
def test_float32(name: str, meaning) -> None:  # type: ignore[no-untyped-def]  # a function of numbers
  numbers = [float_of(word_of(1 + k / 97)) for k in range(200)]
  off = [abs(float_of(FUNCTIONS[name](word_of(x))) - meaning(x)) / (abs(meaning(x)) * 2 ** -23 or 1) for x in numbers]
  assert max(off) < 1.01 and sum(x > 0.5 for x in off) > 20, "some are the farther one of the two numbers around the result"

@pytest.mark.parametrize("name, meaning", [("RCP64H", lambda x: 1 / x), ("RSQ64H", lambda x: 1 / math.sqrt(x))])
def test_upper_words_of_float64(name: str, meaning) -> None:  # type: ignore[no-untyped-def]  # a function of numbers
  for x in (1.5, 3.0, 1e300, 1e-300, 7.25):
    upper = long_of_double(x) >> 32
    found, exact = double_of(FUNCTIONS[name](upper) << 32), meaning(double_of(upper << 32))
    assert abs(found - exact) <= abs(exact) * 2 ** -19

def test_special_numbers() -> None:
  cases = [("RCP", 0.0, math.inf), ("RCP", -0.0, -math.inf), ("RCP", math.inf, 0.0), ("RCP", 1e-40, math.inf), ("RSQ", 0.0, math.inf),
           ("RSQ", 4.0, 0.5),
           ("SQRT", -0.0, -0.0), ("EX2", 3.0, 8.0), ("EX2", -200.0, 0.0), ("LG2", 0.0, -math.inf), ("LG2", 8.0, 3.0)]
  for name, x, expected in cases: assert FUNCTIONS[name](word_of(x)) == word_of(expected), (name, x)
  for name, x in (("RSQ", -1.0), ("SQRT", -2.0), ("LG2", -1.0), ("RCP", math.nan)): assert math.isnan(float_of(FUNCTIONS[name](word_of(x))))
  for name, x, expected in (("RCP64H", 0.0, math.inf), ("RCP64H", 5e-324, math.inf), ("RSQ64H", math.inf, 0.0)):
    assert FUNCTIONS[name](long_of_double(x) >> 32) == long_of_double(expected) >> 32
