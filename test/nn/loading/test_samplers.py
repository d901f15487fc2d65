"""nn/loading/samplers.py: orders, counts and seeds."""
from __future__ import annotations
from collections import Counter
from typing import Any

import pytest

import tinyhw.compat.torch as torch
from tinyhw import Tensor
from tinyhw.errors import ArgumentError
from tinyhw.nn.loading.samplers import (BatchSampler, DistributedSampler, RandomSampler, Sampler, SequentialSampler,
                                        SubsetRandomSampler, WeightedRandomSampler, permutation)

def test_orders() -> None:
  Tensor.manual_seed(0)
  assert list(SequentialSampler("abc")) == [0, 1, 2]
  order = list(RandomSampler(range(50)))
  assert sorted(order) == list(range(50)) and order != list(range(50)) != list(RandomSampler(range(50)))
  assert sorted(SubsetRandomSampler([3, 5, 9])) == [3, 5, 9]
  assert len(list(RandomSampler(range(4), num_samples=10))) == 10 == len(RandomSampler(range(4), num_samples=10))
  assert sorted(list(RandomSampler(range(4), num_samples=10))[:4]) == [0, 1, 2, 3]
  assert set(RandomSampler(range(3), replacement=True, num_samples=99)) == {0, 1, 2}

def test_seeds_repeat_an_order() -> None:
  g = torch.Generator()
  a, b = (list(RandomSampler(range(9), generator=g.manual_seed(4))) for _ in range(2))
  assert a == b and permutation(9, g) != a

def test_weights() -> None:
  Tensor.manual_seed(1)
  count = Counter(WeightedRandomSampler([0.0, 1.0, 3.0], 4000))
  assert count[0] == 0 and count[2] == pytest.approx(3000, abs=150)
  assert sorted(WeightedRandomSampler(Tensor([1.0, 0.0, 2.0]), 2, replacement=False)) == [0, 2]

def test_batches() -> None:
  sampler = SequentialSampler(range(5))
  assert list(BatchSampler(sampler, 2, False)) == [[0, 1], [2, 3], [4]] and len(BatchSampler(sampler, 2, False)) == 3
  assert list(BatchSampler(sampler, 2, True)) == [[0, 1], [2, 3]] and len(BatchSampler(sampler, 2, True)) == 2

def test_shares_of_processes() -> None:
  parts = [DistributedSampler(range(7), 3, k, shuffle=False) for k in range(3)]
  assert [list(p) for p in parts] == [[0, 3, 6], [1, 4, 0], [2, 5, 1]]
  shuffled = DistributedSampler(range(7), 2, 0, drop_last=True)
  first = list(shuffled)
  shuffled.set_epoch(1)
  assert len(first) == len(shuffled) == 3 and list(shuffled) != first

def test_refusals() -> None:
  bad: Any = 1.5
  for match, call in {
      "num_samples is 0": lambda: RandomSampler(range(3), num_samples=0), "batch_size is 1.5": lambda: BatchSampler(
        [], bad, False), "rank 3": lambda: DistributedSampler(range(3), 3, 3), "num_replicas": lambda:
      DistributedSampler(range(3)), "above 0": lambda: WeightedRandomSampler([0.0], 1), "without replacement": lambda:
      WeightedRandomSampler([1.0, 0.0], 2, replacement=False)}.items():
    with pytest.raises(ArgumentError, match=match): call()
  with pytest.raises(NotImplementedError, match="no __iter__"): iter(Sampler())
