"""Strict checks of a warp: the schedule that its control words make, and uninitialised registers.

The hardware checks neither results of fixed latency nor scoreboards that no instruction waits for: an instruction reads
the current content of the register. Here time passes only by stall counts, so waiting never hides too short a stall.
"""
from __future__ import annotations

from tinyhw.autogen.nvidia import bank
from tinyhw.emulator.errors import MissingHazard, MissingWait, OutOfBounds, UninitialisedRead
from tinyhw.emulator.nvidia.checks.products import Products
from tinyhw.emulator.nvidia.warp.state import Warp, named
from tinyhw.isa.sass.model.latency import (
  BOARD_STALL, MOST, Latency, distance, latency_of, overwrite_distance, reuse_distance, shortest_stall)
from tinyhw.isa.sass.table.control import NONE, SCOREBOARDS, Control
from tinyhw.isa.sass.table.uses import MAKES, WANTS, Unit, Uses
from tinyhw.machine.ir.inst import MInst

NEVER = 1 << SCOREBOARDS  # a bit next to those of the scoreboards: no scoreboard signals the end
COUNTS = "DEPBAR.LE"            # waits until a scoreboard counts at most n
NOT_WAITED = "has not been waited for"
class PipelineState:
  """Operations in flight in one warp.

  - clock: cycles, by stalls.
  - due: register -> issue time of its instruction, latency, pipe.
  - fetched: register -> time of its last read by an instruction of fixed latency.
  - written: register -> the scoreboard (as a mask) that signals its write.
  - read: register -> for each instruction that reads it late, the scoreboards of which any signals the read.
  - taken: scoreboard -> time when it was taken last.
  - view: the scoreboards of a FENCE that was not waited for. products: registers that asynchronous products own.
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
    """Check that an instruction may issue now, and record the operations that it starts. Raises MissingWait,
    MissingHazard.
    """
    least = shortest_stall(inst.row)
    if control.stall < least:
      raise MissingHazard(f"a stall of {control.stall}: the next instruction may issue {least} cycles after this one")
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
    """Wait for the scoreboards of a mask."""
    for board in range(SCOREBOARDS):
      if boards >> board & 1: self.check_taken(board)
    self.view &= ~boards
    self.written = {unit: taken for unit, taken in self.written.items() if not taken & boards}
    self.read = {unit: left for unit, all_taken in self.read.items()
                 if (left := [taken for taken in all_taken if not taken & boards])}

  def check_taken(self, board: int) -> None:
    """Check that a scoreboard was taken some cycles before its use. Its count is valid only then."""
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

  def forked(self) -> PipelineState:
    """Return a copy for other lanes of the warp, which part here."""
    return merged([self])

def merged(schedules: list[PipelineState]) -> PipelineState:
  """Merge the schedules of lanes that reconverge: the operations in flight of all of them.

  Products belong to the warp.
  """
  found = PipelineState()
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
  """Return the scoreboards of a mask as text."""
  found = [str(board) for board in range(SCOREBOARDS) if boards >> board & 1]
  return f"scoreboard {', '.join(found)}" if found else "no scoreboard tells when; it"

def check_registers(warp: Warp, uses: Uses, active: int, lanes: int) -> None:
  """Check that registers exist, and were written: guards in all lanes that run, sources in the lanes that execute.
  Raises OutOfBounds, UninitialisedRead."""
  for unit in (*(unit for unit, _ in uses.reads), *uses.writes):
    if unit[0] == "R" and unit[1] >= warp.launch.registers:
      raise OutOfBounds(f"{named(unit)}: the launch gives each lane {warp.launch.registers} registers, but for "
                        f"{bank.HIDDEN_REGISTERS} that the "
                        "hardware keeps for itself; raise REGISTER_COUNT")
  for unit, guard in uses.reads:
    if uses.product and unit in uses.writes: continue  # the start of a product decides whether it reads its sums
    missing = (active if guard and unit[0] == "P" else lanes) & ~warp.known.get(unit, 0)
    if missing:
      raise UninitialisedRead(f"{named(unit)} is read in lanes {missing:#010x}, in which nothing has written it")
