"""Model of caches: staleness and write-back, found by comparing values.

Virtual memory holds data once. A `ReadCache` keeps each line as it was when it was read through the cache. It never
evicts a line by itself, which is the worst case of real hardware. A line is copied only when another agent writes to
it. Until then the cache has it as memory does. A hit is a StaleRead if its copy differs from memory in the bytes that
are read: another agent wrote, and nothing invalidated this cache.

A `WriteBuffer` (an L2, the host data path) keeps the old bytes of writes that have not left it. Readers elsewhere would
get those. So only a read that would really return another value is an error. Two agents may share a line if they use
different bytes.

`cure` is the cache's own text for the message: it says how to correct the program.
"""
from __future__ import annotations
import bisect
from collections import deque
from collections.abc import Collection

from tinyhw.drivers.cpu.memory import address_of
from tinyhw.emulator.errors import StaleRead
from tinyhw.emulator.memory.pages import PageTable, Range
from tinyhw.emulator.memory.physical import FOREIGN
from tinyhw.named_tuple import NamedTuple

LINE = 128

class LineMap(bytearray):
  """A byte for each line of a chunk. address: of the first byte, which does not move."""
  def __init__(self) -> None:
    super().__init__(CHUNK_LINES)
    self.address = address_of(self)

CHUNK = 1 << 20                    # bytes of physical memory that a map of lines covers
CHUNK_LINES = CHUNK // LINE
ABSENT, SAME, COPY = 0, 1, 2       # state of a line in a cache: absent, as memory has it, or with a copy of its own

class ReadCache:
  """A cache of lines, by line number (physical address / LINE). It has copies of some lines, and a map of line states
  for each chunk. Translated code reads and changes the maps (windows.py), so they do not move."""
  def __init__(self, name: str, cure: str):
    self.name, self.cure = name, cure
    self.copies: dict[int, bytearray] = {}
    self.maps: dict[int, LineMap] = {}

  def lines(self) -> list[int]:
    """Return the numbers of the lines in the cache."""
    return sorted(chunk * CHUNK_LINES + i for chunk, states in self.maps.items() for i, state in enumerate(states)
                  if state != ABSENT)

  def state(self, line: int) -> int:
    """Return the state of a line: ABSENT, SAME or COPY."""
    states = self.maps.get(line // CHUNK_LINES)
    return ABSENT if states is None else states[line % CHUNK_LINES]

  def put(self, line: int, content: bytearray | None) -> None:
    """Add a line: a copy, or (None) as memory has it. The map of its chunk must exist."""
    if content is not None: self.copies[line] = content
    self.maps[line // CHUNK_LINES][line % CHUNK_LINES] = SAME if content is None else COPY

  def clear(self) -> None:
    """Invalidate all lines."""
    self.copies.clear()
    for states in self.maps.values(): states[:] = bytes(CHUNK_LINES)

  def forget(self, lines: Collection[int]) -> None:
    """Invalidate some lines."""
    for line in lines:
      self.copies.pop(line, None)
      chunk = line // CHUNK_LINES
      if chunk in self.maps: self.maps[chunk][line % CHUNK_LINES] = ABSENT

class WriteBuffer:
  """Lines with writes that have not reached memory. cure: says how to write them back."""
  def __init__(self, name: str, cure: str):
    self.name, self.cure = name, cure
    self.lines: set[int] = set()
    self.number = 0                # in maps of dirty lines, set at first use

class Pending(NamedTuple):
  """The content of a line before a WriteBuffer's writes to it, and the first writer."""
  before: bytearray
  writer: str

class HostWrites:
  """Physical addresses that the program has written in a card's memory since the last flush of the host data path, as
  merged ranges. name: of the card."""
  def __init__(self, name: str):
    self.name = name
    self.starts: list[int] = []
    self.ends: list[int] = []

  def add(self, start: int, end: int) -> None:
    """Add start..end, which the program has written."""
    low, high = bisect.bisect_left(self.ends, start), bisect.bisect_right(self.starts, end)
    if low < high: start, end = min(start, self.starts[low]), max(end, self.ends[high - 1])
    self.starts[low:high], self.ends[low:high] = [start], [end]

  def first(self, start: int, end: int) -> int | None:
    """Return the first address of start..end that was written."""
    i = bisect.bisect_right(self.ends, start)
    return max(start, self.starts[i]) if i < len(self.starts) and self.starts[i] < end else None

  def flush(self) -> None:
    """Forget all: the writes are in the card's memory now."""
    self.starts.clear()
    self.ends.clear()

MANY = 255
BIG_WRITE = 64 * LINE  # bytes: for a larger write the writer is recorded by range, not by line

class Coherence:
  """Memory of one computer with all its caches. host_writes: one for each card."""
  def __init__(self) -> None:
    self.pending: dict[int, dict[WriteBuffer, Pending]] = {}
    self.host_writes: list[HostWrites] = []
    self.writers: dict[int, str] = {}  # last writer of a line
    # by chunk: the caches that may have lines of it; the lines that any cache may have; the buffer that a line waits
    # for (MANY: more than one buffer)
    self.holders: dict[int, list[ReadCache]] = {}
    self.seen: dict[int, LineMap] = {}
    self.dirty: dict[int, LineMap] = {}
    self.buffers = 0
    # (first line, end, writer) of writes that are not recorded by line
    self.big_writes: deque[tuple[int, int, str]] = deque(maxlen=64)

  def host_is_ahead(self) -> bool:
    """Return whether the program has written bytes that are not flushed to a card."""
    return any(writes.starts for writes in self.host_writes)

  def read(self, entry: Range, offset: int, size: int, caches: tuple[ReadCache, ...], own: WriteBuffer | None,
           reader: str) -> None:
    """Check a read of bytes offset.. of a range, and fill the caches, nearest first. own: the buffer whose writes the
    reader sees."""
    base = entry.frames.physical + entry.offset
    for writes in self.host_writes:
      if writes.starts: self._check_host_writes(writes, entry, base + offset, size, reader)
    inside = (base + offset) % LINE
    if caches and inside + size <= LINE and caches[0].state((base + offset) // LINE) == SAME: return  # the common case
    if not caches: self.read_memory(entry, offset, size, own, reader)
    while caches and size > 0:
      inside = (base + offset) % LINE
      count = min(size, LINE - inside)
      self._read_line(entry, offset - inside, inside, inside + count, caches, own, reader)
      offset, size = offset + count, size - count

  def read_memory(self, entry: Range, offset: int, size: int, own: WriteBuffer | None, reader: str) -> None:
    """Check a read that meets neither caches nor the host data path: a read of the program itself."""
    base = entry.frames.physical + entry.offset
    for line in lines_of(base + offset, size, self.pending):
      low = max(line * LINE, base + offset) % LINE
      self._read_line(entry, line * LINE - base, low, min(LINE, base + offset + size - line * LINE), (), own, reader)

  def _check_host_writes(self, writes: HostWrites, entry: Range, physical: int, size: int, reader: str) -> None:
    at = writes.first(physical, physical + size)
    if at is None: return
    address = entry.start + at - entry.frames.physical - entry.offset
    raise StaleRead(f"{reader} reads {address:#x} (in {entry!r}), which the program wrote through the bar of "
                    f"{writes.name}; it may get what was "
                    "there before: flush the host data path first (WAIT_REG_MEM on HDP_FLUSH_REQ and _DONE, or "
                    "POLL_REGMEM with hdp_flush)")

  def _read_line(self, entry: Range, start: int, low: int, high: int, caches: tuple[ReadCache, ...],
                 own: WriteBuffer | None, reader: str) -> None:
    """Check a read of bytes low..high of a line, which begins at `start` of the range.

    Caches that miss take the line in, as the reader sees it. The nearest cache that hits must have the bytes as memory
    does. If all miss, every agent's writes must have reached memory.
    """
    line = (entry.frames.physical + entry.offset + start) // LINE
    current = entry.view[start + low:start + high]
    missed = 0
    for cache in caches:
      state = cache.state(line)
      if state == ABSENT:
        missed += 1
        continue
      if state == COPY and cache.copies[line][low:high] != current:
        raise self._stale(entry, start, low, cache.copies[line], reader, cache.name, self._writer(line), cache.cure)
      break
    else:
      for buffer, (before, writer) in self.pending.get(line, {}).items():
        if buffer is not own and before[low:high] != current:
          raise self._stale(entry, start, low, before, reader, buffer.name, writer, buffer.cure)
    if not missed: return
    # writes to foreign memory are not observed
    same = entry.frames.physical < FOREIGN and all(buffer is own for buffer in self.pending.get(line, ()))
    filled = None if same else self._visible(entry, start, line, own)
    for cache in caches[:missed]:
      self.map_of(cache, line // CHUNK_LINES)
      cache.put(line, None if filled is None else bytearray(filled))
    self.seen[line // CHUNK_LINES][line % CHUNK_LINES] = 1

  def map_of(self, cache: ReadCache, chunk: int) -> LineMap:
    """Return the states of a chunk's lines in a cache."""
    found = cache.maps.get(chunk)
    if found is None:
      found = cache.maps[chunk] = LineMap()
      self.holders.setdefault(chunk, []).append(cache)
      if chunk not in self.seen: self.seen[chunk] = LineMap()
    return found

  def dirty_of(self, chunk: int) -> LineMap:
    """Return the numbers of the buffers that a chunk's lines wait for."""
    found = self.dirty.get(chunk)
    if found is None: found = self.dirty[chunk] = LineMap()
    return found

  def number_of(self, buffer: WriteBuffer) -> int:
    """Return the number of a buffer in maps of dirty lines."""
    if not buffer.number:
      self.buffers += 1
      buffer.number = min(self.buffers, MANY)
    return buffer.number

  def _note(self, line: int) -> None:
    """Update the map of dirty lines after a change of the buffers that a line waits for."""
    waiting = self.pending.get(line, ())
    number = self.number_of(next(iter(waiting))) if len(waiting) == 1 else MANY if waiting else 0
    self.dirty_of(line // CHUNK_LINES)[line % CHUNK_LINES] = number

  def _copy(self, entry: Range, line: int, updated: tuple[ReadCache, ...]) -> None:
    """Copy a line before a write to it: caches that have it as memory does, and that the write does not update, keep
    the old content.
    """
    chunk, place = divmod(line, CHUNK_LINES)
    seen = self.seen.get(chunk)
    if seen is None or not seen[place]: return
    start = line * LINE - entry.frames.physical - entry.offset
    held = 0
    for cache in self.holders[chunk]:
      state = cache.maps[chunk][place]
      held += state
      if state == SAME and cache not in updated: cache.put(line, bytearray(entry.view[start:start + LINE]))
    if not held: seen[place] = 0

  def _writer(self, line: int) -> str:
    return self.writers.get(line) or next((who for low, high, who in reversed(self.big_writes) if low <= line < high),
                                          "the program")

  def _visible(self, entry: Range, start: int, line: int, own: WriteBuffer | None) -> bytearray:
    """Return a line without the writes that still wait in other agents' buffers."""
    found = bytearray(entry.view[start:start + LINE])
    for buffer, (before, _) in self.pending.get(line, {}).items():
      if buffer is own or before == found: continue
      for i, (old, new) in enumerate(zip(before, entry.view[start:start + LINE])):
        if old != new: found[i] = old
    return found

  def _stale(self, entry: Range, start: int, low: int, held: bytearray, reader: str, where: str, writer: str,
             cure: str) -> StaleRead:
    at = next(i for i in range(low, LINE) if held[i] != entry.view[start + i])
    return StaleRead(f"{reader} reads {entry.start + start + at:#x} (in {entry!r}), which {writer} wrote; it may get "
                     f"what was there before: "
                     f"{where} {cure}")

  def write(self, entry: Range, offset: int, data: bytes | bytearray | memoryview, own: WriteBuffer | None,
            updated: tuple[ReadCache, ...],
            writer: str) -> None:
    """Write bytes. own: the buffer where they wait for a write-back; None: they go to memory. updated: caches that the
    write passes; their copies get the bytes too."""
    base, size, done = entry.frames.physical + entry.offset + offset, len(data), 0
    if own is None and not updated and size > BIG_WRITE:
      self._write_big(entry, base, data, writer)
      done = size
    while done < size:
      line, inside = divmod(base + done, LINE)
      count = min(size - done, LINE - inside)
      part = data[done:done + count]
      self._copy(entry, line, updated)
      waiting = self.pending.get(line)
      if waiting is not None:
        for buffer, (before, _) in waiting.items():
          if buffer is not own: before[inside:inside + count] = part  # the buffer's own writes are to other bytes
      if own is not None and (waiting is None or own not in waiting):
        start = offset + done - inside
        self.pending.setdefault(line, {})[own] = Pending(bytearray(entry.view[start:start + LINE]), writer)
        own.lines.add(line)
        self._note(line)
      for cache in updated:
        held = cache.copies.get(line)
        if held is not None: held[inside:inside + count] = part
      self.writers[line] = writer
      done += count
    entry.view[offset:offset + size] = data

  def _write_big(self, entry: Range, physical: int, data: bytes | bytearray | memoryview, writer: str) -> None:
    """Write directly to memory. The old bytes that buffers keep are replaced too."""
    end = physical + len(data)
    for line in range(physical // LINE, (end + LINE - 1) // LINE): self._copy(entry, line, ())
    for line in lines_of(physical, len(data), self.pending):
      low, high = max(line * LINE, physical), min(line * LINE + LINE, end)
      for before, _ in self.pending[line].values():
        before[low - line * LINE:high - line * LINE] = data[low - physical:high - physical]
    for line in lines_of(physical, len(data), self.writers): del self.writers[line]
    self.big_writes.append((physical // LINE, (end + LINE - 1) // LINE, writer))

  def write_back(self, buffer: WriteBuffer, lines: set[int] | None = None) -> None:
    """Write the lines of a buffer back to memory. lines: only these."""
    done = buffer.lines if lines is None else buffer.lines & lines
    for line in done:
      waiting = self.pending[line]
      del waiting[buffer]
      if not waiting: del self.pending[line]
      self._note(line)
    buffer.lines = set() if lines is None else buffer.lines - lines

  def forget(self, physical: int, size: int) -> None:
    """Forget pages that were given back, with the writes that wait for them. `drop` removes them from caches."""
    for line in lines_of(physical, size, self.pending):
      for buffer in self.pending.pop(line): buffer.lines.discard(line)
      self._note(line)
    for line in lines_of(physical, size, self.writers): del self.writers[line]

def lines_of(physical: int, size: int, known: Collection[int]) -> list[int]:
  """Return the known lines that lie in a piece of physical memory."""
  low, high = physical // LINE, (physical + size + LINE - 1) // LINE
  if high - low < len(known): return [line for line in range(low, high) if line in known]
  return [line for line in known if low <= line < high]

def drop(cache: ReadCache, physical: int, size: int) -> None:
  """Invalidate the lines of a piece of physical memory."""
  low, high = physical // LINE, (physical + size + LINE - 1) // LINE
  for line in lines_of(physical, size, cache.copies): del cache.copies[line]
  for chunk in range(low // CHUNK_LINES, (high - 1) // CHUNK_LINES + 1):
    first, last = max(low - chunk * CHUNK_LINES, 0), min(high - chunk * CHUNK_LINES, CHUNK_LINES)
    if chunk in cache.maps: cache.maps[chunk][first:last] = bytes(last - first)

def lines_between(table: PageTable, start: int, end: int) -> set[int]:
  """Return the mapped lines of a device's addresses start..end."""
  found: set[int] = set()
  for entry in table.ranges:
    low, high = max(start, entry.start), min(end, entry.end)
    if low >= high: continue
    physical = entry.frames.physical + entry.offset + low - entry.start
    found.update(range(physical // LINE, (physical + high - low + LINE - 1) // LINE))
  return found
