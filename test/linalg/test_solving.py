"""linalg/solving.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw import Tensor, function
from tinyhw.errors import ArgumentError
from tinyhw.linalg import solving
from tinyhw.methods.loops.kernel import in_order

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

def test_determinants_inside_of_a_function() -> None:
  """There the order of rows is one expression, with one sign for the whole matrix."""
  x = Tensor([[0.0, 1.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0], [0.0, 0.0, 3.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
  assert function(solving.det)(x).item() == pytest.approx(-6)
  found = function(lambda a: tuple(solving.slogdet(a)))(x)
  assert found[0].item() == -1 and found[1].item() == pytest.approx(1.791759)

def test_singular_values_only_where_columns_may_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
  a = torch.arange(24.0).square().reshape(6, 4).sin()
  deficient = torch.cat([a, a[:, :1] + a[:, 1:2]], 1)
  if not in_order(a): pytest.skip("singular values on this device")
  found = torch.linalg.lstsq(deficient, torch.ones(6, 1))
  assert found.rank.item() == 4 and found.solution.shape == (5, 1)
  monkeypatch.setattr(solving, "_by_singular_values", lambda *args: pytest.fail("singular values"))
  assert torch.linalg.lstsq(a, torch.ones(6, 1)).rank.item() == 4
