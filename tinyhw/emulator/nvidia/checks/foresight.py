"""Strict checks of instructions before they run: a schedule depends only on the path of a warp.

A `CheckState` is a `PipelineState` in a form that is equal for warps that the checks treat alike: times count back from
now, and data that can make no difference any more are left out. So loops reach only a few of them.
"""
from __future__ import annotations
from collections.abc import Iterable

from tinyhw.emulator.errors import StrictError
from tinyhw.emulator.nvidia.checks.products import KnownProducts
from tinyhw.emulator.nvidia.checks.strict import PipelineState
from tinyhw.emulator.nvidia.execute.decoded import DecodedInstruction
from tinyhw.isa.sass.model.latency import BOARD_STALL, FIXED_READ, MOST, Latency
from tinyhw.isa.sass.table.uses import Unit
from tinyhw.named_tuple import NamedTuple

class Due(NamedTuple):
  """A result of fixed latency. since: cycles since its instruction was issued."""
  unit: Unit
  since: int
  latency: Latency
  pipe: str

class Fetched(NamedTuple):
  """A register that an instruction of fixed latency has read. since: cycles."""
  unit: Unit
  since: int

class Coming(NamedTuple):
  """A result that scoreboards signal. boards: their mask."""
  unit: Unit
  boards: int

class Reading(NamedTuple):
  """A register that instructions may still read. boards: for each instruction the mask of scoreboards that signal its
  read.
  """
  unit: Unit
  boards: tuple[int, ...]

class TakenScoreboard(NamedTuple):
  """A scoreboard. since: cycles since it was taken last."""
  board: int
  since: int

class CheckState(NamedTuple):
  """The data of a PipelineState, by the same names, in order."""
  due: tuple[Due, ...]
  fetched: tuple[Fetched, ...]
  written: tuple[Coming, ...]
  read: tuple[Reading, ...]
  taken: tuple[TakenScoreboard, ...]
  view: int
  products: KnownProducts

def known(schedule: PipelineState) -> CheckState:
  """Return the state of a PipelineState. No result needs a longer wait than MOST cycles, plus one for an overwrite."""
  now = schedule.clock
  return CheckState(
    due=tuple(sorted(Due(unit, now - at, latency, pipe) for unit, (at, latency, pipe) in schedule.due.items()
                     if now - at <= MOST)),
    fetched=tuple(sorted(Fetched(unit, now - at) for unit, at in schedule.fetched.items() if now - at < FIXED_READ)),
    written=tuple(sorted(Coming(unit, boards) for unit, boards in schedule.written.items())),
    read=tuple(sorted(Reading(unit, tuple(sorted(set(boards)))) for unit, boards in schedule.read.items())),
    taken=tuple(sorted(TakenScoreboard(board, now - at) for board, at in schedule.taken.items()
                       if now - at < BOARD_STALL)),
    view=schedule.view, products=schedule.products.known())

def tell(schedule: PipelineState, what: CheckState) -> None:
  """Set the state of a PipelineState."""
  now = schedule.clock
  schedule.due = {due.unit: (now - due.since, due.latency, due.pipe) for due in what.due}
  schedule.fetched = {fetched.unit: now - fetched.since for fetched in what.fetched}
  schedule.written = {coming.unit: coming.boards for coming in what.written}
  schedule.read = {reading.unit: list(reading.boards) for reading in what.read}
  schedule.taken = {taken.board: now - taken.since for taken in what.taken}
  schedule.view = what.view
  schedule.products.tell(what.products)

def foresee(before: CheckState, steps: Iterable[DecodedInstruction]) -> CheckState | None:
  """Return the state after the steps; None if one of them is an error, which execution then reports."""
  schedule = PipelineState()
  tell(schedule, before)
  try:
    for step in steps: schedule.issue(step.inst, step.uses, step.control)
  except StrictError: return None
  return known(schedule)
