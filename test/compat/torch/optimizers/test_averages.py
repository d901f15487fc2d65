"""compat/torch/optimizers/averages.py: averaged models, their schedule and statistics against PyTorch's."""
from __future__ import annotations
from typing import Any

import numpy as np
import pytest

import tinyhw.compat.torch as ours
from tinyhw.errors import ArgumentError

def averaged(torch: Any, how: str) -> list[Any]:
  swa = torch.optim.swa_utils
  options: dict[str, Any] = {"equal": {}, "ema": {"avg_fn": swa.get_ema_avg_fn(0.9)}, "buffers": {"use_buffers": True},
                             "many": {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.9), "use_buffers": True},
                             "swa": {"avg_fn": swa.get_swa_avg_fn()}}[how]
  net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
  net[0].load_state_dict({"weight": torch.tensor([[1.0, 2.0], [0.5, -1.0]]), "bias": torch.tensor([0.5, 0.0])})
  mean, optimizer = swa.AveragedModel(net, **options), torch.optim.SGD(net.parameters(), lr=0.1)
  schedule = swa.SWALR(optimizer, 0.01, anneal_epochs=3, anneal_strategy="linear" if how == "ema" else "cos")
  x, rates = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.0, 1.0]]), []
  for _ in range(4):
    optimizer.zero_grad()
    net(x).sin().sum().backward()
    optimizer.step()
    schedule.step()
    mean.update_parameters(net)
    rates.append(optimizer.param_groups[0]["lr"])
  found = [*mean.state_dict().values(), torch.tensor(rates), mean(x)]
  swa.update_bn([x, (x * 2,)], mean)
  return [v.detach().numpy() for v in (*found, *mean.buffers())]

@pytest.mark.parametrize("how", ["equal", "ema", "buffers", "many", "swa"])
def test_against_pytorch(how: str) -> None:
  for a, b in zip(averaged(pytest.importorskip("torch"), how), averaged(ours, how), strict=True):
    np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-6)

def test_refusals() -> None:
  swa, net = ours.optim.swa_utils, ours.nn.Linear(1, 1)
  optimizer = ours.optim.SGD(net.parameters())
  for match, call in {
      "decay is 2": lambda: swa.get_ema_avg_fn(2), "not both": lambda: swa.AveragedModel(
        net, avg_fn=len, multi_avg_fn=len), "anneal_strategy": lambda: swa.SWALR(optimizer, 1, anneal_strategy="x"),
      "anneal_epochs": lambda: swa.SWALR(optimizer, 1, anneal_epochs=-1)}.items():
    with pytest.raises(ArgumentError, match=match): call()
  swa.update_bn([], net)
