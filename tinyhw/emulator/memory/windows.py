"""Windows: memory and the LDS as translated code reaches them. A table has the host addresses of the data, and of the
bytes that each access must check.

Translated code (native/threaded.py) does plain accesses itself. A vector or scalar load is plain if its bytes fulfil
all of these:

- They lie in a `MemoryWindow`. A table (`Windows`) has a few windows.
- They were written: `written` has a byte for each, 1 or 0.
- The caches have them as memory does. `held` has a byte for each line of a cache: 1 as it is in memory, 2 an older
  copy, 0 absent. A line that is absent in the nearest cache (held0) is filled from the next ones (held1, held2). It is
  not filled if `dirty` says that another agent's writes to it still wait in a cache. `dirty` is 0 for none, else the
  number of the only cache that has writes to the line.
- No other workgroup of the dispatch has written them. Each byte has 16-bit marks of its writer and of its reader.

A store is plain where nothing of this needs a check, as in memory without strict checks. It only marks the bytes as
written. An access that is not plain leaves the loop before anything has changed. Python then adds a window
(memory.WindowedMemory.open_window), or executes the instruction with all checks and their messages.

The LDS of a workgroup is one `LocalWindow`, not a table. lds.py has its bytes, and 8-bit marks for each kind of access
by the workgroup's waves.

Windows are arrays of 64-bit words whose addresses translated code knows. native/checks.py has the checks in assembly;
native/access.py has loads and stores.
"""
from __future__ import annotations
import struct
from array import array
from collections.abc import Iterator, Sequence

from tinyhw.drivers.cpu.memory import address_of
from tinyhw.named_tuple import NamedTuple

MOST = 12   # windows of a table

class MemoryWindow(NamedTuple):
  """Addresses start..end, with the host addresses of their data and of the bytes to check.

  A pointer is the host address that device address 0 would have. Adding the device address (of lines: divided by LINE;
  of marks: times 2) gives the address of its byte or mark. 0 means: no check. A byte for each address: data; written
  (for loads); marked (the same, for stores to set). A byte for each LINE of addresses: held0 to held2, of one to three
  caches; dirty; seen (becomes 1 for lines that any cache holds). A mark for each address: readers, writers.

  Values: writable: 0 or 1; own: the number in `dirty` that does not matter, since it is the reader's own; mark: that of
  the workgroup, four times.
  """
  start: int
  end: int
  data: int
  written: int = 0
  marked: int = 0
  writable: int = 0
  held0: int = 0
  held1: int = 0
  held2: int = 0
  seen: int = 0
  dirty: int = 0
  own: int = 0
  readers: int = 0
  writers: int = 0
  mark: int = 0

WINDOW_BYTES = 8 * len(MemoryWindow._fields)

class Windows:
  """A table of windows. The word at its start is their number."""
  def __init__(self) -> None:
    self.words = array("q", bytes(8 + MOST * WINDOW_BYTES))
    self.address = self.words.buffer_info()[0]
    self.count = self.next = 0

  def add(self, window: MemoryWindow) -> bool:
    """Add a window, unless there is one with the same start. A full table drops the oldest window.

    Return whether it was added.
    """
    if window.start in self.words[1:1 + self.count * len(MemoryWindow._fields):len(MemoryWindow._fields)]: return False
    at = 1 + self.next % MOST * len(MemoryWindow._fields)
    self.words[at:at + len(window)] = array("q", [n - (1 << 64) if n >= 1 << 63 else n for n in window])
    self.next += 1
    self.words[0] = self.count = min(self.next, MOST)
    return True

  def clear(self) -> None:
    """Remove all windows."""
    if not self.count: return
    self.words[:] = array("q", bytes(8 * len(self.words)))
    self.count = self.next = 0

NOTES = 64                        # number of last accesses that are kept
NOTE_HEAD = 32                    # bytes: kind, size, number of lanes; after it the addresses of up to 64 lanes
NOTE_BYTES = NOTE_HEAD + 4 * 64

class LocalWindow:
  """The LDS of a workgroup as translated code of one wave reaches it.

  Host addresses, each of one byte for each byte of LDS: data; written; readers, writers and atomics (marks of waves
  since the last barrier); coming (bytes that asynchronous copies will write). Values: size; mark, that of the wave,
  four times; notes, the address of the last accesses, which are kept for strict.py; noted, the number of accesses so
  far.
  """
  FIELDS = ("data", "written", "readers", "writers", "atomics", "coming", "size", "mark", "notes", "noted")

  def __init__(self, places: Sequence[int], size: int, mark: int):
    self.notes = bytearray(NOTES * NOTE_BYTES if size else 0)
    self.words = array("q", (*places, size, mark * 0x01010101, address_of(self.notes) if size else 0, 0))
    self.address, self.taken = self.words.buffer_info()[0], 0

  def noted(self, last: int) -> Iterator[list[tuple[int, int, int]]]:
    """Yield (address, size, kind) of each instruction's accesses since the last call. Only the `last` instructions, at
    most NOTES, have entries."""
    number = self.words[-1]
    for i in range(self.taken, number):
      if number - i > last: yield []
      else:
        kind, size, count = struct.unpack_from("<3I", self.notes, i % NOTES * NOTE_BYTES)
        yield [(address, size, kind) for address in struct.unpack_from(f"<{count}I", self.notes,
                                                                       i % NOTES * NOTE_BYTES + NOTE_HEAD)]
    self.taken = number

NOWHERE = LocalWindow((0,) * 6, 0, 0)
