"""compat/torch: the names of PyTorch, loaded at first use, and what a program with changed imports does."""
from __future__ import annotations
import subprocess
import sys

import pytest

import tinyhw.compat.torch as torch

def test_nothing_is_loaded_before_it_is_used() -> None:
  program = ("import sys; import tinyhw.compat.torch; "
             "print([m for m in sys.modules if m.startswith(('tinyhw.functional', 'tinyhw.linalg', 'tinyhw.tensor'))])")
  assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout == "[]\n"

def test_namespaces() -> None:
  assert {"relu", "conv2d"} <= set(dir(torch.nn.functional))
  assert {"svd", "solve"} <= set(dir(torch.linalg))
  assert {"cat", "float32", "Tensor"} <= set(dir(torch))
  with pytest.raises(AttributeError, match=r"torch has no 'sparse_coo_tensor' here; docs/guide/from-pytorch.md"):
    _ = torch.sparse_coo_tensor
  with pytest.raises(AttributeError, match=r"torch.linalg has no 'frobnicate'"): _ = torch.linalg.frobnicate

def test_types_are_of_one_class() -> None: assert isinstance(torch.float32, torch.dtype)

def test_a_training_step() -> None:
  torch.manual_seed(0)
  w = torch.zeros(2, 1, requires_grad=True)
  x = torch.tensor([[1.0, 2.0], [3.0, -1.0]])
  for _ in range(200):
    loss = torch.nn.functional.mse_loss(x @ w, torch.tensor([[5.0], [1.0]]))
    loss.backward()
    with torch.no_grad():
      w -= 0.1 * w.grad
    w.grad = None
  assert w.flatten().tolist() == pytest.approx([1.0, 2.0], abs=1e-3)

def test_modules_within_namespaces() -> None:
  from tinyhw.compat.torch.nn.modules import Linear
  from tinyhw.compat.torch.optim.optimizer import Optimizer
  from tinyhw.compat.torch.utils.data.dataset import Dataset
  assert Linear is torch.nn.Linear and Optimizer is torch.optim.Optimizer and Dataset is torch.utils.data.Dataset
