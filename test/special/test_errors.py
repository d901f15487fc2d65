"""special/errors.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

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
