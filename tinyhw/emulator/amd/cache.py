"""Which caches may hold what: staleness and write-back, found by comparing values.

Data lives once, in the virtual memory. A `ReadCache` has copies of lines as they were when they were read through it, and never drops one by itself:
the worst that real hardware does. A hit whose copy differs from memory in the bytes that are read is a StaleRead: another agent wrote, and nothing
made this cache forget. A `WriteBuffer` (an L2, the host data path) has the bytes from before the writes that have not left it: whoever reads them
from elsewhere would get those. So only a read that would really give another value is an error, and lines that two agents share byte by byte are not.

What would make it right is the cache's own word for it (`cure`), in the message.
"""
from __future__ import annotations
import bisect
from collections import deque
from collections.abc import Collection
from typing import NamedTuple

from tinyhw.emulator.errors import StaleRead
from tinyhw.emulator.pages import PageTable, Range

LINE = 128

class ReadCache(dict[int, bytearray]):
  """Lines by their number (physical address / LINE), as they were when they came in."""
  def __init__(self, name: str, cure: str):
    super().__init__()
    self.name, self.cure = name, cure

class WriteBuffer:
  """Lines with writes that have not reached memory. cure: what writes them back."""
  def __init__(self, name: str, cure: str):
    self.name, self.cure = name, cure
    self.lines: set[int] = set()

class Pending(NamedTuple):
  """What a line was before a WriteBuffer's writes to it, and whose the first of those was."""
  before: bytearray
  writer: str

class HostWrites:
  """What the program wrote into a card's memory since the last flush of the host data path: physical addresses, merged. name: the card's."""
  def __init__(self, name: str):
    self.name = name
    self.starts: list[int] = []
    self.ends: list[int] = []

  def add(self, start: int, end: int) -> None:
    """The program has written start..end."""
    low, high = bisect.bisect_left(self.ends, start), bisect.bisect_right(self.starts, end)
    if low < high: start, end = min(start, self.starts[low]), max(end, self.ends[high - 1])
    self.starts[low:high], self.ends[low:high] = [start], [end]

  def first(self, start: int, end: int) -> int | None:
    """The first address of start..end that was written."""
    i = bisect.bisect_right(self.ends, start)
    return max(start, self.starts[i]) if i < len(self.starts) and self.starts[i] < end else None

  def flush(self) -> None:
    """All of it is in the card's memory now."""
    self.starts.clear()
    self.ends.clear()

BIG_WRITE = 64 * LINE  # whose writer is remembered by the range, not by the line

class Coherence:
  """Memory of one computer, with all the caches before it. host_writes: one of each card."""
  def __init__(self) -> None:
    self.pending: dict[int, dict[WriteBuffer, Pending]] = {}
    self.host_writes: list[HostWrites] = []
    self.writers: dict[int, str] = {}  # who wrote a line last
    self.big_writes: deque[tuple[int, int, str]] = deque(maxlen=64)  # (first line, end, who), of those that were not noted by the line

  def host_is_ahead(self) -> bool:
    """Whether the program has written what has not been flushed to a card."""
    return any(writes.starts for writes in self.host_writes)

  def read(self, entry: Range, offset: int, size: int, caches: tuple[ReadCache, ...], own: WriteBuffer | None, reader: str) -> None:
    """Check a read of bytes offset.. of a range, nearest cache first, and let the caches keep the lines. own: sees its writes."""
    base = entry.frames.physical + entry.offset
    for writes in self.host_writes:
      if writes.starts: self._check_host_writes(writes, entry, base + offset, size, reader)
    inside = (base + offset) % LINE
    if caches and inside + size <= LINE:  # the usual way: one line, which the nearest cache has
      held = caches[0].get((base + offset) // LINE)
      if held is not None and held[inside:inside + size] == entry.view[offset:offset + size]: return
    if not caches: self.read_memory(entry, offset, size, own, reader)
    while caches and size > 0:
      inside = (base + offset) % LINE
      count = min(size, LINE - inside)
      self._read_line(entry, offset - inside, inside, inside + count, caches, own, reader)
      offset, size = offset + count, size - count

  def read_memory(self, entry: Range, offset: int, size: int, own: WriteBuffer | None, reader: str) -> None:
    """Check a read beside all caches, and behind the host data path: that of the program itself."""
    base = entry.frames.physical + entry.offset
    for line in lines_of(base + offset, size, self.pending):
      low = max(line * LINE, base + offset) % LINE
      self._read_line(entry, line * LINE - base, low, min(LINE, base + offset + size - line * LINE), (), own, reader)

  def _check_host_writes(self, writes: HostWrites, entry: Range, physical: int, size: int, reader: str) -> None:
    at = writes.first(physical, physical + size)
    if at is None: return
    address = entry.start + at - entry.frames.physical - entry.offset
    raise StaleRead(f"{reader} reads {address:#x} (in {entry!r}), which the program wrote through the bar of {writes.name}; it may get what was "
                    "there before: flush the host data path first (WAIT_REG_MEM on HDP_FLUSH_REQ and _DONE, or POLL_REGMEM with hdp_flush)")

  def _read_line(self, entry: Range, start: int, low: int, high: int, caches: tuple[ReadCache, ...], own: WriteBuffer | None, reader: str) -> None:
    line = (entry.frames.physical + entry.offset + start) // LINE
    current = entry.view[start + low:start + high]
    missed = 0
    for cache in caches:
      held = cache.get(line)
      if held is None:
        missed += 1
        continue
      if held[low:high] != current: raise self._stale(entry, start, low, held, reader, cache.name, self._writer(line), cache.cure)
      break
    else:
      for buffer, (before, writer) in self.pending.get(line, {}).items():
        if buffer is not own and before[low:high] != current:
          raise self._stale(entry, start, low, before, reader, buffer.name, writer, buffer.cure)
    if missed:
      filled = self._visible(entry, start, line, own)
      for cache in caches[:missed]: cache[line] = bytearray(filled)

  def _writer(self, line: int) -> str:
    return self.writers.get(line) or next((who for low, high, who in reversed(self.big_writes) if low <= line < high), "the program")

  def _visible(self, entry: Range, start: int, line: int, own: WriteBuffer | None) -> bytearray:
    """A line as memory would give it: without the writes that other agents' buffers still have."""
    found = bytearray(entry.view[start:start + LINE])
    for buffer, (before, _) in self.pending.get(line, {}).items():
      if buffer is own or before == found: continue
      for i, (old, new) in enumerate(zip(before, entry.view[start:start + LINE])):
        if old != new: found[i] = old
    return found

  def _stale(self, entry: Range, start: int, low: int, held: bytearray, reader: str, where: str, writer: str, cure: str) -> StaleRead:
    at = next(i for i in range(low, LINE) if held[i] != entry.view[start + i])
    return StaleRead(f"{reader} reads {entry.start + start + at:#x} (in {entry!r}), which {writer} wrote; it may get what was there before: "
                     f"{where} {cure}")

  def write(self, entry: Range, offset: int, data: bytes | bytearray | memoryview, own: WriteBuffer | None, updated: tuple[ReadCache, ...],
            writer: str) -> None:
    """Write bytes. own: where they wait for a write-back; None: they go to memory. updated: caches on their way, whose copies get them too."""
    base, size, done = entry.frames.physical + entry.offset + offset, len(data), 0
    if own is None and not updated and size > BIG_WRITE:
      self._write_big(base, data, writer)
      done = size
    while done < size:
      line, inside = divmod(base + done, LINE)
      count = min(size - done, LINE - inside)
      part = data[done:done + count]
      waiting = self.pending.get(line)
      if waiting is not None:
        for buffer, (before, _) in waiting.items():
          if buffer is not own: before[inside:inside + count] = part  # theirs are the other bytes
      if own is not None and (waiting is None or own not in waiting):
        start = offset + done - inside
        self.pending.setdefault(line, {})[own] = Pending(bytearray(entry.view[start:start + LINE]), writer)
        own.lines.add(line)
      for cache in updated:
        held = cache.get(line)
        if held is not None: held[inside:inside + count] = part
      self.writers[line] = writer
      done += count
    entry.view[offset:offset + size] = data

  def _write_big(self, physical: int, data: bytes | bytearray | memoryview, writer: str) -> None:
    """A write to memory itself: what buffers have from before it is now that."""
    end = physical + len(data)
    for line in lines_of(physical, len(data), self.pending):
      low, high = max(line * LINE, physical), min(line * LINE + LINE, end)
      for before, _ in self.pending[line].values(): before[low - line * LINE:high - line * LINE] = data[low - physical:high - physical]
    for line in lines_of(physical, len(data), self.writers): del self.writers[line]
    self.big_writes.append((physical // LINE, (end + LINE - 1) // LINE, writer))

  def write_back(self, buffer: WriteBuffer, lines: set[int] | None = None) -> None:
    """What waits in a buffer reaches memory. lines: only those."""
    done = buffer.lines if lines is None else buffer.lines & lines
    for line in done:
      waiting = self.pending[line]
      del waiting[buffer]
      if not waiting: del self.pending[line]
    buffer.lines = set() if lines is None else buffer.lines - lines

  def forget(self, physical: int, size: int) -> None:
    """Pages were given back: what waits for them is lost, and what caches hold of them is for the caches to drop (`drop`)."""
    for line in lines_of(physical, size, self.pending):
      for buffer in self.pending.pop(line): buffer.lines.discard(line)
    for line in lines_of(physical, size, self.writers): del self.writers[line]

def lines_of(physical: int, size: int, known: Collection[int]) -> list[int]:
  """Which of the known lines lie in a piece of physical memory."""
  low, high = physical // LINE, (physical + size + LINE - 1) // LINE
  if high - low < len(known): return [line for line in range(low, high) if line in known]
  return [line for line in known if low <= line < high]

def drop(cache: ReadCache, physical: int, size: int) -> None:
  """Forget the lines of a piece of physical memory."""
  for line in lines_of(physical, size, cache): del cache[line]

def lines_between(table: PageTable, start: int, end: int) -> set[int]:
  """The lines of a device's addresses start..end, as far as they are mapped."""
  found: set[int] = set()
  for entry in table.ranges:
    low, high = max(start, entry.start), min(end, entry.end)
    if low >= high: continue
    physical = entry.frames.physical + entry.offset + low - entry.start
    found.update(range(physical // LINE, (physical + high - low + LINE - 1) // LINE))
  return found
