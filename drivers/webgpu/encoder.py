"""Commands of one submission: kernels in compute passes, and copies between buffers.

The library puts barriers between the kernels of a pass where they share buffers.
"""
from __future__ import annotations
import contextlib
import ctypes
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tinyhw.autogen import webgpu
from tinyhw.device import Launch
if TYPE_CHECKING: from tinyhw.drivers.webgpu.device import WgpuDevice

class WgpuEncoder:
  """An encoder, to be used in a `with` statement. It releases itself and the bindings of its launches at the end; what
  was submitted keeps them. Encoded commands that are not submitted do nothing."""
  def __init__(self, device: WgpuDevice):
    self.device, self.bound = device, list[int]()
    self.handle = 0

  def __enter__(self) -> WgpuEncoder:
    self.device.check()
    self.handle = self.device.call("DeviceCreateCommandEncoder", self.device.handle, None)
    return self

  def __exit__(self, *error: Any) -> None:
    for group in self.bound: self.device.release("BindGroupRelease", group)
    self.device.release("CommandEncoderRelease", self.handle)

  @contextlib.contextmanager
  def compute_pass(self, queries: int = 0) -> Iterator[int]:
    """Return the handle of a pass. queries: a set of two timestamps for its beginning and end."""
    times = webgpu.PassTimestampWrites(querySet=queries, beginningOfPassWriteIndex=0, endOfPassWriteIndex=1)
    descriptor = webgpu.ComputePassDescriptor(timestampWrites=ctypes.addressof(times) if queries else None)
    handle = self.device.call("CommandEncoderBeginComputePass", self.handle, ctypes.addressof(descriptor))
    try:
      yield handle
      self.device.call("ComputePassEncoderEnd", handle)
    finally: self.device.release("ComputePassEncoderRelease", handle)

  def dispatch(self, compute: int, launch: Launch, offset: int) -> None:
    """Encode a launch in a pass. offset: of its numbers in the buffer of numbers."""
    call, program = self.device.call, launch.program
    self.bound.append(program.bind(launch))
    call("ComputePassEncoderSetPipeline", compute, program.pipeline)
    call("ComputePassEncoderSetBindGroup", compute, 0, self.bound[-1], 0, None)
    place = ctypes.c_uint32(offset)
    call("ComputePassEncoderSetBindGroup", compute, 1, self.device.uniform_group, 1, ctypes.addressof(place))
    call("ComputePassEncoderDispatchWorkgroups", compute, *program.columns(launch.grid), 1)

  def finish(self) -> int:
    """Return the handle of the commands, which the caller releases."""
    return int(self.device.call("CommandEncoderFinish", self.handle, None))
