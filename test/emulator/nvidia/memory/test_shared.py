"""Shared memory with clocks. It finds the races between warps that lds.py finds, and those of other actors. Each actor
has its own knowledge.
"""
from __future__ import annotations
import random
from functools import partial

import pytest

from tinyhw.emulator.errors import DataRace, MissingWait, OutOfBounds, UninitialisedRead
from tinyhw.emulator.memory.lds import ATOMIC, READ, WRITE
from tinyhw.emulator.memory.windows import NOWHERE
from tinyhw.emulator.nvidia.memory.shared import Delivery, SharedMemory

def memory(size: int = 64, warps: int = 4) -> SharedMemory: return SharedMemory(size, random.Random(1), warps)

@pytest.mark.parametrize("first,second,race", [
  (WRITE, WRITE, True), (WRITE, READ, True), (READ, WRITE, True), (READ, READ, False), (ATOMIC, ATOMIC, False),
  (ATOMIC, READ, True),
  (ATOMIC, WRITE, True), (WRITE, ATOMIC, True), (READ, ATOMIC, True)])
def test_races_of_warps(first: int, second: int, race: bool) -> None:
  m = memory()
  m.touch(0, 8, 4, first)
  m.touch(0, 8, 4, second)
  m = memory()
  m.touch(0, 8, 4, first)
  m.touch(1, 12, 4, second)    # adjacent to it
  if race:
    with pytest.raises(DataRace, match="by warp 1, and warp 0 does .* there; put a barrier between them"):
      m.touch(1, 10, 1, second)
  else: m.touch(1, 10, 1, second)
  m.barrier([])
  m.touch(1, 8, 4, second)

def test_bounds_and_garbage() -> None:
  m = memory()
  with pytest.raises(OutOfBounds, match="64 bytes"): m.store(0, 60, bytes(8))
  with pytest.raises(UninitialisedRead): m.load(0, 0, 4)
  assert m.reach(0) is NOWHERE

def test_all_readers_are_remembered() -> None:
  m = memory()
  m.store(0, 0, bytes(4))
  m.barrier([])
  for warp in range(3): m.load(warp, 0, 4)
  m.acquire(3, m.release(0))
  m.acquire(3, m.release(2))
  with pytest.raises(DataRace, match="warp 1 does read there"): m.store(3, 0, b"abcd")
  m.acquire(3, m.release(1))
  m.store(3, 0, b"abcd")

def test_warps_that_write_the_same_do_not_race() -> None:
  m = memory()
  m.store(0, 8, b"tile")
  m.store(1, 8, b"tile")
  with pytest.raises(DataRace): m.store(2, 8, b"time")

def test_copies_are_done_when_they_have_been_waited_for() -> None:
  """A warp that has met the copying one between a copy's start and its wait does not know that the copy is done."""
  m = memory()
  m.start(0, 8, 4)
  m.acquire(1, m.release(0))
  m.finish(0, 8, b"copy")
  with pytest.raises(DataRace, match="read by warp 1, and warp 0 does write there"): m.load(1, 8, 4)
  m.acquire(1, m.release(0))
  assert m.load(1, 8, 4) == b"copy"

def test_knowledge_goes_from_one_to_the_next() -> None:
  m = memory()
  m.store(0, 0, b"a")
  m.acquire(1, m.release(0))
  m.acquire(2, m.release(1))
  assert m.load(2, 0, 1) == b"a"
  m.store(0, 1, b"b")
  with pytest.raises(DataRace): m.load(2, 1, 1)

def test_others_know_what_all_of_some_warps_know() -> None:
  m = memory()
  m.store(0, 0, bytes(4))
  m.fence(0)
  other = m.actor("a copy")
  m.acquire(1, m.release(0))
  m.acquire(other, m.in_common((0, 1, 2)))
  with pytest.raises(DataRace, match="read by a copy, and warp 0 does write there"): m.look(other, 0, 4)
  m.acquire(other, m.in_common((0, 1)))
  assert m.look(other, 0, 4) == bytes(4)
  with pytest.raises(DataRace, match="a copy does read there; wait until that is done"): m.store(1, 0, b"abcd")
  m.acquire(1, {other: m.now[other]})
  m.store(1, 0, b"abcd")

def test_fences() -> None:
  m = memory()
  m.store(0, 0, bytes(8))
  other = m.actor("a product")
  m.barrier([])
  m.acquire(other, m.in_common((0, 1)))
  with pytest.raises(DataRace, match="what warp 0 has stored: that warp must execute FENCE.VIEW.ASYNC.S"):
    m.look(other, 0, 4)
  m.fence(1)
  with pytest.raises(DataRace, match="must execute"): m.look(other, 0, 4)
  m.fence(0)
  with pytest.raises(DataRace, match="warp 0 does make visible to products and copies there"): m.look(other, 0, 4)
  m.load(1, 0, 4)   # other warps need no fence
  m.acquire(other, m.release(0))
  assert m.look(other, 0, 8) == bytes(8)
  m.acquire(0, {other: m.now[other]})
  m.store(0, 4, bytes(4))
  m.acquire(other, m.release(0))
  assert m.look(other, 0, 4) == bytes(4)
  with pytest.raises(DataRace, match="must execute"): m.look(other, 0, 8)

def test_copies_of_tensors_overwrite_what_is_visible_to_them() -> None:
  m = memory()
  m.store(0, 0, bytes(8))
  other = m.actor("a copy")
  m.acquire(other, m.release(0))
  with pytest.raises(DataRace, match="what warp 0 has stored: that warp must execute FENCE.VIEW.ASYNC.S"):
    m.expect(other, 0, 8)
  m.fence(0)
  with pytest.raises(DataRace, match="warp 0 does make visible to products and copies there"): m.expect(other, 0, 8)
  m.acquire(other, m.release(0))
  m.expect(other, 0, 8)

def test_atomic_operations_race_with_products() -> None:
  m = memory()
  m.store(0, 0, bytes(8))
  m.fence(0)
  other = m.actor("a product")
  m.acquire(other, m.release(0))
  assert m.look(other, 0, 4) == bytes(4)
  m.touch(0, 4, 4, ATOMIC)
  with pytest.raises(DataRace, match="warp 0 does atomic operation there"): m.look(other, 0, 8)

def test_copies_come_in_any_order() -> None:
  orders = set()
  for seed in range(8):
    m, came = SharedMemory(64, random.Random(seed), 1), list[int]()
    for number in range(2): m.deliveries.append(Delivery(0, [(8 * number, bytes(8))], partial(came.append, number)))
    while m.deliver(): pass
    orders.add(tuple(came))
  assert orders == {(0, 1), (1, 0)}

def test_copies_under_way() -> None:
  m = memory()
  m.start(0, 0, 4)
  with pytest.raises(MissingWait): m.load(0, 0, 4)
  m.barrier([(0, (0, 4, WRITE))])
  with pytest.raises(DataRace): m.load(1, 0, 4)
  m.finish(0, 0, b"abcd")
  m.barrier([])
  assert m.load(1, 0, 4) == b"abcd"
  other = m.actor("a product")
  m.acquire(other, m.in_common((0, 1)))
  with pytest.raises(DataRace, match="what warp 0 has stored"): m.look(other, 0, 4)
