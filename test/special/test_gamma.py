"""special/gamma.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

import pytest
from torch_cases import agree

import math
from fractions import Fraction

import tinyhw.compat.torch as torch
from tinyhw.errors import ArgumentError
from tinyhw.special.gamma import bernoulli

CASES = """
torch.lgamma(x)
torch.digamma(p)
torch.polygamma(1, p)
torch.polygamma(2, x)
torch.mvlgamma(p + 2, 2)
torch.igamma(p.detach(), x.abs().detach())
torch.igammac(p.detach(), p.detach() * 3)
torch.special.zeta(p.detach() + 1, u.detach())
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_values() -> None:
  assert torch.lgamma(torch.tensor([5.0, 0.5])).exp().tolist() == pytest.approx([24.0, math.pi ** 0.5], rel=1e-6)
  basel = torch.special.zeta(torch.tensor([2.0]), torch.tensor([1.0])).item()
  assert basel == pytest.approx(math.pi ** 2 / 6, rel=1e-7)
  assert torch.lgamma(torch.tensor([0.0, -2.0])).tolist() == [math.inf, math.inf]
  with pytest.raises(ArgumentError, match="p is 0"): torch.mvlgamma(torch.tensor([1.0]), 0)

def test_bernoulli_numbers() -> None:
  assert bernoulli(8)[:5] == (1, Fraction(-1, 2), Fraction(1, 6), 0, Fraction(-1, 30))
