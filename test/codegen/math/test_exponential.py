"""The exact results of EXP and EXP2, and their limits. test_transcendental.py tests the other errors."""
import math

import numpy as np
import pytest
import ulps

from tinyhw.codegen.math.exponential import ROUGH_LIMIT, rough_exp2
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

each_type = pytest.mark.parametrize("dtype", (dtypes.float32, dtypes.float64), ids=("float32", "float64"))

def values(op: Ops, dtype: DType, xs: list[float]) -> list[float]:
  result: list[float] = ulps.compute(ulps.expression(op, dtype), np.array(xs, ulps.numpy_type(dtype))).tolist()
  return result

@each_type
def test_powers_of_two_are_exact(dtype: DType) -> None:
  """This includes subnormal results; half of the smallest one is 0."""
  least, most = (-149, 127) if dtype is dtypes.float32 else (-1074, 1023)
  whole = [float(k) for k in range(least, most + 1)]
  assert values(Ops.EXP2, dtype, whole) == [2.0 ** k for k in whole]
  assert values(Ops.EXP2, dtype, [least - 1.0, most + 1.0, -1e30, 1e30]) == [0.0, math.inf, 0.0, math.inf]

@each_type
def test_special_values(dtype: DType) -> None:
  for op in (Ops.EXP, Ops.EXP2):
    got = values(op, dtype, [0.0, -0.0, math.inf, -math.inf, math.nan])
    assert got[:4] == [1.0, 1.0, math.inf, 0.0] and math.isnan(got[4])

def test_nan_with_any_payload_is_nan() -> None:
  """The computation of the power of two uses its bits."""
  codes = np.array([0x7f800001, 0x7fc00000, 0x7fffffff, 0xff812345, 0xffc00100], np.uint32).view(np.float32)
  for op in ulps.FUNCTIONS:
    assert np.isnan(ulps.compute(ulps.expression(op, dtypes.float32), *[codes] * ulps.ARITY.get(op, 1))).all()

@each_type
def test_largest_and_smallest_results(dtype: DType) -> None:
  """The last argument with a finite result, the first with the result 0, and their neighbours."""
  kind = ulps.numpy_type(dtype)
  highest = np.array(np.log(np.finfo(kind).max.astype(np.float64)), kind)
  while np.exp(highest.astype(np.longdouble)) > np.finfo(kind).max.astype(np.longdouble):
    highest = np.nextafter(highest, kind.type(0))
  assert math.isfinite(values(Ops.EXP, dtype, [float(highest)])[0])
  assert values(Ops.EXP, dtype, [float(highest) + 0.001]) == [math.inf]
  tiny = float(np.finfo(kind).smallest_subnormal)
  assert (values(Ops.EXP, dtype, [math.log(tiny) + 0.01, math.log(tiny) - 0.68, math.log(tiny) - 0.70])
          == [tiny, tiny, 0.0])

@each_type
@pytest.mark.parametrize("op", (Ops.EXP, Ops.EXP2))
def test_masked_elements_underflow_nowhere(op: Ops, dtype: DType) -> None:
  """A product that rounds to 0 is slow on an Intel core. A mask's -1e30 has a factor of 0 instead."""
  x, body = np.array([-1e30, -math.inf], ulps.numpy_type(dtype)), ulps.expression(op, dtype)
  least = np.finfo(x.dtype).smallest_normal
  for u in body.toposort():
    if u.op not in (Ops.MUL, Ops.MULACC) or u.dtype is not dtype: continue
    factors, got = [ulps.compute(s, x) for s in u.src[:2]], ulps.compute(u, x)
    assert np.all(np.abs(got) >= least) or any(np.all(f == 0) for f in factors), u

def test_rough_powers() -> None:
  """Their relative error is 2**-18, and they are 0 below the limit. NaN stays."""
  body = rough_exp2(UOp(Ops.NOOP, dtypes.float32, (), 0))
  x = np.linspace(ROUGH_LIMIT + 1, 100, 100001, dtype=np.float32)
  exact = np.exp2(x.astype(np.float64))
  assert np.max(np.abs(ulps.compute(body, x) - exact) / exact) < 2.0 ** -18
  got = ulps.compute(body, np.array([0.0, -1.0, 3.0, ROUGH_LIMIT, -1e30, -math.inf, math.nan], np.float32)).tolist()
  assert got[:1] + got[3:6] == [1.0, 0.0, 0.0, 0.0] and math.isnan(got[6])
  assert got[1:3] == [0.5, 8.0], "powers with whole exponents are exact"
