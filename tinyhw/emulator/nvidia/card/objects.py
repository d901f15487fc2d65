"""The resource manager of the virtual kernel driver: its objects, the checks before it makes one, and its controls.

Statuses follow open-gpu-kernel-modules, src/nvidia/src/kernel/rmapi/{alloc_free,control}.c, gpu/fifo/kernel_channel.c
and mem_mgr. A refusal is a `Refusal` with a status. The files turn it into the answer of a call.
"""
from __future__ import annotations
import ctypes
import itertools
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tinyhw.autogen.nvidia import methods, rm
from tinyhw.autogen.nvidia.rm import Status
from tinyhw.emulator.errors import PacketError, PageFault
from tinyhw.emulator.memory.pages import PageTable
from tinyhw.emulator.memory.physical import PAGE, Frames, pages
from tinyhw.emulator.nvidia.card.gpu import ComputeMode

if TYPE_CHECKING:
  from tinyhw.emulator.nvidia.card.computer import GpuHost
  from tinyhw.emulator.nvidia.card.gpu import GpuHardware

FIRST_CLIENT, FIRST_HANDLE = 0xC1D00000, 0xCAF00000  # of handles that RM makes: rs_server.h, rs_client.h
SYSTEM_LIMIT = 4 << 30
EXTERNALLY_OWNED = rm.flags("NV_VASPACE_ALLOCATION_FLAGS_", "IS_EXTERNALLY_OWNED")
USERD_UNIT = methods.USERD_BYTES
MOST_ENTRIES = 1 << 21
GRAPHICS, COPY_ENGINES = rm.flags("NV2080_ENGINE_TYPE_", "GRAPHICS"), range(rm.flags("NV2080_ENGINE_TYPE_", "COPY0"),
                                                                            rm.flags("NV2080_ENGINE_TYPE_", "COPY0")
                                                                            + 10)
MOST_CHANNELS = 2048   # of a GPU, of all processes: the size of its list of channels that can run

class Refusal(Exception):
  """A refused call. why: for people who debug the virtual driver; a real one at most logs it."""
  def __init__(self, status: Status, why: str = ""):
    super().__init__(f"{status.name}: {why}")
    self.status, self.why = status, why

class Item:
  """An object: its class, its parent, and its children."""
  def __init__(self, handle: int, kind: int, parent: Item | None, gpu: GpuHardware | None):
    self.handle, self.kind, self.parent, self.gpu = handle, kind, parent, gpu
    self.children: list[Item] = []

  def above(self) -> Iterator[Item]:
    """Yield its parent, the parent of that, and so on."""
    found = self.parent
    while found is not None:
      yield found
      found = found.parent

  def freed(self) -> None:
    """Release its resources: it is freed."""

  def __repr__(self) -> str: return f"object {self.handle:#x} of class {self.kind:#x}"

class MemoryItem(Item):
  """Memory. frames: its pages. users: the object itself, mappings of GPUs and of the program. The pages stay until the
  last user is gone."""
  def __init__(self, handle: int, kind: int, parent: Item, gpu: GpuHardware, frames: Frames, objects: Objects):
    super().__init__(handle, kind, parent, gpu)
    self.frames, self.objects, self.users = frames, objects, 1

  @property
  def own(self) -> bool:
    """Return whether it is the GPU's own memory."""
    return self.kind == rm.MEMORY_LOCAL

  def release(self) -> None:
    self.users -= 1
    if self.users == 0: self.objects.give_back(self)

  def freed(self) -> None: self.release()
  def __repr__(self) -> str:
    return f"{'memory of ' + self.gpu.name if self.own and self.gpu else 'host memory'} {self.handle:#x}"

class SubdeviceItem(Item):
  """One GPU of a device. A device has one GPU."""
  def __init__(self, handle: int, parent: Item, gpu: GpuHardware):
    super().__init__(handle, rm.SUBDEVICE, parent, gpu)
    self.card = gpu

  @property
  def client(self) -> Item:
    """Return its client."""
    *_, found = self.above()
    return found

  def freed(self) -> None:
    if self.card.reserved is self.client: self.card.reserved = None

class SpaceItem(Item):
  """An address space of a GPU. external: unified memory manages it."""
  def __init__(self, handle: int, parent: Item, gpu: GpuHardware, external: bool):
    super().__init__(handle, rm.VA_SPACE, parent, gpu)
    self.table, self.external = PageTable(), external

class GroupItem(Item):
  """A channel group. engine: type of the engine of its channels; running: they have been scheduled. fault: the access
  that stopped it."""
  def __init__(self, handle: int, parent: Item, gpu: GpuHardware, space: SpaceItem, engine: int):
    super().__init__(handle, rm.CHANNEL_GROUP, parent, gpu)
    self.space, self.engine, self.running = space, engine, False
    self.fault: PageFault | None = None

class ChannelItem(Item):
  """A channel: addresses of its ring and its pointers. engine: the classes of its engine objects; registered: memory
  for the engines' state is set up."""
  def __init__(self, handle: int, kind: int, group: GroupItem, token: int, request: Any, userd: MemoryItem, place: int):
    super().__init__(handle, kind, group, group.gpu)
    self.group, self.token, self.ring, self.entries = group, token, int(request.gpFifoOffset), int(
      request.gpFifoEntries)
    self.userd, self.place = userd, place
    self.engines: set[int] = set()
    self.registered = False
    self.notifier: MemoryItem | None = None
    self.stop: Callable[[], None] = lambda: None

  def freed(self) -> None: self.stop()

class Objects:
  """All objects of the process."""
  def __init__(self, computer: GpuHost):
    self.computer = computer
    self.items: dict[int, Item] = {}
    self.handles, self.clients = itertools.count(FIRST_HANDLE), itertools.count(FIRST_CLIENT)
    self.tokens = computer.tokens
    self.system_used = 0
    s = computer.structures
    self.makers: dict[int, tuple[Any, tuple[int, ...], Callable[[int, Item, Any], Item]]] = {
      rm.DEVICE: (s.DeviceParams, (rm.ROOT,), self._device),
      rm.SUBDEVICE: (s.SubdeviceParams, (rm.DEVICE,), self._subdevice),
      rm.VA_SPACE: (s.VaSpaceParams, (rm.DEVICE,), self._space),
      rm.CHANNEL_GROUP: (s.ChannelGroupParams, (rm.DEVICE,), self._group),
      rm.CONTEXT_SHARE: (s.ContextShareParams, (rm.CHANNEL_GROUP,), self._share),
      rm.MEMORY_LOCAL: (s.MemoryParams, (rm.DEVICE,), self._video),
      rm.MEMORY_SYSTEM: (s.MemoryParams, (rm.DEVICE,), self._system)}
    self.controls: dict[int, tuple[Any, Callable[[Item, Any], None]]] = {
      kind.NUMBER: (kind, function) for kind, function in (
        (s.GetIdInfo, self._id_info), (s.GetClassList, self._class_list), (s.GetNameString, self._name),
        (s.GetGidInfo, self._gid),
        (s.AcquireComputeModeReservation, self._reserve), (s.GetProbedIds, self._probed),
        (s.GrGetInfo, self._graphics_info),
        (s.GrGetGpcMask, self._gpcs), (s.GrGetTpcMask, self._tpcs), (s.FbGetInfo, self._memory_info),
        (s.GroupSchedule, self._schedule),
        (s.GetWorkSubmitToken, self._token), (s.GetMmuFaultInfo, self._fault_info), (s.GetTimeCorrelation, self._times),
        (s.GetArchInfo, self._architecture))}

  # **** calls ****

  def find(self, handle: int, kind: type[Item] = Item, status: Status = Status.INVALID_OBJECT_HANDLE) -> Any:
    """Return an object. Refused where there is none of that kind."""
    found = self.items.get(handle)
    if not isinstance(found, kind): raise Refusal(status, f"{handle:#x} is {found!r}")
    return found

  def alloc(self, request: Any) -> None:
    """RmAlloc."""
    handle = request.hObjectNew or next(self.clients if request.hClass == rm.ROOT else self.handles)
    if handle in self.items: raise Refusal(Status.INSERT_DUPLICATE_NAME, f"the handle {handle:#x} is taken")
    if request.hClass == rm.ROOT: made = Item(handle, rm.ROOT, None, None)
    else:
      self.client(request.hRoot)
      made = self._make(handle, self.find(request.hObjectParent, status=Status.INVALID_OBJECT_PARENT), request)
      assert made.parent is not None
      made.parent.children.append(made)
    self.items[handle] = made
    request.hObjectNew = handle

  def client(self, handle: int) -> Item:
    """Return the client that a call names."""
    found = self.items.get(handle)
    if found is None or found.kind != rm.ROOT: raise Refusal(Status.INVALID_CLIENT, f"{handle:#x}")
    return found

  def _make(self, handle: int, parent: Item, request: Any) -> Item:
    kind, gpu = request.hClass, parent.gpu
    if gpu is not None and kind not in gpu.chip.classes:
      raise Refusal(Status.INVALID_CLASS, f"{gpu.name} has no class {kind:#x}")
    if kind in self.makers:
      structure, parents, maker = self.makers[kind]
      self._below(parent, parents, kind)
      return maker(handle, parent, self._parameters(request, structure))
    if gpu is None: raise Refusal(Status.INVALID_CLASS, f"{kind:#x}")
    if kind in gpu.chip.usermode:
      self._below(parent, (rm.SUBDEVICE,), kind)
      # without parameters it is the page among the registers
      given = kind >= rm.HOPPER_USERMODE and request.pAllocParms
      if given and self._parameters(request, self.computer.structures.UsermodeParams).bPriv:
        raise Refusal(Status.INSUFFICIENT_PERMISSIONS, "bPriv")
      return Item(handle, kind, parent, gpu)
    if kind in gpu.chip.channels:
      self._below(parent, (rm.CHANNEL_GROUP,), kind)
      return self._channel(handle, kind, parent, self._parameters(request, self.computer.structures.ChannelParams))
    if kind == gpu.chip.compute or kind in gpu.chip.copies:
      if not isinstance(parent, ChannelItem):
        raise Refusal(Status.INVALID_OBJECT_PARENT, f"an engine object below {parent!r}")
      if kind == gpu.chip.compute and parent.group.engine != GRAPHICS:
        raise Refusal(Status.INVALID_CLASS, "a compute object in a group of copies")
      parent.engines.add(kind)
      return Item(handle, kind, parent, gpu)
    raise Refusal(Status.NOT_SUPPORTED, f"class {kind:#x} is not emulated")

  def _below(self, parent: Item, kinds: tuple[int, ...], kind: int) -> None:
    if parent.kind not in kinds:
      raise Refusal(Status.INVALID_OBJECT_PARENT, f"an object of class {kind:#x} below {parent!r}")

  def _parameters(self, request: Any, structure: Any) -> Any:
    """Return the parameters. RM reads as many bytes as it knows, whatever the caller says."""
    if not request.pAllocParms: raise Refusal(Status.INVALID_PARAM_STRUCT, f"{structure.__name__} is missing")
    return structure.from_address(request.pAllocParms)

  def control(self, request: Any) -> None:
    """RmControl: the size must be that of this version."""
    self.client(request.hClient)
    item, found = self.find(request.hObject), self.controls.get(request.cmd)
    if found is None: raise Refusal(Status.NOT_SUPPORTED, f"the control {request.cmd:#x} is not emulated")
    structure, function = found
    if request.paramsSize != ctypes.sizeof(structure):
      raise Refusal(Status.INVALID_ARGUMENT, f"{structure.__name__} has {ctypes.sizeof(structure)} bytes, not "
                    f"{request.paramsSize}")
    if bool(request.params) != bool(request.paramsSize):
      raise Refusal(Status.INVALID_ARGUMENT, f"{request.paramsSize} bytes at {request.params:#x}")
    function(item, structure.from_address(request.params) if request.params else None)

  def free(self, request: Any) -> None:
    """RmFree: free an object and all its descendants, the youngest first."""
    self.client(request.hRoot)
    self.remove(self.find(request.hObjectOld))

  def remove(self, item: Item) -> None:
    for child in reversed(list(item.children)): self.remove(child)
    if item.parent is not None: item.parent.children.remove(item)
    del self.items[item.handle]
    item.freed()

  # **** makers ****

  def _device(self, handle: int, parent: Item, request: Any) -> Item:
    if request.deviceId >= len(self.computer.gpus): raise Refusal(Status.INVALID_DEVICE, f"instance {request.deviceId}")
    gpu = self.computer.gpus[request.deviceId]
    return Item(handle, rm.DEVICE, parent, gpu)

  def _subdevice(self, handle: int, parent: Item, request: Any) -> Item:
    assert parent.gpu is not None
    return SubdeviceItem(handle, parent, parent.gpu)

  def _space(self, handle: int, parent: Item, request: Any) -> Item:
    assert parent.gpu is not None
    return SpaceItem(handle, parent, parent.gpu, bool(request.flags & EXTERNALLY_OWNED))

  def _group(self, handle: int, parent: Item, request: Any) -> Item:
    assert parent.gpu is not None
    if request.engineType not in (GRAPHICS, *COPY_ENGINES):
      raise Refusal(Status.INVALID_ARGUMENT, f"a group of engine {request.engineType}")
    return GroupItem(handle, parent, parent.gpu, self.find(request.hVASpace, SpaceItem), int(request.engineType))

  def _share(self, handle: int, parent: Item, request: Any) -> Item:
    space = self.find(request.hVASpace, SpaceItem)
    assert isinstance(parent, GroupItem)
    if space is not parent.space:
      raise Refusal(Status.INVALID_ARGUMENT, "the context share has another address space than its group")
    return Item(handle, rm.CONTEXT_SHARE, parent, parent.gpu)

  def _channel(self, handle: int, kind: int, group: Item, request: Any) -> Item:
    assert isinstance(group, GroupItem)
    if request.hVASpace: raise Refusal(Status.INVALID_ARGUMENT, "hVASpace of a channel in a group must be 0")
    if request.hContextShare:
      share = self.find(request.hContextShare)
      if share.kind != rm.CONTEXT_SHARE or share.parent is not group:
        raise Refusal(Status.INVALID_OBJECT_HANDLE, "hContextShare is not of the group")
    if not 0 < request.gpFifoEntries <= MOST_ENTRIES or request.gpFifoEntries & request.gpFifoEntries - 1:
      raise Refusal(Status.INVALID_ARGUMENT, f"a ring of {request.gpFifoEntries} entries")
    userd, place = self.find(request.hUserdMemory[0], MemoryItem), int(request.userdOffset[0])
    if place % USERD_UNIT or place + USERD_UNIT > userd.frames.size:
      raise Refusal(Status.INVALID_ARGUMENT, f"USERD at {place:#x} of {userd!r}")
    end = request.gpFifoOffset + 8 * request.gpFifoEntries
    found = group.space.table.find(request.gpFifoOffset)
    if self.computer.strict and (found is None or end > found.end):
      raise PacketError(f"the ring at {request.gpFifoOffset:#x} is not mapped in the channel's address space; map it "
                        f"before the channel is made")
    everybodys = (item for process in self.computer.processes for item in process.objects.items.values()
                  if item.gpu is group.gpu)
    if sum(isinstance(item, ChannelItem) for item in everybodys) >= MOST_CHANNELS:
      raise Refusal(Status.NO_FREE_FIFOS, f"{MOST_CHANNELS} channels")
    made = ChannelItem(handle, kind, group, next(self.tokens), request, userd, place)
    if request.hObjectError: made.notifier = self.find(request.hObjectError, MemoryItem)
    return made

  def _video(self, handle: int, parent: Item, request: Any) -> Item:
    gpu = parent.gpu
    assert gpu is not None
    if request.size == 0 or request.alignment and request.alignment & request.alignment - 1:
      raise Refusal(Status.INVALID_ARGUMENT, "size")
    size = pages(request.size)
    if gpu.vram_used + size > gpu.chip.vram:
      raise Refusal(Status.NO_MEMORY, f"{gpu.chip.vram - gpu.vram_used:#x} bytes are left")
    gpu.vram_used += size
    return MemoryItem(handle, rm.MEMORY_LOCAL, parent, gpu, self._pages(size, cleared=not self.computer.strict), self)

  def _system(self, handle: int, parent: Item, request: Any) -> Item:
    assert parent.gpu is not None
    if request.size == 0: raise Refusal(Status.INVALID_ARGUMENT, "size 0")
    if request.attr >> 25 & 3 != 1:
      raise Refusal(Status.INVALID_ARGUMENT, "host memory has another LOCATION among its attributes")
    size = pages(request.size)
    if sum(process.objects.system_used for process in self.computer.processes) + size > SYSTEM_LIMIT:
      raise Refusal(Status.NO_MEMORY)
    self.system_used += size
    return MemoryItem(handle, rm.MEMORY_SYSTEM, parent, parent.gpu, self._pages(size), self)

  def _pages(self, size: int, cleared: bool = True) -> Frames:
    return self.computer.physical.allocate(size, cleared, holder=self.computer)

  def pin(self, request: Any) -> None:
    """RmAllocMemory: make an object of pages of the program."""
    self.client(request.hRoot)
    parent = self.find(request.hObjectParent, status=Status.INVALID_OBJECT_PARENT)
    self._below(parent, (rm.DEVICE,), request.hClass)
    if request.hClass != rm.MEMORY_OF_PROGRAM: raise Refusal(Status.INVALID_CLASS, f"{request.hClass:#x}")
    if request.pMemory % PAGE or (request.limit + 1) % PAGE: raise Refusal(Status.INVALID_LIMIT, "no whole pages")
    if not request.hObjectNew: raise Refusal(Status.INVALID_OBJECT_HANDLE, "hObjectNew")
    if request.hObjectNew in self.items:
      raise Refusal(Status.INSERT_DUPLICATE_NAME, f"the handle {request.hObjectNew:#x} is taken")
    assert parent.gpu is not None
    frames = self.computer.physical.foreign(request.pMemory, request.limit + 1)
    made = MemoryItem(request.hObjectNew, request.hClass, parent, parent.gpu, frames, self)
    parent.children.append(made)
    self.items[made.handle] = made

  def give_back(self, item: MemoryItem) -> None:
    """Free the pages: they have no user any more."""
    if item.own and item.gpu is not None: item.gpu.vram_used -= item.frames.size
    elif item.kind == rm.MEMORY_SYSTEM: self.system_used -= item.frames.size
    self.computer.forget(item.frames)
    self.computer.physical.free(item.frames)

  # **** controls ****

  def _gpu(self, item: Item) -> GpuHardware:
    if item.gpu is None: raise Refusal(Status.INVALID_OBJECT_HANDLE, f"{item!r} has no GPU")
    return item.gpu

  def _id_info(self, item: Item, request: Any) -> None:
    gpu = next((gpu for gpu in self.computer.gpus if gpu.gpu_id == request.gpuId), None)
    if gpu is None: raise Refusal(Status.INVALID_ARGUMENT, f"no GPU has the id {request.gpuId:#x}")
    request.deviceInstance, request.gpuInstance = gpu.index, gpu.index

  def _probed(self, item: Item, request: Any) -> None:
    ids = [gpu.gpu_id for gpu in self.computer.gpus]
    request.gpuIds[:] = ids + [0xFFFF_FFFF] * (len(request.gpuIds) - len(ids))

  def _class_list(self, item: Item, request: Any) -> None:
    classes = self._gpu(item).chip.classes
    if request.classList:
      if request.numClasses < len(classes): raise Refusal(Status.INVALID_PARAM_STRUCT, "the list is too short")
      (ctypes.c_uint32 * len(classes)).from_address(request.classList)[:] = list(classes)
    request.numClasses = len(classes)

  def _name(self, item: Item, request: Any) -> None:
    name = self._gpu(item).chip.marketing.encode()
    request.ascii[:len(name) + 1] = name + b"\0"

  def _gid(self, item: Item, request: Any) -> None:
    if request.flags != 2: raise Refusal(Status.NOT_SUPPORTED, "an id as text")
    request.data[:16], request.length = self._gpu(item).uuid, 16

  def _reserve(self, item: Item, request: None) -> None:
    """Reserve the GPU for a client. The reservation ends with the client's subdevice.

    Source: open-gpu-kernel-modules, src/nvidia/src/kernel/gpu/subdevice/subdevice_ctrl_gpu_kernel.c.
    """
    if not isinstance(item, SubdeviceItem): raise Refusal(Status.INVALID_OBJECT_HANDLE, f"{item!r} is no subdevice")
    gpu = item.card
    if gpu.mode == ComputeMode.COMPUTE_PROHIBITED: raise Refusal(Status.STATE_IN_USE, "nobody may compute on it")
    if gpu.mode != ComputeMode.NONE and gpu.reserved is not None:
      raise Refusal(Status.STATE_IN_USE, f"{gpu.reserved!r} computes on it")
    gpu.reserved = item.client

  def _gpcs(self, item: Item, request: Any) -> None: request.gpcMask = (1 << len(self._gpu(item).chip.gpcs)) - 1

  def _tpcs(self, item: Item, request: Any) -> None:
    gpcs = self._gpu(item).chip.gpcs
    if request.gpcId >= len(gpcs): raise Refusal(Status.INVALID_ARGUMENT, f"no cluster {request.gpcId}")
    request.tpcMask = (1 << gpcs[request.gpcId]) - 1

  def _graphics_info(self, item: Item, request: Any) -> None:
    """Return graphics information by indices of ctrl0080gr.h."""
    chip = self._gpu(item).chip
    known = {0x07: len(chip.gpcs), 0x09: sum(chip.gpcs), 0x0D: chip.warps, 0x0E: 32, 0x14: len(chip.gpcs),
             0x17: max(chip.gpcs), 0x20: 2}
    if not request.grInfoList: raise Refusal(Status.INVALID_ARGUMENT, "no list")
    for entry in (self.computer.structures.GrInfo * request.grInfoListSize).from_address(request.grInfoList):
      if entry.index not in known: raise Refusal(Status.NOT_SUPPORTED, f"information {entry.index:#x}")
      entry.data = known[entry.index]

  def _memory_info(self, item: Item, request: Any) -> None:
    gpu = self._gpu(item)
    known = {0x07: gpu.chip.vram >> 10, 0x08: gpu.chip.vram >> 10, 0x16: gpu.chip.vram - gpu.vram_used >> 10,
             0x1B: gpu.chip.l2_kib}
    for entry in request.fbInfoList[:request.fbInfoListSize]:
      if entry.index not in known: raise Refusal(Status.NOT_SUPPORTED, f"information {entry.index:#x}")
      entry.data = known[entry.index]

  def _schedule(self, item: Item, request: Any) -> None:
    """Schedule a group. If unified memory manages the address space, it must know the channels.

    Source: gpu/fifo/kernel_channel.c, kchannelIsSchedulable.
    """
    if not isinstance(item, GroupItem): raise Refusal(Status.INVALID_OBJECT_HANDLE, f"{item!r} is no channel group")
    for channel in item.children:
      if isinstance(channel, ChannelItem) and item.space.external and not channel.registered:
        raise Refusal(Status.INVALID_STATE, f"{channel!r} is scheduled before UvmRegisterChannel")
    item.running = bool(request.bEnable)

  def _token(self, item: Item, request: Any) -> None:
    """Return the token for the doorbell.

    A channel has it as soon as it is made: from Ampere on its runlist is that of its group's engine.
    """
    if not isinstance(item, ChannelItem): raise Refusal(Status.INVALID_OBJECT_HANDLE, f"{item!r} is no channel")
    request.workSubmitToken = item.token
    self.computer.engines.begin(item)

  def _fault_info(self, item: Item, request: Any) -> None:
    if not isinstance(item, ChannelItem): raise Refusal(Status.INVALID_OBJECT_HANDLE, f"{item!r} is no channel")
    fault = item.group.fault
    if fault is None: return
    request.addrHi, request.addrLo, request.faultType = fault.address >> 32, fault.address & 0xFFFF_FFFF, 0
    text = ("FAULT_RO_VIOLATION" if fault.reason == "read only" else "FAULT_PTE").encode()
    request.faultString[:len(text)] = text

  def _architecture(self, item: Item, request: Any) -> None:
    request.architecture, request.implementation = self._gpu(item).chip.architecture

  def _times(self, item: Item, request: Any) -> None:
    for i in range(request.sampleCount):
      request.samples[2 * i], request.samples[2 * i + 1] = time.monotonic_ns(), self._gpu(item).clock()
