"""Queues of the virtual kernel's driver: checks at creation, doorbells, and the buffers that a queue keeps.

Rules and errnos follow Linux, amdkfd/kfd_chardev.c, kfd_queue.c (6.12 and later), kfd_process_queue_manager.c and
kfd_doorbell.c. The processors that read queues are in pm4.py, aql.py and sdma.py.
"""
from __future__ import annotations
import errno
from typing import TYPE_CHECKING, Any

from tinyhw.autogen.amd import kfd_ioctl as kfd
from tinyhw.emulator.amd.card import aql, pm4, sdma
from tinyhw.emulator.amd.card.memory import DOORBELL_SLICE, MMAP_GPU_SHIFT, BufferObject, FramesWatcher
from tinyhw.emulator.amd.chips import EOP_BYTES
from tinyhw.emulator.checks.order import Agent
from tinyhw.emulator.checks.races import SharedRaces
from tinyhw.emulator.errors import DoorbellError, PageFault
from tinyhw.emulator.files import ENOTSUPP, VirtualMapping, refuse
from tinyhw.emulator.memory.physical import PAGE, Frames, pages
from tinyhw.emulator.schedule import Actor

if TYPE_CHECKING:
  from tinyhw.emulator.amd.card.computer import GpuHost
  from tinyhw.emulator.amd.card.gpu import GpuContext

MMAP_TYPE_DOORBELL = 3 << 62
DOORBELLS = DOORBELL_SLICE // 8
MOST_QUEUES = 1024                     # of a process
MOST_OF_CARD = 4096                    # of all processes: the kernel module's max_num_of_queues_per_device
COMPUTE, SDMA, AQL = kfd.KFD_IOC_QUEUE_TYPE_COMPUTE, kfd.KFD_IOC_QUEUE_TYPE_SDMA, kfd.KFD_IOC_QUEUE_TYPE_COMPUTE_AQL
XGMI, BY_ENGINE = kfd.KFD_IOC_QUEUE_TYPE_SDMA_XGMI, kfd.KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID
TYPE_NAMES = {COMPUTE: "PM4", SDMA: "SDMA", AQL: "AQL", XGMI: "SDMA", BY_ENGINE: "SDMA"}
UNITS = {COMPUTE: 4, AQL: 64, SDMA: 1, XGMI: 1, BY_ENGINE: 1}  # bytes that pointers count
SHARE_MASK, TARGET_XCC_SHIFT = 0xFF, 8  # queue_percentage

class HardwareQueue:
  """One queue. Addresses are the GPU's.

  buffers: those that it keeps from being unmapped; doorbell: its index in the slice; stopped: why it does not go on.
  """
  def __init__(self, gpu: GpuContext, number: int, request: Any, buffers: list[BufferObject], doorbell: int):
    self.gpu, self.number, self.kind, self.buffers, self.doorbell = gpu, number, request.queue_type, buffers, doorbell
    self.ring, self.ring_size = request.ring_base_address, request.ring_size
    self.read_pointer, self.write_pointer = request.read_pointer_address, request.write_pointer_address
    self.has_eop = bool(request.eop_buffer_address)
    self.percentage = request.queue_percentage
    self.engine = 0
    self.rung = self.consumed = 0       # the last value of the doorbell, as a write pointer; the read position
    self.stopped: str | None = None
    self.races = SharedRaces(len(gpu.xccs) if self.kind == AQL else 1)
    self.actors: list[Actor] = []
    self.known = 0                      # ended tasks that the program knew at its last ring (order.py)
    self.agents: list[Agent] = []

  def agent(self) -> Agent:
    """Return a new agent, for one of its processors."""
    self.agents.append(Agent(self.gpu.computer.order))
    return self.agents[-1]

  def look(self, agent: Agent) -> None:
    """Update an agent: its processor reads the words that the program has written."""
    agent.learn(self.known)
    agent.idle = False

  @property
  def active(self) -> bool:
    """Return whether it runs: a queue without time share, ring or address does not."""
    return (bool(self.ring and self.ring_size and self.percentage & SHARE_MASK) and self.stopped is None
            and self.gpu.stopped is None)

  @property
  def name(self) -> str:
    """Return a name for messages."""
    return f"{TYPE_NAMES[self.kind]} queue {self.number} of {self.gpu.name}"

class DoorbellWatcher(FramesWatcher):
  """The slice of doorbells of a GPU: a 64-bit store rings."""
  def __init__(self, manager: QueueManager, gpu: GpuContext, frames: Frames):
    super().__init__(manager.computer, frames)
    self.manager, self.gpu = manager, gpu

  def before_store(self, offset: int, data: bytes | bytearray | memoryview) -> None:
    if offset % 8 or len(data) != 8:
      raise DoorbellError(f"a store of {len(data)} bytes at offset {offset:#x} of the doorbells of {self.gpu.name}; "
                          f"ring with one store of 64 bits")
    self.manager.ring(self.gpu, offset // 8, int.from_bytes(data, "little"))

class QueueManager:
  """The queues of the process."""
  def __init__(self, computer: GpuHost):
    self.computer = computer
    self.queues: dict[int, HardwareQueue] = {}

  # **** creation ****

  def create(self, request: Any) -> None:
    """CreateQueue: check the arguments, and start the queue's processors."""
    self._check_request(request)
    gpu = self.computer.bound_gpu(request.gpu_id, unbound=errno.ESRCH)
    if gpu.stopped is not None: raise refuse(errno.EIO, gpu.stopped)
    buffers = self._buffers(gpu, request)
    if len(self.queues) >= MOST_QUEUES: raise refuse(errno.ENOMEM, f"a process has at most {MOST_QUEUES} queues")
    if len(self.of_card(gpu)) >= MOST_OF_CARD: raise refuse(errno.EPERM, f"a GPU has at most {MOST_OF_CARD} queues")
    engine = self._engine(gpu, request)
    number = next(i for i in range(MOST_QUEUES) if i not in self.queues)
    queue = HardwareQueue(gpu, number, request, buffers, self._doorbell(gpu))
    queue.engine = engine
    for buffer in buffers: buffer.uses[gpu] += 1
    self.queues[number] = queue
    if request.queue_type == COMPUTE:
      queue.actors = pm4.processors(queue, request.queue_percentage >> TARGET_XCC_SHIFT & 0xFF)
    elif request.queue_type == AQL: queue.actors = aql.processors(queue)
    else: queue.actors = sdma.processors(queue)
    for actor in queue.actors: self.computer.scheduler.add(actor, self.computer)
    request.queue_id = number
    request.doorbell_offset = MMAP_TYPE_DOORBELL | gpu.gpu_id << MMAP_GPU_SHIFT | queue.doorbell * 8

  def _check_request(self, request: Any) -> None:
    if request.queue_percentage & SHARE_MASK > kfd.KFD_MAX_QUEUE_PERCENTAGE:
      raise refuse(errno.EINVAL, "more than 100 percent")
    if request.queue_priority > kfd.KFD_MAX_QUEUE_PRIORITY: raise refuse(errno.EINVAL, "a priority above 15")
    if request.ring_size & (request.ring_size - 1): raise refuse(errno.EINVAL, "the ring's size is no power of two")
    for address in (request.ring_base_address, request.read_pointer_address, request.write_pointer_address,
                    request.eop_buffer_address,
                    request.ctx_save_restore_address):
      if address >> 47: raise refuse(errno.EFAULT, f"{address:#x} is no address of the program")
    if request.queue_type not in TYPE_NAMES: raise refuse(ENOTSUPP, f"queue type {request.queue_type}")

  def _buffers(self, gpu: GpuContext, request: Any) -> list[BufferObject]:
    """Return the buffers that the queue needs. Each must be one mapping of exactly its size."""
    found = [self._mapping(gpu, request.write_pointer_address & -PAGE, PAGE, "the write pointer's page"),
             self._mapping(gpu, request.read_pointer_address & -PAGE, PAGE, "the read pointer's page"),
             self._mapping(gpu, request.ring_base_address, request.ring_size, "the ring")]
    if request.queue_type not in (COMPUTE, AQL): return found
    chip = gpu.chip
    if request.eop_buffer_address:
      if request.eop_buffer_size != EOP_BYTES:
        raise refuse(errno.EINVAL, f"the end-of-pipe buffer has {EOP_BYTES:#x} bytes")
      found.append(self._mapping(gpu, request.eop_buffer_address, EOP_BYTES, "the end-of-pipe buffer"))
    if request.ctl_stack_size != chip.control_stack_bytes:
      raise refuse(errno.EINVAL, f"the control stack has {chip.control_stack_bytes:#x} bytes")
    if request.ctx_save_restore_size < chip.save_bytes:
      raise refuse(errno.EINVAL, f"the save area has {chip.save_bytes:#x} bytes at least")
    area = pages((request.ctx_save_restore_size + chip.debug_bytes) * chip.xccs)
    found.append(self._mapping(gpu, request.ctx_save_restore_address, area, "the save area"))
    return found

  def _mapping(self, gpu: GpuContext, address: int, size: int, what: str) -> BufferObject:
    entry = gpu.table.find(address)
    if entry is None: raise refuse(errno.EINVAL, f"{what}: nothing is mapped at {address:#x}")
    if entry.start != address or size and entry.end != address + size:
      raise refuse(errno.EINVAL, f"{what}: {address:#x} and {size:#x} bytes are not exactly {entry!r}")
    assert isinstance(entry.owner, BufferObject)
    return entry.owner

  def _engine(self, gpu: GpuContext, request: Any) -> int:
    """Return the copy engine of an SDMA queue: the least used one. Raises ENOMEM when all of them are full."""
    if request.queue_type in (COMPUTE, AQL): return 0
    chip = gpu.chip
    engines = (range(chip.sdma_engines, chip.sdma_engines + chip.xgmi_engines) if request.queue_type == XGMI
               else range(chip.sdma_engines))
    if request.queue_type == BY_ENGINE:
      if request.sdma_engine_id >= chip.sdma_engines + chip.xgmi_engines:
        raise refuse(errno.EINVAL, f"no engine {request.sdma_engine_id}")
      engines = range(request.sdma_engine_id, request.sdma_engine_id + 1)
    used = [queue.engine for queue in self.of_card(gpu) if queue.kind not in (COMPUTE, AQL)]
    free = [engine for engine in engines if used.count(engine) < chip.sdma_queues]
    if not free: raise refuse(errno.ENOMEM, "no more SDMA queues")
    return min(free, key=used.count)

  def of_card(self, gpu: GpuContext) -> list[HardwareQueue]:
    """Return the queues that all processes have on a GPU."""
    return [queue for process in self.computer.processes for queue in process.queues.queues.values()
            if queue.gpu.card is gpu.card]

  def _doorbell(self, gpu: GpuContext) -> int:
    taken = {queue.doorbell for queue in self.queues.values() if queue.gpu is gpu}
    free = [i for i in range(DOORBELLS) if i not in taken]
    if not free: raise refuse(errno.ENOSPC, "no more doorbells")
    return self.computer.scheduler.random.choice(free)  # no program may count on a certain one

  # **** life ****

  def find(self, number: int) -> HardwareQueue:
    """Return the queue with this number. EINVAL where there is none."""
    queue = self.queues.get(number)
    if queue is None: raise refuse(errno.EINVAL, f"no queue {number}")
    return queue

  def destroy(self, request: Any) -> None:
    """DestroyQueue: drop the queue's work, also unfinished work."""
    queue = self.find(request.queue_id)
    for actor in queue.actors: self.computer.scheduler.remove(actor)
    if self.computer.order is not None:
      for agent in queue.agents: self.computer.order.leave(agent)
    queue.gpu.drop_work(queue)
    for buffer in queue.buffers: buffer.uses[queue.gpu] -= 1
    del self.queues[queue.number]

  def update(self, request: Any) -> None:
    """UpdateQueue: set another ring, priority or share. A queue with a share of 0 rests."""
    queue = self.find(request.queue_id)
    if request.queue_percentage & SHARE_MASK > kfd.KFD_MAX_QUEUE_PERCENTAGE:
      raise refuse(errno.EINVAL, "more than 100 percent")
    if request.queue_priority > kfd.KFD_MAX_QUEUE_PRIORITY: raise refuse(errno.EINVAL, "a priority above 15")
    if request.ring_size & (request.ring_size - 1): raise refuse(errno.EINVAL, "the ring's size is no power of two")
    if (request.ring_base_address, request.ring_size) != (queue.ring, queue.ring_size):
      buffer = self._mapping(queue.gpu, request.ring_base_address, request.ring_size, "the ring")
      queue.buffers[2].uses[queue.gpu] -= 1
      buffer.uses[queue.gpu] += 1
      queue.buffers[2], queue.ring, queue.ring_size = buffer, request.ring_base_address, request.ring_size
    queue.percentage = request.queue_percentage

  # **** doorbells ****

  def map_doorbells(self, gpu: GpuContext, length: int, address: int, prot: int) -> VirtualMapping:
    """Map the doorbells of all queues that the process has on a GPU."""
    if length != DOORBELL_SLICE: raise refuse(errno.EINVAL, f"doorbells are mapped as {DOORBELL_SLICE:#x} bytes")
    frames = self.computer.memory.system_pages(DOORBELL_SLICE)
    return VirtualMapping(self.computer, self.computer.physical.map(frames, 0, length, address, prot),
                          DoorbellWatcher(self, gpu, frames))

  def ring(self, gpu: GpuContext, index: int, value: int) -> None:
    """Handle a write to a doorbell.

    Raises DoorbellError where the hardware would read packets that are not there, or nothing at all.
    """
    queue = next((queue for queue in self.queues.values() if queue.gpu is gpu and queue.doorbell == index), None)
    if queue is None: raise DoorbellError(f"doorbell {index} of {gpu.name} was rung, and is that of no queue")
    pointer = value + 1 if queue.kind == AQL else value
    try: stored = int.from_bytes(gpu.port.load(queue.write_pointer, 8), "little")
    except PageFault as fault: raise DoorbellError(f"{queue.name}: {fault}, where its write pointer is") from fault
    if pointer > stored or queue.kind != AQL and pointer != stored:
      unit = {COMPUTE: "dwords", AQL: "packets; the doorbell gets the last packet's number"}.get(queue.kind, "bytes")
      raise DoorbellError(f"{queue.name}: the doorbell was rung with {value:#x}, and the write pointer in memory is "
                          f"{stored:#x} (in {unit}); "
                          "store the write pointer first: a queue that is switched out and in goes by it")
    capacity = queue.ring_size // UNITS[queue.kind]
    if pointer - queue.consumed > capacity:
      raise DoorbellError(f"{queue.name}: the write pointer {pointer:#x} is more than the ring's {capacity:#x} ahead "
                          f"of what has been read "
                          f"({queue.consumed:#x}): packets were overwritten; wait for the read pointer")
    if pointer < queue.rung:
      raise DoorbellError(f"{queue.name}: the doorbell was rung with {value:#x} after {queue.rung:#x}; pointers never "
                          f"go back")
    queue.rung = pointer
    if self.computer.order is not None: queue.known |= self.computer.order.host.known
