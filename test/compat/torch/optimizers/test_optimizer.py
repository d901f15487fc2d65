"""compat/torch/optimizers/optimizer.py: groups, states, hooks, closures, captured steps."""
from __future__ import annotations
import copy
from typing import Any

import numpy as np
import pytest

import tinyhw.compat.torch as torch
from tinyhw import TinyJit
from tinyhw.errors import ArgumentError

nn = torch.nn

def parameter(*values: float) -> Any: return nn.Parameter(torch.tensor(list(values)))

def test_groups() -> None:
  a, b, c = parameter(1.0), parameter(1.0), parameter(1.0)
  optimizer = torch.optim.SGD([{"params": a, "lr": 0.5}, {"params": [b]}], lr=0.25)
  optimizer.add_param_group({"params": [("c", c)], "lr": 0.125})
  (a + b + c).sum().backward()
  optimizer.step()
  assert [p.item() for p in (a, b, c)] == [0.5, 0.75, 0.875]
  assert optimizer.param_groups[2]["param_names"] == ["c"] and "lr: 0.125" in repr(optimizer)
  optimizer.zero_grad(set_to_none=False)
  assert a.grad.tolist() == [0.0]
  optimizer.zero_grad()
  assert a.grad is None
  optimizer.step()
  assert a.item() == 0.5, "a parameter without a gradient stays"

def test_states_resume() -> None:
  def make() -> tuple[Any, Any]:
    p = nn.Parameter(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    return p, torch.optim.Adam([p], lr=0.1, amsgrad=True)
  def step(p: Any, optimizer: Any) -> None:
    optimizer.zero_grad()
    (p * p).sum().backward()
    optimizer.step()
  p, optimizer = make()
  for _ in range(3): step(p, optimizer)
  q, other = make()
  with torch.no_grad(): q.copy_(p)
  other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
  for _ in range(2):
    step(p, optimizer)
    step(q, other)
  assert p.tolist() == q.tolist() and other.state[q]["step"].item() == 5.0
  with pytest.raises(ArgumentError, match=r"groups of \[1\] parameters"):
    torch.optim.Adam([p, q]).load_state_dict(optimizer.state_dict())

def test_a_state_of_pytorch_is_loaded() -> None:
  real = pytest.importorskip("torch")
  found = []
  for t in (real, torch):
    p = t.nn.Parameter(t.tensor([1.0, -2.0]))
    optimizer = t.optim.AdamW([p], lr=0.1)
    if found: optimizer.load_state_dict(found[0])
    for _ in range(3):
      optimizer.zero_grad()
      p.sin().sum().backward()
      optimizer.step()
    if not found:
      start = p.detach().numpy().copy()
      found.append(copy.deepcopy(optimizer.state_dict()))
      p.sin().sum().backward()
  assert optimizer.state[p]["step"].item() == 6.0 and start.shape == (2,)

def test_closures_and_hooks() -> None:
  p, seen = parameter(3.0), list[str]()
  optimizer = torch.optim.SGD([p], lr=0.5)
  handles = [optimizer.register_step_pre_hook(lambda o, a, k: seen.append("before")),
             optimizer.register_step_post_hook(lambda o, a, k: seen.append("after"))]
  def closure() -> Any:
    optimizer.zero_grad()
    loss = (p * 2).sum()
    loss.backward()
    return loss
  with torch.no_grad(): assert optimizer.step(closure).item() == 6.0
  assert p.item() == 2.0 and seen == ["before", "after"]
  for handle in handles: handle.remove()
  optimizer.register_load_state_dict_pre_hook(lambda o, s: seen.append("load"))
  optimizer.register_state_dict_pre_hook(lambda o: seen.append("save"))
  optimizer.load_state_dict(optimizer.state_dict())
  assert seen[2:] == ["save", "load"]

def test_a_captured_step_follows_its_schedule() -> None:
  def train(captured: bool) -> list[float]:
    torch.manual_seed(0)
    net = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    def step(x: Any) -> Any:
      optimizer.zero_grad()
      loss = net(x).square().sum()
      loss.backward()
      optimizer.step()
      return loss.realize()
    call, found = TinyJit(step) if captured else step, []
    for k in range(6):
      found.append(call(torch.tensor([[1.0, k, -1.0]]).realize()).item())
      schedule.step()
    return found
  assert train(True) == train(False)

def test_types_and_devices_of_states() -> None:
  p = nn.Parameter(torch.ones(2).half())
  optimizer = torch.optim.Adam([p], lr=0.5)
  p.sum().backward()
  optimizer.step()
  assert p.dtype is torch.float16 and optimizer.state[p]["exp_avg"].dtype is torch.float16
  np.testing.assert_allclose(p.detach().numpy(), [0.5, 0.5], rtol=1e-3)
  assert isinstance(optimizer.state[p]["exp_avg"], torch.Tensor)

def test_refusals() -> None:
  p = parameter(1.0)
  for match, call in {
      "an iterable of tensors": lambda: torch.optim.SGD(p), "empty parameter list": lambda: torch.optim.SGD([]),
      "lr is -1": lambda: torch.optim.SGD([p], lr=-1), r"betas\[1\] is 1": lambda: torch.optim.Adam([p], betas=(0, 1)),
      "differentiable": lambda: torch.optim.SGD([p], differentiable=True), "changes tensors": lambda: torch.optim.SGD(
        [3]), "twice": lambda: torch.optim.SGD([p, p]), "another group": lambda: torch.optim.SGD(
        [p]).add_param_group({"params": p}), "a group is a dict": lambda: torch.optim.SGD([p]).add_param_group([p]),
      "below .params": lambda: torch.optim.SGD([p]).add_param_group({}), "no order": lambda: torch.optim.SGD(
        [{"params": {p}}]), "float type": lambda: torch.optim.SGD([torch.ones(1).int()]),
      "complex": lambda: torch.optim.SGD([torch.ones(1, dtype=torch.complex64)])}.items():
    with pytest.raises(ArgumentError, match=match): call()
