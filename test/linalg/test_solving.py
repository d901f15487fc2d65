"""linalg/solving.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw.errors import ArgumentError

CASES = """
torch.linalg.solve(m, rhs)
torch.linalg.solve(batch, w)
torch.linalg.inv(batch)
torch.linalg.det(batch)
torch.linalg.slogdet(m)
torch.logdet(pd)
torch.linalg.matrix_power(m, 3)
torch.linalg.matrix_power(m, -2)
torch.linalg.lstsq(tall, torch.ones(5, 2))[0]
torch.linalg.tensorsolve(m, w)
torch.linalg.tensorinv(m.reshape(2, 2, 2, 2))
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_singular_matrices_are_named() -> None:
  with pytest.raises(ArgumentError, match="matrix 1 of the batch is singular"):
    torch.linalg.inv(torch.tensor([[[1.0]], [[0.0]]]))
  assert torch.linalg.inv_ex(torch.tensor([[1.0, 2.0], [2.0, 4.0]])).info.item() == 2
  assert torch.linalg.det(torch.tensor([[1.0, 2.0], [2.0, 4.0]])).item() == 0.0
