"""Signals of the program are deferred during an operation that must not end halfway: a submission, whose objects the
driver must know, and each operation of a virtual computer.

A handler of a signal is a Python function. It runs between any two bytecodes of the main thread, and may raise, like
the handlers of Ctrl-C and of alarms. So `wait` replaces each such handler by one that only notes the signal. At its end
it restores the handlers, and runs those of the noted signals in order of arrival. Other threads have no signals. Cost:
6 us to read all handlers, 4 us for each handler that exists.
"""
from __future__ import annotations
import contextlib
import importlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

Handler = Callable[[int, Any], Any]
NUMBERS = tuple(sorted(map(int, signal.valid_signals())))
# the functions that `signal` wraps with enums, which takes twenty times as long
plain: Any = importlib.import_module("_signal")

class DeferredHandler:
  """The handler of a signal that is deferred.

  If it runs while no signal is deferred, an exception has left it behind. It then restores and runs the real handler.
  """
  def __init__(self, signals: Signals, handler: Handler): self.signals, self.handler = signals, handler

  def __call__(self, number: int, frame: Any) -> None:
    if self.signals.held: self.signals.noted[int(number)] = self.handler, frame
    else:
      plain.signal(number, self.handler)
      self.handler(number, frame)

class Signals:
  """The signals of a process, which has one object (SIGNALS). held: signals are deferred; noted: signals that have
  arrived meanwhile, each with its real handler and its frame."""
  def __init__(self) -> None:
    self.held = False
    self.noted: dict[int, tuple[Handler, Any]] = {}

  @contextlib.contextmanager
  def wait(self) -> Iterator[None]:
    """Defer signals on the main thread to the end of the block."""
    if self.held or threading.current_thread() is not threading.main_thread():
      yield
      return
    try:
      self.held = True
      for number in NUMBERS:
        handler = plain.getsignal(number)
        if callable(handler) and not isinstance(handler, DeferredHandler):
          plain.signal(number, DeferredHandler(self, handler))
      yield
    finally:
      self.held = False
      for number in NUMBERS:
        handler = plain.getsignal(number)
        if isinstance(handler, DeferredHandler): plain.signal(number, handler.handler)
      self._tell()

  def _tell(self) -> None:
    """Run the handlers of the noted signals, also if one of them raises."""
    if not self.noted: return
    number = next(iter(self.noted))
    handler, frame = self.noted.pop(number)
    try: handler(number, frame)
    finally: self._tell()

SIGNALS = Signals()
