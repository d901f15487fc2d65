"""Cost of a GPU kernel's loads and stores in shared memory, caches and memory, by the addresses of their lanes.

Input: a card (hardware.py) and the addresses of the lanes of an access (access.py). Output: cycles of one unit, by
resource: "d" shared memory, "g" the caches next to the unit, "2" second-level caches, "l" the last-level cache, "m"
memory.

If an access is unknown, each of its lanes is in a sector of its own, and there are no bank conflicts. Data that lanes
of other waves request at the same time go once into each second-level cache, and come from memory once.
"""
from __future__ import annotations
from collections.abc import Callable, Mapping, Sequence

from tinyhw.machine.ir.inst import Function, MInst
from tinyhw.machine.model.access import Accesses, Pattern, bank_cycles, distinct_bytes, sectors
from tinyhw.machine.model.hardware import Hardware
from tinyhw.machine.model.listing import find_loops, is_bulk_copy, is_copy, accessed
from tinyhw.machine.model.listing_waves import executions
from tinyhw.machine.model.occupancy import KernelResources, residency
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

Patterns = Callable[[MInst], Pattern | None]
Touched = Callable[[MInst], int]

def unknown(inst: MInst) -> Pattern | None:
  """The pattern of an unknown access."""
  return None

class Traffic:
  """The cost of accesses.

  - wave: lanes of a wave.
  - units: number of units that share the card's caches and memory: all, or the number of workgroups.
  - once: for a buffer that the last cache holds, the share of requests to that cache that come from memory.
  - goal: the pattern of a copy's writes to shared memory.
  """

  def __init__(self, hardware: Hardware, wave: int, pattern: Patterns = unknown, units: int | None = None,
               once: Mapping[UOp, float] | None = None,
               goal: Patterns = unknown):
    self.hardware, self.wave, self.pattern, self.once, self.goal = hardware, wave, pattern, once or {}, goal
    self.units = hardware.units if units is None else units

  def local(self, inst: MInst, size: int) -> float:
    """Cycles of shared memory, for `size` bytes of all lanes together. For a copy from memory, the cycles of its
    writes."""
    banks, pattern = self.hardware.banks, self.goal(inst) if is_copy(inst) else self.pattern(inst)
    if is_bulk_copy(inst): return done(pattern) * size / self.hardware.local_rate
    cycles = bank_cycles(pattern, self.width(size), banks) if pattern is not None else max(1, size // (4 * banks))
    return done(pattern) * cycles * 4.0 * banks / self.hardware.local_rate

  def shared(self, inst: MInst, size: int, private: bool = False) -> dict[str, float]:
    """Cycles of caches and memory. private: memory of each lane alone, with interleaved addresses."""
    card, pattern, width = self.hardware, self.pattern(inst), self.width(size)
    count: float
    read: float
    if is_bulk_copy(inst):
      count, read = size / card.sector, size
      fresh, shared = (pattern.fresh, pattern.shared) if pattern is not None else (1.0, 1.0)
    elif private: count, fresh, shared, read = size // card.sector, 1.0, 1.0, size
    elif pattern is None: count, fresh, shared, read = self.wave * max(1, width // card.sector), 1.0, 1.0, size
    else:
      count, fresh, shared, read = sectors(pattern, width,
                                           card.sector), pattern.fresh, pattern.shared, distinct_bytes(pattern, width)
    count, read = count * done(pattern), read * done(pattern)
    moved, place = float(card.sector * count), accessed(inst)
    once = self.once.get(place.src[0], 1.0) if place is not None else 1.0
    found = {"g": moved / card.first_rate, "2": moved * self.units / card.second_rate,
             "m": read * fresh * once * self.units / card.memory_rate}
    if card.last_gbs: found["l"] = moved * shared * self.units / card.last_rate
    return found

  def width(self, size: int) -> int:
    """Bytes of a lane."""
    return max(1, size // self.wave)

  def conflict(self, inst: MInst, size: int) -> float:
    """The factor by which bank conflicts slow an access of shared memory."""
    pattern, width, banks = self.pattern(inst), self.width(size), self.hardware.banks
    if pattern is None: return 1.0
    return bank_cycles(pattern, width, banks) / max(1, len(pattern.lanes[0]) * max(width, 4) // (4 * banks))

  def scattered(self, inst: MInst, size: int) -> tuple[int, int]:
    """Sectors of an access, and the least sectors for the same bytes; (0, 0) if it is unknown."""
    pattern, width = self.pattern(inst), self.width(size)
    if pattern is None: return 0, 0
    return sectors(pattern, width, self.hardware.sector), -(-width * len(pattern.lanes[0]) // self.hardware.sector)

def done(pattern: Pattern | None) -> float:
  """The share of lanes that access memory."""
  return 1.0 if pattern is None else pattern.done

def goal_of(inst: MInst) -> UOp | None:
  """The INDEX in shared memory that a copy from memory (ASYNC_COPY) writes."""
  return inst.origin.src[0] if is_copy(inst) else None

def patterns(hardware: Hardware, wave: int, kernel: KernelResources, uops: Sequence[UOp],
             accessed: Callable[[MInst], UOp | None] = accessed) -> Patterns:
  """A function from an access to the addresses of its lanes, with as many workgroups as the card holds. uops: of the
  program."""
  groups = residency(hardware.unit, kernel, hardware.units).groups * hardware.units
  accesses = Accesses(uops, wave, groups, hardware.dies)
  def pattern(inst: MInst) -> Pattern | None:
    place = accessed(inst)
    if place is None: return None
    return accesses.pattern(place, inst.origin.src[2] if is_copy(inst) and len(inst.origin.src) > 2 else None)
  return pattern

def shares_of_memory(kernel: KernelResources, function: Function, wave: int, touched: Touched, pattern: Patterns,
                     cache_bytes: int) -> dict[UOp, float]:
  """For each buffer that fits into the last cache: its size divided by the bytes that waves request at different times,
  at most 1."""
  if kernel.grid is None: return {}
  waves = kernel.grid * max(1, -(-kernel.lanes // wave))
  asked: dict[UOp, float] = {}
  for count, block in zip(executions(function, find_loops(function)), function.blocks):
    for inst in block.insts:
      place, found = accessed(inst), pattern(inst)
      if place is None or found is None or place.src[0].op is not Ops.PARAM: continue
      each = touched(inst) if is_bulk_copy(inst) else distinct_bytes(found, max(1, touched(inst) // wave))
      asked[place.src[0]] = asked.get(place.src[0], 0.0) + each * done(found) * found.fresh * count * waves
  sizes = {buffer: buffer.arg[1] * buffer.dtype.itemsize for buffer in asked}
  return {buffer: min(1.0, size / asked[buffer]) for buffer, size in sizes.items() if size <= cache_bytes}
