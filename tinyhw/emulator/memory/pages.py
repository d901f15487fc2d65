"""Page tables of virtual devices: the addresses that a device sees, their pages, and their permissions."""
from __future__ import annotations
import bisect
import contextlib
from typing import Any

from tinyhw.emulator.errors import PageFault
from tinyhw.emulator.memory.physical import Frames

class Range:
  """Addresses start..end of a device, all of one piece of physical memory. owner: the object that mapped it, for
  messages.

  uncached: the last cache does not keep it. host: it is not the device's own memory. view: its bytes.
  """
  __slots__ = ("start", "end", "frames", "offset", "view", "writable", "executable", "uncached", "host", "owner")

  def __init__(self, start: int, frames: Frames, offset: int, size: int, writable: bool, executable: bool,
               uncached: bool, host: bool, owner: Any):
    self.start, self.end, self.frames, self.offset = start, start + size, frames, offset
    self.view = frames.view[offset:offset + size]
    self.writable, self.executable, self.uncached, self.host, self.owner = writable, executable, uncached, host, owner

  def let_go(self) -> None:
    """Release the view: the pages are not used through this range any more.

    The traceback of an error may hold a view. The pages then stay mapped.
    """
    with contextlib.suppress(BufferError): self.view.release()

  def __repr__(self) -> str:
    rights = "r" + "w" * self.writable + "x" * self.executable
    return f"{self.start:#x}..{self.end:#x} {rights}{' uncached' if self.uncached else ''} of {self.owner}"

class PageTable:
  """The ranges of one address space, by address. Addresses are whole pages, which the kernel's driver checks before."""
  def __init__(self) -> None:
    self.starts: list[int] = []
    self.ranges: list[Range] = []
    self.changes = 0  # a count: users that remember a range compare it

  def overlaps(self, start: int, end: int) -> Range | None:
    """Return a range that shares an address with start..end."""
    i = bisect.bisect_left(self.starts, end) - 1
    return self.ranges[i] if i >= 0 and self.ranges[i].end > start else None

  def map(self, made: Range) -> None:
    """Add a range, which overlaps no other."""
    assert self.overlaps(made.start, made.end) is None, f"{made!r} overlaps another range"
    i = bisect.bisect(self.starts, made.start)
    self.starts.insert(i, made.start)
    self.ranges.insert(i, made)
    self.changes += 1

  def unmap(self, start: int) -> Range:
    """Remove and return the range that begins at `start`."""
    i = self.starts.index(start)
    del self.starts[i]
    self.changes += 1
    gone = self.ranges.pop(i)
    gone.let_go()
    return gone

  def find(self, address: int) -> Range | None:
    """Return the range that has this address."""
    i = bisect.bisect(self.starts, address) - 1
    return self.ranges[i] if i >= 0 and address < self.ranges[i].end else None

  def at(self, address: int, write: bool = False, execute: bool = False) -> Range:
    """Return the range for an access. Raises PageFault where there is none, or where it does not allow the access."""
    found = self.find(address)
    if found is None: raise PageFault(address, write)
    if write and not found.writable: raise PageFault(address, write, "read only")
    if execute and not found.executable: raise PageFault(address, write, "not executable")
    return found

  def nearest(self, address: int) -> str:
    """Describe the position of an address among the ranges."""
    found = self.find(address)
    if found is not None: return f"in {found!r}"
    i = bisect.bisect(self.starts, address)
    near = [f"{address - self.ranges[i - 1].end:#x} bytes after the end of {self.ranges[i - 1]!r}"] if i else []
    if i < len(self.ranges): near.append(f"{self.ranges[i].start - address:#x} bytes before {self.ranges[i]!r}")
    return " and ".join(near) or "nothing is mapped"
