"""fft/stages.py: each kind of length against the definition, and its inverse."""
from __future__ import annotations
import cmath
import random

import pytest

from tinyhw import Tensor
from tinyhw.complex.arithmetic import Planes
from tinyhw.fft import stages

def slow(x: list[complex], sign: int) -> list[complex]:
  """The definition."""
  n = len(x)
  return [sum(x[t] * cmath.exp(sign * 2j * cmath.pi * (t * f % n) / n) for t in range(n)) for f in range(n)]

# One of each kind: a matrix, composite radices, several stages, primes as radices, chirps.
@pytest.mark.parametrize("n", (1, 2, 7, 16, 32, 96, 17, 51, 61, 67, 134))
@pytest.mark.parametrize("sign", (-1, 1))
def test_values(n: int, sign: int) -> None:
  draw = random.Random(n)
  x = [complex(draw.uniform(-1, 1), draw.uniform(-1, 1)) for _ in range(n)]
  for dtype, tolerance in (("float64", 1e-13), ("float32", 5e-7)):
    pair = Planes(Tensor([z.real for z in x], dtype=dtype), Tensor([z.imag for z in x], dtype=dtype))
    found, expected = stages.transform(pair, sign), slow(x, sign)
    most = max(map(abs, expected))
    for a, b, c in zip(found.real.tolist(), found.imag.tolist(), expected):
      assert abs(complex(a, b) - c) <= tolerance * most * max(1, n.bit_length())

def test_radix() -> None:
  assert [stages.radix(n) for n in (2, 16, 32, 96, 17, 61, 67, 134, 4489)] == [2, 16, 16, 16, 17, 61, 0, 2, 0]

@pytest.mark.parametrize("n", (2, 18, 32, 96, 134, 250))
def test_real_numbers(n: int) -> None:
  """Half of the spectrum, and back. Its ends have imaginary parts that do not count."""
  draw = random.Random(n)
  x = [draw.uniform(-1, 1) for _ in range(n)]
  expected = slow([complex(v) for v in x], -1)[:n // 2 + 1]
  for dtype, tolerance in (("float64", 1e-13), ("float32", 5e-7)):
    found = stages.transform_real(Tensor([x, x], dtype=dtype))
    most = max(map(abs, expected)) * n.bit_length()
    for a, b, c in zip(found.real[1].tolist(), found.imag[1].tolist(), expected, strict=True):
      assert abs(complex(a, b) - c) <= tolerance * most
    ends = Tensor([5.0, *[0.0] * (n // 2 - 1), -3.0] if n > 2 else [5.0, -3.0], dtype=dtype)
    again = stages.transform_half(Planes(found.real, found.imag.add(ends)), n)
    for a, v in zip(again[0].tolist(), x, strict=True): assert abs(a / n - v) <= 10 * tolerance
