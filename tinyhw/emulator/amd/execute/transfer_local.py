"""LDS instructions: loads, stores, atomics, and the permutations of lanes that use its crossbar.

Source: ISA guides of RDNA3, RDNA4, CDNA3: DS instructions.
"""
from __future__ import annotations
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tinyhw.emulator.amd.execute.transfer import (
  TransferElement, element_of, get_lanes, get_run, get_words, is_run, put_lanes, put_run, row_at)
from tinyhw.emulator.amd.execute.transfer_global import atomic_update
from tinyhw.emulator.errors import StrictError, UnknownInstruction
from tinyhw.emulator.memory.lds import ATOMIC, READ, WRITE
from tinyhw.isa.amd.table import regs

if TYPE_CHECKING:
  from tinyhw.emulator.amd.execute.arithmetic import Mode, NamedOperands
  from tinyhw.emulator.amd.execute.state import Wave

Run = Callable[["Wave"], None]
_TWO = re.compile(r"(load|store|storexchg)_2addr_(stride64_)?(?:rtn_)?b(32|64)$")

def bind(uses: NamedOperands, mode: Mode) -> Run | None:
  """Return the function of an LDS instruction, or None if the name is none."""
  if not uses.name.startswith("ds_"): return None
  if uses.get("gds"): raise UnknownInstruction(f"{uses.name} with gds: global data share is not emulated")
  what = uses.name[3:]
  if what in CROSSBAR: return CROSSBAR[what](uses, mode)
  two = _TWO.match(what)
  if two: return _two(uses, two[1], int(two[3]) // 8, 64 if two[2] else 1)
  action, _, rest = what.partition("_")
  addtid = rest.startswith("addtid_")
  if action in ("load", "store"):
    element = element_of(rest.removeprefix("addtid_"))
    if element is None: raise UnknownInstruction(f"{uses.name} is not emulated")
    place = _by_lane(uses) if addtid else _by_register(uses)
    return _load(uses, element, place) if action == "load" else _store(uses, element, place)
  return _atomic(uses, mode, what.replace("_rtn", ""))

Places = Callable[["Wave", Sequence[int]], list[int]]

def _by_register(uses: NamedOperands) -> Places:
  row, offset = row_at(uses, "addr"), uses.get("offset")
  def places(wave: Wave, lanes: Sequence[int]) -> list[int]:
    rows = wave.u[row].tolist()
    return [rows[lane] + offset for lane in lanes]
  return places

def _by_lane(uses: NamedOperands) -> Places:
  offset = uses.get("offset")
  return lambda wave, lanes: [offset + (wave.s[regs.M0] & 0xffff) + 4 * lane for lane in lanes]

def _read(wave: Wave, place: int, size: int) -> bytes:
  wave.touch_local(place, size, READ)
  return wave.lds.load(wave.number, place, size)

def _write(wave: Wave, place: int, data: bytes) -> None:
  wave.touch_local(place, len(data), WRITE)
  wave.lds.store(wave.number, place, data)

def _load(uses: NamedOperands, element: TransferElement, places: Places) -> Run:
  row = row_at(uses, "vdst")
  def run(wave: Wave) -> None:
    lanes = wave.active
    if not lanes: return
    found = places(wave, lanes)
    if is_run(found, element.bytes):
      put_run(wave, row, element, lanes, _read(wave, found[0], len(found) * element.bytes))
    else: put_lanes(wave, row, element, lanes, [_read(wave, place, element.bytes) for place in found])
  return run

def _store(uses: NamedOperands, element: TransferElement, places: Places) -> Run:
  row = row_at(uses, "data0")
  def run(wave: Wave) -> None:
    lanes = wave.active
    found = places(wave, lanes)
    if wave.full and is_run(found, element.bytes): _write(wave, found[0], get_run(wave, row, element))
    else:
      for place, data in zip(found, get_lanes(wave, row, element, lanes)): _write(wave, place, data)
  return run

def _two(uses: NamedOperands, action: str, size: int, stride: int) -> Run:
  """Access two elements, at two offsets that count elements."""
  address, element = row_at(uses, "addr"), TransferElement(size)
  offsets = [uses.get(f"offset{i}") * size * stride for i in (0, 1)]
  data = [] if action == "load" else [row_at(uses, "data0"), row_at(uses, "data1")]
  result = None if action == "store" else row_at(uses, "vdst")
  def run(wave: Wave) -> None:
    lanes, rows = wave.active, wave.u[address].tolist()
    if not lanes: return
    stored = [get_lanes(wave, row, element, lanes) for row in data]
    for i, offset in enumerate(offsets):
      if result is not None:
        put_lanes(wave, result + i * size // 4, element, lanes,
                  [_read(wave, rows[lane] + offset, size) for lane in lanes])
      if stored:
        for lane, piece in zip(lanes, stored[i]): _write(wave, rows[lane] + offset, piece)
  return run

def _atomic(uses: NamedOperands, mode: Mode, what: str) -> Run:
  size, data_size, update = atomic_update(uses, what)
  rows = [row_at(uses, name) for name in ("data0", "data1")[:data_size // size]]
  if what.startswith("cmpst_"): rows.reverse()  # CDNA: the value to compare with comes first
  places, result = _by_register(uses), row_at(uses, "vdst") if "vdst" in uses else None
  def run(wave: Wave) -> None:
    lanes, old = wave.active, []
    words = [get_words(wave, row, size, lanes) for row in rows]
    for i, place in enumerate(places(wave, lanes)):
      if place % size:
        raise StrictError(f"lane {lanes[i]}: an atomic operation on {size} bytes at LDS address {place:#x}, no "
                          f"multiple of {size}")
      wave.touch_local(place, size, ATOMIC)
      word = wave.lds.atomic(wave.number, place, size)
      wave.lds.put(place, size, update([part[i] for part in words])(word))
      old.append(word.to_bytes(size, "little"))
    if result is not None and lanes: put_lanes(wave, result, TransferElement(size), lanes, old)
  return run

# ***** the crossbar *****

def _swizzle(uses: NamedOperands, mode: Mode) -> Run:
  """Permute lanes within groups of 32, or of 4, by a constant. A source that is not active gives 0."""
  row, target = row_at(uses, "addr"), row_at(uses, "vdst")
  control: int = uses.get("offset")
  def source(lane: int) -> int:
    if control & 0x8000: return lane & ~3 | control >> 2 * (lane & 3) & 3
    return lane & ~31 | ((lane & control & 31 | control >> 5 & 31) ^ control >> 10 & 31)
  if control & 0xc000 == 0xc000:
    raise UnknownInstruction(f"ds_swizzle_b32 with the control {control:#x} (rotation or FFT) is not emulated")
  def run(wave: Wave) -> None:
    values, active = wave.u[row].tolist(), wave.exec
    for lane in wave.active: wave.u[target][lane] = values[source(lane)] if active >> source(lane) & 1 else 0
  return run

def _backward_permute(uses: NamedOperands, mode: Mode) -> Run:
  """Each lane reads the data of the lane that it names in bytes; of an inactive one 0. RDNA: within 32 lanes."""
  address, data, target, offset = row_at(uses, "addr"), row_at(uses, "data0"), row_at(uses, "vdst"), uses.get("offset")
  def run(wave: Wave) -> None:
    size = wave.lanes if mode.cdna else 32
    places, values, active = wave.u[address].tolist(), wave.u[data].tolist(), wave.exec
    for lane in wave.active:
      source = lane // size * size + (places[lane] + offset) // 4 % size
      wave.u[target][lane] = values[source] if active >> source & 1 else 0
  return run

def _forward_permute(uses: NamedOperands, mode: Mode) -> Run:
  """Each lane writes to the lane that it names in bytes. The highest lane wins. A lane without a writer gets 0."""
  address, data, target, offset = row_at(uses, "addr"), row_at(uses, "data0"), row_at(uses, "vdst"), uses.get("offset")
  def run(wave: Wave) -> None:
    size = wave.lanes if mode.cdna else 32
    places, values, found = wave.u[address].tolist(), wave.u[data].tolist(), [0] * wave.lanes
    for lane in wave.active: found[lane // size * size + (places[lane] + offset) // 4 % size] = values[lane]
    for lane in wave.active: wave.u[target][lane] = found[lane]
  return run

CROSSBAR: dict[str, Callable[[NamedOperands, Mode], Run]] = {
  "swizzle_b32": _swizzle, "bpermute_b32": _backward_permute, "permute_b32": _forward_permute}
