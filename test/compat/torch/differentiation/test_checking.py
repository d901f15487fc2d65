"""compat/torch/differentiation/checking.py: gradients beside differences."""
from __future__ import annotations
from typing import Any

import pytest

import tinyhw.compat.torch as torch
from tinyhw.errors import ArgumentError, GradientError

class Wrong(torch.autograd.Function):  # type: ignore[name-defined,misc]  # a class of the table
  """x * x with the gradient of x."""
  @staticmethod
  def forward(ctx: Any, x: Any) -> Any: return x * x
  @staticmethod
  def backward(ctx: Any, g: Any) -> Any: return g

def _x() -> Any: return torch.tensor([0.5, -1.5], dtype=torch.float64, requires_grad=True)

def test_gradients() -> None:
  assert torch.autograd.gradcheck(lambda x, y: (x.sin() * y, y.exp()), (_x(), _x()))
  with pytest.raises(GradientError, match="not that of differences"): torch.autograd.gradcheck(Wrong.apply, _x())
  assert not torch.autograd.gradcheck(Wrong.apply, _x(), raise_exception=False)
  with pytest.raises(ArgumentError, match="requires_grad=True"): torch.autograd.gradcheck(torch.sin, torch.ones(1))

def test_second_gradients() -> None:
  assert torch.autograd.gradgradcheck(lambda x: x ** 3, _x())
  assert torch.autograd.gradgradcheck(torch.sin, (_x(),), torch.ones(2, dtype=torch.float64))
