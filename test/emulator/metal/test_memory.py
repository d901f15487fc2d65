"""Memory that program and GPU share: what one of them sees of the other, and when."""
import mmap
import random

import pytest

from tinyhw.emulator.errors import DataRace
from tinyhw.emulator.metal.memory import BLOCK, ProgramMemory, SharedMemory, changed_blocks
from tinyhw.helpers import mv_address

def made(size: int = 100) -> SharedMemory: return SharedMemory("buffer 1", size, random.Random(0))

def test_bytes_of_the_program_reach_the_gpu_by_comparison() -> None:
  memory = made()
  assert memory.address % BLOCK == 0 and not any(memory.written) and bytes(memory.host) == memory.gpu
  memory.host[40] = 1
  memory.take_writes()
  assert memory.gpu[40] == 1 and memory.written == bytes(32) + b"\1" * 16 + bytes(52)
  memory.host[:] = bytes(100)
  memory.take_writes()
  assert memory.gpu == bytes(100) and all(memory.written)

def test_the_program_sees_results_when_they_are_shown() -> None:
  memory = made()
  memory.gpu[:4] = b"abcd"
  assert bytes(memory.host[:4]) != b"abcd"
  memory.show()
  assert bytes(memory.host[:4]) == b"abcd" and memory.seen == memory.gpu

def test_writes_of_the_program_while_the_gpu_uses_it() -> None:
  memory = made()
  memory.users.append("command buffer 3")
  memory.take_writes()
  memory.host[0] = 0
  with pytest.raises(DataRace, match="wrote to buffer 1, which command buffer 3 uses; ask for its status"):
    memory.take_writes()
  with pytest.raises(DataRace, match="while the GPU used it; wait until its work is done"): memory.show()

def test_ended_memory_is_garbage() -> None:
  memory = made()
  memory.close()
  assert set(memory.host) == {0x5A}

def test_changed_blocks() -> None:
  one, two = bytearray(9000), bytearray(9000)
  two[17] = two[31] = two[4096] = two[8999] = 1
  assert list(changed_blocks(one, two)) == [(16, 32), (4096, 4112), (8992, 9000)]

SIZE = mmap.PAGESIZE

@pytest.fixture
def page() -> memoryview: return memoryview(mmap.mmap(-1, 2 * SIZE))

def of_program(page: memoryview, everything: list[ProgramMemory], pages: int = 1) -> ProgramMemory:
  return ProgramMemory("buffer 1", mv_address(page), pages * SIZE, everything)

def test_pages_of_the_program_change_at_any_time(page: memoryview) -> None:
  memory = of_program(page, [])
  memory.users.append("command buffer 1")
  page[0] = 1                  # of something else in this page
  memory.gpu[5] = 2
  memory.show()
  assert page[:6].tolist() == [1, 0, 0, 0, 0, 2] and memory.gpu[0] == 0
  memory.take_writes()
  assert memory.gpu[:6] == bytes([1, 0, 0, 0, 0, 2]) and all(memory.written)

def test_a_byte_that_both_write_is_a_race(page: memoryview) -> None:
  memory = of_program(page, [])
  memory.gpu[5], page[5] = 2, 3
  with pytest.raises(DataRace, match="the program and the GPU wrote to buffer 1, and nothing orders the two"):
    memory.show()
  page[5] = 2
  memory.show()

def test_buffers_with_pages_in_common_are_one_memory(page: memoryview) -> None:
  everything: list[ProgramMemory] = []
  one, two = of_program(page, everything, 2), of_program(page[SIZE:], everything)
  one.gpu[SIZE + 8:SIZE + 12] = b"abcd"
  one.has_run([SIZE + 8], 4)
  assert two.gpu[8:12] == b"abcd" and page[SIZE + 8] == 0
  three = of_program(page[SIZE:], everything)
  assert three.gpu[8:12] == b"abcd"
  one.show()
  assert bytes(page[SIZE + 8:SIZE + 12]) == b"abcd"
  page[SIZE + 8] = 0           # as it was before: a change nevertheless
  two.take_writes()
  assert two.gpu[8:12] == b"\0bcd"
  for memory in (one, two, three): memory.close()
  assert not everything
