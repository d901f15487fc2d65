"""Waits, timelines, rings and transient memory, with memory of this process instead of a device."""
import struct

import pytest
from hypothesis import given, strategies as st

from tinyhw.drivers.gpu import queue
from tinyhw.drivers.linux import files
from tinyhw.drivers.gpu.queue import Ring, Timeline, Transient, wait_until

@pytest.fixture
def memory() -> files.HostMapping: return files.map_memory(files.PAGE)

def test_wait_until_looks_then_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
  clock, slept = [0.0], list[int]()
  def now() -> float:
    clock[0] += 0.0004
    return clock[0]
  monkeypatch.setattr(queue.time, "monotonic", now)
  assert wait_until(lambda: len(slept) == 2, 5000, slept.append)
  assert slept == [1000, 1000]
  assert wait_until(lambda: True, 0, slept.append) and len(slept) == 2

def test_wait_until_counts_looks_where_time_is_no_measure(monkeypatch: pytest.MonkeyPatch) -> None:
  for seconds in (0.0, 0.1):
    clock, looked, slept = [0.0], list[int](), list[int]()
    def now(clock: list[float] = clock, seconds: float = seconds) -> float:
      clock[0] += seconds
      return clock[0]
    monkeypatch.setattr(queue.time, "monotonic", now)
    assert wait_until(lambda looked=looked, slept=slept: looked.append(len(slept)) or len(slept) == 2, 5000,
                      slept.append, 3)  # type: ignore[misc]
    assert looked == [0, 0, 0, 0, 1, 2], "the first one is before it looks at the clock"

def test_wait_until_gives_up_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
  clock = [0.0]
  monkeypatch.setattr(queue.time, "monotonic", lambda: clock[0])
  def sleep(ms: int) -> None:
    assert 1 <= ms <= 1000
    clock[0] += ms / 1000
  clock_before_sleep = iter([0.0, 0.0006])
  monkeypatch.setattr(queue, "SPIN_SECONDS", 0.0)
  assert not wait_until(lambda: False, 2500, sleep) and 2.5 <= clock[0] < 2.6
  assert next(clock_before_sleep) == 0.0

def test_a_timeline_is_done_up_to_its_number(memory: files.HostMapping) -> None:
  memory.store64(8, 99)
  timeline = Timeline(memory, 8)
  assert timeline.completed == 0 and timeline.address == memory.address + 8
  memory.store32(8, 5)
  assert timeline.reached(5) and not timeline.reached(6)
  timeline.submitted = 5
  timeline.restart()
  assert (timeline.submitted, timeline.completed) == (0, 0)

class Reader:
  """The device's end of a ring. It reads published words on request."""
  def __init__(self, memory: files.HostMapping, words: int, whole: bool = False):
    self.memory, self.read, self.published, self.seen = memory, 0, 0, list[int]()
    self.ring = Ring(memory, words, lambda: self.read % words, self.publish, self.wait, whole)

  def publish(self, written: int) -> None: self.published = written

  def consume(self, count: int) -> None:
    for place in range(self.read, min(self.published, self.read + count)):
      self.seen.append(struct.unpack("<I", self.memory._bytes[place % self.ring.words * 4:][:4])[0])
      self.read += 1

  def wait(self, done: object) -> None:
    assert callable(done)
    while not done():
      assert self.read < self.published, "the ring waits for room that never comes"
      self.consume(1)

@given(st.lists(st.integers(1, 15), max_size=30), st.booleans())
def test_what_is_put_into_a_ring_is_read_in_order(sizes: list[int], whole: bool) -> None:
  memory = files.map_memory(files.PAGE)
  reader, expected, number = Reader(memory, 16, whole), list[int](), 0
  for size in sizes:
    piece = list(range(number + 1, number + 1 + size))
    before = reader.ring.written
    reader.ring.put(piece)
    number += size
    padding = reader.ring.written - before - size
    assert padding == 0 or whole and (reader.ring.written - size) % 16 == 0
    expected += [0] * padding + piece
    assert reader.ring.written - reader.read < 16, "a full ring would look empty"
  reader.ring.ring()
  reader.consume(1000)
  assert reader.seen == expected
  memory.close()

def test_the_device_is_looked_at_when_the_ring_seems_full(memory: files.HostMapping) -> None:
  """The read position may only be known by a read over the bus."""
  looks, place = list[int](), 0
  def consumed() -> int:
    looks.append(place)
    return place
  ring = Ring(memory, 16, consumed, lambda written: None, lambda done: None)
  for _ in range(7): ring.put([1, 2])
  assert not looks
  place = 12
  ring.put([1, 2])
  assert looks == [12] and ring.room() == 11
  for _ in range(5): ring.put([1, 2])
  assert looks == [12, 12]

def test_a_ring_is_published_once(memory: files.HostMapping) -> None:
  reader, calls = Reader(memory, 16), list[int]()
  reader.ring.publish = calls.append
  reader.ring.ring()
  reader.ring.put([1, 2])
  reader.ring.ring()
  reader.ring.ring()
  assert calls == [2]

def test_what_was_written_can_be_taken_back_until_the_device_is_told(memory: files.HostMapping) -> None:
  reader = Reader(memory, 16)
  reader.ring.put([1, 2])
  assert reader.ring.cancel(0) and reader.ring.written == 0
  reader.ring.put([3])
  reader.ring.ring()
  assert not reader.ring.cancel(0)
  reader.ring.put([4])
  assert reader.ring.cancel(1)
  reader.ring.put([5])
  reader.ring.ring()
  reader.consume(9)
  assert reader.seen == [3, 5]

def test_recent_words_are_those_around_the_place_that_is_read(memory: files.HostMapping) -> None:
  reader = Reader(memory, 16)
  reader.ring.put([1, 2, 3, 4])
  reader.ring.ring()
  reader.consume(2)
  assert reader.ring.recent(2) == [1, 2, 3, 4]

def test_transient_memory_is_used_again_when_its_submission_is_done(memory: files.HostMapping) -> None:
  timeline, waited = Timeline(memory, 0), list[int]()
  area = files.map_memory(files.PAGE)
  transient = Transient(area, area.address, timeline, waited.append, alignment=256)
  assert [transient.take(100), transient.take(1000)] == [0, 256]
  transient.seal(1)
  assert transient.take(2048) == 1280
  transient.seal(2)
  assert waited == []
  assert transient.take(1500) == 0 and waited == [1, 2], "it does not cross the end, and the first ones have to be done"

def test_transient_memory_holds_what_is_written(memory: files.HostMapping) -> None:
  area = files.map_memory(files.PAGE)
  transient = Transient(area, area.address, Timeline(memory, 0), lambda number: None)
  transient.take(1)
  address = transient.write(b"arguments")
  assert address == area.address + 256 and bytes(area._bytes[256:265]) == b"arguments"
  transient.seal(1)
  transient.seal(1)
  assert len(transient.sealed) == 1
  transient.take(100)
  sealed = transient.sealed[-1][0]
  transient.restart()
  assert not transient.sealed and transient.tail == sealed < transient.head, "the last piece is still wanted"
