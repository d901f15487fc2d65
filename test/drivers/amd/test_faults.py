"""Faults in words."""
from amd.box import Opener

from tinyhw.drivers.amd import faults
from tinyhw.drivers.amd.events import HardwareFault, MemoryFault

def memory_fault(address: int, **flags: bool) -> MemoryFault:
  return MemoryFault(address, **{"not_present": False, "read_only": False, "no_execute": False, "imprecise": False,
                                 "error_type": 0, **flags})

def test_kinds_of_faults(opened: Opener) -> None:
  _, device = opened("gfx1100")
  def said(**flags: bool) -> str: return faults.explain(device, memory_fault(0x1000, **flags))
  assert said(not_present=True).startswith("touches memory that it has not at 0x1000: ")
  assert said(read_only=True).startswith("writes to read-only memory at 0x1000: ")
  assert said(no_execute=True).startswith("executes what is no code at 0x1000: ")
  assert said(imprecise=True).startswith("touches memory that it has not at 0x1000 or near it: ")
  assert said(error_type=True).startswith("met a memory error (ECC) at 0x1000")
  assert faults.explain(device, HardwareFault(True, False, True)) == (
    "was reset by the kernel (all of it), because it did not respond to this program or to another one; what was in "
    "its memory is gone")
  assert "because of an uncorrectable memory error" in faults.explain(device, HardwareFault(False, True, False))
