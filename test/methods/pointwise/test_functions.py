"""Functions of one element, and their gradients, against NumPy and math."""
import math

import numpy as np
import pytest

from test.helpers import check_gradient, compare, same
from tinyhw.dtype import dtypes
from tinyhw.tensor import Tensor

WIDE = np.array([-100, -20, -5, -1, -0.5, -1e-4, 0, 1e-4, 0.3, 1, 2.5, 5, 20, 88, 100], np.float32)
SMALL = np.array([-0.999, -0.7, -0.1, -1e-5, 0, 1e-5, 0.3, 0.9, 0.9999], np.float32)
erf = np.vectorize(math.erf)

@pytest.mark.parametrize("name, oracle, x", [
  ("exp", np.exp, WIDE), ("exp2", np.exp2, WIDE), ("sqrt", np.sqrt, abs(WIDE)),
  ("rsqrt", lambda x: 1 / np.sqrt(x), abs(WIDE)),
    ("log", np.log, abs(WIDE)),
  ("log2", np.log2, abs(WIDE)), ("log10", np.log10, abs(WIDE)), ("reciprocal", lambda x: 1 / x, WIDE),
  ("square", np.square, WIDE),
  ("sin", np.sin, WIDE),
  ("cos", np.cos, WIDE), ("tan", np.tan, SMALL), ("tanh", np.tanh, WIDE), ("sinh", np.sinh, WIDE[1:-2]),
  ("cosh", np.cosh, WIDE[1:-2]),
  ("asin", np.arcsin, SMALL), ("acos", np.arccos, SMALL), ("atan", np.arctan, WIDE), ("asinh", np.arcsinh, WIDE),
  ("acosh", np.arccosh, abs(WIDE) + 1),
  ("atanh", np.arctanh, SMALL), ("erf", erf, WIDE), ("abs", abs, WIDE), ("sign", np.sign, WIDE),
  ("trunc", np.trunc, WIDE * 1.3),
  ("floor", np.floor, WIDE * 1.3), ("ceil", np.ceil, WIDE * 1.3)])
def test_against_numpy(name, oracle, x):
  compare(lambda t: getattr(t, name)(), lambda a: oracle(a).astype(np.float32), x, rtol=2e-6,
          atol=1e-30 if name != "sin" else 1e-7)

@pytest.mark.slow
@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 2e-15), (np.float32, 1e-6), (np.float16, 3e-3)])
def test_hyperbolic_functions_to_the_ends_of_the_type(dtype, tolerance):
  top = float(np.finfo(dtype).max)
  sizes = np.array([0.0, 1e-3, 0.5, 1.0, 3.0, 60.0, top ** 0.5, top ** 0.6, top / 2, top, math.inf], dtype)
  x = np.concatenate([sizes, -sizes, [math.nan]]).astype(dtype)
  ends = math.log(top) * np.array([-1.001, -0.999, 0.5, 0.999, 1.001]) + np.array([-1, -1, 1, 1, 1]) * math.log(2)
  with np.errstate(all="ignore"):
    near_the_end = ends.astype(dtype)
    for name, theirs, values in (("asinh", np.arcsinh, x), ("acosh", np.arccosh, x), ("cosh", np.cosh, near_the_end),
                                 ("sinh", np.sinh, near_the_end)):
      expected = theirs(values.astype(np.float64)).astype(dtype)
      np.testing.assert_allclose(getattr(Tensor(values), name)().numpy(), expected, rtol=tolerance, err_msg=name)

@pytest.mark.slow
def test_odd_functions_have_their_gradient_at_zero():
  for name in ("asinh", "atan", "atanh", "asin", "sinh", "tanh", "erf", "sin"):
    x = Tensor([0.0])
    getattr(x, name)().sum().backward()
    assert x.grad.item() == pytest.approx(2 / math.sqrt(math.pi) if name == "erf" else 1.0), name
  x = Tensor([1.0, 2.0, 1e20, math.inf])
  x.asinh().sum().backward()
  np.testing.assert_allclose(x.grad.numpy(), [0.5 ** 0.5, 0.2 ** 0.5, 1e-20, 0.0], rtol=1e-6)

@pytest.mark.slow
def test_mixtures():
  compare(lambda a, b: a.lerp(b, 0.25), lambda a, b: a + (b - a) * np.float32(0.25), (3,), (3,))
  compare(lambda a, b: a.logaddexp(b), np.logaddexp, WIDE, WIDE[::-1].copy())
  same(Tensor([-math.inf]).logaddexp(Tensor([-math.inf])), np.array([-math.inf], np.float32))

def test_integers_become_floats():
  assert Tensor([1, 4]).sqrt().dtype is dtypes.float32 and Tensor([1, 4]).sqrt().tolist() == [1.0, 2.0]
  assert Tensor([-1, 4]).abs().tolist() == [1, 4] and Tensor([-1, 0, 4]).sign().tolist() == [-1, 0, 1]

@pytest.mark.slow
@pytest.mark.parametrize("f", [
  lambda t: t.exp(), lambda t: t.exp2(), lambda t: t.abs().log(), lambda t: t.abs().log2(), lambda t: t.abs().sqrt(),
  lambda t: t.sin(),
    lambda t: t.cos(),
  lambda t: t.tan(), lambda t: t.tanh(), lambda t: t.erf(), lambda t: t.reciprocal(), lambda t: t.sigmoid(),
  lambda t: t.softplus(),
  lambda t: t.gelu(),
  lambda t: t.gelu("none"), lambda t: t.silu(), lambda t: t.mish(), lambda t: t.elu(), lambda t: t.sinh(),
  lambda t: t.cosh(), lambda t: t.asinh(),
  lambda t: t.atan(), lambda t: (t * 0.4).asin(), lambda t: (t * 0.4).acos(), lambda t: (t * 0.4).atanh(),
  lambda t: (t.abs() + 1.1).acosh(),
  lambda t: t.leaky_relu(), lambda t: t.relu(), lambda t: t.clamp(-1, 1), lambda t: t.logsigmoid(),
  lambda t: t.rsqrt() if False else t.square().rsqrt(),
  lambda t: t.contiguous_backward() * 2, lambda t: t.double().float().double()])
def test_gradients(f):
  check_gradient(f, np.array([-1.7, -0.6, 0.3, 1.2]), tolerance=2e-6 if f(Tensor([1.0])).dtype is not dtypes.float64
                 else 1e-4)

@pytest.mark.slow
def test_gradients_where_formulas_could_overflow():
  x = Tensor([-200.0, -1.0, 0.0, 1.0, 200.0])
  for name, at_zero in (("sigmoid", 0.25), ("softplus", 0.5), ("silu", 0.5), ("gelu", 0.5), ("tanh", 1.0), ("elu", 1.0),
                        ("relu", 0.0),
    ("abs", 0.0), ("sign", 0.0)):
    g = getattr(x, name)().sum().gradient(x)[0].tolist()
    assert all(math.isfinite(i) for i in g) and abs(g[2] - at_zero) < 1e-6, (name, g)
