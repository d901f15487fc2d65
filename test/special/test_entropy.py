"""special/entropy.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch

CASES = """
torch.xlogy(x, p)
torch.special.xlog1py(x, p)
torch.special.entr(p)
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_zero_times_minus_infinity_is_zero() -> None:
  assert torch.xlogy(torch.tensor([0.0]), torch.tensor([0.0])).item() == 0.0
  assert torch.special.entr(torch.tensor([0.0])).item() == 0.0
