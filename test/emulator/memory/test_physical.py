"""tinyhw/emulator/memory/physical.py: pages at several addresses, pages that are given back, and written bytes."""
import ctypes
import os
from collections.abc import Iterator

import pytest

from tinyhw.drivers.linux.files import READ_WRITE, map_memory
from tinyhw.emulator.memory.physical import FOREIGN, PAGE, Physical

@pytest.fixture
def memory() -> Iterator[Physical]:
  made = Physical()
  yield made
  made.close()

def test_the_program_and_a_device_see_the_same_pages(memory: Physical) -> None:
  frames = memory.allocate(2 * PAGE)
  reserved = map_memory(2 * PAGE, prot=0)
  mapping = memory.map(frames, PAGE, PAGE, reserved.address, READ_WRITE)
  assert mapping.address == reserved.address
  mapping.store64(8, 0x1234)
  assert frames.view[PAGE + 8:PAGE + 10] == b"\x34\x12"
  frames.view[PAGE:PAGE + 4] = b"abcd"
  assert mapping.load32(0) == int.from_bytes(b"abcd", "little")
  mapping.close()
  reserved.close()
  memory.free(frames)

def test_bytes_that_no_buffer_has(memory: Physical) -> None:
  frames = memory.allocate(PAGE, cleared=False)
  assert frames.outside(0, PAGE) is None, "nobody has told of buffers"
  frames.outline(0, 0, PAGE)
  frames.outline(512, 100, 768)
  frames.outline(2048, 256, 512)
  assert (frames.outside(512, 100) is None and frames.outside(511, 1) == 511 and frames.outside(600, 20) == 612
          and frames.outside(0, PAGE) == 0)
  assert frames.buffers_near(700) == [(512, 612), (2048, 2304)]
  assert frames.buffers_near(0) == [(512, 612)] and frames.buffers_near(PAGE - 1) == [(2048, 2304)]
  frames.mark(512, 100)
  assert frames.is_written(512, 100) and frames.buffers_near(700) == [(512, 612), (2048, 2304)]
  frames.outline(PAGE - 96, 96, 96)
  assert frames.buffers_near(3000) == [(2048, 2304), (PAGE - 96, PAGE)]
  memory.free(frames)
  cleared = memory.allocate(PAGE)
  cleared.outline(0, 0, PAGE)
  assert cleared.outside(0, PAGE) is None, "memory that is not watched"
  memory.free(cleared)

def test_freed_pages_are_zero_again_and_holes_are_used(memory: Physical) -> None:
  first, second, third = (memory.allocate(PAGE) for _ in range(3))
  first.view[:] = second.view[:] = b"\xff" * PAGE
  memory.free(first)
  memory.free(second)
  assert memory.free_ranges == [(0, 2 * PAGE)]
  again = memory.allocate(2 * PAGE)
  assert again.physical == 0 and bytes(again.view) == bytes(2 * PAGE)
  memory.free(third)
  memory.free(again)
  assert memory.free_ranges == [(0, 3 * PAGE)] and memory.allocated == 0

def test_the_file_goes_with_the_memory() -> None:
  made = Physical()
  number = made.file
  os.fstat(number)
  del made
  with pytest.raises(OSError): os.fstat(number)

def test_sizes_are_whole_pages(memory: Physical) -> None:
  assert memory.allocate(1).size == PAGE and memory.allocated == PAGE

def test_memory_of_the_program_is_used_in_place(memory: Physical) -> None:
  block = (ctypes.c_ubyte * 16)()
  frames = memory.foreign(ctypes.addressof(block), 16)
  frames.view[3] = 7
  assert block[3] == 7 and frames.physical == FOREIGN + ctypes.addressof(block) and frames.is_written(0, 16)
  memory.free(frames)
  assert memory.allocated == 0

def test_pages_that_a_traceback_sees_can_be_given_back(memory: Physical) -> None:
  frames = memory.allocate(PAGE, cleared=False)
  seen = frames.view[8:16]
  frames.view[8:16] = b"the past"
  memory.free(frames)
  assert memory.allocated == 0 and bytes(seen) == bytes(8)

def test_what_was_written_is_known_by_the_byte(memory: Physical) -> None:
  frames = memory.allocate(PAGE, cleared=False)
  frames.mark(8, 4)
  assert (frames.is_written(8, 4) and frames.is_written(9, 2) and not frames.is_written(8, 5)
          and not frames.is_written(7, 1))
  assert memory.allocate(PAGE).is_written(0, PAGE)

def test_pages_are_counted_for_who_holds_them(memory: Physical) -> None:
  first, second = memory.allocate(PAGE, holder="one"), memory.allocate(2 * PAGE, holder="two")
  assert (memory.held["one"], memory.held["two"], memory.allocated) == (PAGE, 2 * PAGE, 3 * PAGE)
  memory.free(first)
  assert (memory.held["one"], memory.held["two"]) == (0, 2 * PAGE) and second.holder == "two"
