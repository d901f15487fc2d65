"""Races in global memory between the workgroups of one dispatch, byte by byte.

Nothing orders the workgroups of a dispatch. So what one of them reads and another one changes, and what two of them write with different values,
comes out differently from run to run. A write of the value that is there already changes nothing, and is none: overlapping tiles store some elements
twice. Atomic operations do not race with each other, and loads and stores of the whole device's scope are how programs make an order of their own:
neither is looked at. Groups are remembered by 16 bits of their number.
"""
from __future__ import annotations
from array import array
from collections.abc import Iterator

from tinyhw.emulator.errors import DataRace
from tinyhw.emulator.pages import Range
from tinyhw.emulator.physical import PAGE

SEVERAL, ATOMIC = 0xFFFF, 0xFFFE  # marks of bytes that several groups have read, and of those that atomic operations have changed
MOST_MARK = 0xFFFD

def mark(group: int) -> int:
  """The mark of a workgroup, by its number in the grid. 0 is the mark of none."""
  return group % MOST_MARK + 1

class Races:
  """What the workgroups of one dispatch have read and written so far."""
  def __init__(self) -> None:
    self.readers: dict[int, array[int]] = {}
    self.writers: dict[int, array[int]] = {}

  def read(self, entry: Range, offset: int, size: int, mine: int, who: str) -> None:
    """Group `mine` reads bytes of a range."""
    for page, low, high, start in _pages(entry, offset, size):
      writers = self.writers.get(page)
      if writers is not None:
        part = writers[low:high]
        if part.count(0) + part.count(mine) != len(part):
          at = next(i for i, other in enumerate(part) if other not in (0, mine))
          raise DataRace(f"{who} reads {entry.start + start + at:#x} (in {entry!r}), which {_name(part[at])} of the same dispatch writes; "
                         "nothing orders them")
      self._note(self.readers, page, low, high, mine, SEVERAL)

  def write(self, entry: Range, offset: int, data: bytes, mine: int, who: str, atomic: bool = False) -> None:
    """Group `mine` writes bytes of a range: called before they are there."""
    done = 0
    for page, low, high, start in _pages(entry, offset, len(data)):
      part = data[done:done + high - low]
      done += high - low
      for table, what, friend in ((self.readers, "reads", mine), (self.writers, "writes", ATOMIC if atomic else mine)):
        marks = table.get(page)
        if marks is not None: self._check(entry, start, part, marks[low:high], mine, friend, what, who)
      self._note(self.writers, page, low, high, ATOMIC if atomic else mine, ATOMIC if atomic else mine)

  def _check(self, entry: Range, start: int, data: bytes, marks: array[int], mine: int, friend: int, what: str, who: str) -> None:
    """Raise DataRace where another one's byte changes."""
    if marks.count(0) + marks.count(mine) + (marks.count(friend) if friend != mine else 0) == len(marks): return
    for i, other in enumerate(marks):
      if other in (0, mine, friend) or data[i] == entry.view[start + i]: continue
      raise DataRace(f"{who} writes {entry.start + start + i:#x} (in {entry!r}), which {_name(other)} of the same dispatch {what}; "
                     "nothing orders them")

  def _note(self, table: dict[int, array[int]], page: int, low: int, high: int, mine: int, several: int) -> None:
    """Put a mark on bytes; `several` where another one has its own."""
    marks = table.get(page)
    if marks is None: marks = table[page] = array("H", bytes(2 * PAGE))
    part = marks[low:high]
    free = part.count(0) + part.count(mine)
    if free == len(part): marks[low:high] = array("H", [mine]) * free
    elif free == 0: marks[low:high] = array("H", [several]) * len(part)
    else: marks[low:high] = array("H", [mine if other in (0, mine) else several for other in part])

def _pages(entry: Range, offset: int, size: int) -> Iterator[tuple[int, int, int, int]]:
  """(page, first byte there, end there, offset in the range) for each page of a piece of a range."""
  base = entry.frames.physical + entry.offset
  while size > 0:
    page, low = divmod(base + offset, PAGE)
    count = min(size, PAGE - low)
    yield page, low, low + count, offset
    offset, size = offset + count, size - count

def _name(other: int) -> str:
  if other == SEVERAL: return "more than one workgroup"
  if other == ATOMIC: return "an atomic operation of another workgroup"
  return f"workgroup number {other - 1}"

class SharedRaces:
  """The Races of dispatches that several XCCs do together: each has one, from the first XCC that begins it to the last one."""
  def __init__(self, parts: int):
    self.parts = parts
    self.open: dict[object, tuple[Races, int]] = {}

  def begin(self, key: object) -> Races:
    """Those of the dispatch that all XCCs know by this key."""
    races, count = self.open[key] if key in self.open else (Races(), 0)
    if count + 1 < self.parts: self.open[key] = races, count + 1
    else: self.open.pop(key, None)
    return races
