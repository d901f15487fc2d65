"""nn/loading/loader.py: batches in this process and by workers."""
from __future__ import annotations
from collections.abc import Iterator
import gc
import multiprocessing
from typing import Any

import pytest

import tinyhw.compat.torch as torch
from tinyhw import Tensor
from tinyhw.errors import ArgumentError
from tinyhw.nn.loading.loader import DataLoader
from tinyhw.nn.loading.samplers import BatchSampler, SequentialSampler
from tinyhw.nn.loading.sets import Dataset, IterableDataset, TensorDataset
from tinyhw.nn.loading.workers import get_worker_info

class Rows(Dataset[Any]):
  def __len__(self) -> int: return 20
  def __getitem__(self, index: int) -> Any: return Tensor.full((2,), index) * 2, index

class Share(IterableDataset[int]):
  """The numbers of a worker."""
  def __iter__(self) -> Iterator[int]:
    worker = get_worker_info()
    return iter(range(10)) if worker is None else iter(range(worker.id, 10, worker.num_workers))

@pytest.mark.parametrize("workers", [0, 2])
def test_batches(workers: int) -> None:
  loader = DataLoader(Rows(), batch_size=8, num_workers=workers)
  for _ in range(2):
    batches = list(loader)
    assert [b[1].tolist() for b in batches] == [list(range(8)), list(range(8, 16)), list(range(16, 20))]
    assert batches[2][0].tolist() == [[2 * i] * 2 for i in range(16, 20)]
  assert len(loader) == 3 and len(DataLoader(Rows(), batch_size=8, drop_last=True)) == 2
  one, first = DataLoader(Rows(), batch_size=None, num_workers=workers), DataLoader(Rows(), num_workers=workers)
  assert len(one) == 20 and next(iter(one))[1] == 0 and next(iter(first))[1].tolist() == [0]
  assert not multiprocessing.active_children()

@pytest.mark.parametrize("workers", [0, 2])
def test_shuffled_and_own_batches(workers: int) -> None:
  loader = DataLoader(Rows(), 6, shuffle=True, num_workers=workers, collate_fn=lambda items: [x[1] for x in items],
                      generator=torch.Generator().manual_seed(0))
  a, b = ([i for batch in loader for i in batch] for _ in range(2))
  assert sorted(a) == sorted(b) == list(range(20)) and a != b != list(range(20))
  own = DataLoader(Rows(), batch_sampler=BatchSampler(SequentialSampler(range(5)), 2, True), num_workers=workers)
  assert [batch[1].tolist() for batch in own] == [[0, 1], [2, 3]] and len(own) == 2

def test_iterable_sets() -> None:
  assert [b.tolist() for b in DataLoader(Share(), 4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
  found = [b.tolist() for b in DataLoader(Share(), 3, num_workers=2, drop_last=True)]
  assert found == [[0, 2, 4], [1, 3, 5]]

def test_workers_stay_and_have_seeds() -> None:
  seen = multiprocessing.get_context("fork").Value("i", 0)
  def begin(number: int) -> None:
    with seen.get_lock(): seen.value += 1
  class Random(Dataset[float]):
    def __len__(self) -> int: return 4
    def __getitem__(self, index: int) -> float: return float(Tensor.rand(1).item())
  loader = DataLoader(Random(), num_workers=2, persistent_workers=True, worker_init_fn=begin)
  a, b = ([x.item() for x in loader] for _ in range(2))
  assert len({*a, *b}) == 8 and seen.value == 2 and len(multiprocessing.active_children()) == 2
  del loader
  gc.collect()
  for process in multiprocessing.active_children(): process.join(5)
  assert not multiprocessing.active_children()

def test_an_epoch_may_be_left() -> None:
  for batch in DataLoader(Rows(), num_workers=2):
    assert batch[1].tolist() == [0]
    break
  assert not multiprocessing.active_children()

def test_pytorchs_types() -> None:
  loader = torch.utils.data.DataLoader([(1, 2.0), (3, 4.0)], batch_size=2)
  (a, b), = loader
  assert type(a) is torch.Tensor and a.dtype is torch.int64 and b.dtype is torch.float64
  rows = torch.utils.data.TensorDataset(torch.arange(6).reshape(3, 2))
  assert [type(x[0]) for x in torch.utils.data.DataLoader(rows, 2)] == [torch.Tensor] * 2

def test_refusals() -> None:
  rows = TensorDataset(Tensor([1, 2]))
  for match, options in {
      "num_workers is -1": {"num_workers": -1}, "timeout is": {"timeout": -1}, "for workers": {"prefetch_factor": 2},
      "prefetch_factor is 0": {"num_workers": 1, "prefetch_factor": 0}, "persistent_workers": {
        "persistent_workers": True}, "no shuffle with it": {"sampler": [1], "shuffle": True}, "makes the batches": {
        "batch_sampler": [[1]], "drop_last": True},
      "no batches to drop": {"batch_size": None, "drop_last": True}}.items():
    with pytest.raises(ArgumentError, match=match): DataLoader(rows, **options)  # type: ignore[arg-type]
  with pytest.raises(ArgumentError, match="order of its own"): DataLoader(Share(), shuffle=True)
  with pytest.raises(ArgumentError, match="multiprocessing_context is one of"):
    list(DataLoader(rows, num_workers=1, multiprocessing_context="x"))
