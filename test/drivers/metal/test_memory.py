"""Buffers: one memory of processor and GPU, limits, parts, memory of the program, interrupts."""
import mmap
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

import pytest

from tinyhw.device import Launch
from tinyhw.errors import DeviceError, OutOfMemory
from tinyhw.helpers import mv_address
from test.drivers.metal.conftest import Opener, code
from test.drivers.metal.test_device import SignalAtPlace

def test_contents(mac: Opener) -> None:
  computer, device = mac()
  a = device.allocator.alloc(100)
  device.allocator.copyin(a, memoryview(b"x" * 100))
  device.allocator.copyin(device.allocator.offset(a, 4, 50), memoryview(bytearray(b"abcd")))
  out = bytearray(100)
  device.allocator.copyout(memoryview(out), a)
  assert out == b"x" * 50 + b"abcd" + b"x" * 46 and device.allocator.address(a) == a.address
  device.allocator.free(a)
  assert computer.census()["MTLBuffer"] == 1   # kept for the next one of its size
  device.allocator.free_cache()
  assert "MTLBuffer" not in computer.census()

def test_limits(mac: Opener) -> None:
  computer, device = mac()
  assert device.allocator.limit == computer.gpus[0].chip.memory_bytes
  with pytest.raises(OutOfMemory, match="METAL: cannot allocate"): device.allocator.alloc(3 << 30)
  computer.gpus[0].refused = {"newBuffer"}
  with pytest.raises(OutOfMemory, match="other programs may hold the rest"): device.allocator.alloc(1000)

def test_memory_of_the_program_is_used_in_place(mac: Opener) -> None:
  computer, device = mac()
  pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
  mine = memoryview(pages)[mmap.PAGESIZE - 64:mmap.PAGESIZE + 64].cast("i")
  mine[:] = memoryview(bytearray(128)).cast("i")
  buffer = device.allocator.external(mv_address(mine), 128)
  assert computer.census()["MTLBuffer"] == 1 and buffer.offset == mmap.PAGESIZE - 64 and buffer.size == 128
  kernel = device.load(code())
  for k in range(3):
    mine[0] = 10 * k
    device.submit([Launch(kernel, [buffer], [1], 8)])
    device.synchronize()
    assert mine[0] == 10 * k + 1 and mine[1] == k + 1
  assert bytes(pages[:mmap.PAGESIZE - 64]) == bytes(mmap.PAGESIZE - 64)   # the GPU has only written what it computed
  del buffer
  device.synchronize()
  assert "MTLBuffer" not in computer.census()
  computer.gpus[0].refused = {"newBuffer"}
  with pytest.raises(DeviceError, match="in place: Metal refuses the pages; copy the data with Tensor"):
    device.allocator.external(mv_address(mine), 128)

def test_memory_of_a_buffer_is_a_part_of_it(mac: Opener) -> None:
  computer, device = mac()
  a = device.allocator.alloc(100)
  part = device.allocator.external(a.address + 16, 8)
  assert (part.handle, part.offset, part.size) == (a.handle, 16, 8) and computer.census()["MTLBuffer"] == 1
  seen = device.allocator.as_memoryview(a)
  device.allocator.copyin(part, memoryview(b"abcdefgh"))
  assert bytes(seen[16:24]) == b"abcdefgh"

@pytest.mark.skipif(sys.version_info < (3, 11), reason="older Pythons run handlers at other places")
@pytest.mark.parametrize("way", ["allocated", "of the program", "freed"])
def test_an_interrupt_at_each_place_leaks_no_buffer(mac: Opener, way: str) -> None:
  computer, device = mac()
  allocator, pages = device.allocator, mmap.mmap(-1, 4 * mmap.PAGESIZE)
  address, met = mv_address(memoryview(pages)), set[tuple[CodeType, int]]()
  make: Callable[[], Any] = ((lambda: allocator.external(address, 100)) if way == "of the program"
                             else (lambda: allocator._alloc(256)))
  while True:
    interrupt = SignalAtPlace(met)
    before = computer.census().get("MTLBuffer", 0)
    buffer = make() if way == "freed" else None
    try:
      with interrupt:
        if way == "freed": allocator._free(buffer, 256)
        else: buffer = make()
      assert not interrupt.has_come, f"{len(met)}: the interrupt was lost"
      break
    except KeyboardInterrupt: pass
    del buffer
    assert computer.census().get("MTLBuffer", 0) == before == 0, str(list(met)[-1])
  assert len(met) > 10
