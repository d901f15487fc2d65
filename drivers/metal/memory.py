"""Buffers of a Metal device: an MTLBuffer that processor and GPU share, and the offset of the first byte in it.

Metal does not track hazards of these buffers; device.py orders all work. The processor touches the contents only when
no work is under way. Memory of the program becomes a buffer by its whole pages, without a copy.
"""
from __future__ import annotations
import ctypes
import mmap
from typing import TYPE_CHECKING

from tinyhw.device import VECTOR_BYTES, LRUAllocator
from tinyhw.drivers.gpu.signals import SIGNALS
from tinyhw.drivers.metal.facts import MetalFacts
from tinyhw.errors import DeviceError
if TYPE_CHECKING: from tinyhw.drivers.metal.device import MetalDevice

SHARED_UNTRACKED = 0x100    # MTLResourceStorageModeShared, MTLResourceHazardTrackingModeUntracked
PAGE = mmap.PAGESIZE        # 16384 on Apple's processors

class MetalMemory:
  """A buffer, or a part of one. handle: of the MTLBuffer; address: of the first byte, as the processor sees it; offset,
  size: in bytes."""
  __slots__ = ("address", "device", "handle", "offset", "size", "__weakref__")
  def __init__(self, device: MetalDevice, handle: int, address: int, size: int, offset: int = 0):
    self.device, self.handle, self.address, self.size, self.offset = device, handle, address, size, offset

  def __repr__(self) -> str: return f"<MetalMemory {self.size} bytes of {self.device.name}, at {self.offset}>"

class MetalOwnMemory(MetalMemory):
  """A buffer that this object owns: memory of the device, or of the program, which the device uses in place.

  It is released when it is freed, or with this object, which an interrupt of its maker may drop.
  """
  __slots__ = ()
  def __init__(self, device: MetalDevice, size: int, offset: int, selector: str, *arguments: object):
    """Send the device a message that makes a buffer. handle and address are 0 if it makes none."""
    super().__init__(device, 0, 0, size, offset)
    with SIGNALS.wait(): self.handle = device.objc.send(device.about.handle, selector, *arguments) or 0
    if self.handle: self.address = device.objc.send(self.handle, "contents") + offset

  def release(self) -> None:
    """Release the buffer. A command buffer that uses it retains it until it is done."""
    with SIGNALS.wait():
      handle, self.handle = self.handle, 0
      self.device.release(handle)

  def __del__(self) -> None:
    if getattr(self, "handle", 0): self.device.returned.put(self.device.lock, self.handle)

class MetalAllocator(LRUAllocator):
  """The memory of one device. The program sees all of it."""
  alignment = VECTOR_BYTES

  def __init__(self, device: MetalDevice, about: MetalFacts):
    super().__init__(device.name, limit=about.memory_bytes)
    self.device, self.most_bytes = device, about.most_bytes

  def _alloc(self, size: int) -> MetalOwnMemory | None:
    if size > self.most_bytes: return None
    device = self.device
    with device.lock:
      device.check()
      made = MetalOwnMemory(device, size, 0, "newBufferWithLength:options:", size, SHARED_UNTRACKED)
      return made if made.handle else None

  def _free(self, opaque: MetalOwnMemory, size: int) -> None: opaque.release()

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
  def as_memoryview(self, opaque: MetalMemory) -> memoryview:
    return memoryview((ctypes.c_char * opaque.size).from_address(opaque.address)).cast("B")

  def external(self, address: int, size: int) -> MetalMemory:
    """Return memory of the program as a buffer: a part of a buffer of this device, else the pages that it is in."""
    device = self.device
    with device.lock:
      device.check()
      for whole, _ in self.live.values():
        if whole.address <= address and address + size <= whole.address + whole.size:
          return self.offset(whole, size, address - whole.address)
      first, end = address & -PAGE, -(-(address + max(size, 1)) // PAGE) * PAGE
      made = MetalOwnMemory(device, size, address - first, "newBufferWithBytesNoCopy:length:options:deallocator:",
                            first, end - first, SHARED_UNTRACKED, None)
      if not made.handle:
        raise DeviceError(f"{self.dev} cannot use {size} bytes at {address:#x} in place: Metal refuses the pages; "
                          f"copy the data with Tensor(...) instead")
      return made

  def offset(self, opaque: MetalMemory, size: int, offset: int) -> MetalMemory:
    return MetalMemory(self.device, opaque.handle, opaque.address + offset, size, opaque.offset + offset)
