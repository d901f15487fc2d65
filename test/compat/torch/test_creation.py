"""compat/torch/creation.py: types by default, shapes, random tensors."""
from __future__ import annotations

import numpy as np
import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw.errors import ArgumentError, ShapeError

CASES = """
torch.tensor([[1, 2], [3, 4]])
torch.tensor(2.5)
torch.full((2, 3), 7)
torch.full((2,), 1.5, dtype=torch.int32)
torch.zeros(2, 3)
torch.ones((2, 3), dtype=torch.bool)
torch.arange(5)
torch.arange(1, 2.5, 0.5)
torch.arange(5, 0, -2)
torch.linspace(0, 1, 5)
torch.logspace(0, 2, 3)
torch.logspace(2, 4.25, 2, 2, dtype=torch.int64)
torch.logspace(-1.75, 3, 4, 0.5, dtype=torch.int32)
torch.logspace(1.5, 3, 1, dtype=torch.int64)
torch.logspace(0, 3, 4, dtype=torch.float16)
torch.eye(2, 3)
torch.zeros_like(ints)
torch.full_like(x, 2)
x.new_full((2,), 3.0)
torch.scalar_tensor(3)
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_logspace_is_rounded_once() -> None:
  """PyTorch rounds exponents to float16 on the way, and is off by up to four units there."""
  found = torch.logspace(-2, 2.99, 3, dtype=torch.float16)
  assert found.tolist() == (10 ** np.linspace(-2, 2.99, 3)).astype(np.float16).tolist()

def test_random_tensors() -> None:
  torch.manual_seed(3)
  first = torch.rand(1000)
  torch.manual_seed(3)
  assert first.tolist() == torch.rand(1000).tolist()
  assert 0.45 < first.mean().item() < 0.55
  x = torch.empty(5000)
  assert x.exponential_(2.0).mean().item() == pytest.approx(0.5, abs=0.05)
  assert x.geometric_(0.25).mean().item() == pytest.approx(4.0, abs=0.3)
  assert x.normal_(1.0, 2.0).std().item() == pytest.approx(2.0, abs=0.15)
  assert sorted(torch.multinomial(torch.tensor([1.0, 2.0, 3.0]), 3).tolist()) == [0, 1, 2]
  assert torch.bernoulli(torch.full((1000,), 0.3)).mean().item() == pytest.approx(0.3, abs=0.07)

@pytest.mark.parametrize("call, error", [
  (lambda: torch.zeros(-1), ShapeError), (lambda: torch.arange(0, 5, -1), ArgumentError),
  (lambda: torch.logspace(-3, 2, 4, dtype=torch.uint8), ArgumentError),
  (lambda: torch.linspace(0, 300, 4, dtype=torch.int8), ArgumentError),
  (lambda: torch.linspace(0, float("nan"), 4, dtype=torch.int64), ArgumentError),
  (lambda: torch.multinomial(torch.ones(2), 3), ArgumentError), (lambda: torch.randint(3, 3, (2,)), ArgumentError)])
def test_refuses(call: object, error: type) -> None:
  with pytest.raises(error): call()  # type: ignore[operator]

def test_draws_refuse_what_is_no_chance() -> None:
  for draw in (lambda: torch.bernoulli(torch.tensor([1.5])), lambda: torch.zeros(2).bernoulli_(2.0),
               lambda: torch.normal(torch.zeros(1), torch.tensor([-1.0]))):
    with pytest.raises(ArgumentError): draw()

def test_weights_are_computed_once_for_check_and_draw() -> None:
  weights = torch.tensor([0.0, 1.0]).realize() * 2
  assert torch.multinomial(weights, 3, replacement=True).tolist() == [1, 1, 1]
  with pytest.raises(ArgumentError, match="weights that are finite"): torch.multinomial(weights * float("nan"), 1)
