"""Do independent tasks on all cores, in processes that are forked for them: compiling the kernels of a schedule.

A child of a fork has all that its parent has. So nothing is sent to it: no kernel, no module, no setting. The numbers
of the tasks are in a pipe, and each process takes the next one when it is ready, the parent too. When the pipe is
empty, a child sends its results and ends.

The parent does the rest: tasks that failed in a child, or whose child died. So an error appears where it would without
children. Locks and devices are ready for forks (threads.py, `Compiled.before_fork`). A child ends without Python's
clean-up, since devices, files and buffers are its parent's.

Cost: 7 ms for a child on a slow core, and 4 ms for each GB of small pages. Memory is shared until one of the two writes
to it.
"""
from __future__ import annotations
from collections.abc import Callable, Iterator
import gc
import os
import pickle
import signal
import sys
import threading
import time
from typing import TypeVar
import warnings

from tinyhw.config import PARALLEL
from tinyhw.device import are_all_of_the_host
from tinyhw.threads import available_cores

T = TypeVar("T")

TASKS_PER_PROCESS = 3       # with fewer, a fork costs more than it saves
MOST_PROCESSES = 16
MOST_TASKS = 1 << 16        # numbers of two bytes
PATIENCE_S = 60.0           # for a child, after all tasks are taken; then its tasks are done again
PAUSE_S = 0.001             # between two looks at a child. `select` would be a module of the program's, if it has one

def processes_for(tasks: int) -> int:
  """Return the number of processes for a number of tasks, this one included; 1 where forks are not safe.

  Other threads of the program may hold locks of other libraries. Other systems than Linux have libraries that do not
  work after a fork. GPUs and their libraries belong to the process that opened them.
  """
  if sys.platform != "linux" or threading.active_count() > 1 or not are_all_of_the_host(): return 1
  most = available_cores() if PARALLEL < 0 else PARALLEL.value
  return max(min(most, tasks // TASKS_PER_PROCESS, MOST_PROCESSES), 1)

def results(work: Callable[[int], T], tasks: int, processes: int) -> dict[int, T]:
  """Return work(k) for numbers below `tasks`, by number. Tasks that failed are left out.

  work: its results can be pickled. The first tasks are begun first, so the longest should be first.
  """
  ready, numbers = os.pipe()
  children: dict[int, int] = {}   # end of a pipe -> process
  try:
    os.set_blocking(numbers, False)    # what does not fit is left out
    os.write(numbers, b"".join([k.to_bytes(2, "little") for k in range(min(tasks, MOST_TASKS))]))
    os.close(numbers)
    for _ in range(processes - 1):
      try: children.update([_child(work, ready)])
      except OSError: break     # no process, or no memory for one
    found = dict(_done(work, ready))
    for end in list(children): found.update(_received(end))
    return found
  finally:
    os.close(ready)
    for end, process in children.items(): _ended(end, process)

def _done(work: Callable[[int], T], ready: int) -> Iterator[tuple[int, T]]:
  """Take tasks until there are none, and do them."""
  while number := os.read(ready, 2):
    k = int.from_bytes(number, "little")
    try: yield k, work(k)
    except Exception: pass     # noqa: BLE001 # the caller does it again, and meets the error

def _child(work: Callable[[int], T], ready: int) -> tuple[int, int]:
  """Start a process that does tasks. Return the end of the pipe by which it sends them, and the process."""
  end, results = os.pipe()
  try:
    with warnings.catch_warnings():
      warnings.simplefilter("ignore", DeprecationWarning)   # of threads that are not Python's, such as those of a BLAS
      process = os.fork()
  except OSError:
    os.close(end)
    os.close(results)
    raise
  if process:
    os.close(results)
    return end, process
  try:
    os.close(end)    # so that a write fails when the parent is gone
    gc.disable()
    with open(results, "wb") as file: pickle.dump(dict(_done(work, ready)), file, pickle.HIGHEST_PROTOCOL)
  finally: os._exit(0)

def _received(end: int) -> dict[int, T]:
  """Return the results of a child; none if it died, or sends nothing for too long."""
  os.set_blocking(end, False)
  data, since = bytearray(), time.monotonic()
  while True:
    try: part = os.read(end, 1 << 16)
    except BlockingIOError:
      if time.monotonic() - since > PATIENCE_S: return {}
      time.sleep(PAUSE_S)
      continue
    if not part: break
    data += part
    since = time.monotonic()
  try: return pickle.loads(data)  # type: ignore[no-any-return]  # of the dict that the child wrote
  except (pickle.UnpicklingError, EOFError): return {}

def _ended(end: int, process: int) -> None:
  os.close(end)
  try:
    os.kill(process, signal.SIGKILL)    # it has sent its results, or they are not wanted
    os.waitpid(process, 0)
  except (ProcessLookupError, ChildProcessError): pass  # the program waits for all of its children itself
