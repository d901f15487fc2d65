"""linalg/norms.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw.errors import ArgumentError

CASES = """
torch.linalg.vector_norm(x, 3, 1)
torch.linalg.vector_norm(x, float("inf"))
torch.linalg.matrix_norm(z)
torch.linalg.matrix_norm(m, "nuc")
torch.linalg.matrix_norm(z, 1, keepdim=True)
torch.linalg.norm(x, 2)
torch.norm(x, dim=1)
torch.linalg.matrix_exp(m / 4)
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_values() -> None:
  assert torch.linalg.norm(torch.tensor([3.0, 4.0])).item() == 5.0
  assert torch.linalg.matrix_exp(torch.zeros(2, 2)).tolist() == [[1.0, 0.0], [0.0, 1.0]]
  with pytest.raises(ArgumentError, match="ord"): torch.linalg.matrix_norm(torch.ones(2, 2), 3)
