"""Divergence of a warp's lanes, and the convergence barriers (B0 to B15) at which they reconverge.

- BSSY names the current lanes as those that will reconverge, and the address where they go on together.
- A branch that only some lanes take splits them into paths. One path runs at a time, in an order that the seed decides.
- BSYNC ends a path until all lanes of its barrier that still run have come. Lanes that exit leave all barriers.

If no path can go on, lanes wait for each other at different barriers, which is an error. It is also an error if lanes
diverge without a barrier over all of them, since they would never reconverge. Each path has its own schedule, in which
time passes by its own stalls. Where paths reconverge, waits that any of them lacks are still needed.

Source: US patent 2016/0019066 for the barriers; code of NVIDIA's compiler for the target of BSSY, which is the
instruction after BSYNC.
"""
from __future__ import annotations
import random
from typing import TYPE_CHECKING

from tinyhw.emulator.errors import EmulatorError, Hang
from tinyhw.emulator.nvidia.checks.strict import PipelineState, merged
from tinyhw.named_tuple import NamedTuple
if TYPE_CHECKING:
  from tinyhw.emulator.nvidia.warp.state import Warp

# after 1 of so many branches of a diverged warp another path goes on: a path that waits for another may come first
SWITCH = 4

class WarpSplit(NamedTuple):
  """A path: lanes that are together, and the address where they go on."""
  pc: int
  lanes: int
  schedule: PipelineState

class ConvergenceBarrier:
  """A barrier that is set.

  lanes: those that will reconverge. pc: where they go on. arrived: paths that wait for the others.
  """
  __slots__ = ("lanes", "pc", "arrived")

  def __init__(self, lanes: int, pc: int):
    self.lanes, self.pc = lanes, pc
    self.arrived: list[WarpSplit] = []

class Convergence:
  """Lanes of a warp that do not run now. ready: paths that can go on; barriers: those that are set, by number."""
  __slots__ = ("ready", "barriers", "source")

  def __init__(self, source: random.Random):
    self.ready: list[WarpSplit] = []
    self.barriers: dict[int, ConvergenceBarrier] = {}
    self.source = source

  @property
  def parted(self) -> bool:
    """Return whether lanes that have not ended are not among those that run."""
    return bool(self.ready) or any(barrier.arrived for barrier in self.barriers.values())

  def set(self, number: int, lanes: int, pc: int) -> None:
    """BSSY. Raises EmulatorError for a barrier at which lanes have yet to reconverge."""
    if number in self.barriers:
      raise EmulatorError(f"B{number} is set, and lanes {self.barriers[number].lanes:#010x} have not reconverged at "
                          "it: take another barrier")
    self.barriers[number] = ConvergenceBarrier(lanes, pc)

  def part(self, warp: Warp, taken: int, pc: int) -> None:
    """Split the lanes: some go on at pc, the others at the current address. Raises EmulatorError if no barrier lets
    them reconverge.
    """
    if not any(not warp.active & ~barrier.lanes for barrier in self.barriers.values()):
      raise EmulatorError(f"lanes {taken:#010x} of {warp.active:#010x} branch, and no BSSY says where they "
                          "reconverge: set a barrier before, or gate what lanes do instead")
    self.ready += [WarpSplit(warp.pc, warp.active & ~taken, warp.schedule.forked()),
                   WarpSplit(pc, taken, warp.schedule)]
    self.go_on(warp)

  def switch(self, warp: Warp) -> None:
    """Perhaps let another path go on, after a branch."""
    if not self.ready or self.source.randrange(SWITCH): return
    self.ready.append(WarpSplit(warp.pc, warp.active, warp.schedule))
    self.go_on(warp)

  def arrive(self, warp: Warp, number: int, lanes: int) -> None:
    """BSYNC, by all lanes of a path. Raises EmulatorError if they are none of the barrier's, or only a part of the
    path.
    """
    barrier = self.barriers.get(number)
    if barrier is None or lanes & ~barrier.lanes:
      raise EmulatorError(f"BSYNC of B{number}, which no BSSY has set for lanes {lanes:#010x}")
    if lanes != warp.active:
      raise EmulatorError(f"BSYNC of B{number} is executed by some lanes of a path only: branch around it")
    barrier.arrived.append(WarpSplit(barrier.pc, lanes, warp.schedule))
    self.go_on(warp)

  def leave(self, warp: Warp, lanes: int) -> None:
    """EXIT of some lanes."""
    for barrier in self.barriers.values(): barrier.lanes &= ~lanes
    warp.active &= ~lanes
    if not warp.active and self.parted: self.go_on(warp)

  def go_on(self, warp: Warp) -> None:
    """Run another path. Raises Hang if none can run."""
    for number, barrier in list(self.barriers.items()):
      if barrier.lanes != sum(split.lanes for split in barrier.arrived): continue
      del self.barriers[number]
      if barrier.lanes:
        self.ready.append(WarpSplit(barrier.pc, barrier.lanes, merged([split.schedule for split in barrier.arrived])))
    if not self.ready:
      waiting = [f"lanes {split.lanes:#010x} wait at B{number} for {barrier.lanes & ~split.lanes:#010x}"
                 for number, barrier in sorted(self.barriers.items()) for split in barrier.arrived]
      raise Hang(f"{', '.join(waiting)}: none can go on")
    split = self.ready.pop(self.source.randrange(len(self.ready)))
    warp.pc, warp.active, warp.schedule = split
