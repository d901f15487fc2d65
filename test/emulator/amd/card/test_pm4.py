"""tinyhw/emulator/amd/card/pm4.py: effects of packets, their order, and refusals."""
from collections.abc import Iterator

import pytest

from test.support.amd.virtual import (
  DEVICE_MEMORY, GTT, PUBLIC, WRITABLE, Area, Group, Program, add_one, kernels, nothing, split,
)
from tinyhw.autogen.amd import pm4
from tinyhw.emulator.amd.registers import DispatchRegisters
from tinyhw.emulator.errors import PacketError, StaleRead
from tinyhw.emulator.memory.memory import MemoryInterface

CARDS = ("gfx1100", "gfx1200", "gfx942")

class Setup:
  """A queue, data of 64 words, a page of signals, and a kernel that adds one to a word for each workgroup."""
  def __init__(self, card: str = "gfx1100", memory: int = DEVICE_MEMORY, **options: int):
    self.program = Program(card, **options)
    kernels(self.program.computer, {0x1000: add_one, 0x2000: nothing})
    self.data, self.signal, self.queue = self.program.allocate(4096,
                                                               memory), self.program.allocate(
      4096), self.program.queue()
    self.data.mapping.copyin(0, bytes(4096))

  def flush(self) -> list[int]:
    """Return the words that flush the host data path."""
    registers = self.program.registers
    request, done = registers.BIF_BX_PF0_GPU_HDP_FLUSH_REQ.address, registers.BIF_BX_PF0_GPU_HDP_FLUSH_DONE.address
    words: list[int] = self.program.packets.WAIT_REG_MEM(function=pm4.EQUAL, operation=pm4.OPERATION_WRITE_WAIT,
                                                         addr=request | done << 32,
                                                         reference=1, mask=1, poll_interval=4)
    return words

  def launch(self, groups: int = 1) -> list[int]:
    return [*self.program.kernel_registers(user_data=split(self.data.address)), *self.program.dispatch(groups)]

  def fence(self, value: int, **changes: int) -> list[int]:
    return self.program.release(self.signal.address, value, **changes)

  def submit(self, *packets: list[int]) -> None:
    self.queue.submit(*packets)
    self.program.settle()

@pytest.mark.parametrize("card", CARDS)
def test_a_launch_from_packets_to_the_fence(card: str) -> None:
  it = Setup(card)
  it.queue.submit(it.flush(), it.program.acquire(), it.launch(40), it.fence(7))
  while it.signal.mapping.load64(0) != 7: pass
  assert [it.data.mapping.load32(4 * i) for i in range(41)] == [1] * 40 + [0]
  it.program.settle()
  assert it.queue.read.mapping.load32(0) == it.queue.count and it.program.close() == {}

@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_the_read_pointer_wraps_and_packets_go_over_the_end(seed: int) -> None:
  it = Setup(seed=seed)
  for value in range(1, 300): it.submit(it.fence(value), [pm4.NOP_WORD] * (value % 3))
  assert it.queue.count > 1024 and it.queue.read.mapping.load32(0) == it.queue.count % 1024
  assert it.signal.mapping.load64(0) == 299

def test_the_read_pointer_is_32_bits() -> None:
  it = Setup()
  it.queue.read.mapping.store64(0, 0xAAAAAAAA_00000000)
  it.submit(it.fence(1))
  assert it.queue.read.mapping.load64(0) == 0xAAAAAAAA_00000000 | it.queue.count

def overlap(seed: int, between: list[int], card: str = "gfx1100") -> bool:
  """Return whether two launches in one queue overlap."""
  it = Setup(card, seed=seed)
  running, seen = [0], [0]
  def kernel(memory: MemoryInterface, registers: DispatchRegisters, group: Group) -> Iterator[None]:
    running[0] += 1
    seen[0] = max(seen[0], running[0])
    for _ in range(2000): yield
    running[0] -= 1
  kernels(it.program.computer, {0x1000: kernel})
  it.submit(it.launch(), between, it.launch(), it.fence(1))
  return seen[0] > 1

@pytest.mark.slow
def test_launches_overlap_unless_something_waits() -> None:
  program = Program()
  assert any(overlap(seed, []) for seed in range(8))
  assert any(overlap(seed, program.acquire()) for seed in range(8))          # an acquire does not wait
  assert not any(overlap(seed, program.partial_flush()) for seed in range(8))

@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("seed", range(3))
def test_a_fence_comes_after_the_kernels_before_it(card: str, seed: int) -> None:
  it = Setup(card, seed=seed)
  ends: list[int] = []
  def slow(memory: MemoryInterface, registers: DispatchRegisters, group: Group) -> Iterator[None]:
    for _ in range(300): yield
    ends.append(it.signal.mapping.memory.load32(0))
  kernels(it.program.computer, {0x1000: slow})
  it.submit(it.launch(9), it.fence(1), it.program.wait(it.signal.address, 1), it.launch(9), it.fence(2))
  assert ends == [0] * 9 + [1] * 9 and it.signal.mapping.load64(0) == 2

@pytest.mark.parametrize("function,now,passes",
                         [(pm4.GREATER_EQUAL, 5, True), (pm4.GREATER, 5, False), (pm4.EQUAL, 5, True),
                          (pm4.NOT_EQUAL, 5, False), (pm4.LESS, 4, True), (pm4.LESS_EQUAL, 6, False),
                          (pm4.ALWAYS, 9, True)])
def test_waits_compare_memory(function: int, now: int, passes: bool) -> None:
  it = Setup()
  it.signal.mapping.store32(8, now)
  it.submit(it.program.wait(it.signal.address + 8, 5, function), it.fence(1))
  assert it.signal.mapping.load64(0) == passes
  it.signal.mapping.store32(8, 5 if function in (pm4.GREATER_EQUAL, pm4.EQUAL, pm4.LESS_EQUAL) else 6
                            if function != pm4.LESS else 1)
  it.program.settle()
  assert it.signal.mapping.load64(0) == 1

def test_a_wait_of_64_bits_write_data_and_copy_data() -> None:
  it, packets = Setup(), Program().packets
  far = it.signal.address
  it.submit(packets.WRITE_DATA(dst_sel=pm4.WRITE_MEMORY, wr_confirm=1, dst_addr=far + 16, data=[1, 2, 3]),
            packets.COPY_DATA(src_sel=pm4.COPY_L2, dst_sel=pm4.COPY_L2, count_sel=pm4.COUNT_64, src=far + 16,
                              dst=far + 32),
            packets.COPY_DATA(src_sel=pm4.COPY_GPU_CLOCK, dst_sel=pm4.COPY_L2, count_sel=pm4.COUNT_64, dst=far + 40),
            packets.COPY_DATA(src_sel=pm4.COPY_IMMEDIATE, dst_sel=pm4.COPY_L2, src=77, dst=far + 48),
            packets.WAIT_REG_MEM64(function=pm4.EQUAL, mem_space=pm4.MEM_SPACE_MEMORY, addr=far + 32,
                                   reference=1 | 2 << 32, mask=(1 << 64) - 1),
            it.program.release(far, data=pm4.DATA_GPU_CLOCK))
  words = [it.signal.mapping.load64(offset) for offset in range(0, 56, 8)]
  assert words[2:4] == [1 | 2 << 32, 3] and words[4] == 1 | 2 << 32 and words[6] == 77 and words[0] >= words[5] > 0

@pytest.mark.parametrize("data,wanted",
                         [(pm4.DATA_NONE, 1 << 63), (pm4.DATA_32, 1 << 63 | 5), (pm4.DATA_64, 5 | 1 << 40)])
def test_widths_of_a_fence(data: int, wanted: int) -> None:
  it = Setup()
  it.signal.mapping.store64(0, 1 << 63)
  it.submit(it.fence(5 | 1 << 40, data=data))
  assert it.signal.mapping.load64(0) == wanted

def test_atomics_of_the_command_processor() -> None:
  it = Setup()
  packets, place = it.program.packets, it.signal.address + 64
  it.submit(packets.ATOMIC_MEM(atomic=0x0F, addr=place, src_data=0xFFFFFFFF),
            packets.ATOMIC_MEM(atomic=0x2F, addr=place + 8, src_data=5 << 40))
  it.submit(packets.ATOMIC_MEM(atomic=0x0F, addr=place, src_data=3))
  assert it.signal.mapping.load64(64) == 2 and it.signal.mapping.load64(72) == 5 << 40
  assert "not emulated" in refused(it, packets.ATOMIC_MEM(atomic=0x10, addr=place))

# **** caches ****

@pytest.mark.slow
def test_a_kernel_needs_an_invalidation_between_launches() -> None:
  for missing, message in (((), ""), (("glv_inv",), "vector cache .*GLV_INV"), (("gl1_inv",), "GL1 cache .*GL1_INV"),
                           (("gl2_inv",), "L2 cache .*GL2_INV")):
    it = Setup()
    flags = [flag for flag in ("gli_inv", "glk_inv", "glv_inv", "gl1_inv", "gl2_inv") if flag not in missing]
    def whole_line(memory: MemoryInterface, registers: DispatchRegisters, group: Group) -> Iterator[None]:
      memory.load(registers.user_data[0] | registers.user_data[1] << 32, 128)
      yield
    kernels(it.program.computer, {0x1000: whole_line})
    it.submit(it.flush(), it.launch(64), it.fence(1))
    it.data.mapping.store32(0, 5)
    def again() -> None: it.submit(it.flush(), it.program.acquire(*flags), it.launch(64), it.fence(2))
    if not missing: again()
    else:
      with pytest.raises(StaleRead, match=f"which the program wrote.*{message}"): again()

def test_the_program_reads_only_what_was_written_back() -> None:
  it = Setup()
  it.submit(it.flush(), it.launch(4), it.fence(1, write_back=False))
  with pytest.raises(StaleRead, match=r"the program reads .* which workgroup .* wrote.*GL2_WB"):
    it.data.mapping.load32(0)
  it.submit(it.fence(2))
  assert it.data.mapping.load32(0) == 1

def test_what_the_program_wrote_into_vram_must_be_flushed() -> None:
  it = Setup()
  with pytest.raises(StaleRead, match="through the bar of GPU 0.*HDP_FLUSH_REQ"): it.submit(it.launch())

def test_uncached_memory_needs_no_write_back() -> None:
  it = Setup(memory=GTT | WRITABLE | PUBLIC | 1 << 26)
  it.submit(it.launch(4), it.fence(1, write_back=False))
  assert it.data.mapping.load32(0) == 1

def test_a_range_is_invalidated() -> None:
  it = Setup()
  cache = it.program.gpu.xccs[0].cache("last")
  it.submit(it.flush(), it.launch(128), it.fence(1))
  before = cache.lines()
  it.submit(it.program.packets.ACQUIRE_MEM(coher_base=it.data.address >> 8, coher_size=1, gl2_inv=1))
  assert len(before) == 4 and cache.lines() == before[2:]  # 256 bytes are two lines

# **** indirect buffers ****

def test_indirect_buffers_are_read_once_and_nest() -> None:
  it = Setup()
  inner, outer = it.program.allocate(4096), it.program.allocate(4096)
  def fill(area: Area, words: list[int]) -> list[int]:
    for i, word in enumerate(words): area.mapping.store32(4 * i, word)
    packet: list[int] = it.program.packets.INDIRECT_BUFFER(ib_base=area.address, ib_size=len(words), valid=1)
    return packet
  call = fill(outer, [*fill(inner, it.fence(3)), *it.program.wait(it.signal.address, 3), *it.fence(4)])
  it.submit(call)
  assert it.signal.mapping.load64(0) == 4

def refused(it: Setup, *packets: list[int]) -> str:
  with pytest.raises(PacketError) as caught: it.submit(*packets)
  assert it.program.computer.queues.queues[it.queue.request.queue_id].stopped is not None
  return caught.value.message

REFUSED = {
  "opcode": lambda it: [pm4.header(0x77, 1), 0],
  "type of header": lambda it: [0],
  "predicate": lambda it: [pm4.header(0x10, 1) | 1, 0],
  "unknown bits": lambda it: [pm4.header(0x46, 1), 0x407 | 1 << 20],
  "unknown register": lambda it: it.program.packets.SET_SH_REG(reg_offset=0x3f0, values=[1]),
  "a register's wait": lambda it: it.program.packets.WAIT_REG_MEM(function=3, addr=0x2e00, reference=1, mask=1),
  "another register pair": lambda it: it.program.packets.WAIT_REG_MEM(function=3, operation=1, addr=0x1234, reference=1,
                                                                      mask=1),
  "flush bits of a copy engine": lambda it: it.program.packets.WAIT_REG_MEM(function=3, operation=1,
                                                                            addr=0xe26 | 0xe27 << 32, reference=1024,
                                                                            mask=1024),
  "align": lambda it: it.program.wait(it.signal.address + 2, 0),
  "align the fence": lambda it: it.program.release(it.signal.address + 4, 1),
  "event index": lambda it: it.program.packets.RELEASE_MEM(event_type=0x14, event_index=4),
  "other event": lambda it: it.program.packets.EVENT_WRITE(event_type=0x10, event_index=0),
  "indirect buffer not valid": lambda it: it.program.packets.INDIRECT_BUFFER(ib_base=it.signal.address, ib_size=4),
  "indirect buffer of nothing": lambda it: it.program.packets.INDIRECT_BUFFER(ib_base=it.signal.address, valid=1),
  "coher_size": lambda it: it.program.packets.ACQUIRE_MEM(glv_inv=1),
  "coher_base": lambda it: it.program.packets.ACQUIRE_MEM(coher_base=1, coher_size=pm4.COHER_SIZE_ALL, glv_inv=1),
  "nothing starts": lambda it: it.program.kernel_registers(user_data=[0, 0]) + it.program.dispatch(compute_shader_en=0),
}

@pytest.mark.parametrize("name", REFUSED)
def test_packets_that_are_refused(name: str) -> None:
  it = Setup()
  message = refused(it, REFUSED[name](it))
  assert "PM4 queue 0 of GPU 0 (gfx1100), XCC 0" in message and "last packets" in message

def test_predicates_work_in_indirect_buffers_only() -> None:
  it = Setup("gfx942")
  assert "indirect buffers only" in refused(it, it.program.packets.PRED_EXEC(virtual_xcc_id_select=1, exec_count=1)
                                            + [pm4.NOP_WORD])

def test_a_write_pointer_in_the_midst_of_a_packet() -> None:
  it = Setup()
  assert "are left" in refused(it, it.fence(1)[:4])

def test_a_fence_needs_the_end_of_pipe_buffer() -> None:
  program = Program()
  ring = program.queue(eop_buffer_address=0)
  ring.submit(program.release(program.allocate(4096).address, 1))
  program.settle()
  assert program.gpu.stopped is not None and "write to 0x0: not present" in program.gpu.stopped

def test_a_queue_stops_at_a_page_fault() -> None:
  it = Setup()
  it.submit(it.program.wait(0x7000_0000_0000, 1), it.fence(1))
  assert it.signal.mapping.load64(0) == 0
  assert it.program.gpu.stopped is not None and "read of 0x700000000000: not present" in it.program.gpu.stopped
