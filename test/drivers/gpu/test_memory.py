"""Buffers: bytes to the GPU and back; memory that is cut, freed and shared."""
import ctypes
import errno

import pytest
from amd.box import AMDBox, Opener

from tinyhw.device import Buffer, BufferOptions, Device
from tinyhw.drivers import amd
from tinyhw.drivers.amd import kfd
from tinyhw.drivers.gpu.memory import STAGE_BYTES, GpuBuffer
from tinyhw.drivers.linux import files
from tinyhw.dtype import dtypes
from tinyhw.errors import DeviceError, OutOfMemory

@pytest.mark.parametrize("size", (1, 255, 256, 4096, STAGE_BYTES, STAGE_BYTES + 1, 3 * STAGE_BYTES - 7))
def test_bytes_come_back(opened: Opener, size: int) -> None:
  _, device = opened("gfx1100")
  data, out = bytes(i * 7 & 0xFF for i in range(251)) * (size // 251 + 1), bytearray(size)
  opaque = device.allocator.alloc(size)
  device.allocator.copyin(opaque, memoryview(data)[:size])
  device.allocator.copyout(memoryview(out), opaque)
  assert out == data[:size]

def test_small_buffers_share_an_allocation_and_do_not_overlap(opened: Opener) -> None:
  box, device = opened("gfx1100")
  before = len(box.memory)
  parts = [device.allocator.alloc(size) for size in (1, 100, 300, 1000)]
  assert len(box.memory) == before + 1 and all(part.address % 256 == 0 for part in parts)
  ends = sorted((part.address, part.address + part.size) for part in parts)
  assert all(end <= start for (_, end), (start, _) in zip(ends, ends[1:]))

def test_a_freed_buffer_serves_again_and_a_big_one_goes_back_in_order(opened: Opener) -> None:
  box, device = opened("gfx1100")
  first = device.allocator.alloc(1000)
  address = first.address
  device.allocator.free(first)
  assert device.allocator.alloc(1000).address == address
  big = device.allocator.alloc(4 << 20)
  before = len(box.memory)
  device.allocator.free(big)
  device.allocator.free_cache()
  assert len(box.memory) == before, "something may still use it"
  device.synchronize()
  assert len(box.memory) == before - 1

def test_memory_that_is_freed_is_given_back_before_there_is_none(opened: Opener) -> None:
  box, device = opened("gfx1100")
  kept = device.allocator.alloc(4 << 20)
  device.allocator.free(kept)
  for nth in (1, 2): box.fail("AllocMemoryOfGpu", box.seen["AllocMemoryOfGpu"] + nth, errno.ENOMEM)
  assert isinstance(device.allocator.alloc(8 << 20), GpuBuffer) and not device.retired

def test_no_memory_is_told(opened: Opener) -> None:
  box, device = opened("gfx1100")
  for nth in range(1, 5): box.fail("AllocMemoryOfGpu", box.seen["AllocMemoryOfGpu"] + nth, errno.ENOMEM)
  with pytest.raises(OutOfMemory, match="cannot allocate 8.00 MB"): device.allocator.alloc(8 << 20)
  with pytest.raises(OutOfMemory, match="that the device has"): device.allocator.alloc(2 << 30)

def test_another_refusal_is_its_own_error(opened: Opener) -> None:
  box, device = opened("gfx1100")
  box.fail("AllocMemoryOfGpu", box.seen["AllocMemoryOfGpu"] + 1, errno.EINVAL)
  with pytest.raises(files.Refused, match="EINVAL.*Resizable BAR"): device.allocator.alloc(8 << 20)

def test_a_view_is_a_part(opened: Opener) -> None:
  _, device = opened("gfx1100")
  whole = device.allocator.alloc(1000)
  part = device.allocator.offset(whole, 10, 256)
  assert part.address == device.allocator.address(whole) + 256 and part.memory is whole.memory

def test_memory_of_the_program_is_used_in_place(opened: Opener) -> None:
  box, device = opened("gfx1100")
  own = files.map_memory(2 * files.PAGE)
  ctypes.memmove(own.address + 100, b"in place", 8)
  pinned = device.allocator.external(own.address + 100, 8)
  out = bytearray(8)
  device.allocator.copyout(memoryview(out), pinned)
  assert out == b"in place" and pinned.address % files.PAGE == 100
  device.allocator.copyin(pinned, memoryview(b"and back"))
  device.synchronize()
  assert ctypes.string_at(own.address + 100, 8) == b"and back"
  before = len(box.memory)
  del pinned
  device.synchronize()
  assert len(box.memory) == before - 1
  own.close()

@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> AMDBox:
  box = AMDBox("gfx1100", count=2)
  monkeypatch.setattr(files, "COMPUTER", box)
  return box

def test_gpus_copy_from_each_other_without_the_host(two: AMDBox) -> None:
  first, second = (amd.open(i, lambda name: None) for i in range(2))  # type: ignore[arg-type,return-value]
  a, b = first.allocator.alloc(1000), second.allocator.alloc(1000)
  first.allocator.copyin(a, memoryview(bytes(range(250)) * 4))
  two.packets.clear()
  assert second.allocator.transfer(b, a, 1000)
  assert two.packets.count("sdma COPY_LINEAR") == 1 and two.memory[b.memory.handle][1] == [1001, 1000]
  out = bytearray(1000)
  second.allocator.copyout(memoryview(out), b)
  assert out == bytes(range(250)) * 4
  assert not second.allocator.transfer(b, b"bytes", 5)
  c = second.allocator.alloc(4 << 20)
  two.fail("MapMemoryToGpu", two.seen["MapMemoryToGpu"] + 1, errno.EINVAL)
  assert not second.allocator.transfer(c, a, 1000), "then it goes by the host"
  for device in (first, second): device.close()
  kfd.forget(two)

def test_buffers_copy_from_each_other(two: AMDBox, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(Device, "_opened", {})
  source = Buffer("AMD", 100, dtypes.uint8, initial_value=bytes(range(100)))
  two.packets.clear()
  target = Buffer("AMD:1", 100, dtypes.uint8).copy_from(source)
  assert two.packets.count("sdma COPY_LINEAR") == 1 and bytes(target.as_memoryview()) == bytes(range(100))
  assert (target.get_buf("AMD").address == target._buf.address and two.memory[target._buf.memory.handle][1]
          == [1001, 1000])
  del source, target
  for device in list(Device._opened.values()): device.close()
  kfd.forget(two)

def test_memory_of_another_kind_of_device_cannot_be_mapped(opened: Opener) -> None:
  _, device = opened("gfx1100")
  other = Buffer("PYTHON", 4, dtypes.uint8, options=BufferOptions()).allocate()
  with pytest.raises(DeviceError, match="cannot map memory of PYTHON"): device.allocator.map(other)
