"""Interface of virtual processors to memory: the `MemoryInterface` protocol, and `FlatMemory`, which has no page
tables, caches or devices.

Addresses are the device's, which are also the host's (one address space, as unified drivers set it up). Code that
executes instructions uses only this protocol. The virtual box implements it with page tables, caches and other devices.
"""
from __future__ import annotations
import ctypes
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Protocol

from tinyhw.drivers.cpu.memory import address_of
from tinyhw.emulator.errors import PageFault
from tinyhw.emulator.memory.windows import MemoryWindow, Windows
from tinyhw.named_tuple import NamedTuple

class AccessUnit(IntEnum):
  """The caches that an access goes through first."""
  VECTOR = 0       # lanes: the vector cache of the compute unit
  SCALAR = 1       # the scalar cache, which writes do not update
  INSTRUCTION = 2  # instruction fetches
  ENGINE = 3       # command processors and copy engines: only the last cache

class Scope(IntEnum):
  """The agents that must see an access. A load bypasses the caches that are nearer than its scope.

  gfx12: the value of the field; gfx942: 2 * sc1 + sc0; gfx11: glc means DEVICE.
  """
  UNIT = 0         # the compute unit's own waves
  GROUP = 1        # the workgroup, wherever its waves run
  DEVICE = 2
  SYSTEM = 3

class AccessKind(NamedTuple):
  """The path of an access. private: to scratch, which the hardware gives to another wave only after its wave has ended.
  """
  unit: AccessUnit = AccessUnit.VECTOR
  scope: Scope = Scope.UNIT
  private: bool = False

VECTOR = AccessKind()
SCALAR = AccessKind(AccessUnit.SCALAR)
INSTRUCTION = AccessKind(AccessUnit.INSTRUCTION)
SCRATCH = AccessKind(private=True)
ENGINE = AccessKind(AccessUnit.ENGINE, Scope.SYSTEM)

class MemoryInterface(Protocol):
  """Memory as one workgroup, command processor or copy engine sees it.

  Raises PageFault, and the errors of strict checks: StaleRead, UninitialisedRead, DataRace.
  """
  def load(self, address: int, size: int, kind: AccessKind = VECTOR) -> bytes:
    """Return `size` bytes at any alignment."""
  def store(self, address: int, data: bytes, kind: AccessKind = VECTOR) -> None:
    """Write bytes at any alignment."""
  def atomic(self, address: int, size: int, update: Callable[[int], int], kind: AccessKind = VECTOR) -> int:
    """Replace a little-endian word by update(word) without interruption. Return the old word.

    The word has 4 or 8 bytes and is aligned to its size.
    """
  def gather(self, addresses: Sequence[int], size: int, kind: AccessKind = VECTOR) -> list[bytes]:
    """Load for several lanes: one result for each address, in their order."""
  def scatter(self, addresses: Sequence[int], data: Sequence[bytes], kind: AccessKind = VECTOR) -> None:
    """Store for several lanes. Where two lanes write the same bytes, the later one in the given order wins."""
  def invalidate(self, kind: AccessKind) -> None:
    """Invalidate lines in the unit's caches that are nearer than the scope (and, if the hardware does so, at it). This
    is an acquire of a wave."""
  def write_back(self, kind: AccessKind) -> None:
    """Make this wave's writes visible to the scope. This is a release of a wave."""

class WindowedMemory(MemoryInterface, Protocol):
  """Memory that translated code reaches too."""
  def windows(self) -> tuple[int, int]:
    """Return the addresses of the tables of windows for plain accesses of VECTOR and SCALAR.

    Called before translated code runs; valid until that code stops.
    """
  def open_window(self, address: int, kind: AccessKind, write: bool) -> bool:
    """Open a window that contains an address, if such an access may have one and there is none yet.

    Return whether there is a new one.
    """

class FlatMemory:
  """Regions of host memory that are always present, readable, writable and coherent. For tests of instructions, and for
  `emulate`."""
  def __init__(self) -> None:
    self.regions: list[tuple[int, int, memoryview]] = []
    self.table = Windows()

  def add(self, address: int, content: bytearray | memoryview) -> None:
    """Map `content` at `address`, which may be any number and need not be the host's."""
    self.regions.append((address, address + len(content), memoryview(content).cast("B")))

  def add_host(self, address: int, size: int) -> None:
    """Map host memory at its own address. Its owner keeps it in place."""
    self.add(address, memoryview((ctypes.c_ubyte * size).from_address(address)))

  def _find(self, address: int, size: int, write: bool) -> list[memoryview]:
    """Return the bytes, in one piece for each region."""
    found = []
    while size > 0:
      start, end, view = next((region for region in self.regions if region[0] <= address < region[1]), (0, 0, None))
      if view is None: raise PageFault(address, write)
      count = min(size, end - address)
      found.append(view[address - start:address - start + count])
      address, size = address + count, size - count
    return found

  def load(self, address: int, size: int, kind: AccessKind = VECTOR) -> bytes:
    return b"".join(self._find(address, size, False))

  def store(self, address: int, data: bytes, kind: AccessKind = VECTOR) -> None:
    done = 0
    for piece in self._find(address, len(data), True):
      piece[:] = data[done:done + len(piece)]
      done += len(piece)

  def atomic(self, address: int, size: int, update: Callable[[int], int], kind: AccessKind = VECTOR) -> int:
    old = int.from_bytes(b"".join(self._find(address, size, True)), "little")
    self.store(address, (update(old) & ((1 << size * 8) - 1)).to_bytes(size, "little"))
    return old

  def gather(self, addresses: Sequence[int], size: int, kind: AccessKind = VECTOR) -> list[bytes]:
    return [self.load(address, size) for address in addresses]

  def scatter(self, addresses: Sequence[int], data: Sequence[bytes], kind: AccessKind = VECTOR) -> None:
    for address, value in zip(addresses, data): self.store(address, value)

  def windows(self) -> tuple[int, int]: return self.table.address, self.table.address

  def open_window(self, address: int, kind: AccessKind, write: bool) -> bool:
    for start, end, view in self.regions:
      if start <= address < end and not view.readonly:
        return self.table.add(MemoryWindow(start, end, address_of(view) - start, writable=1))
    return False

  def invalidate(self, kind: AccessKind) -> None: pass

  def write_back(self, kind: AccessKind) -> None: pass
