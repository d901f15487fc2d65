"""compat/torch/optimizers/scaling.py: scales and parameters after steps, of which one overflows, against PyTorch's."""
from __future__ import annotations
import math
from typing import Any

import pytest

import tinyhw.compat.torch as ours
from tinyhw.errors import ArgumentError

def scaled(torch: Any) -> tuple[list[float], dict[str, Any]]:
  p = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
  optimizer, found = torch.optim.SGD([p], lr=0.1), []
  scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
  for i in range(6):
    optimizer.zero_grad()
    scaler.scale((p * p).sum() * (math.inf if i == 3 else 1.0)).backward()
    if i % 2:
      scaler.unscale_(optimizer)
      torch.nn.utils.clip_grad_norm_([p], 1.0)
    scaler.step(optimizer)
    scaler.update()
    found += [scaler.get_scale(), *p.detach().tolist()]
  return found, scaler.state_dict()

def test_against_pytorch() -> None:
  (a, wanted), (b, found) = scaled(pytest.importorskip("torch")), scaled(ours)
  assert b == pytest.approx(a, rel=1e-5) and found == wanted
  scaler = ours.amp.GradScaler()
  scaler.load_state_dict(found)
  assert scaler.get_scale() == found["scale"] and scaler.get_growth_interval() == 2
  assert (scaler.get_growth_factor(), scaler.get_backoff_factor()) == (2.0, 0.5) and scaler.is_enabled()

def test_it_may_be_off() -> None:
  p, scaler = ours.nn.Parameter(ours.ones(1)), ours.amp.GradScaler(enabled=False)
  optimizer = ours.optim.SGD([p], lr=0.5)
  scaler.scale(p.sum()).backward()
  scaler.unscale_(optimizer)
  scaler.step(optimizer)
  scaler.update()
  scaler.load_state_dict({})
  assert p.item() == 0.5 and scaler.get_scale() == 1.0 and scaler.state_dict() == {}

def test_refusals() -> None:
  p = ours.nn.Parameter(ours.ones(1))
  optimizer, scaler = ours.optim.SGD([p]), ours.amp.GradScaler()
  for match, call in {
      "growth_factor is 1": lambda: ours.amp.GradScaler(growth_factor=1),
      "backoff_factor is 1": lambda: ours.amp.GradScaler(backoff_factor=1),
      "has a gradient; call": lambda: scaler.unscale_(optimizer), "wants a tensor": lambda: scaler.scale(3),
      "comes after": scaler.update, "no closure": lambda: scaler.step(optimizer, closure=len),
      "the state is empty": lambda: scaler.load_state_dict({})}.items():
    with pytest.raises(ArgumentError, match=match): call()
  assert [x.item() for x in scaler.scale([p.sum()])] == [65536.0]
  scaler.scale(p.sum()).backward()
  scaler.unscale_(optimizer)
  with pytest.raises(ArgumentError, match="unscale_ was called"): scaler.unscale_(optimizer)
  scaler.step(optimizer)
  with pytest.raises(ArgumentError, match="step was called"): scaler.step(optimizer)
  scaler.update(4.0)
  assert scaler.get_scale() == 4.0
