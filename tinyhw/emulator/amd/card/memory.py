"""Memory of the virtual kernel's driver: buffers, their mappings on GPUs, limits and refusals.

Rules and errnos follow Linux, drivers/gpu/drm/amd/amdkfd/kfd_chardev.c and amdgpu/amdgpu_amdkfd_gpuvm.c. A buffer's
handle has the GPU in its upper half. A buffer that backs a queue can be neither unmapped nor freed. A mapped buffer
cannot be freed.
"""
from __future__ import annotations
import errno
import itertools
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

from tinyhw.autogen.amd import kfd_ioctl as kfd
from tinyhw.drivers.linux.files import MAP_SHARED, HostMapping
from tinyhw.emulator.checks.watch import MemoryWatcher
from tinyhw.emulator.files import VirtualFile, VirtualMapping, refuse
from tinyhw.emulator.memory.pages import Range
from tinyhw.emulator.memory.physical import PAGE, Frames, pages

if TYPE_CHECKING:
  from tinyhw.emulator.amd.card.computer import GpuHost
  from tinyhw.emulator.amd.card.gpu import GpuContext

VRAM, GTT, USERPTR = (kfd.KFD_IOC_ALLOC_MEM_FLAGS_VRAM, kfd.KFD_IOC_ALLOC_MEM_FLAGS_GTT,
                      kfd.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR)
DOORBELL, MMIO_REMAP = kfd.KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL, kfd.KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP
DOMAINS = {VRAM: "VRAM", GTT: "GTT", USERPTR: "user", DOORBELL: "doorbell", MMIO_REMAP: "MMIO"}
WRITABLE, EXECUTABLE = kfd.KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE, kfd.KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE
PUBLIC, COHERENT = kfd.KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC, kfd.KFD_IOC_ALLOC_MEM_FLAGS_COHERENT
UNCACHED, EXT_COHERENT = kfd.KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED, kfd.KFD_IOC_ALLOC_MEM_FLAGS_EXT_COHERENT
# Flags that keep a buffer out of the L2, by generation. On gfx9.4.3 COHERENT alone does not.
UNCACHED_FLAGS = {9: UNCACHED | EXT_COHERENT, 11: UNCACHED | COHERENT | EXT_COHERENT,
                  12: UNCACHED | COHERENT | EXT_COHERENT}
DOORBELL_SLICE = 2 * PAGE               # 1024 doorbells of 8 bytes
HIGHEST_ADDRESS = 1 << 47               # the half of the address space that the processor has
MMAP_TYPE_MMIO, MMAP_GPU_SHIFT = 0, 46    # the other types are those of events.py and queues.py

class BufferObject:
  """Memory that the program allocated. mapped: its range on each GPU; uses: queues that need it, by GPU; domain: VRAM,
  GTT, ..."""
  def __init__(self, gpu: GpuContext, handle: int, address: int, size: int, flags: int, domain: int, frames: Frames,
               mmap_offset: int):
    self.gpu, self.handle, self.address, self.size, self.flags, self.domain = gpu, handle, address, size, flags, domain
    self.frames, self.mmap_offset = frames, mmap_offset
    self.mapped: dict[GpuContext, Range] = {}
    self.uses: Counter[GpuContext] = Counter()

  def __repr__(self) -> str: return f"{DOMAINS[self.domain]} buffer {self.handle & 0xFFFFFFFF} of {self.gpu.name}"

class BufferWatcher(MemoryWatcher):
  """The program's view of a buffer. Writes to VRAM pass the host data path."""
  def __init__(self, computer: GpuHost, buffer: BufferObject, offset: int, address: int, length: int):
    super().__init__(computer, buffer.frames, offset, address, length, buffer,
                     partial(computer.memory.release, buffer.frames))
    self.buffer = buffer

  def before_store(self, offset: int, data: bytes | bytearray | memoryview) -> None:
    super().before_store(offset, data)
    if self.computer.coherence is None or self.buffer.domain != VRAM: return
    self.buffer.gpu.host_writes.add(self.physical(offset), self.physical(offset) + len(data))

class FramesWatcher:
  """Pages of the kernel that the program may see. Accesses have no effect."""
  def __init__(self, computer: GpuHost, frames: Frames):
    self.computer, self.frames = computer, frames

  def before_load(self, offset: int, size: int) -> None: pass
  def before_store(self, offset: int, data: bytes | bytearray | memoryview) -> None: pass
  def after_store(self, offset: int, size: int) -> None: pass
  def closed(self) -> None: self.computer.memory.release(self.frames)

class FlushWatcher(FramesWatcher):
  """The page whose write flushes the host data path: MMIO_REMAP."""
  def __init__(self, gpu: GpuContext, frames: Frames):
    super().__init__(gpu.computer, frames)
    self.gpu = gpu

  def after_store(self, offset: int, size: int) -> None: self.gpu.host_writes.flush()

class MemoryManager:
  """The buffers of the process. system_limit: bytes of system memory that GPUs may use, for all processes; system_used:
  bytes that this process holds."""
  def __init__(self, computer: GpuHost, system_limit: int):
    self.computer, self.system_limit = computer, system_limit
    self.system_used = 0
    self.buffers: dict[int, BufferObject] = {}
    self.numbers = itertools.count(1)
    self.users: Counter[Frames] = Counter()       # number of buffers and mappings of the program that keep pages
    self.vram_frames: dict[Frames, GpuContext] = {}

  # **** allocation ****

  def allocate(self, request: Any) -> None:
    """AllocMemoryOfGpu: return a handle, and the offset for the render node's mmap."""
    gpu = self.computer.bound_gpu(request.gpu_id)
    flags, size = request.flags, request.size
    if size == 0: raise refuse(errno.EINVAL, "size 0")
    domain = next((bit for bit in DOMAINS if flags & bit), 0)
    if flags & PUBLIC and flags & VRAM and not self.computer.large_bar:
      raise refuse(errno.EINVAL, "VRAM cannot be public without a resizable BAR")
    if domain == DOORBELL and size != DOORBELL_SLICE:
      raise refuse(errno.EINVAL, "doorbells: the size is that of a slice")
    if domain == MMIO_REMAP and size != PAGE: raise refuse(errno.EINVAL, "MMIO: the size is one page")
    if not domain: raise refuse(errno.EINVAL, "no domain among the flags")
    if domain == USERPTR and not request.mmap_offset:
      raise refuse(errno.EINVAL, "a user pointer has its address in mmap_offset")
    frames = self._frames(gpu, domain, request.mmap_offset, pages(size))
    self._add(gpu, request, domain, frames)

  def _frames(self, gpu: GpuContext, domain: int, address: int, size: int) -> Frames:
    """Return pages for a buffer, within the limits."""
    if domain == VRAM:
      if gpu.vram_used + size > gpu.chip.vram:
        raise refuse(errno.ENOMEM, f"{gpu.chip.vram - gpu.vram_used:#x} bytes of VRAM are left")
      gpu.card.vram_used += size
      # the driver wipes VRAM with a pattern when it is freed
      frames = self.computer.physical.allocate(size, cleared=not self.computer.strict, holder=self.computer)
      self.vram_frames[frames] = gpu
      return frames
    if domain == USERPTR:
      if address % PAGE: raise refuse(errno.EINVAL, "a user pointer begins a page")
      return self.computer.physical.foreign(address, size)
    left = self.system_limit - sum(process.memory.system_used for process in self.computer.processes)
    if size > left: raise refuse(errno.ENOMEM, f"{left:#x} bytes of system memory are left")
    self.system_used += size
    return self.computer.physical.allocate(size, holder=self.computer)

  def system_pages(self, size: int) -> Frames:
    """Return pages of the kernel, with one user."""
    frames = self.computer.physical.allocate(size, holder=self.computer)
    self.system_used += frames.size
    self.users[frames] += 1
    return frames

  def _add(self, gpu: GpuContext, request: Any, domain: int, frames: Frames) -> None:
    number = next(self.numbers)
    handle = gpu.gpu_id << 32 | number
    mmap_offset = MMAP_TYPE_MMIO | gpu.gpu_id << MMAP_GPU_SHIFT if domain == MMIO_REMAP else number << 40
    if domain == USERPTR: mmap_offset = request.mmap_offset
    self.buffers[handle] = BufferObject(gpu, handle, request.va_addr, pages(request.size), request.flags, domain,
                                        frames,
                                        mmap_offset)
    self.users[frames] += 1
    request.handle, request.mmap_offset = handle, mmap_offset

  def free(self, request: Any) -> None:
    """FreeMemoryOfGpu: free a buffer that is mapped nowhere."""
    buffer = self.find(request.handle, errno.EINVAL)
    if buffer.handle == self.computer.events.page_handle:
      raise refuse(errno.EPERM, "the page of events cannot be freed")
    if buffer.mapped: raise refuse(errno.EBUSY, f"{buffer!r} is mapped")
    del self.buffers[buffer.handle]
    self.release(buffer.frames)

  def release(self, frames: Frames) -> None:
    """Remove one user of these pages."""
    self.users[frames] -= 1
    if self.users[frames]: return
    del self.users[frames]
    gpu = self.vram_frames.pop(frames, None)
    if gpu is not None: gpu.card.vram_used -= frames.size
    elif frames.physical < 1 << 60: self.system_used -= frames.size
    self.computer.forget(frames)
    self.computer.physical.free(frames)

  def find(self, handle: int, number: int) -> BufferObject:
    """Return the buffer with this handle. number: the errno if there is none."""
    self.computer.bound_gpu(handle >> 32)
    buffer = self.buffers.get(handle)
    if buffer is None: raise refuse(number, f"no buffer has the handle {handle:#x}")
    return buffer

  # **** mapping ****

  def map(self, request: Any) -> None:
    """Map a buffer on GPUs. n_success counts the GPUs that are done, also when one fails."""
    devices = self.computer.read_words(request.device_ids_array_ptr, request.n_devices, request.n_success)
    buffer = self.find(request.handle, errno.ENOMEM)
    for number in devices[request.n_success:]:
      self._map_one(buffer, self.computer.bound_gpu(number))
      request.n_success += 1

  def _map_one(self, buffer: BufferObject, gpu: GpuContext) -> None:
    if gpu in buffer.mapped: return
    if gpu is not buffer.gpu and buffer.domain == VRAM and not self.computer.peers:
      raise refuse(errno.EINVAL, "no link between the cards reaches VRAM")
    start, end = buffer.address, buffer.address + buffer.size
    if start % PAGE or start == 0 or end > HIGHEST_ADDRESS:
      raise refuse(errno.EINVAL, f"{start:#x}..{end:#x} are no whole pages of user addresses")
    other = gpu.table.overlaps(start, end)
    if other is not None: raise refuse(errno.EINVAL, f"{start:#x}..{end:#x} overlap {other!r}")
    uncached = bool(buffer.flags & UNCACHED_FLAGS[gpu.chip.generation])
    entry = Range(start, buffer.frames, 0, buffer.size, bool(buffer.flags & WRITABLE), bool(buffer.flags & EXECUTABLE),
                  uncached,
                  buffer.domain != VRAM or buffer.gpu is not gpu, buffer)
    gpu.table.map(entry)
    buffer.mapped[gpu] = entry

  def unmap(self, request: Any) -> None:
    """UnmapMemoryFromGpu: refused for a GPU one of whose queues needs the buffer."""
    devices = self.computer.read_words(request.device_ids_array_ptr, request.n_devices, request.n_success)
    buffer = self.find(request.handle, errno.ENODEV)
    for number in devices[request.n_success:]:
      gpu = self.computer.bound_gpu(number)
      if gpu not in buffer.mapped: raise refuse(errno.EINVAL, f"{buffer!r} is not mapped on {gpu.name}")
      if buffer.uses[gpu]: raise refuse(errno.EBUSY, f"a queue needs {buffer!r}")
      gpu.table.unmap(buffer.address)
      del buffer.mapped[gpu]
      request.n_success += 1

  # **** the program's own view ****

  def mmap(self, file: VirtualFile, gpu: GpuContext, length: int, offset: int, address: int, prot: int,
           flags: int) -> VirtualMapping:
    """The render node's mmap."""
    if not flags & MAP_SHARED: raise refuse(errno.EINVAL, "device memory is mapped with MAP_SHARED")
    for buffer in self.buffers.values():
      if buffer.domain in (VRAM, GTT) and buffer.mmap_offset <= offset < buffer.mmap_offset + buffer.size: break
    else: raise refuse(errno.EINVAL, f"no buffer has the mmap offset {offset:#x}")
    inside = offset - buffer.mmap_offset
    if buffer.gpu is not gpu or gpu.drm is not file: raise refuse(errno.EACCES, "the buffer is that of another file")
    if buffer.domain == VRAM and not buffer.flags & PUBLIC:
      raise refuse(errno.EPERM, "this VRAM was allocated without PUBLIC")
    if inside % PAGE or length <= 0 or inside + length > buffer.size:
      raise refuse(errno.EINVAL, "outside of the buffer")
    memory: HostMapping = self.computer.physical.map(buffer.frames, inside, length, address, prot)
    self.users[buffer.frames] += 1
    return VirtualMapping(self.computer, memory, BufferWatcher(self.computer, buffer, inside, memory.address, length))

  # **** sharing ****

  def export(self, request: Any) -> None:
    """ExportDmabuf: return a descriptor that keeps the pages."""
    buffer = self.find(request.handle, errno.EINVAL)
    if buffer.domain not in (VRAM, GTT): raise refuse(errno.EINVAL, "only VRAM and GTT can be exported")
    request.dmabuf_fd = SharedBuffer(self.computer, buffer).fileno()

  def import_shared(self, request: Any) -> None:
    """ImportDmabuf: make another buffer of the same pages."""
    gpu = self.computer.bound_gpu(request.gpu_id)
    shared = self.computer.descriptor(request.dmabuf_fd)
    if not isinstance(shared, SharedBuffer): raise refuse(errno.EINVAL, "no dma-buf")
    source = shared.buffer
    handle = gpu.gpu_id << 32 | next(self.numbers)
    self.buffers[handle] = BufferObject(gpu, handle, request.va_addr, source.size, source.flags, source.domain,
                                        source.frames,
                                        0)
    self.users[source.frames] += 1
    request.handle = handle

  def available(self, request: Any) -> None:
    """GetAvailableMemory: return the free bytes of VRAM."""
    gpu = self.computer.bound_gpu(request.gpu_id)
    request.available = gpu.chip.vram - gpu.vram_used

class SharedBuffer(VirtualFile):
  """A dma-buf: it keeps the pages of a buffer as long as it is open."""
  def __init__(self, computer: GpuHost, buffer: BufferObject):
    super().__init__(computer, f"dma-buf of {buffer!r}")
    self.buffer, self.memory = buffer, computer.memory
    self.memory.users[buffer.frames] += 1

  def released(self) -> None: self.memory.release(self.buffer.frames)
