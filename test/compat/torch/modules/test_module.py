"""compat/torch/modules/module.py: registration, states, hooks, modes, copies, text."""
from __future__ import annotations
import copy
import pickle
from typing import Any

import pytest

import tinyhw.compat.torch as torch
from tinyhw.compat.torch.modules.module import IncompatibleKeys, Module, Parameter
from tinyhw.errors import ArgumentError, DTypeError, ShapeError

class Scaled(Module):
  """A parameter, a buffer, a buffer that is not saved, and a module."""
  def __init__(self) -> None:
    super().__init__()
    self.scale = Parameter(torch.tensor([2.0, 3.0]))
    self.register_buffer("shift", torch.tensor([1.0, 1.0]))
    self.register_buffer("scratch", torch.zeros(1), persistent=False)
    self.inner = torch.nn.Linear(2, 2)

  def forward(self, x: Any) -> Any: return self.inner(x * self.scale + self.shift)

def test_registration() -> None:
  net = Scaled()
  assert list(net.state_dict()) == ["scale", "shift", "inner.weight", "inner.bias"]
  assert [n for n, _ in net.named_parameters()] == ["scale", "inner.weight", "inner.bias"]
  assert [n for n, _ in net.named_buffers()] == ["shift", "scratch"]
  assert [n for n, _ in net.named_modules()] == ["", "inner"]
  assert [n for n, _ in net.named_children()] == ["inner"] and list(net.children()) == [net.inner]
  assert net.get_submodule("inner") is net.inner and net.get_parameter("inner.bias") is net.inner.bias
  assert {"scale", "shift", "inner"} <= set(dir(net))
  del net.scale
  with pytest.raises(AttributeError, match="scale"): net.scale   # noqa: B018
  with pytest.raises(ArgumentError, match="without dots"): net.register_buffer("a.b", None)
  with pytest.raises(ArgumentError, match="already"): net.register_buffer("forward", None)
  with pytest.raises(ArgumentError, match="takes no"): net.inner = 3
  with pytest.raises(ArgumentError, match="has no forward"): Module()(1)

def test_names_are_registered_once() -> None:
  net = Scaled()
  with pytest.raises(ArgumentError, match="already"): net.register_buffer("scale", torch.zeros(2))
  with pytest.raises(ArgumentError, match="already"): net.register_parameter("shift", Parameter(torch.zeros(2)))
  with pytest.raises(ArgumentError, match="already"): net.add_module("scale", torch.nn.ReLU())
  with pytest.raises(ArgumentError, match="tensor or None"): net.register_buffer("count", 5)  # type: ignore[arg-type]
  class Early(Module):
    def __init__(self) -> None: self.register_buffer("x", None)
  with pytest.raises(ArgumentError, match="super"): Early()
  net.register_buffer("shift", torch.zeros(2))
  assert net.get_buffer("shift").tolist() == [0.0, 0.0]
  with pytest.raises(AttributeError, match="no buffer"): net.get_buffer("scale")
  with pytest.raises(AttributeError, match="no parameter"): net.get_parameter("shift")

def test_parameters() -> None:
  found = pickle.loads(pickle.dumps(torch.nn.Linear(2, 3)))
  assert isinstance(found.weight, Parameter) and found.weight.requires_grad and found.weight.shape == (3, 2)
  with pytest.raises(DTypeError, match="no gradient"): Parameter(torch.tensor([1, 2]))
  assert Parameter(torch.tensor([1, 2]), requires_grad=False).tolist() == [1, 2]

def test_moves_refuse_what_they_do_not_know() -> None:
  net = torch.nn.Linear(2, 2)
  assert net.to(torch.zeros(1, dtype=torch.float64)).weight.dtype is torch.float64
  with pytest.raises(DTypeError, match="float types"): net.to(torch.int32)
  with pytest.raises(ArgumentError, match="dtyp"): net.to(dtyp=torch.float32)
  with pytest.raises(ArgumentError, match="a device, a dtype or a tensor"): net.to(object())

def test_states() -> None:
  a, b = Scaled(), Scaled()
  a.shift.add_(1)
  assert b.load_state_dict(a.state_dict()) == IncompatibleKeys([], [])
  x = torch.ones(1, 2)
  assert a(x).tolist() == b(x).tolist() and b.shift.tolist() == [2.0, 2.0]
  with pytest.raises(ArgumentError, match="missing.*scale"): b.load_state_dict({})
  assert b.load_state_dict({"other": x}, strict=False).unexpected_keys == ["other"]
  with pytest.raises(ShapeError, match="scale has shape"): b.load_state_dict({"scale": torch.ones(3)}, strict=False)
  c = copy.deepcopy(a)
  c.scale.add_(1)
  assert a.scale.tolist() == [2.0, 3.0] and c.scale.tolist() == [3.0, 4.0] and isinstance(c.scale, Parameter)

def test_gradients_and_types() -> None:
  net = Scaled()
  net(torch.ones(1, 2)).sum().backward()
  assert net.scale.grad is not None and net.shift.grad is None
  net.zero_grad()
  assert net.scale.grad is None
  assert net.double().scale.dtype is torch.float64 and net.to(torch.float32).shift.dtype is torch.float32
  assert all(not p.requires_grad for p in net.requires_grad_(False).parameters())

def test_modes_and_hooks() -> None:
  net = Scaled()
  assert net.training and not net.eval().inner.training and net.train().inner.training
  before = net.register_forward_pre_hook(lambda module, args: (args[0] * 0,))
  after = net.register_forward_hook(lambda module, args, result: (args[0].sum().item(), result))
  assert net(torch.ones(1, 2))[0] == 0.0
  for handle in (before, after): handle.remove()
  assert net(torch.ones(1, 2)).shape == (1, 2)
  seen: list[str] = []
  net.apply(lambda module: seen.append(type(module).__name__))
  assert seen == ["Linear", "Scaled"]

def test_text() -> None:
  assert repr(Scaled()) == "Scaled(\n  (inner): Linear(in_features=2, out_features=2, bias=True)\n)"

def test_a_state_may_be_taken_over() -> None:
  """With assign=True, parameters stand for the state's tensors, with their types and storage."""
  given, net = torch.nn.Linear(2, 3), torch.nn.Linear(2, 3)
  state = {k: v.half() if k == "bias" else v for k, v in given.state_dict().items()}
  weight = net.weight
  net.load_state_dict(state, assign=True)
  assert net.weight is weight and weight.requires_grad and net.bias.dtype is torch.float16
  with torch.no_grad(): state["weight"].add_(1)
  assert (weight == state["weight"]).all().item()
  net.float()(torch.ones(1, 2)).sum().backward()
  assert weight.grad.tolist() == [[1.0, 1.0]] * 3
