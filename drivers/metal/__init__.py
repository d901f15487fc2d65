"""The METAL device: Apple's GPUs (M1 and newer), through Metal's Objective-C messages. Never chosen by default.

| file | content |
|---|---|
| library.py | libobjc and the frameworks; the one function that EMULATE replaces |
| objc.py | messages with their types, ownership, pools, texts |
| facts.py | devices, their facts, what kernels need |
| memory.py | buffers |
| launch.py | kernels, the check of launches, recordings |
| device.py | one device: its queue, waits, its loss |
| doctor.py | reasons why a device cannot be used |
| selftest.py | the steps of `python3 -m tinyhw selftest METAL` before tensors |

Kernels are Metal's language (codegen/render/metal.py), which the system's compiler translates.
"""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.drivers.gpu.forks import begin_use
from tinyhw.drivers.metal.device import MetalDevice
from tinyhw.drivers.metal.facts import find_device
from tinyhw.drivers.metal.library import load_library as load_library
from tinyhw.drivers.metal.objc import ObjectiveC
from tinyhw.machine.ir.code import Code

def open(ordinal: int, runtime: Callable[[str], Code]) -> MetalDevice:
  """Open Metal device number `ordinal`. Raises DeviceError or DriverError, which have advice."""
  begin_use("Metal")
  objc = ObjectiveC(load_library())
  return MetalDevice(f"METAL:{ordinal}" if ordinal else "METAL", objc, find_device(objc, ordinal))
