"""Bits of floats, clamps, and exact errors of sums and products, checked in fractions."""
from fractions import Fraction

import numpy as np
import pytest
import ulps

from tinyhw.codegen.math import floating
from tinyhw.codegen.math.floating import DOUBLE, SINGLE, FloatEncoding
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

BOTH = (dtypes.float32, dtypes.float64)
each_type = pytest.mark.parametrize("dtype", BOTH, ids=("float32", "float64"))

def holes(dtype: DType, n: int) -> list[UOp]: return [UOp(Ops.NOOP, dtype, (), k) for k in range(n)]

def numbers(dtype: DType, n: int, seed: int = 0) -> np.ndarray:
  rng = np.random.default_rng(seed)
  return (rng.choice([-1, 1], n) * 2.0 ** rng.uniform(-20, 20, n)).astype(ulps.numpy_type(dtype))

@pytest.mark.parametrize("f", (SINGLE, DOUBLE), ids=("float32", "float64"))
def test_formats(f: FloatEncoding) -> None:
  kind, bits = ulps.numpy_type(f.real), ulps.numpy_type(f.unsigned)
  def value(code: int) -> float: return float(np.array(code, bits).view(kind))
  assert (value(f.one) == 1.0 and value(f.infinity) == np.inf and str(value(f.sign)) == "-0.0"
          and f.smallest_normal == np.finfo(kind).tiny)
  assert f.real.itemsize == f.signed.itemsize == f.unsigned.itemsize
  for k in (-f.bias + 1, -3, 0, 1, 17, f.bias):
    shifted = np.array(k + f.rounder, kind)
    assert float((shifted.view(bits) << f.mantissa).view(kind)) == 2.0 ** k

@each_type
@pytest.mark.parametrize("fused", (True, False), ids=("fused", "unfused"))
def test_products_are_exact(dtype: DType, fused: bool) -> None:
  a, b = numbers(dtype, 200), numbers(dtype, 200, 1)
  product = floating.exact_product(*holes(dtype, 2), fused)
  high, low = (ulps.compute(part if fused else ulps.unfused(part), a, b) for part in product)
  for x, y, h, e in zip(a, b, high, low):
    assert Fraction(float(x)) * Fraction(float(y)) == Fraction(float(h)) + Fraction(float(e))

@each_type
def test_sums_are_exact(dtype: DType) -> None:
  a, b = numbers(dtype, 200), numbers(dtype, 200, 1)
  for larger in (False, True):
    if larger: a, b = np.where(np.abs(a) < np.abs(b), b, a), np.where(np.abs(a) < np.abs(b), a, b)
    high, low = (ulps.compute(part, a, b)
                 for part in (floating.fast_sum if larger else floating.exact_sum)(*holes(dtype, 2)))
    for x, y, h, e in zip(a, b, high, low):
      assert Fraction(float(x)) + Fraction(float(y)) == Fraction(float(h)) + Fraction(float(e))

@each_type
def test_clamps_keep_nan(dtype: DType) -> None:
  x = np.array([-np.inf, -7.0, -3.0, -0.0, 2.5, 4.0, np.inf, np.nan], ulps.numpy_type(dtype))
  got = ulps.compute(floating.clamp(holes(dtype, 1)[0], -3.0, 4.0), x)
  assert got[:-1].tolist() == [-3.0, -3.0, -3.0, 0.0, 2.5, 4.0, 4.0] and np.isnan(got[-1])

@each_type
def test_signs(dtype: DType) -> None:
  x, y = np.array([1.5, -1.5, 0.0, -0.0, -np.inf], ulps.numpy_type(dtype)), np.array([-2.0, -2.0, -0.0, 3.0, 0.0],
                                                                                     ulps.numpy_type(dtype))
  a, b = holes(dtype, 2)
  assert ulps.compute(floating.magnitude(a), x).tolist() == [1.5, 1.5, 0.0, 0.0, np.inf]
  flipped = ulps.compute(floating.with_sign(a, floating.sign_bit(b)), x, y)
  assert [str(v) for v in flipped.tolist()] == ["-1.5", "1.5", "-0.0", "-0.0", "-inf"]

@each_type
def test_polynomials_begin_with_the_lowest_power(dtype: DType) -> None:
  x, a = holes(dtype, 2)
  values = np.array([0.0, 1.0, -2.0], ulps.numpy_type(dtype)), np.array([5.0, 6.0, 7.0], ulps.numpy_type(dtype))
  assert ulps.compute(floating.polynomial(x, (1.0, 2.0, 3.0)), *values).tolist() == [1.0, 6.0, 9.0]
  assert ulps.compute(floating.polynomial(x, (2.0, 3.0), a), *values).tolist() == [5.0, 11.0, 15.0]
