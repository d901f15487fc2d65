"""KFD's fault reports in words."""
from __future__ import annotations
from typing import TYPE_CHECKING

from tinyhw.drivers.amd.events import HardwareFault, MemoryFault
from tinyhw.drivers.gpu.reports import describe_address
if TYPE_CHECKING: from tinyhw.drivers.amd.device import AMDDevice

def explain(device: AMDDevice, fault: MemoryFault | HardwareFault) -> str:
  """Describe a fault by the end of a sentence that begins with the device's name."""
  if isinstance(fault, HardwareFault):
    cause = "of an uncorrectable memory error" if fault.ecc else "it did not respond to this program or to another one"
    kept = "; what was in its memory is gone" if fault.memory_lost else ""
    return f"was reset by the kernel ({'all of it' if fault.whole else 'an engine'}), because {cause}{kept}"
  kind = ("writes to read-only memory" if fault.read_only else "executes what is no code" if fault.no_execute
          else "touches memory that it has not")
  if fault.error_type: kind = "met a memory error (ECC)"
  near = " or near it" if fault.imprecise else ""
  return f"{kind} at {fault.address:#x}{near}: {describe_address(device, fault.address)}"
