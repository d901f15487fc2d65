"""Allocators: limits, messages, the pool. On the devices that open: test_device.py."""
import threading
from typing import Any

import pytest

from tinyhw.device_interface import VECTOR_BYTES, Allocator, LRUAllocator, show_bytes
from tinyhw.errors import DeviceError, OutOfMemory

class FakeAllocator(LRUAllocator):
  """Memory that the host does not see. Bytearrays behind numbers."""
  def _alloc(self, size: int) -> bytearray: return bytearray(size)
  def _copyin(self, dest: bytearray, src: memoryview) -> None: dest[:len(src)] = src
  def _copyout(self, dest: memoryview, src: bytearray) -> None: dest[:] = src[:len(dest)]
  def offset(self, opaque: bytearray, size: int, offset: int) -> Any: return memoryview(opaque)[offset:offset + size]

def test_limit_and_message() -> None:
  allocator = FakeAllocator("FAKE", limit=1000)
  held = allocator.alloc(600)
  message = (r"FAKE: cannot allocate 401 bytes: 1 live buffers hold 600 bytes of 1000 bytes that the device has; drop "
             r"references")
  with pytest.raises(OutOfMemory, match=message): allocator.alloc(401)
  allocator.free(held)
  assert allocator.cached and len(allocator.alloc(900)) >= 900 and not allocator.cached, "the pool makes room"

def test_rounding() -> None:
  for size in [*range(1, 3000), 10**6, 10**9 + 7]:
    rounded = LRUAllocator.rounded(size)
    assert (size <= rounded <= max(64, size * 1.25 + 64) and rounded % 64 == 0 and LRUAllocator.rounded(rounded)
            == rounded)

def test_foreign_memory_is_aligned_as_far_as_accesses_reach() -> None:
  allocator = FakeAllocator("FAKE")
  assert allocator.is_aligned(3, 100)
  allocator.alignment = VECTOR_BYTES
  assert allocator.is_aligned(32, 100) and not allocator.is_aligned(24, 100) and not allocator.is_aligned(24, 16)
  assert allocator.is_aligned(24, 8) and allocator.is_aligned(20, 7) and allocator.is_aligned(5, 1)
  assert allocator.is_aligned(5, 0) and not allocator.is_aligned(20, 8)

def test_show_bytes() -> None:
  assert [show_bytes(n) for n in (5, 1536, 3 << 30)] == ["5 bytes", "1.50 KB (1536 bytes)",
                                                         "3.00 GB (3221225472 bytes)"]

def test_plain_allocators_keep_nothing() -> None:
  class Plain(Allocator):
    def _alloc(self, size: int) -> bytearray | None: return bytearray(size) if size < 100 else None
  allocator = Plain("PLAIN")
  found = allocator.alloc(10)
  message = "PLAIN: cannot allocate 200 bytes: 1 live buffers hold 10 bytes, and the system gives no more"
  with pytest.raises(OutOfMemory, match=message): allocator.alloc(200)
  allocator.free(found)
  with pytest.raises(DeviceError, match="freed twice"): allocator.free(found)

def test_finalizers_wait_for_no_lock() -> None:
  """They may run under a lock for which the holder of the allocator's lock is waiting."""
  allocator = FakeAllocator("FAKE", limit=1000)
  first, second = allocator.alloc(600), allocator.alloc(300)
  held, go_on = threading.Event(), threading.Event()
  def hold() -> None:
    with allocator.lock:
      held.set()
      go_on.wait()
  holder = threading.Thread(target=hold)
  holder.start()
  held.wait()
  allocator.drop(first)  # returns
  assert allocator.held == 900
  go_on.set()
  holder.join()
  assert len(allocator.alloc(700)) >= 700, "given back before it is asked whether there is room"
  allocator.drop(second)
  assert allocator.held == 700, "at once where nobody holds the lock"
