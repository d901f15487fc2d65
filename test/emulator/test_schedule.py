"""tinyhw/emulator/schedule.py: seeded order, waiting actors, errors."""
import signal
import threading
from collections.abc import Iterator

import pytest

from tinyhw.emulator.errors import EmulatorError
from tinyhw.emulator.schedule import ActorScheduler

@pytest.fixture
def alarm() -> Iterator[None]:
  """SIGALRM has a handler that raises."""
  def late(number: int, frame: object) -> None: raise TimeoutError("too slow")
  kept = signal.signal(signal.SIGALRM, late)
  yield
  signal.signal(signal.SIGALRM, kept)

class Counter:
  """An actor that moves `times` times, then waits. It records each move."""
  def __init__(self, name: str, times: int, log: list[str]):
    self.name, self.times, self.log = name, times, log

  def step(self) -> bool:
    if not self.times: return False
    self.times -= 1
    self.log.append(self.name)
    return True

def order(seed: int) -> str:
  scheduler, log = ActorScheduler(seed), list[str]()
  for name in "abc": scheduler.add(Counter(name, 5, log))
  scheduler.settle()
  return "".join(log)

def test_one_seed_is_one_order_and_another_seed_another() -> None:
  assert order(1) == order(1)
  assert sorted(order(1)) == sorted("abc" * 5)
  assert len({order(seed) for seed in range(8)}) > 4

def test_it_stops_when_all_wait() -> None:
  scheduler, log = ActorScheduler(0), list[str]()
  scheduler.add(Counter("a", 3, log))
  assert scheduler.run(100) == 3 and scheduler.run(100) == 0

def test_what_waits_is_asked_again_when_another_has_moved() -> None:
  log: list[str] = []
  first = Counter("first", 1, log)
  class Second:
    done = False
    def step(self) -> bool:
      if first.times or self.done: return False
      self.done = True
      log.append("second")
      return True
  scheduler = ActorScheduler(0)
  scheduler.add(Second())
  scheduler.add(first)
  scheduler.settle()
  assert log == ["first", "second"]

def test_errors_reach_the_caller_and_the_rest_goes_on() -> None:
  class Broken:
    def step(self) -> bool: raise ValueError("broken")
  scheduler, log = ActorScheduler(0), list[str]()
  broken = Broken()
  scheduler.add(broken)
  with pytest.raises(ValueError, match="broken"): scheduler.run(1)
  assert isinstance(scheduler.errors[None], ValueError)
  scheduler.remove(broken)
  scheduler.remove(broken)
  scheduler.add(Counter("a", 1, log))
  scheduler.settle()
  assert log == ["a"]

def test_an_actor_that_looks_does_not_move_others() -> None:
  scheduler = ActorScheduler(0)
  class Looks:
    seen = -1
    def step(self) -> bool:
      if self.seen >= 0: return False
      self.seen = scheduler.run(10)
      return True
  looks = Looks()
  scheduler.add(looks)
  scheduler.settle()
  assert looks.seen == 0

@pytest.mark.parametrize("number, error", [(signal.SIGINT, KeyboardInterrupt), (signal.SIGALRM, TimeoutError)])
def test_an_interruption_waits_for_the_end_of_a_step(number: signal.Signals, error: type[BaseException],
                                                     alarm: None) -> None:
  scheduler, log = ActorScheduler(0), list[str]()
  class Interrupted:
    def step(self) -> bool:
      log.append("begin")
      signal.raise_signal(number)
      log.append("end")
      return True
  scheduler.add(Interrupted())
  kept = signal.getsignal(number)
  with pytest.raises(error): scheduler.run(100)
  assert log == ["begin", "end"] and not scheduler.interrupted and signal.getsignal(number) is kept
  with pytest.raises(error), scheduler.whole(), scheduler.whole():
    signal.raise_signal(number)
    log.append("inside")
  assert log[-1] == "inside"

def test_other_threads_have_no_signals_to_hold() -> None:
  scheduler, log = ActorScheduler(0), list[str]()
  scheduler.add(Counter("a", 3, log))
  thread = threading.Thread(target=scheduler.settle)
  thread.start()
  thread.join()
  assert log == ["a"] * 3

def test_an_error_is_told_to_the_process_whose_actor_was_at_fault() -> None:
  """Another process, which only looked, goes on. A look for no process gets all errors."""
  class Broken:
    def step(self) -> bool:
      scheduler.remove(self)
      raise EmulatorError("broken")
  scheduler, log = ActorScheduler(0), list[str]()
  def broken(owner: str) -> None: scheduler.add(Broken(), owner)
  scheduler.add(Counter("a", 3, log), "other")
  broken("guilty")
  assert scheduler.run(100, "other") == 4 and log == ["a"] * 3
  with pytest.raises(EmulatorError, match="broken"): scheduler.advance("guilty")
  scheduler.advance("guilty")
  assert isinstance(scheduler.errors["guilty"], EmulatorError) and "other" not in scheduler.errors
  broken("guilty")
  scheduler.run(100, "other")
  with pytest.raises(EmulatorError, match="broken"): scheduler.settle()
  broken("guilty")
  scheduler.run(100, "other")
  scheduler.ended("guilty")
  scheduler.settle()
  assert not scheduler.errors and not scheduler.untold and set(scheduler.owners.values()) == {"other"}
