"""compat/torch/differentiation/module_hooks.py: backward hooks of modules, as PyTorch calls them."""
from __future__ import annotations
from typing import Any

import pytest

import tinyhw.compat.torch as ours
from tinyhw.compat.torch import nn
from tinyhw.errors import ArgumentError, ShapeError

def trained(torch: Any) -> list[Any]:
  """Gradients that hooks saw and made, in a net of two layers and a module of two arguments and results."""
  class Mix(torch.nn.Module):  # type: ignore[misc,name-defined]
    def forward(self, a: Any, b: Any, plain: int) -> Any: return a * b, (a + b) * plain
  seen: list[Any] = []
  def note(kind: str) -> Any:
    def hook(module: Any, *gradients: Any) -> None:
      seen.append((kind, type(module).__name__, *[[None if g is None else g.tolist() for g in many]
                                                  for many in gradients]))
    return hook
  net, mix = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh()), Mix()
  with torch.no_grad():
    net[0].weight.copy_(torch.tensor([[1.0, 0.5], [-0.25, 0.75]]))
    net[0].bias.zero_()
  net[1].register_full_backward_hook(note("tanh"))
  net[0].register_full_backward_hook(note("linear"))
  mix.register_full_backward_pre_hook(lambda module, gradients: (gradients[0] * 2, gradients[1]))
  mix.register_full_backward_hook(lambda module, arguments, results: (arguments[0] * 3, *arguments[1:]))
  mix.register_full_backward_hook(note("mix"))
  first = mix.register_full_backward_hook(note("first"), prepend=True)
  mix.register_full_backward_hook(note("removed")).remove()
  x = torch.tensor([[1.0, 2.0]])
  a = net(x)
  b = torch.tensor([[0.5, 2.0]], requires_grad=True)
  p, q = mix(a, b, 4)
  (p.sum() + (q * q).sum()).backward()
  first.remove()
  return [*seen, net[0].weight.grad.tolist(), b.grad.tolist()]

def flat(x: Any) -> list[Any]: return [y for item in x for y in flat(item)] if isinstance(x, (list, tuple)) else [x]

def test_agrees_with_pytorch() -> None:
  expected, found = flat(trained(pytest.importorskip("torch"))), flat(trained(ours))
  assert len(found) == len(expected)
  for a, b in zip(found, expected): assert a == (pytest.approx(b, rel=1e-5) if isinstance(b, float) else b)

def test_a_module_without_arguments_that_want_gradients() -> None:
  layer = nn.Linear(2, 1)
  seen: list[Any] = []
  layer.register_full_backward_hook(lambda module, arguments, results: seen.append((arguments, results[0].tolist())))
  layer(ours.ones(1, 2)).sum().backward()
  assert seen == [((None,), [[1.0]])]
  with ours.no_grad(): layer(ours.ones(1, 2))
  assert len(seen) == 1

def test_wrong_gradients_are_refused() -> None:
  for answer, error in (((1, 2), ArgumentError), ((None,), ShapeError)):
    layer = nn.ReLU()
    layer.register_full_backward_hook(lambda module, arguments, results: answer)
    x = ours.ones(2, requires_grad=True)
    with pytest.raises(error, match="backward hook gave"): layer(x).sum().backward()
