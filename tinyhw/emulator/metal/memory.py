"""Memory that processor and GPU share, made strict: each has bytes of its own.

On a Mac both see one memory, which forgives nearly every mistake in the order of accesses. Here the program sees
results only when it has asked for the status of a command buffer and was told that it is done. What the program writes
is found by comparison when a command buffer begins. New memory has garbage, and remembers which bytes have a value.

Pages of the program that become a buffer have other contents, too, which change at any time. So there only bytes that
both have changed are an error, and the GPU's are put one by one. Two such buffers may have pages in common.
"""
from __future__ import annotations
import ctypes
import random
from collections.abc import Iterable, Iterator

from tinyhw.emulator.errors import DataRace

BLOCK = 16      # bytes: if the program wrote one of a block, it is taken to have written all of it
CHUNK = 4096    # bytes that are compared first
Bytes = bytes | bytearray

def changed_blocks(one: Bytes, two: Bytes) -> Iterator[tuple[int, int]]:
  """Return the blocks in which two memories of one size differ: first byte and end."""
  for chunk in range(0, len(one), CHUNK):
    if one[chunk:chunk + CHUNK] == two[chunk:chunk + CHUNK]: continue
    for start in range(chunk, min(chunk + CHUNK, len(one)), BLOCK):
      end = min(start + BLOCK, len(one))
      if one[start:end] != two[start:end]: yield start, end

class SharedMemory:
  """The bytes of a buffer. host: those of the program, at `address`; gpu: those of the GPU; seen: the program's when
  the two were equal the last time. written: 1 for each byte that has a value. users: titles of the command buffers that
  use it, and that the program has not seen to be done."""
  def __init__(self, name: str, size: int, seed: random.Random):
    self.name, self.size = name, size
    self.memory = (ctypes.c_ubyte * (size + BLOCK))()
    self.address = -(-ctypes.addressof(self.memory) // BLOCK) * BLOCK
    self.host = memoryview((ctypes.c_ubyte * size).from_address(self.address)).cast("B")
    pattern = bytes(seed.randrange(128, 256) for _ in range(61))   # no length of an element divides it
    self.host[:] = (pattern * (size // 61 + 1))[:size]
    self.gpu, self.seen = bytearray(self.host), bytearray(self.host)
    self.written = bytearray(size)
    self.users: list[str] = []

  def take_writes(self) -> None:
    """Give the GPU the bytes that the program has written. Raises DataRace if the GPU may be using the memory."""
    if self.seen == self.host: return
    if self.users:
      raise DataRace(f"the program wrote to {self.name}, which {self.users[0]} uses; ask for its status until it is "
                     f"done, then write")
    host = bytes(self.host)
    for start, end in changed_blocks(host, self.seen):
      self.gpu[start:end] = host[start:end]
      self.written[start:end] = bytes([1]) * (end - start)
    self.seen[:] = host

  def show(self) -> None:
    """Let the program see the GPU's bytes. Raises DataRace if it has written meanwhile."""
    if self.seen != self.host:
      raise DataRace(f"the program wrote to {self.name} while the GPU used it; wait until its work is done, then write")
    if self.seen == self.gpu: return
    self.host[:] = self.gpu
    self.seen[:] = self.gpu

  def close(self) -> None:
    """End it: who reads it later finds garbage."""
    self.host[:] = bytes([0x5A]) * self.size

  def has_run(self, writers: Iterable[int], granule: int) -> None:
    """A dispatch has ended that wrote granules at these offsets."""

class ProgramMemory(SharedMemory):
  """Pages of the program as the bytes of a buffer. everything: all such memory."""
  def __init__(self, name: str, address: int, size: int, everything: list[ProgramMemory]):
    self.name, self.address, self.size, self.everything = name, address, size, everything
    self.host = memoryview((ctypes.c_ubyte * size).from_address(address)).cast("B")
    self.gpu = bytearray(self.host)
    self.seen = bytearray(self.gpu)    # not of the host again: other threads go on
    self.written = bytearray([1]) * size
    self.users: list[str] = []
    for other, start, end in self.shared(0, size):
      at = address - other.address
      for k in range(start, end):
        if other.gpu[at + k] != other.seen[at + k]: self.gpu[k] = other.gpu[at + k]
    everything.append(self)

  def shared(self, start: int, end: int) -> Iterator[tuple[ProgramMemory, int, int]]:
    """Return other memories that have some of these bytes, and which: offsets in this memory."""
    for other in self.everything:
      first, last = max(start, other.address - self.address), min(end, other.address + other.size - self.address)
      if other is not self and first < last: yield other, first, last

  def changes(self) -> Iterator[int]:
    """Return the offsets of bytes that the program or the GPU has changed. Raises DataRace for those of both."""
    host = bytes(self.host)
    for other in (host, self.gpu):
      for start, end in changed_blocks(other, self.seen):
        for k in range(start, end):
          if other[k] == self.seen[k]: continue
          if host[k] != self.seen[k] != self.gpu[k] != host[k]:
            raise DataRace(f"the program and the GPU wrote to {self.name}, and nothing orders the two; ask for the "
                           f"status of its work until it is done, then write")
          yield k

  def take_writes(self) -> None:
    for k in self.changes():
      if self.gpu[k] == self.seen[k]: self.gpu[k] = self.seen[k] = self.host[k]

  def show(self) -> None:
    for k in self.changes():
      if self.gpu[k] == self.seen[k]: continue
      self.host[k] = self.seen[k] = self.gpu[k]
      for other, start, _ in self.shared(k, k + 1):
        at = self.address - other.address + start
        other.gpu[at] = other.seen[at] = self.gpu[k]

  def has_run(self, writers: Iterable[int], granule: int) -> None:
    for at in writers:
      for other, start, end in self.shared(at, at + granule):
        there = self.address - other.address
        other.gpu[there + start:there + end] = self.gpu[start:end]

  def close(self) -> None: self.everything.remove(self)
