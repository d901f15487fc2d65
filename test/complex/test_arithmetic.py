"""complex/arithmetic.py: against Python's complex numbers, at ordinary points and where parts are 0, large or equal."""
from __future__ import annotations
import cmath
import math
from collections.abc import Callable

import pytest

from tinyhw import Tensor
from tinyhw.complex import arithmetic
from tinyhw.complex.arithmetic import Planes

POINTS = [1 + 2j, -3 + 0.5j, 0.25 - 4j, -1 - 1j, 1 + 1e-3j, 1j, -2.0 + 0j, 3e15 - 4e15j]

def pair(points: list[complex], dtype: str = "float64") -> Planes:
  return Planes(Tensor([z.real for z in points], dtype=dtype), Tensor([z.imag for z in points], dtype=dtype))

def numbers(x: Planes) -> list[complex]: return [complex(a, b) for a, b in zip(x.real.tolist(), x.imag.tolist())]

def close(found: list[complex], expected: list[complex], tolerance: float = 1e-12) -> None:
  for a, b in zip(found, expected, strict=True): assert abs(a - b) <= tolerance * max(1.0, abs(b)), (a, b)

@pytest.mark.parametrize(("name", "meaning"), [
  ("add", lambda a, b: a + b), ("sub", lambda a, b: a - b), ("mul", lambda a, b: a * b), ("div", lambda a, b: a / b)])
def test_operators(name: str, meaning: Callable[[complex, complex], complex]) -> None:
  others = POINTS[::-1]
  found = getattr(arithmetic, name)(pair(POINTS), pair(others))
  close(numbers(found), [meaning(a, b) for a, b in zip(POINTS, others)])

def test_division_does_not_overflow() -> None:
  x, y = pair([1e38 + 1e38j], "float32"), pair([2e38 + 1e38j], "float32")
  close(numbers(arithmetic.div(x, y)), [(1 + 1j) / (2 + 1j)], 1e-6)

def test_magnitude_and_angle() -> None:
  assert arithmetic.magnitude(pair([3e38 + 0j, 3e-39 - 4e-39j, 0j], "float32")).tolist() == pytest.approx(
    [3e38, 5e-39, 0.0], rel=1e-6)
  points = [*POINTS, 0j, complex(-1, -0.0), complex(-0.0, 0.0)]
  assert arithmetic.angle(pair(points)).tolist() == pytest.approx([cmath.phase(z) for z in points])

@pytest.mark.parametrize(("name", "meaning"), [
  ("exp", cmath.exp), ("log", cmath.log), ("sqrt", cmath.sqrt), ("reciprocal", lambda z: 1 / z), ("neg", lambda z: -z),
  ("times_i", lambda z: 1j * z), ("over_i", lambda z: -1j * z), ("sgn", lambda z: z / abs(z))])
def test_functions(name: str, meaning: Callable[[complex], complex]) -> None:
  points = [z for z in POINTS if name != "exp" or abs(z) < 100]
  close(numbers(getattr(arithmetic, name)(pair(points))), [meaning(z) for z in points])

def test_log_near_the_unit_circle() -> None:
  z = complex(math.cos(0.3), math.sin(0.3)) * (1 + 1e-9)
  assert arithmetic.log(pair([z])).real.item() == pytest.approx(cmath.log(z).real, rel=1e-6)

def test_powers() -> None:
  points = POINTS[:7]
  for n in (0, 1, 2, 5, -3): close(numbers(arithmetic.power(pair(points), n)), [z ** n for z in points], 1e-11)
  close(numbers(arithmetic.pow(pair([*points, 0j, 0j]), pair([0.5 + 1j] * 7 + [0j, 2j + 1]))),
        [*[z ** (0.5 + 1j) for z in points], 1, 0], 1e-11)
  assert [arithmetic.is_small_whole(n) for n in (2, 2.0, 2.5, 65, math.inf, 1j, True)] == [True, True, False, False,
                                                                                         False, False, True]

def test_gradients_at_zero_are_zero() -> None:
  x = Planes(Tensor([0.0], requires_grad=True), Tensor([0.0], requires_grad=True))
  arithmetic.magnitude(x).add(arithmetic.angle(x)).sum().backward()
  assert [x.real.grad.tolist(), x.imag.grad.tolist()] == [[0.0], [0.0]]

def test_choice() -> None:
  x = arithmetic.choose(Tensor([True, False]), pair([1j, 2j]), pair([3 + 0j, 4 + 0j]))
  assert numbers(x) == [1j, 4 + 0j]
  assert arithmetic.is_zero(pair([0j, 1j])).tolist() == [True, False]
  assert numbers(arithmetic.scaled(pair([1 + 2j]), 3)) == [3 + 6j]

def test_quotients_of_zero_and_infinite_divisors() -> None:
  """As C99 has them: x / infinity is 0, and x / 0 is infinite."""
  divisors = pair([complex(math.inf, 0), complex(-math.inf, 1), 0j])
  found = numbers(arithmetic.div(pair([1 + 2j] * 3), divisors))
  assert found[:2] == [0j, 0j] and math.isinf(found[2].real) and math.isinf(found[2].imag)
  assert arithmetic.magnitude(pair([complex(math.inf, math.nan)])).tolist() == [math.inf]

def test_exponentials_of_large_real_numbers_stay_real() -> None:
  assert numbers(arithmetic.exp(pair([1e5 + 0j]))) == [complex(math.inf, 0)]

def test_powers_of_zero() -> None:
  found = numbers(arithmetic.pow(pair([0j] * 4), pair([0j, 2 + 1j, -1 + 0j, 1j])))
  assert found[:2] == [1, 0] and math.isinf(found[2].real) and math.isnan(found[3].real)

def gradients(function: Callable[[Planes], Tensor], z: complex) -> list[float]:
  a, b = (Tensor([part], dtype="float64", requires_grad=True) for part in (z.real, z.imag))
  function(Planes(a, b)).sum().backward()
  return [x.grad.item() for x in (a, b) if x.grad is not None]

def test_gradients_on_the_axes() -> None:
  """d angle / db is 1 / a on the real axis, and the real part of the root of -1 depends on the imaginary part."""
  assert gradients(arithmetic.angle, 2 + 0j) == pytest.approx([0, 0.5])
  assert gradients(arithmetic.angle, -2 + 0j) == pytest.approx([0, -0.5])
  assert gradients(arithmetic.angle, 2j) == pytest.approx([-0.5, 0])
  assert gradients(lambda x: arithmetic.sqrt(x).real, -1 + 0j) == pytest.approx([0, 0.5])
