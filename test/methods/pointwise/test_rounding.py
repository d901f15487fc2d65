"""Signs, rounding, tests and limits against NumPy. test_functions.py tries them along with the functions that round."""
import math

import numpy as np
import pytest

from test.helpers import compare, same
from tinyhw.errors import ArgumentError
from tinyhw.tensor import Tensor

@pytest.mark.slow
def test_rounds_halves_to_even():
  compare(lambda t: t.round(), np.round, np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.4, 2.6, 1e9], np.float32))
  i = Tensor([1, 2])
  assert all(f().tolist() == [1, 2] and f().dtype is i.dtype for f in (i.round, i.floor, i.ceil, i.trunc))

@pytest.mark.slow
def test_questions():
  x = np.array([1, math.inf, -math.inf, math.nan], np.float32)
  for name in ("isnan", "isinf", "isfinite"): compare(lambda t, n=name: getattr(t, n)(), getattr(np, name), x)
  assert Tensor(x).isinf(detect_negative=False).tolist() == [False, True, False, False]
  assert Tensor([1.0, -1.0]).copysign(Tensor([-0.0, 0.0])).tolist() == [-1.0, 1.0]

@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_abs_has_no_negative_zero(dtype):
  same(Tensor(np.array([-0.0, 0.0, -math.inf, -2, 3], dtype)).abs(), np.array([0.0, 0.0, math.inf, 2, 3], dtype))
  assert np.signbit(Tensor(np.full(100, -0.0, dtype)).contiguous().realize().abs().numpy()).sum() == 0
  assert Tensor([math.nan, -math.nan]).abs().isnan().all().item()

@pytest.mark.slow
def test_sign_of_unsigned_numbers():
  for kind in ("uint8", "uint64"): assert Tensor([0, 1, 200], dtype=kind).sign().tolist() == [0, 1, 1]

@pytest.mark.slow
def test_clamp():
  x = np.array([-3, 0, 3, math.nan], np.float32)
  compare(lambda t: t.clamp(-1, 1), lambda a: np.clip(a, -1, 1), x)
  compare(lambda t: t.clip(max_=1), lambda a: np.minimum(a, 1), x)
  with pytest.raises(ArgumentError): Tensor(x).clamp()
