"""Buffers on an adapter: bytes there and back at any offset, too large ones."""
import random
from typing import Any

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

def test_an_interrupted_copy_leaves_no_mapped_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
  device, out = adapter.opened(), bytearray(64)
  whole = device.allocator.alloc(64)
  device.allocator.copyin(whole, memoryview(bytes(range(64))))
  wait = device._wait_until
  def interrupted(*arguments: Any) -> None:
    if device.flying[-1].work[0][0].startswith("copy"): raise KeyboardInterrupt
    wait(*arguments)
  monkeypatch.setattr(device, "_wait_until", interrupted)
  with pytest.raises(KeyboardInterrupt): device.allocator.copyout(memoryview(out), whole)
  monkeypatch.undo()
  device.allocator.copyout(memoryview(out), whole)
  assert out == bytes(range(64))
  device.allocator.free(whole)

def test_what_is_above_the_binding_limit_is_refused_by_its_size() -> None:
  allocator = adapter.opened().allocator
  with pytest.raises(OutOfMemory, match="WEBGPU: cannot allocate .*: a kernel of this adapter is given at most .* in "
                     "one buffer; use smaller tensors, or a smaller batch"):
    allocator.alloc(allocator.most_bytes + 4)
  with pytest.raises(DeviceError, match="WEBGPU cannot use memory at a given address"): allocator.external(0, 16)
