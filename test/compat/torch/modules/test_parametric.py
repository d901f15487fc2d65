"""compat/torch/modules/parametric.py: with the state of PyTorch's layer, its results and gradients."""
from __future__ import annotations
from typing import Any

import numpy as np
import pytest

import tinyhw.compat.torch as ours
from tinyhw.compat.torch import nn
from tinyhw.errors import ArgumentError, ShapeError

CASES: list[tuple[str, tuple[Any, ...], dict[str, Any], tuple[int, ...]]] = [
  ("Linear", (3, 2), {}, (4, 3)), ("Conv1d", (2, 4, 3), {"padding": "same"}, (1, 2, 5)),
  ("Conv2d", (2, 4, 3), {"padding": 1, "padding_mode": "circular", "groups": 2}, (1, 2, 4, 4)),
  ("ConvTranspose2d", (2, 3, 3), {"stride": 2, "output_padding": 1}, (1, 2, 3, 3)),
  ("BatchNorm1d", (3,), {}, (4, 3)), ("InstanceNorm1d", (3,), {"affine": True}, (2, 3, 4)),
  ("GroupNorm", (2, 4), {}, (2, 4, 3)), ("LayerNorm", (3,), {}, (2, 3)), ("RMSNorm", (3,), {}, (2, 3)),
  ("PReLU", (), {}, (2, 3))]

@pytest.mark.parametrize(("name", "args", "options", "shape"), CASES)
def test_agrees_with_pytorch(name: str, args: Any, options: Any, shape: tuple[int, ...]) -> None:
  torch = pytest.importorskip("torch")
  theirs = getattr(torch.nn, name)(*args, **options)
  mine = getattr(ours.nn, name)(*args, **options)
  assert repr(mine) == repr(theirs)
  mine.load_state_dict(theirs.state_dict())
  x = np.random.default_rng(3).standard_normal(shape).astype("float32")
  a, b = mine(ours.tensor(x)), theirs(torch.tensor(x))
  np.testing.assert_allclose(a.numpy(), b.detach().numpy(), 1e-4, 1e-5)
  (a * a).sum().backward()
  (b * b).sum().backward()
  for (key, p), q in zip(mine.named_parameters(), theirs.parameters(), strict=True):
    np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), 1e-3, 1e-4, err_msg=key)
  for key, value in theirs.state_dict().items():
    np.testing.assert_allclose(mine.state_dict()[key].numpy(), value.numpy(), 1e-5, 1e-6, err_msg=key)

def test_tables() -> None:
  rows = ours.nn.Embedding(4, 2, padding_idx=1)
  assert rows.weight[1].tolist() == [0.0, 0.0] and rows(ours.tensor([1, 2])).shape == (2, 2)
  fixed = ours.nn.Embedding.from_pretrained(ours.ones(3, 2))
  assert not fixed.weight.requires_grad and fixed(ours.tensor([2])).tolist() == [[1.0, 1.0]]
  bag = ours.nn.EmbeddingBag(3, 2, mode="sum", _weight=ours.ones(3, 2))
  assert bag(ours.tensor([[0, 1, 2]])).tolist() == [[3.0, 3.0]]
  product = ours.nn.Bilinear(2, 3, 4)
  assert product(ours.ones(5, 2), ours.ones(5, 3)).shape == (5, 4)

def test_refusals() -> None:
  nn = ours.nn
  with pytest.raises(ArgumentError, match="groups"): nn.Conv1d(3, 4, 1, groups=2)
  with pytest.raises(ArgumentError, match="padding_mode"): nn.Conv1d(1, 1, 1, padding_mode="some")
  with pytest.raises(ArgumentError, match="zeros only"): nn.ConvTranspose1d(1, 1, 1, padding_mode="circular")
  with pytest.raises(ArgumentError, match="wants 4 axes"): nn.BatchNorm2d(2)(ours.ones(2, 2))
  with pytest.raises(ArgumentError, match="outside of"): nn.Embedding(2, 2, padding_idx=5)
  with pytest.raises(ArgumentError, match="output_size"): nn.ConvTranspose1d(1, 1, 3, 2)(ours.ones(1, 1, 3), [99])

def test_constructors_refuse() -> None:
  nn = ours.nn
  with pytest.raises(TypeError, match="output_padding"): nn.Conv2d(2, 4, 3, output_padding=1)
  with pytest.raises(ArgumentError, match="output_size has 1"):
    nn.ConvTranspose2d(2, 4, 3, stride=2)(ours.ones(1, 2, 6, 6), output_size=(14,))
  with pytest.raises(ArgumentError, match="into 0 groups"): nn.GroupNorm(0, 4)
  with pytest.raises(ArgumentError, match="negative"): nn.Linear(-3, 2)
  with pytest.raises(ShapeError, match="5 x 3"): nn.Embedding(5, 3, _weight=ours.zeros(2, 2))
  with pytest.raises(ShapeError, match="rows, columns"): nn.Embedding.from_pretrained(ours.zeros(4))

def test_bases_are_pytorchs() -> None:
  from tinyhw.compat.torch.nn.modules.batchnorm import _BatchNorm
  from tinyhw.compat.torch.nn.modules.conv import _ConvNd
  assert isinstance(nn.BatchNorm2d(2), _BatchNorm) and not isinstance(nn.BatchNorm2d(2), nn.BatchNorm1d)
  assert isinstance(nn.ConvTranspose2d(1, 1, 1), _ConvNd) and not isinstance(nn.InstanceNorm1d(2), _BatchNorm)

def test_statistics_of_one_process() -> None:
  x = ours.arange(12.0).reshape(4, 3)
  assert nn.SyncBatchNorm(3)(x).tolist() == nn.BatchNorm1d(3)(x).tolist()
  net = nn.Sequential(nn.BatchNorm1d(3))
  assert nn.SyncBatchNorm.convert_sync_batchnorm(net) is net
