"""Windows: memory and the LDS as translated code reaches them. Tables of where the host has them, and of what is to be
looked at with each access.

Translated code (native/threaded.py) does plain accesses itself. A load of vectors or scalars is plain if its bytes

- lie in a piece of memory of which there is a `Window`; a table (`Windows`) has a few of them;
- have been written by something: `written` has a byte for each, 1 or 0;
- are in the caches as memory has them. `held` has a byte for each line that a cache may hold: 1 as it is in memory, 2
  an older copy, 0 not at all. What the nearest cache (held0) has not is taken in by way of the next ones (held1,
  held2), unless `dirty` says that somebody else's writes are still
  in their cache: 0 for nobody's, else the number of the only cache that has writes to the line;
- have not been written by another workgroup of the dispatch: for each byte there are marks of 16 bits, of who has
  written it, and of who has read it.

A store is plain where nothing of this is to be looked at, as in memory that no strict checks watch; it only notes that
something has been written. What is not plain leaves the loop before anything has changed. Python adds a window then
(memory.WindowedMemory.open_window), or executes the instruction, with all checks and their messages.

The LDS of a workgroup is one `Local`, not a table: lds.py has its bytes, and marks of 8 bits for each kind of access by
the workgroup's waves.

All of this is arrays of 64-bit words whose addresses translated code knows: the checks in assembly are
native/checks.py, loads and stores are native/access.py.
"""
from __future__ import annotations
import struct
from array import array
from collections.abc import Iterator, Sequence

from tinyhw.drivers.cpu.memory import address_of
from tinyhw.named_tuple import NamedTuple

MOST = 12   # windows of a table

class Window(NamedTuple):
  """Addresses start..end, and what is to be looked at there.

  Places of the host, less that of address 0. A byte for each address: data; written (for loads); marked (the same, for
  stores to set). A byte for
  each LINE of addresses: held0 to held2, of one to three caches; dirty; seen (becomes 1 for lines that any cache
  holds). A mark for each address: readers, writers. 0 for one of these: nothing is to be looked at.
  Values. writable: 0 or 1; own: the number in `dirty` that is no hindrance; mark: that of the workgroup, four times.
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

WINDOW_BYTES = 8 * len(Window._fields)

class Windows:
  """A table of windows: the word at its start is how many there are."""
  def __init__(self) -> None:
    self.words = array("q", bytes(8 + MOST * WINDOW_BYTES))
    self.address = self.words.buffer_info()[0]
    self.count = self.next = 0

  def add(self, window: Window) -> bool:
    """One more, if there is none from the same address; where there are too many, in place of the oldest.

    Whether it was added.
    """
    if window.start in self.words[1:1 + self.count * len(Window._fields):len(Window._fields)]: return False
    at = 1 + self.next % MOST * len(Window._fields)
    self.words[at:at + len(window)] = array("q", [n - (1 << 64) if n >= 1 << 63 else n for n in window])
    self.next += 1
    self.words[0] = self.count = min(self.next, MOST)
    return True

  def clear(self) -> None:
    """There are none."""
    if not self.count: return
    self.words[:] = array("q", bytes(8 * len(self.words)))
    self.count = self.next = 0

NOTES = 64                        # accesses that are remembered, the last ones
NOTE_HEAD = 32                    # bytes: kind, size, how many; behind it the addresses of up to 64 lanes
NOTE_BYTES = NOTE_HEAD + 4 * 64

class Local:
  """The LDS of a workgroup as translated code of one wave reaches it.

  Places of the host, for each byte one: data; written; readers, writers and atomics (who did that since the last
  barrier); coming (what asynchronous copies will write). Values: size; mark, that of the wave, four times; notes, the
  place of the last accesses, which are noted for strict.py; noted, how many there have been.
  """
  FIELDS = ("data", "written", "readers", "writers", "atomics", "coming", "size", "mark", "notes", "noted")

  def __init__(self, places: Sequence[int], size: int, mark: int):
    self.notes = bytearray(NOTES * NOTE_BYTES if size else 0)
    self.words = array("q", (*places, size, mark * 0x01010101, address_of(self.notes) if size else 0, 0))
    self.address, self.taken = self.words.buffer_info()[0], 0

  def noted(self, last: int) -> Iterator[list[tuple[int, int, int]]]:
    """(address, size, kind) of the accesses of each instruction since the last call; nothing but of the `last` ones,
    of NOTES at most."""
    number = self.words[-1]
    for i in range(self.taken, number):
      if number - i > last: yield []
      else:
        kind, size, count = struct.unpack_from("<3I", self.notes, i % NOTES * NOTE_BYTES)
        yield [(address, size, kind) for address in struct.unpack_from(f"<{count}I", self.notes,
                                                                       i % NOTES * NOTE_BYTES + NOTE_HEAD)]
    self.taken = number

NOWHERE = Local((0,) * 6, 0, 0)
