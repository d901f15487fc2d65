"""compat/torch/modules/parametrize.py: parametrized weights, and ready ones against PyTorch's."""
from __future__ import annotations
from collections.abc import Callable
import copy
from typing import Any

import numpy as np
import pytest

import tinyhw.compat.torch as ours
from tinyhw.errors import ArgumentError

nn, parametrize = ours.nn, ours.nn.utils.parametrize

class Symmetric(nn.Module):
  """The upper triangle, mirrored."""
  calls = 0

  def forward(self, x: Any) -> Any:
    Symmetric.calls += 1
    return x.triu() + x.triu(1).transpose(-1, -2)

  def right_inverse(self, x: Any) -> Any: return x.triu()

LAYERS: dict[str, Callable[[Any], Any]] = {
  "Linear": lambda t: t.nn.Linear(3, 4), "Conv2d": lambda t: t.nn.Conv2d(2, 3, 2),
  "ConvTranspose2d": lambda t: t.nn.ConvTranspose2d(2, 3, 2)}

def agree(torch: Any, wrap: Callable[[Any, Any], Any], layer: str) -> tuple[Any, Any]:
  """Compare keys, results in both modes, and gradients. Return the layers."""
  a, b = LAYERS[layer](torch), LAYERS[layer](ours)
  wrap(torch, a)
  wrap(ours, b)
  assert set(a.state_dict()) == set(b.state_dict())
  b.load_state_dict(a.state_dict())
  x = np.random.default_rng(0).normal(size=(2, 3) if layer == "Linear" else (2, 2, 4, 4)).astype(np.float32)
  for mode in (True, False):
    y, z = a.train(mode)(torch.tensor(x)), b.train(mode)(ours.tensor(x))
    np.testing.assert_allclose(z.detach().numpy(), y.detach().numpy(), rtol=1e-4, atol=1e-5)
  y.square().sum().backward()
  z.square().sum().backward()
  for p, q in zip(a.parameters(), b.parameters(), strict=True):
    np.testing.assert_allclose(q.grad.numpy(), p.grad.numpy(), rtol=1e-3, atol=1e-5)
  return a, b

@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm"])
def test_against_pytorch(name: str, layer: str) -> None:
  torch = pytest.importorskip("torch")
  a, b = agree(torch, lambda t, m: getattr(t.nn.utils.parametrizations, name)(m), layer)
  weight = a.weight.detach().numpy()
  np.testing.assert_allclose(copy.deepcopy(b).weight.detach().numpy(), weight, rtol=1e-4, atol=1e-6)
  parametrize.remove_parametrizations(b, "weight")
  np.testing.assert_allclose(b.weight.detach().numpy(), weight, rtol=1e-4, atol=1e-6)
  assert set(b.state_dict()) == {"weight", "bias"} and type(b).__name__ == layer

@pytest.mark.parametrize("trivial", [False, True])
@pytest.mark.parametrize("how", ["matrix_exp", "cayley", "householder"])
def test_orthogonal(how: str, trivial: bool) -> None:
  torch = pytest.importorskip("torch")
  for shape in ((4, 4), (3, 5), (5, 3)):
    a, b = (t.nn.utils.parametrizations.orthogonal(t.nn.Linear(*shape), orthogonal_map=how, use_trivialization=trivial)
            for t in (torch, ours))
    w = b.weight if shape[0] >= shape[1] else b.weight.T
    np.testing.assert_allclose((w @ w.T).detach().numpy(), np.eye(min(shape)), atol=1e-5)
    b.load_state_dict(a.state_dict())
    np.testing.assert_allclose(b.weight.detach().numpy(), a.weight.detach().numpy(), atol=1e-4)

def test_own_parametrizations() -> None:
  net = nn.Linear(3, 3)
  assert parametrize.register_parametrization(net, "weight", Symmetric()) is net
  assert parametrize.is_parametrized(net) and not parametrize.is_parametrized(net, "bias")
  assert list(net.state_dict()) == ["bias", "parametrizations.weight.original"]
  w = net.weight
  assert w.tolist() == w.T.tolist() and isinstance(net, nn.Linear)
  net.weight = ours.tensor([[1.0, 2, 3], [2, 4, 5], [3, 5, 6]])
  assert net.parametrizations.weight.original.tolist() == [[1.0, 2, 3], [0, 4, 5], [0, 0, 6]]
  Symmetric.calls = 0
  with parametrize.cached(): assert net.weight is net.weight
  assert Symmetric.calls == 1
  parametrize.register_parametrization(net, "weight", Symmetric())
  assert len(net.parametrizations.weight) == 2
  parametrize.remove_parametrizations(net, "weight", leave_parametrized=False)
  assert type(net) is nn.Linear and net.weight.requires_grad

def test_refusals() -> None:
  net = nn.Linear(2, 3)
  class Half(nn.Module):
    def forward(self, x: Any) -> Any: return x[:, :1]
  for match, call in {
      "no parameter or buffer": lambda: parametrize.register_parametrization(net, "x", Symmetric()),
      "unsafe=True": lambda: parametrize.register_parametrization(net, "weight", Half()),
      "no parametrized": lambda: parametrize.remove_parametrizations(net, "weight"),
      "n_power_iterations is 0": lambda: nn.utils.parametrizations.spectral_norm(net, n_power_iterations=0),
      "orthogonal_map is": lambda: nn.utils.parametrizations.orthogonal(net, orthogonal_map="x"),
      "wants a matrix": lambda: nn.utils.parametrizations.orthogonal(net, "bias")}.items():
    with pytest.raises(ArgumentError, match=match): call()
  parametrize.register_parametrization(net, "weight", Half(), unsafe=True)
  with pytest.raises(ArgumentError, match="no right_inverse"): net.weight = ours.ones(3, 1)
  nn.utils.parametrizations.weight_norm(other := nn.Linear(2, 2))
  with pytest.raises(ArgumentError, match="several parameters"):
    parametrize.remove_parametrizations(other, "weight", leave_parametrized=False)
