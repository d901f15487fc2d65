"""Races in global memory between workgroups of dispatches that may run at the same time, byte by byte.

The workgroups of a dispatch have no order. Neither have those of two dispatches when the command processor does not
wait between them. Two kinds of access then differ from run to run: one workgroup reads a byte that another one changes,
or two write different values to it. A write of the value that is already there is not counted, since overlapping tiles
store some elements twice. Atomic operations do not race with each other. Loads and stores of device scope are not
checked either, since programs make an order with them. A workgroup is remembered by 16 bits of its number.
"""
from __future__ import annotations
import mmap
from array import array
from collections.abc import Iterator

from tinyhw.drivers.cpu.memory import address_of
from tinyhw.emulator.errors import DataRace
from tinyhw.emulator.memory.cache import CHUNK
from tinyhw.emulator.memory.pages import Range
from tinyhw.emulator.memory.physical import PAGE

# marks of bytes that several workgroups have read, and of bytes that atomic operations have changed
SEVERAL, ATOMIC = 0xFFFF, 0xFFFE
MOST_MARK = 0xFFFD

def mark(group: int) -> int:
  """Return the mark of a workgroup, given its number among all dispatches that may run at the same time. 0 means no
  mark."""
  return group % MOST_MARK + 1

class Races:
  """The bytes that the workgroups of dispatches have read and written so far. names: first workgroup number -> name of
  the dispatch.

  mask, who: the dispatches, as order.py knows them; rivals: the Races of dispatches and copies that have no order with
  these.
  """
  def __init__(self) -> None:
    self.readers: dict[int, memoryview] = {}  # chunk of physical memory -> a mark for each byte
    self.writers: dict[int, memoryview] = {}
    self.places: dict[int, tuple[int, int]] = {}
    self.changed: set[int] = set()            # pages that were written
    self.names: dict[int, str] = {}
    self.mask = 0
    self.who = ""
    self.rivals: list[Races] = []

  def addresses(self, chunk: int) -> tuple[int, int]:
    """Return the addresses of a chunk's reader marks and writer marks. They do not move."""
    found = self.places.get(chunk)
    if found is None:
      found = self.places[chunk] = (address_of(_marks(self.readers, chunk)), address_of(_marks(self.writers, chunk)))
    return found

  def changes(self) -> int:
    """Return how many pages rivals have written. Callers compare it with an earlier count."""
    return sum(len(rival.changed) for rival in self.rivals)

  def unchanged(self, physical: int, start: int, end: int) -> tuple[int, int]:
    """Return the part of start..end around a physical address that no rival has written; (0, 0) if one has written the
    page of the address."""
    page = physical // PAGE
    pages = [other for rival in self.rivals for other in rival.changed if start // PAGE <= other <= end // PAGE]
    if page in pages: return 0, 0
    low, high = max((other + 1 for other in pages if other < page),
                    default=0), min((other for other in pages if other > page), default=1 << 52)
    return max(start, low * PAGE), min(end, high * PAGE)

  def join(self, first: int, name: str) -> None:
    """Add a dispatch that begins. Its workgroups have numbers from `first` on."""
    self.names[first] = name

  def touched(self, chunk: int, low: int, high: int, reads: bool) -> int | None:
    """Return the first byte of a part of a chunk that was written, or (reads) read."""
    marks = (self.readers if reads else self.writers).get(chunk)
    if marks is None: return None
    part = marks[low:high].tolist()
    return None if part.count(0) == len(part) else next(i for i, mark in enumerate(part) if mark)

  def check_rivals(self, entry: Range, offset: int, size: int, who: str, data: bytes | None = None) -> None:
    """Raise DataRace where a rival has touched bytes that are read, or (data) that a write changes."""
    done = 0
    for chunk, low, high, start in _chunks(entry, offset, size):
      changes = data is None or data[done:done + high - low] != entry.view[start:start + high - low]
      done += high - low
      for rival in self.rivals if changes else ():
        for reads in (False, True) if data is not None else (False,):
          at = rival.touched(chunk, low, high, reads)
          if at is not None:
            raise DataRace(f"{who} {'reads' if data is None else 'writes'} {entry.start + start + at:#x} (in "
                           f"{entry!r}), which "
                           f"{rival.who} {'reads' if reads else 'writes'}; nothing orders them: the second one must "
                           f"wait until the first is done")

  def forget(self, physical: int, size: int) -> None:
    """Forget pages that were given back."""
    for table in (self.readers, self.writers):
      for chunk, marks in table.items():
        low, high = max(physical - chunk * CHUNK, 0), min(physical + size - chunk * CHUNK, CHUNK)
        if low < high: marks[low:high] = array("H", bytes(2 * (high - low)))
    self.changed -= {page for page in self.changed if physical <= page * PAGE < physical + size}

  def read(self, entry: Range, offset: int, size: int, mine: int, who: str) -> None:
    """Check and record a read of bytes of a range by workgroup `mine`."""
    if self.rivals: self.check_rivals(entry, offset, size, who)
    for chunk, low, high, start in _chunks(entry, offset, size):
      writers = self.writers.get(chunk)
      if writers is not None:
        part = writers[low:high].tolist()
        if part.count(0) + part.count(mine) != len(part):
          at = next(i for i, other in enumerate(part) if other not in (0, mine))
          raise DataRace(f"{who} reads {entry.start + start + at:#x} (in {entry!r}), which "
                         f"{self._name(part[at], mine)} writes; nothing orders them")
      self._note(self.readers, chunk, low, high, mine, SEVERAL)

  def write(self, entry: Range, offset: int, data: bytes, mine: int, who: str, atomic: bool = False) -> None:
    """Check and record a write of bytes of a range by workgroup `mine`. Called before the bytes are in memory."""
    if self.rivals: self.check_rivals(entry, offset, len(data), who, data)
    self._change(entry, offset, len(data))
    done = 0
    for chunk, low, high, start in _chunks(entry, offset, len(data)):
      part = data[done:done + high - low]
      done += high - low
      for table, what, friend in ((self.readers, "reads", mine), (self.writers, "writes", ATOMIC if atomic else mine)):
        marks = table.get(chunk)
        if marks is not None: self._check(entry, start, part, marks[low:high].tolist(), mine, friend, what, who)
      self._note(self.writers, chunk, low, high, ATOMIC if atomic else mine, ATOMIC if atomic else mine)

  def _check(self, entry: Range, start: int, data: bytes, marks: list[int], mine: int, friend: int, what: str,
             who: str) -> None:
    """Raise DataRace where the write changes a byte that another workgroup has marked."""
    if marks.count(0) + marks.count(mine) + (marks.count(friend) if friend != mine else 0) == len(marks): return
    for i, other in enumerate(marks):
      if other in (0, mine, friend) or data[i] == entry.view[start + i]: continue
      raise DataRace(f"{who} writes {entry.start + start + i:#x} (in {entry!r}), which {self._name(other, mine)} "
                     f"{what}; nothing orders them")

  def _name(self, other: int, mine: int) -> str:
    """Return the name of the workgroup of a mark, for messages."""
    def first(mark: int) -> int: return max((number for number in self.names if number < mark), default=0)
    if other >= ATOMIC:
      several = "more than one workgroup" if other == SEVERAL else "an atomic operation of another workgroup"
      return f"{several} of the same dispatch" + (", or of others that nothing has waited for," if len(self.names) > 1
                                                  else "")
    number = other - 1 - first(other)
    if first(other) == first(mine): return f"workgroup number {number} of the same dispatch"
    return (f"workgroup number {number} of the {self.names[first(other)]}, for which the command processor has not "
            f"waited,")

  def _change(self, entry: Range, offset: int, size: int) -> None:
    """Record the pages of bytes that are written."""
    start = entry.frames.physical + entry.offset + offset
    self.changed.update(range(start // PAGE, (start + size - 1) // PAGE + 1))

  def _note(self, table: dict[int, memoryview], chunk: int, low: int, high: int, mine: int, several: int) -> None:
    """Mark bytes. A byte with the mark of another workgroup gets `several`."""
    marks = _marks(table, chunk)
    part = marks[low:high].tolist()
    free = part.count(0) + part.count(mine)
    if free == len(part): marks[low:high] = array("H", [mine]) * free
    elif free == 0: marks[low:high] = array("H", [several]) * len(part)
    else: marks[low:high] = array("H", [mine if other in (0, mine) else several for other in part])

class Copied(Races):
  """The bytes that one copy reads and writes: two ranges of physical memory."""
  def __init__(self) -> None:
    super().__init__()
    self.pieces: dict[bool, list[tuple[int, int]]] = {True: [], False: []}  # key: whether the copy reads them

  def touched(self, chunk: int, low: int, high: int, reads: bool) -> int | None:
    start, end = chunk * CHUNK + low, chunk * CHUNK + high
    found = [max(first, start) - start for first, last in self.pieces[reads] if first < end and start < last]
    return min(found, default=None)

  def read(self, entry: Range, offset: int, size: int, mine: int, who: str) -> None:
    if self.rivals: self.check_rivals(entry, offset, size, who)
    self._add(entry, offset, size, True)

  def write(self, entry: Range, offset: int, data: bytes, mine: int, who: str, atomic: bool = False) -> None:
    if self.rivals: self.check_rivals(entry, offset, len(data), who, data)
    self._change(entry, offset, len(data))
    self._add(entry, offset, len(data), False)

  def _add(self, entry: Range, offset: int, size: int, reads: bool) -> None:
    start = entry.frames.physical + entry.offset + offset
    pieces = self.pieces[reads]
    if pieces and pieces[-1][1] == start: pieces[-1] = pieces[-1][0], start + size
    else: pieces.append((start, start + size))

  def forget(self, physical: int, size: int) -> None:
    for reads, pieces in self.pieces.items():
      self.pieces[reads] = [piece for piece in pieces if piece[1] <= physical or physical + size <= piece[0]]

def _marks(table: dict[int, memoryview], chunk: int) -> memoryview:
  """Return the marks of a chunk. They begin as 0."""
  found = table.get(chunk)
  if found is None: found = table[chunk] = memoryview(mmap.mmap(-1, 2 * CHUNK)).cast("H")
  return found

def _chunks(entry: Range, offset: int, size: int) -> Iterator[tuple[int, int, int, int]]:
  """Yield (chunk, first byte in it, end in it, offset in the range) for each chunk of a part of a range."""
  base = entry.frames.physical + entry.offset
  while size > 0:
    chunk, low = divmod(base + offset, CHUNK)
    count = min(size, CHUNK - low)
    yield chunk, low, low + count, offset
    offset, size = offset + count, size - count

class SharedRaces:
  """The Races that several XCCs share.

  An XCC is in a *phase*. A phase ends when the command processor of the XCC waits, as those of the other XCCs do.
  """
  def __init__(self, parts: int):
    self.phases = [0] * parts
    self.open: dict[int, Races] = {}

  def begin(self, part: int, phase: int) -> Races:
    """Return the Races of the phase that an XCC is in. Phases that all XCCs have left are forgotten."""
    self.phases[part] = phase
    for old in [known for known in self.open if known < min(self.phases)]: del self.open[old]
    return self.open.setdefault(phase, Races())
