"""Vector memory instructions: global, flat and buffer loads, stores and atomics.

Data move when the instruction executes. Strict checks make results unavailable until a wait. Lanes go in the order of
their numbers.

Sources: ISA guides of RDNA3, RDNA4, CDNA3: FLAT and MUBUF instructions.
"""
from __future__ import annotations
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tinyhw.emulator.amd.execute.control import cache_scope, scalar_value
from tinyhw.emulator.amd.execute.transfer import (
  ATOMICS, COMPARE, TransferElement, element_of, get_lanes, get_run, get_words, is_run, put_lanes, put_run, row_at)
from tinyhw.emulator.amd.execute.transfer_scratch import SHARED, Flat, Global
from tinyhw.emulator.errors import Misplaced, StrictError, UnknownInstruction
from tinyhw.emulator.memory.lds import WRITE
from tinyhw.emulator.memory.memory import AccessKind, AccessUnit
from tinyhw.isa.amd.table import regs
from tinyhw.machine.ir.inst import Reg

if TYPE_CHECKING:
  from tinyhw.emulator.amd.execute.arithmetic import Mode, NamedOperands
  from tinyhw.emulator.amd.execute.state import Wave

Run = Callable[["Wave"], None]
Addresses = Callable[["Wave", Sequence[int]], list[int]]
ADDRESS_MASK = (1 << 64) - 1

def bind(uses: NamedOperands, mode: Mode) -> Run | None:
  """Return the function of a vector memory instruction, or None if the name is none."""
  space, _, rest = uses.name.partition("_")
  if space not in ("global", "flat", "buffer"): return None
  kind = AccessKind(AccessUnit.VECTOR, cache_scope(uses, mode))
  action, _, what = rest.partition("_")
  if what.startswith("lds_") and action == "load": return _load_to_lds(uses, mode, kind, what[4:])
  maker = {"load": _load, "store": _store, "atomic": _atomic}.get(action)
  if maker is None: return None
  if space == "buffer": return _buffer(uses, mode, action, what, kind)
  return maker(uses, what, kind, _flat_addresses(uses), Flat() if space == "flat" else Global())

def _flat_addresses(uses: NamedOperands) -> Addresses:
  """Return the addresses of global and flat instructions: 64 bits of registers, or a scalar base and 32 bits of a
  register, and an offset."""
  offset = uses.get("offset")
  if uses.get("vaddr", None) is None: raise UnknownInstruction(f"{uses.name} without a vector address is not emulated")
  vector = row_at(uses, "vaddr")
  base: Reg | None = uses.get("saddr", 0) or None
  if base is not None:
    index = base.index
    assert index is not None, "a physical register is expected"
    def relative(wave: Wave, lanes: Sequence[int]) -> list[int]:
      start, rows = wave.wide(index) + offset, wave.u[vector].tolist()
      return [start + rows[lane] & ADDRESS_MASK for lane in lanes]
    return relative
  def absolute(wave: Wave, lanes: Sequence[int]) -> list[int]:
    low, high = wave.u[vector].tolist(), wave.u[vector + 1].tolist()
    return [(low[lane] | high[lane] << 32) + offset & ADDRESS_MASK for lane in lanes]
  return absolute

def known_element(uses: NamedOperands, what: str) -> TransferElement:
  element = element_of(what)
  if element is None: raise UnknownInstruction(f"{uses.name} is not emulated")
  return element

def _load(uses: NamedOperands, what: str, kind: AccessKind, addresses: Addresses, space: Flat) -> Run:
  element, row = known_element(uses, what), row_at(uses, "vdst")
  def run(wave: Wave) -> None:
    lanes = wave.active
    if not lanes: return
    places = addresses(wave, lanes)
    try:
      if is_run(places, element.bytes) and places[-1] < SHARED:
        return put_run(wave, row, element, lanes, wave.memory.load(places[0], len(places) * element.bytes, kind))
      put_lanes(wave, row, element, lanes, space.gather(wave, lanes, places, element.bytes, kind))
    except Misplaced as error:
      error.blame(lanes, places)
      raise
  return run

def _store(uses: NamedOperands, what: str, kind: AccessKind, addresses: Addresses, space: Flat) -> Run:
  element, row = known_element(uses, what), row_at(uses, "vdata")
  def run(wave: Wave) -> None:
    lanes = wave.active
    if not lanes: return
    places = addresses(wave, lanes)
    try:
      if wave.full and is_run(places, element.bytes) and places[-1] < SHARED:
        return wave.memory.store(places[0], get_run(wave, row, element), kind)
      space.scatter(wave, lanes, places, get_lanes(wave, row, element, lanes), kind)
    except Misplaced as error:
      error.blame(lanes, places)
      raise
  return run

def atomic_update(uses: NamedOperands, what: str) -> tuple[int, int, Callable[[Sequence[int]], Callable[[int], int]]]:
  """Return (bytes of the word, bytes of the data, function from the data of a lane to the update of the word)."""
  compare = COMPARE.match(what)
  if compare:
    size = int(compare[1]) // 8
    return size, 2 * size, lambda words: lambda old: words[0] if old == words[1] else old
  if what not in ATOMICS: raise UnknownInstruction(f"{uses.name} is not emulated")
  size, function = ATOMICS[what]
  return size, size, lambda words: lambda old: function(old, words[0])

def _atomic(uses: NamedOperands, what: str, kind: AccessKind, addresses: Addresses, space: Flat) -> Run:
  size, data_size, update = atomic_update(uses, what.removesuffix("_rtn"))
  row = row_at(uses, "vdata")
  result = row_at(uses, "vdst") if "vdst" in uses else None
  def run(wave: Wave) -> None:
    lanes, old = wave.active, []
    words = [get_words(wave, row + i * size // 4, size, lanes) for i in range(data_size // size)]
    for i, address in enumerate(addresses(wave, lanes)):
      if address % size:
        raise StrictError(f"lane {lanes[i]}: an atomic operation on {size} bytes at {address:#x}, which is not a "
                          f"multiple of {size}")
      try:
        old.append(space.atomic(wave, address, size, update([part[i] for part in words]),
                                kind).to_bytes(size, "little"))
      except Misplaced as error:
        error.lane = lanes[i]
        raise
    if result is not None and lanes: put_lanes(wave, result, TransferElement(size), lanes, old)
  return run

# ***** buffers *****

class Resource:
  """A buffer resource: 4 scalar registers. Only linear ones."""
  def __init__(self, words: Sequence[int]):
    self.base = words[0] | (words[1] & 0xffff) << 32
    self.stride, self.records = words[1] >> 16 & 0x3fff, words[2]
    if words[1] >> 30: raise UnknownInstruction("a buffer resource with a swizzle is not emulated; use linear ones")

  def address(self, index: int, offset: int, size: int) -> int | None:
    """Return the address of an element without the scalar offset, or None if it is outside."""
    if self.stride: inside = index < self.records and offset + size <= self.stride
    else: inside = offset + size <= self.records
    return self.base + index * self.stride + offset if inside else None

def _buffer(uses: NamedOperands, mode: Mode, action: str, what: str, kind: AccessKind) -> Run:
  """Loads of elements outside of the buffer give 0, stores to them do nothing."""
  if "format" in what: raise UnknownInstruction(f"{uses.name} is not emulated")
  size, data_size, update = atomic_update(uses, what.removesuffix("_rtn")) if action == "atomic" else (0, 0, None)
  element = TransferElement(size) if update else known_element(uses, what)
  offset, soffset = uses.get("offset"), scalar_value(uses.get("soffset"))
  indexed, offset_in_register = uses.get("idxen"), uses.get("offen")
  row, resource = row_at(uses, "vdata"), uses["srsrc"].index
  vector = row_at(uses, "vaddr") if "vaddr" in uses and (indexed or offset_in_register) else None
  def addresses(wave: Wave, lanes: Sequence[int]) -> list[int | None]:
    buffer, shift = Resource([wave.s[resource + i] for i in range(4)]), soffset(wave)
    found: list[int | None] = []
    for lane in lanes:
      index = wave.u[vector][lane] if indexed and vector is not None else 0
      place = wave.u[vector + bool(indexed)][lane] if offset_in_register and vector is not None else 0
      address = buffer.address(index, place + offset, element.bytes)
      found.append(None if address is None else address + shift)
    return found
  def load(wave: Wave) -> None:
    lanes = wave.active
    places = addresses(wave, lanes)
    try: data = [bytes(element.bytes) if a is None else wave.memory.load(a, element.bytes, kind) for a in places]
    except Misplaced as error:
      error.blame(lanes, places)
      raise
    if lanes: put_lanes(wave, row, element, lanes, data)
  def store(wave: Wave) -> None:
    lanes = wave.active
    for lane, address, data in zip(lanes, addresses(wave, lanes), get_lanes(wave, row, element, lanes)):
      if address is None: continue
      try: wave.memory.store(address, data, kind)
      except Misplaced as error:
        error.lane = lane
        raise
  def atomic(wave: Wave) -> None:
    assert update is not None, "only atomics come here"
    lanes, old = wave.active, []
    words = [get_words(wave, row + i * size // 4, size, lanes) for i in range(data_size // size)]
    for i, address in enumerate(addresses(wave, lanes)):
      word = 0 if address is None else wave.memory.atomic(address, size, update([part[i] for part in words]), kind)
      old.append(word.to_bytes(size, "little"))
    if uses.name.endswith("_rtn") and lanes: put_lanes(wave, row, element, lanes, old)
  return {"load": load, "store": store, "atomic": atomic}[action]

def _load_to_lds(uses: NamedOperands, mode: Mode, kind: AccessKind, what: str) -> Run:
  """Loads that write LDS: lane i's element goes to M0 + offset + i * size."""
  element, addresses = known_element(uses, what), _flat_addresses(uses)
  size, offset = max(element.bytes, 4), uses.get("offset")
  def run(wave: Wave) -> None:
    lanes = wave.active
    for lane, data in zip(lanes, wave.memory.gather(addresses(wave, lanes), element.bytes, kind)):
      place = (wave.s[regs.M0] & 0xffff) + offset + lane * size
      if len(data) < 4:
        data = (int.from_bytes(data, "little", signed=element.signed) & 0xffffffff).to_bytes(4, "little")
      wave.touch_local(place, size, WRITE)
      wave.lds.store(wave.number, place, data)
  return run
