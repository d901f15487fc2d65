"""Signals of the program wait while a virtual computer is in the middle of something: neither hardware nor the kernel
stop halfway.

The handler of a signal is a Python function that runs between any two bytecodes of the main thread, and may raise: that
of Ctrl-C does, and that of whoever sets an alarm. So for as long as something must stay whole, each signal that has
such a handler gets another one, which notes it; afterwards the handlers are what they were, and those of the noted
signals run, in the order in which they came. Other threads have no signals.
Cost: 6 us to ask for all handlers, 4 us for each that there is.
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
plain: Any = importlib.import_module("_signal")  # what `signal` makes enums of, which takes twenty times as long

class Waiting:
  """The handler of a signal that waits.

  One that is met when nothing waits was left behind by an exception: it does what it should have done.
  """
  def __init__(self, signals: Signals, handler: Handler): self.signals, self.handler = signals, handler

  def __call__(self, number: int, frame: Any) -> None:
    if self.signals.held: self.signals.noted[int(number)] = self.handler, frame
    else:
      plain.signal(number, self.handler)
      self.handler(number, frame)

class Signals:
  """The signals of a process. held: they wait; noted: those that came meanwhile, with the handler that waits, and the
  frame for it."""
  def __init__(self) -> None:
    self.held = False
    self.noted: dict[int, tuple[Handler, Any]] = {}

  @contextlib.contextmanager
  def wait(self) -> Iterator[None]:
    """Signals wait until what is inside is done, on the main thread."""
    if self.held or threading.current_thread() is not threading.main_thread():
      yield
      return
    try:
      self.held = True
      for number in NUMBERS:
        handler = plain.getsignal(number)
        if callable(handler) and not isinstance(handler, Waiting): plain.signal(number, Waiting(self, handler))
      yield
    finally:
      self.held = False
      for number in NUMBERS:
        handler = plain.getsignal(number)
        if isinstance(handler, Waiting): plain.signal(number, handler.handler)
      self._tell()

  def _tell(self) -> None:
    """Run the handlers of what came, also if one of them raises."""
    if not self.noted: return
    number = next(iter(self.noted))
    handler, frame = self.noted.pop(number)
    try: handler(number, frame)
    finally: self._tell()
