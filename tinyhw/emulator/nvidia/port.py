"""How a block, a channel or a copy engine of a virtual NVIDIA GPU reaches memory: page table, caches, what was never written.

Loads of lanes go through the multiprocessor's L1, constants and code through caches of their own; writes go through to the L2, which all see. What a
cache has kept from before somebody else's write is a StaleRead (cache.py): an INVALIDATE_SHADER_CACHES is missing.
"""
from __future__ import annotations
from collections.abc import Callable, Sequence

from tinyhw.emulator.cache import Coherence, ReadCache
from tinyhw.emulator.races import Races
from tinyhw.emulator.errors import UninitialisedRead
from tinyhw.emulator.memory import VECTOR, Kind, Scope, Unit
from tinyhw.emulator.pages import PageTable, Range
from tinyhw.emulator.windows import Windows

NAMES = {Unit.VECTOR: ("L1 cache of multiprocessor {index}", "global_data"), Unit.SCALAR: ("constant cache", "constant"),
         Unit.INSTRUCTION: ("instruction cache", "instruction")}

NO_WINDOWS = Windows()  # nothing is translated for these GPUs yet

class Caches:
  """The caches of a GPU that reads fill, by unit and multiprocessor."""
  def __init__(self, gpu: str):
    self.gpu = gpu
    self.made: dict[tuple[Unit, int], ReadCache] = {}

  def find(self, unit: Unit, index: int) -> ReadCache:
    """The cache that a unit of a multiprocessor reads through."""
    key = unit, index if unit is Unit.VECTOR else 0
    if key not in self.made:
      name, flag = NAMES[unit]
      self.made[key] = ReadCache(f"the {name.format(index=index)} of {self.gpu}",
                                 f"was not invalidated since; set {flag} in an INVALIDATE_SHADER_CACHES_NO_WFI before the kernel")
    return self.made[key]

  def forget(self, unit: Unit) -> None:
    """Empty the caches of a kind."""
    for (kind, _), cache in self.made.items():
      if kind is unit: cache.clear()

class Port:
  """Memory as one agent sees it: implements memory.Memory. who: for messages. races, mark: of the launch that a block belongs to."""
  def __init__(self, table: PageTable, coherence: Coherence | None, who: str, caches: Caches | None = None, index: int = 0):
    self.table, self.coherence, self.who, self.caches, self.index = table, coherence, who, caches, index
    self.races: Races | None = None
    self.mark = 0

  def _path(self, kind: Kind) -> tuple[ReadCache, ...]:
    if self.caches is None or kind.unit is Unit.ENGINE or kind.unit is Unit.VECTOR and kind.scope > Scope.GROUP: return ()
    return (self.caches.find(kind.unit, self.index),)

  def load(self, address: int, size: int, kind: Kind = VECTOR) -> bytes:
    entry = self.table.at(address, execute=kind.unit is Unit.INSTRUCTION)
    if address + size > entry.end:
      inside = entry.end - address
      return self.load(address, inside, kind) + self.load(entry.end, size - inside, kind)
    offset = address - entry.start
    if self.coherence is not None: self._check(self.coherence, entry, offset, size, kind)
    return bytes(entry.view[offset:offset + size])

  def _check(self, coherence: Coherence, entry: Range, offset: int, size: int, kind: Kind) -> None:
    if not entry.frames.is_written(entry.offset + offset, size):
      raise UninitialisedRead(f"{self.who} reads {size} bytes at {entry.start + offset:#x} (in {entry!r}) that nothing has written")
    coherence.read(entry, offset, size, self._path(kind), None, self.who)
    if self.races is not None and kind.scope < Scope.DEVICE and kind.unit is not Unit.INSTRUCTION and not kind.private:
      self.races.read(entry, offset, size, self.mark, self.who)

  def store(self, address: int, data: bytes, kind: Kind = VECTOR) -> None:
    entry, size = self.table.at(address, write=True), len(data)
    if address + size > entry.end:
      inside = entry.end - address
      self.table.at(entry.end, write=True)   # a store that faults halfway writes nothing
      self.store(address, data[:inside], kind)
      self.store(entry.end, data[inside:], kind)
      return
    offset = address - entry.start
    if self.races is not None and kind.scope < Scope.DEVICE and not kind.private: self.races.write(entry, offset, data, self.mark, self.who)
    entry.frames.mark(entry.offset + offset, size)
    if self.coherence is None: entry.view[offset:offset + size] = data
    else: self.coherence.write(entry, offset, data, None, self._updated(), self.who)

  def _updated(self) -> tuple[ReadCache, ...]:
    return () if self.caches is None else (self.caches.find(Unit.VECTOR, self.index),)

  def atomic(self, address: int, size: int, update: Callable[[int], int], kind: Kind = VECTOR) -> int:
    whole = Kind(kind.unit, max(kind.scope, Scope.DEVICE))
    old = int.from_bytes(self.load(address, size, whole), "little")
    new = (update(old) & ((1 << size * 8) - 1)).to_bytes(size, "little")
    entry = self.table.at(address, write=True)
    if self.races is not None: self.races.write(entry, address - entry.start, new, self.mark, self.who, atomic=True)
    self.store(address, new, whole)
    return old

  def copy(self, source: int, target: int, size: int) -> None:
    """Copy bytes as an engine does: also of memory that nothing has written, which the copy then is too."""
    while size > 0:
      entry, into = self.table.at(source), self.table.at(target, write=True)
      count = min(size, entry.end - source, into.end - target)
      offset, place = source - entry.start, target - into.start
      if self.coherence is not None: self.coherence.read(entry, offset, count, (), None, self.who)
      data = bytes(entry.view[offset:offset + count])
      if self.coherence is None: into.view[place:place + count] = data
      else: self.coherence.write(into, place, data, None, (), self.who)
      into.frames.mark_as(into.offset + place, entry.frames, entry.offset + offset, count)
      source, target, size = source + count, target + count, size - count

  def gather(self, addresses: Sequence[int], size: int, kind: Kind = VECTOR) -> list[bytes]:
    return [self.load(address, size, kind) for address in addresses]

  def scatter(self, addresses: Sequence[int], data: Sequence[bytes], kind: Kind = VECTOR) -> None:
    for address, value in zip(addresses, data): self.store(address, value, kind)

  def windows(self) -> tuple[int, int]: return NO_WINDOWS.address, NO_WINDOWS.address

  def open_window(self, kind: Kind) -> None: pass

  def invalidate(self, kind: Kind) -> None:
    if self.caches is not None: self.caches.find(kind.unit, self.index).clear()

  def write_back(self, kind: Kind) -> None: pass

