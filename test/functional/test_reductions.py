"""functional/reductions.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw.errors import ArgumentError

CASES = """
torch.sum(ints)
torch.sum(z, (0, 2), keepdim=True)
torch.prod(x, 1)
torch.prod(mask, 1, dtype=torch.bool)
torch.sum(mask, 1, dtype=torch.bool)
torch.sum(mask, dtype=torch.bool)
torch.square(mask)
torch.mean(x, dim=0)
torch.nansum(hole)
torch.nanmean(hole, 1)
torch.logsumexp(x, 1)
torch.var(x, 1)
torch.std(x, unbiased=False)
torch.var_mean(x, (0, 1), correction=2)
torch.max(x, 1)
torch.min(x)
torch.max(x, y)
torch.amax(x, (0, 1))
torch.aminmax(x, dim=1)
torch.argmin(x, 1, keepdim=True)
torch.sort(x, 1, descending=True)
torch.sort(dup, dim=1, stable=True)
torch.msort(x)
torch.topk(x, 2)
torch.kthvalue(x, 2, 0)
torch.cumsum(ints, 1)
torch.cumprod(p, 1)
torch.cummax(x, 1)
torch.logcumsumexp(x, 1)
torch.softmax(x, 0)
F.softmin(x, dim=1)
torch.log_softmax(x, -1, dtype=torch.float64)
torch.dist(x, y, 3)
torch.trace(x)
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_values() -> None:
  values, places = torch.max(torch.tensor([[1, 5], [7, 3]]), 1)
  assert (values.tolist(), places.tolist(), str(places.dtype)) == ([5, 7], [1, 0], "dtypes.int64")
  assert torch.std(torch.tensor([1.0, 3.0, 5.0]), True).item() == 2.0
  with pytest.raises(ArgumentError, match="k is 4"): torch.kthvalue(torch.arange(3), 4)
