"""The OPENCL device: any device of an OpenCL 1.2 driver, through libOpenCL. Never chosen by default.

| file | content |
|---|---|
| library.py | the library's calls, and errors by name |
| facts.py | devices of all platforms, their facts, what kernels need |
| memory.py | buffers |
| launch.py | kernels, their arguments, recordings |
| device.py | one device: its queue, waits, its loss |
| doctor.py | reasons why a device cannot be used |

Kernels are OpenCL C (codegen/render/opencl.py), which the driver's compiler translates.
"""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.drivers.gpu.forks import begin_use
from tinyhw.drivers.opencl.device import ClDevice
from tinyhw.drivers.opencl.facts import find_device
from tinyhw.drivers.opencl.library import ClLibrary, load_library
from tinyhw.machine.ir.code import Code

_libraries: list[ClLibrary] = []

def library() -> ClLibrary:
  """Return the library, which stays loaded until the process ends. Raises DeviceError if there is none."""
  if not _libraries: _libraries.append(ClLibrary(load_library()))
  return _libraries[0]

def open(ordinal: int, runtime: Callable[[str], Code]) -> ClDevice:
  """Open OpenCL device number `ordinal`. Raises DeviceError or DriverError, which have advice."""
  begin_use("OpenCL")
  found = library()
  return ClDevice(f"OPENCL:{ordinal}" if ordinal else "OPENCL", found, find_device(found, ordinal))
