"""A computer with virtual NVIDIA GPUs: its files, and the calls of /dev/nvidiactl, /dev/nvidia0 and /dev/nvidia-uvm.

A call whose size is not this version's is refused, as by the kernel's driver. Bindings of files follow
open-gpu-kernel-modules, src/nvidia/arch/nvalloc/unix/src/escape.c.

Each process (`VirtualComputer.process`) has its own objects, address spaces and channels. Processes share the GPUs with
their memory and caches, the numbers that are written to doorbells, and the system memory that GPUs may use. An error
stops only its own channel group.
"""
from __future__ import annotations
import ctypes
import errno
import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tinyhw.autogen.nvidia import rm
from tinyhw.autogen.nvidia.rm import Status
from tinyhw.emulator.checks.order import Order
from tinyhw.emulator.checks.watch import MemoryWatcher
from tinyhw.emulator.files import VirtualComputer, VirtualFile, VirtualMapping, refuse
from tinyhw.emulator.memory.cache import Coherence, drop
from tinyhw.emulator.memory.pages import PageTable
from tinyhw.emulator.memory.physical import PAGE, Frames, pages
from tinyhw.emulator.nvidia.card.engines import DoorbellWatcher, Engines
from tinyhw.emulator.nvidia.card.gpu import GpuHardware
from tinyhw.emulator.nvidia.card.objects import Item, MemoryItem, Objects, Refusal, SpaceItem
from tinyhw.emulator.nvidia.card.port import Caches
from tinyhw.emulator.nvidia.card.uvm import Uvm
from tinyhw.emulator.nvidia.chips import CHIPS

CONTROL, UVM = "/dev/nvidiactl", "/dev/nvidia-uvm"
VERSION = (580, 142)
QUERY_VERSION = ord("2")
FIRST_TOKEN = 0x10000

class GpuHost(VirtualComputer):
  """A box with NVIDIA GPUs. cards: the name of a chip for each. version: of the kernel's driver; peers: cards reach
  each other's memory."""
  def __init__(self, name: str, cards: Sequence[str], seed: int = 0, strict: int = 1,
               version: tuple[int, ...] = VERSION, peers: bool = True):
    super().__init__(name, seed, strict)
    self.version, self.peers = version, peers
    self.structures = rm.structures(version)
    self.coherence = Coherence() if strict else None
    self.gpus = [GpuHardware(name, CHIPS[card], index) for index, card in enumerate(cards)]
    self.caches_of = {gpu: Caches(gpu.name) for gpu in self.gpus}
    self.tokens = itertools.count(FIRST_TOKEN)
    self.texts["/sys/module/nvidia/version"] = ".".join(map(str, version)) + "\n"
    for gpu in self.gpus:
      self.texts[f"/proc/driver/nvidia/gpus/0000:{gpu.bus:02x}:00.0/information"] = gpu.information()
    self.begin_process()

  def begin_process(self) -> None:
    self.order = Order() if self.strict else None
    self.objects, self.uvm, self.engines = Objects(self), Uvm(self), Engines(self)
    self.nodes[CONTROL], self.nodes[UVM] = partial(ControlFile, self, CONTROL), partial(UvmFile, self, UVM)
    for gpu in self.gpus: self.nodes[f"/dev/nvidia{gpu.minor}"] = partial(CardFile, self, gpu)

  def control_file(self, number: int) -> ControlFile:
    """Return the open control file with this descriptor. Refused where there is none."""
    found = self.descriptor(number)
    if not isinstance(found, ControlFile):
      raise Refusal(Status.INVALID_ARGUMENT, f"descriptor {number} is no {CONTROL}")
    return found

  def forget(self, frames: Frames) -> None:
    """Give pages back: no cache keeps them."""
    if self.coherence is None: return
    if self.order is not None: self.order.forget(frames.physical, frames.size)
    self.coherence.forget(frames.physical, frames.size)
    for cache in self.engines.caches(): drop(cache, frames.physical, frames.size)

  def failing(self, number: int, call: str) -> Exception:
    """Return the error of a call that a test makes fail. A Status is the resource manager's answer to a call that the
    kernel accepts.
    """
    return Refusal(number, f"injected into {call}") if isinstance(number, Status) else super().failing(number, call)

  def tables(self) -> list[PageTable]:
    return [item.table for item in self.objects.items.values() if isinstance(item, SpaceItem)]

  def devices_census(self) -> dict[str, int]:
    return {"objects": len(self.objects.items), "ranges": len(self.uvm.ranges), "registered": len(self.uvm.spaces),
            "kernels": len(self.engines.work)}

  def end_process(self) -> None:
    self.uvm.end()
    for item in [item for item in self.objects.items.values() if item.parent is None]: self.objects.remove(item)

class IoctlFile(VirtualFile):
  """A file whose calls are structures with a number. calls: by the number of the structure."""
  calls: dict[int, tuple[Any, Callable[[Any], None]]]
  status = "status"

  def __init__(self, computer: GpuHost, path: str):
    super().__init__(computer, path)
    self.computer = computer

  def find(self, request: int) -> tuple[Any, Callable[[Any], None]]:
    """Return the structure and function of a call, by its number. Raises OSError as the kernel does."""
    number, size = request & 0xFF, request >> 16 & 0x3FFF
    found = self.calls.get(number)
    if request >> 8 & 0xFF != ord("F") or found is None: raise refuse(errno.EINVAL, f"request {request:#x}")
    if size != ctypes.sizeof(found[0]):
      raise refuse(errno.EINVAL, f"{found[0].__name__} has {ctypes.sizeof(found[0])} bytes, not {size}")
    return found

  def ioctl(self, request: int, argument: Any) -> None:
    with self.computer.scheduler.whole():
      kind, function = self.find(request)
      try: self.check(self.called(kind, argument))
      except Refusal as injected: function = partial(_refused, injected)
      self.answer(kind, function, argument)

  def called(self, kind: Any, argument: Any) -> str:
    """Return the name of a call: that of its structure."""
    return str(kind.__name__)

  def answer(self, kind: Any, function: Callable[[Any], None], argument: Any) -> None:
    """Execute a call, and write the status."""
    own = kind()
    # calls of UVM do not tell their size: the kernel would read past the end
    if ctypes.sizeof(argument) < ctypes.sizeof(own):
      raise refuse(errno.EFAULT, f"{kind.__name__} has {ctypes.sizeof(own)} bytes, not {ctypes.sizeof(argument)}")
    ctypes.memmove(ctypes.addressof(own), ctypes.addressof(argument), min(ctypes.sizeof(own), ctypes.sizeof(argument)))
    status = Status.OK
    try: function(own)
    except Refusal as refusal: status = refusal.status
    if hasattr(own, self.status): setattr(own, self.status, int(status))
    elif status: raise refuse(errno.EINVAL, status.name)
    ctypes.memmove(ctypes.addressof(argument), ctypes.addressof(own), min(ctypes.sizeof(own), ctypes.sizeof(argument)))

class MappedFile(IoctlFile):
  """A file through which one mapping can be made. prepared: by RmMapMemory: the object, the offset, the bytes of the
  mapping."""
  def __init__(self, computer: GpuHost, path: str):
    super().__init__(computer, path)
    self.prepared: tuple[Item, int, int] | None = None

  def mmap(self, length: int, offset: int, address: int, prot: int, flags: int) -> VirtualMapping:
    with self.computer.scheduler.whole():
      self.check("mmap")
      if self.prepared is None: raise refuse(errno.EINVAL, "no mapping is prepared: RmMapMemory")
      item, start, most = self.prepared
      if offset or length > pages(most):
        raise refuse(errno.EINVAL, f"{length:#x} bytes at {offset:#x} of a mapping of {most:#x}")
      if not isinstance(item, MemoryItem): return self.usermode(length, address, prot)
      memory = self.computer.physical.map(item.frames, start, length, address, prot)
      item.users += 1
      return VirtualMapping(self.computer, memory, MemoryWatcher(self.computer, item.frames, start, memory.address,
                                                                 length, item, item.release))

  def usermode(self, length: int, address: int, prot: int) -> VirtualMapping:
    """Map the page of doorbells."""
    raise refuse(errno.EINVAL, "registers are mapped through a card's file")

class ControlFile(MappedFile):
  """/dev/nvidiactl. clients: those that were made through it. They end with it."""
  def __init__(self, computer: GpuHost, path: str):
    super().__init__(computer, path)
    s, objects = computer.structures, computer.objects
    self.clients: list[int] = []
    self.calls = {kind.NUMBER: (kind, function) for kind, function in (
      (s.RmAlloc, self._alloc), (s.RmControl, objects.control), (s.RmFree, self._free), (s.RmMapMemory, self._map),
      (s.CheckVersion, self._version))}

  def find(self, request: int) -> tuple[Any, Callable[[Any], None]]:
    if request & 0xFFFF == ord("F") << 8 | self.computer.structures.CardInfo.NUMBER:
      count = (request >> 16 & 0x3FFF) // ctypes.sizeof(self.computer.structures.CardInfo)
      if count < len(self.computer.gpus): raise refuse(errno.EINVAL, "too short a list of cards")
      return self.computer.structures.CardInfo * count, self._cards
    return super().find(request)

  def called(self, kind: Any, argument: Any) -> str:
    """Return the name of a call. A control has the name of its own structure."""
    if kind is self.computer.structures.RmControl and argument.cmd in self.computer.objects.controls:
      return str(self.computer.objects.controls[argument.cmd][0].__name__)
    return (str(self.computer.structures.CardInfo.__name__) if "CardInfo" in kind.__name__
            else super().called(kind, argument))

  def _alloc(self, request: Any) -> None:
    self.computer.objects.alloc(request)
    if request.hClass == rm.ROOT: self.clients.append(request.hObjectNew)

  def _free(self, request: Any) -> None:
    self.computer.objects.free(request)
    if request.hObjectOld in self.clients: self.clients.remove(request.hObjectOld)

  def _version(self, request: Any) -> None:
    """Check the version. Source: open-gpu-kernel-modules, src/nvidia/arch/nvalloc/unix/src/osapi.c,
    rm_perform_version_check.
    """
    text = ".".join(map(str, self.computer.version)).encode()
    same = bytes(request.versionString).rstrip(b"\0") == text
    if request.cmd != QUERY_VERSION and not same:
      raise Refusal(Status.INVALID_ARGUMENT, "library and kernel module are of different versions")
    request.versionString[:len(text)], request.reply = text, 1

  def _cards(self, request: Any) -> None:
    for entry, gpu in zip(request, self.computer.gpus):
      entry.valid, entry.bus, entry.vendor_id, entry.device_id = 1, gpu.bus, 0x10DE, gpu.chip.device_id
      entry.gpu_id, entry.minor_number, entry.fb_size = gpu.gpu_id, gpu.minor, gpu.chip.vram

  def _map(self, request: Any) -> None:
    """Prepare a mapping, which the named file then makes: one for each file."""
    objects = self.computer.objects
    objects.client(request.hClient)
    file, item = self.computer.descriptor(request.fd), objects.find(request.hMemory)
    if isinstance(item, MemoryItem) and not item.own:
      if not isinstance(file, ControlFile):
        raise Refusal(Status.INVALID_ARGUMENT, f"host memory is mapped through a file of {CONTROL}")
    elif not isinstance(file, CardFile) or file.control is None:
      raise Refusal(Status.INVALID_ARGUMENT, f"descriptor {request.fd} is no registered card")
    if file.prepared is not None: raise Refusal(Status.STATE_IN_USE, "the file has a mapping")
    if isinstance(item, MemoryItem):
      if request.offset % PAGE or request.offset + request.length > item.frames.size:
        raise Refusal(Status.INVALID_LIMIT, "beyond the memory's end")
    elif item.gpu is None or item.kind not in item.gpu.chip.usermode:
      raise Refusal(Status.INVALID_OBJECT_HANDLE, f"{item!r} cannot be mapped")
    file.prepared = item, int(request.offset), int(request.length)

  def released(self) -> None:
    for handle in self.clients:
      if handle in self.computer.objects.items: self.computer.objects.remove(self.computer.objects.items[handle])

class CardFile(MappedFile):
  """/dev/nvidia<minor>. control: the control file that it is bound to."""
  def __init__(self, computer: GpuHost, gpu: GpuHardware):
    super().__init__(computer, f"/dev/nvidia{gpu.minor}")
    self.gpu = gpu
    self.control: ControlFile | None = None
    s = computer.structures
    self.calls = {kind.NUMBER: (kind, function) for kind, function in ((s.RegisterFd, self._register),
                                                                       (s.RmAllocMemory, computer.objects.pin))}

  def _register(self, request: Any) -> None:
    if self.control is not None: raise refuse(errno.EINVAL, "the file is registered")
    found = self.computer.descriptor(request.ctl_fd)
    if not isinstance(found, ControlFile): raise refuse(errno.EINVAL, f"descriptor {request.ctl_fd} is no control file")
    self.control = found

  def usermode(self, length: int, address: int, prot: int) -> VirtualMapping:
    frames = self.computer.physical.allocate(length, holder=self.computer)
    memory = self.computer.physical.map(frames, 0, length, address, prot)
    return VirtualMapping(self.computer, memory, DoorbellWatcher(self.computer, self.gpu, frames))

class UvmFile(IoctlFile):
  """/dev/nvidia-uvm. Its calls have plain numbers, and the kernel copies as many bytes as this version's structures
  have.

  begun: by UvmInitialize. holds: the file for which this one holds the process's memory, by UvmMmInitialize. Source:
  kernel-open/nvidia-uvm/uvm.c.
  """
  status = "rmStatus"

  def __init__(self, computer: GpuHost, path: str):
    super().__init__(computer, path)
    self.begun = False
    self.holds: UvmFile | None = None
    s, uvm = computer.structures, computer.uvm
    self.calls = {kind.NUMBER: (kind, function) for kind, function in (
      (s.UvmInitialize, self._initialize), (s.UvmMmInitialize, self._hold), (s.UvmRegisterGpu, uvm.register_gpu),
      (s.UvmUnregisterGpu, uvm.unregister_gpu),
      (s.UvmRegisterVaSpace, uvm.register_space), (s.UvmUnregisterVaSpace, uvm.unregister_space),
      (s.UvmRegisterChannel, uvm.register_channel),
      (s.UvmUnregisterChannel, uvm.unregister_channel), (s.UvmCreateExternal, uvm.create), (s.UvmMapExternal, uvm.map),
      (s.UvmUnmapExternal, uvm.unmap), (s.UvmFree, uvm.free), (s.UvmEnablePeerAccess, uvm.enable_peers))}

  def find(self, request: int) -> tuple[Any, Callable[[Any], None]]:
    found = self.calls.get(request)
    if found is None: raise refuse(errno.EINVAL, f"UVM call {request:#x}")
    first = self.computer.structures.UvmInitialize, self.computer.structures.UvmMmInitialize
    if not self.begun and found[0] not in first: raise refuse(errno.EPERM, "UvmInitialize comes first")
    return found

  def _initialize(self, request: Any) -> None: self.begun = True

  def _hold(self, request: Any) -> None:
    other = self.computer.descriptor(request.uvmFd)
    if not isinstance(other, UvmFile) or not other.begun:
      raise Refusal(Status.INVALID_ARGUMENT, f"descriptor {request.uvmFd} is no {UVM} that has begun")
    if self.begun or self.holds is not None or self.computer.uvm.held:
      raise Refusal(Status.INVALID_STATE, "the memory is held")
    self.holds, self.computer.uvm.held = other, True

  def released(self) -> None:
    if self.holds is not None: self.computer.uvm.held = False
    if self.begun: self.computer.uvm.end()

def _refused(injected: Refusal, request: Any) -> None: raise injected
