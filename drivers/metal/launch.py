"""Kernels that Metal has compiled, their launches as messages to an encoder, and Recordings.

The arguments of a kernel (codegen/render/metal.py) are its buffers, then one array of 64-bit variables. Where these are
too many, a structure has the addresses of the last buffers, which Metal then neither makes resident nor retains. An
encoder keeps its arguments from launch to launch, so only those that differ are sent. The order of launches is that of
drivers/gpu/order.py: a launch that needs an earlier one stands after a barrier, others run at the same time.
"""
from __future__ import annotations
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.device import Launch
from tinyhw.drivers.gpu.order import PendingLaunches, address_range, written
from tinyhw.drivers.gpu.parameters import CheckedRecording, KernelParameters
from tinyhw.drivers.gpu.signals import SIGNALS
from tinyhw.drivers.metal.memory import MetalMemory
from tinyhw.drivers.metal.objc import MetalSize, ObjectiveC
from tinyhw.errors import DeviceError
from tinyhw.machine.ir.code import Code
if TYPE_CHECKING: from tinyhw.drivers.metal.device import MetalDevice

PREFIX = "k_"            # of the names of functions: codegen/render/metal.py
MOST_GROUPS = (1 << 32) - 1
MOST_VARIABLES = 512     # 4096 bytes, the most that setBytes takes
MOST_ARGUMENTS, DIRECT = 31, 29    # buffers and variables; buffers of kernels with more: codegen/render/metal.py
READ_WRITE = 3           # MTLResourceUsageRead, MTLResourceUsageWrite
LANES = 32               # of a SIMD-group: kernels that exchange values between lanes rely on it
SCOPE_BUFFERS = 1        # MTLBarrierScopeBuffers
UNIT = 16                # bytes that a length of threadgroup memory is a multiple of

class MetalProgram:
  """A compiled kernel. pipeline: its handle. Released when it is garbage."""
  def __init__(self, device: MetalDevice, code: Code):
    if code.arch.partition(":")[0] != "metal":
      raise DeviceError(f"kernel {code.name} is for {code.arch}, device {device.name} takes Metal's language; compile "
                        f"it for {device.arch}")
    self.device, self.name, self.code, self.pipeline = device, code.name, code, 0
    self.parameters = KernelParameters(device, code, MetalMemory, MOST_GROUPS, "threadgroups")
    self.buffers, self.variables = self.parameters.buffers, self.parameters.variables
    self.direct = self.buffers if self.buffers + bool(self.variables) <= MOST_ARGUMENTS else DIRECT
    self.local_bytes = -(-code.local_bytes // UNIT) * UNIT
    if self.variables > MOST_VARIABLES:
      raise DeviceError(f"kernel {code.name} has {self.variables} variables, and Metal takes {MOST_VARIABLES}; use "
                        f"fewer symbolic sizes")
    if self.local_bytes > device.about.local_bytes:
      raise DeviceError(f"kernel {code.name} needs {self.local_bytes} bytes of threadgroup memory, and {device.name} "
                        f"has {device.about.local_bytes}; report this with the kernel's source (DEBUG=7)")
    with device.lock, SIGNALS.wait():   # a handler runs when this object owns the pipeline
      self.pipeline, most, width = device.build(code.text, PREFIX + code.name, code.name)
    if code.lanes > most:
      raise DeviceError(f"kernel {code.name} has {code.lanes} lanes in a threadgroup, and {device.name} allows it "
                        f"{most}; report this with the kernel's source (DEBUG=7)")
    if width != LANES:
      raise DeviceError(f"{device.name} has SIMD-groups of {width} lanes, and kernels have {LANES}; use another device")

  def __del__(self) -> None:
    if getattr(self, "pipeline", 0): self.device.returned.put(self.device.lock, self.pipeline)

  def __repr__(self) -> str: return f"<MetalProgram {self.name} on {self.device.name}>"

def order(launches: Sequence[Launch]) -> list[bool]:
  """Return which launches of an encoder wait for those before them."""
  pending = PendingLaunches()
  return [pending.take(list(map(address_range, launch.buffers)), written(launch)) for launch in launches]

class MetalEncoder:
  """Launches of one compute encoder. It remembers the state of the encoder, and sends only differences. kept: buffers
  that it has retained, and that are to be released when all is done."""
  def __init__(self, objc: ObjectiveC, handle: int):
    self.objc, self.handle = objc, handle
    self.pipeline = self.local_bytes = 0
    self.buffers: dict[int, tuple[int, int]] = {}
    self.kept: dict[int, None] = {}

  def barrier(self) -> None:
    """Let later launches wait for all earlier ones of this encoder."""
    self.objc.send(self.handle, "memoryBarrierWithScope:", SCOPE_BUFFERS)

  def launch(self, launch: Launch) -> None:
    """Start a kernel."""
    send, handle, program = self.objc.send, self.handle, launch.program
    if program.pipeline != self.pipeline:
      send(handle, "setComputePipelineState:", program.pipeline)
      self.pipeline = program.pipeline
    for index, memory in enumerate(launch.buffers[:program.direct]):
      place = memory.handle, memory.offset
      if self.buffers.get(index) == place: continue
      send(handle, "setBuffer:offset:atIndex:", memory.handle, memory.offset, index)
      self.buffers[index] = place
    if launch.variables:
      data = struct.pack(f"<{program.variables}q", *launch.variables)
      send(handle, "setBytes:length:atIndex:", data, len(data), program.direct)
      self.buffers.pop(program.direct, None)
    if program.direct < program.buffers: self._point(launch.buffers[program.direct:])
    if program.local_bytes and program.local_bytes != self.local_bytes:
      send(handle, "setThreadgroupMemoryLength:atIndex:", program.local_bytes, 0)
      self.local_bytes = program.local_bytes
    send(handle, "dispatchThreadgroups:threadsPerThreadgroup:", MetalSize(launch.grid, 1, 1),
         MetalSize(program.code.lanes, 1, 1))

  def _point(self, memories: Sequence[MetalMemory]) -> None:
    """Give the kernel the addresses of buffers."""
    send, addresses = self.objc.send, []
    for memory in memories:
      if memory.handle not in self.kept:
        self.kept[self.objc.keep(memory.handle)] = None
        send(self.handle, "useResource:usage:", memory.handle, READ_WRITE)
      addresses.append(send(memory.handle, "gpuAddress") + memory.offset)
    data = struct.pack(f"<{len(addresses)}Q", *addresses)
    send(self.handle, "setBytes:length:atIndex:", data, len(data), MOST_ARGUMENTS - 1)
    self.buffers.pop(MOST_ARGUMENTS - 1, None)

class MetalRecording(CheckedRecording):
  """Launches that are encoded again at each replay, with the barriers between them."""
  kind = MetalProgram

  def __init__(self, device: MetalDevice, launches: Sequence[Launch]):
    super().__init__(device, launches)
    self.waits: list[bool] | None = None    # which launches wait; computed at the next replay

  def patch(self, launch: int, position: int, value: Any) -> None:
    super().patch(launch, position, value)
    if position < self.launches[launch].program.buffers: self.waits = None

  def patch_grid(self, launch: int, grid: int) -> None:
    super().patch_grid(launch, grid)
    self.waits = None

  def submit(self) -> None:
    """Run all launches."""
    if self.waits is None: self.waits = order_of_batches(self.launches)
    device: Any = self.device
    device.enqueue(self.launches, self.waits)

BATCH = 64               # launches of a command buffer

def order_of_batches(launches: Sequence[Launch]) -> list[bool]:
  """Return which launches wait for earlier ones of their command buffer. Command buffers follow each other."""
  started = [launch for launch in launches if launch.grid]
  return [waits for start in range(0, len(started), BATCH) for waits in order(started[start:start + BATCH])]
