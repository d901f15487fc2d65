"""The process's connection to the kernel's compute driver: /dev/kfd, the render nodes of the GPUs in use, and their
memory.

KFD knows one address space per process and GPU. It belongs to the first render node that the process passes, as long as
the process lives. So there is one `Kfd` for a computer. It keeps its files open, and devices that are closed
and opened again find it. Source: Linux, kfd_chardev.c.
"""
from __future__ import annotations
import contextlib
import ctypes
import errno
import os
from typing import Any

from tinyhw.autogen.amd import kfd_ioctl
from tinyhw.drivers.amd.topology import KFD, Gpu
from tinyhw.drivers.gpu.memory import HUGE_PAGE, Memory
from tinyhw.drivers.linux.files import (PAGE, PROT_NONE, RESERVED, HostFiles, HostMapping, Mapping, Node, Refused,
                                        Returns, Unreturned, map_memory, refusal)
from tinyhw.errors import DeviceError

OLDEST = (1, 11)          # the oldest interface whose structures were compared with ours
# From this version on, the process resets its debugger settings. For KFD the settings are those of a new process with
# and without the call (mode_mask 0 is its runtime_disable). But firmware that schedules processes (MES, from GC 11 on)
# learns them by this call, and may still have those of an ended process. Source: Linux, kfd_chardev.c, kfd_process.c,
# kfd_debug.c. guess: it works without the call
RUNTIME_ENABLE = (1, 14)
DOORBELL_BYTES = 8192     # of a GPU's doorbells in a process: 1024 of 8 bytes
ADVICE = {
  "open": {errno.EPERM: "the kernel takes 64-bit processes, and containers to which the device was given "
           "(--device=/dev/kfd --device=/dev/dri)",
           errno.ENOENT: "load the kernel's amdgpu driver (modprobe amdgpu)"},
  "AcquireVm": {errno.EBUSY: "this process has used the GPU through another driver; use one of them, or another "
                "process"},
  "AllocMemoryOfGpu": {errno.ENOMEM: "drop references to tensors that are not needed, or use a smaller batch",
                       errno.EINVAL: "the kernel refuses the kind of memory; enable Resizable BAR in the firmware's "
                       "setup if it is the GPU's own"},
  "MapMemoryToGpu": {errno.ENOMEM: "the GPU cannot reach the memory: between GPUs that wants Resizable BAR and "
                     "peer-to-peer access"},
  "CreateQueue": {errno.EINVAL: "the kernel wants other sizes for the queue's memory; report this with the kernel's "
                  "version and dmesg",
                  errno.ENOMEM: "other processes have all queues of the GPU; end one of them",
                  errno.EPERM: "processes have as many queues as the kernel allows a GPU "
                  "(amdgpu.max_num_of_queues_per_device); end one of them"},
  "ImportDmabuf": {errno.EINVAL: "the GPUs cannot see each other's memory; copy through the host"},
}
_F = kfd_ioctl

class MemoryKind:
  """A kind of memory: flags of AllocMemoryOfGpu, and whether the processor sees it."""
  def __init__(self, name: str, flags: int, visible: bool):
    self.name, self.flags, self.visible = name, flags, visible
  def __repr__(self) -> str: return self.name

_ALL = _F.KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | _F.KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE
VRAM = MemoryKind("VRAM", _ALL | _F.KFD_IOC_ALLOC_MEM_FLAGS_VRAM, visible=False)
CODE = MemoryKind("VRAM for code", VRAM.flags | _F.KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE, visible=False)
# Host memory that both sides see at once: no GPU cache keeps it, and the processor's caches are snooped. For rings,
# commands, arguments, signals.
HOST = MemoryKind("host memory", _ALL | _F.KFD_IOC_ALLOC_MEM_FLAGS_GTT | _F.KFD_IOC_ALLOC_MEM_FLAGS_COHERENT
                  | _F.KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED |
                  _F.KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE | _F.KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC, visible=True)
USER = MemoryKind("memory of the program",
                  _ALL | _F.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | _F.KFD_IOC_ALLOC_MEM_FLAGS_COHERENT,
                  visible=False)

class Reserved(Memory):
  """Memory at reserved addresses of the process. seen_by: gpu_ids."""
  def __init__(self, kind: MemoryKind, address: int, size: int, label: str, returns: Returns, handle: int,
               reserved: HostMapping):
    super().__init__(kind, address, size, label, returns, handle)
    self.reserved = reserved

  def abandon(self) -> None:
    """Free the process's part of it. The kernel keeps the rest until the process ends."""
    self.returns.steps.clear()
    if self.found is not None: self.found.close()
    self.reserved.close()

class Kfd:
  """/dev/kfd of this process. The caller of each method owns the result."""
  def __init__(self, box: HostFiles):
    self.box = box
    self.renders: dict[int, Node] = {}     # by gpu_id; kept until the process ends, see the top of the file
    self.kept: dict[int, Any] = {}         # by gpu_id: state that a closed device leaves to the next one (device.py)
    # kept until the process ends: the kernel takes one page of events from a process, and never releases it
    self.event_page: Reserved | None = None
    self.events_begun = False
    self.unreturned = Unreturned()         # resources that the kernel refused to take back
    with contextlib.ExitStack() as undo:
      self.node = Node(box, KFD, ADVICE)
      undo.callback(self.node.close)
      version = kfd_ioctl.GetVersion()
      self.node.ioctl(version)
      self.version = (version.major_version, version.minor_version)
      if self.version[0] != OLDEST[0] or self.version < OLDEST:
        raise DeviceError(f"the kernel's compute driver has interface {self.version[0]}.{self.version[1]}, and "
                          f"{OLDEST[0]}.{OLDEST[1]} is the oldest "
                          "that is driven; update the kernel to 6.1 or newer")
      if self.version >= RUNTIME_ENABLE: self.node.ioctl(kfd_ioctl.RuntimeEnable(mode_mask=0))
      undo.pop_all()

  def acquire(self, gpu: Gpu) -> None:
    """Open the GPU's render node and bind its address space to this process. The binding is permanent."""
    if gpu.gpu_id in self.renders: return
    render = Node(self.box, gpu.render_node, ADVICE)
    try: self.node.ioctl(kfd_ioctl.AcquireVm(drm_fd=render.fileno(), gpu_id=gpu.gpu_id))
    except BaseException:
      render.close()
      raise
    self.renders[gpu.gpu_id] = render

  def allocate(self, gpu: Gpu, size: int, kind: MemoryKind, label: str, host: int = 0) -> Reserved:
    """Allocate `size` bytes (rounded up to pages) that the GPU sees. Source: kfd_ioctl.h,
    AMDKFD_IOC_ALLOC_MEMORY_OF_GPU.

    Its address is free in the process, and at a huge page if it fills one. The page after it stays unused. Contents are
    undefined. host: for USER memory, the address of the program's pages. The GPU sees them at another address, so that
    a page may be used twice. Raises Refused, with errno ENOMEM if there is no memory.
    """
    self.unreturned.offer_again()
    size = -(-size // PAGE) * PAGE
    returns = Returns(self.unreturned)
    try:
      step = HUGE_PAGE if size >= HUGE_PAGE else PAGE
      try: reserved = map_memory(size + step, prot=PROT_NONE, flags=RESERVED)  # at least one page after it stays unused
      except OSError as error: raise refusal(f"reserving {size:#x} bytes of addresses", error) from error
      returns.add(reserved.close)
      address = -(-reserved.address // step) * step
      request = kfd_ioctl.AllocMemoryOfGpu(va_addr=address, size=size, gpu_id=gpu.gpu_id, flags=kind.flags,
                                           mmap_offset=host)
      self.node.ioctl(request)
      returns.add(lambda: self.node.ioctl(kfd_ioctl.FreeMemoryOfGpu(handle=request.handle)))
      memory = Reserved(kind, address, size, label, returns, request.handle, reserved)
      returns.add(lambda: self.unshare(memory))
      self.share(memory, gpu)
      if kind.visible:
        memory.found = self.renders[gpu.gpu_id].mmap(size, request.mmap_offset, address)
        returns.add(memory.found.close)
    except BaseException:
      with contextlib.suppress(Refused): returns.close()  # report the first error
      raise
    return memory

  def share(self, memory: Memory, gpu: Gpu) -> None:
    """Map memory, also that of another GPU, for a GPU at the same address. Raises Refused if the GPU cannot see it."""
    if gpu.gpu_id in memory.seen_by: return
    ids = (ctypes.c_uint32 * 1)(gpu.gpu_id)
    self.node.ioctl(kfd_ioctl.MapMemoryToGpu(handle=memory.handle, device_ids_array_ptr=ctypes.addressof(ids),
                                             n_devices=1))
    memory.seen_by.append(gpu.gpu_id)

  def unshare(self, memory: Memory) -> None:
    """Unmap the memory from all GPUs."""
    if not memory.seen_by: return
    ids = (ctypes.c_uint32 * len(memory.seen_by))(*memory.seen_by)
    self.node.ioctl(kfd_ioctl.UnmapMemoryFromGpu(handle=memory.handle, device_ids_array_ptr=ctypes.addressof(ids),
                                                 n_devices=len(memory.seen_by)))
    memory.seen_by.clear()

  def doorbells(self, offset: int) -> Mapping:
    """Return the two pages of a GPU's doorbells in this process, from the doorbell_offset of one of its queues."""
    return self.node.mmap(DOORBELL_BYTES, offset & ~(DOORBELL_BYTES - 1))

  def close(self) -> None:
    """Close all files. Only at the end of the process: a GPU's address space cannot be bound again."""
    for left in self.kept.values(): left.close()
    self.kept.clear()
    self.unreturned.offer_again()
    if self.event_page is not None: self.event_page.abandon()  # KFD refuses to free it: it writes there itself
    self.event_page = None
    for render in self.renders.values(): render.close()
    self.renders.clear()
    self.node.close()

_connections: dict[tuple[int, int], Kfd] = {}

def connect(box: HostFiles) -> Kfd:
  """Return the connection of this process, made at the first call. The child of a fork makes its own."""
  key = os.getpid(), id(box)
  found = _connections.get(key)
  if found is None: found = _connections[key] = Kfd(box)  # it holds the box, so the id stays unique
  return found

def forget(box: HostFiles) -> None:
  """Close the connection, for tests that make computers of their own."""
  found = _connections.pop((os.getpid(), id(box)), None)
  if found is not None: found.close()
