"""How many waves of a kernel a GPU's compute unit holds at once, and what stops it from holding more.

Waves wait for memory, and others go on meanwhile, so their number decides what latency is hidden. A wave needs
registers of its SIMD, a workgroup needs all its waves and its local memory at the same time. Input: the sizes of a unit
(`Unit`) and of a kernel. Output: `Residency`.
"""
from __future__ import annotations
from collections.abc import Mapping

from tinyhw.named_tuple import NamedTuple

class RegisterFile(NamedTuple):
  """Registers of a bank that a SIMD has for each lane, how many more each step of a wave's share is, and what each
  wave has besides its own."""
  registers: int
  granule: int
  extra: int = 0

class Words(NamedTuple):
  """What a vendor calls lanes that execute together, all that share local memory, a part of the unit with registers of
  its own, and local memory."""
  wave: str = "wave"
  group: str = "workgroup"
  simd: str = "SIMD"
  local: str = "local memory"

class Unit(NamedTuple):
  """What waves of a workgroup share: AMD's compute unit or workgroup processor, NVIDIA's SM.

  name: in the vendor's words. simds: of a unit. waves: that a SIMD holds at most. lanes: of a wave. files: bank -> its
  register file on a SIMD.
  local_bytes, local_granule: local memory, and the step in which workgroups get it. groups: workgroups that a unit
  holds at most.
  words: the vendor's.
  """
  name: str
  simds: int
  waves: int
  lanes: int
  files: Mapping[str, RegisterFile]
  local_bytes: int
  local_granule: int
  groups: int
  words: Words = Words()

class Kernel(NamedTuple):
  """What a launch needs. registers: by bank, up to the highest one. lanes: of a workgroup. grid: workgroups, None:
  many."""
  registers: Mapping[str, int]
  local_bytes: int
  lanes: int
  grid: int | None = None

class Residency(NamedTuple):
  """group_waves: of a workgroup. groups: that a unit holds. limit: what stops it from holding more, in words.

  by_registers: bank -> waves that fit on a SIMD. by_local: workgroups whose local memory fits in a unit, None where it
  has none.
  """
  group_waves: int
  groups: int
  limit: str
  by_registers: Mapping[str, int]
  by_local: int | None

  @property
  def waves(self) -> int:
    """Of a unit."""
    return self.groups * self.group_waves

def waves_by_registers(file: RegisterFile, used: int, most: int) -> int:
  """Waves whose registers fit in the file of a SIMD; at most `most`."""
  return min(most, file.registers // round_up(max(used + file.extra, 1), file.granule))

def most_registers(file: RegisterFile, waves: int) -> int:
  """Registers that each of so many waves may have."""
  return file.registers // waves // file.granule * file.granule - file.extra

def steps(file: RegisterFile, most: int) -> tuple[int, ...]:
  """Numbers of registers, rising, beyond which fewer waves run on a SIMD that holds `most` at most."""
  return tuple(sorted({most_registers(file, waves) for waves in range(1, most + 1)}))

def round_up(n: int, step: int) -> int: return (n + step - 1) // step * step

def residency(unit: Unit, kernel: Kernel, units: int = 1) -> Residency:
  """The waves of this kernel that a unit holds. units: of the card, among which the grid is spread."""
  group_waves = max(1, round_up(kernel.lanes, unit.lanes) // unit.lanes)
  by_registers = {bank: waves_by_registers(file, kernel.registers.get(bank, 0), unit.waves)
                  for bank, file in unit.files.items()}
  limits = [(unit.simds * unit.waves // group_waves, f"{unit.words.wave}s"), (unit.groups, f"{unit.words.group}s")]
  limits += [(unit.simds * waves // group_waves, f"{bank}s") for bank, waves in by_registers.items()
             if waves < unit.waves]
  by_local = None
  if kernel.local_bytes:
    by_local = unit.local_bytes // round_up(kernel.local_bytes, unit.local_granule)
    limits.append((by_local, unit.words.local))
  if kernel.grid is not None: limits.append((max(1, (kernel.grid + units - 1) // units), "the grid"))
  groups, limit = min(limits, key=lambda pair: pair[0])
  return Residency(group_waves, max(groups, 1), limit, by_registers, by_local)
