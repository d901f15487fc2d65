"""What the threads of a program share: the lock of the engine, and what a fork waits for. The contract stands in
docs/threads.md.

`lock` is held while anything is written, scheduled, compiled for a schedule, launched, replayed or read: what one
thread does of these is whole before another one begins. It is reentrant: a write may realize. Expressing (`a + b`)
takes no lock: nodes are interned, and tables fill as once.py says. Whoever holds it may take the locks of devices and
allocators, never the other way round. Finalizers take none.

A fork copies one thread. What others hold at that moment nobody gives back in the child: so `hold_for_fork` waits until
no other thread is within the engine, nor importing for it, and holds both until the fork is done.
"""
from __future__ import annotations
import functools
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

_LONGEST_WAIT = 30.0     # seconds that a fork waits for imports of other threads: an import that takes longer waits for
                         # something itself
_IMPORT = "<frozen importlib._bootstrap>"
_forks: list[tuple[float, list[Any]]] = []  # for each fork under way: the switch interval to set again, and the locks
                                            # that it holds
_kept: weakref.WeakSet[Any] = weakref.WeakSet()

def kept_in_forks(small: L) -> L:
  """A lock that is held for moments only, and by nobody who waits for a longer one: forks take it first, so that no
  other thread holds it then."""
  _kept.add(small)
  return small

def alone(function: F) -> F:
  """Decorate a function that one thread at a time may be in: it holds the lock."""
  @functools.wraps(function)
  def held(*args: Any, **named: Any) -> Any:
    with lock: return function(*args, **named)
  return held  # type: ignore[return-value]  # it is called as the function is

def importing() -> list[str]:
  """The modules that other threads are importing now, of this package or on its behalf."""
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
  """Wait for the other threads, and keep them away until `release_after_fork`, which both processes call.

  A fork cannot be refused.
  """
  lock.acquire()
  interval, begin = sys.getswitchinterval(), time.monotonic()
  while True:
    sys.setswitchinterval(1.0)  # nobody begins to import, or takes a lock that was free, between the look and the fork
    taken = [small for small in list(_kept) if small.acquire(blocking=False)]
    if len(taken) == len(_kept) and not importing() or time.monotonic() - begin > _LONGEST_WAIT: break
    for small in taken: small.release()
    sys.setswitchinterval(interval)
    time.sleep(0.001)
  _forks.append((interval, taken))

def release_after_fork() -> None:
  """The fork is done. The child has the thread that forked, which holds the lock there, too."""
  interval, taken = _forks.pop()
  for small in taken: small.release()
  sys.setswitchinterval(interval)
  lock.release()
