"""compat/torch/differentiation/functional.py: torch.autograd.functional, against PyTorch's."""
from __future__ import annotations
import importlib
from typing import Any

import pytest

import tinyhw.compat.torch as torch
from tinyhw.errors import ArgumentError, ShapeError

CASES = """
f.jacobian(lambda a: a ** 2, x)
f.jacobian(lambda a, b: a * b.sum(), (x, y))
f.jacobian(lambda a: (a.sum(), a * 2), x)
f.jacobian(lambda a, b: (a * b, a.sum()), (x, y), vectorize=True, strategy="forward-mode")
f.hessian(lambda a: (a ** 3).sum(), x)
f.hessian(lambda a, b: (a * b).prod(), (x, y))
f.vjp(lambda a: a ** 2, x, y)
f.vjp(lambda a, b: (a * b, a), (x, y), (y, x))
f.vjp(lambda a: a.sum(), x)
f.jvp(lambda a: a ** 2, x, y)
f.jvp(lambda a, b: (a * b, b), (x, y), (y, x))
f.hvp(lambda a: (a ** 3).sum(), x, y)
f.vhp(lambda a, b: (a * b ** 2).sum(), (x, y), (y, x))
""".strip().splitlines()

def numbers(found: Any) -> list[Any]:
  if isinstance(found, (tuple, list)): return [t for part in found for t in numbers(part)]
  return [tuple(found.shape), *found.flatten().tolist()]

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None:
  real = pytest.importorskip("torch")
  found = []
  for t in (torch, real):
    f = importlib.import_module("torch.autograd.functional") if t is real else t.autograd.functional
    found.append(numbers(eval(expression, {"f": f, "x": t.tensor([1.0, -2.0, 0.5]), "y": t.tensor([2.0, 1.0, -1.0])})))
  assert len(found[0]) == len(found[1])
  for a, b in zip(*found): assert a == b if isinstance(a, tuple) else a == pytest.approx(b, abs=1e-5)

def test_results_may_be_differentiated() -> None:
  x = torch.tensor([1.0, 2.0], requires_grad=True)
  torch.autograd.functional.jacobian(lambda a: a ** 2, x, create_graph=True).sum().backward()
  assert x.grad.tolist() == [2.0, 2.0]
  assert not torch.autograd.functional.jacobian(lambda a: a ** 2, x).requires_grad

def test_refusals() -> None:
  f, x = torch.autograd.functional, torch.ones(2)
  with pytest.raises(ArgumentError, match="strategy is"): f.jacobian(torch.sin, x, strategy="any")
  with pytest.raises(ShapeError, match="gives one number"): f.hessian(torch.sin, x)
  with pytest.raises(ArgumentError, match="v is left out"): f.vjp(torch.sin, x)
