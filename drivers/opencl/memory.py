"""Buffers of an OpenCL device: a memory object, and the offset of the first byte in it.

Big buffers of a processor are in mappings of our own, which ask for huge pages: its driver's memory does not.
"""
from __future__ import annotations
import ctypes
from typing import TYPE_CHECKING

from tinyhw.autogen import opencl as cl
from tinyhw.device import LRUAllocator
from tinyhw.drivers.cpu.memory import HUGE_PAGE, Memory, map_aligned
from tinyhw.drivers.opencl.facts import ClFacts
from tinyhw.drivers.opencl.library import NO_MEMORY, ClFailure
if TYPE_CHECKING: from tinyhw.drivers.opencl.device import ClDevice

class ClMemory:
  """A buffer, or a part of one. handle: of the memory object; offset, size: in bytes; host: the mapping that it is in.
  """
  __slots__ = ("device", "handle", "host", "offset", "size", "__weakref__")
  def __init__(self, device: ClDevice, handle: int, size: int, offset: int = 0, host: Memory | None = None):
    self.device, self.handle, self.size, self.offset, self.host = device, handle, size, offset, host

  def __repr__(self) -> str: return f"<ClMemory {self.size} bytes of {self.device.name}, at {self.offset}>"

class ClHostMemory(ClMemory):
  """Memory of the program that the device uses in place, as long as this object lives."""
  def __del__(self) -> None: self.device.returned.put(self.device.lock, "clReleaseMemObject", self.handle)

class ClAllocator(LRUAllocator):
  """The memory of one device. most_bytes: the largest buffer that it allows. in_place: it uses memory of the program
  without a copy."""
  def __init__(self, device: ClDevice, about: ClFacts):
    super().__init__(device.name, limit=about.memory_bytes)
    self.device, self.most_bytes, self.in_place = device, about.most_bytes, about.kind == "processor"

  def _alloc(self, size: int) -> ClMemory | None:
    if size > self.most_bytes: return None
    try:
      host = map_aligned(size) if self.in_place and size >= HUGE_PAGE else None
      return ClMemory(self.device, self._object(size, host.address if host else None), size, host=host)
    except (OSError, OverflowError, MemoryError): return None
    except ClFailure as failed:
      if failed.status in NO_MEMORY: return None
      raise

  def _object(self, size: int, address: int | None) -> int:
    """Return a new memory object, which uses memory of the program if there is an address."""
    flags = cl.MEM_READ_WRITE | (0 if address is None else cl.MEM_USE_HOST_PTR)
    return self.device.make("clCreateBuffer", flags, size, address)

  def _free(self, opaque: ClMemory, size: int) -> None:
    self.device.release("clReleaseMemObject", opaque.handle, opaque.host)

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
    if not self.in_place: return super().external(address, size)  # type: ignore[no-any-return]
    return ClHostMemory(self.device, self._object(max(size, 1), address), size)
