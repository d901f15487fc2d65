"""Memory that processor and GPU share, made strict: each has bytes of its own.

On a Mac both see one memory, which forgives nearly every mistake in the order of accesses. Here the program sees
results only when it has asked for the status of a command buffer and was told that it is done. What the program writes
is found by comparison when a command buffer begins. New memory has garbage, and remembers which bytes have a value.
"""
from __future__ import annotations
import ctypes
import random

from tinyhw.emulator.errors import DataRace

BLOCK = 16      # bytes: if the program wrote one of a block, it is taken to have written all of it

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
    for start in range(0, self.size, BLOCK):
      now = host[start:start + BLOCK]
      if now == self.seen[start:start + BLOCK]: continue
      self.gpu[start:start + BLOCK] = now
      self.written[start:start + BLOCK] = bytes([1]) * len(now)
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
