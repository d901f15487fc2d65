"""Buffers on an adapter: bytes there and back at any offset, too large ones."""
import random

import pytest
from webgpu import adapter

from tinyhw.errors import DeviceError, OutOfMemory

def test_bytes_there_and_back_at_any_offset() -> None:
  allocator, draw, wanted = adapter.opened().allocator, random.Random(1), bytearray(range(100))
  whole = allocator.alloc(100)
  allocator.copyin(whole, memoryview(wanted))
  for _ in range(40):
    start = draw.randrange(100)
    size = draw.randrange(1, 101 - start)
    data = draw.randbytes(size)
    wanted[start:start + size] = data
    allocator.copyin(allocator.offset(whole, size, start), memoryview(data))
    out = bytearray(size)
    allocator.copyout(memoryview(out), allocator.offset(whole, size, start))
    assert out == data
  out = bytearray(100)
  allocator.copyout(memoryview(out), whole)
  assert out == wanted
  allocator.free(whole)

def test_more_than_one_piece() -> None:
  device = adapter.opened()
  data = random.Random(2).randbytes((33 << 20) + 3)
  whole, out = device.allocator.alloc(len(data)), bytearray(len(data))
  device.allocator.copyin(whole, memoryview(data))
  device.allocator.copyout(memoryview(out), whole)
  assert out == data
  device.allocator.free(whole)
  device.allocator.free_cache()

def test_what_is_above_the_binding_limit_is_refused_by_its_size() -> None:
  allocator = adapter.opened().allocator
  with pytest.raises(OutOfMemory, match="WEBGPU: cannot allocate .*: a kernel of this adapter is given at most .* in "
                     "one buffer; use smaller tensors, or a smaller batch"):
    allocator.alloc(allocator.most_bytes + 4)
  with pytest.raises(DeviceError, match="WEBGPU cannot use memory at a given address"): allocator.external(0, 16)
