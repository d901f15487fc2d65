"""Handlers wait, run afterwards, and are restored."""
import signal
import threading
from collections.abc import Iterator

import pytest

from tinyhw.drivers.gpu.signals import Signals

ONE, TWO = signal.SIGUSR1, signal.SIGUSR2

@pytest.fixture
def told() -> Iterator[list[int]]:
  """Yield the calls of handlers of the two signals. That of ONE raises."""
  found = list[int]()
  def one(number: int, frame: object) -> None:
    found.append(number)
    raise TimeoutError
  kept = signal.signal(ONE, one), signal.signal(TWO, lambda number, frame: found.append(number))
  yield found
  signal.signal(ONE, kept[0])
  signal.signal(TWO, kept[1])

def test_all_handlers_run_afterwards_in_the_order_of_their_signals(told: list[int]) -> None:
  signals, before = Signals(), (signal.getsignal(ONE), signal.getsignal(TWO))
  for first, second in ((ONE, TWO), (TWO, ONE)):
    with pytest.raises(TimeoutError), signals.wait():
      with signals.wait(): signal.raise_signal(first)
      for _ in range(2): signal.raise_signal(second)
      assert not told and list(signals.noted) == [first, second]
    assert told == [first, second] and not signals.noted and before == (signal.getsignal(ONE), signal.getsignal(TWO))
    told.clear()

def test_what_raises_inside_does_not_lose_a_signal(told: list[int]) -> None:
  signals = Signals()
  with pytest.raises(ValueError), signals.wait():
    signal.raise_signal(TWO)
    raise ValueError
  assert told == [TWO] and not signals.held

def test_a_handler_that_was_left_behind_does_what_the_right_one_does(told: list[int]) -> None:
  """As if an exception had come while the handlers were restored."""
  signals, before = Signals(), signal.getsignal(TWO)
  with signals.wait(): waiting = signal.getsignal(TWO)
  assert callable(waiting) and waiting is not before
  signal.signal(TWO, waiting)
  signal.raise_signal(TWO)
  assert told == [TWO] and signal.getsignal(TWO) is before
  signal.signal(TWO, waiting)
  with signals.wait(): signal.raise_signal(TWO)
  assert told == [TWO, TWO] and signal.getsignal(TWO) is before

def test_other_threads_have_no_signals(told: list[int]) -> None:
  signals, before = Signals(), signal.getsignal(TWO)
  def inside() -> None:
    with signals.wait(): assert signal.getsignal(TWO) is before and not signals.held
  thread = threading.Thread(target=inside)
  thread.start()
  thread.join()

def test_signals_without_a_handler_are_left_alone() -> None:
  kept = signal.signal(TWO, signal.SIG_IGN)
  with Signals().wait(): assert signal.getsignal(TWO) is signal.SIG_IGN
  signal.signal(TWO, kept)
