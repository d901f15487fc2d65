"""compat/torch/initial.py: moments and bounds of initial values against PyTorch's."""
from __future__ import annotations
from typing import Any

import numpy as np
import pytest

import tinyhw.compat.torch as ours
from tinyhw.errors import ArgumentError

CASES: list[tuple[str, tuple[Any, ...]]] = [
  ("uniform_", (1, 2)), ("normal_", (1, 2)), ("trunc_normal_", (0, 1, -1, 2)), ("constant_", (3,)), ("ones_", ()),
  ("zeros_", ()), ("eye_", ()), ("xavier_uniform_", ()), ("xavier_normal_", (2,)), ("kaiming_uniform_", ()),
  ("kaiming_normal_", (0, "fan_out", "relu")), ("orthogonal_", (2,)), ("sparse_", (0.3, 1.0))]

@pytest.mark.parametrize("name, args", CASES, ids=lambda x: x if isinstance(x, str) else "")
def test_against_pytorch(name: str, args: tuple[Any, ...]) -> None:
  torch = pytest.importorskip("torch")
  ours.manual_seed(0)
  torch.manual_seed(0)
  wanted, found = torch.empty(120, 80), ours.nn.Parameter(ours.zeros(120, 80))
  getattr(torch.nn.init, name)(wanted, *args)
  assert getattr(ours.nn.init, name)(found, *args) is found and found.requires_grad
  a, b = wanted.numpy(), found.detach().numpy()
  spread = float(a.std()) + 1e-6
  assert abs(a.mean() - b.mean()) <= spread / 15 and abs(spread - b.std()) < spread / 30 + 1e-5
  assert abs(int((a == 0).sum()) - int((b == 0).sum())) == 0
  if "normal" not in name and name not in ("orthogonal_", "sparse_"):
    assert a.min() == pytest.approx(b.min(), abs=spread / 50) and a.max() == pytest.approx(b.max(), abs=spread / 50)

def test_dirac() -> None:
  torch = pytest.importorskip("torch")
  for shape, groups in (((6, 4, 3, 3), 2), ((4, 5, 4), 1), ((2, 2, 1, 2, 3), 1)):
    a, b = torch.empty(shape), ours.empty(shape)
    torch.nn.init.dirac_(a, groups)
    np.testing.assert_array_equal(ours.nn.init.dirac_(b, groups).numpy(), a.numpy())

def test_orthogonal() -> None:
  for shape in ((5, 9), (9, 5), (4, 2, 3)):
    w = ours.nn.init.orthogonal_(ours.empty(*shape)).flatten(1)
    gram = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    np.testing.assert_allclose(gram.numpy(), np.eye(min(w.shape)), atol=1e-5)

def test_gains_and_generators() -> None:
  torch = pytest.importorskip("torch")
  for name in ("linear", "conv2d", "conv_transpose1d", "sigmoid", "tanh", "relu", "selu", "leaky_relu"):
    assert ours.nn.init.calculate_gain(name) == torch.nn.init.calculate_gain(name)
  assert ours.nn.init.calculate_gain("leaky_relu", 0.2) == torch.nn.init.calculate_gain("leaky_relu", 0.2)
  a, b = (ours.nn.init.normal_(ours.empty(4), generator=ours.Generator().manual_seed(2)).tolist() for _ in range(2))
  assert a == b

def test_refusals() -> None:
  init, vector = ours.nn.init, ours.ones(3)
  for match, call in {
      "no gain is known": lambda: init.calculate_gain("x"), "slope": lambda: init.calculate_gain("leaky_relu", "x"),
      "two axes at least": lambda: init.xavier_normal_(vector), "eye_ wants": lambda: init.eye_(vector),
      "dirac_ wants": lambda: init.dirac_(vector), "into 2 groups": lambda: init.dirac_(ours.ones(3, 1, 1), 2),
      "mode is": lambda: init.kaiming_normal_(ours.ones(2, 2), mode="x"),
      "orthogonal_ wants": lambda: init.orthogonal_(vector),
      "sparse_ wants": lambda: init.sparse_(vector, 0.1)}.items():
    with pytest.raises(ArgumentError, match=match): call()
