"""Data sets: by index (`Dataset`) and by iteration (`IterableDataset`), and sets made of others."""
from __future__ import annotations
import bisect
from collections.abc import Iterable, Iterator, Sequence
import itertools
import math
from typing import Any, Generic, TypeVar

from tinyhw.errors import ArgumentError, IndexRangeError
from tinyhw.methods.base import Handle
from tinyhw.nn.loading.samplers import permutation
from tinyhw.tensor import Tensor

T = TypeVar("T")

class Dataset(Generic[T]):
  """A data set by index: a subclass defines `__getitem__`, and `__len__` for samplers."""
  def __getitem__(self, index: Any) -> T: raise NotImplementedError(f"{type(self).__name__} has no __getitem__")
  def __add__(self, other: Any) -> ConcatDataset: return ConcatDataset([self, other])

class IterableDataset(Dataset[T]):
  """A data set by iteration: a subclass defines `__iter__`. In a worker, `get_worker_info` tells its share."""
  def __iter__(self) -> Iterator[T]: raise NotImplementedError(f"{type(self).__name__} has no __iter__")
  def __add__(self, other: Any) -> Any: return ChainDataset([self, other])

class TensorDataset(Dataset[Any]):
  """Rows of tensors: item i is a tuple with row i of each."""
  def __init__(self, *tensors: Any):
    for x in tensors:
      if not isinstance(x, Handle): raise ArgumentError(f"a TensorDataset is made of tensors, not {x!r}")
    if len({x.shape[0] if x.ndim else None for x in tensors}) != 1:
      raise ArgumentError(f"the first axes differ: {[x.shape for x in tensors]}; each tensor has a row for each item")
    self.tensors = tensors

  def __getitem__(self, index: Any) -> tuple[Any, ...]: return tuple([x[index] for x in self.tensors])
  def __len__(self) -> int: return int(self.tensors[0].shape[0])

  def collated(self, indices: list[int]) -> list[Any]:
    """Return a batch: the rows of each tensor, by one kernel."""
    count = len(self)
    wrong = [i for i in indices if not -count <= i < count]
    if wrong: raise IndexRangeError(f"index {wrong[0]} is outside of the {count} items")
    place = Tensor([i % count for i in indices])
    return [x[place.to(x.device)].realize() for x in self.tensors]

class StackDataset(Dataset[Any]):
  """Items of several sets together: as tuples, or as dicts of named sets."""
  def __init__(self, *args: Any, **keywords: Any):
    if bool(args) == bool(keywords): raise ArgumentError("give sets one by one, or all by name")
    self.datasets: Any = keywords or args
    self._each = list(keywords.values()) if keywords else list(args)
    if len({len(x) for x in self._each}) != 1: raise ArgumentError(f"lengths differ: {[len(x) for x in self._each]}")

  def __getitem__(self, index: Any) -> Any:
    if isinstance(self.datasets, dict): return {name: x[index] for name, x in self.datasets.items()}
    return tuple([x[index] for x in self.datasets])

  def __len__(self) -> int: return len(self._each[0])

class ConcatDataset(Dataset[Any]):
  """The items of several sets, one set after the other."""
  def __init__(self, datasets: Iterable[Any]):
    self.datasets = list(datasets)
    if not self.datasets: raise ArgumentError("a ConcatDataset is made of one set at least")
    for x in self.datasets:
      if isinstance(x, IterableDataset): raise ArgumentError("an IterableDataset has no indices; use ChainDataset")
    self.cumulative_sizes = list(itertools.accumulate([len(x) for x in self.datasets]))

  def __len__(self) -> int: return self.cumulative_sizes[-1]

  def __getitem__(self, index: int) -> Any:
    count = len(self)
    if not -count <= index < count: raise IndexRangeError(f"index {index} is outside of the {count} items")
    index %= count
    which = bisect.bisect_right(self.cumulative_sizes, index)
    return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]

class ChainDataset(IterableDataset[Any]):
  """The items of several iterable sets, one set after the other."""
  def __init__(self, datasets: Iterable[Any]): self.datasets = datasets

  def __iter__(self) -> Iterator[Any]:
    for x in self.datasets:
      if not isinstance(x, IterableDataset): raise ArgumentError("a ChainDataset is made of IterableDatasets")
      yield from x

  def __len__(self) -> int: return sum([len(x) for x in self.datasets])

class Subset(Dataset[Any]):
  """Some items of a set, by their indices there."""
  def __init__(self, dataset: Any, indices: Sequence[int]): self.dataset, self.indices = dataset, indices

  def __getitem__(self, index: Any) -> Any:
    if isinstance(index, list): return self.dataset[[self.indices[i] for i in index]]
    return self.dataset[self.indices[index]]

  def __getitems__(self, indices: list[int]) -> list[Any]:
    whole = [self.indices[i] for i in indices]
    if callable(getattr(self.dataset, "__getitems__", None)):
      return self.dataset.__getitems__(whole)  # type: ignore[no-any-return]
    return [self.dataset[i] for i in whole]

  def __len__(self) -> int: return len(self.indices)

def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset]:
  """Split a set into random parts. lengths: counts of items, or shares with a sum of 1."""
  count = len(dataset)
  if math.isclose(sum(lengths), 1) and sum(lengths) <= 1 + 1e-9 and not (count == 1 == sum(lengths)):
    if any(not 0 <= share <= 1 for share in lengths): raise ArgumentError(f"shares are from 0 to 1, not {lengths}")
    parts_of = [math.floor(count * share) for share in lengths]
    for k in range(count - sum(parts_of)): parts_of[k % len(parts_of)] += 1
    lengths = parts_of
  if sum(lengths) != count: raise ArgumentError(f"lengths {list(lengths)} are not those of {count} items")
  order, begin, parts = permutation(count, generator), 0, []
  for n in lengths:
    parts.append(Subset(dataset, order[begin:begin + int(n)]))
    begin += int(n)
  return parts
