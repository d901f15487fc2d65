"""Reductions in two steps: which are split, and that they give the same."""
from __future__ import annotations

import numpy as np
import pytest

from tinyhw.engine.split import MANY_TERMS, MAX_ADDENDS, split_reductions
from tinyhw.methods import graph
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def reductions(t: Tensor) -> int: return sum(u.op is Ops.REDUCE_AXIS for root in split_reductions([t.uop]) for u in root.toposort())

@pytest.mark.parametrize("shape, axis, count", [((MANY_TERMS,), 0, 2), ((MANY_TERMS - 1,), 0, 1), ((4, MANY_TERMS), 1, 2), ((64, MANY_TERMS), 1, 1),
                                                ((256, 256), (0, 1), 2), ((65537,), 0, 1)])
def test_large_reductions_to_few_results_are_split(shape: tuple[int, ...], axis: int, count: int) -> None:
  assert reductions(Tensor.empty(*shape, device="PYTHON").sum(axis)) == count

def test_what_is_not_split_is_the_same_object() -> None:
  roots = [Tensor.empty(64, device="PYTHON").sum().uop]
  assert split_reductions(roots) is roots

@pytest.mark.parametrize("name", ["sum", "max", "min", "mean"])
def test_results(name: str) -> None:
  a = np.random.default_rng(0).random((2, MANY_TERMS), np.float32)
  np.testing.assert_allclose(getattr(Tensor(a), name)(1).numpy(), getattr(a, name)(1), rtol=1e-5)

def sum_of_products(count: int, rows: int = 64) -> tuple[Tensor, float]:
  """The gradient of what several products have as a factor, and how far it is from numpy's."""
  random = np.random.default_rng(1)
  x, *weights = (random.random(shape, np.float32) for shape in ((rows, 64), *[(64, 96)] * count))
  outer = random.random((count, rows, 96), np.float32)
  t = Tensor(x).requires_grad_()
  sum((t @ Tensor(w) * Tensor(g) for w, g in zip(weights, outer)), Tensor(0.0)).sum().backward()
  assert t.grad is not None
  expected = sum(g @ w.T for w, g in zip(weights, outer))
  return t.grad, float(np.abs(t.grad.numpy() / expected - 1).max())

@pytest.mark.parametrize("count, rows, sums", [(1, 64, 1), (2, 64, 2), (5, 64, 5), (3, 8, 1), (MAX_ADDENDS + 1, 64, 1)])
def test_a_sum_of_large_products_is_as_many_sums(count: int, rows: int, sums: int) -> None:
  gradient, error = sum_of_products(count, rows)
  assert error < 1e-5 and reductions(gradient) == sums

def test_sums_of_a_sum_with_itself() -> None:
  """A sum with very many addends, of which a few are written down."""
  x = graph.mul(*[graph.expand(Tensor.empty(*shape, device="PYTHON").uop, (64, 64, 64)) for shape in ((64, 1, 64), (1, 64, 64))])
  for _ in range(64): x = UOp(Ops.ADD, x.dtype, (x, x))
  roots = [graph.reduce(x, Ops.ADD, (2,))]
  assert split_reductions(roots) is roots
