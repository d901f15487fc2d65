"""What strict.py will say of a block before it runs: for all that depends only on the way that a wave has taken, not on values.

A `Known` is that part of a `Strict`, in a form that is equal for waves to which the same will happen: times count back from now, and what can make no
difference any more is left out. So loops come to a few of them. `foresee` lets a stand-in for a wave go through a block's checks without executing
anything. Which lanes of vector registers have been written is not part of it (translated code looks), nor what LDS accesses were to (LocalAccesses).
"""
from __future__ import annotations
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, cast

from tinyhw.emulator.amd.strict import Event, Strict
from tinyhw.emulator.errors import StrictError
from tinyhw.emulator.windows import NOTES

if TYPE_CHECKING:
  from tinyhw.emulator.amd.decoded import Step
  from tinyhw.emulator.amd.matrix import Product
  from tinyhw.emulator.amd.state import Wave

MATRIX_STATES = 24   # wait states after which no result of a matrix instruction is watched
TRANS_VALU, TRANS_TRANS = 6, 2

class KnownEvent(NamedTuple):
  """An event. registers: those that it still keeps. age: how many instructions that access the LDS came behind it, or -1 for none that does."""
  kind: str
  counters: tuple[str, ...]
  registers: frozenset[int]
  text: str
  pc: int
  age: int

class Known(NamedTuple):
  """What is known of a wave. hazards: (row of the table, register, wait states since, VALU instructions since, text). scalar: masks of the scalar
  watch. results, addends: of matrix instructions. transcendental: (register, VALU and transcendental instructions since, text).
  forwarding: (register, VALU instructions and writes of EXEC since)."""
  scalars: int
  events: tuple[KnownEvent, ...]
  hazards: tuple[tuple[int, int, int, int, str], ...]
  scalar: tuple[int, int, int]
  results: tuple[tuple[int, int, Product, tuple[int, ...], str], ...]
  addends: tuple[tuple[int, int, Product, str], ...]
  transcendental: tuple[tuple[int, int, int, str], ...]
  forwarding: tuple[tuple[int, int, int], ...]

def known(strict: Strict) -> Known:
  """What a Strict knows."""
  hazards, matrix = strict.hazards, strict.hazards.matrix
  now, valu, table = hazards.now, hazards.valu, hazards.table
  last = []
  for (row, register), (when, when_valu, text) in hazards.last.items():
    since = now - when if table[row].counts == "any" else valu - when_valu
    if since < table[row].states: last.append((row, register, now - when, valu - when_valu, text))
  results: list[tuple[int, int, Product, tuple[int, ...], str]] = []
  addends: list[tuple[int, int, Product, str]] = []
  if matrix is not None:
    results = [(register, now - r[0], *r[1:]) for register, r in matrix.results.items() if now - r[0] <= MATRIX_STATES]
    addends = [(register, now - a[0], *a[1:]) for register, a in matrix.addends.items() if now - a[0] <= MATRIX_STATES]
  trans = [(register, valu - t[0], hazards.trans - t[1], t[2]) for register, t in hazards.transcendental.items()
           if valu - t[0] < TRANS_VALU and hazards.trans - t[1] < TRANS_TRANS]
  watch = hazards.scalar
  return Known(strict.scalars, tuple(_events(strict)), tuple(sorted(last)), (watch.read, watch.by_salu, watch.by_valu),
               tuple(sorted(results)), tuple(sorted(addends)), tuple(sorted(trans)),
               hazards.forwarding.known(valu) if hazards.forwarding is not None else ())

def _events(strict: Strict) -> Iterable[KnownEvent]:
  """Outstanding events, less those that no later one can tell: they keep nothing, and none before them waits for their turn."""
  seen: set[str] = set()
  for event in strict.outstanding:
    registers = frozenset(r for r in event.registers if strict.pending.get(r) is event)
    if not registers and event.serial < 0 and seen.isdisjoint(event.counters): continue
    seen |= event.counters
    age = strict.local.number - event.serial if event.serial >= 0 else -1
    yield KnownEvent(event.kind, tuple(sorted(event.counters)), registers, event.text, event.pc, age)

def tell(strict: Strict, what: Known) -> None:
  """Make a Strict know this."""
  strict.scalars = what.scalars
  strict.outstanding = [Event(e.kind, e.counters, e.registers, e.text, e.pc, strict.local.number - e.age if e.age >= 0 else -1) for e in what.events]
  strict.pending = {register: event for event in strict.outstanding for register in event.registers}
  strict.local.keep(event.serial for event in strict.outstanding)
  hazards = strict.hazards
  now, valu = hazards.now, hazards.valu
  hazards.last = {(row, register): (now - since, valu - since_valu, text) for row, register, since, since_valu, text in what.hazards}
  hazards.scalar.read, hazards.scalar.by_salu, hazards.scalar.by_valu = what.scalar
  hazards.transcendental = {register: (valu - since, hazards.trans - since_trans, text)
                            for register, since, since_trans, text in what.transcendental}
  if hazards.matrix is not None:
    hazards.matrix.results = {register: (now - since, *rest) for register, since, *rest in what.results}  # type: ignore[misc]  # as they were
    hazards.matrix.addends = {register: (now - since, *rest) for register, since, *rest in what.addends}  # type: ignore[misc]
  if hazards.forwarding is not None: hazards.forwarding.tell(what.forwarding, valu)
  hazards.alert = bool(what.transcendental or what.results)

class StandIn:
  """As much of a wave as instructions that only steer the watch look at."""
  def __init__(self, wave: Wave):
    self.registers, self.lanes = wave.registers, wave.lanes
    self.strict = Strict(cast("Wave", self), memoryview(b""), [])

def foresee(stand_in: StandIn, before: Known, steps: Iterable[tuple[int, Step]]) -> Known | None:
  """What is known behind steps, (address, step) each; None if one of them is an error, which executing them will tell, or if more accesses of the LDS
  are under way than translated code notes."""
  strict = stand_in.strict
  tell(strict, before)
  try:
    for pc, step in steps: strict.foresee(cast("Wave", stand_in), step, pc)
  except StrictError: return None
  found = known(strict)
  return None if any(event.age > NOTES for event in found.events) else found
