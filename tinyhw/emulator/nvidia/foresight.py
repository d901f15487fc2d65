"""What strict.py will say of instructions before they run: a schedule depends on the way that a warp has taken alone.

A `Known` is a `Schedule` in a form that is equal for warps to which the same will happen: times count back from now, and what can make no difference
any more is left out. So loops come to a few of them.
"""
from __future__ import annotations
from collections.abc import Iterable
from typing import NamedTuple

from tinyhw.emulator.errors import StrictError
from tinyhw.emulator.nvidia.decoded import Decoded
from tinyhw.emulator.nvidia.products import KnownProducts
from tinyhw.emulator.nvidia.strict import Schedule
from tinyhw.isa.sass.latency import BOARD_STALL, FIXED_READ, MOST, Latency
from tinyhw.isa.sass.uses import Unit

class Known(NamedTuple):
  """due, fetched, written, read, taken, view, products: those of a Schedule, with cycles since then."""
  due: tuple[tuple[Unit, int, Latency, str], ...]
  fetched: tuple[tuple[Unit, int], ...]
  written: tuple[tuple[Unit, int], ...]
  read: tuple[tuple[Unit, tuple[int, ...]], ...]
  taken: tuple[tuple[int, int], ...]
  view: int
  products: KnownProducts

def known(schedule: Schedule) -> Known:
  """What a Schedule knows. Nothing is waited for longer than MOST cycles, and one more by who overwrites."""
  now = schedule.clock
  return Known(tuple(sorted((unit, now - at, latency, pipe) for unit, (at, latency, pipe) in schedule.due.items() if now - at <= MOST)),
               tuple(sorted((unit, now - at) for unit, at in schedule.fetched.items() if now - at < FIXED_READ)),
               tuple(sorted(schedule.written.items())),
               tuple(sorted((unit, tuple(sorted(set(boards)))) for unit, boards in schedule.read.items())),
               tuple(sorted((board, now - at) for board, at in schedule.taken.items() if now - at < BOARD_STALL)),
               schedule.view, schedule.products.known())

def tell(schedule: Schedule, what: Known) -> None:
  """Make a Schedule know this."""
  now = schedule.clock
  schedule.due = {unit: (now - since, latency, pipe) for unit, since, latency, pipe in what.due}
  schedule.fetched = {unit: now - since for unit, since in what.fetched}
  schedule.written = dict(what.written)
  schedule.read = {unit: list(boards) for unit, boards in what.read}
  schedule.taken = {board: now - since for board, since in what.taken}
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
