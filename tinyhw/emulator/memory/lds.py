"""Shared memory of a workgroup (AMD's LDS, NVIDIA's shared memory): bytes, bounds, initialisation, and races between
waves.

Two waves race if both touch a byte between two barriers and one of them writes. Atomics do not race with atomics. A
write of the value that is already there does not race, since waves that fill a tile may overlap. An access that was not
waited for before a barrier may still happen after it, so it counts after the barrier too. For each byte and each kind
of access there is the number plus 1 of the wave that did it since the last barrier; SEVERAL for more than one wave.
"""
from __future__ import annotations
import random
from collections.abc import Iterable

from tinyhw.drivers.cpu.memory import address_of
from tinyhw.emulator.errors import DataRace, MissingWait, OutOfBounds, UninitialisedRead
from tinyhw.emulator.memory.windows import LocalWindow
from tinyhw.named_tuple import NamedTuple

READ, WRITE, ATOMIC = 0, 1, 2
WHAT = ("read", "write", "atomic operation")
# for each kind: the kinds by another wave that race with it
RIVALS = ((WRITE, ATOMIC), (READ, WRITE, ATOMIC), (READ, WRITE))
SEVERAL = 255

Access = tuple[int, int, int]  # address, size, kind

class MemoryTerms(NamedTuple):
  """The vendor's words for the memory, for lanes that execute together, and for all waves that share the memory. more:
  says how to get more of it; ordering: says how to order the accesses of two waves."""
  memory: str = "LDS"
  wave: str = "wave"
  group: str = "workgroup"
  more: str = "raise LDS_SIZE"
  ordering: str = "put a barrier between them, with a wait for LDS operations before it"

AMD = MemoryTerms()

class LocalMemory:
  """`size` bytes, garbage at first. Addresses are offsets. `wave` is the number of the wave that accesses, 0 to 253."""
  def __init__(self, size: int, source: random.Random, words: MemoryTerms = AMD):
    self.size, self.words = size, words
    self.data = bytearray(source.randbytes(size))
    self.written = bytearray(size)
    self.owners = tuple(bytearray(size) for _ in WHAT)
    self.coming = bytearray(size)  # bytes that asynchronous copies will write

  def reach(self, wave: int) -> LocalWindow:
    """Return the LDS for translated code of a wave."""
    places = [address_of(memory) for memory in (self.data, self.written, *self.owners, self.coming)]
    return LocalWindow(places, self.size, wave + 1)

  def load(self, wave: int, address: int, size: int) -> bytes:
    """Return bytes. Some wave must have written them."""
    self.touch(wave, address, size, READ)
    self.check_written(address, size)
    return bytes(self.data[address:address + size])

  def store(self, wave: int, address: int, data: bytes) -> None:
    """Write bytes."""
    there = self.data[address:address + len(data)] == data and 0 not in self.written[address:address + len(data)]
    if self.comes(address, len(data)):
      raise DataRace(f"{self.words.memory} address {address:#x}: a store where an asynchronous copy still writes")
    self.touch(wave, address, len(data), WRITE, (READ, ATOMIC) if there else RIVALS[WRITE])
    self.data[address:address + len(data)] = data
    self.written[address:address + len(data)] = b"\1" * len(data)

  def atomic(self, wave: int, address: int, size: int) -> int:
    """Return the word that an atomic operation is about to change. `put` stores the new word."""
    self.touch(wave, address, size, ATOMIC)
    self.check_written(address, size)
    return int.from_bytes(self.data[address:address + size], "little")

  def put(self, address: int, size: int, value: int) -> None:
    """Store the new word of an atomic operation."""
    self.data[address:address + size] = value.to_bytes(size, "little")

  def start(self, wave: int, address: int, size: int) -> None:
    """Begin an asynchronous copy, which writes here at any time until `finish`. Until then nothing may be read."""
    self.touch(wave, address, size, WRITE)
    if self.comes(address, size):
      raise DataRace(f"{self.words.memory} address {address:#x}: two asynchronous copies write there in any order; "
                     f"wait between them")
    self.written[address:address + size] = bytes(size)
    self.coming[address:address + size] = b"\1" * size

  def finish(self, wave: int, address: int, data: bytes) -> None:
    """End an asynchronous copy that its wave has waited for."""
    self.coming[address:address + len(data)] = bytes(len(data))
    self.data[address:address + len(data)] = data
    self.written[address:address + len(data)] = b"\1" * len(data)

  def comes(self, address: int, size: int) -> bool:
    """Return whether an asynchronous copy may still write to these bytes."""
    return 1 in self.coming[address:address + size]

  def check_written(self, address: int, size: int) -> None:
    if 0 in self.written[address:address + size]:
      if self.comes(address, size):
        raise MissingWait(f"{self.words.memory} address {address:#x}: {size} bytes are read that an asynchronous copy "
                          f"still writes")
      raise UninitialisedRead(f"{self.words.memory} address {address:#x}: {size} bytes are read, of which no "
                              f"{self.words.wave} has written all")

  def check_bounds(self, address: int, size: int, kind: int) -> None:
    if address < 0 or address + size > self.size:
      raise OutOfBounds(f"{self.words.memory} {WHAT[kind]} of {size} bytes at {address:#x}: the {self.words.group} "
                        f"has {self.size} bytes; "
                        f"{self.words.more} or mend the address")

  def touch(self, wave: int, address: int, size: int, kind: int, rivals: tuple[int, ...] | None = None) -> None:
    """Check bounds and races, and record the access. rivals: kinds of access by another wave that race with it."""
    self.check_bounds(address, size, kind)
    mark = wave + 1
    mine = bytes((0, mark))
    for rival in RIVALS[kind] if rivals is None else rivals:
      others = self.owners[rival][address:address + size].translate(None, mine)
      if others: raise DataRace(self.race(wave, address, size, kind, rival))
    marks = self.owners[kind]
    part = marks[address:address + size]
    if part.translate(None, mine): marks[address:address + size] = bytes(mark if m in mine else SEVERAL for m in part)
    else: marks[address:address + size] = bytes((mark,)) * size

  def race(self, wave: int, address: int, size: int, kind: int, rival: int) -> str:
    place = next(i for i in range(address, address + size) if self.owners[rival][i] not in (0, wave + 1))
    owner = self.owners[rival][place]
    name = self.words.wave
    other = f"several {name}s do" if owner == SEVERAL else f"{name} {owner - 1} does"
    return (f"{self.words.memory} address {place:#x}: {WHAT[kind]} by {name} {wave}, and {other} {WHAT[rival]} there; "
            f"{self.words.ordering}")

  def barrier(self, unfinished: Iterable[tuple[int, Access]]) -> None:
    """Begin a new interval: all waves have met at a barrier.

    `unfinished` are accesses, each with its wave, that were not waited for. They may happen later.
    """
    for marks in self.owners: marks[:] = bytes(self.size)  # in place: translated code has their addresses
    for wave, (address, size, kind) in unfinished: self.touch(wave, address, size, kind)
