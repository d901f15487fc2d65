"""A program that drives virtual AMD GPUs by hand: buffers, queues, packets; and workgroups that Python functions stand
in for.

For tests of the emulator. It knows nothing of drivers/amd, which is tested against the emulator elsewhere.
"""
from __future__ import annotations
import ctypes
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tinyhw.autogen.amd import gc, hsa
from tinyhw.autogen.amd import kfd_ioctl as kfd
from tinyhw.autogen.amd import pm4, sdma
from tinyhw.drivers.linux.files import MAP_FIXED, MAP_SHARED, READ_WRITE, map_memory
from tinyhw.emulator.amd.card.computer import GpuHost
from tinyhw.emulator.amd.registers import DispatchRegisters
from tinyhw.emulator.memory.memory import MemoryInterface

PAGE = 4096
VRAM, GTT, PUBLIC = (kfd.KFD_IOC_ALLOC_MEM_FLAGS_VRAM, kfd.KFD_IOC_ALLOC_MEM_FLAGS_GTT,
                     kfd.KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC)
WRITABLE, EXECUTABLE = kfd.KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE, kfd.KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE
UNCACHED = kfd.KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED | kfd.KFD_IOC_ALLOC_MEM_FLAGS_COHERENT
SHARED_MEMORY = GTT | UNCACHED | WRITABLE | EXECUTABLE | PUBLIC  # what rings, signals and arguments are in
DEVICE_MEMORY = VRAM | WRITABLE | EXECUTABLE | PUBLIC
COMPUTE, SDMA, AQL = kfd.KFD_IOC_QUEUE_TYPE_COMPUTE, kfd.KFD_IOC_QUEUE_TYPE_SDMA, kfd.KFD_IOC_QUEUE_TYPE_COMPUTE_AQL

class Area:
  """A buffer: its address, and the program's mapping of it (None: it has none)."""
  def __init__(self, reserved: Any, handle: int, mapping: Any, size: int):
    self.reserved, self.handle, self.mapping, self.address, self.size = (reserved, handle, mapping, reserved.address,
                                                                         size)

class Ring:
  """A queue: its ring and pointers. count: what the write pointer counts, so far."""
  def __init__(self, program: Program, request: Any, ring: Area, write: Area, read: Area, doorbell: int,
               areas: list[Area]):
    self.program, self.request, self.ring, self.write, self.read, self.doorbell, self.areas = (program, request, ring,
                                                                                               write, read, doorbell,
                                                                                               areas)
    self.count = 0

  def put(self, words: Sequence[int]) -> None:
    """Write words into the ring, after those that are there."""
    unit = 1 if self.request.queue_type == COMPUTE else 4
    for i, word in enumerate(words): self.ring.mapping.store32((self.count // unit + i) * 4 % self.ring.size, word)
    self.count += len(words) * unit

  def ring_doorbell(self) -> None:
    self.write.mapping.store64(0, self.count)
    self.program.doorbells.store64(self.doorbell, self.count)

  def submit(self, *packets: Sequence[int]) -> None:
    for packet in packets: self.put(packet)
    self.ring_doorbell()

class Program:
  """A process that uses GPU `index` of a computer. beside: another process of the same computer."""
  def __init__(self, card: str = "gfx1100", count: int = 1, index: int = 0, beside: Program | None = None,
               **options: Any):
    self.computer = GpuHost(card, [card] * count, **options) if beside is None else beside.computer.process()
    self.gpu = self.computer.gpus[index]
    self.kfd = self.computer.open("/dev/kfd", 2)
    self.drm = self.computer.open(f"/dev/dri/renderD{self.gpu.minor}", 2)
    self.call(kfd.AcquireVm(drm_fd=self.drm.fileno(), gpu_id=self.gpu.gpu_id))
    self.areas: list[Area] = []
    self.doorbells: Any = None
    self.packets = {9: pm4.GFX9, 10: pm4.GFX10}[self.gpu.chip.packets]
    self.copies = {4: sdma.V4, 6: sdma.V6, 7: sdma.V7}[self.gpu.chip.copies]
    self.registers = gc.registers(self.gpu.chip.generation)

  def call(self, request: Any) -> Any:
    """An ioctl of /dev/kfd."""
    self.kfd.ioctl(type(request).REQUEST, request)
    return request

  # **** memory ****

  def allocate(self, size: int, flags: int = SHARED_MEMORY, address: int | None = None, map_it: bool = True,
               see: bool = True) -> Area:
    """A buffer, mapped on the GPU and (see) in the program."""
    size = (size + PAGE - 1) & -PAGE
    reserved = map_memory(size, prot=0)
    made = self.call(kfd.AllocMemoryOfGpu(va_addr=address or reserved.address, size=size, gpu_id=self.gpu.gpu_id,
                                          flags=flags))
    if map_it: self.map(made.handle)
    mapping = (self.drm.mmap(size, made.mmap_offset, reserved.address, READ_WRITE, MAP_SHARED | MAP_FIXED) if see
               and flags & PUBLIC else None)
    area = Area(reserved, made.handle, mapping, size)
    self.areas.append(area)
    return area

  def map(self, handle: int, gpus: Iterable[Any] | None = None) -> Any:
    numbers = [gpu.gpu_id for gpu in gpus or [self.gpu]]
    array = (ctypes.c_uint32 * len(numbers))(*numbers)
    return self.call(kfd.MapMemoryToGpu(handle=handle, device_ids_array_ptr=ctypes.addressof(array),
                                        n_devices=len(numbers)))

  def unmap(self, handle: int, gpus: Iterable[Any] | None = None) -> Any:
    numbers = [gpu.gpu_id for gpu in gpus or [self.gpu]]
    array = (ctypes.c_uint32 * len(numbers))(*numbers)
    return self.call(kfd.UnmapMemoryFromGpu(handle=handle, device_ids_array_ptr=ctypes.addressof(array),
                                            n_devices=len(numbers)))

  def free(self, area: Area) -> None:
    if area.mapping is not None: area.mapping.close()
    self.unmap(area.handle)
    self.call(kfd.FreeMemoryOfGpu(handle=area.handle))
    area.reserved.close()
    self.areas.remove(area)

  # **** queues ****

  def request(self, kind: int = COMPUTE, ring_size: int = 4096, **changes: Any) -> tuple[Any, list[Area]]:
    """A CreateQueue that the kernel takes, and its buffers: ring, write pointer, read pointer, ..."""
    chip = self.gpu.chip
    areas = [self.allocate(ring_size), self.allocate(PAGE), self.allocate(PAGE)]
    made = kfd.CreateQueue(ring_base_address=areas[0].address, write_pointer_address=areas[1].address,
                           read_pointer_address=areas[2].address,
                           ring_size=ring_size, gpu_id=self.gpu.gpu_id, queue_type=kind, queue_percentage=100,
                           queue_priority=7)
    if kind == AQL:  # both pointers are in the queue's descriptor
      made.write_pointer_address = areas[1].address + hsa.Queue.write_dispatch_id.offset
      made.read_pointer_address = areas[1].address + hsa.Queue.read_dispatch_id.offset
      areas[1].mapping.store32(hsa.Queue.read_dispatch_id_field_base_byte_offset.offset,
                               hsa.Queue.read_dispatch_id.offset)
      for slot in range(0, ring_size, 64): areas[0].mapping.store32(slot, hsa.PACKET_TYPE_INVALID)
    if kind != SDMA:
      save = (chip.save_bytes + chip.debug_bytes) * chip.xccs
      areas += [self.allocate(PAGE), self.allocate(save, VRAM | WRITABLE | EXECUTABLE)]
      made.eop_buffer_address, made.eop_buffer_size = areas[3].address, PAGE
      made.ctx_save_restore_address, made.ctx_save_restore_size, made.ctl_stack_size = areas[
        4].address, chip.save_bytes, chip.control_stack_bytes
    for name, value in changes.items(): setattr(made, name, value)
    return made, areas

  def queue(self, kind: int = COMPUTE, ring_size: int = 4096, **changes: Any) -> Ring:
    """A queue that runs."""
    request, areas = self.request(kind, ring_size, **changes)
    self.call(request)
    if self.doorbells is None:
      self.doorbells = self.kfd.mmap(8192, request.doorbell_offset & ~0x1FFF, 0, READ_WRITE, MAP_SHARED)
    return Ring(self, request, areas[0], areas[1], areas[2], request.doorbell_offset & 0x1FFF, areas)

  def destroy(self, ring: Ring) -> None:
    self.call(kfd.DestroyQueue(queue_id=ring.request.queue_id))
    for area in ring.areas: self.free(area)

  def settle(self) -> None:
    """Let the devices move until they wait for the program."""
    self.computer.scheduler.settle()

  def close(self) -> dict[str, int]:
    """Give everything back that this object has; what is left is somebody else's."""
    for number in list(self.computer.queues.queues): self.call(kfd.DestroyQueue(queue_id=number))
    for area in list(self.areas): self.free(area)
    if self.doorbells is not None: self.doorbells.close()
    self.drm.close()
    self.kfd.close()
    return self.computer.census()

  # **** packets ****

  def set_registers(self, **values: int) -> list[int]:
    """SET_SH_REG packets: COMPUTE_PGM_LO=..."""
    words: list[int] = []
    for name, value in values.items():
      offset = self.registers.rows["COMPUTE_" + name].address - pm4.SET_SH_REG_START
      words += self.packets.SET_SH_REG(reg_offset=offset, values=[value])
    return words

  def kernel_registers(self, code: int = 0x1000, size: tuple[int, int, int] = (64, 1, 1), user_data: Sequence[int] = (),
                       lds: int = 0,
                       **changes: int) -> list[int]:
    """All registers that a launch of a kernel needs."""
    generation = self.gpu.chip.generation
    ids = 1
    values = {"PGM_LO": code >> 8 & 0xFFFFFFFF, "PGM_HI": code >> 40, "PGM_RSRC1": 3 if generation == 9
              else 1 << 30 | 3,
              "PGM_RSRC2": (16 - ids) << 1 | 1 << 7 | -(-lds // 512) << 15, "PGM_RSRC3": 3 if generation == 9 else 0,
              "TMPRING_SIZE": 0,
              "RESOURCE_LIMITS": 0, "START_X": 0, "START_Y": 0, "START_Z": 0, "NUM_THREAD_X": size[0],
              "NUM_THREAD_Y": size[1],
              "NUM_THREAD_Z": size[2],
              **{f"USER_DATA_{i}": value for i, value in enumerate(user_data)}}
    return self.set_registers(**values | changes)

  def dispatch(self, x: int = 1, y: int = 1, z: int = 1, **flags: int) -> list[int]:
    """DISPATCH_DIRECT."""
    chosen = {"compute_shader_en": 1, "force_start_at_000": 1} | ({"cs_w32_en": 1} if self.gpu.chip.generation > 9
                                                                  else {}) | flags
    words: list[int] = self.packets.DISPATCH_DIRECT(dim_x=x, dim_y=y, dim_z=z,
                                                    dispatch_initiator=self.registers.COMPUTE_DISPATCH_INITIATOR(
      **chosen))
    return words

  def acquire(self, *flags: str) -> list[int]:
    """ACQUIRE_MEM of all memory; no flags: all caches."""
    names = {9: ("tcl1_action_ena", "tc_action_ena", "sh_kcache_action_ena", "sh_icache_action_ena"),
             10: ("gli_inv", "glk_inv", "glv_inv", "gl1_inv", "gl2_inv")}[self.gpu.chip.packets]
    words: list[int] = self.packets.ACQUIRE_MEM(coher_size=pm4.COHER_SIZE_ALL, poll_interval=10,
                                                **{flag: 1 for flag in flags or names})
    return words

  def release(self, address: int = 0, value: int = 0, interrupt: int = 0, write_back: bool = True,
              data: int = pm4.DATA_64,
              **changes: int) -> list[int]:
    """RELEASE_MEM that writes a value when all before it is done."""
    flag = {9: "tc_wb_action_en", 10: "gl2_wb"}[self.gpu.chip.packets]
    fields = {"event_type": pm4.CACHE_FLUSH_AND_INV_TS_EVENT, "event_index": pm4.EVENT_INDEX_END_OF_PIPE,
              flag: int(write_back), "addr": address,
              "data": value, "data_sel": data, "int_sel": pm4.INT_WRITE_CONFIRM if interrupt else pm4.INT_NONE,
              "int_ctxid": interrupt}
    words: list[int] = self.packets.RELEASE_MEM(**fields | changes)
    return words

  def wait(self, address: int, value: int, function: int = pm4.GREATER_EQUAL) -> list[int]:
    """WAIT_REG_MEM on memory."""
    words: list[int] = self.packets.WAIT_REG_MEM(function=function, mem_space=pm4.MEM_SPACE_MEMORY, addr=address,
                                                 reference=value, mask=0xFFFFFFFF,
                                                 poll_interval=4)
    return words

  def partial_flush(self) -> list[int]:
    words: list[int] = self.packets.EVENT_WRITE(event_type=pm4.CS_PARTIAL_FLUSH,
                                                event_index=pm4.EVENT_INDEX_PARTIAL_FLUSH)
    return words

Kernel = Callable[[MemoryInterface, DispatchRegisters, tuple[int, int, int]], Iterator[None]]

class FunctionWorkgroup:
  """A workgroup that is a Python generator: each of its steps is an instruction."""
  def __init__(self, kernel: Kernel, registers: DispatchRegisters, group: tuple[int, int, int],
               memory: MemoryInterface):
    self.running, self.decoder = kernel(memory, registers, group), None

  def step(self, budget: int) -> int:
    for _ in range(budget):
      if next(self.running, self) is self: return 2
    return 0

def kernels(computer: GpuHost, functions: dict[int, Kernel]) -> None:
  """Have the computer run functions in place of the code at these addresses."""
  def make(arch: str, reader: Any, registers: DispatchRegisters, group: tuple[int, int, int], memory: MemoryInterface,
           lds: int,
           seed: int,
           wave_base: int = 0, decoder: Any = None) -> FunctionWorkgroup:
    return FunctionWorkgroup(functions[registers.code], registers, group, memory)
  computer.make_workgroup = make

Group = tuple[int, int, int]

def split(address: int) -> list[int]:
  """The two words of an address."""
  return [address & 0xFFFFFFFF, address >> 32]

def add_one(memory: MemoryInterface, registers: DispatchRegisters, group: Group) -> Iterator[None]:
  """A kernel that adds one to the word of each workgroup. User data: the address of the words."""
  place = (registers.user_data[0] | registers.user_data[1] << 32) + 4 * group[0]
  yield
  word = int.from_bytes(memory.load(place, 4), "little")
  yield
  memory.store(place, (word + 1).to_bytes(4, "little"))
  yield

def nothing(memory: MemoryInterface, registers: DispatchRegisters, group: Group) -> Iterator[None]:
  """A kernel that does nothing."""
  yield
