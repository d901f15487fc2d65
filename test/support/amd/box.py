"""A recording stand-in for a computer with AMD GPUs, for tests of the driver alone: it keeps account, and runs just
enough of the queues.

Ioctls are answered from tables of what is held: handles, queues, events, descriptors, mappings; `held()` counts them.
Any call can be told to fail. Memory is the host's. A doorbell runs the queue at once, in order: copies, fences and
timestamps are done, waits must be met, and dispatches are noted with the registers that stand. It checks little; the
emulator is what checks.
"""
from __future__ import annotations
import collections
import ctypes
import errno
import os
import struct
from collections.abc import Callable
from typing import Any

from tinyhw.autogen.amd import gc, hsa, kfd_ioctl, pm4, sdma
from tinyhw.drivers.amd.device import AMDDevice
from tinyhw.drivers.linux import files
from tinyhw.machine.ir.code import Code

TOPOLOGY = "/sys/devices/virtual/kfd/kfd/topology/nodes"
PROPERTIES = {
  "gfx1100": {"gfx_target_version": 110000, "simd_count": 192, "simd_per_cu": 2, "array_count": 12,
              "simd_arrays_per_engine": 2, "num_xcc": 1},
  "gfx1200": {"gfx_target_version": 120000, "simd_count": 64, "simd_per_cu": 2, "array_count": 4,
              "simd_arrays_per_engine": 2, "num_xcc": 1},
  "gfx950": {"gfx_target_version": 90500, "simd_count": 1024, "simd_per_cu": 4, "array_count": 32,
             "simd_arrays_per_engine": 1, "num_xcc": 8},
  "gfx942": {"gfx_target_version": 90402, "simd_count": 1216, "simd_per_cu": 4, "array_count": 32,
             "simd_arrays_per_engine": 1, "num_xcc": 8},
}
GENERATIONS = {"gfx1100": (pm4.GFX10, sdma.V6, 11), "gfx1200": (pm4.GFX10, sdma.V7, 12),
               "gfx942": (pm4.GFX9, sdma.V4, 9),
               "gfx950": (pm4.GFX9, sdma.V4, 9)}
CLOCK_STEP = 100  # ticks between two looks at the clock

class Mapping(files.HostMapping):
  """Memory that the box knows of; a doorbell page tells it of stores."""
  __slots__ = ("box", "rings")

  def __init__(self, box: AMDBox, inner: files.HostMapping, rings: bool = False):
    super().__init__(inner.address, inner.size, inner.fixed)
    self.box, self.rings = box, rings
    box.mappings.add(self)

  def store64(self, offset: int, value: int) -> None:
    super().store64(offset, value)
    if self.rings: self.box.ring(offset, value)

  def close(self) -> None:
    self.box.mappings.discard(self)
    super().close()

class File:
  """An open file of the box."""
  def __init__(self, box: AMDBox, path: str):
    self.box, self.path, self.number = box, path, 1000 + box.next_number()
    box.files.add(self)

  def fileno(self) -> int: return self.number
  def ioctl(self, request: int, argument: Any) -> None: self.box.call(request, argument)
  def poll(self, timeout_ms: int) -> bool: return False
  def close(self) -> None: self.box.files.discard(self)

  def mmap(self, length: int, offset: int, address: int, prot: int, flags: int) -> Mapping:
    self.box.may_fail("mmap")
    if self.path == "/dev/kfd" and length != 8192: raise OSError(errno.EINVAL, "doorbells are mapped as 8192 bytes")
    inner = files.map_memory(length, address, prot, files.MAP_PRIVATE | files.MAP_ANONYMOUS | (flags & files.MAP_FIXED))
    return Mapping(self.box, inner, rings=self.path == "/dev/kfd")

class Queue:
  """A queue as it was asked for, how far it was read, and the registers that were set."""
  def __init__(self, request: Any, number: int):
    self.request, self.number, self.read = type(request).from_buffer_copy(request), number, 0
    self.registers: dict[int, int] = {}

class AMDBox:
  """The computer. kind: of its GPUs. version: of the kernel's interface. dispatches: what ran, as (registers by name,
  groups)."""
  virtual = False

  def __init__(self, kind: str = "gfx1100", count: int = 1, version: tuple[int, int] = (1, 17)):
    self.kind, self.version = kind, version
    self.files: set[File] = set()
    self.mappings: set[Mapping] = set()
    self.memory: dict[int, Any] = {}
    self.queues: dict[int, Queue] = {}
    self.events: dict[int, Any] = {}
    self.calls: list[tuple[str, Any]] = []
    self.failures: dict[tuple[str, int], int] = {}
    self.seen: collections.Counter[str] = collections.Counter()
    self.dispatches: list[tuple[dict[str, int], int]] = []
    self.packets: list[str] = []
    self.fault: dict[str, int] | None = None
    self.stopped = False                         # the hardware does nothing any more
    self.has_event_page = False
    self.clock = 1000
    self._numbers = 0
    self.texts = {f"{TOPOLOGY}/0/gpu_id": "0\n", f"{TOPOLOGY}/0/properties": "cpu_cores_count 8\n"}
    self.nodes = {"/dev/kfd"}
    for i in range(count):
      values = {**PROPERTIES[kind], "drm_render_minor": 128 + i, "max_slots_scratch_cu": 32, "max_waves_per_simd": 16}
      self.texts |= {f"{TOPOLOGY}/{i + 1}/gpu_id": f"{1000 + i}\n",
                     f"{TOPOLOGY}/{i + 1}/properties": self.lines(values),
                     f"{TOPOLOGY}/{i + 1}/mem_banks/0/properties": self.lines({"heap_type": 1,
                                                                               "size_in_bytes": 1 << 30}),
                     f"{TOPOLOGY}/{i + 1}/caches/0/properties": self.lines({"level": 1, "size": 32})}
      self.nodes.add(f"/dev/dri/renderD{128 + i}")

  @staticmethod
  def lines(values: dict[str, int]) -> str: return "".join(f"{name} {value}\n" for name, value in values.items())

  def next_number(self) -> int:
    self._numbers += 1
    return self._numbers

  def held(self) -> dict[str, int]:
    """How much of everything is in use."""
    return {"files": len(self.files), "mappings": len(self.mappings), "memory": len(self.memory),
            "queues": len(self.queues),
            "events": len(self.events)}

  def fail(self, call: str, nth: int, number: int) -> None:
    """The nth call (from 1) of an ioctl (the name of its structure), of "open" or of "mmap" fails with an errno."""
    self.failures[call, nth] = number

  def may_fail(self, call: str) -> None:
    self.seen[call] += 1
    number = self.failures.get((call, self.seen[call]))
    if number is not None: raise OSError(number, os.strerror(number))

  # **** the protocol ****

  def open(self, path: str, flags: int) -> File:
    self.may_fail("open")
    if path not in self.nodes: raise OSError(errno.ENOENT, "no such file")
    return File(self, path)

  def read_text(self, path: str) -> str:
    if path not in self.texts: raise OSError(errno.ENOENT, "no such file")
    return self.texts[path]

  def listdir(self, path: str) -> list[str]:
    return sorted({name[len(path) + 1:].split("/")[0] for name in self.texts if name.startswith(path + "/")},
                  reverse=True)

  def exists(self, path: str) -> bool:
    return path in self.nodes or any(name == path or name.startswith(path + "/") for name in self.texts)

  def barred(self, path: str) -> bool: return False
  def outline(self, address: int, size: int, whole: int) -> None: pass
  def told(self) -> str: return ""
  def group(self, path: str) -> str: return "render"
  def member(self, group: str) -> tuple[bool, bool]: return False, False

  # **** ioctls ****

  def call(self, request: int, argument: Any) -> None:
    structure = kfd_ioctl.CALLS[request & 0xFF]
    assert request == structure.REQUEST and isinstance(argument, structure)  # type: ignore[attr-defined]
    name = structure.__name__
    self.calls.append((name, structure.from_buffer_copy(argument)))  # as it was asked
    self.may_fail(name)
    getattr(self, f"do_{name}", lambda argument: None)(argument)

  def do_GetVersion(self, r: Any) -> None: r.major_version, r.minor_version = self.version

  def do_AllocMemoryOfGpu(self, r: Any) -> None:
    r.handle = r.gpu_id << 32 | self.next_number()
    kept = kfd_ioctl.AllocMemoryOfGpu.from_buffer_copy(r)
    r.mmap_offset = r.handle << 12
    if r.flags & kfd_ioctl.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR: assert kept.mmap_offset, "the program's pages"
    elif not r.flags & kfd_ioctl.KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC:  # somewhere for the engines to write
      files.map_memory(r.size, r.va_addr, flags=files.MAP_PRIVATE | files.MAP_ANONYMOUS | files.MAP_FIXED
                       | files.MAP_NORESERVE)
    self.memory[r.handle] = (kept, [])

  def do_MapMemoryToGpu(self, r: Any) -> None:
    self.memory[r.handle][1].extend((ctypes.c_uint32 * r.n_devices).from_address(r.device_ids_array_ptr))
    r.n_success = r.n_devices

  def do_UnmapMemoryFromGpu(self, r: Any) -> None:
    for gpu_id in (ctypes.c_uint32 * r.n_devices).from_address(r.device_ids_array_ptr):
      self.memory[r.handle][1].remove(gpu_id)

  def do_FreeMemoryOfGpu(self, r: Any) -> None:
    kept, mapped = self.memory.pop(r.handle)
    assert not mapped, "memory is freed while a GPU sees it"

  def do_CreateEvent(self, r: Any) -> None:
    assert bool(r.event_page_offset) != self.has_event_page, ("a process has one event page, which comes with its "
                                                              "first event")
    self.has_event_page = True
    r.event_id = r.event_slot_index = self.next_number()
    self.events[r.event_id] = kfd_ioctl.CreateEvent.from_buffer_copy(r)

  def do_DestroyEvent(self, r: Any) -> None: del self.events[r.event_id]

  def do_WaitEvents(self, r: Any) -> None:
    data = (kfd_ioctl.EventData * r.num_events).from_address(r.events_ptr)
    r.wait_result = kfd_ioctl.KFD_IOC_WAIT_RESULT_TIMEOUT
    fault, self.fault = self.fault, None
    for entry in data if fault is not None else ():
      kind = self.events[entry.event_id].event_type
      if kind == kfd_ioctl.KFD_IOC_EVENT_MEMORY and "va" in fault:
        for name, value in fault.items():
          setattr(entry.memory_exception_data if name in ("va", "gpu_id", "ErrorType") else
                  entry.memory_exception_data.failure, name, value)
      if kind == kfd_ioctl.KFD_IOC_EVENT_HW_EXCEPTION and "reset_type" in fault:
        for name, value in fault.items(): setattr(entry.hw_exception_data, name, value)

  def do_CreateQueue(self, r: Any) -> None:
    r.queue_id = self.next_number()
    r.doorbell_offset = 3 << 62 | r.gpu_id << 46 | r.queue_id * 8
    self.queues[r.queue_id] = Queue(r, r.queue_id)

  def do_DestroyQueue(self, r: Any) -> None: del self.queues[r.queue_id]

  # **** the queues ****

  def ring(self, offset: int, value: int) -> None:
    """A doorbell. Everything is done before it returns."""
    queue = self.queues[offset // 8]
    request = queue.request
    pointer, size = ctypes.c_uint64.from_address(request.write_pointer_address), request.ring_size // 4
    if self.stopped: return
    units = {kfd_ioctl.KFD_IOC_QUEUE_TYPE_COMPUTE: 4, kfd_ioctl.KFD_IOC_QUEUE_TYPE_COMPUTE_AQL: 64,
             kfd_ioctl.KFD_IOC_QUEUE_TYPE_SDMA: 1}
    written = pointer.value * units[request.queue_type] // 4
    aql = request.queue_type == kfd_ioctl.KFD_IOC_QUEUE_TYPE_COMPUTE_AQL
    assert value == pointer.value - aql, "the doorbell is told what the write pointer says"
    words = [ctypes.c_uint32.from_address(request.ring_base_address + i % size * 4).value
             for i in range(queue.read, written)]
    queue.read = written
    if aql: self.run_aql(queue, words)
    elif request.queue_type == kfd_ioctl.KFD_IOC_QUEUE_TYPE_SDMA: self.run_sdma(words)
    else: self.run_pm4(queue, words)
    read = ctypes.c_uint64.from_address(request.read_pointer_address)
    read.value = (written // 16 if aql else written * 4 if request.queue_type == kfd_ioctl.KFD_IOC_QUEUE_TYPE_SDMA
                  else written % size)

  def run_aql(self, queue: Queue, words: list[int]) -> None:
    for place in range(0, len(words), 16):
      packet = hsa.Pm4IndirectPacket.from_buffer_copy((ctypes.c_uint32 * 16)(*words[place:place + 16]))
      assert (hsa.HEADER.decode([packet.header])["type"] == hsa.PACKET_TYPE_VENDOR_SPECIFIC
              and packet.format == hsa.FORMAT_PM4_IB)
      self.run_pm4(queue, list(packet.indirect_buffer))

  def run_pm4(self, queue: Queue, words: list[int]) -> None:
    table, _, generation = GENERATIONS[self.kind]
    registers = gc.registers(generation)
    place = 0
    while place < len(words):
      packet, f, size = table.read(words, place)
      self.packets.append(packet.name)
      if packet.name == "INDIRECT_BUFFER":
        self.run_pm4(queue, list((ctypes.c_uint32 * f["ib_size"]).from_address(f["ib_base"])))
      if packet.name == "SET_SH_REG":
        queue.registers |= {pm4.SET_SH_REG_START + f["reg_offset"] + i: value for i, value in enumerate(f["values"])}
      if packet.name == "DISPATCH_DIRECT":
        named = {registers.addresses[address].name: value for address, value in queue.registers.items()}
        self.dispatches.append(({**named, "initiator": f["dispatch_initiator"]}, f["dim_x"]))
      if packet.name == "RELEASE_MEM": self.write(f["addr"], f["data"], f["data_sel"])
      if packet.name == "WAIT_REG_MEM" and f["function"] == pm4.GREATER_EQUAL:
        assert ctypes.c_uint32.from_address(f["addr"]).value >= f["reference"], "a wait that nothing would end"
      # the box is the first die
      if packet.name == "PRED_EXEC" and not f["virtual_xcc_id_select"] & 1: size += f["exec_count"]
      place += size

  def write(self, address: int, data: int, how: int) -> None:
    if how == pm4.DATA_32: ctypes.c_uint32.from_address(address).value = data
    if how == pm4.DATA_GPU_CLOCK: ctypes.c_uint64.from_address(address).value = self.tick()

  def tick(self) -> int:
    self.clock += CLOCK_STEP
    return self.clock

  def host(self, address: int) -> int:
    """Where the program sees what a GPU sees at an address: elsewhere only for the program's own pages."""
    for kept, _ in self.memory.values():
      if kept.flags & kfd_ioctl.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR and kept.va_addr <= address < kept.va_addr + kept.size:
        return int(kept.mmap_offset + address - kept.va_addr)
    return address

  def run_sdma(self, words: list[int]) -> None:
    place = 0
    while place < len(words):
      packet, f, size = GENERATIONS[self.kind][1].read(words, place)
      self.packets.append(f"sdma {packet.name}")
      if packet.name == "COPY_LINEAR":
        ctypes.memmove(self.host(f["dst_addr"]), self.host(f["src_addr"]), f["count"] + 1)
      if packet.name == "FENCE": ctypes.c_uint32.from_address(f["addr"]).value = f["data"]
      if packet.name == "POLL_REGMEM":
        assert ctypes.c_uint32.from_address(f["addr"]).value >= f["value"], "a wait that nothing would end"
      place += size

def code(kind: str = "gfx1100", **fields: Any) -> Code:
  """A kernel that does nothing, of one wave or two."""
  return Code(**{"name": "example", "arch": kind, "text": bytes(100), "arguments": ("buffer", "int64"), "lanes": 64,
                 **fields})

Opener = Callable[..., tuple[AMDBox, AMDDevice]]  # opens the device of a new box: test/drivers/amd/conftest.py

def arguments(registers: dict[str, int], count: int) -> list[int]:
  """Return a kernel's first arguments: words at the address in its first two scalar registers."""
  address = registers["COMPUTE_USER_DATA_0"] | registers["COMPUTE_USER_DATA_1"] << 32
  return list(struct.unpack(f"<{count}q", ctypes.string_at(address, 8 * count)))
