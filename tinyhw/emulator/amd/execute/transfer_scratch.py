"""Scratch, the memory of each lane, by scratch instructions and through flat addresses; and flat addresses of the LDS.

Memory interleaves the lanes of a wave in units of 4 bytes (architected flat scratch). Sources: ISA guides, "scratch"
and "flat" addressing; LLVM's AMDGPUUsage, "address spaces".
"""
from __future__ import annotations
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from tinyhw.emulator.amd.execute.transfer import element_of, get_lanes, put_lanes, row_at
from tinyhw.emulator.amd.registers import APERTURE_BYTES, APERTURES
from tinyhw.emulator.errors import OutOfBounds, StrictError, UnknownInstruction
from tinyhw.emulator.memory.lds import ATOMIC, READ, WRITE
from tinyhw.emulator.memory.memory import SCRATCH, AccessKind

if TYPE_CHECKING:
  from tinyhw.emulator.amd.execute.arithmetic import Mode, NamedOperands
  from tinyhw.emulator.amd.execute.state import Wave

SHARED, PRIVATE = APERTURES["shared"], APERTURES["private"]

def pieces(wave: Wave, lane: int, place: int, size: int) -> Iterator[tuple[int, int]]:
  """Yield (address, size) of the dwords of a lane's bytes at an offset. Raises OutOfBounds."""
  limit = wave.registers.scratch_wave_bytes // wave.lanes
  if not wave.registers.scratch_enabled:
    raise OutOfBounds("the kernel uses scratch, and RSRC2.SCRATCH_EN is 0; set it and TMPRING_SIZE")
  if place + size > limit:
    raise OutOfBounds(f"lane {lane}: scratch offset {place:#x}, and a lane has {limit} bytes; raise TMPRING_SIZE")
  end = place + size
  while place < end:
    count = min(4 - place % 4, end - place)
    yield wave.scratch_base + place // 4 * 4 * wave.lanes + 4 * lane + place % 4, count
    place += count

def load_private(wave: Wave, lane: int, place: int, size: int) -> bytes:
  """Return bytes of a lane's scratch."""
  return b"".join(wave.memory.load(address, count, SCRATCH) for address, count in pieces(wave, lane, place, size))

def store_private(wave: Wave, lane: int, place: int, data: bytes) -> None:
  """Write a lane's scratch."""
  for address, count in pieces(wave, lane, place, len(data)):
    wave.memory.store(address, data[:count], SCRATCH)
    data = data[count:]

def bind(uses: NamedOperands, mode: Mode) -> Callable[[Wave], None] | None:
  """Return the function of a scratch instruction, or None.

  An offset has three parts: a register of the lane, a scalar one, a constant.
  """
  space, _, rest = uses.name.partition("_")
  action, _, what = rest.partition("_")
  if space != "scratch": return None
  element, offset = element_of(what), uses.get("offset")
  if element is None or action not in ("load", "store"): raise UnknownInstruction(f"{uses.name} is not emulated")
  vector = row_at(uses, "vaddr") if "vaddr" in uses else None
  scalar = uses["saddr"].index if "saddr" in uses else None
  row = row_at(uses, "vdst" if action == "load" else "vdata")
  def places(wave: Wave) -> list[int]:
    start = offset + (wave.s[scalar] if scalar is not None else 0)
    return [start + (wave.u[vector][lane] if vector is not None else 0) & 0xffffffff for lane in wave.active]
  def load(wave: Wave) -> None:
    lanes = wave.active
    if lanes:
      put_lanes(wave, row, element, lanes,
                [load_private(wave, *where, element.bytes) for where in zip(lanes, places(wave))])
  def store(wave: Wave) -> None:
    lanes = wave.active
    for lane, place, data in zip(lanes, places(wave), get_lanes(wave, row, element, lanes)):
      store_private(wave, lane, place, data)
  return load if action == "load" else store

# ***** flat addresses *****

class Flat:
  """Memory as flat instructions see it. Each lane's address determines whether it is global, LDS, or the lane's
  scratch.
  """
  def gather(self, wave: Wave, lanes: Sequence[int], addresses: Sequence[int], size: int,
             kind: AccessKind) -> list[bytes]:
    """Return the loaded bytes of each lane."""
    if max(addresses) < SHARED: return wave.memory.gather(addresses, size, kind)
    return [self.load(wave, lane, address, size, kind) for lane, address in zip(lanes, addresses)]

  def load(self, wave: Wave, lane: int, address: int, size: int, kind: AccessKind) -> bytes:
    if address - SHARED in _APERTURE:
      wave.touch_local(address - SHARED, size, READ)
      return wave.lds.load(wave.number, address - SHARED, size)
    if address - PRIVATE in _APERTURE: return load_private(wave, lane, address - PRIVATE, size)
    return wave.memory.load(address, size, kind)

  def scatter(self, wave: Wave, lanes: Sequence[int], addresses: Sequence[int], data: Sequence[bytes],
              kind: AccessKind) -> None:
    """Store the bytes of each lane."""
    if max(addresses) < SHARED: wave.memory.scatter(addresses, data, kind)
    else:
      for lane, address, piece in zip(lanes, addresses, data): self.store(wave, lane, address, piece, kind)

  def store(self, wave: Wave, lane: int, address: int, data: bytes, kind: AccessKind) -> None:
    if address - SHARED in _APERTURE:
      wave.touch_local(address - SHARED, len(data), WRITE)
      wave.lds.store(wave.number, address - SHARED, data)
    elif address - PRIVATE in _APERTURE: store_private(wave, lane, address - PRIVATE, data)
    else: wave.memory.store(address, data, kind)

  def atomic(self, wave: Wave, address: int, size: int, update: Callable[[int], int], kind: AccessKind) -> int:
    """Do one lane's atomic operation. Return the old word."""
    if address - PRIVATE in _APERTURE: raise StrictError("an atomic operation on scratch: the hardware has none")
    if address - SHARED not in _APERTURE: return wave.memory.atomic(address, size, update, kind)
    wave.touch_local(address - SHARED, size, ATOMIC)
    old = wave.lds.atomic(wave.number, address - SHARED, size)
    wave.lds.put(address - SHARED, size, update(old))
    return old

class Global(Flat):
  """Memory as global instructions see it."""
  def gather(self, wave: Wave, lanes: Sequence[int], addresses: Sequence[int], size: int,
             kind: AccessKind) -> list[bytes]:
    return wave.memory.gather(addresses, size, kind)
  def scatter(self, wave: Wave, lanes: Sequence[int], addresses: Sequence[int], data: Sequence[bytes],
              kind: AccessKind) -> None:
    wave.memory.scatter(addresses, data, kind)
  def atomic(self, wave: Wave, address: int, size: int, update: Callable[[int], int], kind: AccessKind) -> int:
    return wave.memory.atomic(address, size, update, kind)

_APERTURE = range(APERTURE_BYTES)
