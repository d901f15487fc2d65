"""tinyhw/emulator/memory/cache.py: reads that would return old values are reported, others are not."""
import pytest

from tinyhw.emulator.memory.cache import (ABSENT, BIG_WRITE, COPY, LINE, MANY, SAME, Coherence, HostWrites, ReadCache,
                                          WriteBuffer, drop,
                                          lines_between)
from tinyhw.emulator.errors import StaleRead
from tinyhw.emulator.memory.pages import PageTable, Range
from tinyhw.emulator.memory.physical import FOREIGN, PAGE, Frames

def page(start: int = 0x10000, physical: int = 0) -> Range:
  frames = Frames(physical, PAGE, memoryview(bytearray(PAGE)))
  return Range(start, frames, 0, PAGE, True, False, False, False, "a buffer")

class System:
  """Two processors with a cache and a buffer each, and an agent with neither."""
  def __init__(self) -> None:
    self.coherence, self.entry = Coherence(), page()
    self.caches = [ReadCache(f"cache {i}", "was not invalidated") for i in range(2)]
    self.buffers = [WriteBuffer(f"buffer {i}", "was not written back") for i in range(2)]

  def write(self, who: int | None, offset: int, data: bytes) -> None:
    updated = () if who is None else (self.caches[who],)
    self.coherence.write(self.entry, offset, data, None if who is None else self.buffers[who], updated, f"agent {who}")

  def read(self, who: int | None, offset: int, size: int = 4) -> bytes:
    own, caches = (None, ()) if who is None else (self.buffers[who], (self.caches[who],))
    self.coherence.read(self.entry, offset, size, caches, own, f"agent {who}")
    return bytes(self.entry.view[offset:offset + size])

def test_a_copy_from_before_a_write_is_stale_until_it_is_invalidated() -> None:
  system = System()
  system.read(0, 0)
  system.write(None, 0, b"new!")
  with pytest.raises(StaleRead, match=r"agent 0 reads 0x10000 .* which agent None wrote; .* cache 0 was not "
                     r"invalidated"):
    system.read(0, 0)
  system.caches[0].clear()
  assert system.read(0, 0) == b"new!"

def test_lines_that_were_not_read_before_are_not_stale() -> None:
  system = System()
  system.read(0, LINE)
  system.write(None, 0, b"new!")
  assert system.read(0, 0) == b"new!"

def test_other_bytes_of_a_line_do_not_matter() -> None:
  system = System()
  system.read(0, 0)
  system.write(None, 8, b"new!")
  system.read(0, 0)
  with pytest.raises(StaleRead, match="0x10008"): system.read(0, 4, 8)

def test_equal_values_do_not_matter() -> None:
  system = System()
  system.read(0, 0)
  system.write(None, 0, bytes(4))
  system.read(0, 0)

@pytest.mark.parametrize("reader", [None, 1])
def test_a_write_is_seen_elsewhere_only_after_the_write_back(reader: int | None) -> None:
  system = System()
  system.write(0, 4, b"new!")
  assert system.read(0, 4) == b"new!"
  with pytest.raises(StaleRead, match=r"0x10004 .* which agent 0 wrote; .* buffer 0 was not written back"):
    system.read(reader, 4)
  system.coherence.write_back(system.buffers[0])
  assert system.read(reader, 4) == b"new!" and not system.coherence.pending and not system.buffers[0].lines

def test_a_line_read_before_a_write_back_is_stale_after_it() -> None:
  system = System()
  system.write(0, 0, b"new!")
  system.read(1, 64)  # another part of the line: now the cache has all of it
  system.coherence.write_back(system.buffers[0])
  with pytest.raises(StaleRead, match="cache 1"): system.read(1, 0)

def test_two_buffers_share_a_line_byte_by_byte() -> None:
  system = System()
  system.write(0, 0, b"zero")
  system.write(1, 4, b"one!")
  assert system.read(0, 0) == b"zero" and system.read(1, 4) == b"one!"
  for cache in system.caches: cache.clear()
  with pytest.raises(StaleRead, match="buffer 1"): system.read(0, 4)
  with pytest.raises(StaleRead, match="buffer 0"): system.read(None, 0, 4)
  system.coherence.write_back(system.buffers[0])
  assert system.read(None, 0) == b"zero"
  with pytest.raises(StaleRead, match="buffer 1"): system.read(None, 4)

def test_reads_and_writes_over_several_lines() -> None:
  system = System()
  system.write(0, LINE - 2, bytes(range(1, LINE + 5)))
  assert len(system.buffers[0].lines) == 3
  with pytest.raises(StaleRead, match=f"{0x10000 + LINE:#x}"): system.read(None, LINE, 8)
  system.coherence.write_back(system.buffers[0], {1})
  system.read(None, LINE, LINE)
  with pytest.raises(StaleRead): system.read(None, LINE - 2, 2)

def test_what_is_freed_is_forgotten() -> None:
  system = System()
  system.read(0, LINE)
  system.write(0, 0, b"new!")
  system.coherence.forget(0, PAGE)
  drop(system.caches[0], 0, PAGE)
  assert (not system.coherence.pending and not system.buffers[0].lines and not system.caches[0].lines()
          and not system.coherence.writers)

def test_lines_of_addresses() -> None:
  table = PageTable()
  table.map(page(0x10000, physical=0x4000))
  assert lines_between(table, 0x10080, 0x10181) == {0x4080 // LINE, 0x4100 // LINE, 0x4180 // LINE}
  assert lines_between(table, 0, 0x10000) == set()

def test_a_big_write_is_seen_by_buffers_and_caches() -> None:
  coherence, entry = Coherence(), Range(0, Frames(0, 4 * PAGE, memoryview(bytearray(4 * PAGE))), 0, 4 * PAGE, True,
                                        False, False, False, "a buffer")
  cache, buffer = ReadCache("the cache", "is old"), WriteBuffer("the buffer", "is not written back")
  coherence.read(entry, 0, 4, (cache,), buffer, "a wave")
  coherence.write(entry, LINE, b"wave", buffer, (), "a wave")
  coherence.write(entry, 64, b"\x55" * (BIG_WRITE + 64), None, (), "a copy")
  # the buffer has no line of its own any more
  coherence.read(entry, 64, 4096, (), None, "an engine")
  coherence.read(entry, 0, 4, (cache,), buffer, "a wave")
  with pytest.raises(StaleRead, match="a copy wrote.*the cache is old"):
    coherence.read(entry, 64, 4, (cache,), buffer, "a wave")

def test_an_engine_sees_pending_bytes_of_part_of_a_line_only_where_it_reads() -> None:
  system = System()
  system.write(0, LINE + 16, b"new!")
  assert system.read(None, LINE, 16) == bytes(16) and system.read(None, LINE + 20, LINE) == bytes(LINE)
  with pytest.raises(StaleRead, match=f"{0x10000 + LINE + 16:#x}"): system.read(None, 3, 2 * LINE)

def test_host_writes_merge_and_are_found() -> None:
  writes = HostWrites("card 0")
  for start, end in ((10, 20), (30, 40), (20, 25), (5, 8), (24, 31)): writes.add(start, end)
  assert list(zip(writes.starts, writes.ends)) == [(5, 8), (10, 40)]
  assert (writes.first(0, 5) is None and writes.first(0, 6) == 5 and writes.first(8, 10) is None
          and writes.first(39, 99) == 39)
  assert writes.first(40, 99) is None
  writes.flush()
  assert writes.first(0, 99) is None

def test_host_writes_must_be_flushed() -> None:
  system = System()
  writes = HostWrites("card 0")
  system.coherence.host_writes.append(writes)
  writes.add(8, 12)
  system.read(0, 0, 8)
  with pytest.raises(StaleRead, match=r"0x1000a .*through the bar of card 0.*HDP_FLUSH_REQ"): system.read(None, 10, 4)
  writes.flush()
  system.read(None, 10, 4)

def test_a_line_is_copied_when_somebody_else_writes_it() -> None:
  """Until then the cache has it as memory does, and translated code sees that in the map."""
  system = System()
  system.read(0, 0)
  system.read(0, LINE)
  one, other = system.caches
  assert one.lines() == [0, 1] and not one.copies and one.state(0) == SAME and other.state(0) == ABSENT
  system.write(0, 0, b"mine")
  assert one.state(0) == SAME and not one.copies, "a write through the cache changes what it has"
  system.coherence.write_back(system.buffers[0])
  system.read(1, 0)
  system.write(1, 4, b"here")
  assert one.state(0) == COPY and one.copies[0][:8] == b"mine\0\0\0\0" and other.state(0) == SAME
  one.clear()
  assert one.state(0) == ABSENT and not one.copies and not one.lines()

def test_lines_that_wait_for_one_buffer_and_for_several() -> None:
  system = System()
  dirty = system.coherence.dirty_of(0)
  system.write(0, 0, b"zero")
  assert dirty[0] == system.buffers[0].number != 0
  system.write(1, 8, b"one!")
  assert dirty[0] == MANY
  system.coherence.write_back(system.buffers[0])
  assert dirty[0] == system.buffers[1].number
  system.coherence.write_back(system.buffers[1])
  assert dirty[0] == 0

def test_big_writes_leave_copies_too() -> None:
  system = System()
  system.read(0, 0)
  system.coherence.write(system.entry, 0, bytes(b"x" * PAGE), None, (),
                         "an engine") if BIG_WRITE < PAGE else system.write(None, 0, b"x" * PAGE)
  assert system.caches[0].state(0) == COPY
  with pytest.raises(StaleRead): system.read(0, 0)

def test_nobody_has_a_line_any_more() -> None:
  system = System()
  system.read(0, 0)
  system.caches[0].clear()
  assert system.coherence.seen[0][0] == 1
  system.write(1, 0, b"new!")
  assert system.coherence.seen[0][0] == 0

def test_memory_of_the_program_itself_is_always_copied() -> None:
  """Its writes are not observed."""
  system = System()
  system.entry = page(physical=FOREIGN + PAGE)
  system.read(0, 0)
  assert system.caches[0].state((FOREIGN + PAGE) // LINE) == COPY
  system.entry.view[:4] = b"new!"
  with pytest.raises(StaleRead): system.read(0, 0)
