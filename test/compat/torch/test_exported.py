"""compat/torch/exported.py: modules of PyTorch's, exported and called here."""
from __future__ import annotations
from typing import Any

import numpy as np
import pytest

import tinyhw.compat.torch as ours
from tinyhw.compat.torch.exported import from_torch
from tinyhw.errors import ArgumentError

torch = pytest.importorskip("torch")
nn = torch.nn

def modules() -> dict[str, Any]:
  torch.manual_seed(0)
  return {
    "mlp": (nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2)), (3, 4)),
    "convolutions": (nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                                   nn.Flatten(), nn.Linear(8 * 16, 5), nn.LogSoftmax(1)).eval(), (2, 3, 8, 8)),
    "attention": (nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True).train(), (2, 5, 8)),
  }

@pytest.mark.parametrize("name", ("mlp", "convolutions", "attention"))
def test_agrees_with_pytorch(name: str) -> None:
  module, shape = modules()[name]
  x = torch.randn(*shape)
  mine = from_torch(module, (x,))
  found = mine(ours.tensor(x.numpy()))
  np.testing.assert_allclose(found.detach().numpy(), module(x).detach().numpy(), 1e-4, 1e-5)
  (found * found).sum().backward()
  (module(x) ** 2).sum().backward()
  for key, p in module.named_parameters():
    np.testing.assert_allclose(mine.parameters[key].grad.numpy(), p.grad.numpy(), 1e-3, 1e-4, err_msg=key)

def test_refuses() -> None:
  with pytest.raises(ArgumentError, match="torch.nn.Module"): from_torch(3, ())
  module, shape = modules()["mlp"]
  with pytest.raises(ArgumentError, match="takes an argument"): from_torch(module, (torch.randn(*shape),))()
