"""Arithmetic of an Apple GPU."""
import math

import pytest

from tinyhw.emulator.metal import numbers
from tinyhw.emulator.metal.numbers import UndefinedResult

def test_subnormals_are_zeros() -> None:
  assert numbers.rounded(1e-40) == 0 and math.copysign(1, numbers.rounded(-1e-40)) == -1
  assert numbers.flushed(2.0**-126) == 2.0**-126 and numbers.flushed(2.0**-127) == 0
  assert numbers.fma(2.0**-100, 2.0**-30, 0.0) == 0 and numbers.root(1e-40) == 0 and numbers.rounded(1e39) == math.inf

def test_one_rounding_of_fma() -> None:
  a = 1 + 2.0**-12
  assert numbers.fma(a, a, -(1 + 2.0**-11)) == 2.0**-24 and numbers.rounded(a * a) - (1 + 2.0**-11) == 0

@pytest.mark.parametrize("act", [
  lambda: numbers.signed(1 << 31, 32), lambda: numbers.quotient(1, 0, 32), lambda: numbers.quotient(-1 << 31, -1, 32),
  lambda: numbers.remainder(1, 0, 64), lambda: numbers.shifted(1, 32, 32, True, False),
  lambda: numbers.shifted(1, -1, 32, False, True), lambda: numbers.shifted(1, 31, 32, True, True),
  lambda: numbers.to_integer(2.0**31, -1 << 31, (1 << 31) - 1), lambda: numbers.to_integer(math.nan, 0, 9),
  lambda: numbers.of_vectors("+", "int")((2**31 - 1,), (1,))])
def test_what_is_undefined_is_an_error(act: object) -> None:
  with pytest.raises(UndefinedResult): act()  # type: ignore[operator]

def test_integers() -> None:
  assert numbers.quotient(-7, 2, 32) == -3 and numbers.remainder(-7, 2, 32) == -1 and numbers.wrapped(200, 8) == -56
  assert numbers.shifted(0xFFFFFFFF, 1, 32, True, False) == 0xFFFFFFFE and numbers.shifted(-8, 1, 32, False, True) == -4
  assert numbers.range_of("char") == (-128, 127) and numbers.range_of("bool") == (0, 1)
  assert numbers.of_vectors("-", "uchar")((1, 5), (2, 3)) == (255, 2)

def test_bits() -> None:
  assert numbers.same_bits("float", 1, "uint", 1)(1.0) == 0x3F800000
  assert numbers.same_bits("long", 1, "uint", 2)(-2) == (0xFFFFFFFE, 0xFFFFFFFF)
  assert numbers.same_bits("uint", 2, "ulong", 1)((1, 1)) == (1 << 32) + 1 and numbers.to_half(1e-8) == 0
  assert numbers.same_bits("half", 1, "ushort", 1)(numbers.to_half(6e-8)) == 1   # half keeps subnormals
