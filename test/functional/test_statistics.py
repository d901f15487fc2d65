"""functional/statistics.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw.errors import TinyError
from tinyhw.functional import statistics
from tinyhw.tensor import Tensor

CASES = """
torch.quantile(x, 0.3)
torch.quantile(x, torch.tensor([0.2, 0.7]), dim=1, keepdim=True)
torch.quantile(x, 0.4, dim=0, interpolation="nearest")
torch.nanquantile(hole, 0.5, 1)
torch.median(x)
torch.median(x, 1)
torch.nanmedian(hole, 1)
torch.mode(i, 1)
torch.bincount(nat, minlength=8)
torch.histc(x, 5)
torch.histogram(v.detach(), 4)
torch.histogram(v.detach(), torch.tensor([-1.0, 0.0, 2.0]), density=True)
torch.cov(x)
torch.cov(x, correction=0, fweights=torch.tensor([1, 2, 3, 1]))
torch.corrcoef(x)
torch.unique(i, return_inverse=True, return_counts=True)
torch.unique(dup.detach(), dim=1)
torch.unique_consecutive(nat, return_counts=True)
torch.searchsorted(torch.tensor([-1.0, 0.0, 1.0]), x, right=True)
torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0]))
torch.bucketize(hole, torch.tensor([1.0, 3.0, 3.0, 5.0]), right=True)
torch.searchsorted(torch.tensor([[0.0, 0.5], [-1.0, 1.0], [0.1, 0.1]]), x)
torch.searchsorted(torch.tensor([3.0, -1.0, 0.5, 0.0, 2.0]), x)
torch.histogramdd(x.detach()[:, :2], [torch.tensor([-1.0, 0.0, 1.5]), torch.tensor([0.5, -0.5, 0.0, 2.0])])
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_a_search_is_one_kernel() -> None:
  edges, values = Tensor.arange(1024).float(), Tensor.arange(64).float().realize()
  found = statistics.searchsorted(edges.realize(), values)
  assert len(found.schedule_linear()) == 1 and found.tolist() == list(range(64))

def test_values() -> None:
  assert torch.quantile(torch.tensor([1.0, 2.0, 3.0, 4.0]), 0.5).item() == 2.5
  assert torch.mode(torch.tensor([1, 2, 2, 3])).values.item() == 2
  assert torch.bincount(torch.tensor([0, 2, 2])).tolist() == [1, 0, 2]

@pytest.mark.parametrize("call", [
  lambda: torch.quantile(torch.tensor([1.0]), 1.5), lambda: torch.bincount(torch.tensor([-1])),
  lambda: torch.histc(torch.tensor([1.0]), 0), lambda: torch.searchsorted(torch.tensor([1.0]), torch.tensor([1]))])
def test_refuses(call: object) -> None:
  with pytest.raises(TinyError): call()  # type: ignore[operator]

def test_histograms_of_nothing() -> None:
  none = torch.zeros(0)
  assert torch.histc(none, 2, 0, 1).tolist() == [0.0, 0.0] == torch.histogram(none, 2, range=(0.0, 1.0)).hist.tolist()
