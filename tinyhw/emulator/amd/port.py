"""How a wave, a command processor or a copy engine of a virtual AMD GPU reaches memory: page table, caches, what was never written.

Which caches an access meets is a table by unit and scope, per generation. Strict checks cost time; without them an access is a look-up and a copy.
"""
from __future__ import annotations
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tinyhw.drivers.cpu.memory import address_of
from tinyhw.emulator.cache import CHUNK, LINE, Coherence, ReadCache, WriteBuffer
from tinyhw.emulator.amd.order import Agent
from tinyhw.emulator.races import Races
from tinyhw.emulator.errors import UninitialisedRead
from tinyhw.emulator.memory import ENGINE, SCALAR, VECTOR, Kind, Scope, Unit
from tinyhw.emulator.pages import PageTable, Range
from tinyhw.emulator.physical import FOREIGN
from tinyhw.emulator.windows import Window, Windows

class Level(NamedTuple):
  """A kind of cache: what it is called, and the flag of ACQUIRE_MEM that makes it forget, by packets (9: GFX9, 10: later)."""
  name: str
  flags: dict[int, str]

LEVELS = {
  "vector": Level("vector cache of compute unit {index}", {9: "TCL1_ACTION_ENA", 10: "GLV_INV"}),
  "scalar": Level("scalar cache", {9: "SH_KCACHE_ACTION_ENA", 10: "GLK_INV"}),
  "instruction": Level("instruction cache", {9: "SH_ICACHE_ACTION_ENA", 10: "GLI_INV"}),
  "first": Level("GL1 cache of shader array {index}", {10: "GL1_INV"}),
  "last": Level("L2 cache", {9: "TC_ACTION_ENA", 10: "GL2_INV"}),
}
WRITE_BACK = {9: "TC_WB_ACTION_EN", 10: "GL2_WB"}  # of RELEASE_MEM

class Xcc:
  """The caches of one compute die. array_units: compute units of a shader array, which share a GL1 cache; 0: the chip has none."""
  def __init__(self, number: int, packets: int, array_units: int):
    self.number, self.packets, self.array_units = number, packets, array_units
    self.caches: dict[str, dict[int, ReadCache]] = {level: {} for level in LEVELS}
    self.dirty = WriteBuffer(f"the L2 cache of XCC {number}", f"has not written it back; add {WRITE_BACK[packets]} to the RELEASE_MEM after it")

  def cache(self, level: str, index: int = 0) -> ReadCache:
    """A cache of a level of LEVELS: that of a compute unit, of a shader array, or the only one."""
    found = self.caches[level].get(index)
    if found is None:
      name, flag = LEVELS[level].name.format(index=index), LEVELS[level].flags[self.packets]
      found = ReadCache(f"the {name} of XCC {self.number}", f"was not invalidated since; add {flag} to the ACQUIRE_MEM before the kernel")
      self.caches[level][index] = found
    return found

  def path(self, levels: Sequence[str], unit: int) -> tuple[ReadCache, ...]:
    """The caches of these levels that a compute unit has, in this order."""
    index = {"vector": unit, "first": unit // (self.array_units or 1)}
    return tuple(self.cache(level, index.get(level, 0)) for level in levels if level != "first" or self.array_units)

  def read_caches(self) -> list[ReadCache]:
    """All of them that reads have filled."""
    return [cache for caches in self.caches.values() for cache in caches.values()]

  def forget(self, level: str, lines: set[int] | None = None) -> None:
    """Empty the caches of a level; lines: only those."""
    for cache in self.caches[level].values():
      if lines is None: cache.clear()
      else: cache.forget(lines)

class Port:
  """Memory as one agent sees it: implements memory.Memory. who: for messages; may be changed while it is used.

  xcc and unit: where waves run; None for engines, which meet no cache. shared: the device has several XCCs, so that what DEVICE scope means is
  beyond one L2. races, mark: those of the dispatch that a workgroup belongs to, and its mark there. Addresses are looked up once for accesses that
  stay in one range.
  """
  def __init__(self, table: PageTable, coherence: Coherence | None, who: str, xcc: Xcc | None = None, unit: int = 0, shared: bool = False):
    self.table, self.coherence, self.who, self.xcc, self.unit, self.shared = table, coherence, who, xcc, unit, shared
    self.races: Races | None = None
    self.agent: Agent | None = None      # of an engine: who learns by the words that are read here, and tells by those that are written
    self.mark = 0
    self._chains: dict[tuple[Kind, bool], tuple[ReadCache, ...]] = {}
    self._last: Range | None = None
    self._at = 0
    self._changes = -1
    self._windows = {VECTOR: Windows(), SCALAR: Windows()}
    self._windows_changes = (-1, 0)

  # **** the table ****

  def _find(self, address: int, write: bool = False, execute: bool = False) -> Range:
    self._at = address
    entry = self._last
    if entry is None or self._changes != self.table.changes or not entry.start <= address < entry.end or write > entry.writable or \
        execute > entry.executable:
      entry = self._last = self.table.at(address, write, execute)
      self._changes = self.table.changes
    return entry

  def _caches(self, kind: Kind, uncached: bool) -> tuple[ReadCache, ...]:
    """Caches that a read meets, nearest first."""
    found = self._chains.get((kind, uncached))
    if found is None: found = self._chains[kind, uncached] = self._chain(kind, uncached)
    return found

  def _chain(self, kind: Kind, uncached: bool) -> tuple[ReadCache, ...]:
    if self.xcc is None or kind.unit == Unit.ENGINE: return ()
    levels: list[str] = []
    if kind.scope <= Scope.GROUP:
      nearest = {Unit.SCALAR: "scalar", Unit.INSTRUCTION: "instruction"}.get(kind.unit, "vector")
      if nearest != "vector" or kind.scope == Scope.UNIT: levels.append(nearest)
      levels.append("first")
    if not uncached and not self._beyond(kind): levels.append("last")
    return self.xcc.path(levels, self.unit)

  def _beyond(self, kind: Kind) -> bool:
    """Does the scope reach beyond the L2?"""
    return kind.scope == Scope.SYSTEM or self.shared and kind.scope == Scope.DEVICE

  # **** memory.Memory ****

  def load(self, address: int, size: int, kind: Kind = VECTOR) -> bytes:
    entry = self._find(address, execute=kind.unit == Unit.INSTRUCTION)
    if address + size > entry.end:
      inside = entry.end - address
      return self.load(address, inside, kind) + self.load(entry.end, size - inside, kind)
    offset = address - entry.start
    if self.coherence is not None: self._check(self.coherence, entry, offset, size, kind)
    return bytes(entry.view[offset:offset + size])

  def copy(self, source: int, target: int, size: int) -> None:
    """Copy bytes as an engine does: also of memory that nothing has written, which the copy then is too."""
    while size > 0:
      entry, into = self._find(source), self.table.at(target, write=True)
      count = min(size, entry.end - source, into.end - target)
      offset, place = source - entry.start, target - into.start
      if self.coherence is not None: self.coherence.read(entry, offset, count, (), None, self.who)
      data = bytes(entry.view[offset:offset + count])
      if self.races is not None:
        self.races.read(entry, offset, count, 0, self.who)
        self.races.write(into, place, data, 0, self.who)
      if self.coherence is None: into.view[place:place + count] = data
      else: self._write(self.coherence, into, place, data, ENGINE)
      into.frames.mark_as(into.offset + place, entry.frames, entry.offset + offset, count)
      source, target, size = source + count, target + count, size - count

  def _check(self, coherence: Coherence, entry: Range, offset: int, size: int, kind: Kind) -> None:
    if not entry.frames.is_written(entry.offset + offset, size):
      raise UninitialisedRead(f"{self.who} reads {size} bytes at {entry.start + offset:#x} (in {entry!r}) that nothing has written")
    coherence.read(entry, offset, size, self._caches(kind, entry.uncached), None if self.xcc is None else self.xcc.dirty, self.who)
    if self.agent is not None: self.agent.observe(entry.frames.physical + entry.offset + offset, size)
    if self.races is not None and kind.scope < Scope.DEVICE and kind.unit != Unit.INSTRUCTION and not kind.private:
      self.races.read(entry, offset, size, self.mark, self.who)

  def store(self, address: int, data: bytes, kind: Kind = VECTOR, more: int = 0) -> None:
    """more: ended tasks that an engine's word stands for, besides those that the engine knows of (order.py)."""
    entry, size = self._find(address, write=True), len(data)
    if address + size > entry.end:
      inside = entry.end - address
      self._find(entry.end, write=True)  # a store that faults halfway writes nothing
      self.store(address, data[:inside], kind)
      self.store(entry.end, data[inside:], kind)
      return
    offset = address - entry.start
    if self.agent is not None: self.agent.publish(entry.frames.physical + entry.offset + offset, size, more)
    entry.frames.mark(entry.offset + offset, size)
    if self.coherence is None: entry.view[offset:offset + size] = data
    else: self._write(self.coherence, entry, offset, data, kind)

  def _write(self, coherence: Coherence, entry: Range, offset: int, data: bytes, kind: Kind) -> None:
    xcc = self.xcc
    if xcc is None: return coherence.write(entry, offset, data, None, (), self.who)
    if self.races is not None and kind.scope < Scope.DEVICE and not kind.private: self.races.write(entry, offset, data, self.mark, self.who)
    through = entry.uncached or self._beyond(kind)
    updated = xcc.path(("vector", "first") if entry.uncached else ("vector", "first", "last"), self.unit)
    coherence.write(entry, offset, data, None if through else xcc.dirty, updated, self.who)

  def atomic(self, address: int, size: int, update: Callable[[int], int], kind: Kind = VECTOR) -> int:
    entry = self._find(address, write=True)
    offset = address - entry.start
    agent, self.agent = self.agent, None
    try:
      if self.coherence is not None: self._check(self.coherence, entry, offset, size, Kind(kind.unit, max(kind.scope, Scope.DEVICE)))
      old = int.from_bytes(entry.view[offset:offset + size], "little")
      new = (update(old) & ((1 << size * 8) - 1)).to_bytes(size, "little")
      if self.races is not None: self.races.write(entry, offset, new, self.mark, self.who, atomic=True)
      self.store(address, new, Kind(kind.unit, max(kind.scope, Scope.DEVICE)))
    finally: self.agent = agent
    if agent is not None: agent.publish(entry.frames.physical + entry.offset + offset, size, keep=True)
    return old

  def gather(self, addresses: Sequence[int], size: int, kind: Kind = VECTOR) -> list[bytes]:
    first, count = addresses[0] if addresses else 0, len(addresses)
    if count > 1 and addresses[-1] == first + (count - 1) * size and all(a == first + i * size for i, a in enumerate(addresses)):
      whole = self.load(first, count * size, kind)
      return [whole[i:i + size] for i in range(0, count * size, size)]
    return [self.load(address, size, kind) for address in addresses]

  def scatter(self, addresses: Sequence[int], data: Sequence[bytes], kind: Kind = VECTOR) -> None:
    first, count = addresses[0] if addresses else 0, len(addresses)
    size = len(data[0]) if data else 0
    if count > 1 and addresses[-1] == first + (count - 1) * size and all(a == first + i * size for i, a in enumerate(addresses)):
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
    """What rivals of this dispatch have written, as a count: translated code does not look for it, so windows leave it out."""
    return 0 if self.races is None or not self.races.rivals else self.races.changes()

  def open_window(self, kind: Kind) -> None:
    entry, table = self._last, self._windows.get(kind)
    if table is None or entry is None or self._changes != self.table.changes or self._windows_changes != (self.table.changes, self._rivals()): return
    start, written = entry.start, entry.frames.written
    shadow = 0 if written is None else address_of(written) + entry.offset - start
    window = Window(start, entry.end, address_of(entry.view) - start, 0, shadow, int(entry.writable))
    if self.coherence is None: table.add(window)
    elif self.xcc is not None and entry.frames.physical < FOREIGN and not self.coherence.host_is_ahead():
      found = self._watched(window._replace(written=shadow), entry, kind, self.coherence, self.xcc)
      if found is not None: table.add(found)

  def _watched(self, window: Window, entry: Range, kind: Kind, coherence: Coherence, xcc: Xcc) -> Window | None:
    """A window with all that is to be looked at, onto what no rival has written of the last access's chunk; None if one has written there."""
    moved = entry.frames.physical + entry.offset - entry.start  # from addresses to physical ones
    chunk = (self._at + moved) // CHUNK
    start, end = max(entry.start, chunk * CHUNK - moved), min(entry.end, (chunk + 1) * CHUNK - moved)
    if self.races is not None and self.races.rivals:
      start, end = (at - moved for at in self.races.unchanged(self._at + moved, start + moved, end + moved))
      if start >= end: return None
    first = (start + moved) % CHUNK
    moved_lines, caches = first // LINE - start // LINE, self._caches(kind, entry.uncached)
    held = [coherence.map_of(cache, chunk).address + moved_lines for cache in (*caches, *[caches[-1]] * (3 - len(caches)))]
    readers, writers = (0, 0) if self.races is None else (address + 2 * (first - start) for address in self.races.addresses(chunk))
    return window._replace(start=start, end=end, held0=held[0], held1=held[1], held2=held[2], seen=coherence.seen[chunk].address + moved_lines,
                           dirty=coherence.dirty_of(chunk).address + moved_lines, own=coherence.number_of(xcc.dirty), readers=readers,
                           writers=writers, mark=self.mark * 0x1000100010001)

  def invalidate(self, kind: Kind) -> None:
    if self.xcc is None: return
    levels = [{Unit.SCALAR: "scalar", Unit.INSTRUCTION: "instruction"}.get(kind.unit, "vector")]
    if kind.scope >= Scope.DEVICE: levels.append("first")
    if self._beyond(kind): levels.append("last")
    for cache in self.xcc.path(levels, self.unit): cache.clear()

  def write_back(self, kind: Kind) -> None:
    if self.xcc is not None and self.coherence is not None and self._beyond(kind): self.coherence.write_back(self.xcc.dirty)
