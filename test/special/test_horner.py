"""special/horner.py: evaluation of polynomials, and slopes of their own."""
from __future__ import annotations

import pytest

from tinyhw import Tensor
from tinyhw.special.horner import chebyshev, in_double, is_whole, polynomial, with_slope

def test_polynomials() -> None:
  x = Tensor([0.5, -2.0])
  assert polynomial(x, (1, 0, 3)).tolist() == [3.25, 7.0]
  assert chebyshev(Tensor([0.5]), (1.0, 2.0, 3.0)).item() == pytest.approx(1 + 2 * 0.5 + 3 * (2 * 0.25 - 1))
  assert is_whole(Tensor([1.0, 1.5])).tolist() == [True, False]

def test_a_slope_of_its_own() -> None:
  x = Tensor([2.0])
  y = in_double(lambda t: with_slope(t.detach().square(), t, lambda u: u.mul(10)), x)
  assert y.sum().gradient(x)[0].tolist() == [20.0]
