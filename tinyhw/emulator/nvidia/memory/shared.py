"""Shared memory of a block with mbarriers, or with asynchronous reads and writes besides those of warps.

Vector clocks find races, where lds.py has barriers only. Each warp, each warpgroup's products and each mbarrier's
copies are an actor with a clock. Each actor has a table of its knowledge of the others. An access is stamped with the
clock of its actor. Another actor that touches the same byte must know of that time. Barriers of the block, mbarriers
and waits for products pass knowledge on (`release`, `acquire`).

Loads and stores of warps use the generic proxy, products and tensor copies the asynchronous proxy. A store of a warp is
visible to the latter after the same warp has executed FENCE.VIEW.ASYNC. Source: PTX ISA, "Async proxy". The emulator
does not assume that a fence of the reader would do as well.
"""
from __future__ import annotations
import random
import re
from array import array
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tinyhw.emulator.errors import DataRace, EmulatorError
from tinyhw.emulator.memory.lds import ATOMIC, READ, RIVALS, WHAT, WRITE, Access, LocalMemory, MemoryTerms
from tinyhw.emulator.memory.windows import NOWHERE, LocalWindow
from tinyhw.named_tuple import NamedTuple

if TYPE_CHECKING: from tinyhw.emulator.nvidia.memory.mbarrier import Mbarrier

WORDS = MemoryTerms("shared memory", "warp", "block", "raise SHARED_MEMORY_SIZE",
                    "put a barrier between them (BAR.SYNC)")
MBARRIER_BYTES = 8
VIEW = 3              # becoming visible to the asynchronous proxy
DONE = (*WHAT, "make visible to products and copies")
Clock = dict[int, int]   # actor -> time

class Delivery(NamedTuple):
  """A copy in flight: pieces by address. arrived: called when they have come. actor: that of its mbarrier."""
  actor: int
  pieces: list[tuple[int, bytes]]
  arrived: Callable[[], None]

class Marks:
  """The clock of an actor's last access of a kind to each byte, and the latest of all."""
  __slots__ = ("times", "latest")

  def __init__(self, size: int):
    self.times, self.latest = array("I", bytes(4 * size)), 0

class SharedMemory(LocalMemory):
  """Shared memory with clocks.

  - warps: of the block. names: of actors by number: the warps, then others.
  - now: an actor's clock. knows: for each actor, the time of others up to which it knows their accesses.
  - marks: by kind and actor, its accesses.
  - unfenced: for each byte the number plus 1 of the warp that has stored it and not fenced it since.
  - mbarriers: by address. deliveries: tensor copies in flight.
  """

  def __init__(self, size: int, source: random.Random, warps: int):
    super().__init__(size, source, WORDS)
    self.warps = range(warps)
    self.names: list[str] = []
    self.now: list[int] = []
    self.knows: list[Clock] = []
    self.marks: tuple[dict[int, Marks], ...] = tuple({} for _ in DONE)
    self.unfenced = bytearray(size)
    self.mbarriers: dict[int, Mbarrier] = {}
    self.deliveries: list[Delivery] = []
    self.source = source
    for warp in self.warps: self.actor(f"warp {warp}")

  def actor(self, name: str) -> int:
    """Add an actor. Return its number."""
    self.names.append(name)
    self.knows.append({})
    self.now.append(1)
    return len(self.names) - 1

  def reach(self, wave: int) -> LocalWindow: return NOWHERE   # translated code knows no clocks

  # ***** knowledge of actors *****

  def release(self, warp: int) -> Clock:
    """Return a warp's knowledge, including all its own accesses. Its later accesses get a later time."""
    known = {**self.knows[warp], warp: self.now[warp]}
    self.now[warp] += 1
    return known

  def acquire(self, actor: int, known: Clock) -> None:
    """Add released knowledge to that of an actor."""
    mine = self.knows[actor]
    for other, time in known.items(): mine[other] = max(time, mine.get(other, 0))

  def in_common(self, warps: Iterable[int]) -> Clock:
    """Return the common knowledge of some warps."""
    all_known = [{**self.knows[warp], warp: self.now[warp]} for warp in warps]
    return {other: min(known.get(other, 0) for known in all_known) for other in all_known[0]}

  def barrier(self, unfinished: Iterable[tuple[int, Access]]) -> None:
    everything: Clock = {}
    for warp in self.warps:
      for other, time in self.release(warp).items(): everything[other] = max(time, everything.get(other, 0))
    for warp in self.warps: self.acquire(warp, everything)
    for warp, (address, size, kind) in unfinished: self.touch(warp, address, size, kind)

  # ***** accesses *****

  def store(self, wave: int, address: int, data: bytes) -> None:
    super().store(wave, address, data)
    self.hide(wave, address, len(data))

  def finish(self, wave: int, address: int, data: bytes) -> None:
    super().finish(wave, address, data)
    self.mark(wave, address, len(data), WRITE)   # it may have written until now: knowledge of its start is not enough
    self.hide(wave, address, len(data))

  def hide(self, warp: int, address: int, size: int) -> None:
    """Hide a warp's stores from the asynchronous proxy until a fence."""
    self.unfenced[address:address + size] = bytes((warp + 1,)) * size

  def expect(self, actor: int, address: int, size: int) -> None:
    """Begin a tensor copy that will write here."""
    self.touch(actor, address, size, WRITE, (*RIVALS[WRITE], VIEW))
    self.check_fenced(address, size)
    self.start(actor, address, size)

  def check_end(self) -> None:
    """Raise DataRace if the block ends too early."""
    if self.deliveries:
      raise DataRace(f"the block ends, and {len(self.deliveries)} copies to its memory have not been waited for "
                     f"(SYNCS.PHASECHK)")

  def deliver(self) -> bool:
    """Let a random copy arrive. Return whether one was in flight."""
    if not self.deliveries: return False
    delivery = self.deliveries.pop(self.source.randrange(len(self.deliveries)))
    for address, data in delivery.pieces: super().finish(delivery.actor, address, data)
    delivery.arrived()
    return True

  def fence(self, warp: int) -> None:
    """Make a warp's stores visible to the asynchronous proxy, for actors that know of the fence."""
    for found in re.finditer(re.escape(bytes((warp + 1,))) + b"+", self.unfenced):
      self.mark(warp, found.start(), found.end() - found.start(), VIEW)
    self.unfenced = bytearray(self.unfenced.translate(bytes(0 if mark == warp + 1 else mark for mark in range(256))))

  def look(self, actor: int, address: int, size: int) -> bytes:
    """Return bytes as the asynchronous proxy reads them."""
    self.touch(actor, address, size, READ, (WRITE, ATOMIC, VIEW))
    self.check_written(address, size)
    self.check_fenced(address, size)
    return bytes(self.data[address:address + size])

  def check_fenced(self, address: int, size: int) -> None:
    warps = set(self.unfenced[address:address + size]) - {0}
    if warps:
      raise DataRace(f"shared memory address {address:#x}: a product or tensor copy meets what warp {min(warps) - 1} "
                     f"has stored: that warp "
                     "must execute FENCE.VIEW.ASYNC.S after the store, and then meet who starts it")

  def touch(self, wave: int, address: int, size: int, kind: int, rivals: tuple[int, ...] | None = None) -> None:
    """Check bounds and races, and record the access. wave: a warp or another actor."""
    self.check_bounds(address, size, kind)
    if kind != ATOMIC and self.mbarriers: self.check_no_mbarrier(address, size)
    known = self.knows[wave]
    for rival in RIVALS[kind] if rivals is None else rivals:
      for other, marks in self.marks[rival].items():
        seen = known.get(other, 0)
        if other == wave or marks.latest <= seen: continue
        if max(marks.times[address:address + size]) > seen:
          raise DataRace(self.conflict(wave, address, kind, other, rival))
    self.mark(wave, address, size, kind)

  def check_no_mbarrier(self, address: int, size: int) -> None:
    """Raise EmulatorError for memory that only SYNCS may touch."""
    for at in self.mbarriers:
      if at < address + size and address < at + MBARRIER_BYTES:
        raise EmulatorError(f"shared memory address {address:#x}: {size} bytes are read or written where an mbarrier "
                            f"is, at {at:#x}: until "
                            "SYNCS.CCTL.IV only SYNCS may touch it")

  def mark(self, actor: int, address: int, size: int, kind: int) -> None:
    marks = self.marks[kind].get(actor)
    if marks is None: marks = self.marks[kind][actor] = Marks(self.size)
    marks.times[address:address + size] = array("I", (self.now[actor],)) * size
    marks.latest = self.now[actor]

  def conflict(self, actor: int, address: int, kind: int, other: int, rival: int) -> str:
    cure = self.words.ordering if other in self.warps else \
      "wait until that is done (WARPGROUP.DEPBAR, SYNCS.PHASECHK), and let who did meet who has not"
    return (f"shared memory address {address:#x}: {WHAT[kind]} by {self.names[actor]}, and {self.names[other]} does "
            f"{DONE[rival]} there; {cure}")
