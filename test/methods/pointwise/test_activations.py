"""Activations against NumPy.

Their gradients and special values are in test/whole/test_gradients.py and test/numerics/test_values.py.
"""
import math

import numpy as np
import pytest

from test.helpers import compare
from tinyhw.errors import ArgumentError
from tinyhw.tensor import Tensor

WIDE = np.array([-100, -20, -5, -1, -0.5, -1e-4, 0, 1e-4, 0.3, 1, 2.5, 5, 20, 88, 100], np.float32)
erf = np.vectorize(math.erf)

def test_activations():
  x, d = WIDE, WIDE.astype(np.float64)
  def check(f, g, rtol=3e-6): compare(f, lambda a: g(a.astype(np.float64)).astype(np.float32), x, rtol=rtol, atol=1e-30)
  sigmoid = lambda a: np.where(a < 0, np.exp(np.minimum(a, 0)), 1) / (1 + np.exp(-abs(a)))
  softplus = lambda a: np.maximum(a, 0) + np.log1p(np.exp(-abs(a)))
  check(lambda t: t.relu(), lambda a: np.maximum(a, 0))
  check(lambda t: t.sigmoid(), sigmoid)
  check(lambda t: t.silu(), lambda a: a * sigmoid(a))
  check(lambda t: t.softplus(), softplus)
  check(lambda t: t.logsigmoid(), lambda a: -softplus(-a))
  check(lambda t: t.mish(), lambda a: a * np.tanh(softplus(a)))
  check(lambda t: t.relu6(), lambda a: np.clip(a, 0, 6))
  check(lambda t: t.hardtanh(), lambda a: np.clip(a, -1, 1))
  check(lambda t: t.hardsigmoid(), lambda a: np.clip(a / 6 + 0.5, 0, 1), 1e-5)
  check(lambda t: t.hardswish(), lambda a: a * np.clip(a + 3, 0, 6) / 6)
  check(lambda t: t.leaky_relu(), lambda a: np.where(a < 0, 0.01 * a, a))
  check(lambda t: t.elu(), lambda a: np.where(a > 0, a, np.expm1(np.minimum(a, 0))))
  check(lambda t: t.celu(2.0), lambda a: np.where(a > 0, a, 2 * np.expm1(np.minimum(a, 0) / 2)))
  check(lambda t: t.selu(),
        lambda a: 1.0507009873554805 * np.where(a > 0, a, 1.6732632423543772 * np.expm1(np.minimum(a, 0))))
  check(lambda t: t.softsign(), lambda a: a / (1 + abs(a)))
  compare(lambda t: t.gelu("none"), lambda a: (d * 0.5 * (1 + erf(d / 2 ** 0.5))).astype(np.float32), x, atol=1e-6)
  compare(lambda t: t.gelu(),
          lambda a: (d * 0.5 * (1 + np.tanh((2 / math.pi) ** 0.5 * (d + 0.044715 * d ** 3)))).astype(np.float32), x,
          atol=1e-6)
  compare(lambda t: t.quick_gelu(), lambda a: (d * sigmoid(1.702 * d)).astype(np.float32), x)
  with pytest.raises(ArgumentError, match="approximate"): Tensor(x).gelu("other")
  with pytest.raises(ArgumentError, match="alpha, which is 0"): Tensor(x).celu(0)
  with pytest.raises(ArgumentError, match="beta, which is 0"): Tensor(x).softplus(0)
