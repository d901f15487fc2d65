"""The registers of a wave and how they are at its start. Instructions are functions on a `Wave`; strict.py watches what they read and write.

Scalar registers are one list, by the indices of isa/amd/regs.py (106 VCC, 108 trap registers, 124 null, 125 M0, 126 EXEC, 128 flat_scratch). A vector
register is a row of 32-bit lanes that is seen in three ways: `u` unsigned, `i` signed, `f` float32. Accumulation registers follow the 256 others.
What nobody has set is garbage. Sources for the start: LLVM's AMDGPUUsage, "Initial Kernel Execution State"; ISA guides.
"""
from __future__ import annotations
import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.drivers.cpu.memory import address_of
from tinyhw.emulator.amd.lanes import Moves, permutation
from tinyhw.emulator.amd.lds import Access, LocalMemory
from tinyhw.emulator.amd.numerics import lane_bits
from tinyhw.emulator.amd.registers import APERTURE_BYTES, APERTURES, DispatchRegisters
from tinyhw.emulator.amd.strict import Strict
from tinyhw.emulator.memory import Memory
from tinyhw.isa.amd import regs

if TYPE_CHECKING:
  from tinyhw.emulator.amd.native import Prepared

AGPR = 256  # the row of the first accumulation register

class RegisterFile:
  """The vector registers of a wave: rows of 32-bit lanes in one piece of memory, garbage at first."""
  def __init__(self, arch: int, accumulation: int, lanes: int, source: random.Random):
    self.arch, self.accumulation, self.row_bytes = arch, accumulation, 4 * lanes
    self.memory = bytearray(source.randbytes(self.row_bytes * (arch + accumulation)))
    self.view, self.address = memoryview(self.memory), address_of(self.memory) if self.memory else 0

  def numbers(self) -> list[int]:
    """The rows that there are."""
    return [*range(self.arch), *range(AGPR, AGPR + self.accumulation)]

  def place(self, row: int) -> int:
    """Where a row begins. Raises KeyError if there is no such register."""
    if 0 <= row < self.arch: return row * self.row_bytes
    if AGPR <= row < AGPR + self.accumulation: return (self.arch + row - AGPR) * self.row_bytes
    raise KeyError(row)

class Rows(dict[int, Any]):
  """Rows as memoryviews of a type, made when they are first asked for."""
  def __init__(self, file: RegisterFile, code: str):
    super().__init__()
    self.file, self.code = file, code

  def __missing__(self, row: int) -> Any:
    at = self.file.place(row)
    found = self[row] = self.file.view[at:at + self.file.row_bytes].cast(self.code)  # type: ignore[call-overload]  # formats are literals
    return found

class Wave:
  """One wave. `number`: within its workgroup. `active`: the lanes whose EXEC bit is set, `full` if that is all of them."""
  def __init__(self, registers: DispatchRegisters, number: int, memory: Memory, lds: LocalMemory, source: random.Random):
    self.registers, self.number, self.memory, self.lds = registers, number, memory, lds
    self.lanes = registers.wave_size
    self.all = (1 << self.lanes) - 1
    self.s = [source.getrandbits(32) for _ in range(regs.SCALARS)]
    self.s[regs.NULL] = 0
    self.scc: int = source.getrandbits(1)
    self.pc = registers.code
    self.mode = registers.float_round | registers.float_denorm << 4
    self.waiting = self.ended = False
    self.signalled = False                      # gfx12: it has signalled the barrier that it is going to wait for
    self.between: list[Access] = []             # LDS accesses since then
    self.scratch_base = self.xcc = 0
    arch = registers.accumulator if registers.accumulator is not None else registers.vgprs
    self.file = RegisterFile(arch, registers.vgprs - arch, self.lanes, source)
    self.u, self.i, self.f = Rows(self.file, "I"), Rows(self.file, "i"), Rows(self.file, "f")
    self.prepared: tuple[dict[Any, Prepared], dict[Any, Prepared]] = ({}, {})  # native code that is ready to run: for some lanes, for all
    self.exec, self.full, self.active = 0, False, ()  # type: tuple[int, bool, Sequence[int]]
    self.set_exec(self.all)
    self.strict = Strict(self, self.file.numbers())
    self.ticks = source.getrandbits(40)

  def set_exec(self, mask: int) -> None:
    """Set EXEC, and what follows from it."""
    mask &= self.all
    self.exec, self.full = mask, mask == self.all
    self.s[regs.EXEC] = mask & 0xffffffff
    if self.lanes == 64: self.s[regs.EXEC + 1] = mask >> 32
    self.active = range(self.lanes) if self.full else [i for i, bit in enumerate(lane_bits(mask, self.lanes)) if bit]

  def mask(self, register: int) -> int:
    """The lane mask in a scalar register, of two of them in a wave of 64."""
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
    """Note an LDS access of the instruction that executes."""
    self.strict.accesses.append((address, size, kind))
    if self.signalled: self.between.append((address, size, kind))

  def permutation(self, moves: Moves) -> tuple[list[int], list[int]]:
    """See lanes.permutation."""
    return permutation(self, moves)

  def clock(self) -> int:
    """A clock that counts on."""
    self.ticks += 100
    return self.ticks

  def wide(self, register: int, count: int = 2) -> int:
    """Scalar registers as one number."""
    value = 0
    for i in range(count): value |= self.s[register + i] << 32 * i
    return value

  def set_wide(self, register: int, count: int, value: int) -> None:
    """Write scalar registers; EXEC takes effect, null keeps 0."""
    if register == regs.NULL: return
    for i in range(count): self.s[register + i] = value >> 32 * i & 0xffffffff
    if register <= regs.EXEC + 1 and register + count > regs.EXEC: self.set_exec(self.mask(regs.EXEC))

  def moved(self, row: memoryview, moves: Sequence[int]) -> list[int]:
    """The values of other lanes; 0 where there is none."""
    values = row.tolist()
    return [values[i] if i >= 0 else 0 for i in moves]

def start(registers: DispatchRegisters, group: tuple[int, int, int], memory: Memory, lds: LocalMemory, source: random.Random,
          base: int) -> list[Wave]:
  """The waves of a workgroup at their first instruction."""
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
  """v0 has the work-item's number in its workgroup, 10 bits for each axis. Lanes without a work-item have garbage."""
  shown = wave.registers.work_item_ids
  for lane, place in enumerate(items): wave.u[0][lane] = sum(n << 10 * axis for axis, n in enumerate(place[:shown]))
  wave.strict.set_vector(0, wave.exec)

def _start_scalars(wave: Wave, group: tuple[int, int, int], waves: int) -> None:
  registers, given = wave.registers, dict(_given(wave.registers, group, wave.number, waves))
  for index, value in given.items(): wave.s[index] = value
  wave.strict.set_scalars(sum(1 << index for index in given) | 3 << regs.EXEC | 1 << regs.NULL)
  for name, base in APERTURES.items():
    for end, value in (("base", base), ("limit", base + APERTURE_BYTES - 1)): wave.set_wide(regs.READ_ONLY[f"src_{name}_{end}"], 2, value)
  if registers.scratch_enabled:
    wave.set_wide(regs.FLAT_SCRATCH, 2, registers.scratch_base)
    wave.strict.set_scalars(3 << regs.FLAT_SCRATCH)

def _given(registers: DispatchRegisters, group: tuple[int, int, int], number: int, waves: int) -> Iterator[tuple[int, int]]:
  """(scalar register, value) of all that the hardware sets."""
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
