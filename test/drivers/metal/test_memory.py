"""Buffers: one memory of processor and GPU, limits, parts."""
import pytest

from tinyhw.errors import DeviceError, OutOfMemory
from test.drivers.metal.conftest import Opener

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
  with pytest.raises(DeviceError, match="cannot use memory at a given address"): device.allocator.external(4096, 16)
