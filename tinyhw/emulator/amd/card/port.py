"""The caches of waves, command processors and copy engines of a virtual AMD GPU on their way to memory: by unit and
scope, per generation."""
from __future__ import annotations
from collections.abc import Sequence

from tinyhw.emulator import port
from tinyhw.emulator.memory.cache import Coherence, ReadCache, WriteBuffer
from tinyhw.emulator.memory.memory import AccessKind, Scope, AccessUnit
from tinyhw.emulator.memory.pages import PageTable
from tinyhw.named_tuple import NamedTuple

class CacheLevel(NamedTuple):
  """A kind of cache: its name, and the flag of ACQUIRE_MEM that invalidates it, by packets (9: GFX9, 10: later)."""
  name: str
  flags: dict[int, str]

LEVELS = {
  "vector": CacheLevel("vector cache of compute unit {index}", {9: "TCL1_ACTION_ENA", 10: "GLV_INV"}),
  "scalar": CacheLevel("scalar cache", {9: "SH_KCACHE_ACTION_ENA", 10: "GLK_INV"}),
  "instruction": CacheLevel("instruction cache", {9: "SH_ICACHE_ACTION_ENA", 10: "GLI_INV"}),
  "first": CacheLevel("GL1 cache of shader array {index}", {10: "GL1_INV"}),
  "last": CacheLevel("L2 cache", {9: "TC_ACTION_ENA", 10: "GL2_INV"}),
}
WRITE_BACK = {9: "TC_WB_ACTION_EN", 10: "GL2_WB"}  # of RELEASE_MEM

class Xcc:
  """The caches of one compute die. array_units: compute units of a shader array, which share a GL1 cache; 0: the chip
  has none."""
  def __init__(self, number: int, packets: int, array_units: int):
    self.number, self.packets, self.array_units = number, packets, array_units
    self.caches: dict[str, dict[int, ReadCache]] = {level: {} for level in LEVELS}
    self.dirty = WriteBuffer(f"the L2 cache of XCC {number}", f"has not written it back; add {WRITE_BACK[packets]} to "
                             f"the RELEASE_MEM after it")

  def cache(self, level: str, index: int = 0) -> ReadCache:
    """Return a cache of a level of LEVELS: that of a compute unit, of a shader array, or the only one."""
    found = self.caches[level].get(index)
    if found is None:
      name, flag = LEVELS[level].name.format(index=index), LEVELS[level].flags[self.packets]
      found = ReadCache(f"the {name} of XCC {self.number}", f"was not invalidated since; add {flag} to the "
                        f"ACQUIRE_MEM before the kernel")
      self.caches[level][index] = found
    return found

  def path(self, levels: Sequence[str], unit: int) -> tuple[ReadCache, ...]:
    """Return the caches of these levels that a compute unit has, in this order."""
    index = {"vector": unit, "first": unit // (self.array_units or 1)}
    return tuple(self.cache(level, index.get(level, 0)) for level in levels if level != "first" or self.array_units)

  def read_caches(self) -> list[ReadCache]:
    """Return all caches that reads have filled."""
    return [cache for caches in self.caches.values() for cache in caches.values()]

  def forget(self, level: str, lines: set[int] | None = None) -> None:
    """Invalidate the caches of a level. lines: only these."""
    for cache in self.caches[level].values():
      if lines is None: cache.clear()
      else: cache.forget(lines)

class Port(port.Port):
  """Memory as one agent sees it. xcc and unit: of waves; None for engines, which meet no cache.

  shared: the device has several XCCs, so that DEVICE scope reaches beyond one L2.
  """
  def __init__(self, table: PageTable, coherence: Coherence | None, who: str, xcc: Xcc | None = None, unit: int = 0,
               shared: bool = False):
    super().__init__(table, coherence, who)
    self.xcc, self.unit, self.shared = xcc, unit, shared

  def _chain(self, kind: AccessKind, uncached: bool) -> tuple[ReadCache, ...]:
    if self.xcc is None or kind.unit == AccessUnit.ENGINE: return ()
    levels: list[str] = []
    if kind.scope <= Scope.GROUP:
      nearest = {AccessUnit.SCALAR: "scalar", AccessUnit.INSTRUCTION: "instruction"}.get(kind.unit, "vector")
      if nearest != "vector" or kind.scope == Scope.UNIT: levels.append(nearest)
      levels.append("first")
    if not uncached and not self._beyond(kind): levels.append("last")
    return self.xcc.path(levels, self.unit)

  def _beyond(self, kind: AccessKind) -> bool:
    """Return whether the scope reaches beyond the L2."""
    return kind.scope == Scope.SYSTEM or self.shared and kind.scope == Scope.DEVICE

  def _buffer(self) -> WriteBuffer | None: return None if self.xcc is None else self.xcc.dirty
  def _is_of_lanes(self) -> bool: return self.xcc is not None

  def _way_of_writes(self, kind: AccessKind, uncached: bool) -> tuple[WriteBuffer | None, tuple[ReadCache, ...]]:
    if self.xcc is None: return None, ()
    updated = self.xcc.path(("vector", "first") if uncached else ("vector", "first", "last"), self.unit)
    return None if uncached or self._beyond(kind) else self.xcc.dirty, updated

  def invalidate(self, kind: AccessKind) -> None:
    if self.xcc is None: return
    levels = [{AccessUnit.SCALAR: "scalar", AccessUnit.INSTRUCTION: "instruction"}.get(kind.unit, "vector")]
    if kind.scope >= Scope.DEVICE: levels.append("first")
    if self._beyond(kind): levels.append("last")
    for cache in self.xcc.path(levels, self.unit): cache.clear()

  def write_back(self, kind: AccessKind) -> None:
    if self.xcc is not None and self.coherence is not None and self._beyond(kind):
      self.coherence.write_back(self.xcc.dirty)
