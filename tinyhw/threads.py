"""Shared state of a program's threads: the engine's lock, and the resources for which a fork waits. The contract is in
docs/guide/threads.md.

`lock` is held during every write, schedule, compilation for a schedule, launch, replay and read. So each of these is
atomic for other threads. It is reentrant: a write may realize. Expressing (`a + b`) takes no lock: nodes are interned,
and tables fill as `once` says. A thread that holds it may take the locks of devices and allocators, never the other
way round. Finalizers take no lock.

A fork copies one thread only. Locks that other threads hold at that moment would never be released in the child. So
`hold_for_fork` waits until no other thread is in the engine, or imports on its behalf. It keeps them out until the fork
is done.
"""
from __future__ import annotations
import functools
import os
import sys
import threading
import time
import weakref

TYPE_CHECKING = False  # typing is loaded only for type checkers
if TYPE_CHECKING:
  from collections.abc import Callable
  from typing import Any, TypeVar
  F = TypeVar("F", bound=Callable[..., Any])
  L = TypeVar("L")

lock = threading.RLock()

# Seconds that a fork waits for imports of other threads: an import that takes longer is blocked itself.
_LONGEST_WAIT = 30.0
_IMPORT = "<frozen importlib._bootstrap>"
# For each fork under way: the switch interval to restore, and the locks that it holds.
_forks: list[tuple[float, list[Any]]] = []
_kept: weakref.WeakSet[Any] = weakref.WeakSet()

def kept_in_forks(small: L) -> L:
  """Register a lock that forks take first, so that no other thread holds it then. Return it.

  The lock is held for moments only, and never while its holder waits for a longer one.
  """
  _kept.add(small)
  return small

def _kept_now() -> list[Any]:
  """Return the registered locks. Another thread may register or drop one meanwhile: iterating then starts again."""
  while True:
    try: return list(_kept)
    except RuntimeError: continue

def alone(function: F) -> F:
  """Decorate a function so that it holds the lock: one thread at a time runs it."""
  @functools.wraps(function)
  def held(*args: Any, **named: Any) -> Any:
    with lock: return function(*args, **named)
  return held  # type: ignore[return-value]  # it is called as the function is

def importing() -> list[str]:
  """Return the modules of this package, or imported on its behalf, that other threads are importing now."""
  found = []
  for thread, frame in sys._current_frames().items():
    if thread == threading.get_ident(): continue
    names: list[str] = []
    while frame is not None:
      code = frame.f_code
      if code.co_filename == _IMPORT and code.co_name == "_find_and_load": names.append(str(frame.f_locals.get("name")))
      elif names and str(frame.f_globals.get("__name__")).partition(".")[0] == "tinyhw": found += names
      frame = frame.f_back  # type: ignore[assignment]  # typeshed: f_back may be None, which ends the loop
    found += [name for name in names if name.partition(".")[0] == "tinyhw" and name not in found]
  return found

def hold_for_fork() -> None:
  """Wait for the other threads, and keep them out until `release_after_fork`, which both processes call.

  A fork cannot be refused.
  """
  lock.acquire()
  interval, begin = sys.getswitchinterval(), time.monotonic()
  while True:
    # Until the fork no other thread starts an import or takes a free lock.
    sys.setswitchinterval(1.0)
    taken = [small for small in _kept_now() if small.acquire(blocking=False)]
    if len(taken) == len(_kept) and not importing() or time.monotonic() - begin > _LONGEST_WAIT: break
    for small in taken: small.release()
    sys.setswitchinterval(interval)
    time.sleep(0.001)
  _forks.append((interval, taken))

def release_after_fork() -> None:
  """End a fork. The child has only the thread that forked, which holds the lock there, too."""
  interval, taken = _forks.pop()
  for small in taken: small.release()
  sys.setswitchinterval(interval)
  lock.release()

def available_cores() -> int:
  """Return the number of cores that this process may use: its affinity, and its control group's quota."""
  count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
  try:
    with open("/sys/fs/cgroup/cpu.max") as file: quota, period = file.read().split()
    return min(count, max(1, -(-int(quota) // int(period))))
  except (OSError, ValueError): return count  # no control group, or "max"

# ***** tables *****

def once(function: F) -> F:
  """Decorate a function of hashable arguments. It is computed at the first call with them, and its result is one object
  for all threads.

  Tables here are built at their first use, so imports do not pay for them. Two rules keep them right in threads and
  after an interrupt:
  - whole: A value is complete before anything but its maker can reach it. So no thread sees half of it, and an
    interrupt leaves none of it.
  - first: It is published with one `setdefault`, whose result is used. So two threads that compute a value at the same
    time continue with the same one.

  `functools.cache` keeps the first rule only: two threads that call at once each get their own result. But rows,
  registers and targets are compared with `is`. A call that finds its result costs the same as with functools.cache: 40
  ns.
  """
  made: dict[Any, Any] = {}

  @functools.cache
  @functools.wraps(function)
  def first(*args: Any, **named: Any) -> Any: return made.setdefault((args, *named.items()), function(*args, **named))

  return first  # type: ignore[return-value]  # it is called as the function is
