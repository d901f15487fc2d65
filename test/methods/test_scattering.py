"""methods/scattering.py: scatters by writing and by sorting are those by comparison, with their gradients."""
from __future__ import annotations
from typing import Any

import numpy as np
import pytest

from tinyhw import Tensor
from tinyhw.methods import indexing
from tinyhw.methods.graph import places
from tinyhw.methods.scattering import Groups, Writes
from tinyhw.uop.enums import Ops

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
@pytest.mark.parametrize("writes", (True, False))
def test_agrees_with_comparisons(shape: tuple[int, ...], dim: int, count: int, call: Any, writes: bool,
                                 monkeypatch: pytest.MonkeyPatch) -> None:
  compared = results(shape, dim, count, call)
  monkeypatch.setattr(places, "runs_in_order", lambda u: writes)
  monkeypatch.setattr(indexing, "WRITES_WORK", 0)
  monkeypatch.setattr(indexing, "LEAST_WORK", 0)
  monkeypatch.setattr(indexing, "SCATTER_GAIN", 0)
  for a, b in zip(results(shape, dim, count, call), compared, strict=True):
    np.testing.assert_allclose(a, b, 1e-6, 1e-6)

@pytest.mark.parametrize("writes", (True, False))
def test_indices_out_of_range_write_nothing(writes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
  def written() -> list[Any]:
    x, index = Tensor([1.0, 2.0, 3.0]), Tensor([5, 1, 1, 3])
    return [x.scatter_reduce(0, index, Tensor([9.0, 4.0, 5.0, 9.0]), "sum").tolist(),
            x.scatter(0, index, Tensor([9.0, 4.0, 5.0, 9.0])).tolist()]
  compared = written()
  monkeypatch.setattr(places, "runs_in_order", lambda u: writes)
  monkeypatch.setattr(indexing, "WRITES_WORK", 0)
  monkeypatch.setattr(indexing, "LEAST_WORK", 0)
  monkeypatch.setattr(indexing, "SCATTER_GAIN", 0)
  assert written() == compared == [[1.0, 11.0, 3.0], [1.0, 5.0, 3.0]]

def test_many_places_are_written_or_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
  """65,536 values for as many places: to compare each with each would take 4e9 steps. A thousand places are fewer."""
  index = Tensor.arange(1 << 16).uop
  monkeypatch.setattr(places, "runs_in_order", lambda u: False)
  assert isinstance(indexing._places_of(Tensor.zeros(1 << 16), 0, index, Ops.ADD), Groups)
  assert indexing._places_of(Tensor.zeros(1 << 16), 0, index, Ops.MUL) is None
  assert indexing._places_of(Tensor.zeros(1000), 0, index, Ops.ADD) is None
  monkeypatch.setattr(places, "runs_in_order", lambda u: True)
  assert isinstance(indexing._places_of(Tensor.zeros(1000), 0, index, Ops.ADD), Writes)
  assert indexing._places_of(Tensor.zeros(1), 0, index, Ops.ADD) is not None
  assert indexing._places_of(Tensor.zeros(10), 0, Tensor.arange(10).uop, Ops.ADD) is None, "few comparisons"

@pytest.mark.parametrize("reduce", ("prod", "amax", "amin"))
@pytest.mark.parametrize("shape, dim, count", CASES)
def test_written_products_and_extremes(shape: tuple[int, ...], dim: int, count: int, reduce: str,
                                       monkeypatch: pytest.MonkeyPatch) -> None:
  def call(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    values = src.gt(1).where(0, src)     # some factors are 0
    return x.scatter_reduce(dim, index, values, reduce, include_self=False)
  compared = results(shape, dim, count, call)
  monkeypatch.setattr(indexing, "WRITES_WORK", 0)
  monkeypatch.setattr(places, "runs_in_order", lambda u: True)
  for a, b in zip(results(shape, dim, count, call), compared, strict=True):
    np.testing.assert_allclose(a, b, 1e-5, 1e-6)
