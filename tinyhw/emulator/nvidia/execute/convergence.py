"""Lanes of a warp that go different ways, and the barriers (B0 to B15) at which they meet again.

BSSY names the lanes that are there as those that will meet, and where they go on together; a branch that not all of
them take parts them into ways, of which one runs at a time, in an order that the seed decides; BSYNC ends a way until
all lanes of its barrier that still run have come. Lanes that exit leave all barriers. Where no way can go on, lanes
wait for each other at different barriers: that is an error, as are lanes that part without a barrier over all of them,
which would never meet again. A way has a schedule of its own, in which time passes by its own stalls; where ways meet,
what any of them has not waited for is still to be waited for.
Source: US patent 2016/0019066 for the barriers; code of NVIDIA's compiler for the place of BSSY, which is that behind
BSYNC.
"""
from __future__ import annotations
import random
from typing import TYPE_CHECKING

from tinyhw.emulator.errors import EmulatorError, Hang
from tinyhw.emulator.nvidia.checks.strict import Schedule, met
from tinyhw.named_tuple import NamedTuple
if TYPE_CHECKING:
  from tinyhw.emulator.nvidia.execute.state import Warp

SWITCH = 4   # of so many branches of a warp whose lanes have parted, one lets another way go on: one that waits for
             # what another does may be first

class Way(NamedTuple):
  """Lanes that are together, and where they go on."""
  pc: int
  lanes: int
  schedule: Schedule

class Meeting:
  """A barrier that is set. lanes: those that meet; pc: where they go on; arrived: ways that wait for the others."""
  __slots__ = ("lanes", "pc", "arrived")

  def __init__(self, lanes: int, pc: int):
    self.lanes, self.pc = lanes, pc
    self.arrived: list[Way] = []

class Convergence:
  """What a warp's lanes do that are not those that run. ready: ways that can go on; barriers: those that are set, by
  number."""
  __slots__ = ("ready", "barriers", "source")

  def __init__(self, source: random.Random):
    self.ready: list[Way] = []
    self.barriers: dict[int, Meeting] = {}
    self.source = source

  @property
  def parted(self) -> bool:
    """Whether lanes that have not ended are elsewhere than those that run."""
    return bool(self.ready) or any(meeting.arrived for meeting in self.barriers.values())

  def set(self, number: int, lanes: int, pc: int) -> None:
    """BSSY. Raises EmulatorError for a barrier at which lanes have yet to meet."""
    if number in self.barriers:
      raise EmulatorError(f"B{number} is set, and lanes {self.barriers[number].lanes:#010x} have not met at it: take "
                          f"another barrier")
    self.barriers[number] = Meeting(lanes, pc)

  def part(self, warp: Warp, taken: int, pc: int) -> None:
    """Some lanes go on at pc, the others where they are. Raises EmulatorError if nothing says where they meet."""
    if not any(not warp.active & ~meeting.lanes for meeting in self.barriers.values()):
      raise EmulatorError(f"lanes {taken:#010x} of {warp.active:#010x} branch, and no BSSY says where they meet "
                          f"again: set a barrier before, or gate "
                          "what lanes do instead")
    self.ready += [Way(warp.pc, warp.active & ~taken, warp.schedule.forked()), Way(pc, taken, warp.schedule)]
    self.go_on(warp)

  def switch(self, warp: Warp) -> None:
    """Behind a branch: perhaps another way goes on."""
    if not self.ready or self.source.randrange(SWITCH): return
    self.ready.append(Way(warp.pc, warp.active, warp.schedule))
    self.go_on(warp)

  def arrive(self, warp: Warp, number: int, lanes: int) -> None:
    """BSYNC, by all lanes of a way. Raises EmulatorError if they are none of the barrier's, or some of them only."""
    meeting = self.barriers.get(number)
    if meeting is None or lanes & ~meeting.lanes:
      raise EmulatorError(f"BSYNC of B{number}, which no BSSY has set for lanes {lanes:#010x}")
    if lanes != warp.active:
      raise EmulatorError(f"BSYNC of B{number} is executed by some lanes of a way only: branch around it")
    meeting.arrived.append(Way(meeting.pc, lanes, warp.schedule))
    self.go_on(warp)

  def leave(self, warp: Warp, lanes: int) -> None:
    """EXIT of some lanes."""
    for meeting in self.barriers.values(): meeting.lanes &= ~lanes
    warp.active &= ~lanes
    if not warp.active and self.parted: self.go_on(warp)

  def go_on(self, warp: Warp) -> None:
    """Another way runs. Raises Hang if none can."""
    for number, meeting in list(self.barriers.items()):
      if meeting.lanes != sum(way.lanes for way in meeting.arrived): continue
      del self.barriers[number]
      if meeting.lanes:
        self.ready.append(Way(meeting.pc, meeting.lanes, met([way.schedule for way in meeting.arrived])))
    if not self.ready:
      waiting = [f"lanes {way.lanes:#010x} wait at B{number} for {meeting.lanes & ~way.lanes:#010x}"
                 for number, meeting in sorted(self.barriers.items()) for way in meeting.arrived]
      raise Hang(f"{', '.join(waiting)}: none can go on")
    way = self.ready.pop(self.source.randrange(len(self.ready)))
    warp.pc, warp.active, warp.schedule = way
