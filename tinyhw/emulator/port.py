"""Path of an agent of a virtual GPU to memory: page table, caches, checks of uninitialised bytes and races, and windows
for translated code.

A family defines the caches of an access (`_chain`), and the buffer where a write waits (`_way_of_writes`). Strict
checks cost time. Without them an access is a look-up and a copy.
"""
from __future__ import annotations
from collections.abc import Callable, Sequence

from tinyhw.drivers.cpu.memory import address_of
from tinyhw.emulator.checks.order import Agent
from tinyhw.emulator.checks.races import Races
from tinyhw.emulator.errors import OutOfBounds, PageFault, UninitialisedRead
from tinyhw.emulator.memory.cache import CHUNK, LINE, Coherence, ReadCache, WriteBuffer
from tinyhw.emulator.memory.memory import ENGINE, SCALAR, VECTOR, AccessKind, Scope, AccessUnit
from tinyhw.emulator.memory.pages import PageTable, Range
from tinyhw.emulator.memory.physical import FOREIGN
from tinyhw.emulator.memory.windows import MemoryWindow, Windows

class Port:
  """Memory as one agent sees it: implements memory.MemoryInterface. who: for messages; it may change during use.

  races, mark: the Races of the workgroup's dispatch, and the mark of the workgroup in it. agent: the agent of an
  engine. It learns from the words that are read here, and publishes with the words that are written. The range of the
  last access is reused for the next one.
  """
  def __init__(self, table: PageTable, coherence: Coherence | None, who: str):
    self.table, self.coherence, self.who = table, coherence, who
    self.races: Races | None = None
    self.agent: Agent | None = None
    self.mark = 0
    self._chains: dict[tuple[AccessKind, bool], tuple[ReadCache, ...]] = {}
    self._last: Range | None = None
    self._at = 0
    self._changes = -1
    self._windows = {VECTOR: Windows(), SCALAR: Windows()}
    self._windows_changes = (-1, 0)

  # **** defined by a family ****

  def _chain(self, kind: AccessKind, uncached: bool) -> tuple[ReadCache, ...]:
    """Return the caches of a read, nearest first."""
    raise NotImplementedError

  def _buffer(self) -> WriteBuffer | None:
    """Return the buffer where this agent's writes may wait. The agent sees them."""
    return None

  def _way_of_writes(self, kind: AccessKind, uncached: bool) -> tuple[WriteBuffer | None, tuple[ReadCache, ...]]:
    """Return the buffer where a write waits, and the caches that it passes."""
    return None, ()

  def _is_of_lanes(self) -> bool:
    """Return whether the port belongs to a workgroup. Engines have no windows."""
    raise NotImplementedError

  # **** the table ****

  def _find(self, address: int, write: bool = False, execute: bool = False) -> Range:
    self._at = address
    entry = self._last
    if (entry is None or self._changes != self.table.changes or not entry.start <= address < entry.end
        or write > entry.writable or execute > entry.executable):
      entry = self._last = self.table.at(address, write, execute)
      self._changes = self.table.changes
    return entry

  def _caches(self, kind: AccessKind, uncached: bool) -> tuple[ReadCache, ...]:
    found = self._chains.get((kind, uncached))
    if found is None: found = self._chains[kind, uncached] = self._chain(kind, uncached)
    return found

  # **** memory.MemoryInterface ****

  def load(self, address: int, size: int, kind: AccessKind = VECTOR) -> bytes:
    entry = self._find(address, execute=kind.unit == AccessUnit.INSTRUCTION)
    if address + size > entry.end:
      inside = entry.end - address
      return self.load(address, inside, kind) + self.load(entry.end, size - inside, kind)
    offset = address - entry.start
    if self.coherence is not None: self._check(self.coherence, entry, offset, size, kind)
    return bytes(entry.view[offset:offset + size])

  def copy(self, source: int, target: int, size: int) -> None:
    """Copy bytes as an engine does. Uninitialised bytes may be copied, and the copy is then uninitialised too."""
    while size > 0:
      entry, into = self._find(source), self.table.at(target, write=True)
      count = min(size, entry.end - source, into.end - target)
      offset, place = source - entry.start, target - into.start
      if entry.frames.outlined: self._within(entry, offset, count, "reads")
      if into.frames.outlined: self._within(into, place, count, "writes")
      if self.coherence is not None: self.coherence.read(entry, offset, count, (), None, self.who)
      data = bytes(entry.view[offset:offset + count])
      if self.races is not None:
        self.races.read(entry, offset, count, 0, self.who)
        self.races.write(into, place, data, 0, self.who)
      if self.coherence is None: into.view[place:place + count] = data
      else: self._write(self.coherence, into, place, data, ENGINE)
      into.frames.mark_as(into.offset + place, entry.frames, entry.offset + offset, count)
      source, target, size = source + count, target + count, size - count

  def _within(self, entry: Range, offset: int, size: int, verb: str) -> None:
    """Raise OutOfBounds if one of the bytes is in no buffer of the program."""
    found = entry.frames.outside(entry.offset + offset, size)
    if found is None: return
    moved = entry.start - entry.offset  # from offsets in the pages to addresses
    address, near = found + moved, []
    for start, end in entry.frames.buffers_near(found):
      where = f"begins {start - found} bytes after" if start > found else f"ended {found - end} bytes before"
      near.append(f"one of {end - start} bytes at {start + moved:#x} {where} it")
    raise OutOfBounds(f"{self.who} {verb} {size} bytes at {entry.start + offset:#x}, and no buffer has {address:#x}: " +
                      (" and ".join(near) or "there is none near it"), address)

  def _check(self, coherence: Coherence, entry: Range, offset: int, size: int, kind: AccessKind) -> None:
    if entry.frames.outlined: self._within(entry, offset, size, "reads")
    if not entry.frames.is_written(entry.offset + offset, size):
      raise UninitialisedRead(f"{self.who} reads {size} bytes at {entry.start + offset:#x} (in {entry!r}) that "
                              f"nothing has written")
    coherence.read(entry, offset, size, self._caches(kind, entry.uncached), self._buffer(), self.who)
    if self.agent is not None: self.agent.observe(entry.frames.physical + entry.offset + offset, size)
    if (self.races is not None and kind.scope < Scope.DEVICE and kind.unit != AccessUnit.INSTRUCTION
        and not kind.private):
      self.races.read(entry, offset, size, self.mark, self.who)

  def store(self, address: int, data: bytes, kind: AccessKind = VECTOR, more: int = 0) -> None:
    """Write bytes. more: ended tasks that an engine's word stands for, in addition to those that the engine knows
    (order.py).
    """
    entry, size = self._find(address, write=True), len(data)
    if address + size > entry.end:
      inside = entry.end - address
      self._find(entry.end, write=True)  # a store that faults halfway writes nothing
      self.store(address, data[:inside], kind)
      self.store(entry.end, data[inside:], kind)
      return
    offset = address - entry.start
    if entry.frames.outlined: self._within(entry, offset, size, "writes")
    if self.agent is not None: self.agent.publish(entry.frames.physical + entry.offset + offset, size, more)
    entry.frames.mark(entry.offset + offset, size)
    if self.coherence is None: entry.view[offset:offset + size] = data
    else: self._write(self.coherence, entry, offset, data, kind)

  def _write(self, coherence: Coherence, entry: Range, offset: int, data: bytes, kind: AccessKind) -> None:
    buffer, updated = self._way_of_writes(kind, entry.uncached)
    if self.races is not None and self._is_of_lanes() and kind.scope < Scope.DEVICE and not kind.private:
      self.races.write(entry, offset, data, self.mark, self.who)
    coherence.write(entry, offset, data, buffer, updated, self.who)

  def atomic(self, address: int, size: int, update: Callable[[int], int], kind: AccessKind = VECTOR) -> int:
    entry = self._find(address, write=True)
    offset = address - entry.start
    agent, self.agent = self.agent, None
    try:
      if self.coherence is not None:
        self._check(self.coherence, entry, offset, size, AccessKind(kind.unit, max(kind.scope, Scope.DEVICE)))
      old = int.from_bytes(entry.view[offset:offset + size], "little")
      new = (update(old) & ((1 << size * 8) - 1)).to_bytes(size, "little")
      if self.races is not None: self.races.write(entry, offset, new, self.mark, self.who, atomic=True)
      self.store(address, new, AccessKind(kind.unit, max(kind.scope, Scope.DEVICE)))
    finally: self.agent = agent
    if agent is not None: agent.publish(entry.frames.physical + entry.offset + offset, size, keep=True)
    return old

  def gather(self, addresses: Sequence[int], size: int, kind: AccessKind = VECTOR) -> list[bytes]:
    first, count = addresses[0] if addresses else 0, len(addresses)
    if count > 1 and addresses[-1] == first + (count - 1) * size and all(a == first + i * size
                                                                         for i, a in enumerate(addresses)):
      whole = self.load(first, count * size, kind)
      return [whole[i:i + size] for i in range(0, count * size, size)]
    return [self.load(address, size, kind) for address in addresses]

  def scatter(self, addresses: Sequence[int], data: Sequence[bytes], kind: AccessKind = VECTOR) -> None:
    first, count = addresses[0] if addresses else 0, len(addresses)
    size = len(data[0]) if data else 0
    if count > 1 and addresses[-1] == first + (count - 1) * size and all(a == first + i * size
                                                                         for i, a in enumerate(addresses)):
      self.store(first, b"".join(data), kind)
    else:
      for address, value in zip(addresses, data): self.store(address, value, kind)

  def windows(self) -> tuple[int, int]:
    changes = self.table.changes, self._rivals()
    if self._windows_changes != changes or self.coherence is not None and self.coherence.host_is_ahead():
      for table in self._windows.values(): table.clear()
      self._windows_changes = changes
    return self._windows[VECTOR].address, self._windows[SCALAR].address

  def _rivals(self) -> int:
    """Return how many pages rivals of this dispatch have written. Translated code does not check rivals, so windows
    leave such pages out."""
    return 0 if self.races is None or not self.races.rivals else self.races.changes()

  def open_window(self, address: int, kind: AccessKind, write: bool) -> bool:
    table = self._windows.get(kind)
    if table is None or write and self.coherence is not None or self._windows_changes != (self.table.changes,
                                                                                          self._rivals()):
      return False
    try: entry = self._find(address)
    except PageFault: return False
    start, written = entry.start, entry.frames.written
    shadow = 0 if written is None else address_of(written) + entry.offset - start
    window = MemoryWindow(start, entry.end, address_of(entry.view) - start, 0, shadow, int(entry.writable))
    if self.coherence is None: return table.add(window)
    if not self._is_of_lanes() or entry.frames.physical >= FOREIGN or self.coherence.host_is_ahead(): return False
    found = self._watched(window._replace(written=shadow), entry, kind, self.coherence)
    return found is not None and table.add(found)

  def _watched(self, window: MemoryWindow, entry: Range, kind: AccessKind, coherence: Coherence) -> MemoryWindow | None:
    """Return a window with all checks, in the chunk of the last access. It leaves out the pages that rivals have
    written. Return None if a rival has written the page of the access."""
    moved = entry.frames.physical + entry.offset - entry.start  # from addresses to physical ones
    chunk = (self._at + moved) // CHUNK
    start, end = max(entry.start, chunk * CHUNK - moved), min(entry.end, (chunk + 1) * CHUNK - moved)
    if self.races is not None and self.races.rivals:
      start, end = (at - moved for at in self.races.unchanged(self._at + moved, start + moved, end + moved))
      if start >= end: return None
    first = (start + moved) % CHUNK
    moved_lines, caches = first // LINE - start // LINE, self._caches(kind, entry.uncached)
    held = [coherence.map_of(cache, chunk).address + moved_lines
            for cache in (*caches, *[caches[-1]] * (3 - len(caches)))]
    buffer = self._buffer()
    own = 0 if buffer is None else coherence.number_of(buffer)
    readers, writers = (0, 0) if self.races is None else (address + 2 * (first - start)
                                                          for address in self.races.addresses(chunk))
    return window._replace(start=start, end=end, held0=held[0], held1=held[1], held2=held[2],
                           seen=coherence.seen[chunk].address + moved_lines,
                           dirty=coherence.dirty_of(chunk).address + moved_lines, own=own, readers=readers,
                           writers=writers, mark=self.mark * 0x1000100010001)
