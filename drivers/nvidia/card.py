"""A GPU of this process: its nodes, its objects (device, subdevice, address space), its memory. It stays open until the
process ends.

The resource manager allocates memory, and unified memory (UVM) maps it, at addresses that processor and GPUs share
(addresses.py).
"""
from __future__ import annotations
import contextlib
import ctypes
import errno
from typing import Any

from tinyhw.autogen.nvidia import rm
from tinyhw.autogen.nvidia.rm import flags
from tinyhw.drivers.gpu.memory import HUGE_PAGE, Memory
from tinyhw.drivers.linux.files import PAGE, Mapping, Refused, Returns
from tinyhw.drivers.nvidia.addresses import AddressAllocator
from tinyhw.drivers.nvidia.chips import Chip, check_code, chip_of, known_kinds, newest
from tinyhw.drivers.nvidia.rm import RmClient
from tinyhw.drivers.nvidia.visible import pci_address
from tinyhw.errors import DeviceError
from tinyhw.named_tuple import NamedTuple

SPACE = flags("NV_VASPACE_ALLOCATION_FLAGS_", "IS_EXTERNALLY_OWNED", "ENABLE_PAGE_FAULTING")   # of an address space
GID_BINARY, GID_BYTES = flags("NV2080_GPU_CMD_GPU_GET_GID_FLAGS_", "FORMAT_BINARY"), 16
ALLOCATED = flags("NVOS32_ALLOC_FLAGS_", "IGNORE_BANK_PLACEMENT", "ALIGNMENT_FORCE")           # of memory
# of memory of the program
PINNED = flags("NVOS02_FLAGS_", "PHYSICALITY_NONCONTIGUOUS", "COHERENCY_CACHED", "MAPPING_NO_MAP")
READ_WRITE_ATOMIC = flags("UvmGpuMappingType", "ReadWriteAtomic")
INSTANCES = "/proc/driver/nvidia/capabilities/gpu{}/mig"
# NV2080_CTRL_GR_INFO_INDEX_SHADER_PIPE_SUB_COUNT; src/nvidia/src/kernel/rmapi/nv_gpu_ops.c uses it for this, too
TPC_COUNT = 0x09
# NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_GPCS, _NUM_TPC_PER_GPC: of the whole chip, including disabled parts
GPCS, GPC_TPCS = 0x14, 0x17
USERMODE_BYTES = 0x10000
INFO = {name: flags("NV2080_CTRL_FB_INFO_INDEX_", index) for name, index in (
  ("memory_kib", "TOTAL_RAM_SIZE"), ("free_kib", "HEAP_FREE"), ("l2_kib", "L2CACHE_SIZE"))}

class MemoryKind(NamedTuple):
  """A kind of memory: the class of its object, attributes, the size of its pages, and whether the processor sees it."""
  name: str
  number: int
  attr: int
  attr2: int
  page: int
  visible: bool
  def __repr__(self) -> str: return self.name

_SCATTERED = flags("NVOS32_ATTR_", "PAGE_SIZE_HUGE", "PHYSICALITY_ALLOW_NONCONTIGUOUS")
_WHOLE = flags("NVOS32_ATTR_", "PAGE_SIZE_HUGE", "PHYSICALITY_CONTIGUOUS")
_HOST = flags("NVOS32_ATTR_", "PAGE_SIZE_4KB", "LOCATION_PCI", "PHYSICALITY_ALLOW_NONCONTIGUOUS", "COHERENCY_CACHED")
_OWN = flags("NVOS32_ATTR2_", "ZBC_PREFER_NO_ZBC", "GPU_CACHEABLE_YES", "PAGE_SIZE_HUGE_2MB")
VRAM = MemoryKind("memory of the GPU", rm.MEMORY_LOCAL, _SCATTERED, _OWN, HUGE_PAGE, visible=False)
RING = MemoryKind("memory of the GPU that the processor sees", rm.MEMORY_LOCAL, _WHOLE, _OWN, HUGE_PAGE, visible=True)
# Host memory that both sides see: no GPU cache keeps it, and the processor's caches are snooped. For commands,
# arguments, signals.
HOST = MemoryKind("host memory", rm.MEMORY_SYSTEM, _HOST,
                  flags("NVOS32_ATTR2_", "ZBC_PREFER_NO_ZBC", "GPU_CACHEABLE_NO"),
                  PAGE, visible=True)
USER = MemoryKind("memory of the program", rm.MEMORY_OF_PROGRAM, 0, 0, PAGE, visible=False)

class Card:
  """An opened GPU. kept: state that a closed device leaves to the next one."""
  def __init__(self, connection: RmClient, info: Any):
    self.connection, self.minor, self.gpu_id = connection, int(info.minor_number), int(info.gpu_id)
    self.place = pci_address(info)
    self.kept: Any = None
    self._refuse_instances()
    s = connection.structures
    with contextlib.ExitStack() as undo:
      self.node = connection.open_card(self.minor)
      undo.callback(self.node.close)
      instance = connection.control(connection.root, s.GetIdInfo(gpuId=self.gpu_id)).deviceInstance
      self.device = connection.new(connection.root, rm.DEVICE,
                                   s.DeviceParams(deviceId=instance, hClientShare=connection.root))
      undo.callback(connection.free, self.device)
      self.subdevice = connection.new(self.device, rm.SUBDEVICE, s.SubdeviceParams())
      self._reserve()
      self.name = bytes(connection.control(self.subdevice, s.GetNameString()).ascii).split(b"\0")[0].decode(
        "ascii", "replace")
      self.classes = self._classes()
      self.chip = self._chip()
      gid = connection.control(self.subdevice, s.GetGidInfo(flags=GID_BINARY, length=GID_BYTES))
      self.uuid = bytes(gid.data[:GID_BYTES])
      self.space = connection.new(self.device, rm.VA_SPACE, s.VaSpaceParams(flags=SPACE))
      self._register(undo)
      self.tpcs, self.facts = self._count(), self._facts()
      self.tpc_places = self._places()
      self.undo = undo.pop_all()

  def _refuse_instances(self) -> None:
    """Refuse a GPU that is divided into instances: it serves only clients that have chosen one.

    Source: the vendor's MIG user guide, "Device nodes".
    """
    box, path = self.connection.box, INSTANCES.format(self.minor)
    if box.exists(path) and any(name.startswith("gi") for name in box.listdir(path)):
      raise DeviceError(f"the GPU at {self.place} is divided into instances (MIG), which are not driven; sudo "
                        f"nvidia-smi -i {self.minor} -mig 0 "
                        "makes one GPU of it, and NV:CUDA uses an instance")

  def _reserve(self) -> None:
    """Reserve the GPU for this process, until the subdevice ends, if its compute mode allows only one. The vendor's
    library does so, too.

    Source: open-gpu-kernel-modules, src/nvidia/src/kernel/gpu/subdevice/subdevice_ctrl_gpu_kernel.c. Nothing else
    depends on the answer, so a container or a version that does not know the call is no obstacle.
    """
    try: self.connection.control(self.subdevice, self.connection.structures.AcquireComputeModeReservation())
    except Refused as refused:
      if refused.errno != errno.EBUSY: return
      raise DeviceError(f"the GPU at {self.place} is kept from this process: another one has it for itself (compute "
                        f"mode exclusive), or nobody may "
                        f"compute on it (prohibited); wait for the other's end, choose another GPU, or have its mode "
                        f"changed: "
                        f"sudo nvidia-smi -i {self.minor} -c DEFAULT") from refused

  def _classes(self) -> list[int]:
    """Return the classes of the GPU's objects."""
    s, connection = self.connection.structures, self.connection
    count = connection.control(self.device, s.GetClassList()).numClasses
    found = (ctypes.c_uint32 * count)()
    connection.control(self.device, s.GetClassList(numClasses=count, classList=ctypes.addressof(found)))
    return list(found)

  def _chip(self) -> Chip:
    found = chip_of(self.classes)
    if found is None:
      raise DeviceError(f"{self.name} at {self.place} has no compute class that is known here; known are "
                        f"{known_kinds()}")
    check_code(found.arch, f"{self.name} at {self.place}")
    return found

  def _register(self, undo: contextlib.ExitStack) -> None:
    """Register the GPU and its address space with unified memory."""
    s, uuid, call = self.connection.structures, _uuid(self.uuid), self.connection.call_uvm
    call(s.UvmRegisterGpu(gpu_uuid=uuid, rmCtrlFd=-1))
    undo.callback(call, s.UvmUnregisterGpu(gpu_uuid=uuid))
    self.connection.hold_memory()
    call(s.UvmRegisterVaSpace(gpuUuid=uuid, rmCtrlFd=self.connection.node.fileno(), hClient=self.connection.root,
                              hVaSpace=self.space))
    undo.callback(call, s.UvmUnregisterVaSpace(gpuUuid=uuid))

  # **** properties of the GPU ****

  def _count(self) -> int:
    """Return the count of enabled TPCs (pairs of multiprocessors): by the masks of each cluster, else by their number
    alone."""
    s, connection = self.connection.structures, self.connection
    try:
      gpcs = connection.control(self.subdevice, s.GrGetGpcMask()).gpcMask
      masks = [connection.control(self.subdevice, s.GrGetTpcMask(gpcId=i)).tpcMask for i in range(32) if gpcs >> i & 1]
      return sum(bin(mask).count("1") for mask in masks)
    except Refused: return self._engine_fact(TPC_COUNT)

  def _places(self) -> int:
    """Return the count of TPCs including disabled ones, for resources with a slot for each. If it is unknown, return
    the enabled ones."""
    try: return max(self.tpcs, self._engine_fact(GPCS) * self._engine_fact(GPC_TPCS))
    except Refused: return self.tpcs

  def _engine_fact(self, index: int) -> int:
    """Return a number about the compute engine."""
    found = self.connection.structures.GrInfo(index=index)
    self.connection.control(self.subdevice,
                            self.connection.structures.GrGetInfo(grInfoListSize=1, grInfoList=ctypes.addressof(found)))
    return int(found.data)

  def _facts(self) -> dict[str, int]:
    """Return sizes of its memory. Those that the driver does not tell are left out."""
    request = self.connection.structures.FbGetInfo(fbInfoListSize=len(INFO))
    for item, index in zip(request.fbInfoList, INFO.values()): item.index = index
    try: answer = self.connection.control(self.subdevice, request)
    except Refused: return {}
    return {name: int(item.data) for name, item in zip(INFO, answer.fbInfoList)}

  @property
  def multiprocessors(self) -> int: return self.tpcs * self.chip.sms_of_tpc

  def class_of(self, wanted: tuple[int, ...], what: str) -> int:
    """Return the newest of some classes that the GPU has. Raises DeviceError."""
    found = newest(wanted, self.classes)
    if found is None:
      raise DeviceError(f"{self.name} at {self.place} has no {what} of a known class "
                        f"({', '.join(f'{c:#x}' for c in wanted)})")
    return found

  # **** memory ****

  def allocate(self, size: int, kind: MemoryKind, label: str, host: int = 0) -> Memory:
    """Allocate `size` bytes (rounded up to pages) that the GPU sees.

    host: for USER memory, the address of the program's pages. Raises Refused.
    """
    self.connection.unreturned.offer_again()
    size, space, returns = -(-size // kind.page) * kind.page, self.addresses(), Returns(self.connection.unreturned)
    try:
      address = space.take(size + kind.page, kind.page)    # the page after it stays unused
      returns.add(lambda: space.give(address, size + kind.page))
      memory = Memory(kind, address, size, label, returns)
      memory.handle = self._pinned(host, size) if kind is USER else self._object(size, kind)
      returns.add(lambda: self.connection.free(memory.handle))
      self._range(memory)
      returns.add(lambda: self.unshare(memory))
      self.share(memory)
      if kind.visible:
        memory.found = self._view(returns, memory.handle, size, address, of_host=kind.number == rm.MEMORY_SYSTEM)
    except BaseException:
      with contextlib.suppress(Refused): returns.close()   # report the first error
      raise
    return memory

  def addresses(self) -> AddressAllocator:
    """Return the region of the process, made for the first card."""
    found: AddressAllocator | None = self.connection.addresses
    if found is None: found = self.connection.addresses = AddressAllocator()
    return found

  def _object(self, size: int, kind: MemoryKind) -> int:
    return self.connection.new(self.device, kind.number, self.connection.structures.MemoryParams(
      owner=self.connection.root, flags=ALLOCATED, attr=kind.attr, attr2=kind.attr2, size=size, alignment=kind.page,
      limit=size - 1))

  def _pinned(self, host: int, size: int) -> int:
    """Register pages of the program, which stay at their addresses."""
    handle = self.connection.name()
    self.connection.call(self.connection.structures.RmAllocMemory(
      hRoot=self.connection.root, hObjectParent=self.device, hObjectNew=handle, hClass=rm.MEMORY_OF_PROGRAM,
      flags=PINNED, pMemory=host,
      limit=size - 1, fd=-1), self.node)
    return handle

  def _range(self, memory: Memory) -> None:
    """Create a range of unified memory for the addresses of this memory."""
    s = self.connection.structures
    self.connection.call_uvm(s.UvmCreateExternal(base=memory.address, length=memory.size))
    release = s.UvmFree(base=memory.address)
    if hasattr(release, "length"): release.length = memory.size
    memory.returns.add(lambda: self.connection.call_uvm(release))

  def share(self, memory: Memory) -> None:
    """Map memory, also of another GPU, at the same address. Raises Refused if that is impossible."""
    if self in memory.seen_by: return
    s = self.connection.structures
    request = s.UvmMapExternal(base=memory.address, length=memory.size, gpuAttributesCount=1,
                               rmCtrlFd=self.connection.node.fileno(),
                               hClient=self.connection.root, hMemory=memory.handle)
    request.perGpuAttributes[0].gpuUuid, request.perGpuAttributes[0].gpuMappingType = _uuid(
      self.uuid), READ_WRITE_ATOMIC
    for other in memory.seen_by[:1]: self.connect(other)
    self.connection.call_uvm(request)
    memory.seen_by.append(self)

  def unshare(self, memory: Memory) -> None:
    """Unmap the memory from all GPUs."""
    while memory.seen_by:
      uuid = _uuid(memory.seen_by[-1].uuid)
      self.connection.call_uvm(self.connection.structures.UvmUnmapExternal(base=memory.address, length=memory.size,
                                                                           gpuUuid=uuid))
      memory.seen_by.pop()

  def connect(self, other: Card) -> None:
    """Enable access between the memories of both GPUs. Raises Refused if there is no link."""
    key = frozenset((self.uuid, other.uuid))
    if self is other or key in self.connection.peers: return
    self.connection.call_uvm(self.connection.structures.UvmEnablePeerAccess(gpuUuidA=_uuid(self.uuid),
                                                                            gpuUuidB=_uuid(other.uuid)))
    self.connection.peers.add(key)

  def _view(self, returns: Returns, handle: int, size: int, address: int = 0, of_host: bool = False) -> Mapping:
    """Map an object's memory for the processor, through a node of its own. For host memory it is a control node.

    Source: open-gpu-kernel-modules, src/nvidia/arch/nvalloc/unix/src/osapi.c, RmCreateMmapContextLocked.
    """
    node = self.connection.open_control() if of_host else self.connection.open_card(self.minor)
    returns.add(node.close)
    self.connection.call(self.connection.structures.RmMapMemory(hClient=self.connection.root, hDevice=self.device,
                                                                hMemory=handle, length=size,
                                                                fd=node.fileno()))
    found = node.mmap(size, 0, address)
    returns.add(found.close)
    return found

  def usermode(self, undo: contextlib.ExitStack) -> Mapping:
    """Map the page with the doorbell and the clock, among the GPU's registers (BAR0).

    Hopper and later also have a doorbell in BAR1. It requires parameters, and has no clock next to it.
    """
    number, returns = self.class_of(self.chip.usermode, "doorbell page"), Returns(self.connection.unreturned)
    handle = self.connection.new(self.subdevice, number, None)
    undo.callback(returns.close)
    returns.add(lambda: self.connection.free(handle))
    return self._view(returns, handle, USERMODE_BYTES)

  # **** the end ****

  def forget(self) -> None:
    """Free the state that the last device left."""
    kept, self.kept = self.kept, None
    if kept is not None: kept.close()

  def close(self) -> None:
    """Free everything. A second call does nothing."""
    self.undo.close()

def opened(connection: RmClient, info: Any) -> Card:
  """Return the process's GPU of a CardInfo, opened at the first call. Raises DeviceError or Refused."""
  found: Card | None = connection.cards.get(info.gpu_id)
  if found is None: found = connection.cards[info.gpu_id] = Card(connection, info)
  return found

def _uuid(data: bytes) -> Any: return (ctypes.c_uint8 * 16)(*data)
