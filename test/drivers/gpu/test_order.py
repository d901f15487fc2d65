"""Dependences between launches: by their reads and writes, and by unknown ones."""
from typing import NamedTuple

import pytest
from hypothesis import given, strategies as st

from tinyhw.device import Launch
from tinyhw.drivers.gpu.order import (
  ANYWHERE, EVERYTHING, MOST, PendingLaunches, Queues, AccessedRanges, joined, meet, address_range, touched, written)

class At(NamedTuple):
  address: int
  size: int

A, B, C, D = (At(1000 * i, 100) for i in range(1, 5))

def waits(*launches: tuple[list[At], list[int]]) -> list[bool]:
  """Return which launches wait. A launch is (buffers, positions of those that are written)."""
  flight = PendingLaunches()
  return [flight.take([address_range(b) for b in buffers], frozenset(stores)) for buffers, stores in launches]

@pytest.mark.parametrize("second, expected", [
  (([C, A], [0]), False),   # reads a buffer that the first one reads
  (([C, B], [0]), True),    # reads a buffer that it writes
  (([B, C], [0]), True),    # writes a buffer that it writes
  (([A, C], [0]), True),    # writes a buffer that it reads
  (([C, D], [0, 1]), False)])
def test_two_launches(second: tuple[list[At], list[int]], expected: bool) -> None:
  assert waits(([B, A], [0]), second) == [False, expected]

def test_parts_of_a_buffer() -> None:
  whole, first, last = At(0, 64), At(0, 32), At(32, 32)
  assert waits(([first], [0]), ([last], [0]), ([whole], [])) == [False, False, True]

def test_after_a_wait_nothing_is_in_flight() -> None:
  assert waits(([B, A], [0]), ([C, B], [0]), ([D, A], [0]), ([A, D], [0])) == [False, True, False, True]

def test_kernels_that_spill_share_memory() -> None:
  flight = PendingLaunches()
  assert ([flight.take([address_range(b)], frozenset([0]), spills) for b, spills in ((A, True), (B, False), (C, True))]
          == [False, False, True])

def test_what_is_not_known_waits() -> None:
  class Beyond: address = 5
  assert address_range(Beyond()) is ANYWHERE and address_range("text") is ANYWHERE and address_range(A) == (1000, 1100)
  assert written(Launch(None, [A, B])) == {0, 1} and written(Launch(None, [A, B], written=(1,))) == {1}
  flight = PendingLaunches()
  ranges = address_range(A), ANYWHERE, address_range(B)
  assert [flight.take([p], frozenset([0])) for p in ranges] == [False, True, True]

def test_many_places_end_in_a_wait() -> None:
  flight = PendingLaunches()
  found = [flight.take([(i, i + 1)], frozenset([0])) for i in range(2 * MOST + 4)]
  assert found.index(True) == MOST + 1 and sum(found) == 2

@given(st.lists(st.tuples(st.lists(st.integers(0, 5), min_size=1, max_size=3), st.frozensets(st.integers(0, 2))),
                max_size=12))
def test_what_needs_each_other_has_a_wait_between(launches: list[tuple[list[int], frozenset[int]]]) -> None:
  """Draw random launches. Between two dependent ones there is one that waits."""
  flight, found = PendingLaunches(), list[bool]()
  for buffers, stores in launches: found.append(flight.take([(10 * b, 10 * b + 15) for b in buffers], stores))
  for j, (there, writes) in enumerate(launches):
    for i, (here, stores) in enumerate(launches[:j]):
      for p, a in enumerate(here):
        for q, b in enumerate(there):
          if (p in stores or q in writes) and abs(a - b) <= 1: assert any(found[i + 1:j + 1]), (i, j)

def test_places_that_touch_do_not_meet() -> None:
  assert not meet([(0, 10)], [(10, 20)]) and meet([(0, 11)], [(10, 20)]) and not meet([], [(0, 1)])

# **** two queues ****

# each reads five bytes and writes the next five
X, Y, Z = (AccessedRanges([(10 * i, 10 * i + 5)], [(10 * i + 5, 10 * i + 10)]) for i in range(3))

def test_a_queue_waits_for_what_it_needs_of_the_other_one() -> None:
  queues = Queues()
  assert queues.take("compute", 1, X, 0) == 0 and queues.take("copy", 2, Y, 0) == 0
  assert queues.take("copy", 3, AccessedRanges([(5, 6)], []), 0) == 1, "it reads what the first one writes"
  assert queues.take("compute", 4, AccessedRanges([], [(0, 20)]), 0) == 3 and queues.take("compute", 5, X,
      0) == 0, "its own queue is in order"

def test_what_was_waited_for_is_not_waited_for_again() -> None:
  queues = Queues()
  queues.take("copy", 1, X, 0)
  assert [queues.take("compute", n, X, 0) for n in (2, 3)] == [1, 0]
  assert queues.take("compute", 3, X, 0) == 1, "a number that comes again: the wait may have been taken back"

def test_what_is_done_is_forgotten() -> None:
  queues = Queues()
  queues.take("copy", 1, X, 0)
  assert queues.take("compute", 2, X, 1) == 0 and not queues.flying["copy"]

def test_a_submission_that_was_taken_back_is_not_waited_for() -> None:
  queues = Queues()
  queues.take("copy", 1, X, 0)
  assert queues.take("compute", 1, X, 0) == 0

def test_many_submissions_are_waited_for_without_a_look() -> None:
  queues = Queues()
  for n in range(1, MOST + 3): queues.take("copy", n, Y, 0)
  assert queues.take("compute", 200, Z, 0) == 2 and len(queues.flying["copy"]) == MOST, ("of the first two nothing is "
                                                                                         "known any more")

def test_what_launches_touch_together() -> None:
  code = At(5000, 64)
  launches = [([address_range(A), address_range(B)], frozenset([0])), ([address_range(C), (1100, 1150)], frozenset())]
  found = touched(launches, [code, code])
  assert found == ([(1100, 1150), (2000, 2100), (3000, 3100), (5000, 5064)], [(1000, 1100)])
  assert joined([(5, 9), (0, 3), (3, 5), (20, 30), (21, 22)]) == [(0, 9), (20, 30)]
  assert EVERYTHING.needs(X) and X.needs(EVERYTHING)
  assert not AccessedRanges([(0, 5)], []).needs(AccessedRanges([(0, 5)], []))
