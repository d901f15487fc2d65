"""Accesses of the program itself to memory that GPUs use too. Its reads check the GPUs' caches, and a read of a signal
makes an order.

A mapping of the program (files.VirtualMapping) tells its watcher of each access. Other pages (doorbells, registers)
have watchers of their families.
"""
from __future__ import annotations
from collections.abc import Callable
from typing import Protocol

from tinyhw.emulator.checks.order import MOST_WATCHED, Order
from tinyhw.emulator.memory.cache import Coherence
from tinyhw.emulator.memory.pages import Range
from tinyhw.emulator.memory.physical import Frames

class Watching(Protocol):
  """A computer, as far as strict checks need it; None without them."""
  @property
  def coherence(self) -> Coherence | None: ...
  @property
  def order(self) -> Order | None: ...

class MemoryWatcher:
  """The program's view of pages. Bytes that it reads must have left the GPUs' caches, and every agent sees bytes that
  it writes.

  The pages are those of `frames` from `offset` on. owner: their owner, for messages; release: called at the end of the
  mapping.
  """
  def __init__(self, computer: Watching, frames: Frames, offset: int, address: int, length: int, owner: object,
               release: Callable[[], None]):
    self.computer, self.frames, self.release = computer, frames, release
    self.entry = Range(address, frames, offset, length, writable=True, executable=False, uncached=False, host=True,
                       owner=owner)

  def physical(self, offset: int) -> int:
    """Return the physical address of a byte."""
    return self.entry.frames.physical + self.entry.offset + offset

  def before_load(self, offset: int, size: int) -> None:
    """Check a load of the program. Raises StaleRead."""
    if self.computer.coherence is not None:
      self.computer.coherence.read_memory(self.entry, offset, size, None, "the program")
    if self.computer.order is not None and size <= MOST_WATCHED:
      self.computer.order.host.observe(self.physical(offset), size)

  def before_store(self, offset: int, data: bytes | bytearray | memoryview) -> None:
    """Mark the bytes as written, and tell the caches of it."""
    self.entry.frames.mark(self.entry.offset + offset, len(data))
    if self.computer.coherence is not None:
      self.computer.coherence.write(self.entry, offset, data, None, (), "the program")

  def after_store(self, offset: int, size: int) -> None:
    """Do nothing."""

  def closed(self) -> None:
    """Release the pages: the mapping has ended."""
    self.entry.let_go()
    self.release()
