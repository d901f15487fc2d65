"""POW: C's special cases, and integer results. test_transcendental.py tests the other errors."""
import math

import numpy as np
import pytest
import ulps

from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import Ops

each_type = pytest.mark.parametrize("dtype", (dtypes.float32, dtypes.float64), ids=("float32", "float64"))
INF, NAN = math.inf, math.nan
# C17, F.10.4.4: base, exponent, result
CASES = (
  (0.0, -3.0, INF), (-0.0, -3.0, -INF), (0.0, -2.0, INF), (-0.0, -2.5, INF), (0.0, -INF, INF), (-0.0, 3.0, -0.0),
  (0.0, 3.0, 0.0), (-0.0, 2.0, 0.0),
  (-0.0, 0.5, 0.0), (-1.0, INF, 1.0), (-1.0, -INF, 1.0), (1.0, NAN, 1.0), (1.0, INF, 1.0), (NAN, 0.0, 1.0),
  (INF, -0.0, 1.0), (-2.0, 0.5, NAN),
  (-2.0, -1.5, NAN), (0.5, -INF, INF), (2.0, -INF, 0.0), (0.5, INF, 0.0), (-2.0, INF, INF), (-INF, -3.0, -0.0),
  (-INF, -2.0, 0.0), (-INF, -2.5, 0.0),
  (-INF, 3.0, -INF), (-INF, 2.0, INF), (-INF, 2.5, INF), (INF, -1.0, 0.0), (INF, 1e-3, INF), (NAN, 1.0, NAN),
  (2.0, NAN, NAN), (0.0, NAN, NAN),
)

@each_type
def test_special_cases_are_those_of_c(dtype: DType) -> None:
  base, exponent, result = (np.array(column, ulps.numpy_type(dtype)) for column in zip(*CASES))
  got = ulps.compute(ulps.expression(Ops.POW, dtype), base, exponent)
  assert [str(x) for x in got.tolist()] == [str(x) for x in result.tolist()]

@each_type
def test_signs_of_odd_and_even_powers(dtype: DType) -> None:
  kind = ulps.numpy_type(dtype)
  largest_odd = 2.0 ** np.finfo(kind).nmant * 2 - 1
  base = np.array([-1.0] * 5 + [-2.0, -2.0, -3.0], kind)
  exponent = np.array([largest_odd, -largest_odd, largest_odd + 1, 2.0, 1e30, 3.0, 4.0, 5.0], kind)
  assert ulps.compute(ulps.expression(Ops.POW, dtype), base, exponent).tolist() == [-1.0, -1.0, 1.0, 1.0, 1.0, -8.0,
                                                                                    16.0, -243.0]

@each_type
def test_small_whole_powers_are_exact(dtype: DType) -> None:
  """Errors are far below half of the last place, so that exact results stay exact."""
  base, exponent = (np.array(x, ulps.numpy_type(dtype)).ravel() for x in np.meshgrid(range(1, 14), range(-1, 7)))
  whole = exponent >= 0
  got = ulps.compute(ulps.expression(Ops.POW, dtype), base, exponent)
  assert np.all(got[whole] == base[whole].astype(int) ** exponent[whole].astype(int))

@each_type
def test_huge_exponents(dtype: DType) -> None:
  """The bases are next to 1, where the logarithm is tiny, or such that y * log2(x) overflows."""
  kind = ulps.numpy_type(dtype)
  below, above = np.nextafter(kind.type(1), kind.type(0)), np.nextafter(kind.type(1), kind.type(2))
  most = float(np.finfo(kind).max)
  base, exponent = np.array([below, above, below, above, 2.0, 0.5],
                            kind), np.array([most, most, -most, -most, most, most], kind)
  assert ulps.compute(ulps.expression(Ops.POW, dtype), base, exponent).tolist() == [0.0, INF, INF, 0.0, INF, 0.0]
