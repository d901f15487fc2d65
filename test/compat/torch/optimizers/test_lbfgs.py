"""compat/torch/optimizers/lbfgs.py: losses and counts of evaluations against PyTorch's."""
from __future__ import annotations
from typing import Any

import pytest

import tinyhw.compat.torch as ours
from tinyhw.errors import ArgumentError

def losses(torch: Any, options: dict[str, Any]) -> list[tuple[float, int]]:
  """Minimize Rosenbrock's function of four numbers, and another one."""
  p, q = torch.nn.Parameter(torch.tensor([-1.2, 1.0, -0.5, 0.8])), torch.nn.Parameter(torch.tensor([[0.3]]))
  optimizer, count, found = torch.optim.LBFGS([p, q], **options), 0, []
  def closure() -> Any:
    nonlocal count
    count += 1
    optimizer.zero_grad()
    loss = (100 * (p[1:] - p[:-1] ** 2) ** 2 + (1 - p[:-1]) ** 2).sum() + (q - 2).pow(4).sum()
    loss.backward()
    return loss
  for _ in range(3): found.append((optimizer.step(closure).item(), count))
  return found

@pytest.mark.parametrize("options", [{"lr": 1e-3, "max_iter": 8}, {"lr": 0.1, "max_iter": 5, "history_size": 3},
                                     {"line_search_fn": "strong_wolfe", "max_iter": 5},
                                     {"line_search_fn": "strong_wolfe", "max_iter": 6, "history_size": 4},
                                     {"max_iter": 9, "max_eval": 4, "lr": 0.01}], ids=str)
def test_against_pytorch(options: dict[str, Any]) -> None:
  wanted, found = (losses(t, options) for t in (pytest.importorskip("torch"), ours))
  assert [n for _, n in found] == [n for _, n in wanted]
  assert [x for x, _ in found] == pytest.approx([x for x, _ in wanted], rel=1e-3)

def test_it_ends_at_the_minimum() -> None:
  p = ours.nn.Parameter(ours.tensor([0.0]))
  optimizer = ours.optim.LBFGS([p], line_search_fn="strong_wolfe")
  def closure() -> Any:
    optimizer.zero_grad()
    loss = (p - 3).square().sum()
    loss.backward()
    return loss
  for _ in range(2): optimizer.step(closure)
  assert p.item() == pytest.approx(3.0, abs=1e-4)
  calls = optimizer.state[p]["func_evals"]
  optimizer.step(closure)
  assert optimizer.state[p]["func_evals"] == calls + 1, "the gradient is small enough"

def test_refusals() -> None:
  p = ours.nn.Parameter(ours.ones(1))
  with pytest.raises(ArgumentError, match="wants a closure"): ours.optim.LBFGS([p]).step()
  with pytest.raises(ArgumentError, match="strong_wolfe"): ours.optim.LBFGS([p], line_search_fn="wolfe")
  with pytest.raises(ArgumentError, match="one group"): ours.optim.LBFGS([{"params": p}, {"params": ours.nn.Parameter(
    ours.ones(1))}])
