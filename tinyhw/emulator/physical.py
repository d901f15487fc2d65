"""Physical memory of a virtual computer: pages that the program and the virtual devices see at several addresses at once.

Pages belong to one unlinked file in memory. The virtual devices see them through a view of their own; the program through mappings of the file at
the addresses that it chose, as it would see those of a real device file. Memory that the program has already (user pointers) is used in place.
"""
from __future__ import annotations
import bisect
import contextlib
import ctypes
import mmap
import os
import tempfile
import weakref
from collections import Counter

from tinyhw.drivers.linux.files import MAP_FIXED, MAP_SHARED, HostMapping, map_memory

PAGE = 4096
FOREIGN = 1 << 60  # physical addresses of the program's own memory begin here, those of the file at 0

def pages(size: int) -> int:
  """size rounded up to whole pages, in bytes."""
  return (size + PAGE - 1) & -PAGE

class Frames:
  """Contiguous physical pages. view: all bytes of them; written: one byte for each byte of it, not 0 where something was written; None: all were.
  holder: the process that they were allocated for."""
  __slots__ = ("physical", "size", "view", "written", "holder", "_mapping", "_shadow")

  def __init__(self, physical: int, size: int, view: memoryview, mapping: mmap.mmap | None = None, cleared: bool = True, holder: object = None):
    self.physical, self.size, self.view, self._mapping, self.holder = physical, size, view, mapping, holder
    self._shadow = None if cleared else mmap.mmap(-1, size)
    self.written = None if self._shadow is None else memoryview(self._shadow)

  def is_written(self, offset: int, size: int) -> bool:
    """Has every byte of a part been written?"""
    return self._shadow is None or self._shadow.find(b"\0", offset, offset + size) < 0

  def mark(self, offset: int, size: int) -> None:
    """A part is written now."""
    if self.written is not None: self.written[offset:offset + size] = b"\1" * size

  def mark_as(self, offset: int, source: Frames, start: int, size: int) -> None:
    """A part is a copy of another one: written where that is."""
    if self.written is None: return
    if source.written is None: self.mark(offset, size)
    else: self.written[offset:offset + size] = source.written[start:start + size]

  def _close(self) -> None:
    """Unmap the pages. Where the traceback of an error still has a view of them, they stay mapped as long as that lives."""
    with contextlib.suppress(BufferError):
      self.view.release()
      if self._mapping is not None: self._mapping.close()

class Physical:
  """All pages of the computer. allocated: bytes that are in use, without user pointers; held: of them, by process.

  `close` gives the file back; so does the garbage collector.
  """
  def __init__(self) -> None:
    self.file = _unlinked_file()
    self.close = weakref.finalize(self, os.close, self.file)
    self.end = 0                             # of the file
    self.free_ranges: list[tuple[int, int]] = []  # (start, size), sorted, never adjacent
    self.allocated = 0
    self.held: Counter[object] = Counter()

  def allocate(self, size: int, cleared: bool = True, holder: object = None) -> Frames:
    """Pages of zeros. cleared: they count as written, as the kernel clears them. size is rounded up to pages. Raises OSError."""
    size = pages(size)
    start = self._take(size)
    mapping = mmap.mmap(self.file, size, mmap.MAP_SHARED, offset=start)
    self.allocated += size
    self.held[holder] += size
    return Frames(start, size, memoryview(mapping), mapping, cleared, holder)

  def foreign(self, address: int, size: int) -> Frames:
    """The program's own pages at a host address, used in place."""
    return Frames(FOREIGN + address, size, memoryview((ctypes.c_ubyte * size).from_address(address)).cast("B"))

  def _take(self, size: int) -> int:
    for i, (start, there) in enumerate(self.free_ranges):
      if there < size: continue
      if there == size: del self.free_ranges[i]
      else: self.free_ranges[i] = (start + size, there - size)
      return start
    start, self.end = self.end, self.end + size
    os.ftruncate(self.file, self.end)
    return start

  def free(self, frames: Frames) -> None:
    """Give pages back. Mappings of the program keep the file's pages, but those are others' from now on."""
    mapping = frames._mapping
    if mapping is not None and hasattr(mmap, "MADV_REMOVE"): mapping.madvise(mmap.MADV_REMOVE)
    frames._close()
    if mapping is None: return
    self.allocated -= frames.size
    self.held[frames.holder] -= frames.size
    start, size = frames.physical, frames.size
    i = bisect.bisect(self.free_ranges, (start, size))
    if i < len(self.free_ranges) and self.free_ranges[i][0] == start + size: size += self.free_ranges.pop(i)[1]
    if i and sum(self.free_ranges[i - 1]) == start:
      start, before = self.free_ranges.pop(i - 1)
      size, i = size + before, i - 1
    self.free_ranges.insert(i, (start, size))

  def map(self, frames: Frames, offset: int, length: int, address: int, prot: int) -> HostMapping:
    """Show pages to the program, at an address that it has reserved, or (0) at any."""
    return map_memory(length, address, prot, MAP_SHARED | (MAP_FIXED if address else 0), self.file, frames.physical + offset)

def _unlinked_file() -> int:
  if hasattr(os, "memfd_create"): return os.memfd_create("tinyhw-emulator")
  with tempfile.TemporaryFile() as file: return os.dup(file.fileno())
