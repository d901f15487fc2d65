"""Buffers of an OpenCL device: a memory object, and the offset of the first byte in it."""
from __future__ import annotations
import ctypes
from typing import TYPE_CHECKING

from tinyhw.autogen import opencl as cl
from tinyhw.device import LRUAllocator
from tinyhw.drivers.opencl.library import NO_MEMORY, ClFailure
if TYPE_CHECKING: from tinyhw.drivers.opencl.device import ClDevice

class ClMemory:
  """A buffer, or a part of one. handle: of the memory object; offset, size: in bytes."""
  __slots__ = ("device", "handle", "offset", "size", "__weakref__")
  def __init__(self, device: ClDevice, handle: int, size: int, offset: int = 0):
    self.device, self.handle, self.size, self.offset = device, handle, size, offset

  def __repr__(self) -> str: return f"<ClMemory {self.size} bytes of {self.device.name}, at {self.offset}>"

class ClHostMemory(ClMemory):
  """Memory of the program that the device uses in place, as long as this object lives."""
  def __del__(self) -> None: self.device.returned.put(self.device.lock, "clReleaseMemObject", self.handle)

class ClAllocator(LRUAllocator):
  """The memory of one device. most_bytes: the largest buffer that it allows."""
  def __init__(self, device: ClDevice, limit: int, most_bytes: int):
    super().__init__(device.name, limit=limit)
    self.device, self.most_bytes = device, most_bytes

  def _alloc(self, size: int) -> ClMemory | None:
    if size > self.most_bytes: return None
    try: return ClMemory(self.device, self.device.make("clCreateBuffer", cl.MEM_READ_WRITE, size, None), size)
    except ClFailure as failed:
      if failed.status in NO_MEMORY: return None
      raise

  def _free(self, opaque: ClMemory, size: int) -> None: self.device.release("clReleaseMemObject", opaque.handle)

  def _copyin(self, dest: ClMemory, src: memoryview) -> None:
    data = src.cast("B")
    if data.readonly: memory = (ctypes.c_char * data.nbytes).from_buffer_copy(data)
    else: memory = (ctypes.c_char * data.nbytes).from_buffer(data)
    self.device.copy("clEnqueueWriteBuffer", dest, memory, data.nbytes)

  def _copyout(self, dest: memoryview, src: ClMemory) -> None:
    memory = (ctypes.c_char * dest.nbytes).from_buffer(dest.cast("B"))
    self.device.copy("clEnqueueReadBuffer", src, memory, dest.nbytes)

  def offset(self, opaque: ClMemory, size: int, offset: int) -> ClMemory:
    return ClMemory(self.device, opaque.handle, size, opaque.offset + offset)

  def external(self, address: int, size: int) -> ClMemory:
    """Return memory of the program as a buffer: for processors, whose drivers do not copy it."""
    if self.device.about.kind != "processor": return super().external(address, size)  # type: ignore[no-any-return]
    flags = cl.MEM_READ_WRITE | cl.MEM_USE_HOST_PTR
    return ClHostMemory(self.device, self.device.make("clCreateBuffer", flags, max(size, 1), address), size)
