"""Samplers: orders in which the items of a data set are taken.

Random ones draw a seed from the generator of tensors, or from their own. So `manual_seed` repeats them.
"""
from __future__ import annotations
import bisect
from collections.abc import Iterable, Iterator, Sequence, Sized
import contextlib
import itertools
import math
import random
from typing import Any, Generic, TypeVar

from tinyhw.errors import ArgumentError
from tinyhw.methods.base import Handle
from tinyhw.methods.checks import flag
from tinyhw.tensor import Tensor

T = TypeVar("T")

def drawn_seed(generator: Any = None) -> int:
  """Return a random number below 2**62, by two draws of a generator."""
  with generator if generator is not None else contextlib.nullcontext():
    high, low = Tensor.randint(2, low=0, high=1 << 31).tolist()
  return int(high) << 31 | int(low)

def permutation(count: int, generator: Any = None) -> list[int]:
  """Return the numbers below count in a random order."""
  order = list(range(count))
  random.Random(drawn_seed(generator)).shuffle(order)
  return order

def _positive(what: str, value: Any) -> int:
  if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
    raise ArgumentError(f"{what} is {value!r}; it is a whole number, at least 1")
  return value

class Sampler(Generic[T]):
  """Base of samplers: a subclass defines `__iter__`, and `__len__` where it is known."""
  def __init__(self, data_source: Any = None): pass
  def __iter__(self) -> Iterator[T]: raise NotImplementedError(f"{type(self).__name__} has no __iter__")

class SequentialSampler(Sampler[int]):
  """All indices, in order."""
  def __init__(self, data_source: Sized): self.data_source = data_source
  def __iter__(self) -> Iterator[int]: return iter(range(len(self.data_source)))
  def __len__(self) -> int: return len(self.data_source)

class RandomSampler(Sampler[int]):
  """All indices in a random order; or num_samples of them. replacement: each draw is from all."""
  def __init__(self, data_source: Sized, replacement: bool = False, num_samples: int | None = None,
               generator: Any = None):
    self.data_source, self.replacement, self.generator = data_source, flag("replacement", replacement), generator
    self._count = None if num_samples is None else _positive("num_samples", num_samples)

  @property
  def num_samples(self) -> int:
    """The count of indices."""
    return len(self.data_source) if self._count is None else self._count

  def __iter__(self) -> Iterator[int]:
    count, wanted = len(self.data_source), self.num_samples
    if self.replacement:
      source = random.Random(drawn_seed(self.generator))
      yield from (source.randrange(count) for _ in range(wanted))
      return
    while wanted > 0 and count:
      yield from permutation(count, self.generator)[:wanted]
      wanted -= count

  def __len__(self) -> int: return self.num_samples

class SubsetRandomSampler(Sampler[int]):
  """Given indices in a random order."""
  def __init__(self, indices: Sequence[int], generator: Any = None): self.indices, self.generator = indices, generator
  def __iter__(self) -> Iterator[int]: return (self.indices[i] for i in permutation(len(self.indices), self.generator))
  def __len__(self) -> int: return len(self.indices)

class WeightedRandomSampler(Sampler[int]):
  """Indices with probabilities in proportion to weights."""
  def __init__(self, weights: Any, num_samples: int, replacement: bool = True, generator: Any = None):
    self.weights = [float(w) for w in (weights._self().tolist() if isinstance(weights, Handle) else weights)]
    self.num_samples, self.generator = _positive("num_samples", num_samples), generator
    self.replacement = flag("replacement", replacement)
    if any(not w >= 0 for w in self.weights) or not sum(self.weights) > 0:
      raise ArgumentError("weights are not negative, and one at least is above 0")
    if not self.replacement and num_samples > sum([1 for w in self.weights if w]):
      raise ArgumentError(f"{num_samples} draws without replacement of {len(self.weights)} weights, some of them 0")

  def __iter__(self) -> Iterator[int]:
    source = random.Random(drawn_seed(self.generator))
    if self.replacement:
      ends = list(itertools.accumulate(self.weights))
      last = max(i for i, w in enumerate(self.weights) if w)
      for _ in range(self.num_samples): yield min(bisect.bisect_right(ends, source.random() * ends[-1]), last)
      return
    # Source: Efraimidis and Spirakis 2006.
    keys = [(math.log(1 - source.random()) / w, i) for i, w in enumerate(self.weights) if w]
    yield from [i for _, i in sorted(keys, reverse=True)[:self.num_samples]]

  def __len__(self) -> int: return self.num_samples

class BatchSampler(Sampler[list[int]]):
  """Lists of batch_size indices of another sampler. drop_last: without a last one that is shorter."""
  def __init__(self, sampler: Any, batch_size: int, drop_last: bool):
    self.sampler, self.batch_size = sampler, _positive("batch_size", batch_size)
    self.drop_last = flag("drop_last", drop_last)

  def __iter__(self) -> Iterator[list[int]]:
    indices: Iterable[int] = iter(self.sampler)
    while batch := list(itertools.islice(indices, self.batch_size)):
      if len(batch) == self.batch_size or not self.drop_last: yield batch

  def __len__(self) -> int:
    count = len(self.sampler)
    return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

class DistributedSampler(Sampler[int]):
  """The share of one of num_replicas processes, of the same length for each; `set_epoch` gives another order."""
  def __init__(self, dataset: Sized, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True,
               seed: int = 0, drop_last: bool = False):
    if num_replicas is None or rank is None:
      raise ArgumentError("there is no process group to ask; give num_replicas and rank")
    if not 0 <= rank < num_replicas: raise ArgumentError(f"rank {rank} is outside of 0..{num_replicas - 1}")
    self.dataset, self.num_replicas, self.rank, self.epoch = dataset, num_replicas, rank, 0
    self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
    count = len(dataset)
    self.num_samples = count // num_replicas if drop_last else -(-count // num_replicas)

  def __iter__(self) -> Iterator[int]:
    order = list(range(len(self.dataset)))
    if self.shuffle: random.Random(self.seed + self.epoch).shuffle(order)
    total = self.num_samples * self.num_replicas
    order = list(itertools.islice(itertools.cycle(order), total)) if order else []
    return iter(order[self.rank::self.num_replicas])

  def __len__(self) -> int: return self.num_samples

  def set_epoch(self, epoch: int) -> None:
    """Set the number of the epoch, which decides the order."""
    self.epoch = epoch
