"""Buffers of a Metal device: an MTLBuffer that processor and GPU share, and the offset of the first byte in it.

Metal does not track hazards of these buffers; device.py orders all work. The processor touches the contents only when
no work is under way.
"""
from __future__ import annotations
import ctypes
from typing import TYPE_CHECKING

from tinyhw.device import LRUAllocator
from tinyhw.drivers.metal.facts import MetalFacts
if TYPE_CHECKING: from tinyhw.drivers.metal.device import MetalDevice

SHARED_UNTRACKED = 0x100    # MTLResourceStorageModeShared, MTLResourceHazardTrackingModeUntracked

class MetalMemory:
  """A buffer, or a part of one. handle: of the MTLBuffer; address: of the first byte, as the processor sees it; offset,
  size: in bytes."""
  __slots__ = ("address", "device", "handle", "offset", "size", "__weakref__")
  def __init__(self, device: MetalDevice, handle: int, address: int, size: int, offset: int = 0):
    self.device, self.handle, self.address, self.size, self.offset = device, handle, address, size, offset

  def __repr__(self) -> str: return f"<MetalMemory {self.size} bytes of {self.device.name}, at {self.offset}>"

class MetalAllocator(LRUAllocator):
  """The memory of one device."""
  def __init__(self, device: MetalDevice, about: MetalFacts):
    super().__init__(device.name, limit=about.memory_bytes)
    self.device, self.most_bytes = device, about.most_bytes

  def _alloc(self, size: int) -> MetalMemory | None:
    if size > self.most_bytes: return None
    device = self.device
    with device.lock:
      device.check()
      handle = device.objc.send(device.about.handle, "newBufferWithLength:options:", size, SHARED_UNTRACKED)
      if not handle: return None
      return MetalMemory(device, handle, device.objc.send(handle, "contents"), size)

  def _free(self, opaque: MetalMemory, size: int) -> None:
    """Release a buffer. A command buffer that uses it retains it until it is done."""
    self.device.release(opaque.handle)

  def _copyin(self, dest: MetalMemory, src: memoryview) -> None:
    data = src.cast("B")
    if data.readonly: memory = (ctypes.c_char * data.nbytes).from_buffer_copy(data)
    else: memory = (ctypes.c_char * data.nbytes).from_buffer(data)
    with self.device.lock:
      self.device.synchronize()
      ctypes.memmove(dest.address, memory, data.nbytes)

  def _copyout(self, dest: memoryview, src: MetalMemory) -> None:
    memory = (ctypes.c_char * dest.nbytes).from_buffer(dest.cast("B"))
    with self.device.lock:
      self.device.synchronize()
      ctypes.memmove(memory, src.address, dest.nbytes)

  def address(self, opaque: MetalMemory) -> int: return opaque.address

  def offset(self, opaque: MetalMemory, size: int, offset: int) -> MetalMemory:
    return MetalMemory(self.device, opaque.handle, opaque.address + offset, size, opaque.offset + offset)
