"""Strict checks of a block before it runs: the part that depends on the path of a wave, not on values.

A `CheckState` is that part of a `Strict`. It is equal for waves that the checks treat alike: times count back from now,
and data that can make no difference any more are left out. So loops reach only a few of them. `foresee` passes a
stand-in for a wave through a block's checks without executing anything. Not included: the written lanes of vector
registers, which translated code checks, and the addresses of LDS accesses (LocalAccesses).
"""
from __future__ import annotations
from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from tinyhw.emulator.amd.checks.hazards import TRANS_TRANS, TRANS_VALU
from tinyhw.emulator.amd.checks.hazards_forwarding import KnownWrite
from tinyhw.emulator.amd.checks.hazards_mfma import LONGEST, MatrixWatch
from tinyhw.emulator.amd.checks.strict import CountedInstruction, Strict
from tinyhw.emulator.errors import StrictError
from tinyhw.emulator.memory.windows import NOTES
from tinyhw.named_tuple import NamedTuple

if TYPE_CHECKING:
  from tinyhw.emulator.amd.execute.decoded import DecodedInstruction
  from tinyhw.emulator.amd.execute.matrix import Product
  from tinyhw.emulator.amd.execute.state import Wave

class KnownEvent(NamedTuple):
  """An event. registers: those that still wait for it. age: the number of LDS instructions since its own, or -1 if it
  does not access the LDS."""
  kind: str
  counters: tuple[str, ...]
  registers: frozenset[int]
  text: str
  pc: int
  age: int

class KnownStart(NamedTuple):
  """The first half of a hazard. row: of the table; states, valu: wait states and VALU instructions since."""
  row: int
  register: int
  states: int
  valu: int
  text: str

class KnownResult(NamedTuple):
  """A register of a matrix instruction's result. states: since; registers: all registers of the result."""
  register: int
  states: int
  product: Product
  registers: tuple[int, ...]
  text: str

class KnownAddend(NamedTuple):
  """A register that a matrix instruction adds to, and may still read."""
  register: int
  states: int
  product: Product
  text: str

class KnownTranscendental(NamedTuple):
  """A register with a transcendental result. valu, trans: VALU and transcendental instructions since."""
  register: int
  valu: int
  trans: int
  text: str

class CheckState(NamedTuple):
  """The state of a wave's checks. scalars: registers that were written; scalar: masks of the scalar watch."""
  scalars: int
  events: tuple[KnownEvent, ...]
  hazards: tuple[KnownStart, ...]
  scalar: tuple[int, int, int]
  results: tuple[KnownResult, ...]
  addends: tuple[KnownAddend, ...]
  transcendental: tuple[KnownTranscendental, ...]
  forwarding: tuple[KnownWrite, ...]

def known(strict: Strict) -> CheckState:
  """Return the state of a Strict."""
  hazards, scalar = strict.hazards, strict.hazards.scalar
  now, valu, trans, table = hazards.now, hazards.valu, hazards.trans, hazards.table
  starts = []
  for (row, register), (when, when_valu, text) in hazards.last.items():
    since = now - when if table[row].counts == "any" else valu - when_valu
    if since < table[row].states: starts.append(KnownStart(row, register, now - when, valu - when_valu, text))
  slow = [KnownTranscendental(register, valu - when_valu, trans - when_trans, text)
          for register, (when_valu, when_trans, text) in hazards.transcendental.items()
          if valu - when_valu < TRANS_VALU and trans - when_trans < TRANS_TRANS]
  results, addends = ((), ()) if hazards.matrix is None else _products(hazards.matrix, now)
  return CheckState(strict.scalars, tuple(_events(strict)), tuple(sorted(starts)),
                    (scalar.read, scalar.by_salu, scalar.by_valu), results, addends,
                    tuple(sorted(slow)), hazards.forwarding.known(valu) if hazards.forwarding is not None else ())

def _products(matrix: MatrixWatch, now: int) -> tuple[tuple[KnownResult, ...], tuple[KnownAddend, ...]]:
  """Return results and addends of matrix instructions that may still be in flight."""
  results = [KnownResult(register, now - when, product, registers, text)
             for register, (when, product, registers, text) in matrix.results.items() if now - when <= LONGEST]
  addends = [KnownAddend(register, now - when, product, text)
             for register, (when, product, text) in matrix.addends.items() if now - when <= LONGEST]
  return tuple(sorted(results)), tuple(sorted(addends))

def _events(strict: Strict) -> Iterable[KnownEvent]:
  """Return the outstanding events. An event is left out if it has no register, and no earlier event shares its
  counters."""
  seen: set[str] = set()
  for event in strict.outstanding:
    registers = frozenset(r for r in event.registers if strict.pending.get(r) is event)
    if not registers and event.serial < 0 and seen.isdisjoint(event.counters): continue
    seen |= event.counters
    age = strict.local.number - event.serial if event.serial >= 0 else -1
    yield KnownEvent(event.kind, tuple(sorted(event.counters)), registers, event.text, event.pc, age)

def tell(strict: Strict, what: CheckState) -> None:
  """Set the state of a Strict."""
  strict.scalars = what.scalars
  strict.outstanding = [CountedInstruction(e.kind, e.counters, e.registers, e.text, e.pc, strict.local.number - e.age
                                           if e.age >= 0
                                           else -1) for e in what.events]
  strict.pending = {register: event for event in strict.outstanding for register in event.registers}
  strict.local.keep(event.serial for event in strict.outstanding)
  hazards = strict.hazards
  now, valu = hazards.now, hazards.valu
  hazards.last = {(start.row, start.register): (now - start.states, valu - start.valu, start.text)
                  for start in what.hazards}
  hazards.scalar.read, hazards.scalar.by_salu, hazards.scalar.by_valu = what.scalar
  hazards.transcendental = {slow.register: (valu - slow.valu, hazards.trans - slow.trans, slow.text)
                            for slow in what.transcendental}
  if hazards.matrix is not None:
    hazards.matrix.results = {result.register: (now - result.states, result.product, result.registers, result.text)
                              for result in what.results}
    hazards.matrix.addends = {addend.register: (now - addend.states, addend.product, addend.text)
                              for addend in what.addends}
  if hazards.forwarding is not None: hazards.forwarding.tell(what.forwarding, valu)
  hazards.alert = bool(what.transcendental or what.results)

class StandIn:
  """The part of a wave that instructions need if they only change the state of the checks."""
  def __init__(self, wave: Wave):
    self.registers, self.lanes = wave.registers, wave.lanes
    self.strict = Strict(cast("Wave", self), memoryview(b""), [])

def foresee(stand_in: StandIn, before: CheckState,
            steps: Iterable[tuple[int, DecodedInstruction]]) -> CheckState | None:
  """Return the state after the steps, (address, step) each. Return None if one of them is an error, which execution
  then reports, or if more LDS accesses are outstanding than translated code records."""
  strict = stand_in.strict
  tell(strict, before)
  try:
    for pc, step in steps: strict.foresee(cast("Wave", stand_in), step, pc)
  except StrictError: return None
  found = known(strict)
  return None if any(event.age > NOTES for event in found.events) else found
