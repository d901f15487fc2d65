"""The sizes of units, and the resulting numbers of registers."""
from __future__ import annotations
import pytest

from tinyhw.isa.amd.model.units import register_steps, unit_of
from tinyhw.isa.amd.table.form import Generation
from tinyhw.machine.model.occupancy import KernelResources, residency

@pytest.mark.parametrize("arch, simds, waves, local", [
  ("gfx942", 4, 8, 65536), ("gfx950", 4, 8, 163840), ("gfx1100", 4, 16, 131072), ("gfx1201", 4, 16, 131072)])
def test_units(arch: str, simds: int, waves: int, local: int) -> None:
  unit = unit_of(Generation(arch))
  assert (unit.simds, unit.waves, unit.local_bytes, unit.lanes) == (simds, waves, local, Generation(arch).wave)

@pytest.mark.parametrize("arch", ["gfx942", "gfx950", "gfx1100", "gfx1100:wave64", "gfx1200"])
def test_a_register_more_than_a_step_costs_a_wave(arch: str) -> None:
  unit = unit_of(Generation(arch))
  for bank, steps in register_steps(Generation(arch)).items():
    for step in steps[:-1]:
      below, above = (residency(unit, KernelResources({bank: used}, 0, unit.lanes)).by_registers[bank]
                      for used in (step, step + 1))
      assert above < below

def test_scalar_registers_limit_waves_on_cdna_only() -> None:
  assert register_steps(Generation("gfx942"))["sgpr"][0] == 90 and "sgpr" not in register_steps(Generation("gfx1100"))
