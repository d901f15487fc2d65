"""What a warp is watched for while it executes: the schedule that its control words make, and registers that nothing
has written.

The hardware does not see whether a result of fixed time is there yet, nor whether a scoreboard that nobody waits for is
still taken: an instruction reads what the register holds. Time passes here by stall counts alone, so waiting never
hides a stall that is too short.
"""
from __future__ import annotations

from tinyhw.autogen.nvidia import bank
from tinyhw.emulator.errors import MissingHazard, MissingWait, OutOfBounds, UninitialisedRead
from tinyhw.emulator.nvidia.checks.products import Products
from tinyhw.emulator.nvidia.execute.state import Warp, named
from tinyhw.isa.sass.model.latency import (
  BOARD_STALL, MOST, Latency, distance, latency_of, overwrite_distance, reuse_distance, shortest_stall)
from tinyhw.isa.sass.table.control import NONE, SCOREBOARDS, Control
from tinyhw.isa.sass.table.uses import MAKES, WANTS, Unit, Uses
from tinyhw.machine.ir.inst import MInst

NEVER = 1 << SCOREBOARDS  # stands beside the scoreboards for none: nothing tells when it is done
COUNTS = "DEPBAR.LE"            # waits until a scoreboard counts no more than so many
NOT_WAITED = "has not been waited for"
class Schedule:
  """What is on its way in one warp. clock: cycles, by stalls. due: unit -> when its instruction was issued, its latency
  and pipe.

  fetched: unit -> when an instruction that takes a fixed time read it last. written: unit -> the scoreboard (as a mask)
  that says when it is written.
  read: unit -> for each instruction that reads it late, the scoreboards of which any says that it has. taken:
  scoreboard -> when it was taken last.
  view: the scoreboards of FENCE that has not been waited for. products: registers that asynchronous products have.
  """
  __slots__ = ("clock", "due", "fetched", "written", "read", "taken", "view", "products")

  def __init__(self) -> None:
    self.clock = 0
    self.due: dict[Unit, tuple[int, Latency, str]] = {}
    self.fetched: dict[Unit, int] = {}
    self.written: dict[Unit, int] = {}
    self.read: dict[Unit, list[int]] = {}
    self.taken: dict[int, int] = {}
    self.view = 0
    self.products = Products()

  def issue(self, inst: MInst, uses: Uses, control: Control) -> None:
    """Check that an instruction may issue now, and note what it starts. Raises MissingWait, MissingHazard."""
    least = shortest_stall(inst.row)
    if control.stall < least:
      raise MissingHazard(f"a stall of {control.stall}: the next instruction may issue {least} cycles behind this one")
    if control.wait: self.wait(control.wait)
    if inst.row.name == COUNTS: self.check_taken(inst.operands[inst.row.isa.index["board"]])
    if uses.view == WANTS and self.view:
      raise MissingWait(f"FENCE has not made visible what was written: {waits(self.view)} {NOT_WAITED}")
    for unit, guard in uses.reads: self.check_read(unit, guard, inst)
    self.products.issue(inst, uses, self.written)
    own = latency_of(inst.row) if uses.writes and not uses.board and not uses.product else None
    for unit in uses.writes: self.check_write(unit, inst, uses.board)
    self.start(inst, uses, control, own)
    self.clock += control.stall

  def wait(self, boards: int) -> None:
    """The scoreboards of a mask are free."""
    for board in range(SCOREBOARDS):
      if boards >> board & 1: self.check_taken(board)
    self.view &= ~boards
    self.written = {unit: taken for unit, taken in self.written.items() if not taken & boards}
    self.read = {unit: left for unit, all_taken in self.read.items()
                 if (left := [taken for taken in all_taken if not taken & boards])}

  def check_taken(self, board: int) -> None:
    """A scoreboard says what it counts some cycles after it was taken."""
    since = self.clock - self.taken.get(board, -MOST)
    if since < BOARD_STALL:
      raise MissingHazard(f"scoreboard {board} is waited for {since} cycles after it was taken; {BOARD_STALL} are "
                          f"needed")

  def check_read(self, unit: Unit, guard: bool, inst: MInst) -> None:
    if unit in self.written: raise MissingWait(f"{named(unit)} is read, and {waits(self.written[unit])} {NOT_WAITED}")
    if unit not in self.due: return
    at, latency, pipe = self.due[unit]
    needed = distance(latency, pipe, inst.row, unit[0], guard)
    early = (f"{named(unit)} is read {self.clock - at} cycles after its instruction; it is there after {needed}: "
             f"stall longer")
    if self.clock - at < needed: raise MissingHazard(early)

  def check_write(self, unit: Unit, inst: MInst, board: bool) -> None:
    if unit in self.written:
      raise MissingWait(f"{named(unit)} is overwritten before its own result is there: {waits(self.written[unit])} "
                        f"{NOT_WAITED}")
    if unit in self.read:
      raise MissingWait(f"{named(unit)} is overwritten while it may still be read: {waits(self.read[unit][0])} "
                        f"{NOT_WAITED}")
    if self.clock - self.fetched.get(unit, -MOST) < reuse_distance(inst.row, board):
      raise MissingHazard(f"{named(unit)} is overwritten {self.clock - self.fetched[unit]} cycles after another "
                          f"instruction began to read it")
    if unit not in self.due: return
    at, latency, pipe = self.due[unit]
    needed = overwrite_distance(latency, pipe, inst.row, board)
    if self.clock - at < needed:
      raise MissingHazard(f"{named(unit)} is overwritten {self.clock - at} cycles after another result was started; "
                          f"it would win up to {needed}")

  def start(self, inst: MInst, uses: Uses, control: Control, own: Latency | None) -> None:
    write, read = (1 << board if board != NONE else 0 for board in (control.write, control.read))
    for board in (control.write, control.read):
      if board != NONE: self.taken[board] = self.clock
    for unit in uses.writes:
      self.due.pop(unit, None)
      if own is not None: self.due[unit] = self.clock, own, inst.row.pipe
      elif not uses.product: self.written[unit] = write or NEVER
    if uses.view == MAKES: self.view |= write or NEVER
    if not uses.late: self.fetched.update((unit, self.clock) for unit, _ in uses.reads)
    else:
      for unit, _ in uses.reads: self.read.setdefault(unit, []).append(read | write or NEVER)

  def forked(self) -> Schedule:
    """The same for other lanes of the warp, from here on."""
    return met([self])

def met(schedules: list[Schedule]) -> Schedule:
  """Of lanes that went different ways, where they are together again: what any of them has on its way.

  Products stay the warp's.
  """
  found = Schedule()
  found.clock, found.products = max(s.clock for s in schedules), schedules[0].products
  for s in schedules:
    later = found.clock - s.clock
    for unit, (at, latency, pipe) in s.due.items():
      if unit not in found.due or found.due[unit][0] < at + later: found.due[unit] = at + later, latency, pipe
    for unit, since in s.fetched.items():
      found.fetched[unit] = max(found.fetched.get(unit, since + later), since + later)
    for board, since in s.taken.items(): found.taken[board] = max(found.taken.get(board, since + later), since + later)
    for unit, boards in s.written.items(): found.written[unit] = found.written.get(unit, 0) | boards
    for unit, taken in s.read.items(): found.read[unit] = found.read.get(unit, []) + taken
    found.view |= s.view
  return found

def waits(boards: int) -> str:
  """The scoreboards of a mask in words."""
  found = [str(board) for board in range(SCOREBOARDS) if boards >> board & 1]
  return f"scoreboard {', '.join(found)}" if found else "no scoreboard tells when; it"

def check_registers(warp: Warp, uses: Uses, active: int, lanes: int) -> None:
  """Registers exist, and have been written: guards in all lanes that run, sources where the instruction is executed.
  Raises OutOfBounds, UninitialisedRead."""
  for unit in (*(unit for unit, _ in uses.reads), *uses.writes):
    if unit[0] == "R" and unit[1] >= warp.launch.registers:
      raise OutOfBounds(f"{named(unit)}: the launch gives each lane {warp.launch.registers} registers, but for "
                        f"{bank.HIDDEN_REGISTERS} that the "
                        "hardware keeps for itself; raise REGISTER_COUNT")
  for unit, guard in uses.reads:
    if uses.product and unit in uses.writes: continue  # whether a product reads its sums is decided when it begins
    missing = (active if guard and unit[0] == "P" else lanes) & ~warp.known.get(unit, 0)
    if missing:
      raise UninitialisedRead(f"{named(unit)} is read in lanes {missing:#010x}, in which nothing has written it")
