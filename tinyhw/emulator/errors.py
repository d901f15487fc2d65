"""What the virtual hardware raises.

A `StrictError` is a mistake that real hardware would have let pass, punished now and then, or hung on: it ends the
emulation of what made it, and reaches the user from the call that made the virtual device move on. A `PageFault` never
does: the virtual device turns it into what the hardware reports (an event of the kernel's driver), and it is the driver
that tells.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from tinyhw.errors import TinyError

AnyError = TypeVar("AnyError", bound="EmulatorError")

class Misplaced(Exception):
  """What errors about a place in memory have. address: of the first byte that is not to be accessed; None: it is about
  something else. lane: whose access it was, or None."""
  address: int | None = None
  lane: int | None = None

  def blame(self, lanes: Sequence[int], places: Sequence[int | None]) -> None:
    """Find the lane, of those whose accesses begin at these places."""
    before = [(place, -lane) for lane, place in zip(lanes, places) if place is not None and self.address is not None
              and place <= self.address]
    if before: self.lane = -max(before)[1]

class EmulatorError(TinyError, RuntimeError):
  """The virtual hardware cannot go on: something that it does not know, or that the hardware forbids."""
  def located(self: AnyError, where: str) -> AnyError:
    """The same, with lines that say where it happened."""
    return type(self)(self.message + where)

class StrictError(EmulatorError):
  """A program or driver relied on luck.

  The message says which kernel or packet, where, and what would make it right.
  """

class UnknownInstruction(StrictError):
  """Bytes that are no instruction of this architecture, or one that the emulator has no meaning for."""

class UninitialisedRead(StrictError):
  """A register, or memory, that nothing has written."""

class MissingWait(StrictError):
  """A register whose load has not been waited for, or whose operand may still be read."""

class MissingHazard(StrictError):
  """Too few wait states between two instructions: the second may see what was there before the first."""

class EarlyWrite(StrictError):
  """An instruction that may write its result before it has read all operands, with one of them in the same register."""

class OutOfBounds(StrictError, Misplaced):
  """A register beyond those that the kernel was given, local memory beyond its size, code beyond its end, or memory
  that is in no buffer."""
  def __init__(self, message: str = "", address: int | None = None):
    super().__init__(message)
    self.address = address

class DataRace(StrictError):
  """Two waves, or a wave and a copy, touch the same memory, one of them writes, and nothing orders them."""

class Hang(StrictError):
  """Waves that wait for what never comes."""

class StaleRead(StrictError):
  """A read through a cache that may hold what was there before a write: an invalidation or a write-back is missing."""

class UnusedResult(StrictError):
  """Instructions that nothing would miss (EMULATE_STRICT=2): no path reads what they write."""

class PacketError(StrictError):
  """A packet that the command processor does not know, or whose fields it would misread."""

class DoorbellError(StrictError):
  """A doorbell that was rung with a wrong value, or before the packets or the write pointer were in memory."""

class Fault(Exception):
  """What stops a queue on real hardware too. Not an error of the emulator: it becomes an event."""

class PageFault(Fault, Misplaced):
  """An access that the page table forbids. reason: "not present", "read only", "not executable". where: lines that
  name the instruction."""
  def __init__(self, address: int, write: bool, reason: str = "not present"):
    super().__init__(address, write, reason)
    self.address: int = address
    self.write, self.reason, self.where = write, reason, ""

  def located(self, where: str) -> PageFault:
    """The same, with lines that say where it happened."""
    found = PageFault(self.address, self.write, self.reason)
    found.lane, found.where = self.lane, where
    return found

  @property
  def summary(self) -> str: return f"{'write to' if self.write else 'read of'} {self.address:#x}: {self.reason}"
  def __str__(self) -> str: return self.summary + self.where
