"""Unified memory (UVM) of the virtual kernel driver: the registered GPUs, and address ranges that memory of the
resource manager is mapped to.

Statuses follow open-gpu-kernel-modules, kernel-open/nvidia-uvm/uvm_map_external.c and uvm_va_space.c.
"""
from __future__ import annotations
from typing import TYPE_CHECKING, Any

from tinyhw.autogen.nvidia.rm import Status
from tinyhw.emulator.memory.pages import Range
from tinyhw.emulator.memory.physical import PAGE
from tinyhw.emulator.nvidia.card.objects import ChannelItem, MemoryItem, Refusal, SpaceItem

if TYPE_CHECKING:
  from tinyhw.emulator.nvidia.card.computer import GpuHost
  from tinyhw.emulator.nvidia.card.gpu import GpuHardware

HUGE_PAGE = 2 << 20
READ_WRITE_ATOMIC, READ_ONLY = 1, 3

class External:
  """An address range that the program has reserved. maps: memory on each GPU. channel: set if the kernel maps an
  engine's memory there."""
  def __init__(self, start: int, size: int, channel: ChannelItem | None = None):
    self.start, self.end, self.channel = start, start + size, channel
    self.maps: dict[GpuHardware, tuple[MemoryItem, Range]] = {}

class Uvm:
  """The ranges of the process."""
  def __init__(self, computer: GpuHost):
    self.computer = computer
    self.spaces: dict[bytes, SpaceItem | None] = {}       # GPUs that are registered, and their address spaces
    self.ranges: dict[int, External] = {}
    self.peers: set[frozenset[bytes]] = set()
    self.held = False                                    # a second file holds the process's memory

  def _registered(self, uuid: Any) -> bytes:
    key = bytes(uuid)
    if key not in self.spaces: raise Refusal(Status.INVALID_DEVICE, "the GPU is not registered")
    return key

  def register_gpu(self, request: Any) -> None:
    key = bytes(request.gpu_uuid)
    if all(gpu.uuid != key for gpu in self.computer.gpus): raise Refusal(Status.INVALID_DEVICE, "no GPU has this id")
    self.spaces.setdefault(key, None)

  def unregister_gpu(self, request: Any) -> None:
    key = self._registered(request.gpu_uuid)
    if self.spaces[key] is not None: raise Refusal(Status.INVALID_STATE, "its address space is registered")
    del self.spaces[key]

  def register_space(self, request: Any) -> None:
    key = self._registered(request.gpuUuid)
    self.computer.control_file(request.rmCtrlFd)
    if not self.held:
      raise Refusal(Status.PAGE_TABLE_NOT_AVAIL, "UvmMmInitialize comes first: uvm_va_space.c, "
                    "uvm_va_space_register_gpu_va_space")
    space = self.computer.objects.find(request.hVaSpace, SpaceItem)
    if self.spaces[key] is not None: raise Refusal(Status.INVALID_STATE, "it has an address space")
    if space.gpu is None or space.gpu.uuid != key:
      raise Refusal(Status.INVALID_ARGUMENT, "the address space is that of another GPU")
    self.spaces[key] = space

  def unregister_space(self, request: Any) -> None:
    key = self._registered(request.gpuUuid)
    gpu = next(gpu for gpu in self.computer.gpus if gpu.uuid == key)
    for external in self.ranges.values(): self._unmap(external, gpu)
    self.spaces[key] = None

  def register_channel(self, request: Any) -> None:
    self._registered(request.gpuUuid)
    channel = self.computer.objects.find(request.hChannel, ChannelItem)
    self._add(External(request.base, request.length, channel))
    channel.registered = True

  def unregister_channel(self, request: Any) -> None:
    channel = self.computer.objects.find(request.hChannel, ChannelItem)
    channel.registered = False
    for start in [start for start, external in self.ranges.items() if external.channel is channel]:
      del self.ranges[start]

  def _add(self, made: External) -> None:
    if made.start % PAGE or made.end % PAGE or made.start >= made.end:
      raise Refusal(Status.INVALID_ADDRESS, f"{made.start:#x}..{made.end:#x}")
    if any(made.start < other.end and other.start < made.end for other in self.ranges.values()):
      raise Refusal(Status.UVM_ADDRESS_IN_USE, f"{made.start:#x}..{made.end:#x}")
    self.ranges[made.start] = made

  def end(self) -> None:
    """Close the file: the kernel's driver takes everything back."""
    for external in self.ranges.values():
      for gpu in list(external.maps): self._unmap(external, gpu)
    self.ranges.clear()
    self.spaces.clear()
    self.peers.clear()

  def create(self, request: Any) -> None: self._add(External(request.base, request.length))

  def map(self, request: Any) -> None:
    external = self.ranges.get(request.base)
    if external is None or external.channel is not None or request.base + request.length != external.end:
      raise Refusal(Status.INVALID_ADDRESS, f"no range is {request.base:#x}..{request.base + request.length:#x}")
    self.computer.control_file(request.rmCtrlFd)
    memory = self.computer.objects.find(request.hMemory, MemoryItem)
    if request.offset % PAGE or request.offset + request.length > memory.frames.size:
      raise Refusal(Status.INVALID_ARGUMENT, "beyond the memory's end")
    if memory.own and request.base % HUGE_PAGE:
      raise Refusal(Status.INVALID_ADDRESS, "memory in huge pages at an address between two of them")
    for attributes in request.perGpuAttributes[:request.gpuAttributesCount]:
      key = self._registered(attributes.gpuUuid)
      space = self.spaces[key]
      if space is None or space.gpu is None: raise Refusal(Status.INVALID_STATE, "the GPU has no address space")
      if memory.own and memory.gpu is not space.gpu and frozenset((key, memory.gpu.uuid)) not in self.peers:
        raise Refusal(Status.INVALID_DEVICE, "the GPUs are no peers")
      if space.gpu in external.maps: raise Refusal(Status.INVALID_STATE, "it is mapped")
      writable = attributes.gpuMappingType not in (READ_ONLY,)
      made = Range(request.base, memory.frames, request.offset, request.length, writable, True, False, not memory.own,
                   memory)
      space.table.map(made)
      memory.users += 1
      external.maps[space.gpu] = memory, made

  def _unmap(self, external: External, gpu: GpuHardware) -> None:
    found, space = external.maps.pop(gpu, None), self.spaces.get(gpu.uuid)
    if found is None or space is None: return
    space.table.unmap(external.start)
    found[0].release()

  def unmap(self, request: Any) -> None:
    key = self._registered(request.gpuUuid)
    external = self.ranges.get(request.base)
    if external is None: raise Refusal(Status.INVALID_ADDRESS, f"no range begins at {request.base:#x}")
    self._unmap(external, next(gpu for gpu in self.computer.gpus if gpu.uuid == key))

  def free(self, request: Any) -> None:
    external = self.ranges.get(request.base)
    if external is None or external.channel is not None:
      raise Refusal(Status.INVALID_ADDRESS, f"no range begins at {request.base:#x}")
    for gpu in list(external.maps): self._unmap(external, gpu)
    del self.ranges[request.base]

  def enable_peers(self, request: Any) -> None:
    pair = frozenset((self._registered(request.gpuUuidA), self._registered(request.gpuUuidB)))
    if not self.computer.peers: raise Refusal(Status.NOT_SUPPORTED, "no link between the GPUs")
    if pair in self.peers: raise Refusal(Status.INVALID_DEVICE, "they are peers already")
    self.peers.add(pair)
