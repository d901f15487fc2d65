"""Quotients, remainders and powers."""
import math
import operator

import numpy as np
from ulps import flushes
import pytest

from test.helpers import HOME, compare, same
from tinyhw.errors import ArgumentError
from tinyhw.tensor import Tensor

@pytest.mark.slow
def test_division_and_remainder_follow_the_signs():
  a, b = np.array([7, -7, 7, -7, 6], np.int32), np.array([3, 3, -3, -3, -3], np.int32)
  compare(operator.floordiv, operator.floordiv, a, b)
  compare(operator.mod, operator.mod, a, b)
  compare(lambda x, y: x.div(y, rounding_mode="trunc"), lambda x, y: np.trunc(x / y).astype(np.int32), a, b)
  compare(lambda x, y: x.fmod(y), np.fmod, a, b)
  f, g = a.astype(np.float32) + 0.5, b.astype(np.float32)
  for mine, theirs in ((operator.floordiv, operator.floordiv), (operator.mod, operator.mod),
                       (lambda x, y: x.fmod(y), np.fmod)):
    compare(mine,
            theirs, f, g)

@pytest.mark.slow
def test_remainders_of_infinite_divisors():
  a, b = np.array([3, -3, 3, -3, 0, 7], np.float32), np.array([math.inf, math.inf, -math.inf, -math.inf, math.inf, 9],
                                                              np.float32)
  compare(operator.mod, operator.mod, a, b)
  compare(operator.floordiv, operator.floordiv, a, b)
  compare(lambda x, y: x.fmod(y), np.fmod, a, b)
  x, y = Tensor([5.0, 1.0]), Tensor([3.0, math.inf])
  (x % y).sum().backward()
  assert x.grad.tolist() == [1.0, 1.0] and y.grad.tolist() == [-1.0, 0.0]

@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainders_are_exact_or_unknown(dtype):
  """For all magnitudes: a quotient with more bits than the steps remove gives NaN, never a wrong number."""
  rng = np.random.default_rng(0)
  low, high = np.finfo(dtype).minexp, np.finfo(dtype).maxexp
  if flushes(HOME): low += np.finfo(dtype).nmant + 1    # remainders are multiples of the last bit of a divisor
  a, b = (rng.choice([-1, 1], (2, 3000)) * np.ldexp(rng.uniform(1, 2, (2, 3000)),
                                                    rng.integers(low, high - 1, (2, 3000)))).astype(dtype)
  exact = np.log2(np.abs(a)) - np.log2(np.abs(b)) < (70 if dtype is np.float32 else 157)
  assert exact.sum() > 500 and (~exact).sum() > 500
  for mine, theirs in ((operator.mod, np.mod), (lambda x, y: x.fmod(y), np.fmod)):
    found, wanted = mine(Tensor(a), Tensor(b)).numpy(), theirs(a, b)
    assert (found[exact] == wanted[exact]).all()
    assert ((found == wanted) | np.isnan(found))[~exact].all()

@pytest.mark.slow
def test_powers_of_a_half():
  x = np.array([4.0, -math.inf, math.inf, -0.0, 0.0, math.nan], np.float32)
  with np.errstate(all="ignore"):
    for power in (0.5, -0.5):
      same(Tensor(x).contiguous().realize() ** power, (np.sqrt(x) if power > 0 else 1 / np.sqrt(x)))

@pytest.mark.slow
def test_powers():
  x = np.array([0.5, 1.0, 2.0, 3.0], np.float32)
  for p in (0, 1, 2, 3, 7, -1, -2, 0.5, -0.5, 2.5, 100):
    compare(lambda t, p=p: t ** p, lambda t, p=p: t ** np.float32(p), x)
  compare(lambda a, b: a ** b, lambda a, b: a ** b, np.array([-2, 3, 0, 7, 5], np.int32),
          np.array([3, 5, 0, 11, 1], np.int32))
  assert (Tensor([3, 2]) ** Tensor([-1, -2])).tolist() == [0, 0]
  with pytest.raises(ArgumentError, match="no reciprocals"): Tensor([2]) ** -1
