"""compat/torch/types/narrowing.py: types within it, gradients, and what stays."""
from __future__ import annotations
from typing import Any

import pytest

import tinyhw.compat.torch as torch
from tinyhw.errors import ArgumentError

def test_types() -> None:
  net, x = torch.nn.Linear(3, 2), torch.ones(4, 3)
  with torch.autocast("cpu", dtype=torch.bfloat16):
    y = net(x)
    assert y.dtype is torch.bfloat16 and (x @ x.T).dtype is torch.bfloat16 and torch.is_autocast_enabled()
    assert torch.nn.functional.softmax(y, dim=1).dtype is torch.float32 and (y + x[:, :2]).dtype is torch.float32
    assert torch.nn.functional.cross_entropy(y, torch.tensor([0, 1, 0, 1])).dtype is torch.float32
    assert (x.double() @ x.double().T).dtype is torch.float64
    with torch.autocast("cpu", enabled=False): assert net(x).dtype is torch.float32
    assert torch.get_autocast_dtype("cpu") is torch.bfloat16
  assert net(x).dtype is torch.float32 and not torch.is_autocast_enabled()

def test_a_training_step() -> None:
  net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.Flatten(), torch.nn.Linear(8, 2))
  optimizer, scaler = torch.optim.SGD(net.parameters(), lr=0.1), torch.cuda.amp.GradScaler()
  with torch.cuda.amp.autocast():
    out = net(torch.ones(3, 1, 4, 4))
    loss = torch.nn.functional.mse_loss(out, torch.ones(3, 2))
  assert out.dtype is torch.float16 and loss.dtype is torch.float32
  scaler.scale(loss).backward()
  assert all(p.grad is not None and p.grad.dtype is torch.float32 for p in net.parameters())
  scaler.step(optimizer)
  scaler.update()

def test_decorators_and_refusals() -> None:
  @torch.amp.autocast("cuda")
  def product(x: Any) -> Any: return x @ x
  assert product(torch.ones(2, 2)).dtype is torch.float16
  with pytest.raises(ArgumentError, match="not in"): torch.autocast("cpu", dtype=torch.float64)
  wrong: Any = 3
  with pytest.raises(ArgumentError, match="is a name"): torch.autocast(wrong)
