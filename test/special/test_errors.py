"""special/errors.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations
from typing import Any

import pytest
from torch_cases import agree

import math

import tinyhw.compat.torch as torch

CASES = """
torch.erfc(x)
torch.erfinv(2 * u - 1)
torch.special.erfcx(x)
torch.special.ndtr(x)
torch.special.ndtri(u)
torch.special.log_ndtr(4 * x)
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_ends() -> None:
  assert torch.erfinv(torch.tensor([-1.0, 1.0])).tolist() == [-math.inf, math.inf]
  assert torch.special.ndtri(torch.tensor([0.0, 1.0])).tolist() == [-math.inf, math.inf]
  assert torch.special.erfcx(torch.tensor([math.inf, -30.0])).tolist() == [0.0, math.inf]

@pytest.mark.parametrize("function", ("erfinv", "ndtri"))
def test_inverses_have_second_derivatives(function: str) -> None:
  x = torch.tensor([0.1, 0.3, 0.7], dtype=torch.float64, requires_grad=True)
  def slopes(at: Any) -> Any: return torch.autograd.grad(getattr(torch.special, function)(at).sum(), at,
                                                         create_graph=True)[0]
  found, = torch.autograd.grad(slopes(x).sum(), x)
  step = 1e-5
  quotients = (slopes(x.detach() + step) - slopes(x.detach() - step)) / (2 * step)
  assert found.tolist() == pytest.approx(quotients.tolist(), rel=1e-6)
