"""Which launches wait for which: by what they read and write, and by what is not known."""
from typing import NamedTuple

import pytest
from hypothesis import given, strategies as st

from tinyhw.device import Launch
from tinyhw.drivers.gpu.order import ANYWHERE, MOST, Flight, meet, place, written

class At(NamedTuple):
  address: int
  size: int

A, B, C, D = (At(1000 * i, 100) for i in range(1, 5))

def waits(*launches: tuple[list[At], list[int]]) -> list[bool]:
  """Launches as (buffers, positions of those that are written)."""
  flight = Flight()
  return [flight.take([place(b) for b in buffers], frozenset(stores)) for buffers, stores in launches]

@pytest.mark.parametrize("second, expected", [
  (([C, A], [0]), False),   # reads what the first one reads
  (([C, B], [0]), True),    # reads what it writes
  (([B, C], [0]), True),    # writes what it writes
  (([A, C], [0]), True),    # writes what it reads
  (([C, D], [0, 1]), False)])
def test_two_launches(second: tuple[list[At], list[int]], expected: bool) -> None:
  assert waits(([B, A], [0]), second) == [False, expected]

def test_parts_of_a_buffer() -> None:
  whole, first, last = At(0, 64), At(0, 32), At(32, 32)
  assert waits(([first], [0]), ([last], [0]), ([whole], [])) == [False, False, True]

def test_after_a_wait_nothing_is_in_flight() -> None:
  assert waits(([B, A], [0]), ([C, B], [0]), ([D, A], [0]), ([A, D], [0])) == [False, True, False, True]

def test_kernels_that_spill_share_memory() -> None:
  flight = Flight()
  assert [flight.take([place(b)], frozenset([0]), spills) for b, spills in ((A, True), (B, False), (C, True))] == [False, False, True]

def test_what_is_not_known_waits() -> None:
  class Beyond: address = 5
  assert place(Beyond()) is ANYWHERE and place("text") is ANYWHERE and place(A) == (1000, 1100)
  assert written(Launch(None, [A, B])) == {0, 1} and written(Launch(None, [A, B], written=(1,))) == {1}
  flight = Flight()
  assert [flight.take([p], frozenset([0])) for p in (place(A), ANYWHERE, place(B))] == [False, True, True]

def test_many_places_end_in_a_wait() -> None:
  flight = Flight()
  found = [flight.take([(i, i + 1)], frozenset([0])) for i in range(2 * MOST + 4)]
  assert found.index(True) == MOST + 1 and sum(found) == 2

@given(st.lists(st.tuples(st.lists(st.integers(0, 5), min_size=1, max_size=3), st.frozensets(st.integers(0, 2))), max_size=12))
def test_what_needs_each_other_has_a_wait_between(launches: list[tuple[list[int], frozenset[int]]]) -> None:
  """Of random launches: between two of which one writes what the other one touches stands one that waits."""
  flight, found = Flight(), list[bool]()
  for buffers, stores in launches: found.append(flight.take([(10 * b, 10 * b + 15) for b in buffers], stores))
  for j, (there, writes) in enumerate(launches):
    for i, (here, stores) in enumerate(launches[:j]):
      for p, a in enumerate(here):
        for q, b in enumerate(there):
          if (p in stores or q in writes) and abs(a - b) <= 1: assert any(found[i + 1:j + 1]), (i, j)

def test_places_that_touch_do_not_meet() -> None:
  assert not meet([(0, 10)], [(10, 20)]) and meet([(0, 11)], [(10, 20)]) and not meet([], [(0, 1)])
