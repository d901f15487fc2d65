"""functional/logic.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw.errors import ArgumentError

CASES = """
torch.eq(x, y)
torch.ge(ints, 2.5)
torch.isclose(x, x + 1e-7)
torch.isclose(x + 1j, x + 1j + 1e-7)
torch.logical_and(i, mask)
torch.logical_xor(i, mask)
torch.bitwise_and(ints, 6)
torch.bitwise_left_shift(i, 2)
torch.isposinf(1 / (x - x))
torch.signbit(x)
torch.heaviside(x.detach(), y.detach())
torch.heaviside(1 / (x.detach() - x.detach()) * 0, y.detach())
torch.logical_or(i, mask)
torch.bitwise_right_shift(256, i)
torch.isin(ints, i)
torch.where(mask, x, y)
torch.where(mask, x, 0)
torch.where(mask)
torch.masked_fill(x, mask, 2.0)
torch.all(mask, dim=1)
torch.any(mask, dim=(0, 1), keepdim=True)
torch.count_nonzero(i, dim=0)
torch.argwhere(mask)
torch.nonzero(mask, as_tuple=True)
torch.nonzero_static(mask, size=3)
torch.masked_select(x, mask)
torch.equal(x, y)
torch.allclose(x, x)
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_values() -> None:
  assert torch.signbit(torch.tensor([0.0, -0.0, -1.0])).tolist() == [False, True, True]
  assert torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2, 5])).tolist() == [False, True, False]
  with pytest.raises(ArgumentError, match="rtol and atol"): torch.isclose(torch.tensor([1.0]), torch.tensor([1.0]),
                                                                          rtol=-1)
