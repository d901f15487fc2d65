"""Buffers of a WebGPU device: a handle, and the offset of the first byte; copies of bytes.

WebGPU copies whole words at multiples of 4 bytes only. A copy that begins or ends within a word takes the rest of the
word from the buffer.
"""
from __future__ import annotations
from typing import TYPE_CHECKING

from tinyhw.autogen import webgpu
from tinyhw.device import VECTOR_BYTES, LRUAllocator, show_bytes
from tinyhw.errors import OutOfMemory
if TYPE_CHECKING: from tinyhw.drivers.webgpu.device import WgpuDevice

USAGE = webgpu.USAGE_STORAGE | webgpu.USAGE_COPY_SRC | webgpu.USAGE_COPY_DST
WORD = 4

class WgpuMemory:
  """A buffer, or a part of one. offset, size: in bytes; whole: the bytes of the buffer."""
  __slots__ = ("device", "handle", "offset", "size", "whole", "__weakref__")
  def __init__(self, device: WgpuDevice, handle: int, size: int, offset: int = 0, whole: int = 0):
    self.device, self.handle, self.size, self.offset, self.whole = device, handle, size, offset, whole or size

  def __repr__(self) -> str: return f"<WgpuMemory {self.size} bytes of {self.device.name}, at {self.offset}>"

class WgpuAllocator(LRUAllocator):
  """The memory of one device. most_bytes: the largest buffer that a kernel can be given."""
  alignment = VECTOR_BYTES

  def __init__(self, device: WgpuDevice, most_bytes: int):
    super().__init__(device.name)
    self.device, self.most_bytes = device, most_bytes & -WORD

  def _take(self, size: int) -> WgpuMemory:
    if size > self.most_bytes:
      raise OutOfMemory(f"{self.dev}: cannot allocate {show_bytes(size)}: a kernel of this adapter is given at most "
                        f"{show_bytes(self.most_bytes)} in one buffer; use smaller tensors, or a smaller batch")
    found = super()._take(size)
    assert isinstance(found, WgpuMemory)
    return found

  def _alloc(self, size: int) -> WgpuMemory | None:
    size = min(-(-size // WORD) * WORD, self.most_bytes)
    handle = self.device.make_buffer(size, USAGE)
    return None if handle is None else WgpuMemory(self.device, handle, size)

  def _free(self, opaque: WgpuMemory, size: int) -> None:
    """Release a buffer. Submitted work that uses it keeps it until it is done."""
    self.device.release("BufferRelease", opaque.handle)

  def _copyin(self, dest: WgpuMemory, src: memoryview) -> None:
    data, offset, device = src.cast("B"), dest.offset, self.device
    with device.lock:
      before = -offset % WORD if offset % WORD else 0
      if before: self._merge(dest, offset - (WORD - before), WORD - before, data[:before])
      after = (data.nbytes - before) % WORD if data.nbytes > before else 0
      device.write(dest.handle, offset + before, data[before:data.nbytes - after])
      if after: self._merge(dest, offset + data.nbytes - after, 0, data[data.nbytes - after:])

  def _merge(self, dest: WgpuMemory, word: int, skipped: int, data: memoryview) -> None:
    """Write a few bytes into the word at an offset, after its first `skipped` bytes."""
    old = bytearray(WORD)
    self.device.read(dest.handle, word, memoryview(old))
    old[skipped:skipped + data.nbytes] = data
    self.device.write(dest.handle, word, memoryview(old))

  def _copyout(self, dest: memoryview, src: WgpuMemory) -> None:
    out = dest.cast("B")
    first, end = src.offset & -WORD, -(-(src.offset + out.nbytes) // WORD) * WORD
    if first == src.offset and end == src.offset + out.nbytes: return self.device.read(src.handle, first, out)
    words = bytearray(end - first)
    self.device.read(src.handle, first, memoryview(words))
    out[:] = memoryview(words)[src.offset - first:][:out.nbytes]

  def offset(self, opaque: WgpuMemory, size: int, offset: int) -> WgpuMemory:
    return WgpuMemory(self.device, opaque.handle, size, opaque.offset + offset, opaque.whole)
