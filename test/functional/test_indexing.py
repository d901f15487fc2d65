"""functional/indexing.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw.errors import TinyError

CASES = """
torch.index_select(x, 0, rows)
torch.index_fill(x, 0, rows[:2], 1.5)
torch.index_copy(x, 0, rows, y)
torch.index_add(x, 0, rows, y, alpha=2)
torch.index_reduce(x, 0, torch.tensor([0, 0, 2]), y, "amax")
torch.gather(x, 1, i)
torch.take_along_dim(x, i, 0)
torch.take(x, torch.tensor([0, -1, 5]))
torch.put(x, torch.tensor([0, 5]), v[:2], accumulate=True)
torch.index_put(x, (rows, rows), w[:3])
torch.scatter(x, 0, i, 0.5)
torch.scatter_add(x, 0, i, y)
torch.scatter_reduce(x, 0, i, y, "mean")
torch.select_scatter(x, w, 0, 1)
torch.slice_scatter(x, y[:2], 0, 1)
torch.diagonal_scatter(x, v[:3])
torch.masked_scatter(x, mask, y)
torch.unravel_index(torch.tensor([5, 11]), (3, 4))
torch.segment_reduce(v, "sum", lengths=torch.tensor([2, 3]))
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_values() -> None:
  assert torch.take(torch.arange(6).reshape(2, 3), torch.tensor([-1, 0])).tolist() == [5, 0]
  assert torch.index_add(torch.zeros(3), 0, torch.tensor([1, 1]), torch.ones(2)).tolist() == [0.0, 2.0, 0.0]

@pytest.mark.parametrize("call", [
  lambda: torch.gather(torch.ones(3), 0, torch.tensor([3])), lambda: torch.index_select(torch.ones(3), 0,
                                                                                        torch.tensor([5])),
  lambda: torch.scatter_reduce(torch.ones(3), 0, torch.tensor([0]), torch.ones(1), "median"),
  lambda: torch.masked_scatter(torch.ones(3), torch.tensor([True] * 3), torch.ones(2))])
def test_refuses(call: object) -> None:
  with pytest.raises(TinyError): call()  # type: ignore[operator]

@pytest.mark.parametrize("name", ("gather", "scatter_add", "index_add", "index_copy", "index_select", "index_reduce"))
def test_negative_indices_are_refused_where_pytorch_refuses_them(name: str) -> None:
  index, x = torch.tensor([-1]), torch.ones(3)
  rest = {"gather": (), "index_select": (), "index_reduce": (torch.ones(1), "amax")}.get(name, (torch.ones(1),))
  with pytest.raises(TinyError, match="is -1; it must be from 0 to 2"): getattr(torch, name)(x, 0, index, *rest)

def test_indices_that_are_not_computed_yet_are_not_computed_for_a_check() -> None:
  x, index = torch.arange(3.0), torch.tensor([0, 1]).realize() + 1
  assert torch.gather(x, 0, index).tolist() == [1.0, 2.0]
  with pytest.raises(TinyError, match="it must be from"): x[torch.tensor([[3]])]
  with pytest.raises(TinyError, match="index of axis 1 is -4"): torch.ones(2, 3)[:, torch.tensor([-4])]
  with pytest.raises(TinyError, match="index of axis 1 is 5"): torch.ones(2, 3)[..., torch.tensor([5])]
  with pytest.raises(TinyError, match="index of axis 0 is 5"): torch.ones(2, 3).index_put((torch.tensor([5]),), x[0])
  y = torch.zeros(3)
  with pytest.raises(TinyError, match="index of axis 0 is 4"): y[torch.tensor([4])] = 1.0
