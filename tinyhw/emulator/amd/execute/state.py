"""The registers of a wave, and their initial values. Instructions are functions on a `Wave`. strict.py checks their
reads and writes.

All registers are in one piece of memory, which translated code uses:

- a context;
- scalar registers by the indices of isa/amd/table/regs.py (106 VCC, 108 trap registers, 124 null, 125 M0, 126 EXEC, 128
  flat_scratch; SCC has the index of src_scc);
- for each vector register a mask of the lanes that were written;
- the vector registers. Each is a row of 32-bit lanes with three views: `u` unsigned, `i` signed, `f` float32.
  Accumulation registers follow the 256 others.

Unset registers hold garbage. Sources for the start: LLVM's AMDGPUUsage, "Initial Kernel Execution State"; ISA guides.
"""
from __future__ import annotations
import random
from collections.abc import Iterator, Sequence
from typing import Any

from tinyhw.drivers.cpu.memory import address_of
from tinyhw.emulator.amd.checks.strict import Strict
from tinyhw.emulator.amd.execute.lanes import LanePermutation, permutation
from tinyhw.emulator.amd.registers import APERTURE_BYTES, APERTURES, DispatchRegisters
from tinyhw.emulator.python.numerics import lane_bits
from tinyhw.emulator.memory.lds import Access, LocalMemory
from tinyhw.emulator.memory.memory import WindowedMemory
from tinyhw.emulator.memory.windows import NOTES, NOWHERE
from tinyhw.emulator.native.threaded import AT, CONTEXT_BYTES
from tinyhw.isa.amd.table import regs

_ACTIVE, _PARTIAL, _LOCAL = AT["ACTIVE"], AT["PARTIAL"], AT["LOCAL"]
AGPR = 256  # the row of the first accumulation register
ROWS = 512
SCC = regs.READ_ONLY["src_scc"]
# Offsets in the memory of a wave, in bytes. After the scalar registers are DROPPED words for unused results.
SCALARS_AT = CONTEXT_BYTES
DROPPED = regs.SCALARS
WRITTEN_AT = (SCALARS_AT + 4 * (DROPPED + 4) + 63) // 64 * 64
VECTORS_AT = WRITTEN_AT + 8 * ROWS

class WaveRegisters:
  """The registers of a wave in one piece of memory, garbage at first. Places count bytes from the scalar registers."""
  def __init__(self, arch: int, accumulation: int, lanes: int, source: random.Random):
    self.arch, self.accumulation, self.row_bytes = arch, accumulation, 4 * lanes
    self.memory = bytearray(VECTORS_AT) + source.randbytes(self.row_bytes * (arch + accumulation))
    self.memory[SCALARS_AT:SCALARS_AT + 4 * regs.SCALARS] = source.randbytes(4 * regs.SCALARS)
    self.address, view = address_of(self.memory), memoryview(self.memory)
    self.context, self.scalars = view[:CONTEXT_BYTES].cast("q"), view[SCALARS_AT:SCALARS_AT + 4
                                                                      * regs.SCALARS].cast("I")
    self.masks, self.vectors = view[WRITTEN_AT:VECTORS_AT].cast("Q"), view[VECTORS_AT:]
    self.context[AT["STATE"]], self.context[AT["WRITTEN"]] = self.address + SCALARS_AT, self.address + WRITTEN_AT

  def numbers(self) -> list[int]:
    """Return the rows that exist."""
    return [*range(self.arch), *range(AGPR, AGPR + self.accumulation)]

  def offset(self, row: int) -> int:
    """Return the offset of a row. Raises KeyError if there is no such register."""
    if 0 <= row < self.arch: return VECTORS_AT - SCALARS_AT + row * self.row_bytes
    if AGPR <= row < AGPR + self.accumulation:
      return VECTORS_AT - SCALARS_AT + (self.arch + row - AGPR) * self.row_bytes
    raise KeyError(row)

  def row(self, number: int) -> memoryview:
    """Return the bytes of a row. Raises KeyError."""
    at = self.offset(number) - (VECTORS_AT - SCALARS_AT)
    return self.vectors[at:at + self.row_bytes]

class RegisterRows(dict[int, Any]):
  """Rows as memoryviews of a type, made at first use."""
  def __init__(self, file: WaveRegisters, code: str):
    super().__init__()
    self.file, self.code = file, code

  def __missing__(self, row: int) -> Any:
    found = self[row] = self.file.row(row).cast(self.code)  # type: ignore[call-overload]  # formats are literals
    return found

class Wave:
  """One wave. `number`: within its workgroup."""
  def __init__(self, registers: DispatchRegisters, number: int, memory: WindowedMemory, lds: LocalMemory,
               source: random.Random):
    self.registers, self.number, self.memory, self.lds = registers, number, memory, lds
    self.lanes = registers.wave_size
    self.all = (1 << self.lanes) - 1
    arch = registers.accumulator if registers.accumulator is not None else registers.vgprs
    self.file = WaveRegisters(arch, registers.vgprs - arch, self.lanes, source)
    self.address = self.file.address
    self.s, self.context = self.file.scalars, self.file.context
    self.u, self.i, self.f = RegisterRows(self.file, "I"), RegisterRows(self.file, "i"), RegisterRows(self.file, "f")
    self.s[regs.NULL], self.s[SCC] = 0, source.getrandbits(1)
    self.pc = self.at = registers.code          # at: the instruction that Python executes within translated code
    self.numbered = False  # the context has the number of the state of strict checks (translate.py)
    self.mode = registers.float_round | registers.float_denorm << 4
    self.waiting = self.ended = False
    self.signalled = False                      # gfx12: it has signalled the barrier that it is going to wait for
    self.between: list[Access] = []             # LDS accesses since then
    self.scratch_base = self.xcc = 0
    self._active: tuple[int, Sequence[int]] = (0, ())
    self.local = None if not lds.size else lds.reach(number)
    self.context[AT["ALL"]] = signed64(self.all)
    self.set_exec(self.all)
    self.strict = Strict(self, self.file.masks, self.file.numbers())
    self.ticks = source.getrandbits(40)

  @property
  def scc(self) -> int: return self.s[SCC]
  @scc.setter
  def scc(self, value: int) -> None: self.s[SCC] = value

  @property
  def exec(self) -> int:
    """Return the mask of the active lanes."""
    return self.context[_ACTIVE] & self.all
  @property
  def full(self) -> bool:
    """Return whether all lanes are active."""
    return not self.context[_PARTIAL]
  @property
  def active(self) -> Sequence[int]:
    """Return the active lanes."""
    mask, found = self.exec, self._active
    if found[0] == mask: return found[1]
    lanes = range(self.lanes) if mask == self.all else [i for i, bit in enumerate(lane_bits(mask, self.lanes)) if bit]
    self._active = mask, lanes
    return lanes

  def set_exec(self, mask: int) -> None:
    """Set EXEC and the state that depends on it."""
    mask &= self.all
    self.context[_ACTIVE], self.context[_PARTIAL] = signed64(mask), 0 if mask == self.all else 8
    self.s[regs.EXEC] = mask & 0xffffffff
    if self.lanes == 64: self.s[regs.EXEC + 1] = mask >> 32

  def mask(self, register: int) -> int:
    """Return the lane mask in a scalar register, or in two of them in a wave of 64."""
    return self.s[register] if self.lanes == 32 else self.s[register] | self.s[register + 1] << 32

  def set_mask(self, register: int, mask: int) -> None:
    """Write a lane mask."""
    if register == regs.EXEC: self.set_exec(mask)
    elif register != regs.NULL:
      self.s[register] = mask & 0xffffffff
      if self.lanes == 64: self.s[register + 1] = mask >> 32

  def set_mode(self, mode: int) -> None:
    """Set MODE."""
    self.mode = mode

  def touch_local(self, address: int, size: int, kind: int) -> None:
    """Record an LDS access of the current instruction."""
    self.strict.local.current.append((address, size, kind))
    if self.signalled: self.between.append((address, size, kind))

  def reach_local(self) -> None:
    """Let translated code access the LDS, unless accesses are recorded for a barrier that the wave has signalled."""
    self.context[_LOCAL] = NOWHERE.address if self.local is None or self.signalled else self.local.address

  def note_local(self, last: int = NOTES) -> None:
    """Record the LDS accesses that translated code has noted, as far as the `last` ones matter."""
    if self.local is None: return
    for accesses in self.local.noted(last):
      self.strict.local.current = accesses
      self.strict.local.end()

  def permutation(self, moves: LanePermutation) -> tuple[list[int], list[int]]:
    """See lanes.permutation."""
    return permutation(self, moves)

  def clock(self) -> int:
    """Return a clock that only increases."""
    self.ticks += 100
    return self.ticks

  def wide(self, register: int, count: int = 2) -> int:
    """Return scalar registers as one number."""
    value = 0
    for i in range(count): value |= self.s[register + i] << 32 * i
    return value

  def set_wide(self, register: int, count: int, value: int) -> None:
    """Write scalar registers. EXEC takes effect, null keeps 0."""
    if register == regs.NULL: return
    for i in range(count): self.s[register + i] = value >> 32 * i & 0xffffffff
    if register <= regs.EXEC + 1 and register + count > regs.EXEC: self.set_exec(self.mask(regs.EXEC))

  def moved(self, row: memoryview, moves: Sequence[int]) -> list[int]:
    """Return the values of other lanes; 0 where there is none."""
    values = row.tolist()
    return [values[i] if i >= 0 else 0 for i in moves]

def signed64(word: int) -> int:
  """Return a 64-bit word as a signed number."""
  return (word & (1 << 64) - 1 ^ 1 << 63) - (1 << 63)

def start(registers: DispatchRegisters, group: tuple[int, int, int], memory: WindowedMemory, lds: LocalMemory,
          source: random.Random,
          base: int) -> list[Wave]:
  """Return the waves of a workgroup at their first instruction."""
  size = tuple(partial if partial and group[i] == registers.groups[i] - 1 else whole
               for i, (whole, partial) in enumerate(zip(registers.group_size, registers.partial_size)))
  items = [(x, y, z) for z in range(size[2]) for y in range(size[1]) for x in range(size[0])]
  waves = []
  for number, first in enumerate(range(0, len(items), registers.wave_size)):
    wave = Wave(registers, number, memory, lds, source)
    part = items[first:first + registers.wave_size]
    wave.set_exec((1 << len(part)) - 1)
    _start_vectors(wave, part)
    _start_scalars(wave, group, -(-len(items) // registers.wave_size))
    wave.scratch_base = registers.scratch_base + (base + number) * registers.scratch_wave_bytes
    waves.append(wave)
  return waves

def _start_vectors(wave: Wave, items: list[tuple[int, int, int]]) -> None:
  """Set v0 to the work-item's number in its workgroup, 10 bits for each axis. Lanes without a work-item have garbage.
  """
  shown = wave.registers.work_item_ids
  for lane, place in enumerate(items): wave.u[0][lane] = sum(n << 10 * axis for axis, n in enumerate(place[:shown]))
  wave.strict.set_vector(0, wave.exec)

def _start_scalars(wave: Wave, group: tuple[int, int, int], waves: int) -> None:
  registers, given = wave.registers, dict(_given(wave.registers, group, wave.number, waves))
  for index, value in given.items(): wave.s[index] = value
  wave.strict.set_scalars(sum(1 << index for index in given) | 3 << regs.EXEC | 1 << regs.NULL)
  for name, base in APERTURES.items():
    for end, value in (("base", base), ("limit", base + APERTURE_BYTES - 1)):
      wave.set_wide(regs.READ_ONLY[f"src_{name}_{end}"], 2, value)
  if registers.scratch_enabled:
    wave.set_wide(regs.FLAT_SCRATCH, 2, registers.scratch_base)
    wave.strict.set_scalars(3 << regs.FLAT_SCRATCH)

def _given(registers: DispatchRegisters, group: tuple[int, int, int], number: int,
           waves: int) -> Iterator[tuple[int, int]]:
  """Yield (scalar register, value) of all that the hardware sets."""
  yield from ((place, word) for place, word in enumerate(registers.user_data) if word is not None)
  if registers.arch.startswith("gfx12"):
    yield from ((regs.TTMP + 9, group[0]), (regs.TTMP + 7, group[1] & 0xffff | group[2] << 16))
    return
  place = len(registers.user_data)
  for axis, wanted in enumerate(registers.group_ids):
    if wanted:
      yield place, group[axis]
      place += 1
  if registers.group_info: yield place, (number == 0) << 31 | number << 6 | waves
