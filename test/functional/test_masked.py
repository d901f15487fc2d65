"""functional/masked.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw.errors import DTypeError

CASES = """
torch.masked.sum(x, 1, mask=mask)
torch.masked.prod(x, 1, mask=mask)
torch.masked.mean(x, 1, mask=mask)
torch.masked.amax(x, 1, mask=mask)
torch.masked.var(x, 1, mask=mask)
torch.masked.softmax(x, 1, mask=mask)
torch.masked.norm(x, 2.0, 1, mask=mask)
torch.masked.cumsum(x, 1, mask=mask)
torch.masked.logsumexp(x, 1, mask=mask)
torch.masked.argmax(x, 1, mask=mask)
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_values() -> None:
  assert torch.masked.mean(torch.tensor([1.0, 2.0, 9.0]), mask=torch.tensor([True, True, False])).item() == 1.5
  with pytest.raises(DTypeError, match="bools"): torch.masked.sum(torch.ones(2), mask=torch.ones(2))
