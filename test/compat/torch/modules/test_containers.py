"""compat/torch/modules/containers.py: modules in lists and dicts."""
from __future__ import annotations

import pytest

import tinyhw.compat.torch as torch
from tinyhw.errors import ArgumentError, IndexRangeError

def test_sequences() -> None:
  nn = torch.nn
  net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
  assert net(torch.ones(1, 2)).shape == (1, 3)
  assert len(net) == 2 and isinstance(net[-1], nn.ReLU) and len(net[:1]) == 1
  named = nn.Sequential({"a": nn.Linear(2, 3), "b": nn.Tanh()})
  assert list(named.state_dict()) == ["a.weight", "a.bias"] and isinstance(named[1], nn.Tanh)
  listed = nn.ModuleList([nn.ReLU()]).append(nn.Linear(1, 1)).insert(0, nn.Tanh())
  assert [type(m).__name__ for m in listed] == ["Tanh", "ReLU", "Linear"]
  assert list(listed.state_dict()) == ["2.weight", "2.bias"]
  del listed[0]
  listed[0] = nn.Identity()
  assert [type(m).__name__ for m in listed] == ["Identity", "Linear"]
  with pytest.raises(IndexRangeError, match="no module 5"): listed[5]
  with pytest.raises(ArgumentError, match="Module or None"): listed[0] = 5
  assert isinstance(listed.pop(-1), nn.Linear) and len(listed) == 1
  assert len(listed + [nn.ReLU()]) == 2 and len(nn.Sequential(nn.ReLU()) + [nn.Tanh()]) == 2 and len(listed) == 1
  listed += [nn.Tanh()]
  assert len(listed) == 2

def test_dicts_and_parameters() -> None:
  nn = torch.nn
  net = nn.ModuleDict({"a": nn.Linear(1, 1)})
  net["b"] = nn.ReLU()
  assert list(nn.ModuleDict([("x", nn.ReLU())])) == ["x"]
  assert list(net) == list(net.keys()) == ["a", "b"] and "a" in net and len(net) == 2
  assert isinstance(net.pop("b"), nn.ReLU)
  assert [name for name, _ in net.items()] == ["a"] and len(list(net.values())) == 1
  values = nn.ParameterList([torch.ones(2)]).append(torch.zeros(1))
  assert len(values) == 2 and values[1].requires_grad and list(values.state_dict()) == ["0", "1"]

def test_parameter_dict() -> None:
  d = torch.nn.ParameterDict({"a": torch.ones(2)})
  d["b"] = torch.nn.Parameter(torch.zeros(1))
  assert list(d) == ["a", "b"] and len(d) == 2 and "a" in d and d.get("c") is None and len(list(d.parameters())) == 2
  assert [k for k, _ in d.items()] == list(d.keys()) and d.pop("b") is not None and len(d.values()) == 1
  del d["a"]
  assert not d.state_dict()

def test_a_module_on_one_device() -> None:
  net = torch.nn.DataParallel(torch.nn.Linear(2, 1), device_ids=[0])
  assert list(net.state_dict()) == ["module.weight", "module.bias"] and net(torch.ones(3, 2)).shape == (3, 1)
