"""tinyhw/emulator/amd/card/aql.py: packets of AQL queues on several XCCs."""
import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from test.support.amd.virtual import (
  AQL, DEVICE_MEMORY, PAGE, SHARED_MEMORY, Group, Program, Ring, add_one, kernels, split)
from tinyhw.autogen.amd import hsa, pm4
from tinyhw.emulator.amd.registers import DispatchRegisters
from tinyhw.emulator.errors import DataRace, PacketError, StaleRead
from tinyhw.emulator.memory.memory import MemoryInterface

DISPATCH, BARRIER_AND, BARRIER_OR = (hsa.PACKET_TYPE_KERNEL_DISPATCH, hsa.PACKET_TYPE_BARRIER_AND,
                                     hsa.PACKET_TYPE_BARRIER_OR)
SYSTEM = hsa.FENCE_SCOPE_SYSTEM

def add_one_by_kernarg(memory: MemoryInterface, registers: DispatchRegisters, group: Group) -> Iterator[None]:
  """Add one like add_one, at an address in the kernel's arguments."""
  kernarg = registers.user_data[0] | registers.user_data[1] << 32
  place = int.from_bytes(memory.load(kernarg, 8), "little") + 4 * group[0]
  yield
  memory.store(place, (int.from_bytes(memory.load(place, 4), "little") + 1).to_bytes(4, "little"))

class Setup:
  """An AQL queue, data, a completion signal, a kernel's descriptor and arguments."""
  def __init__(self, card: str = "gfx942", seed: int = 0, memory: int = DEVICE_MEMORY):
    self.program = Program(card, seed=seed)
    self.queue: Ring = self.program.queue(AQL)
    self.data, self.page = self.program.allocate(PAGE, memory), self.program.allocate(PAGE)
    self.data.mapping.copyin(0, bytes(PAGE))
    self.program.gpu.host_writes.flush()
    self.signal, self.descriptor, self.kernarg = self.page.address, self.page.address + 64, self.page.address + 256
    self.put(0, hsa.Signal(kind=hsa.SIGNAL_KIND_USER, value=5))
    generation = self.program.gpu.chip.generation
    self.put(64, hsa.KernelDescriptor(kernel_code_entry_byte_offset=960, compute_pgm_rsrc1=3 if generation == 9
                                      else 1 << 30 | 3,
                                      compute_pgm_rsrc2=2 << 1 | 1 << 7 if generation == 9 else 15 << 1 | 1 << 7,
                                      compute_pgm_rsrc3=3 if generation == 9 else 0,
                                      kernel_code_properties=hsa.KERNEL_CODE_PROPERTIES(
      enable_sgpr_kernarg_segment_ptr=1)))
    self.page.mapping.store64(256, self.data.address)
    self.code = self.descriptor + 960
    kernels(self.program.computer, {self.code: add_one_by_kernarg, 0x1000: add_one})

  def put(self, offset: int, structure: ctypes.Structure) -> None: self.page.mapping.copyin(offset, bytes(structure))

  def submit(self, *packets: Any) -> None:
    """Write packets with their headers last, then the write index, then the doorbell: the last packet's number."""
    for packet in packets:
      start = self.queue.count * 64 % self.queue.ring.size
      self.queue.ring.mapping.copyin(start + 4, bytes(packet)[4:])
      self.queue.ring.mapping.store32(start, int.from_bytes(bytes(packet)[:4], "little"))
      self.queue.count += 1
    self.queue.areas[1].mapping.store64(hsa.Queue.write_dispatch_id.offset, self.queue.count)
    self.program.doorbells.store64(self.queue.doorbell, self.queue.count - 1)
    self.program.settle()

  def kernel(self, groups: int = 16, **changes: Any) -> Any:
    header = {"type": DISPATCH, "barrier": 1, "acquire_fence_scope": SYSTEM, "release_fence_scope": SYSTEM}
    header |= {name: changes.pop(name) for name in list(changes) if name in header}
    values = {"setup": 1, "workgroup_size_x": 64, "workgroup_size_y": 1, "workgroup_size_z": 1,
              "grid_size_x": 64 * groups, "grid_size_y": 1,
              "grid_size_z": 1, "kernel_object": self.descriptor, "kernarg_address": self.kernarg,
              "completion_signal": self.signal}
    return hsa.KernelDispatchPacket(header=hsa.HEADER(**header), **values | changes)

  def buffer(self, words: list[int], **header: int) -> Any:
    """Return a vendor packet with these words as an indirect buffer."""
    area = self.program.allocate(PAGE)
    for i, word in enumerate(words): area.mapping.store32(4 * i, word)
    call = self.program.packets.INDIRECT_BUFFER(ib_base=area.address, ib_size=len(words), valid=1)
    return hsa.Pm4IndirectPacket(header=hsa.HEADER(type=0, **header), format=hsa.FORMAT_PM4_IB,
                                 indirect_buffer=(ctypes.c_uint32 * 4)(*call),
                                 remaining=hsa.PM4_REMAINING, completion_signal=self.signal)

  @property
  def value(self) -> int: return int(self.page.mapping.load64(hsa.Signal.value.offset))

  @property
  def read_index(self) -> int: return int(self.queue.areas[1].mapping.load64(hsa.Queue.read_dispatch_id.offset))

@pytest.mark.parametrize("seed", range(4))
def test_a_kernel_on_all_xccs_and_its_signal(seed: int) -> None:
  it = Setup(seed=seed)
  it.submit(it.kernel(20))
  assert [it.data.mapping.load32(4 * i) for i in range(21)] == [1] * 20 + [0] and it.value == 4 and it.read_index == 1
  assert it.queue.ring.mapping.load32(0) & 0xFF == hsa.PACKET_TYPE_INVALID and it.program.close() == {}

def test_a_kernel_on_a_card_with_one_xcc() -> None:
  it = Setup("gfx1200")
  it.put(64, hsa.KernelDescriptor(kernel_code_entry_byte_offset=960, compute_pgm_rsrc1=1 << 30 | 3,
                                  compute_pgm_rsrc2=2 << 1 | 1 << 7,
                                  kernel_code_properties=hsa.KERNEL_CODE_PROPERTIES(enable_sgpr_kernarg_segment_ptr=1,
                                                                                    enable_wavefront_size32=1)))
  it.submit(it.kernel(20))
  assert [it.data.mapping.load32(4 * i) for i in range(21)] == [1] * 20 + [0] and it.value == 4

def test_each_xcc_does_its_share() -> None:
  it, seen = Setup(), list[tuple[int, int]]()
  def kernel(memory: Any, registers: DispatchRegisters, group: Group) -> Iterator[None]:
    seen.append((group[0], memory.xcc.number))
    yield
  kernels(it.program.computer, {it.code: kernel})
  it.submit(it.kernel(20))
  assert sorted(seen) == [(i, i % 8) for i in range(20)]

@pytest.mark.parametrize("seed", range(4))
def test_workgroups_of_different_dies_race(seed: int) -> None:
  it = Setup(seed=seed, memory=SHARED_MEMORY)  # no L2 keeps it, so only the order is wrong
  def kernel(memory: MemoryInterface, registers: DispatchRegisters, group: Group) -> Iterator[None]:
    memory.store(it.data.address + 4 * group[0], b"mine")
    yield
    memory.load(it.data.address + 4 * ((group[0] + 1) % 16), 4)
    yield
  kernels(it.program.computer, {it.code: kernel})
  with pytest.raises(DataRace, match="of the same dispatch"): it.submit(it.kernel(16))

@pytest.mark.slow
def test_queues_wrap() -> None:
  it = Setup()
  for _ in range(70): it.submit(it.kernel(8))
  assert it.read_index == 70 and it.data.mapping.load32(0) == 70

@pytest.mark.parametrize("seed", range(4))
def test_the_barrier_bit_orders_across_xccs(seed: int) -> None:
  def started_early(barrier: int) -> bool:
    it, ended, early = Setup(seed=seed), [0], [False]
    def kernel(memory: MemoryInterface, registers: DispatchRegisters, group: Group) -> Iterator[None]:
      if registers.group_size[0] == 64:  # the first one
        for _ in range(2000): yield
        ended[0] += 1
      else: early[0] |= ended[0] < 16
      yield
    kernels(it.program.computer, {it.code: kernel})
    it.submit(it.kernel(16), it.kernel(32, workgroup_size_x=32, grid_size_x=1024, barrier=barrier))
    return early[0]
  assert not started_early(1)
  assert started_early(0)

def test_agents_of_several_xccs_need_write_back_and_invalidation() -> None:
  """Each XCC has an L2: without a release another one does not see the writes of a kernel."""
  it = Setup()
  def shifted(memory: MemoryInterface, registers: DispatchRegisters, group: Group) -> Iterator[None]:
    memory.load(it.data.address + 4 * ((group[0] + 1) % 16), 4)
    yield
  it.submit(it.kernel(16, release_fence_scope=hsa.FENCE_SCOPE_NONE))
  kernels(it.program.computer, {it.code: shifted})
  with pytest.raises(StaleRead, match="L2 cache of XCC .* has not written it back"): it.submit(it.kernel(16))
  it = Setup()
  it.submit(it.kernel(16, release_fence_scope=hsa.FENCE_SCOPE_AGENT))
  kernels(it.program.computer, {it.code: shifted})
  it.submit(it.kernel(16, acquire_fence_scope=hsa.FENCE_SCOPE_AGENT))

def test_pm4_in_aql_runs_on_all_xccs_and_predicates_choose() -> None:
  it = Setup()
  program = it.program
  write = program.packets.WRITE_DATA(dst_sel=pm4.WRITE_MEMORY, wr_confirm=1, dst_addr=it.page.address + 512, data=[3])
  fence = program.release(it.page.address + 520, 9)
  words = [*program.acquire(), *program.kernel_registers(user_data=split(it.data.address)), *program.dispatch(20),
           *program.packets.PRED_EXEC(virtual_xcc_id_select=4, exec_count=len(write)), *write, *program.partial_flush(),
           *program.packets.PRED_EXEC(virtual_xcc_id_select=1, exec_count=len(fence)), *fence]
  it.submit(it.buffer(words))
  assert it.page.mapping.load32(512) == 3 and it.page.mapping.load32(520) == 9 and it.value == 4
  it.submit(it.buffer(program.release(data=pm4.DATA_NONE), barrier=1))
  assert [it.data.mapping.load32(4 * i) for i in range(21)] == [1] * 20 + [0]

def test_a_packet_that_is_not_there_yet_is_waited_for() -> None:
  it = Setup()
  it.queue.count = 1
  it.submit()
  assert it.read_index == 0
  it.queue.ring.mapping.copyin(4, bytes(it.kernel(8))[4:])
  it.queue.ring.mapping.store32(0, int.from_bytes(bytes(it.kernel(8))[:4], "little"))
  it.program.settle()
  assert it.value == 4

@pytest.mark.parametrize("kind,ready,passes", [(BARRIER_AND, (0,), False), (BARRIER_AND, (0, 1), True),
                                               (BARRIER_OR, (1,), True),
                                               (BARRIER_OR, (), False)])
def test_barriers_wait_for_signals(kind: int, ready: tuple[int, ...], passes: bool) -> None:
  it = Setup()
  for i in range(2): it.put(1024 + 64 * i, hsa.Signal(kind=1, value=0 if i in ready else 1))
  signals = (ctypes.c_uint64 * 5)(it.page.address + 1024, it.page.address + 1088)
  it.submit(hsa.BarrierAndPacket(header=hsa.HEADER(type=kind), dep_signal=signals, completion_signal=it.signal))
  assert (it.value == 4) == passes

def test_profiling_fills_in_times() -> None:
  it = Setup()
  it.queue.areas[1].mapping.store32(hsa.Queue.queue_properties.offset, hsa.QUEUE_PROPERTIES(enable_profiling=1))
  it.submit(it.kernel(8))
  start, end = (it.page.mapping.load64(field.offset) for field in (hsa.Signal.start_ts, hsa.Signal.end_ts))
  assert 0 < start <= end

REFUSED: dict[str, tuple[str, Callable[[Setup], Any]]] = {
  "type": ("packet type 4", lambda it: it.kernel(type=hsa.PACKET_TYPE_AGENT_DISPATCH)),
  "dimensions": ("setup 0x0", lambda it: it.kernel(setup=0)),
  "sizes beyond the dimensions": ("sizes beyond them are 1", lambda it: it.kernel(grid_size_y=2)),
  "no work-items": ("none is 0", lambda it: it.kernel(workgroup_size_x=0)),
  "arguments": ("align them to 16", lambda it: it.kernel(kernarg_address=it.kernarg + 8)),
  "descriptor": ("align it to 64", lambda it: it.kernel(kernel_object=it.descriptor + 8)),
  "signal": ("kind", lambda it: it.kernel(completion_signal=it.page.address + 1024)),
  "too large": ("1 to 1024 work-items", lambda it: it.kernel(workgroup_size_x=2048, grid_size_x=2048)),
  "scratch": ("read_dispatch_id_field_base_byte_offset",
              lambda it: (it.queue.areas[1].mapping.store32(136, 0), it.kernel(private_segment_size=4))[1]),
  "vendor": ("no PM4 buffer", lambda it: hsa.Pm4IndirectPacket(header=0, format=7)),
}

@pytest.mark.parametrize("name", REFUSED)
def test_packets_that_are_refused(name: str) -> None:
  it = Setup()
  message, make = REFUSED[name]
  with pytest.raises(PacketError, match=message): it.submit(make(it))
