"""The WEBGPU device: any adapter of wgpu-native, through its C library. Never chosen by default.

| file | content |
|---|---|
| library.py | the library's calls, its version, errors |
| facts.py | adapters, their facts, what kernels need |
| memory.py | buffers, and copies of bytes |
| launch.py | kernels, their bindings, Recordings |
| device.py | one device: its queue, waits, errors, its loss |
| doctor.py | reasons why an adapter cannot be used |

Kernels are WGSL (codegen/render/wgsl.py), which the library translates for the system's driver: Vulkan, Metal, D3D12.
"""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.drivers.gpu.forks import begin_use
from tinyhw.drivers.webgpu.device import WgpuDevice
from tinyhw.drivers.webgpu.facts import find_adapter
from tinyhw.drivers.webgpu.library import WgpuLibrary, load_library
from tinyhw.machine.ir.code import Code

_libraries: list[WgpuLibrary] = []

def library() -> WgpuLibrary:
  """Return the library, which stays loaded until the process ends. Raises DeviceError if there is none."""
  if not _libraries: _libraries.append(WgpuLibrary(load_library()))
  return _libraries[0]

def open(ordinal: int, runtime: Callable[[str], Code]) -> WgpuDevice:
  """Open WebGPU device number `ordinal`. Raises DeviceError or DriverError, which have advice."""
  begin_use("WebGPU")
  found = library()
  return WgpuDevice(f"WEBGPU:{ordinal}" if ordinal else "WEBGPU", found, find_adapter(found, ordinal))
