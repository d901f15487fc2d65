"""Kernels that wgpu-native has compiled, their bindings, and Recordings.

A kernel (codegen/render/wgsl.py) has two groups of bindings: its buffers, and 32-bit numbers in a uniform buffer that
all launches of a submission share. A buffer is bound from a multiple of the adapter's alignment on; the rest of its
offset is one of the numbers.
"""
from __future__ import annotations
import ctypes
import struct
from typing import TYPE_CHECKING, Any

from tinyhw.autogen import webgpu
from tinyhw.autogen.webgpu import BindGroupEntry, BindGroupLayoutEntry
from tinyhw.device import Launch
from tinyhw.drivers.gpu.parameters import CheckedRecording, KernelParameters
from tinyhw.drivers.webgpu.memory import WORD, WgpuMemory
from tinyhw.errors import DeviceError
from tinyhw.machine.ir.code import Code
if TYPE_CHECKING: from tinyhw.drivers.webgpu.device import WgpuDevice

PREFIX = "k_"            # of the names of functions: codegen/render/wgsl.py
MOST_GROUPS = (1 << 31) - 1
FIXED = 3                # numbers before the offsets: 0, the grid, its columns

class WgpuProgram:
  """A compiled kernel: its pipeline, and the layout of its buffers. Released when it is garbage."""
  def __init__(self, device: WgpuDevice, code: Code):
    self.device, self.name, self.code, self.handles = device, code.name, code, list[tuple[str, int]]()
    if code.arch.partition(":")[0] != "wgsl":
      raise DeviceError(f"kernel {code.name} is for {code.arch}, device {device.name} takes WGSL; compile it for "
                        f"{device.arch}")
    self.parameters = KernelParameters(device, code, WgpuMemory, MOST_GROUPS)
    self.buffers, self.variables = self.parameters.buffers, self.parameters.variables
    self.words = FIXED + self.buffers + 2 * self.variables
    about = device.about
    for what, count, most in (("buffers", self.buffers, about.most_buffers), ("lanes", code.lanes, about.most_lanes),
                              ("32-bit numbers as arguments", self.words, device.number_bytes // WORD),
                              ("bytes of shared memory", code.local_bytes, about.local_bytes)):
      if count > most:
        raise DeviceError(f"kernel {code.name} has {count} {what}, and {device.name} ({about.title}) allows {most}; "
                          f"realize parts of the expression first")
    self.layout = self._own("BindGroupLayoutRelease", device.buffer_layout(self.buffers))
    self.pipeline = self._own("ComputePipelineRelease", device.build(code, PREFIX + code.name, self.layout))

  def _own(self, release: str, handle: int) -> int:
    self.handles.append((release, handle))
    return handle

  def columns(self, grid: int) -> tuple[int, int]:
    """Return the columns and rows of a grid of workgroups, which may have a few more."""
    rows = -(-grid // self.device.about.groups)
    return -(-grid // rows), rows

  def numbers(self, launch: Launch) -> bytes:
    """Return the numbers of a launch."""
    unit = self.device.about.alignment
    return struct.pack(f"<{FIXED + self.buffers}I{self.variables}q", 0, launch.grid, self.columns(launch.grid)[0],
                       *[memory.offset % unit for memory in launch.buffers], *launch.variables)

  def bind(self, launch: Launch) -> int:
    """Return a new group of bindings for the buffers of a launch; the caller releases it."""
    unit, entries = self.device.about.alignment, (BindGroupEntry * max(self.buffers, 1))()
    for k, memory in enumerate(launch.buffers):
      start = memory.offset // unit * unit
      size = min(-(-(memory.offset - start + memory.size) // WORD) * WORD, memory.whole - start)
      entries[k].binding, entries[k].buffer, entries[k].offset, entries[k].size = k, memory.handle, start, size
    descriptor = webgpu.BindGroupDescriptor(layout=self.layout, entryCount=self.buffers,
                                            entries=ctypes.addressof(entries))
    return self.device.make("BindGroup", descriptor)

  def __del__(self) -> None:
    for release, handle in getattr(self, "handles", ()): self.device.returned.put(self.device.lock, release, handle)

  def __repr__(self) -> str: return f"<WgpuProgram {self.name} on {self.device.name}>"

def buffer_layout_entries(count: int) -> Any:
  """Return the entries of a layout of storage buffers. All may be written, since one buffer may be bound twice."""
  entries = (BindGroupLayoutEntry * max(count, 1))()
  for k in range(count):
    entries[k].binding, entries[k].visibility, entries[k].buffer.type = k, webgpu.STAGE_COMPUTE, webgpu.BINDING_STORAGE
  return entries

def uniform_layout_entries() -> Any:
  """Return the entry of the layout of the numbers, whose offset comes with each launch."""
  entries = (BindGroupLayoutEntry * 1)()
  entries[0].visibility, entries[0].buffer.type = webgpu.STAGE_COMPUTE, webgpu.BINDING_UNIFORM
  entries[0].buffer.hasDynamicOffset = 1
  return entries

class WgpuRecording(CheckedRecording):
  """Launches that are encoded again at each replay."""
  kind = WgpuProgram

  def submit(self) -> None:
    """Run all launches."""
    device: Any = self.device
    device.enqueue(self.launches)
