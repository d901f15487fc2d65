"""Buffers: bytes there and back, parts, memory of the program, too large ones."""
import ctypes

import pytest
from opencl.fake_opencl import facts

from tinyhw.autogen import opencl as cl
from tinyhw.errors import DeviceError, OutOfMemory
from test.drivers.opencl.conftest import Opener

def test_bytes_there_and_back(fake: Opener) -> None:
  library, device = fake()
  allocator, data, out = device.allocator, bytes(range(256)) * 4, bytearray(1024)
  a = allocator.alloc(1024)
  allocator.copyin(a, memoryview(data))
  allocator.copyout(memoryview(out), a)
  part = bytearray(8)
  allocator.copyout(memoryview(part), allocator.offset(allocator.offset(a, 512, 100), 8, 20))
  assert out == data and part == data[120:128]
  allocator.copyin(allocator.offset(a, 8, 1000), memoryview(bytearray(b"12345678")))
  allocator.copyout(memoryview(out), a)
  assert out[1000:1008] == b"12345678"
  allocator.free(a)
  allocator.free_cache()
  assert "memory" not in library.objects.values()

def test_memory_of_the_program_is_used_in_place_by_processors_only(fake: Opener) -> None:
  library, device = fake(facts(kind=cl.DEVICE_TYPE_CPU))
  mine, out = (ctypes.c_char * 16)(*b"0123456789abcdef"), bytearray(16)
  buffer = device.allocator.external(ctypes.addressof(mine), 16)
  mine[0] = b"x"
  device.allocator.copyout(memoryview(out), buffer)
  assert out == b"x123456789abcdef"
  del buffer
  device.synchronize()
  assert "memory" not in library.objects.values()
  _, device = fake(facts())
  with pytest.raises(DeviceError, match="OPENCL cannot use memory at a given address; copy the data with Tensor"):
    device.allocator.external(ctypes.addressof(mine), 16)

def test_too_much(fake: Opener) -> None:
  library, device = fake()
  with pytest.raises(OutOfMemory, match="OPENCL: cannot allocate 512.00 MB"): device.allocator.alloc(1 << 29)
  with pytest.raises(OutOfMemory, match="that the device has"): device.allocator.alloc(1 << 31)
  library.failing["clCreateBuffer"] = (1, -4)
  with pytest.raises(OutOfMemory): device.allocator.alloc(100)
