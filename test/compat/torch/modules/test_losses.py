"""compat/torch/modules/losses.py: the loss of a linear layer's scores."""
from __future__ import annotations

import pytest

import tinyhw.compat.torch as torch
from tinyhw.errors import ArgumentError, ShapeError, TinyError

def test_it_is_the_cross_entropy_of_the_layer() -> None:
  loss = torch.nn.LinearCrossEntropyLoss(4, 3, bias=True, label_smoothing=0.1)
  x, classes = torch.randn(5, 4), torch.tensor([0, 2, 1, 1, 0])
  wanted = torch.nn.functional.cross_entropy(loss.linear(x), classes, label_smoothing=0.1)
  assert loss(x, classes).item() == pytest.approx(wanted.item(), rel=1e-5)
  assert list(loss.state_dict()) == ["linear.weight", "linear.bias"]
  assert "num_classes=3" in repr(loss)

def test_it_has_axes_after_the_classes() -> None:
  loss = torch.nn.LinearCrossEntropyLoss(4, 3, out_features=(2,), weight=torch.ones(3))
  assert loss(torch.randn(5, 4), torch.zeros(5, 2, dtype=torch.int64)).shape == ()

def test_refuses() -> None:
  with pytest.raises(ShapeError): torch.nn.LinearCrossEntropyLoss(4, 3, weight=torch.ones(2))
  with pytest.raises(ArgumentError): torch.nn.LinearCrossEntropyLoss(4, 3, label_smoothing=2.0)

@pytest.mark.parametrize("head_bias", [False, True])
def test_an_adaptive_softmax(head_bias: bool) -> None:
  real = pytest.importorskip("torch")
  theirs = real.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3, 6], 2.0, head_bias)
  mine = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3, 6], 2.0, head_bias)
  mine.load_state_dict(theirs.state_dict())
  x, y = real.randn(5, 8), real.tensor([0, 4, 9, 2, 7])
  a, b = theirs(x, y), mine(torch.tensor(x.numpy()), torch.tensor(y.numpy()))
  assert b.output.tolist() == pytest.approx(a.output.tolist(), abs=1e-5)
  assert b.loss.item() == pytest.approx(a.loss.item())
  assert mine.predict(torch.tensor(x.numpy())).tolist() == theirs.predict(x).tolist()
  assert mine(torch.tensor(x.numpy())[0], torch.tensor(0)).output.shape == ()
  with pytest.raises(ArgumentError, match="from 1 to 9"): torch.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3, 10])
  with pytest.raises(ShapeError, match="do not go with rows"): mine(torch.zeros(2, 8), torch.tensor(1))
  with pytest.raises(TinyError): mine(torch.zeros(1, 8), torch.tensor([10]))
