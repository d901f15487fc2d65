"""The AMD device: GPUs driven through the Linux kernel's compute driver (KFD), without ROCm.

| file | content |
|---|---|
| topology.py | the GPUs of the computer, the differences between chips, sizes that the kernel requires |
| kfd.py | /dev/kfd, render nodes, address space, allocations |
| events.py | interrupts to sleep for, and faults |
| queue.py, aql.py, sdma.py | the hardware's queues: PM4, AQL that contains PM4, copies |
| commands.py | PM4 as words |
| launch.py | the registers and packets of a launch |
| device.py | one GPU |
| faults.py | KFD's faults in words |
| selftest/ | the checks of `python3 -m tinyhw selftest AMD` |

Code that is not specific to AMD is in drivers/gpu.
"""
from __future__ import annotations
import sys
from collections.abc import Callable

from tinyhw.drivers.amd.device import AMDDevice
from tinyhw.drivers.amd.kfd import connect
from tinyhw.drivers.amd.topology import choose
from tinyhw.drivers.linux.files import machine
from tinyhw.errors import DeviceError
from tinyhw.machine.ir.code import Code

def open(ordinal: int, runtime: Callable[[str], Code]) -> AMDDevice:
  """Open GPU number `ordinal` of the topology. Raises DeviceError or DriverError, which have advice."""
  if sys.platform != "linux":
    raise DeviceError("AMD GPUs are driven through the Linux kernel; use another device on this system")
  box = machine()
  gpu = choose(box, ordinal)
  kfd = connect(box)
  kfd.acquire(gpu)
  return AMDDevice(f"AMD:{ordinal}" if ordinal else "AMD", kfd, gpu)
