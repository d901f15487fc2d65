"""Resources that waves share on AMD's GPUs: registers of a SIMD, LDS of a compute unit or workgroup processor, and the
steps in which they are allocated.

Sources: RDNA3, RDNA4 and MI300 ISA guides; LLVM's GCNSubtarget, whose occupancy agrees for all numbers of vector
registers.
"""
from __future__ import annotations

from tinyhw.isa.amd.table.form import Generation
from tinyhw.machine.model.occupancy import RegisterFile, ComputeUnit, steps
from tinyhw.threads import once

# Scalar registers: CDNA adds vcc, flat_scratch and xnack_mask to a wave's own; on RDNA each wave has all of them
CDNA = {"vgpr": RegisterFile(512, 8), "sgpr": RegisterFile(800, 16, 6)}
RDNA = {32: {"vgpr": RegisterFile(1536, 24)}, 64: {"vgpr": RegisterFile(768, 12)}}

def workgroup_processor(wave: int) -> ComputeUnit:
  return ComputeUnit("WGP", 4, 16, wave, RDNA[wave], 128 << 10, 1024, 32)

UNITS = {"gfx942": ComputeUnit("CU", 4, 8, 64, CDNA, 64 << 10, 512, 16),
         "gfx950": ComputeUnit("CU", 4, 8, 64, CDNA, 160 << 10, 1280, 16),
         "gfx1100": workgroup_processor(32), "gfx1200": workgroup_processor(32)}

@once
def unit_of(generation: Generation) -> ComputeUnit:
  """The unit of a generation, for waves of its size."""
  return UNITS[generation.name] if generation.cdna or generation.wave == 32 else workgroup_processor(64)

def register_steps(generation: Generation) -> dict[str, tuple[int, ...]]:
  """By bank: the numbers of registers beyond which fewer waves run at once."""
  unit = unit_of(generation)
  return {bank: steps(file, unit.waves) for bank, file in unit.files.items()}
