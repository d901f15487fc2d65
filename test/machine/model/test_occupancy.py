"""Waves that a unit holds: numbers of AMD's register files, which agree with LLVM's occupancy, and all other limits."""
from __future__ import annotations
import pytest

from tinyhw.machine.model.occupancy import (
  ComputeUnit, KernelResources, RegisterFile, most_registers, residency, waves_by_registers)

RDNA, RDNA64, CDNA = RegisterFile(1536, 24), RegisterFile(768, 12), RegisterFile(512, 8)
WGP = ComputeUnit("WGP", 4, 16, 32, {"vgpr": RDNA}, 128 << 10, 1024, 32)

@pytest.mark.parametrize("file, most, waves", [
  (RDNA, 16, {1: 16, 96: 16, 97: 12, 120: 12, 144: 10, 168: 9, 192: 8, 216: 7, 240: 6, 256: 5}),
  (RDNA64, 16, {48: 16, 49: 12, 256: 2}),
  (CDNA, 8, {64: 8, 72: 7, 80: 6, 96: 5, 128: 4, 168: 3, 256: 2, 512: 1}),
])
def test_waves_by_registers(file: RegisterFile, most: int, waves: dict[int, int]) -> None:
  assert {used: waves_by_registers(file, used, most) for used in waves} == waves

def test_most_registers_is_the_inverse() -> None:
  for file, most in ((RDNA, 16), (CDNA, 8), (RegisterFile(800, 16, 6), 8)):
    for waves in range(1, most + 1):
      used = most_registers(file, waves)
      assert waves_by_registers(file, used, 99) >= waves > waves_by_registers(file, used + 1, 99)

@pytest.mark.parametrize("kernel, groups, waves, limit", [
  (KernelResources({"vgpr": 40}, 0, 32), 32, 32, "workgroups"),
  (KernelResources({"vgpr": 40}, 0, 1024), 2, 64, "waves"),
  (KernelResources({"vgpr": 200}, 0, 128), 7, 28, "vgprs"),
  (KernelResources({"vgpr": 40}, 33000, 128), 3, 12, "shared memory"),
  (KernelResources({"vgpr": 40}, 33000, 128, 48), 1, 4, "the grid"),
  (KernelResources({"vgpr": 40}, 0, 33, 97), 3, 6, "the grid"),
  # 20 waves fit: the hardware refuses the launch or slows it down, and one is shown
  (KernelResources({"vgpr": 256}, 0, 1024), 1, 32, "vgprs"),
])
def test_the_limit_is_named(kernel: KernelResources, groups: int, waves: int, limit: str) -> None:
  held = residency(WGP, kernel, 48)
  assert (held.groups, held.waves, held.limit) == (groups, waves, limit)
