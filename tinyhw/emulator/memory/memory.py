"""How virtual processors reach memory: the `Memory` protocol, and `FlatMemory`, one without page tables, caches and
devices.

Addresses are those of the device, which are also the host's (one address space, as unified drivers set it up). Whoever
executes instructions uses nothing but this protocol; what is behind it (page table, caches, other devices) is the
virtual box's.
"""
from __future__ import annotations
import ctypes
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Protocol

from tinyhw.drivers.cpu.memory import address_of
from tinyhw.emulator.errors import PageFault
from tinyhw.emulator.memory.windows import Window, Windows
from tinyhw.named_tuple import NamedTuple

class Unit(IntEnum):
  """Which caches an access goes through first."""
  VECTOR = 0       # lanes: the vector cache of the compute unit
  SCALAR = 1       # the scalar cache, which writes do not update
  INSTRUCTION = 2  # fetches
  ENGINE = 3       # command processors and copy engines: no cache but the last

class Scope(IntEnum):
  """Who must see it: a load passes by the caches that are nearer than its scope.

  gfx12: the value of the field; gfx942: 2 * sc1 + sc0; gfx11: glc means DEVICE.
  """
  UNIT = 0         # the compute unit's own waves
  GROUP = 1        # the workgroup, wherever its waves run
  DEVICE = 2
  SYSTEM = 3

class Kind(NamedTuple):
  """How an access goes. private: to scratch, which the hardware gives to another wave only when the one that had it
  has ended."""
  unit: Unit = Unit.VECTOR
  scope: Scope = Scope.UNIT
  private: bool = False

VECTOR = Kind()
SCALAR = Kind(Unit.SCALAR)
INSTRUCTION = Kind(Unit.INSTRUCTION)
SCRATCH = Kind(private=True)
ENGINE = Kind(Unit.ENGINE, Scope.SYSTEM)

class Memory(Protocol):
  """Memory as one workgroup, command processor or copy engine sees it.

  Raises PageFault, and what strict checks find: StaleRead, UninitialisedRead, DataRace.
  """
  def load(self, address: int, size: int, kind: Kind = VECTOR) -> bytes:
    """`size` bytes at any alignment."""
  def store(self, address: int, data: bytes, kind: Kind = VECTOR) -> None:
    """Write bytes at any alignment."""
  def atomic(self, address: int, size: int, update: Callable[[int], int], kind: Kind = VECTOR) -> int:
    """Replace a little-endian word of 4 or 8 bytes, aligned to its size, by update(word), which nothing can come
    between. Gives the old word."""
  def gather(self, addresses: Sequence[int], size: int, kind: Kind = VECTOR) -> list[bytes]:
    """Loads of several lanes: as many results as addresses, in their order."""
  def scatter(self, addresses: Sequence[int], data: Sequence[bytes], kind: Kind = VECTOR) -> None:
    """Stores of several lanes. Where two lanes write the same bytes, the later one in the order given stays."""
  def invalidate(self, kind: Kind) -> None:
    """Forget what the unit's caches hold that are nearer than the scope (and, as far as the hardware does, at it): an
    acquire of a wave."""
  def write_back(self, kind: Kind) -> None:
    """Make this wave's writes visible to the scope: a release of a wave."""

class WindowedMemory(Memory, Protocol):
  """Memory that translated code reaches too."""
  def windows(self) -> tuple[int, int]:
    """Where the tables of windows are for plain accesses of VECTOR and SCALAR: asked for before translated code runs,
    and good until it stops."""
  def open_window(self, address: int, kind: Kind, write: bool) -> bool:
    """Have a window onto the place of an address, if there can be one for such an access and there is none yet.

    Whether there is a new one.
    """

class FlatMemory:
  """Regions of host memory that are always there, readable, writable and coherent: for tests of instructions, and for
  `emulate`."""
  def __init__(self) -> None:
    self.regions: list[tuple[int, int, memoryview]] = []
    self.table = Windows()

  def add(self, address: int, content: bytearray | memoryview) -> None:
    """Make `content` what is at `address`: any number; need not be the host's."""
    self.regions.append((address, address + len(content), memoryview(content).cast("B")))

  def add_host(self, address: int, size: int) -> None:
    """Make host memory visible at its own address. Its owner keeps it there."""
    self.add(address, memoryview((ctypes.c_ubyte * size).from_address(address)))

  def _find(self, address: int, size: int, write: bool) -> list[memoryview]:
    """The bytes, in as many pieces as there are regions."""
    found = []
    while size > 0:
      start, end, view = next((region for region in self.regions if region[0] <= address < region[1]), (0, 0, None))
      if view is None: raise PageFault(address, write)
      count = min(size, end - address)
      found.append(view[address - start:address - start + count])
      address, size = address + count, size - count
    return found

  def load(self, address: int, size: int, kind: Kind = VECTOR) -> bytes:
    return b"".join(self._find(address, size, False))

  def store(self, address: int, data: bytes, kind: Kind = VECTOR) -> None:
    done = 0
    for piece in self._find(address, len(data), True):
      piece[:] = data[done:done + len(piece)]
      done += len(piece)

  def atomic(self, address: int, size: int, update: Callable[[int], int], kind: Kind = VECTOR) -> int:
    old = int.from_bytes(b"".join(self._find(address, size, True)), "little")
    self.store(address, (update(old) & ((1 << size * 8) - 1)).to_bytes(size, "little"))
    return old

  def gather(self, addresses: Sequence[int], size: int, kind: Kind = VECTOR) -> list[bytes]:
    return [self.load(address, size) for address in addresses]

  def scatter(self, addresses: Sequence[int], data: Sequence[bytes], kind: Kind = VECTOR) -> None:
    for address, value in zip(addresses, data): self.store(address, value)

  def windows(self) -> tuple[int, int]: return self.table.address, self.table.address

  def open_window(self, address: int, kind: Kind, write: bool) -> bool:
    for start, end, view in self.regions:
      if start <= address < end and not view.readonly:
        return self.table.add(Window(start, end, address_of(view) - start, writable=1))
    return False

  def invalidate(self, kind: Kind) -> None: pass

  def write_back(self, kind: Kind) -> None: pass
