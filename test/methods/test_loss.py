"""Losses against NumPy."""
import numpy as np
import pytest

from test.helpers import arrays, check_gradient, same
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.tensor import Tensor

X, Y = arrays((4, 3))[0], np.array([0, 2, 1, 2])

def log_softmax(x, axis=-1):
  return x - x.max(axis, keepdims=True) - np.log(np.exp(x - x.max(axis, keepdims=True)).sum(axis, keepdims=True))
def reduced(x, reduction): return {"mean": np.mean, "sum": np.sum, "none": lambda a: a}[reduction](x).astype(np.float32)

@pytest.mark.slow
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy(reduction, smoothing):
  logs = log_softmax(X)
  losses = -(logs[np.arange(4), Y] * (1 - smoothing) + logs.mean(-1) * smoothing)
  options = {"reduction": reduction, "label_smoothing": smoothing}
  same(Tensor(X).cross_entropy(Tensor(Y), **options), reduced(losses, reduction))
  same(Tensor(X).cross_entropy(Tensor(np.eye(3, dtype=np.float32)[Y]), **options), reduced(losses, reduction))
  same(Tensor(X).sparse_categorical_crossentropy(Tensor(Y), **options), reduced(losses, reduction))

@pytest.mark.slow
def test_cross_entropy_over_an_inner_axis():
  x, y = arrays((2, 3, 4))[0], np.array([[0, 1, 2, 1], [2, 2, 0, 1]])
  same(Tensor(x).cross_entropy(Tensor(y)), np.float32(-np.take_along_axis(log_softmax(x, 1), y[:, None], 1).mean()))
  same(Tensor(X[0]).cross_entropy(Tensor(1)), np.float32(-log_softmax(X[0])[1]))

@pytest.mark.slow
def test_ignored_classes():
  y = np.array([0, -1, 1, -1])
  want = -log_softmax(X)[[0, 2], [0, 1]]
  same(Tensor(X).sparse_categorical_crossentropy(Tensor(y)), np.float32(want.mean()))
  same(Tensor(log_softmax(X)).nll_loss(Tensor(np.array([0, 5, 1, 5])), ignore_index=5), np.float32(want.mean()))

@pytest.mark.slow
def test_nll_loss():
  logs, w = log_softmax(X), np.array([1.0, 2.0, 0.5], np.float32)
  picked = -logs[np.arange(4), Y]
  same(Tensor(logs).nll_loss(Tensor(Y)), np.float32(picked.mean()))
  same(Tensor(logs).nll_loss(Tensor(Y), Tensor(w)), np.float32((picked * w[Y]).sum() / w[Y].sum()))
  same(Tensor(logs).nll_loss(Tensor(Y), Tensor(w), reduction="none"), picked * w[Y])

@pytest.mark.slow
def test_means_of_many_losses_in_half_precision():
  scores, y = Tensor([[0.0, 9.0]], dtype="float16").expand(8000, 2), Tensor.zeros(8000, dtype="int32")
  losses = scores.sparse_categorical_crossentropy(y), scores.cross_entropy(y), scores.log_softmax().nll_loss(y)
  assert [x.dtype for x in losses] == [dtypes.float16] * 3 and [x.item() for x in losses] == [9.0] * 3

@pytest.mark.slow
def test_binary():
  p, y = arrays((5,), low=0.1, high=0.9)[0], np.array([0, 1, 1, 0, 1], np.float32)
  want = -(y * np.log(p) + (1 - y) * np.log(1 - p))
  for reduction in ("mean", "sum", "none"):
    same(Tensor(p).binary_crossentropy(Tensor(y), reduction), reduced(want, reduction))
    same(Tensor(np.log(p / (1 - p))).binary_crossentropy_logits(Tensor(y), reduction), reduced(want, reduction),
         rtol=1e-4)
  same(Tensor([2.0]).binary_crossentropy_logits(Tensor([1.0]), pos_weight=Tensor([3.0])),
       np.float32(3 * np.log1p(np.exp(-2))))
  assert Tensor([-200.0, 200.0]).binary_crossentropy_logits(Tensor([1.0, 0.0]), "none").tolist() == [200.0, 200.0]

@pytest.mark.slow
def test_gradients():
  for f in (lambda t: t.cross_entropy(Tensor(Y)),
            lambda t: t.sparse_categorical_crossentropy(Tensor(Y), label_smoothing=0.1),
            lambda t: t.log_softmax().nll_loss(Tensor(Y)), lambda t: t.cross_entropy(Tensor(Y), label_smoothing=0.1),
            lambda t: t.binary_crossentropy_logits(Tensor(np.eye(3)[Y]))): check_gradient(f, X)

def test_refusals():
  with pytest.raises(ArgumentError, match="reduction is one of"): Tensor(X).cross_entropy(Tensor(Y), reduction="avg")
  with pytest.raises(ShapeError, match="do not fit"): Tensor(X).cross_entropy(Tensor(Y[:2]))
  with pytest.raises(ShapeError, match="drop the last"): Tensor(X).sparse_categorical_crossentropy(Tensor(Y[:2]))
  with pytest.raises(ArgumentError, match="fraction"): Tensor(X).cross_entropy(Tensor(Y), label_smoothing=2.0)
  for name in ("binary_crossentropy", "binary_crossentropy_logits", "cross_entropy", "sparse_categorical_crossentropy",
               "nll_loss"):
    with pytest.raises(ArgumentError, match=f"{name} wants a Tensor, not 1"): getattr(Tensor(X), name)(1)
  with pytest.raises(ShapeError, match="no axes"): Tensor(1.0).cross_entropy(Tensor(1))
