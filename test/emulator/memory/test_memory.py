"""tinyhw/emulator/memory/memory.py: memory without devices."""
import ctypes

import pytest

from tinyhw.emulator.errors import PageFault
from tinyhw.emulator.memory.memory import VECTOR, FlatMemory

def test_regions_are_read_and_written_at_their_addresses() -> None:
  memory, content = FlatMemory(), bytearray(range(16))
  memory.add(0x1000, content)
  memory.store(0x1003, b"\xaa\xbb")
  assert memory.load(0x1002, 4) == bytes([2, 0xaa, 0xbb, 5]) and content[3] == 0xaa
  assert memory.gather([0x100f, 0x1000], 1) == [b"\x0f", b"\x00"]
  memory.scatter([0x1000, 0x1000], [b"\x01", b"\x02"])
  assert memory.load(0x1000, 1) == b"\x02"

def test_windows_onto_regions() -> None:
  memory = FlatMemory()
  memory.add(0x1000, bytearray(16))
  assert [memory.open_window(address, VECTOR, True) for address in (0x1010, 0x1004, 0x1008)] == [False, True, False]
  assert memory.table.count == 1 and memory.windows() == (memory.table.address,) * 2

def test_host_memory_is_where_it_is() -> None:
  memory, block = FlatMemory(), (ctypes.c_uint32 * 4)(1, 2, 3, 4)
  memory.add_host(ctypes.addressof(block), 16)
  memory.store(ctypes.addressof(block) + 4, (7).to_bytes(4, "little"))
  assert list(block) == [1, 7, 3, 4]

def test_atomic_gives_the_old_word_and_wraps() -> None:
  memory = FlatMemory()
  memory.add(0, bytearray(b"\xff" * 8))
  assert memory.atomic(0, 4, lambda word: word + 2) == 0xffffffff
  assert memory.load(0, 8) == (1).to_bytes(4, "little") + b"\xff" * 4

@pytest.mark.parametrize("address,size,fault", [(0xfff, 1, 0xfff), (0x100f, 2, 0x1010), (0x1010, 1, 0x1010)])
def test_outside_is_a_fault(address: int, size: int, fault: int) -> None:
  memory = FlatMemory()
  memory.add(0x1000, bytearray(16))
  with pytest.raises(PageFault, match=f"{fault:#x}") as caught: memory.load(address, size)
  assert not caught.value.write
  with pytest.raises(PageFault) as caught: memory.store(address, bytes(size))
  assert caught.value.write and caught.value.address == fault
