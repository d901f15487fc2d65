"""Tensors made from numbers alone."""
import numpy as np
import pytest

from test.helpers import same
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.tensor import Tensor
from tinyhw.uop.ops import UOp

def test_filled():
  same(Tensor.zeros(2, 3), np.zeros((2, 3), np.float32))
  same(Tensor.ones((2,), dtype=dtypes.int8), np.ones(2, np.int8))
  same(Tensor.full((2, 2), 7), np.full((2, 2), 7, np.int32))
  same(Tensor.full((), True), np.array(True))
  same(Tensor.full((2,), 1.5).full_like(3), np.full(2, 3, np.float32))
  assert Tensor.zeros(0, 2).shape == (0, 2) and Tensor.zeros().shape == () and Tensor.empty(3, 2).shape == (3, 2)
  assert (Tensor.ones(2).zeros_like().tolist() == [0.0, 0.0] and Tensor.zeros(2).ones_like(dtype="int32").tolist()
          == [1, 1])
  assert Tensor.ones(2, 3).empty_like(dtype="int8").dtype is dtypes.int8

@pytest.mark.parametrize("args", [(5,), (2, 7), (2, 9, 3), (9, 2, -3), (0,), (5, 2), (0.0, 1.0, 0.25), (1, 0, -0.3),
                                  (2.5,), (-3, 3)])
def test_arange(args):
  want = np.arange(*args)
  same(Tensor.arange(*args), want.astype(np.float32 if any(isinstance(a, float) for a in args) else np.int32))

@pytest.mark.slow
def test_ranges():
  assert (Tensor.arange(3, dtype=dtypes.float16).tolist() == [0.0, 1.0, 2.0]
          and Tensor.arange(4, dtype=dtypes.uint8).dtype is dtypes.uint8)
  for args in ((0, 1, 5), (3, -3, 7), (2, 9, 1), (0, 1, 0)):
    same(Tensor.linspace(*args), np.linspace(*args, dtype=np.float32))
  same(Tensor.linspace(0, 10, 5, dtype=dtypes.int32), np.linspace(0, 10, 5).astype(np.int32))

@pytest.mark.slow
def test_matrices():
  same(Tensor.eye(3), np.eye(3, dtype=np.float32))
  same(Tensor.eye(2, 4, dtype="int32"), np.eye(2, 4, dtype=np.int32))
  x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
  for k in (-3, -1, 0, 1, 2, 5):
    same(Tensor(x).tril(k), np.tril(x, k))
    same(Tensor(x).triu(k), np.triu(x, k))
  same(Tensor([1.0, 2.0]).diag(), np.diag(np.array([1, 2], np.float32)))

def test_equal_tensors_with_gradients_stay_apart():
  a, b = Tensor.ones(2, requires_grad=True), Tensor.ones(2, requires_grad=True)
  assert a.uop is not b.uop and Tensor.ones(2).uop is Tensor.ones(2).uop
  (a * 2 + b * 3).sum().backward()
  assert a.grad.tolist() == [2.0, 2.0] and b.grad.tolist() == [3.0, 3.0]

def test_refusals():
  with pytest.raises(ShapeError, match="-1 is negative"): Tensor.zeros(2, -1)
  with pytest.raises(ArgumentError, match="a size is a whole number"): Tensor.zeros(2.5)
  with pytest.raises(ArgumentError, match="step other than 0"): Tensor.arange(1, 2, 0)
  with pytest.raises(DTypeError, match="not bools"): Tensor.arange(2, dtype="bool")
  with pytest.raises(ShapeError, match="two axes"): Tensor.ones(2).tril()
  with pytest.raises(ArgumentError, match="at least 0"): Tensor.linspace(0, 1, -1)

@pytest.mark.slow
def test_counting_with_variables():
  v, w = UOp.variable("v", 1, 9).bind(3), UOp.variable("w", 1, 9).bind(2)
  for f in (lambda v, w: (0, v, w), lambda v, w: (v, 20, w), lambda v, w: (20, v, -w), lambda v, w: (w, v * 3, 3),
            lambda v, w: (v, w),
            lambda v, w: (0.5, v), lambda v, w: (0, v, 0.25)):
    assert Tensor.arange(*f(v, w)).tolist() == Tensor.arange(*f(3, 2)).tolist()
  assert Tensor.eye(v).tolist() == Tensor.eye(3).tolist()
