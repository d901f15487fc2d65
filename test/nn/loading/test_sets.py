"""nn/loading/sets.py: sets of data, and sets made of others."""
from __future__ import annotations
from collections.abc import Iterator
from typing import Any

import pytest

from tinyhw import Tensor
from tinyhw.errors import ArgumentError, IndexRangeError
from tinyhw.nn.loading.sets import (ChainDataset, ConcatDataset, Dataset, IterableDataset, StackDataset, Subset,
                                    TensorDataset, random_split)

class Squares(Dataset[int]):
  def __init__(self, count: int): self.count = count
  def __len__(self) -> int: return self.count
  def __getitem__(self, index: int) -> int: return index * index

class Numbers(IterableDataset[int]):
  def __init__(self, *numbers: int): self.numbers = numbers
  def __iter__(self) -> Iterator[int]: return iter(self.numbers)
  def __len__(self) -> int: return len(self.numbers)

def test_tensors() -> None:
  data = TensorDataset(Tensor([[1, 2], [3, 4], [5, 6]]), Tensor([7, 8, 9]))
  assert len(data) == 3 and [x.tolist() for x in data[1]] == [[3, 4], 8]
  assert [x.tolist() for x in data.collated([2, -3])] == [[[5, 6], [1, 2]], [9, 7]]
  with pytest.raises(IndexRangeError, match="index 3"): data.collated([3])
  with pytest.raises(ArgumentError, match="first axes differ"): TensorDataset(Tensor([1]), Tensor([1, 2]))
  with pytest.raises(ArgumentError, match="made of tensors"): TensorDataset([1])

def test_sets_of_sets() -> None:
  both = Squares(3) + Squares(4)
  assert isinstance(both, ConcatDataset) and [both[i] for i in range(7)] == [0, 1, 4, 0, 1, 4, 9] and both[-1] == 9
  with pytest.raises(IndexRangeError, match="index 7"): both[7]
  assert StackDataset(Squares(3), Squares(3))[2] == (4, 4) and len(StackDataset(a=Squares(3))) == 3
  assert StackDataset(a=Squares(3), b=Squares(3))[1] == {"a": 1, "b": 1}
  chain = Numbers(1, 2) + Numbers(3)
  assert isinstance(chain, ChainDataset) and list(chain) == [1, 2, 3] and len(chain) == 3
  part = Subset(Subset(Squares(9), [8, 6, 4]), [2, 0])
  assert part[0] == 16 and part.__getitems__([1, 0]) == [64, 16] and len(part) == 2
  assert Subset(TensorDataset(Tensor([5, 6, 7])), [2, 1])[[0]][0].tolist() == [7]

def test_splits() -> None:
  Tensor.manual_seed(0)
  for lengths, sizes in (([0.5, 0.3, 0.2], [6, 3, 2]), ([4, 7], [4, 7]), ([1.0], [11])):
    parts = random_split(Squares(11), lengths)
    assert [len(p) for p in parts] == sizes and sorted(i for p in parts for i in p.indices) == list(range(11))

def test_refusals() -> None:
  bad: Any = [3]
  for match, call in {
      "are not those": lambda: random_split(Squares(3), [1, 1]), "shares are": lambda: random_split(
        Squares(3), [1.5, -0.5]), "one set at least": lambda: ConcatDataset([]), "use ChainDataset": lambda:
      ConcatDataset([Numbers(1)]), "lengths differ": lambda: StackDataset(Squares(1), Squares(2)),
      "one by one": lambda: StackDataset(), "of IterableDatasets": lambda: list(ChainDataset(bad))}.items():
    with pytest.raises(ArgumentError, match=match): call()
  with pytest.raises(NotImplementedError, match="no __getitem__"): Dataset()[0]
  with pytest.raises(NotImplementedError, match="no __iter__"): iter(IterableDataset())
