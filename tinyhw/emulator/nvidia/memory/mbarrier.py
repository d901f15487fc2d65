"""Barriers in shared memory (mbarriers): SYNCS initialises them, arrives, expects bytes of copies, and tests whether a
phase has completed.

A phase completes when `count` threads have arrived and all expected bytes have come. Then the next phase begins. Its
parity is that of its number. NVIDIA's assembler builds and reads this word in memory:

    bit 63         the parity
    bits 43 to 62  2^20 - missing arrivals
    bits 21 to 42  missing bytes
    bits 1 to 20   2^20 - count

A thread that arrives passes on its knowledge (shared.py). A thread that sees the phase complete acquires it. Copies see
a barrier after its initialising warp has fenced it. Sources: PTX ISA, mbarrier; ptxas.
"""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.emulator.errors import EmulatorError, OutOfBounds, UninitialisedRead, UnknownInstruction
from tinyhw.emulator.memory.lds import ATOMIC, WRITE
from tinyhw.emulator.nvidia.memory.shared import MBARRIER_BYTES, Clock, SharedMemory
from tinyhw.emulator.nvidia.warp.numbers import WORD
from tinyhw.emulator.nvidia.warp.operands import Operands, Source, put
from tinyhw.emulator.nvidia.warp.state import ZEROS, Warp, lanes_of
from tinyhw.isa.sass.table import regs

Step = Callable[[Warp, int], None]
MOST = (1 << 20) - 1             # arrivals, and bytes
HASTE, LATE = 2, 8  # 1 of so many tests with patience gives up at once; at 1 of so many tests a copy arrives

class Mbarrier:
  """The state of an mbarrier. count: arrivals of a phase. missing: arrivals of the current phase. expected: bytes that
  have not come.

  phase: its number. actor: of the copies that it counts. gathered: knowledge of the threads that have arrived.
  published: the same when a phase completed last.
  """
  def __init__(self, shared: SharedMemory, address: int, count: int):
    self.shared, self.address, self.count, self.missing, self.expected, self.phase = shared, address, count, count, 0, 0
    self.actor = shared.actor(f"a copy that mbarrier {address:#x} counts")
    self.gathered: Clock = {}
    self.published: Clock = {}
    shared.mbarriers[address] = self
    self.write()

  def word(self) -> int:
    """Return the 64 bits in memory."""
    arrivals, bytes_missing = MOST + 1 - self.missing & MOST, self.expected & (1 << 22) - 1
    return (self.phase & 1) << 63 | arrivals << 43 | bytes_missing << 21 | (MOST + 1 - self.count & MOST) << 1

  def write(self) -> None:
    self.shared.put(self.address, MBARRIER_BYTES, self.word())
    self.shared.written[self.address:self.address + MBARRIER_BYTES] = b"\1" * MBARRIER_BYTES

  def arrive(self, known: Clock, arrivals: int, expects: int) -> None:
    """Record arrivals of threads, which expect bytes. Raises EmulatorError."""
    if arrivals > self.missing:
      raise EmulatorError(f"mbarrier {self.address:#x}: {arrivals} arrive where {self.missing} of {self.count} are "
                          f"missing; the phase is not "
                          f"complete ({self.expected} bytes are under way)")
    for actor, time in known.items(): self.gathered[actor] = max(time, self.gathered.get(actor, 0))
    self.change(arrivals, expects)

  def under_way(self) -> int:
    """Return the number of copies in flight that it counts."""
    return sum(delivery.actor == self.actor for delivery in self.shared.deliveries)

  def change(self, arrivals: int, expects: int) -> None:
    """Count, and begin the next phase if this one is complete."""
    self.missing, self.expected = self.missing - arrivals, self.expected + expects
    if not -MOST <= self.expected <= MOST:
      raise EmulatorError(f"mbarrier {self.address:#x}: {self.expected} bytes are expected, {MOST} are the most")
    if not self.missing and not self.expected:
      late = self.under_way()
      if late:
        raise EmulatorError(f"mbarrier {self.address:#x}: a phase is complete while {late} of its copies are under "
                            f"way: expect all bytes")
      self.phase += 1
      self.missing, self.published = self.count, {**self.gathered, self.actor: self.phase}
    self.write()

def barrier_at(shared: SharedMemory, address: int) -> Mbarrier:
  """Return the mbarrier at an address. Raises UninitialisedRead."""
  found = shared.mbarriers.get(address)
  if found is None:
    raise UninitialisedRead(f"shared memory {address:#x}: no mbarrier has been initialised there (SYNCS.EXCH)")
  return found

def shared_of(warp: Warp) -> SharedMemory:
  assert isinstance(warp.shared, SharedMemory), "a kernel with mbarriers has shared memory with clocks"
  return warp.shared

def checked(address: int) -> int:
  """Return the address. Raises OutOfBounds if it is not aligned."""
  if address % MBARRIER_BYTES:
    raise OutOfBounds(f"mbarrier at {address:#x}: its address is no multiple of {MBARRIER_BYTES}")
  return address

# ***** instructions *****

def addresses(o: Operands) -> Source:
  """Return the address in each lane."""
  lanes, uniform, offset = o.raw("a", "u"), o.raw("uc", "u"), o.number("o")
  return lambda warp: [x + y + offset & WORD for x, y in zip(lanes(warp), uniform(warp))]

def initialise(o: Operands) -> Step:
  """SYNCS.EXCH.64, of the word of a barrier with `count` missing arrivals."""
  if o.values["ud"] is not regs.URZ: raise UnknownInstruction("SYNCS.EXCH with a result is not supported yet")
  base, offset, source = o.raw("ua", "u"), o.number("o"), o.raw("ub", "q")
  def run(warp: Warp, mask: int) -> None:
    address, word, shared = checked(base(warp)[0] + offset & WORD), source(warp)[0], shared_of(warp)
    count = MOST + 1 - (word >> 1 & MOST)
    if count > MOST:
      raise EmulatorError(f"mbarrier {address:#x}: {word:#x} is a word of {count} arrivals; there are 1 to {MOST}")
    if address in shared.mbarriers:
      raise EmulatorError(f"mbarrier {address:#x} is initialised again: SYNCS.CCTL.IV must end it before")
    shared.touch(warp.number, address, MBARRIER_BYTES, WRITE)
    if Mbarrier(shared, address, count).word() != word:
      raise EmulatorError(f"mbarrier {address:#x}: {word:#x} is no word of a barrier whose first phase has just begun")
    shared.hide(warp.number, address, MBARRIER_BYTES)
  return run

# a lane's register: arrivals, and bytes that are expected
ARRIVALS: dict[str, Callable[[int], tuple[int, int]]] = {
  "": lambda x: (1, x), "A1T0": lambda x: (1, 0), "A0TR": lambda x: (0, x), "ART0": lambda x: (x, 0)}

def arrive(o: Operands) -> Step:
  """SYNCS.ARRIVE, of every lane. d: the upper word of the barrier before."""
  kind, red = o.word("arrive"), o.word("red")
  if kind not in ARRIVALS or red == "TMASK":
    raise UnknownInstruction(f"SYNCS.ARRIVE.{red}.{kind} is not supported yet")
  semantics, address, source, index = ARRIVALS[kind], addresses(o), o.raw("b", "u"), o.values["d"].index
  def run(warp: Warp, mask: int) -> None:
    shared, places, values, words = shared_of(warp), address(warp), source(warp), list(ZEROS)
    known = shared.release(warp.number)
    for lane in lanes_of(mask):
      barrier = barrier_at(shared, checked(places[lane]))
      shared.touch(warp.number, barrier.address, MBARRIER_BYTES, ATOMIC)
      words[lane] = barrier.word() >> 32
      barrier.arrive(known, *semantics(values[lane]))
    if index != regs.ZERO: put(warp, index, words, mask)
  return run

def look(o: Operands) -> Step:
  """SYNCS.PHASECHK: test whether the phase with the parity of bit 31 has completed. TRYWAIT waits for some time."""
  patient, address, source, truth = o.word("trywait") == "TRYWAIT", addresses(o), o.raw("b", "u"), o.sink("pu", "p")
  def run(warp: Warp, mask: int) -> None:
    shared, places, values = shared_of(warp), address(warp), source(warp)
    def see() -> int:
      if shared.source.randrange(LATE) == 0: shared.deliver()
      return sum(1 << lane for lane in lanes_of(mask) if has_completed(warp, places[lane], values[lane] >> 31))
    found = see()
    truth(warp, found, mask)
    if found == mask or not patient or shared.source.randrange(HASTE) == 0: return
    def until() -> bool:
      now = see()
      if now == mask: truth(warp, now, mask)
      return now == mask
    warp.wait_until(until, f"for the phases of mbarrier {places[lanes_of(mask)[0]]:#x}, for which arrivals or bytes "
                    f"are missing")
  return run

def has_completed(warp: Warp, address: int, parity: int) -> bool:
  """Return whether a warp sees a phase as complete. If so, it acquires the knowledge of the threads that arrived."""
  shared = shared_of(warp)
  barrier = barrier_at(shared, checked(address))
  shared.touch(warp.number, address, MBARRIER_BYTES, ATOMIC)
  if barrier.phase & 1 == parity: return False
  shared.acquire(warp.number, barrier.published)
  return True

def forget(o: Operands) -> Step:
  """SYNCS.CCTL.IV: the memory is no barrier any more."""
  address = addresses(o)
  def run(warp: Warp, mask: int) -> None:
    shared, places = shared_of(warp), address(warp)
    for at in {places[lane] for lane in lanes_of(mask)}:
      if late := barrier_at(shared, checked(at)).under_way():
        raise EmulatorError(f"mbarrier {at:#x} ends while {late} of its copies are under way: wait for their phase "
                            f"before")
      del shared.mbarriers[at]
      shared.touch(warp.number, at, MBARRIER_BYTES, WRITE)
  return run

SEMANTICS: dict[str, Callable[[Operands], Step]] = {"SYNCS.EXCH": initialise, "SYNCS.ARRIVE": arrive,
                                                    "SYNCS.PHASECHK": look, "SYNCS.IV": forget}
