"""The caches of blocks, channels and copy engines of a virtual NVIDIA GPU on their way to memory.

Loads of lanes go through the multiprocessor's L1. Constants and code go through caches of their own. Writes go through
to the L2, which all agents see. A line that a cache has kept from before another agent's write is a StaleRead
(memory/cache.py): an INVALIDATE_SHADER_CACHES is missing.
"""
from __future__ import annotations

from tinyhw.emulator import port
from tinyhw.emulator.memory.cache import Coherence, ReadCache, WriteBuffer
from tinyhw.emulator.memory.memory import AccessKind, Scope, AccessUnit
from tinyhw.emulator.memory.pages import PageTable

NAMES = {AccessUnit.VECTOR: ("L1 cache of multiprocessor {index}", "global_data"),
         AccessUnit.SCALAR: ("constant cache", "constant"),
         AccessUnit.INSTRUCTION: ("instruction cache", "instruction")}

class Caches:
  """The read caches of a GPU, by unit and multiprocessor."""
  def __init__(self, gpu: str):
    self.gpu = gpu
    self.made: dict[tuple[AccessUnit, int], ReadCache] = {}

  def find(self, unit: AccessUnit, index: int) -> ReadCache:
    """Return the cache that a unit of a multiprocessor reads through."""
    key = unit, index if unit is AccessUnit.VECTOR else 0
    if key not in self.made:
      name, flag = NAMES[unit]
      self.made[key] = ReadCache(f"the {name.format(index=index)} of {self.gpu}",
                                 f"was not invalidated since; set {flag} in an INVALIDATE_SHADER_CACHES_NO_WFI before "
                                 f"the kernel")
    return self.made[key]

  def forget(self, unit: AccessUnit) -> None:
    """Invalidate the caches of a kind."""
    for (kind, _), cache in self.made.items():
      if kind is unit: cache.clear()

class Port(port.Port):
  """Memory as one agent sees it. caches, index: of the multiprocessor where blocks run; None for channels and copy
  engines, which meet no cache."""
  def __init__(self, table: PageTable, coherence: Coherence | None, who: str, caches: Caches | None = None,
               index: int = 0):
    super().__init__(table, coherence, who)
    self.caches, self.index = caches, index

  def _chain(self, kind: AccessKind, uncached: bool) -> tuple[ReadCache, ...]:
    if (self.caches is None or kind.unit is AccessUnit.ENGINE or kind.unit is AccessUnit.VECTOR
        and kind.scope > Scope.GROUP):
      return ()
    return (self.caches.find(kind.unit, self.index),)

  def _is_of_lanes(self) -> bool: return self.caches is not None

  def _way_of_writes(self, kind: AccessKind, uncached: bool) -> tuple[WriteBuffer | None, tuple[ReadCache, ...]]:
    return None, () if self.caches is None else (self.caches.find(AccessUnit.VECTOR, self.index),)

  def invalidate(self, kind: AccessKind) -> None:
    if self.caches is not None: self.caches.find(kind.unit, self.index).clear()

  def write_back(self, kind: AccessKind) -> None: pass
