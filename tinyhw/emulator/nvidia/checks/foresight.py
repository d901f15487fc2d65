"""What strict.py will say of instructions before they run: a schedule depends on the way that a warp has taken alone.

A `Known` is a `Schedule` in a form that is equal for warps to which the same will happen: times count back from now,
and what can make no difference any more is left out. So loops come to a few of them.
"""
from __future__ import annotations
from collections.abc import Iterable

from tinyhw.emulator.errors import StrictError
from tinyhw.emulator.nvidia.checks.products import KnownProducts
from tinyhw.emulator.nvidia.checks.strict import Schedule
from tinyhw.emulator.nvidia.execute.decoded import Decoded
from tinyhw.isa.sass.model.latency import BOARD_STALL, FIXED_READ, MOST, Latency
from tinyhw.isa.sass.table.uses import Unit
from tinyhw.named_tuple import NamedTuple

class Due(NamedTuple):
  """A result of fixed time. since: cycles since its instruction was issued."""
  unit: Unit
  since: int
  latency: Latency
  pipe: str

class Fetched(NamedTuple):
  """A unit that an instruction of fixed time has read. since: cycles."""
  unit: Unit
  since: int

class Coming(NamedTuple):
  """A result of which scoreboards tell. boards: their mask."""
  unit: Unit
  boards: int

class Reading(NamedTuple):
  """A unit that instructions may still read. boards: for each of them the mask of those that tell."""
  unit: Unit
  boards: tuple[int, ...]

class Taken(NamedTuple):
  """A scoreboard. since: cycles since it was taken last."""
  board: int
  since: int

class Known(NamedTuple):
  """What a Schedule has by the same names, in order."""
  due: tuple[Due, ...]
  fetched: tuple[Fetched, ...]
  written: tuple[Coming, ...]
  read: tuple[Reading, ...]
  taken: tuple[Taken, ...]
  view: int
  products: KnownProducts

def known(schedule: Schedule) -> Known:
  """What a Schedule knows. Nothing is waited for longer than MOST cycles, and one more by who overwrites."""
  now = schedule.clock
  return Known(
    due=tuple(sorted(Due(unit, now - at, latency, pipe) for unit, (at, latency, pipe) in schedule.due.items()
                     if now - at <= MOST)),
    fetched=tuple(sorted(Fetched(unit, now - at) for unit, at in schedule.fetched.items() if now - at < FIXED_READ)),
    written=tuple(sorted(Coming(unit, boards) for unit, boards in schedule.written.items())),
    read=tuple(sorted(Reading(unit, tuple(sorted(set(boards)))) for unit, boards in schedule.read.items())),
    taken=tuple(sorted(Taken(board, now - at) for board, at in schedule.taken.items() if now - at < BOARD_STALL)),
    view=schedule.view, products=schedule.products.known())

def tell(schedule: Schedule, what: Known) -> None:
  """Make a Schedule know this."""
  now = schedule.clock
  schedule.due = {due.unit: (now - due.since, due.latency, due.pipe) for due in what.due}
  schedule.fetched = {fetched.unit: now - fetched.since for fetched in what.fetched}
  schedule.written = {coming.unit: coming.boards for coming in what.written}
  schedule.read = {reading.unit: list(reading.boards) for reading in what.read}
  schedule.taken = {taken.board: now - taken.since for taken in what.taken}
  schedule.view = what.view
  schedule.products.tell(what.products)

def foresee(before: Known, steps: Iterable[Decoded]) -> Known | None:
  """What is known behind steps; None if one of them is an error, which executing them will tell."""
  schedule = Schedule()
  tell(schedule, before)
  try:
    for step in steps: schedule.issue(step.inst, step.uses, step.control)
  except StrictError: return None
  return known(schedule)
