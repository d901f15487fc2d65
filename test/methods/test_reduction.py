"""Reductions against NumPy."""
import math

import numpy as np
import pytest

from test.helpers import arrays, check_gradient, compare, same
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, IndexRangeError, ShapeError
from tinyhw.tensor import Tensor
from tinyhw.uop.ops import UOp

AXES = [None, 0, 1, -1, (0, 2), (1,)]

@pytest.mark.slow
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdim", [False, True])
def test_against_numpy(axis, keepdim):
  x = arrays((2, 3, 4))[0]
  k = {"axis": axis, "keepdims": keepdim}
  for name in ("sum", "prod", "max", "min", "mean"):
    compare(lambda t, n=name: getattr(t, n)(axis, keepdim), lambda a, n=name: getattr(a, n)(**k), x)
  compare(lambda t: t.var(axis, keepdim), lambda a: a.var(ddof=1, **k), x)
  compare(lambda t: t.std(axis, keepdim, correction=0), lambda a: a.std(**k), x)
  compare(lambda t: t.var_mean(axis, keepdim), lambda a: (a.var(ddof=1, **k), a.mean(**k)), x)
  compare(lambda t: t.std_mean(axis, keepdim), lambda a: (a.std(ddof=1, **k), a.mean(**k)), x)
  compare(lambda t: t.any(axis, keepdim), lambda a: a.any(**k), (x > 1.5))
  compare(lambda t: t.all(axis, keepdim), lambda a: a.all(**k), (x > -1.5))
  compare(lambda t: t.logsumexp(axis, keepdim), lambda a: np.log(np.exp(a).sum(**k)), x)

@pytest.mark.parametrize("dtype, total, average", [
  ("bool", "int32", "float32"), ("int8", "int32", "float32"), ("uint8", "uint32", "float32"),
  ("uint16", "uint32", "float32"),
    ("int64", "int64", "float32"),
  ("uint64", "uint64", "float32"), ("float16", "float16", "float16"), ("bfloat16", "bfloat16", "bfloat16"),
  ("float64", "float64", "float64")])
def test_types(dtype, total, average):
  x = Tensor([1, 0, 1], dtype=dtype)
  assert (str(x.sum().dtype), str(x.mean().dtype), x.max().dtype) == (f"dtypes.{total}", f"dtypes.{average}", x.dtype)
  assert x.sum().item() == 2 and x.sum(dtype="float32").dtype is dtypes.float32

@pytest.mark.slow
def test_narrow_types_do_not_overflow():
  assert Tensor([100] * 4, dtype=dtypes.int8).sum().item() == 400
  assert Tensor([200.0] * 1000, dtype=dtypes.float16).mean().item() == 200.0

@pytest.mark.slow
def test_empty_and_scalar():
  empty = Tensor(np.zeros((0, 3), np.float32))
  assert empty.sum().item() == 0 and empty.prod(0).tolist() == [1.0] * 3
  assert math.isnan(empty.mean().item())
  assert (empty.sum(1).shape == (0,) and Tensor(5.0).sum().item() == 5.0 and Tensor(5.0).max(0).item() == 5.0
          and Tensor(5.0).softmax(0).item() == 1.0)
  assert math.isnan(Tensor([1.0]).var().item())
  for method in ("argmax", "max", "min"):
    with pytest.raises(ShapeError, match="no element"): getattr(empty, method)(0)
  with pytest.raises(IndexRangeError, match="axis 2"): empty.sum(2)

def test_minimum_of_integers_at_their_limits():
  for dtype, low in ((np.int8, -128), (np.uint8, 0), (np.int64, -2 ** 63)):
    assert Tensor(np.array([low, 5], dtype)).min().item() == low

@pytest.mark.slow
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(axis):
  def softmax(a):
    e = np.exp(a - a.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)
  x = arrays((3, 4), low=-50, high=50)[0]
  compare(lambda t: t.softmax(axis), softmax, x)
  compare(lambda t: t.log_softmax(axis), lambda a: np.log(softmax(a.astype(np.float64))).astype(np.float32), x,
          atol=1e-4)
  compare(lambda t: t.softmin(axis), lambda a: softmax(-a), x)
  assert (Tensor([1, 2]).softmax().dtype is dtypes.float32
          and Tensor([1.0]).softmax(dtype="float64").dtype is dtypes.float64)

@pytest.mark.slow
def test_argmax():
  x = np.array([[1, 3, 3, 0], [5, 5, 2, 7]], np.float32)
  for axis in (None, 0, 1):
    compare(lambda t: t.argmax(axis), lambda a: a.argmax(axis).astype(np.int32), x)
    compare(lambda t: t.argmin(axis), lambda a: a.argmin(axis).astype(np.int32), x)
  assert Tensor(x).argmax(1, keepdim=True).shape == (2, 1) and Tensor(4).argmax(0).item() == 0
  assert Tensor([True, True]).argmax().item() == 0 and Tensor([-128, 127], dtype=dtypes.int8).argmin().item() == 0

@pytest.mark.slow
def test_running():
  x = arrays((2, 5))[0]
  for axis in (0, 1, -1):
    compare(lambda t: t.cumsum(axis), lambda a: a.cumsum(axis), x)
    compare(lambda t: t.cumprod(axis), lambda a: a.cumprod(axis), x)
    compare(lambda t: t.cummax(axis)[0], lambda a: np.maximum.accumulate(a, axis), x)
    compare(lambda t: t.cummin(axis)[0], lambda a: np.minimum.accumulate(a, axis), x)
    compare(lambda t: t.logcumsumexp(axis), lambda a: np.log(np.exp(a).cumsum(axis)), x)
  assert Tensor([1.0, 3, 2, 3, 0]).cummax(0)[1].tolist() == [0, 1, 1, 3, 3]
  assert Tensor([True, True]).cumsum(0).dtype is dtypes.int32 and Tensor(3.0).cumsum(0).item() == 3.0
  assert Tensor(np.zeros((0,), np.float32)).cumsum(0).shape == (0,)

@pytest.mark.slow
def test_running_sums_in_blocks(monkeypatch):
  from tinyhw.methods import reduction
  monkeypatch.setattr(reduction, "_BLOCK", 4)
  for n in (8, 9, 16, 37): compare(lambda t: t.cumsum(-1), lambda a: a.cumsum(-1), (2, n), atol=1e-5)
  compare(lambda t: t.cummax(0)[0], lambda a: np.maximum.accumulate(a), (30,))

@pytest.mark.slow
@pytest.mark.parametrize("name, sign", [("cummax", 1), ("cummin", -1)])
@pytest.mark.parametrize("shape, axis", [((7,), 0), ((3, 9), 1), ((9, 3), 0), ((64,), 0), ((2, 130), 1)])
def test_the_gradient_of_a_running_extreme_goes_to_its_place(name, sign, shape, axis):
  rng = np.random.default_rng(0)
  a, w = rng.integers(0, 4, shape).astype(np.float32), rng.integers(1, 9, shape).astype(np.float32)
  if axis == 1: a[0] = sign * np.sort(sign * a[0])
  place, expected = np.zeros(shape, int), np.zeros_like(a)
  for index in np.ndindex(*shape):
    before = [(*index[:axis], i, *index[axis + 1:]) for i in range(index[axis] + 1)]
    last = max(before, key=lambda b: (sign * a[b], b[axis]))
    place[index] = last[axis]
    expected[last] += w[index]
  x = Tensor(a, requires_grad=True)
  values, places = getattr(x, name)(axis)
  assert places.tolist() == place.tolist()
  (values * Tensor(w)).sum().backward()
  assert x.grad.tolist() == expected.tolist()

@pytest.mark.slow
def test_the_gradient_of_a_running_maximum_of_nan_and_twice():
  x = Tensor([1.0, math.nan, 3.0, math.nan, 3.0], requires_grad=True)
  assert (x.cummax()[0] * Tensor([1.0, 2.0, 3.0, 4.0, 5.0])).sum().gradient(x)[0].tolist() == [1.0, 5.0, 0.0, 9.0, 0.0]
  x = Tensor([1.0, 3.0, 3.0, 2.0], requires_grad=True)
  first = (x.cummax()[0] ** 3).sum().gradient(x)[0]
  assert first.tolist() == [3.0, 27.0, 54.0, 0.0] and first.sum().gradient(x)[0].tolist() == [6.0, 18.0, 36.0, 0.0]

@pytest.mark.slow
def test_closeness():
  a = Tensor([1.0, math.inf, math.nan, 1.0])
  b = Tensor([1.0 + 1e-7, math.inf, math.nan, 1.1])
  assert a.isclose(b).tolist() == [True, True, False,
                                   False] and a.isclose(b, equal_nan=True).tolist() == [True, True, True, False]
  assert a.allclose(a, equal_nan=True) is True and a.allclose(a) is False

@pytest.mark.slow
def test_normalisations():
  x = arrays((2, 3, 4))[0]
  compare(lambda t: t.layernorm(), lambda a: (a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + 1e-5),
          x)
  compare(lambda t: t.layernorm((1, 2)),
          lambda a: (a - a.mean((1, 2), keepdims=True)) / np.sqrt(a.var((1, 2), keepdims=True) + 1e-5), x)
  for p in (1, 2, 3, math.inf):
    compare(lambda t: t.normalize(p, 1), lambda a: a / np.linalg.norm(a.transpose(0, 2, 1), p, 2)[:, None] if p != 3
            else a / (abs(a) ** 3).sum(1,
                                       keepdims=True) ** (1 / 3), x)
  w, b, m, v = arrays((3,), (3,), (3,), (3,), low=0.5, seed=1)
  compare(lambda t: t.batchnorm(Tensor(w), Tensor(b), Tensor(m), Tensor(v)),
          lambda a: (a - m[:, None]) * v[:, None] * w[:, None] + b[:, None], x)

@pytest.mark.slow
@pytest.mark.parametrize("f", [
  lambda t: t.sum(1), lambda t: t.mean(), lambda t: t.max(0), lambda t: t.min(1), lambda t: t.prod(1),
  lambda t: t.var(1), lambda t: t.std(),
    lambda t: t.softmax(-1),
  lambda t: t.log_softmax(0), lambda t: t.logsumexp(1), lambda t: t.cumsum(1), lambda t: t.cumprod(1),
  lambda t: t.layernorm(),
  lambda t: t.normalize(), lambda t: t.cummax(1)[0],
  lambda t: t.logcumsumexp(1)])
def test_gradients(f): check_gradient(f, (3, 4))

@pytest.mark.slow
def test_gradients_next_to_zeros_and_ties():
  check_gradient(lambda t: t.prod(1), [[1.0, 0.0, 3.0], [0.0, 0.0, 2.0], [1.0, 2.0, 3.0]])
  x = Tensor([[1.0, 3.0, 3.0]])
  assert x.max().gradient(x)[0].tolist() == [[0.0, 0.5, 0.5]]

def test_refusals():
  with pytest.raises(ArgumentError, match="twice"): Tensor.ones(2, 2).sum((0, -2))
  with pytest.raises(ArgumentError, match="positive p, not 0"): Tensor.ones(2, 2).normalize(0)
  with pytest.raises(ArgumentError, match="an axis is a whole number"): Tensor.ones(2, 2).sum(("a",))

@pytest.mark.slow
@pytest.mark.parametrize("f", [
  lambda x: x.argmax(1), lambda x: x.argmin(), lambda x: x.cumsum(1), lambda x: x.cumsum(0), lambda x: x.cummax(1)[1],
  lambda x: x.logcumsumexp(1),
  lambda x: x.var(1), lambda x: x.mean(), lambda x: x.softmax(1)])
def test_symbolic_sizes_give_what_numbers_give(f):
  x = Tensor([[3.0, 1.0, 2.0, 9.0], [1.0, 5.0, 5.0, 9.0], [7.0, 7.0, 7.0, 7.0]])
  v, w = UOp.variable("v", 1, 4).bind(3), UOp.variable("w", 1, 3).bind(2)
  same(f(x[:w, :v]), f(x[:2, :3]).numpy())
  same(f(x[:w, :v].repeat(1, 40)), f(x[:2, :3].repeat(1, 40)).numpy(), rtol=1e-5)   # in blocks
  with pytest.raises(ShapeError, match="no element"): x[:w, :UOp.variable("z", 0, 2).bind(0)].argmax(1)

@pytest.mark.slow
@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("n, place", [(70, 32), (2080, 1000), (2080, 1023), (4100, 2047), (4100, 4099)])
def test_gradients_of_a_lone_extreme(name, n, place):
  """The gradients of all later elements go to it, whichever block it is in."""
  x = np.zeros(n, np.float32)
  x[place] = 1 if name == "cummax" else -1
  t = Tensor(x).requires_grad_()
  getattr(t, name)(0)[0].sum().backward()
  want = np.ones(n)
  want[place:] = 0
  want[place] = n - place
  assert want.sum() == n == t.grad.sum().item() and t.grad[place].item() == n - place
