"""Metal's devices, and the facts about them on which kernels depend.

A GPU has families, by the chip: Apple7 is M1, Apple8 M2, Apple9 M3 and M4. Metal3 means macOS 13 or newer.
"""
from __future__ import annotations
import ctypes

from tinyhw.drivers.metal.objc import ObjectiveC
from tinyhw.errors import DeviceError
from tinyhw.named_tuple import NamedTuple

FAMILIES = {"Apple7": 1007, "Apple8": 1008, "Apple9": 1009, "Apple10": 1010}
METAL3 = 5001
LEAST_BYTES = 32 << 10   # of threadgroup memory: what kernels may have
PARAVIRTUAL = "Paravirtual"

class MetalFacts(NamedTuple):
  """A device, as Metal describes it. handle: of the device, which the facts own. Sizes are in bytes."""
  handle: int
  name: str
  families: tuple[str, ...]
  metal3: bool
  unified: bool
  local_bytes: int
  memory_bytes: int
  most_bytes: int

  @property
  def title(self) -> str: return f"{self.name} ({self.families[-1] if self.families else 'no Apple family'})"

  def missing(self) -> list[str]:
    """Return what kernels need and the device does not have."""
    wanted = {
      "is no Apple GPU of M1 or newer": bool(self.families), "has no Metal 3, which macOS 13 brings": self.metal3,
      "has memory apart from the processor's": self.unified,
      f"has {self.local_bytes} bytes of threadgroup memory, not {LEAST_BYTES}": self.local_bytes >= LEAST_BYTES,
    }
    return [words for words, is_met in wanted.items() if not is_met]

def facts_of(objc: ObjectiveC, handle: int) -> MetalFacts:
  """Ask a device. Must run in a pool."""
  families = tuple(name for name, number in FAMILIES.items() if objc.send(handle, "supportsFamily:", number))
  return MetalFacts(
    handle, objc.text(objc.send(handle, "name")), families, bool(objc.send(handle, "supportsFamily:", METAL3)),
    bool(objc.send(handle, "hasUnifiedMemory")), objc.send(handle, "maxThreadgroupMemoryLength"),
    objc.send(handle, "recommendedMaxWorkingSetSize"), objc.send(handle, "maxBufferLength"))

def all_devices(objc: ObjectiveC) -> list[MetalFacts]:
  """Return all devices, the system's own order. The caller releases their handles. Must run in a pool."""
  devices = objc.library.function("MTLCopyAllDevices", ctypes.c_void_p)()
  if not devices: return []
  handles = [objc.keep(objc.send(devices, "objectAtIndex:", k)) for k in range(objc.send(devices, "count"))]
  objc.release(devices)
  return [facts_of(objc, handle) for handle in handles]

def find_device(objc: ObjectiveC, ordinal: int) -> MetalFacts:
  """Return device number `ordinal`, whose handle the caller owns. Raises DeviceError if there is none, or if it lacks
  what kernels need."""
  with objc.pool():
    devices = all_devices(objc)
    found = devices[ordinal] if ordinal < len(devices) else None
    for facts in devices:
      if facts is not found: objc.release(facts.handle)
    if not devices:
      raise DeviceError("Metal has no device; a sandbox, a login without a screen or a virtual machine may hide it: "
                        "try in a terminal of the logged-in user")
    if found is None:
      raise DeviceError(f"there is no Metal device number {ordinal}; there are "
                        f"{', '.join(f'{k}: {facts.title}' for k, facts in enumerate(devices))}")
    missing = found.missing()
    if missing:
      objc.release(found.handle)
      raise DeviceError(f"{found.title} {', '.join(missing)}; kernels need that; use another device")
  return found
