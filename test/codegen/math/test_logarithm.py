"""The exact results of LOG and LOG2, and their domain. test_transcendental.py tests the other errors."""
import math

import numpy as np
import pytest
import ulps

from tinyhw.codegen.math.logarithm import split
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

each_type = pytest.mark.parametrize("dtype", (dtypes.float32, dtypes.float64), ids=("float32", "float64"))

@each_type
def test_powers_of_two_are_exact(dtype: DType) -> None:
  least, most = (-149, 127) if dtype is dtypes.float32 else (-1074, 1023)
  powers = np.array([2.0 ** k for k in range(least, most + 1)], ulps.numpy_type(dtype))
  assert ulps.compute(ulps.expression(Ops.LOG2, dtype), powers).tolist() == list(range(least, most + 1))

@each_type
@pytest.mark.parametrize("op", (Ops.LOG, Ops.LOG2), ids=lambda op: op.name)
def test_domain(op: Ops, dtype: DType) -> None:
  tiny = float(np.finfo(ulps.numpy_type(dtype)).smallest_subnormal)
  x = np.array([1.0, 0.0, -0.0, math.inf, -1.0, -tiny, -math.inf, math.nan], ulps.numpy_type(dtype))
  got = ulps.compute(ulps.expression(op, dtype), x)
  assert [str(v) for v in got.tolist()] == ["0.0", "-inf", "-inf", "inf", "nan", "nan", "nan", "nan"]

@each_type
def test_a_number_is_split_exactly(dtype: DType) -> None:
  x = ulps.samples(dtype, 4000)
  x = np.abs(x[np.isfinite(x) & (x != 0)])
  exponent, f = (ulps.compute(part, x) for part in split(UOp(Ops.NOOP, dtype, (), 0)))
  assert np.all(exponent == np.rint(exponent)) and np.all((f >= math.sqrt(0.5) - 1) & (f <= math.sqrt(2) - 1))
  assert np.all(np.ldexp(1 + f.astype(np.longdouble), exponent.astype(int)) == x)

@each_type
def test_next_to_where_numbers_are_split(dtype: DType) -> None:
  """There the logarithm of the mantissa is about 1/2 and nearly cancels the exponent's 1."""
  kind = ulps.numpy_type(dtype)
  root = np.array(math.sqrt(2), kind)
  steps = np.arange(-200, 200) * np.spacing(root)
  for x in (root + steps, (root + steps) / 2):
    error, where = ulps.worst(Ops.LOG2, dtype, True, (x.astype(kind),))
    assert error <= 1 if dtype is dtypes.float32 else error <= 2, where
