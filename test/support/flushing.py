"""Which devices count subnormal numbers as zeros. Programs outside of pytest ask it, too."""
from __future__ import annotations

def flushes(device: str) -> bool:
  """Does a device count subnormal numbers of float32 as zeros? Apple's GPUs do (docs/hardware/metal.md)."""
  return device.partition(":")[0] == "METAL"
