"""compat/torch/modules/module.py: registration, states, hooks, modes, copies, text."""
from __future__ import annotations
import copy
import pickle
from typing import Any

import pytest

import tinyhw.compat.torch as torch
from tinyhw.compat.torch import nn
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

def test_buffers_as_attributes() -> None:
  class Net(nn.Module):
    """A module with two buffers."""
    def __init__(self) -> None:
      super().__init__()
      self.kept = nn.Buffer(torch.ones(2))
      self.passing = nn.Buffer(torch.zeros(1), persistent=False)
  net = Net()
  assert list(net.state_dict()) == ["kept"] and [name for name, _ in net.named_buffers()] == ["kept", "passing"]
  assert isinstance(net.kept, nn.Buffer) and not net.kept.requires_grad and (net.kept + 1).tolist() == [2.0, 2.0]

class Old(nn.Module):  # type: ignore[name-defined,misc]  # a class of the table
  """A module that loads states of an older version, and has extra state."""
  def __init__(self) -> None:
    super().__init__()
    self.w, self.note = nn.Parameter(torch.ones(2)), "new"
    self._register_load_state_dict_pre_hook(self._renamed)

  def _renamed(self, state: Any, prefix: str, *rest: Any) -> None:
    if prefix + "old" in state: state[prefix + "w"] = state.pop(prefix + "old")

  def get_extra_state(self) -> Any: return {"note": self.note}
  def set_extra_state(self, state: Any) -> None: self.note = state["note"]

def test_hooks_of_states() -> None:
  net = nn.Sequential(Old())
  state = net.state_dict()
  assert sorted(state) == ["0._extra_state", "0.w"]
  state["0.old"], state["0._extra_state"] = state.pop("0.w") * 3, {"note": "read"}
  keys: list[Any] = []
  net.register_load_state_dict_post_hook(lambda module, found: keys.append(found))
  assert repr(net.load_state_dict(state)) == "<All keys matched successfully>" == str(keys[0])
  assert net[0].w.tolist() == [3.0, 3.0] and net[0].note == "read"
  net.register_state_dict_pre_hook(lambda module, prefix, keep: keys.append(prefix))
  handle = net.register_state_dict_post_hook(lambda module, found, prefix, data: found.pop("0._extra_state"))
  assert list(net.state_dict()) == ["0.w"] and "" in keys
  handle.remove()
  assert len(net.state_dict()) == 2
  net[0].register_load_state_dict_pre_hook(lambda module, found, prefix, *rest: rest[-1].append("refused by a hook"))
  with pytest.raises(ArgumentError, match="refused by a hook"): net.load_state_dict(state)

def test_methods_of_states_are_overridden() -> None:
  class Twice(nn.Module):
    """A module that doubles what it loads."""
    def __init__(self) -> None:
      super().__init__()
      self.w = nn.Parameter(torch.ones(1))
    def _save_to_state_dict(self, destination: Any, prefix: str, keep: bool) -> None:
      super()._save_to_state_dict(destination, prefix, keep)
      destination[prefix + "more"] = 1
    def _load_from_state_dict(self, state: Any, prefix: str, *rest: Any) -> None:
      state[prefix + "w"] = state[prefix + "w"] * 2
      super()._load_from_state_dict(state, prefix, *rest)
  net = nn.Sequential(Twice())
  state = net.state_dict()
  assert state.pop("0.more") == 1
  net.load_state_dict(state)
  assert net[0].w.tolist() == [2.0] and state["0.w"].tolist() == [2.0]
  with pytest.raises(ArgumentError, match="has no extra state"): net.get_extra_state()
  with pytest.raises(ArgumentError, match="has no extra state"): net.set_extra_state(1)

def test_another_module_in_its_place() -> None:
  net = nn.Sequential(nn.Sequential(nn.Linear(1, 1)))
  net.set_submodule("0.0", nn.Identity())
  assert isinstance(net[0][0], nn.Identity)
  with pytest.raises(AttributeError, match="has no module '7'"): net.set_submodule("0.7", nn.Identity(), strict=True)

def test_hooks_of_all_modules() -> None:
  from tinyhw.compat.torch.nn.modules import module as hooks
  seen: list[str] = []
  def note(module: Any, *rest: Any) -> None: seen.append(type(module).__name__)
  handles = [hooks.register_module_forward_hook(note), hooks.register_module_forward_pre_hook(note),
             hooks.register_module_full_backward_hook(note)]
  x = torch.ones(2, requires_grad=True)
  nn.Tanh()(x).sum().backward()
  for handle in handles: handle.remove()
  nn.Tanh()(x).sum().backward()
  assert seen == ["Tanh"] * 3

def test_hooks_in_front() -> None:
  net, seen = nn.Identity(), []
  for k in (1, 2):
    net.register_forward_hook(lambda *args, k=k: seen.append(k), prepend=True)
    net.register_forward_pre_hook(lambda *args, k=k: seen.append(-k), prepend=True)
  net(torch.ones(1))
  assert seen == [-2, -1, 2, 1]
