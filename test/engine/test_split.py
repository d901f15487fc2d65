"""Reductions in two steps: which are split, and that they give the same."""
from __future__ import annotations

import numpy as np
import pytest

from tinyhw.engine.split import MANY_TERMS, split_reductions
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops

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
