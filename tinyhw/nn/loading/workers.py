"""Processes that fetch batches ahead, for the loader.

Each worker has a pipe. The parent sends tasks with numbers, and gives batches back in the order of these numbers. Task
k belongs to worker k % count, so batches do not depend on which worker is fast. A worker reads its tasks in a thread of
its own, so the parent never waits for one to take a task. The same thread ends the process when the parent is gone.

An error of a worker comes back with its traceback, and is raised in the parent. The parent notices the end of a worker
that dies. Workers ignore the interrupt from the keyboard, and the parent ends them when it gets one.
"""
from __future__ import annotations
from collections.abc import Callable, Iterator
from multiprocessing import connection as pipes
import multiprocessing
import os
import queue
import random
import signal
import sys
import threading
import time
import traceback
from typing import Any
import weakref

from tinyhw.device import Device
from tinyhw.errors import ArgumentError, DatasetError
from tinyhw.named_tuple import NamedTuple
from tinyhw.tensor import Tensor

_PARENT_CHECK_S, _JOIN_S = 2.0, 2.0
_parent_ends: weakref.WeakSet[Any] = weakref.WeakSet()    # ends of pipes that children must not keep open

class WorkerInfo(NamedTuple):
  """What a worker knows about itself: its number, how many there are, its seed, and its copy of the data set."""
  id: int
  num_workers: int
  seed: int
  dataset: Any

class _Current:
  worker: WorkerInfo | None = None

def get_worker_info() -> WorkerInfo | None:
  """Return what the worker that calls knows about itself; None in the main process."""
  return _Current.worker

class Job(NamedTuple):
  """What workers do: fetch(dataset, indices) for each task, or, without indices, the next batches of an iterator."""
  dataset: Any
  fetch: Callable[[Any, Any], Any]
  iterate: Callable[[Any], Iterator[Any]] | None
  begin: Callable[[int], Any] | None
  workers: int

class _Failure(NamedTuple):
  kind: Any
  text: str

END_OF_DATA, _STOP = "the end of a worker's data", "stop"

# ***** in the worker *****

def _tasks(pipe: Any, found: queue.Queue[Any], parent: int) -> None:
  """Read tasks until the parent is gone."""
  while True:
    try:
      if pipe.poll(_PARENT_CHECK_S): found.put(pipe.recv())
      elif os.getppid() != parent: os._exit(1)
    except (EOFError, OSError): os._exit(1)

def _work(job: Job, number: int, pipe: Any, parent: int, inherited: list[Any]) -> None:
  """Serve tasks: the main function of a worker."""
  signal.signal(signal.SIGINT, signal.SIG_IGN)
  signal.signal(signal.SIGTERM, signal.SIG_DFL)
  for end in inherited: end.close()
  tasks: queue.Queue[Any] = queue.Queue()
  threading.Thread(target=_tasks, args=(pipe, tasks, parent), daemon=True).start()
  Device.DEFAULT = "CPU"                 # other devices belong to the parent
  batches: Iterator[Any] | None = None
  while (task := tasks.get()) != _STOP:
    place, what = task
    try:
      if place is None:
        batches = None
        _begin(job, number, what)
        continue
      if job.iterate is None: answer = job.fetch(job.dataset, what)
      else:
        if batches is None: batches = job.iterate(job.dataset)
        answer = next(batches, END_OF_DATA)
    except Exception as error: answer = _Failure(type(error), _told(number))  # noqa: BLE001 # raised in the parent
    try: pipe.send((place, answer))
    except (BrokenPipeError, ConnectionError): return
    except Exception:  # noqa: BLE001 # a batch without a pickle
      pipe.send((place, _Failure(DatasetError, _told(number))))

def _told(number: int) -> str:
  return f"a worker of a DataLoader, number {number}, raised this:\n{traceback.format_exc()}"

def _begin(job: Job, number: int, seed: int) -> None:
  """Begin an epoch: seed the random numbers, and call worker_init_fn."""
  seed += number
  random.seed(seed)
  Tensor.manual_seed(seed)
  if (numpy := sys.modules.get("numpy")) is not None: numpy.random.seed(seed & 0xFFFFFFFF)
  first = _Current.worker is None
  _Current.worker = WorkerInfo(number, job.workers, seed, job.dataset)
  if first and job.begin is not None: job.begin(number)

# ***** in the parent *****

class WorkerPool:
  """The workers of a loader, and their answers that nobody has asked for yet."""
  processes: list[Any] = []
  ends: list[Any] = []

  def __init__(self, job: Job, method: str | None):
    known = multiprocessing.get_all_start_methods()
    if method is None: method = "fork" if "fork" in known else "spawn"
    if method not in known: raise ArgumentError(f"multiprocessing_context is one of {', '.join(known)}, not {method!r}")
    self.context: Any = multiprocessing.get_context(method)
    self.job, self.processes, self.ends = job, list[Any](), list[Any]()
    self.answers: dict[int, Any] = {}
    try:
      for number in range(job.workers): self._start(number, method == "fork")
    except BaseException:
      self.close(at_once=True)
      raise

  def _start(self, number: int, forks: bool) -> None:
    mine, theirs = self.context.Pipe()
    _parent_ends.add(mine)
    inherited = list(_parent_ends) if forks else []
    process = self.context.Process(target=_work, args=(self.job, number, theirs, os.getpid(), inherited), daemon=True)
    self.ends.append(mine)
    process.start()
    theirs.close()
    self.processes.append(process)

  def begin(self, seed: int) -> None:
    """Let all workers begin an epoch."""
    self.answers.clear()
    for number in range(self.job.workers): self.send(number, None, seed)

  def send(self, number: int, place: int | None, what: Any) -> None:
    """Give a worker a task."""
    try: self.ends[number].send((place, what))
    except (BrokenPipeError, ConnectionError): self._died(number)

  def answer(self, place: int, timeout_s: float) -> Any:
    """Wait for the answer to a task. timeout_s: 0 for as long as it takes.

    Raises the worker's error, or DatasetError for a worker that died and for a time that is over.
    """
    until = time.monotonic() + timeout_s if timeout_s else None
    while place not in self.answers:
      left = None if until is None else until - time.monotonic()
      if left is not None and left <= 0: raise DatasetError(f"no batch within {timeout_s} s; a worker hangs, or give "
                                                            f"the loader a longer timeout")
      self._receive(left)
    found = self.answers.pop(place)
    if isinstance(found, _Failure): _raise(found)
    return found

  def _receive(self, seconds: float | None) -> None:
    by_end: dict[Any, int] = {end: number for number, end in enumerate(self.ends)}
    sentinels: dict[Any, int] = {p.sentinel: number for number, p in enumerate(self.processes)}
    ready: list[Any] = pipes.wait([*by_end, *sentinels], seconds)
    for end in [x for x in ready if x in by_end]:
      try: place, value = end.recv()
      except (EOFError, OSError): self._died(by_end[end])
      if place is None: _raise(value)
      self.answers[place] = value
      return
    for sentinel in ready: self._died(sentinels[sentinel])

  def _died(self, number: int) -> None:
    process = self.processes[number]
    process.join(_JOIN_S)
    code = process.exitcode
    how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
    raise DatasetError(f"worker {number} of a DataLoader (process {process.pid}) ended {how} before its batch was "
                       f"done; run with num_workers=0 to see why")

  def close(self, at_once: bool = False) -> None:
    """End all workers, and wait for their ends. at_once: also in the middle of a task."""
    for end, process in zip(self.ends, self.processes):
      if at_once: process.terminate()
      else:
        try: end.send(_STOP)
        except OSError: pass
    for end in self.ends: end.close()
    for process in self.processes:
      process.join(_JOIN_S)
      for harder in (process.terminate, process.kill):
        if not process.is_alive(): break
        harder()
        process.join(_JOIN_S)
    self.processes, self.ends = [], []

  def __del__(self) -> None:
    for process in self.processes: process.terminate()

class _Shown(str):
  """A text whose repr is the text: a KeyError shows the repr of its key."""
  def __repr__(self) -> str: return str(self)

def _raise(failure: _Failure) -> None:
  """Raise a worker's error again: of its own class where that takes a text."""
  try: error = failure.kind(_Shown(failure.text) if issubclass(failure.kind, KeyError) else failure.text)
  except Exception: error = DatasetError(failure.text)  # noqa: BLE001 # its class takes other arguments
  raise error if isinstance(error, Exception) else DatasetError(failure.text)
