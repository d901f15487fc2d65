"""methods/scattering.py: scatters by sorting are those by comparison, with their gradients."""
from __future__ import annotations
from typing import Any

import numpy as np
import pytest

from tinyhw import Tensor
from tinyhw.methods import indexing

CASES = (((7,), 0, 20), ((5, 6), 0, 9), ((3, 4, 5), 1, 7), ((3, 4), 1, 1))

def results(shape: tuple[int, ...], dim: int, count: int, call: Any) -> list[Any]:
  draw = np.random.default_rng(count)
  sizes = [count if k == dim else d for k, d in enumerate(shape)]
  index = Tensor(draw.integers(0, shape[dim], sizes).astype(np.int32))
  x, src = (Tensor(draw.normal(size=s).astype(np.float32), requires_grad=True) for s in (shape, sizes))
  found = call(x, dim, index, src)
  weights = Tensor(np.cos(np.arange(found.numel())).astype(np.float32).reshape(shape))
  (found * weights).sum().backward()
  return [found.numpy(), x.grad.numpy(), src.grad.numpy()]

@pytest.mark.parametrize("call", (
  lambda x, dim, index, src: x.scatter(dim, index, src),
  lambda x, dim, index, src: x.scatter_reduce(dim, index, src, "sum"),
  lambda x, dim, index, src: x.scatter_reduce(dim, index, src, "sum", include_self=False),
  lambda x, dim, index, src: x.scatter_reduce(dim, index, src, "mean")))
@pytest.mark.parametrize("shape, dim, count", CASES)
def test_agrees_with_comparisons(shape: tuple[int, ...], dim: int, count: int, call: Any,
                                 monkeypatch: pytest.MonkeyPatch) -> None:
  compared = results(shape, dim, count, call)
  monkeypatch.setattr(indexing, "LEAST_WORK", 0)
  monkeypatch.setattr(indexing, "SCATTER_GAIN", 0)
  for a, b in zip(results(shape, dim, count, call), compared, strict=True):
    np.testing.assert_allclose(a, b, 1e-6, 1e-6)

def test_indices_out_of_range_write_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
  def written() -> list[Any]:
    x, index = Tensor([1.0, 2.0, 3.0]), Tensor([5, 1, 1, 3])
    return [x.scatter_reduce(0, index, Tensor([9.0, 4.0, 5.0, 9.0]), "sum").tolist(),
            x.scatter(0, index, Tensor([9.0, 4.0, 5.0, 9.0])).tolist()]
  compared = written()
  monkeypatch.setattr(indexing, "LEAST_WORK", 0)
  monkeypatch.setattr(indexing, "SCATTER_GAIN", 0)
  assert written() == compared == [[1.0, 11.0, 3.0], [1.0, 5.0, 3.0]]

def test_many_places_are_sorted() -> None:
  """65,536 values for as many places: to compare each with each would take 4e9 steps. A thousand places are fewer."""
  index = Tensor.arange(1 << 16)
  assert indexing._pays_to_sort(Tensor.zeros(1 << 16).uop, 0, index.uop)
  assert not indexing._pays_to_sort(Tensor.zeros(1000).uop, 0, index.uop)
