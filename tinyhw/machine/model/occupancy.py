"""Occupancy: the number of a kernel's waves that a GPU's compute unit holds at once, and the resource that limits it.

While waves wait for memory, others run, so their number decides how much latency is hidden. A wave needs registers of
its SIMD. A workgroup needs all its waves and its shared memory at the same time. Input: the sizes of a unit
(`ComputeUnit`) and of a kernel. Output: `Residency`.
"""
from __future__ import annotations
from collections.abc import Mapping

from tinyhw.named_tuple import NamedTuple

class RegisterFile(NamedTuple):
  """Registers of a bank on a SIMD, for each lane.

  - granule: the step in which a wave gets registers.
  - extra: registers of each wave in addition to its own.
  """
  registers: int
  granule: int
  extra: int = 0

class VendorTerms(NamedTuple):
  """A vendor's names of lanes that execute together, of lanes that share shared memory, of a part of the unit with its
  own registers, and of shared memory."""
  wave: str = "wave"
  group: str = "workgroup"
  simd: str = "SIMD"
  local: str = "shared memory"

class ComputeUnit(NamedTuple):
  """A compute unit, which all waves of a workgroup share: AMD's compute unit or workgroup processor, NVIDIA's SM.

  - name: in the vendor's words.
  - simds: of a unit.
  - waves: maximum of a SIMD.
  - lanes: of a wave.
  - files: bank -> its register file on a SIMD.
  - local_bytes, local_granule: shared memory, and the step in which workgroups get it.
  - groups: maximum of workgroups in a unit.
  - words: the vendor's.
  """
  name: str
  simds: int
  waves: int
  lanes: int
  files: Mapping[str, RegisterFile]
  local_bytes: int
  local_granule: int
  groups: int
  words: VendorTerms = VendorTerms()

class KernelResources(NamedTuple):
  """The needs of a launch.

  - registers: by bank, up to the highest one.
  - lanes: of a workgroup.
  - grid: workgroups; None: many.
  """
  registers: Mapping[str, int]
  local_bytes: int
  lanes: int
  grid: int | None = None

class Residency(NamedTuple):
  """The waves of a kernel that a unit holds.

  - group_waves: of a workgroup.
  - groups: that a unit holds.
  - limit: the limiting resource, in words.
  - by_registers: bank -> waves that fit on a SIMD.
  - by_local: workgroups whose shared memory fits in a unit, or None if they have none.
  """
  group_waves: int
  groups: int
  limit: str
  by_registers: Mapping[str, int]
  by_local: int | None

  @property
  def waves(self) -> int:
    """Waves of a unit."""
    return self.groups * self.group_waves

def waves_by_registers(file: RegisterFile, used: int, most: int) -> int:
  """Waves whose registers fit in the file of a SIMD, at most `most`."""
  return min(most, file.registers // round_up(max(used + file.extra, 1), file.granule))

def most_registers(file: RegisterFile, waves: int) -> int:
  """Registers that each of `waves` waves may have."""
  return file.registers // waves // file.granule * file.granule - file.extra

def steps(file: RegisterFile, most: int) -> tuple[int, ...]:
  """Rising numbers of registers above which fewer waves run on a SIMD that holds `most` at most."""
  return tuple(sorted({most_registers(file, waves) for waves in range(1, most + 1)}))

def round_up(n: int, step: int) -> int: return (n + step - 1) // step * step

def residency(unit: ComputeUnit, kernel: KernelResources, units: int = 1) -> Residency:
  """The waves of this kernel that a unit holds. units: those of the card, among which the grid is spread."""
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
