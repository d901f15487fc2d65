"""The AMD device: GPUs driven through the Linux kernel's compute driver (KFD), without ROCm.

| file | what it owns |
|---|---|
| topology.py | which GPUs there are, what distinguishes chips, sizes that the kernel wants |
| kfd.py | /dev/kfd, render nodes, address space, allocations |
| events.py | interrupts to sleep for, and faults |
| queue.py, aql.py, sdma.py | the hardware's queues: PM4, AQL with PM4 in it, copies |
| commands.py | PM4 as words |
| launch.py | the registers and packets of a launch |
| device.py | one GPU |
| faults.py | what KFD's faults mean, in words |
| selftest/ | what `python3 -m tinyhw selftest AMD` asks |

What is not AMD's own is in drivers/gpu.
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
  """Open GPU number `ordinal` of the topology. Raises DeviceError or DriverError, which say what to do."""
  if sys.platform != "linux":
    raise DeviceError("AMD GPUs are driven through the Linux kernel; use another device on this system")
  box = machine()
  gpu = choose(box, ordinal)
  kfd = connect(box)
  kfd.acquire(gpu)
  return AMDDevice(f"AMD:{ordinal}" if ordinal else "AMD", kfd, gpu)
