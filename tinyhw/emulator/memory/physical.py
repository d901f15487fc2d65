"""Physical memory of a virtual computer: pages that the program and the virtual devices see at several addresses at
once.

Pages belong to one unlinked file in memory. The virtual devices have one view of the file. The program maps it at
addresses of its choice, as it maps a real device file. Memory that the program has already (user pointers) is used in
place.
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
NOBODYS, OF_BUFFERS = b"\2", (b"\0", b"\1")  # states of a byte
FOREIGN = 1 << 60  # physical addresses of the program's own memory begin here, those of the file at 0

def pages(size: int) -> int:
  """Round size up to whole pages, in bytes."""
  return (size + PAGE - 1) & -PAGE

class Frames:
  """Contiguous physical pages. view: all their bytes. holder: the process that they were allocated for.

  written: a state for each byte: 1 where something was written, NOBODYS where no buffer of the program is, else 0.
  None: all were written. outlined: whether any byte is NOBODYS.
  """
  __slots__ = ("physical", "size", "view", "written", "outlined", "holder", "_mapping", "_shadow")

  def __init__(self, physical: int, size: int, view: memoryview, mapping: mmap.mmap | None = None, cleared: bool = True,
               holder: object = None):
    self.physical, self.size, self.view, self._mapping, self.holder = physical, size, view, mapping, holder
    self._shadow = None if cleared else mmap.mmap(-1, size)
    self.written = None if self._shadow is None else memoryview(self._shadow)
    self.outlined = False

  def is_written(self, offset: int, size: int) -> bool:
    """Return whether every byte of a part was written."""
    return self._shadow is None or self._shadow.find(b"\0", offset, offset + size) < 0

  def outline(self, offset: int, size: int, whole: int) -> None:
    """Make the first `size` of `whole` bytes a new buffer. The others belong to no buffer."""
    if self.written is None: return
    self.outlined = True
    self.written[offset:offset + size] = bytes(size)
    self.written[offset + size:offset + whole] = NOBODYS * (whole - size)

  def outside(self, offset: int, size: int) -> int | None:
    """Return the first of these bytes that is in no buffer."""
    if not self.outlined or self._shadow is None: return None
    found = self._shadow.find(NOBODYS, offset, offset + size)
    return None if found < 0 else found

  def buffers_near(self, offset: int) -> list[tuple[int, int]]:
    """Return (start, end) of the nearest buffers before and after a byte that is in no buffer."""
    assert self._shadow is not None, "all bytes are somebody's"
    shadow, found = self._shadow, []
    last = max(shadow.rfind(state, 0, offset) for state in OF_BUFFERS)
    if last >= 0: found.append((shadow.rfind(NOBODYS, 0, last) + 1, last + 1))
    firsts = [shadow.find(state, offset) for state in OF_BUFFERS]
    first = min((at for at in firsts if at >= 0), default=None)
    if first is not None:
      end = shadow.find(NOBODYS, first)
      found.append((first, self.size if end < 0 else end))
    return found

  def mark(self, offset: int, size: int) -> None:
    """Mark a part as written."""
    if self.written is not None: self.written[offset:offset + size] = b"\1" * size

  def mark_as(self, offset: int, source: Frames, start: int, size: int) -> None:
    """Mark a part as a copy of another part: written where the source is."""
    if self.written is None: return
    if source.written is None: self.mark(offset, size)
    else: self.written[offset:offset + size] = source.written[start:start + size]

  def _close(self) -> None:
    """Unmap the pages.

    If the traceback of an error still holds a view, they stay mapped as long as it lives.
    """
    with contextlib.suppress(BufferError):
      self.view.release()
      if self._mapping is not None: self._mapping.close()

class Physical:
  """All pages of the computer. allocated: bytes in use, without user pointers; held: the same by process.

  `close` gives the file back. So does the garbage collector.
  """
  def __init__(self) -> None:
    self.file = _unlinked_file()
    self.close = weakref.finalize(self, os.close, self.file)
    self.end = 0                             # of the file
    self.free_ranges: list[tuple[int, int]] = []  # (start, size), sorted, never adjacent
    self.allocated = 0
    self.held: Counter[object] = Counter()

  def allocate(self, size: int, cleared: bool = True, holder: object = None) -> Frames:
    """Return pages of zeros. size is rounded up to pages. cleared: they count as written, as if the kernel had cleared
    them.

    Raises OSError.
    """
    size = pages(size)
    start = self._take(size)
    mapping = mmap.mmap(self.file, size, mmap.MAP_SHARED, offset=start)
    self.allocated += size
    self.held[holder] += size
    return Frames(start, size, memoryview(mapping), mapping, cleared, holder)

  def foreign(self, address: int, size: int) -> Frames:
    """Return the program's own pages at a host address, used in place."""
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
    """Give pages back. Mappings of the program keep the file's pages, but other allocations may use these from now on.
    """
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
    """Map pages for the program, at an address that it has reserved, or (0) at any address."""
    return map_memory(length, address, prot, MAP_SHARED | (MAP_FIXED if address else 0), self.file,
                      frames.physical + offset)

def _unlinked_file() -> int:
  if hasattr(os, "memfd_create"): return os.memfd_create("tinyhw-emulator")
  with tempfile.TemporaryFile() as file: return os.dup(file.fileno())
