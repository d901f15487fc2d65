"""A computer with virtual AMD GPUs: its files, and the calls of /dev/kfd.

Each process (`VirtualComputer.process`) has its own address spaces, buffers, events, doorbells and queues. Processes
share the cards' memory, caches, compute units and copy engines, and the system memory that GPUs may use. Work of
different processes is not checked for order.
"""
from __future__ import annotations
import ctypes
import errno
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from tinyhw.autogen.amd import kfd_ioctl as kfd
from tinyhw.emulator.amd.card import sysfs
from tinyhw.emulator.amd.card.dispatch import MakeWorkgroup
from tinyhw.emulator.amd.card.events import MMAP_TYPE_EVENTS, EventTable
from tinyhw.emulator.amd.card.gpu import GpuHardware, GpuContext
from tinyhw.emulator.amd.card.memory import MMAP_GPU_SHIFT, MMAP_TYPE_MMIO, FlushWatcher, MemoryManager
from tinyhw.emulator.amd.card.queues import MMAP_TYPE_DOORBELL, QueueManager
from tinyhw.emulator.amd.chips import CHIPS
from tinyhw.emulator.amd.workgroup import Workgroup
from tinyhw.emulator.checks.order import Order
from tinyhw.emulator.files import VirtualComputer, VirtualFile, VirtualMapping, refuse
from tinyhw.emulator.memory.cache import Coherence, drop
from tinyhw.emulator.memory.pages import PageTable
from tinyhw.emulator.memory.physical import PAGE, Frames

Struct = TypeVar("Struct", bound=ctypes.Structure)
SYSTEM_LIMIT = 4 << 30         # bytes of system memory for GPUs
MMAP_TYPE_MASK = 3 << 62
KFD = "/dev/kfd"

class GpuHost(VirtualComputer):
  """A box with AMD GPUs. cards: the name of a chip for each.

  large_bar: VRAM may be PUBLIC. peers: cards reach each other's VRAM. version: of the KFD interface.
  """
  def __init__(self, name: str, cards: Sequence[str], seed: int = 0, strict: int = 1, large_bar: bool = True,
               peers: bool = True,
               version: tuple[int, int] = kfd.VERSION):
    super().__init__(name, seed, strict)
    self.large_bar, self.peers, self.version = large_bar, peers, version
    self.coherence = Coherence() if strict else None
    self.make_workgroup: MakeWorkgroup = Workgroup  # tests may replace it
    self.cards = [GpuHardware(CHIPS[card], index) for index, card in enumerate(cards)]
    if self.coherence is not None: self.coherence.host_writes += [card.host_writes for card in self.cards]
    self.begin_process()
    self.texts.update(sysfs.tree(self))

  def begin_process(self) -> None:
    self.order = Order() if self.strict else None
    self.memory = MemoryManager(self, SYSTEM_LIMIT)
    self.events = EventTable(self)
    self.queues = QueueManager(self)
    self.runtime_enabled = False
    self.gpus = [GpuContext(self, card) for card in self.cards]
    self.nodes[KFD] = partial(KfdFile, self, KFD)
    for gpu in self.gpus: self.nodes[f"/dev/dri/renderD{gpu.minor}"] = partial(RenderFile, self, gpu)

  # **** helpers of calls ****

  def gpu(self, number: int) -> GpuContext:
    """Return the GPU with this id. EINVAL where there is none."""
    found = next((gpu for gpu in self.gpus if gpu.gpu_id == number), None)
    if found is None: raise refuse(errno.EINVAL, f"no GPU has the id {number:#x}")
    return found

  def bound_gpu(self, number: int, unbound: int = errno.ENODEV) -> GpuContext:
    """Return the same, with an address space of this process."""
    gpu = self.gpu(number)
    if gpu.drm is None: raise refuse(unbound, f"{gpu.name} has no address space yet: ACQUIRE_VM")
    return gpu

  def read_words(self, address: int, count: int, done: int) -> list[int]:
    """Return 32-bit words of the program. done: number of words that an earlier call has handled."""
    if count == 0 or done > count: raise refuse(errno.EINVAL, f"{done} of {count} devices")
    if address == 0: raise refuse(errno.EFAULT, "no address")
    return list((ctypes.c_uint32 * count).from_address(address))

  def read_structures(self, kind: type[Struct], address: int, count: int) -> Any:
    """Return an array of the program, in place."""
    if count and address == 0: raise refuse(errno.EFAULT, "no address")
    return (kind * count).from_address(address) if count else []

  def forget(self, frames: Frames) -> None:
    """Give pages back: no cache keeps them."""
    if self.coherence is None: return
    self.coherence.forget(frames.physical, frames.size)
    if self.order is not None: self.order.forget(frames.physical, frames.size)
    for gpu in self.gpus:
      for xcc in gpu.xccs:
        for cache in xcc.read_caches(): drop(cache, frames.physical, frames.size)

  def tables(self) -> list[PageTable]: return [gpu.table for gpu in self.gpus]

  def devices_census(self) -> dict[str, int]:
    return {"buffers": len(self.memory.buffers), "queues": len(self.queues.queues), "events": len(self.events.events),
            "ranges": sum(len(gpu.table.ranges) for gpu in self.gpus),
            "kernels": sum(len(gpu.work) for gpu in self.gpus)}

  def end_process(self) -> None:
    """Take back address spaces, and the resources that the program has not freed. The kernel's driver does so at the
    end of the process, not at a close."""
    for number in list(self.queues.queues): self.queues.destroy(kfd.DestroyQueue(queue_id=number))
    self.events.events.clear()
    self.events.drop_page()
    for buffer in list(self.memory.buffers.values()):
      for gpu in list(buffer.mapped): gpu.table.unmap(buffer.address)
      buffer.mapped.clear()
      del self.memory.buffers[buffer.handle]
      self.memory.release(buffer.frames)
    for gpu in self.gpus: gpu.released()
    self.runtime_enabled = False

class RenderFile(VirtualFile):
  """A render node: address spaces, and mappings of buffers."""
  def __init__(self, computer: GpuHost, gpu: GpuContext):
    super().__init__(computer, f"/dev/dri/renderD{gpu.minor}")
    self.computer, self.gpu = computer, gpu

  def mmap(self, length: int, offset: int, address: int, prot: int, flags: int) -> VirtualMapping:
    with self.computer.scheduler.whole():
      self.check("mmap")
      return self.computer.memory.mmap(self, self.gpu, length, offset, address, prot, flags)

# first version of the interface that has a call; calls that are not listed are in all versions
SINCE = {kfd.GetAvailableMemory: (1, 9), kfd.ExportDmabuf: (1, 12), kfd.RuntimeEnable: (1, 13)}

class KfdFile(VirtualFile):
  """/dev/kfd.

  Calls are found by the low byte of their number. A caller's structure may be shorter or longer than the kernel's own.
  """
  def __init__(self, computer: GpuHost, path: str):
    super().__init__(computer, path)
    self.computer = computer
    memory, events, queues = computer.memory, computer.events, computer.queues
    self.calls: dict[type, Callable[[Any], None]] = {
      kfd.GetVersion: self._version, kfd.AcquireVm: self._acquire, kfd.GetClockCounters: self._clocks,
      kfd.RuntimeEnable: self._runtime,
      kfd.GetProcessAperturesNew: self._apertures, kfd.SetXnackMode: self._xnack, kfd.SetMemoryPolicy: self._on_gpu,
      kfd.SetScratchBackingVa: self._on_gpu, kfd.SetTrapHandler: self._on_gpu,
      kfd.AllocMemoryOfGpu: memory.allocate, kfd.FreeMemoryOfGpu: memory.free, kfd.MapMemoryToGpu: memory.map,
      kfd.UnmapMemoryFromGpu: memory.unmap, kfd.ExportDmabuf: memory.export, kfd.ImportDmabuf: memory.import_shared,
      kfd.GetAvailableMemory: memory.available,
      kfd.CreateEvent: events.create, kfd.DestroyEvent: events.destroy, kfd.SetEvent: events.set,
      kfd.ResetEvent: events.reset,
      kfd.WaitEvents: events.wait,
      kfd.CreateQueue: queues.create, kfd.DestroyQueue: queues.destroy, kfd.UpdateQueue: queues.update,
    }

  def ioctl(self, request: int, argument: Any) -> None:
    kind: Any = kfd.CALLS.get(request & 0xFF)
    if request >> 8 & 0xFF != ord("K") or kind is None or self.computer.version < SINCE.get(kind, (0, 0)):
      raise refuse(errno.ENOTTY, f"request {request:#x}")
    with self.computer.scheduler.whole():
      self.check(kind.__name__)
      function = self.calls.get(kind)
      if function is None: raise refuse(errno.EINVAL, f"{kind.__name__} is not emulated")
      size, own = request >> 16 & 0x3FFF, kind()
      if size > ctypes.sizeof(argument): raise refuse(errno.EFAULT, f"{kind.__name__} of {size} bytes")
      kept = min(size, ctypes.sizeof(own))
      if request >> 30 & 1: ctypes.memmove(ctypes.addressof(own), ctypes.addressof(argument), kept)
      try: function(own)
      finally:
        if request >> 31: ctypes.memmove(ctypes.addressof(argument), ctypes.addressof(own), kept)

  def mmap(self, length: int, offset: int, address: int, prot: int, flags: int) -> VirtualMapping:
    computer = self.computer
    with computer.scheduler.whole():
      self.check("mmap")
      kind, number = offset & MMAP_TYPE_MASK, offset >> MMAP_GPU_SHIFT & 0xFFFF
      if kind == MMAP_TYPE_DOORBELL:
        return computer.queues.map_doorbells(computer.bound_gpu(number), length, address, prot)
      if kind == MMAP_TYPE_EVENTS: return computer.events.map_page(length, address, prot)
      if kind != MMAP_TYPE_MMIO: raise refuse(errno.EFAULT, f"offset {offset:#x}")
      if length != PAGE: raise refuse(errno.EINVAL, "the page that flushes is one page")
      gpu = computer.bound_gpu(number)
      frames = computer.memory.system_pages(PAGE)
      return VirtualMapping(computer, computer.physical.map(frames, 0, PAGE, address, prot), FlushWatcher(gpu, frames))

  # **** calls about the whole process, or a GPU ****

  def _version(self, request: Any) -> None: request.major_version, request.minor_version = self.computer.version

  def _acquire(self, request: Any) -> None:
    file = self.computer.descriptor(request.drm_fd)
    if not isinstance(file, RenderFile): raise refuse(errno.EINVAL, f"descriptor {request.drm_fd} is no render node")
    gpu = self.computer.gpu(request.gpu_id)
    if file.gpu is not gpu: raise refuse(errno.EINVAL, f"{file.path} is the render node of {file.gpu.name}")
    if gpu.drm is not None and gpu.drm is not file:
      raise refuse(errno.EBUSY, f"the process has an address space of {gpu.name} from another file")
    gpu.drm = file

  def _clocks(self, request: Any) -> None:
    request.gpu_clock_counter = self.computer.gpu(request.gpu_id).clock()
    request.cpu_clock_counter = request.system_clock_counter = time.monotonic_ns()
    request.system_clock_freq = 10**9

  def _runtime(self, request: Any) -> None:
    enable = bool(request.mode_mask & kfd.KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK)
    if enable and self.computer.runtime_enabled: raise refuse(errno.EBUSY, "the runtime is enabled already")
    self.computer.runtime_enabled = enable

  def _apertures(self, request: Any) -> None:
    """Report the addresses of shared memory and scratch in a GPU's address space."""
    count = request.num_of_nodes
    request.num_of_nodes = len(self.computer.gpus)
    if count == 0: return
    if request.kfd_process_device_apertures_ptr == 0: raise refuse(errno.EFAULT, "no address")
    found = self.computer.read_structures(kfd.ProcessDeviceApertures, request.kfd_process_device_apertures_ptr,
                                          min(count, len(self.computer.gpus)))
    for item, gpu in zip(found, self.computer.gpus):
      item.lds_base, item.lds_limit = 0x1000000000000, 0x10000FFFFFFFF
      item.scratch_base, item.scratch_limit = 0x2000000000000, 0x20000FFFFFFFF
      item.gpuvm_base, item.gpuvm_limit, item.gpu_id = 0x4000, (1 << 47) - 1, gpu.gpu_id

  def _xnack(self, request: Any) -> None:
    """Set or (-1) query the retry of faults. None of these cards supports it here."""
    if ctypes.c_int32(request.xnack_enabled).value < 0:
      request.xnack_enabled = 0
      return
    if self.computer.queues.queues: raise refuse(errno.EBUSY, "there are queues")
    if request.xnack_enabled: raise refuse(errno.EPERM, "no retry of faults on this card")

  def _on_gpu(self, request: Any) -> None:
    """Accept settings that change nothing that the emulator models."""
    self.computer.bound_gpu(request.gpu_id)
