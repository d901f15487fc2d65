"""The TOY device. Kernels and arguments go to the accelerator's memory, and launches become packets in its ring. A
doorbell starts them."""
from __future__ import annotations
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tinyhw.device import Compiled, Launch, LRUAllocator
from tinyhw.machine.ir.code import Code
from examples.toy_accelerator.hardware import MEMORY_BYTES, PACKET, SLOTS, Hardware

def open(ordinal: int, runtime: Callable[[str], Code]) -> Compiled:
  """Return the device TOY, or TOY:1, ... Each has hardware of its own."""
  return ToyDevice(f"TOY:{ordinal}" if ordinal else "TOY")

class Place(NamedTuple):
  """A buffer."""
  address: int
  size: int

class ToyAllocator(LRUAllocator):
  """An allocator that hands out memory from low addresses up. Freed memory is used again for the same size.

  The host sees all of it.
  """
  def __init__(self, dev: str, memory: memoryview):
    super().__init__(dev)
    self.memory, self.end = memory, SLOTS * PACKET.size
  def _alloc(self, size: int) -> Place | None:
    address = -(-self.end // 64) * 64
    if address + size > MEMORY_BYTES: return None
    self.end = address + size
    return Place(address, size)
  def _copyin(self, dest: Place, src: memoryview) -> None: self.as_memoryview(dest)[:src.nbytes] = src
  def _copyout(self, dest: memoryview, src: Place) -> None: dest[:] = self.as_memoryview(src)[:dest.nbytes]
  def offset(self, opaque: Place, size: int, offset: int) -> Place: return Place(opaque.address + offset, size)
  def as_memoryview(self, opaque: Place) -> memoryview: return self.memory[opaque.address:opaque.address + opaque.size]

class Held:
  """Bytes in the accelerator's memory for as long as this object lives: a kernel's code, a recording's arguments."""
  def __init__(self, allocator: ToyAllocator, data: bytes, code: Code | None = None):
    self.allocator, self.code, self.place = allocator, code, allocator.alloc(len(data))
    allocator.copyin(self.place, memoryview(data))
  def __del__(self) -> None: self.allocator.free(self.place)

class ToyRecording:
  """Launches whose arguments are in the accelerator's memory already, 8 bytes each. A patch overwrites one argument."""
  def __init__(self, device: ToyDevice, launches: Sequence[Launch]):
    self.device, self.launches = device, list(launches)
    self.arguments = [Held(device.allocator, bytes(8 * (len(x.buffers) + len(x.variables)) + 8)) for x in launches]
    for number, x in enumerate(launches):
      for position, value in enumerate((*x.buffers, *x.variables)): self.patch(number, position, value)

  def patch(self, launch: int, position: int, value: Any) -> None:
    data = (value.address if isinstance(value, Place) else value).to_bytes(8, "little", signed=True)
    self.device.allocator.as_memoryview(self.arguments[launch].place)[8 * position:8 * position + 8] = data
  def patch_grid(self, launch: int, grid: int) -> None:
    self.launches[launch] = self.launches[launch]._replace(grid=grid)
  def submit(self) -> None:
    """Write a packet for each launch. Ring the doorbell when all are written or the ring is full."""
    hardware = self.device.hardware
    for number, (x, held) in enumerate(zip(self.launches, self.arguments), 1):
      written, code = hardware.done + (number - 1) % SLOTS, x.program.code
      packet = PACKET.pack(x.program.place.address, len(code.text), x.grid, held.place.address, code.lanes,
                           code.local_bytes)
      hardware.memory[written % SLOTS * PACKET.size:][:PACKET.size] = packet
      if number % SLOTS == 0 or number == len(self.launches): hardware.doorbell(written + 1)

class ToyDevice(Compiled):
  """The device. The accelerator is done when the doorbell returns, so there is nothing to wait for."""
  allocator: ToyAllocator
  def __init__(self, name: str):
    self.hardware = Hardware()
    super().__init__(name, ToyAllocator(name, self.hardware.memory), arch="toy")
  def load(self, code: Code) -> Held:
    self.latest = code  # for users who want to see it
    return Held(self.allocator, code.text, code)
  def submit(self, launches: Sequence[Launch]) -> None: ToyRecording(self, launches).submit()
  def record(self, launches: Sequence[Launch]) -> ToyRecording: return ToyRecording(self, launches)
