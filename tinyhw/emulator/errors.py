"""Errors of the virtual hardware.

A `StrictError` is a mistake that real hardware lets pass, punishes now and then, or hangs on. It ends the emulation of
the actor that made the mistake. The user gets it from the call that made the virtual device move on. A `PageFault`
never reaches the user itself: the virtual device turns it into the hardware's report (an event of the kernel's driver),
and the driver tells of it.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from tinyhw.errors import TinyError

AnyError = TypeVar("AnyError", bound="EmulatorError")

class Misplaced(Exception):
  """Mixin of errors about a memory access. address: of the first byte that may not be accessed; None: the error has no
  address. lane: the lane of the access, or None."""
  address: int | None = None
  lane: int | None = None

  def blame(self, lanes: Sequence[int], places: Sequence[int | None]) -> None:
    """Find the lane of the error. places: the first address of each lane's access."""
    before = [(place, -lane) for lane, place in zip(lanes, places) if place is not None and self.address is not None
              and place <= self.address]
    if before: self.lane = -max(before)[1]

class EmulatorError(TinyError, RuntimeError):
  """The virtual hardware cannot go on: it meets something unknown, or something that the hardware forbids."""
  def located(self: AnyError, where: str) -> AnyError:
    """Return the same error with lines that say where it happened."""
    return type(self)(self.message + where)

class StrictError(EmulatorError):
  """A program or driver relied on luck.

  The message names the kernel or packet and the place, and says how to correct it.
  """

class UnknownInstruction(StrictError):
  """Bytes that are no instruction of this architecture, or an instruction that the emulator does not implement."""

class UninitialisedRead(StrictError):
  """A read of a register or of memory that was never written."""

class MissingWait(StrictError):
  """A use of a register before the wait for its load, or a write to an operand that may still be read."""

class MissingHazard(StrictError):
  """Too few wait states between two instructions: the second may see the old value."""

class EarlyWrite(StrictError):
  """An instruction that may write its result before it has read all operands, with one of them in the same register."""

class OutOfBounds(StrictError, Misplaced):
  """A register beyond the kernel's allocation, shared memory beyond its size, code beyond its end, or memory outside
  all buffers."""
  def __init__(self, message: str = "", address: int | None = None):
    super().__init__(message)
    self.address = address

class DataRace(StrictError):
  """Two waves, or a wave and a copy, touch the same memory, one of them writes, and nothing orders them."""

class Hang(StrictError):
  """Waves that wait for an event that never comes."""

class StaleRead(StrictError):
  """A read through a cache that may hold the value from before a write. An invalidation or a write-back is missing."""

class UnusedResult(StrictError):
  """Instructions whose results no path reads (EMULATE_STRICT=2)."""

class PacketError(StrictError):
  """A packet that the command processor does not know, or whose fields it would misread."""

class DoorbellError(StrictError):
  """A doorbell with a wrong value, or one that was rung before the packets or the write pointer were in memory."""

class Fault(Exception):
  """A fault that stops a queue on real hardware too. It is not an error of the emulator: it becomes an event."""

class PageFault(Fault, Misplaced):
  """An access that the page table forbids. reason: "not present", "read only", "not executable". where: lines that name
  the instruction."""
  def __init__(self, address: int, write: bool, reason: str = "not present"):
    super().__init__(address, write, reason)
    self.address: int = address
    self.write, self.reason, self.where = write, reason, ""

  def located(self, where: str) -> PageFault:
    """Return the same fault with lines that say where it happened."""
    found = PageFault(self.address, self.write, self.reason)
    found.lane, found.where = self.lane, where
    return found

  @property
  def summary(self) -> str: return f"{'write to' if self.write else 'read of'} {self.address:#x}: {self.reason}"
  def __str__(self) -> str: return self.summary + self.where
