"""How a wave, a command processor or a copy engine of a virtual AMD GPU reaches memory: page table, caches, what was never written.

Which caches an access meets is a table by unit and scope, per generation. Strict checks cost time; without them an access is a look-up and a copy.
"""
from __future__ import annotations
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tinyhw.emulator.amd.cache import Coherence, ReadCache, WriteBuffer
from tinyhw.emulator.amd.races import Races
from tinyhw.emulator.errors import UninitialisedRead
from tinyhw.emulator.memory import VECTOR, Kind, Scope, Unit
from tinyhw.emulator.pages import PageTable, Range

class CacheNames(NamedTuple):
  """What the caches of a generation are called, and what makes each of them right: for messages."""
  vector: str
  scalar: str
  instruction: str
  first: str       # GL1; only where a chip has it
  last: str        # L2
  last_dirty: str

def _names(reads: str, write_back: str) -> CacheNames:
  """reads: the flags that invalidate, in the order of the fields; "-" where there is no such cache."""
  vector, scalar, instruction, first, last = (f"was not invalidated since; add {flag} to the ACQUIRE_MEM before the kernel" for flag in reads.split())
  return CacheNames(vector, scalar, instruction, first, last, f"has not written it back; add {write_back} to the RELEASE_MEM after it")

CACHE_NAMES = {
  9: _names("TCL1_ACTION_ENA SH_KCACHE_ACTION_ENA SH_ICACHE_ACTION_ENA - TC_ACTION_ENA", "TC_WB_ACTION_EN"),
  10: _names("GLV_INV GLK_INV GLI_INV GL1_INV GL2_INV", "GL2_WB"),
}

class Xcc:
  """The caches of one compute die. first: GL1, where the chip has one."""
  def __init__(self, number: int, packets: int, first_level: bool):
    names = CACHE_NAMES[packets]
    self.number = number
    self.vector: dict[int, ReadCache] = {}   # by compute unit
    self.vector_cure = names.vector
    self.scalar = ReadCache(f"the scalar cache of XCC {number}", names.scalar)
    self.instruction = ReadCache(f"the instruction cache of XCC {number}", names.instruction)
    self.first = ReadCache(f"the GL1 cache of XCC {number}", names.first) if first_level else None
    self.last = ReadCache(f"the L2 cache of XCC {number}", names.last)
    self.dirty = WriteBuffer(f"the L2 cache of XCC {number}", names.last_dirty)

  def vector_of(self, unit: int) -> ReadCache:
    """The vector cache of a compute unit."""
    if unit not in self.vector: self.vector[unit] = ReadCache(f"the vector cache of compute unit {unit} of XCC {self.number}", self.vector_cure)
    return self.vector[unit]

  def read_caches(self) -> list[ReadCache]:
    """All of them that reads fill."""
    return [*self.vector.values(), self.scalar, self.instruction, self.last, *([self.first] if self.first is not None else [])]

class Port:
  """Memory as one agent sees it: implements memory.Memory. who: for messages; may be changed while it is used.

  xcc and unit: where waves run; None for engines, which meet no cache. shared: the device has several XCCs, so that what DEVICE scope means is
  beyond one L2. races, mark: those of the dispatch that a workgroup belongs to, and its mark there. Addresses are looked up once for accesses that
  stay in one range.
  """
  def __init__(self, table: PageTable, coherence: Coherence | None, who: str, xcc: Xcc | None = None, unit: int = 0, shared: bool = False):
    self.table, self.coherence, self.who, self.xcc, self.unit, self.shared = table, coherence, who, xcc, unit, shared
    self.races: Races | None = None
    self.mark = 0
    self._chains: dict[tuple[Kind, bool], tuple[ReadCache, ...]] = {}
    self._last: Range | None = None
    self._changes = -1

  # **** the table ****

  def _find(self, address: int, write: bool = False, execute: bool = False) -> Range:
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
    xcc = self.xcc
    if xcc is None or kind.unit == Unit.ENGINE: return ()
    found: list[ReadCache] = []
    if kind.scope <= Scope.GROUP:
      if kind.unit == Unit.SCALAR: found.append(xcc.scalar)
      elif kind.unit == Unit.INSTRUCTION: found.append(xcc.instruction)
      elif kind.scope == Scope.UNIT: found.append(xcc.vector_of(self.unit))
      if xcc.first is not None: found.append(xcc.first)
    if not uncached and not self._beyond(kind): found.append(xcc.last)
    return tuple(found)

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

  def _check(self, coherence: Coherence, entry: Range, offset: int, size: int, kind: Kind) -> None:
    if not entry.frames.is_written(entry.offset + offset, size):
      raise UninitialisedRead(f"{self.who} reads {size} bytes at {entry.start + offset:#x} (in {entry!r}) that nothing has written")
    coherence.read(entry, offset, size, self._caches(kind, entry.uncached), None if self.xcc is None else self.xcc.dirty, self.who)
    if self.races is not None and kind.scope < Scope.DEVICE and kind.unit != Unit.INSTRUCTION and not kind.private:
      self.races.read(entry, offset, size, self.mark, self.who)

  def store(self, address: int, data: bytes, kind: Kind = VECTOR) -> None:
    entry, size = self._find(address, write=True), len(data)
    if address + size > entry.end:
      inside = entry.end - address
      self._find(entry.end, write=True)  # a store that faults halfway writes nothing
      self.store(address, data[:inside], kind)
      self.store(entry.end, data[inside:], kind)
      return
    offset = address - entry.start
    entry.frames.mark(entry.offset + offset, size)
    if self.coherence is None: entry.view[offset:offset + size] = data
    else: self._write(self.coherence, entry, offset, data, kind)

  def _write(self, coherence: Coherence, entry: Range, offset: int, data: bytes, kind: Kind) -> None:
    xcc = self.xcc
    if xcc is None: return coherence.write(entry, offset, data, None, (), self.who)
    if self.races is not None and kind.scope < Scope.DEVICE and not kind.private: self.races.write(entry, offset, data, self.mark, self.who)
    through = entry.uncached or self._beyond(kind)
    updated = [xcc.vector_of(self.unit)]
    if not entry.uncached: updated.append(xcc.last)
    if xcc.first is not None: updated.append(xcc.first)
    coherence.write(entry, offset, data, None if through else xcc.dirty, tuple(updated), self.who)

  def atomic(self, address: int, size: int, update: Callable[[int], int], kind: Kind = VECTOR) -> int:
    entry = self._find(address, write=True)
    offset = address - entry.start
    if self.coherence is not None: self._check(self.coherence, entry, offset, size, Kind(kind.unit, max(kind.scope, Scope.DEVICE)))
    old = int.from_bytes(entry.view[offset:offset + size], "little")
    new = (update(old) & ((1 << size * 8) - 1)).to_bytes(size, "little")
    if self.races is not None: self.races.write(entry, offset, new, self.mark, self.who, atomic=True)
    self.store(address, new, Kind(kind.unit, max(kind.scope, Scope.DEVICE)))
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

  def invalidate(self, kind: Kind) -> None:
    xcc = self.xcc
    if xcc is None: return
    if kind.unit == Unit.SCALAR: xcc.scalar.clear()
    elif kind.unit == Unit.INSTRUCTION: xcc.instruction.clear()
    else: xcc.vector_of(self.unit).clear()
    if kind.scope >= Scope.DEVICE and xcc.first is not None: xcc.first.clear()
    if self._beyond(kind): xcc.last.clear()

  def write_back(self, kind: Kind) -> None:
    if self.xcc is not None and self.coherence is not None and self._beyond(kind): self.coherence.write_back(self.xcc.dirty)
