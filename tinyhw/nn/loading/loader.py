"""`DataLoader`: batches of a data set, in this process or by workers that fetch them ahead."""
from __future__ import annotations
import collections
from collections.abc import Callable, Iterable, Iterator
import itertools
import math
from typing import Any, ClassVar

from tinyhw.errors import ArgumentError
from tinyhw.methods.checks import flag
from tinyhw.nn.loading.collate import default_collate, default_convert
from tinyhw.nn.loading.samplers import BatchSampler, RandomSampler, SequentialSampler, drawn_seed
from tinyhw.nn.loading.sets import IterableDataset, TensorDataset
from tinyhw.nn.loading.workers import END_OF_DATA, Job, WorkerPool

class Fetch:
  """Makes a batch of indices, or of an iterator's next items. None for the size: items one by one."""
  def __init__(self, size: int | None, drop_last: bool, collate: Callable[[Any], Any], usual: bool):
    self.size, self.drop_last, self.collate, self.usual = size, drop_last, collate, usual

  def __call__(self, dataset: Any, indices: Any) -> Any:
    if not isinstance(indices, (list, tuple)): return self.collate(dataset[indices])
    if self.usual and type(dataset) is TensorDataset: return dataset.collated(list(indices))
    many = getattr(dataset, "__getitems__", None)
    return self.collate(many(indices) if callable(many) else [dataset[i] for i in indices])

  def batches(self, dataset: Any) -> Iterator[Any]:
    """Give batches of an iterable data set."""
    items = iter(dataset)
    if self.size is None: yield from map(self.collate, items)
    else:
      while batch := list(itertools.islice(items, self.size)):
        if len(batch) == self.size or not self.drop_last: yield self.collate(batch)

class DataLoader:
  """Batches of a data set. Each `for` is an epoch.

  batch_size: None for items that are batches already. sampler, batch_sampler: orders of indices. collate_fn: makes a
  batch of items. num_workers: processes that fetch prefetch_factor batches ahead each. timeout: seconds for a batch.
  generator: draws the order, and the workers' seeds. pin_memory: accepted, and changes nothing.

  >>> from tinyhw.nn.loading.sets import TensorDataset
  >>> data = TensorDataset(Tensor([[1.0], [2.0], [3.0]]), Tensor([0, 1, 0]))
  >>> [(x.tolist(), y.tolist()) for x, y in DataLoader(data, batch_size=2)]
  [([[1.0], [2.0]], [0, 1]), ([[3.0]], [0])]
  """
  collates: ClassVar[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = (default_collate, default_convert)

  def __init__(self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None, sampler: Any = None,
               batch_sampler: Any = None, num_workers: int = 0, collate_fn: Callable[[Any], Any] | None = None,
               pin_memory: bool = False, drop_last: bool = False, timeout: float = 0,
               worker_init_fn: Callable[[int], Any] | None = None, multiprocessing_context: Any = None,
               generator: Any = None, *, prefetch_factor: int | None = None, persistent_workers: bool = False,
               pin_memory_device: str = "", in_order: bool = True):
    self._check(num_workers, timeout, prefetch_factor, persistent_workers)
    self.dataset, self.num_workers, self.timeout = dataset, num_workers, timeout
    self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
    self.worker_init_fn, self.multiprocessing_context, self.generator = (worker_init_fn, multiprocessing_context,
                                                                         generator)
    self.pin_memory, self.pin_memory_device = flag("pin_memory", pin_memory), pin_memory_device
    self.persistent_workers, self.in_order = persistent_workers, in_order
    self._iterable = isinstance(dataset, IterableDataset)
    if self._iterable and (shuffle or sampler is not None or batch_sampler is not None):
      raise ArgumentError("an IterableDataset has an order of its own; give no shuffle, sampler or batch_sampler")
    if sampler is not None and shuffle: raise ArgumentError("a sampler has the order; give no shuffle with it")
    if batch_sampler is not None:
      if batch_size != 1 or shuffle or sampler is not None or drop_last:
        raise ArgumentError("a batch_sampler makes the batches; give no batch_size, shuffle, sampler or drop_last")
      batch_size = None
    elif batch_size is None and drop_last: raise ArgumentError("there are no batches to drop: batch_size is None")
    self.drop_last = flag("drop_last", drop_last)
    if sampler is None and not self._iterable:
      sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
    if batch_size is not None and not self._iterable: batch_sampler = BatchSampler(sampler, batch_size, drop_last)
    self.batch_size, self.sampler, self.batch_sampler = batch_size, sampler, batch_sampler
    batched = batch_size is not None or batch_sampler is not None
    usual = self.collates[0 if batched else 1]
    self.collate_fn = usual if collate_fn is None else collate_fn
    self._fetch = Fetch(batch_size, self.drop_last, self.collate_fn, collate_fn is None and batched)
    self._pool: WorkerPool | None = None

  @staticmethod
  def _check(workers: Any, timeout: float, ahead: int | None, stay: bool) -> None:
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 0:
      raise ArgumentError(f"num_workers is {workers!r}; it is a whole number, not negative")
    if timeout < 0: raise ArgumentError(f"timeout is {timeout}; it must not be negative")
    if not workers and ahead is not None: raise ArgumentError("prefetch_factor is for workers; give num_workers")
    if ahead is not None and ahead < 1: raise ArgumentError(f"prefetch_factor is {ahead}; it is at least 1")
    if stay and not workers: raise ArgumentError("persistent_workers wants num_workers above 0")

  def __len__(self) -> int:
    if not self._iterable: return len(self.sampler if self.batch_sampler is None else self.batch_sampler)
    count = len(self.dataset)
    if self.batch_size is None: return count
    return count // self.batch_size if self.drop_last else math.ceil(count / self.batch_size)

  def __iter__(self) -> Iterator[Any]:
    if self.num_workers: return self._by_workers()
    return self._fetch.batches(self.dataset) if self._iterable else self._here()

  def _orders(self) -> Iterable[Any]:
    found: Iterable[Any] = self.sampler if self.batch_sampler is None else self.batch_sampler
    return found

  def _here(self) -> Iterator[Any]:
    for indices in self._orders(): yield self._fetch(self.dataset, indices)

  def _by_workers(self) -> Iterator[Any]:
    pool, self._pool = self._pool or self._new_pool(), None
    whole = False
    try:
      pool.begin(drawn_seed(self.generator))
      yield from self._in_turn(pool) if self._iterable else self._in_order(pool)
      whole = True
    finally:
      if whole and self.persistent_workers: self._pool = pool
      else: pool.close(at_once=not whole)

  def _new_pool(self) -> WorkerPool:
    method = self.multiprocessing_context
    if method is not None and not isinstance(method, str): method = method.get_start_method()
    return WorkerPool(Job(self.dataset, self._fetch, self._fetch.batches if self._iterable else None,
                          self.worker_init_fn, self.num_workers), method)

  def _in_order(self, pool: WorkerPool) -> Iterator[Any]:
    """Give the batches of a data set by index: task k goes to worker k % count."""
    ahead = (self.prefetch_factor or 1) * self.num_workers
    orders, sent = enumerate(self._orders()), 0
    for place, indices in itertools.islice(orders, ahead):
      pool.send(place % self.num_workers, place, list(indices) if self.batch_sampler is not None else indices)
      sent += 1
    for place in itertools.count():
      if place == sent: return
      found = pool.answer(place, self.timeout)
      for after, indices in itertools.islice(orders, 1):
        pool.send(after % self.num_workers, after, list(indices) if self.batch_sampler is not None else indices)
        sent += 1
      yield found

  def _in_turn(self, pool: WorkerPool) -> Iterator[Any]:
    """Give the batches of an iterable data set: one of each worker in turn, until each is at its end."""
    waiting = [collections.deque[int]() for _ in range(self.num_workers)]
    places = itertools.count()
    def ask(worker: int) -> None:
      place = next(places)
      waiting[worker].append(place)
      pool.send(worker, place, None)
    for worker in range(self.num_workers):
      for _ in range(self.prefetch_factor or 1): ask(worker)
    going = list(range(self.num_workers))
    while going:
      for worker in list(going):
        found = pool.answer(waiting[worker].popleft(), self.timeout)
        if isinstance(found, str) and found == END_OF_DATA: going.remove(worker)
        else:
          ask(worker)
          yield found
