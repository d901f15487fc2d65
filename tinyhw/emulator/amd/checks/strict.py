"""Strict checks of one wave: uninitialised registers, missing waits for loads, and wait states.

- A register is uninitialised until it is written, a vector register lane by lane. Reading one raises
  UninitialisedRead.
- An instruction that a counter counts (a load, a store, a message) is an `CountedInstruction` until a wait covers it.
  The registers that it writes are pending, and touching one raises MissingWait.
- Events of one kind end in order. Scalar loads end in any order, and on CDNA so do flat accesses. Only a wait for 0
  covers these. Events of different kinds that share a counter have no known order.
- Hazards (hazards.py): too few wait states between two instructions raise MissingHazard.
- A register beyond the kernel's allocation raises OutOfBounds.
"""
from __future__ import annotations
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tinyhw.emulator.amd.checks.hazards import Watch
from tinyhw.emulator.errors import MissingWait, OutOfBounds, UninitialisedRead
from tinyhw.emulator.memory.lds import Access
from tinyhw.isa.amd.table import regs

if TYPE_CHECKING:
  from tinyhw.emulator.amd.execute.decoded import DecodedInstruction
  from tinyhw.emulator.amd.execute.state import Wave

SCALAR_BASE = 1024   # scalar registers among the numbers of pending ones
UNORDERED = ("smem", "flat")
SCC = regs.READ_ONLY["src_scc"]

class CountedInstruction:
  """An instruction that counters have counted. counters: those that no wait has covered yet. serial: its number among
  the LDS accesses, or -1."""
  __slots__ = ("kind", "counters", "registers", "text", "pc", "serial")

  def __init__(self, kind: str, counters: Iterable[str], registers: frozenset[int], text: str, pc: int, serial: int):
    self.kind, self.counters, self.registers, self.text, self.pc, self.serial = kind, set(
      counters), registers, text, pc, serial

class Written:
  """The written lanes of each vector register, in the words that translated code checks.

  A register that does not exist raises KeyError.
  """
  def __init__(self, masks: memoryview, rows: list[int]):
    self.masks, self.rows = masks, frozenset(rows)

  def __getitem__(self, row: int) -> int:
    if row not in self.rows: raise KeyError(row)
    return self.masks[row]

  def __setitem__(self, row: int, lanes: int) -> None: self.masks[row] = lanes
  def __contains__(self, row: int) -> bool: return row in self.rows
  def get(self, row: int, default: int) -> int: return self.masks[row] if row in self.rows else default

  def clear(self) -> None:
    """Remove all registers."""
    for row in self.rows: self.masks[row] = 0
    self.rows = frozenset()

class LocalAccesses:
  """Accesses of the LDS by instructions, numbered in their order. Only those that a barrier may still need are kept."""
  def __init__(self) -> None:
    self.number = 0                            # of the current instruction, among those that access the LDS
    self.current: list[Access] = []
    self.kept: dict[int, list[Access]] = {}

  def end(self) -> int:
    """End the instruction. Return its number."""
    self.kept[self.number], self.current = self.current, []
    self.number += 1
    return self.number - 1

  def of(self, number: int) -> list[Access]:
    """Return the accesses of an instruction that no wait covers."""
    return self.kept[number] if number >= 0 else []

  def keep(self, numbers: Iterable[int]) -> None:
    """Forget the accesses of all other instructions."""
    self.kept = {number: self.kept[number] for number in numbers if number in self.kept}

class Strict:
  """The checks of one wave."""
  def __init__(self, wave: Wave, masks: memoryview, rows: list[int]):
    self.wave = wave
    self.vectors = Written(masks, rows)       # vector register -> lanes that were written
    self.scalars = 0                          # scalar registers that were written, as bits
    self.outstanding: list[CountedInstruction] = []
    self.pending: dict[int, CountedInstruction] = {}
    self.local = LocalAccesses()
    self.hazards = Watch(wave.registers.arch, wave.lanes)

  def set_vector(self, register: int, lanes: int) -> None:
    """Mark lanes of a vector register as written."""
    self.vectors[register] |= lanes

  def set_scalars(self, bits: int) -> None:
    """Mark scalar registers as written."""
    self.scalars |= bits

  def issue(self, wave: Wave, step: DecodedInstruction) -> None:
    """Check the reads and writes of an instruction, execute it, and record its writes. Takes 0.5 us in addition to the
    instruction (CPython 3.12)."""
    if self.pending and not step.touched.isdisjoint(self.pending): self.unwaited(step)
    missing = step.scalar_reads & ~self.scalars
    if missing: raise UninitialisedRead(f"{scalar_name(missing.bit_length() - 1)} is read and nothing has written it")
    vectors = self.vectors
    if step.vector_reads or step.vector_writes:
      lanes = wave.all if step.all_lanes else wave.exec
      try:
        for register in step.vector_reads:
          if lanes & ~vectors[register]: self.unwritten(register, lanes & ~vectors[register])
      except KeyError as e: raise self.beyond(int(e.args[0])) from e
      for register in step.vector_writes:
        if register not in vectors: raise self.beyond(register)
    hazards = self.hazards
    if step.waits or hazards.alert: hazards.check(step)
    if hazards.scalar.on: hazards.chain(step)
    step.run(wave)
    hazards.now += step.states
    hazards.valu += step.valu
    if step.starts or step.trans or hazards.alert: hazards.note(step)
    self.scalars |= step.scalar_writes
    for register in step.vector_writes: vectors[register] |= lanes
    if step.counters: self.count(step, wave.pc - step.size)

  def foresee(self, wave: Wave, step: DecodedInstruction, pc: int) -> None:
    """Do the checks of `issue` without executing anything, and without the written lanes of vector registers
    (foresight.py)."""
    if self.pending and not step.touched.isdisjoint(self.pending): self.unwaited(step)
    if step.scalar_reads & ~self.scalars:
      raise UninitialisedRead("a scalar register is read and nothing has written it")
    hazards = self.hazards
    if step.waits or hazards.alert: hazards.check(step)
    if hazards.scalar.on: hazards.chain(step)
    if step.steers: step.run(wave)
    hazards.now += step.states
    hazards.valu += step.valu
    if step.starts or step.trans or hazards.alert: hazards.note(step)
    self.scalars |= step.scalar_writes
    if step.counters: self.count(step, pc)

  def count(self, step: DecodedInstruction, pc: int) -> None:
    event = CountedInstruction(step.kind, step.counters, step.results, step.text, pc, self.local.end() if step.local
                               else -1)
    self.outstanding.append(event)
    for register in step.results: self.pending[register] = event

  def wait(self, counter: str, limit: int) -> None:
    """Wait until at most `limit` of the counter's events are outstanding: end the events that this covers."""
    events = [event for event in self.outstanding if counter in event.counters]
    kinds = [self.kind_of(event, counter) for event in events]
    for i, event in enumerate(events):
      if limit == 0 or kinds[i] not in UNORDERED and kinds[i + 1:].count(kinds[i]) >= limit: self.finish(event, counter)

  def kind_of(self, event: CountedInstruction, counter: str) -> str:
    """Return the kind that orders an event. From RDNA on, flat accesses are in order with others (LLVM,
    hasFlatLgkmVMemCountInOrder)."""
    if event.kind != "flat" or self.wave.registers.arch.startswith("gfx9"): return event.kind
    return "lds" if counter in ("lgkmcnt", "dscnt") else "vmem"

  def finish(self, event: CountedInstruction, counter: str) -> None:
    event.counters.discard(counter)
    if event.counters: return
    self.outstanding.remove(event)
    self.local.kept.pop(event.serial, None)
    for register in event.registers:
      if self.pending.get(register) is event: del self.pending[register]

  def unfinished_local(self) -> list[Access]:
    """Return the accesses of the LDS that no wait covers."""
    return [access for event in self.outstanding for access in self.local.of(event.serial)]

  # ***** messages *****

  def unwaited(self, step: DecodedInstruction) -> None:
    for register in sorted(step.touched & self.pending.keys()):
      event = self.pending[register]
      if (event.kind == step.kind and event.kind not in UNORDERED and register in step.results
          and register not in step.read_set):
        continue
      name = scalar_name(register - SCALAR_BASE) if register >= SCALAR_BASE else vector_name(register)
      done = "read" if register in step.read_set else "written"
      raise MissingWait(f"{name} is {done} before {event.text} (at {event.pc:#x}), which writes it, has been waited "
                        f"for; "
                        f"wait for {' and '.join(sorted(event.counters))}")

  def unwritten(self, register: int, lanes: int) -> None:
    lane = (lanes & -lanes).bit_length() - 1
    raise UninitialisedRead(f"{vector_name(register)} is read in lane {lane} and nothing has written it there")

  def beyond(self, register: int) -> OutOfBounds:
    registers = self.wave.registers
    return OutOfBounds(f"{vector_name(register)} is beyond the {registers.vgprs} vector registers of the kernel"
                       + (f" (accumulation registers from {registers.accumulator} on)"
                          if registers.accumulator is not None else "")
                       + "; raise VGPRS in RSRC1")

def scalar_name(index: int) -> str: return regs.S[1].name_of(index)
def vector_name(row: int) -> str: return f"a{row - 256}" if row >= 256 else f"v{row}"
