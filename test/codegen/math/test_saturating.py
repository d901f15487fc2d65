"""TANH and ERF: odd, never beyond 1, and 1 at the end. test_transcendental.py tests the errors."""
import math

import numpy as np
import pytest
import ulps

from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import Ops

both = pytest.mark.parametrize("op", (Ops.TANH, Ops.ERF), ids=lambda op: op.name)
each_type = pytest.mark.parametrize("dtype", (dtypes.float32, dtypes.float64), ids=("float32", "float64"))

@both
@each_type
def test_odd_and_within_one(op: Ops, dtype: DType) -> None:
  x = ulps.samples(dtype, 20000 if dtype is dtypes.float32 else 500)  # float64's extreme numbers are slow here
  x = np.concatenate([x[~np.isnan(x)], np.linspace(2, 20, 5000).astype(x.dtype)])
  body = ulps.expression(op, dtype)
  got, mirrored = ulps.compute(body, x), ulps.compute(body, -x)
  assert np.all(np.abs(got) <= 1) and np.all(got == -mirrored) and np.all(np.signbit(got) == np.signbit(x))

@both
@each_type
def test_ends(op: Ops, dtype: DType) -> None:
  x = np.array([0.0, -0.0, 20.0, -20.0, math.inf, -math.inf, 1e30, math.nan], ulps.numpy_type(dtype))
  got = [str(v) for v in ulps.compute(ulps.expression(op, dtype), x).tolist()]
  assert got == ["0.0", "-0.0", "1.0", "-1.0", "1.0", "-1.0", "1.0", "nan"]

@each_type
def test_subnormal_numbers_are_their_own_tangents(dtype: DType) -> None:
  kind = ulps.numpy_type(dtype)
  x = np.finfo(kind).smallest_subnormal * np.array([1, 2, 3, 1001, -77], kind)
  assert np.all(ulps.compute(ulps.expression(Ops.TANH, dtype), x) == x)
