"""compat/torch/modules/lazy.py: layers that take the count of inputs from the first call or from a state."""
from __future__ import annotations
import copy

import pytest

import tinyhw.compat.torch as torch
from tinyhw.compat.torch.modules.lazy import LAZY
from tinyhw.errors import ArgumentError, ShapeError

nn = torch.nn

@pytest.mark.parametrize("name, arguments, shape, weight", (
  ("LazyLinear", (3,), (2, 5), (3, 5)), ("LazyConv1d", (4, 3), (2, 6, 8), (4, 6, 3)),
  ("LazyConv2d", (4, 3), (6, 8, 8), (4, 6, 3, 3)), ("LazyConvTranspose2d", (4, 3), (2, 6, 8, 8), (6, 4, 3, 3)),
  ("LazyBatchNorm2d", (), (2, 5, 3, 3), (5,))))
def test_the_first_call_makes_the_layer(name: str, arguments: tuple[int, ...], shape: tuple[int, ...],
                                        weight: tuple[int, ...]) -> None:
  net = getattr(nn, name)(*arguments)
  calls: list[str] = []
  net.register_forward_hook(lambda module, given, result: calls.append(type(module).__name__))
  with pytest.raises(ArgumentError, match="has no shape yet"): net.weight.shape  # noqa: B018  # it is a property
  before = net.weight
  net(torch.ones(*shape))
  assert net.weight is before and tuple(net.weight.shape) == weight and net.weight.requires_grad
  assert type(net).__name__ == name.removeprefix("Lazy") and calls == [type(net).__name__]
  net(torch.ones(*shape))

def test_an_optimizer_may_have_the_parameters_before() -> None:
  net = nn.Sequential(nn.LazyLinear(2), nn.ReLU(), nn.LazyLinear(1)).eval()
  optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
  net(torch.ones(3, 4)).sum().backward()
  was = net[2].bias.item()
  optimizer.step()
  assert net[2].bias.item() == pytest.approx(was - 0.3) and not net[0].training

def test_a_state_makes_the_layer() -> None:
  for name, arguments, rest in (("Conv2d", (4, 3), {"groups": 2}), ("Linear", (3,), {}), ("BatchNorm1d", (), {})):
    made = getattr(nn, name)(6, *arguments, **rest)
    net = nn.Sequential(getattr(nn, f"Lazy{name}")(*arguments, **rest))
    net.load_state_dict({f"0.{k}": v for k, v in made.state_dict().items()})
    assert type(net[0]) is type(made) and net[0].weight.tolist() == made.weight.tolist()

def test_copies_and_refusals() -> None:
  net = copy.deepcopy(nn.LazyLinear(3))
  assert "Uninitialized" in repr(net.weight) and net(torch.ones(2, 5)).shape == (2, 3)
  with pytest.raises(ArgumentError): nn.LazyConv1d(4, 3, padding_mode="none")
  with pytest.raises(ShapeError): nn.LazyConv3d(4, 3)(torch.ones(2, 3))
  assert len(LAZY) == 13
