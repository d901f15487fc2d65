"""The count of warps of a kernel that an SM holds. The numbers are those of NVIDIA's occupancy calculator, which counts
the registers of a launch."""
from __future__ import annotations
import pytest

from tinyhw.isa.sass.table.units import FILE, RESERVED_BYTES, STEPS, UNITS
from tinyhw.machine.model.occupancy import KernelResources, residency

@pytest.mark.parametrize("arch, registers, shared, lanes, warps", [
  ("sm_80", 32, 0, 256, 64), ("sm_80", 33, 0, 256, 48), ("sm_80", 128, 0, 256, 16), ("sm_80", 255, 0, 256, 8),
  ("sm_80", 32, 48 << 10, 256, 24),
  ("sm_86", 40, 0, 256, 48), ("sm_89", 32, 0, 32, 24), ("sm_90", 32, 0, 32, 32), ("sm_90", 64, 48 << 10, 128, 16),
  ("sm_80", 168, 0, 128, 12)])
def test_warps_of_a_multiprocessor(arch: str, registers: int, shared: int, lanes: int, warps: int) -> None:
  kernel = KernelResources({"R": registers - FILE.extra}, shared + RESERVED_BYTES, lanes)
  assert residency(UNITS[arch], kernel).waves == warps

def test_steps_are_those_where_a_warp_less_fits() -> None: assert STEPS == {"R": (62, 70, 78, 94, 126, 166), "P": (6,)}
