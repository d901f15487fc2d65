"""tinyhw/emulator/amd/card/sdma.py: effects of the copy engines' packets, and refusals."""
from collections.abc import Callable

import pytest

from test.support.amd.virtual import DEVICE_MEMORY, PAGE, SDMA, Program
from tinyhw.autogen.amd import sdma
from tinyhw.emulator.errors import PacketError, StaleRead

CARDS = ("gfx1100", "gfx1200", "gfx942")

class Setup:
  """A copy queue, a buffer of 64 KiB in VRAM and one in system memory, and a page of fences."""
  def __init__(self, card: str = "gfx1100", seed: int = 0):
    self.program = Program(card, seed=seed)
    self.packets = self.program.copies
    self.queue = self.program.queue(SDMA)
    self.vram, self.host, self.fence = self.program.allocate(1 << 18, DEVICE_MEMORY), self.program.allocate(
      1 << 18), self.program.allocate(PAGE)

  def submit(self, *packets: list[int]) -> None:
    self.queue.submit(*packets)
    self.program.settle()

  def copy(self, target: int, source: int, size: int) -> list[int]:
    words: list[int] = self.packets.COPY_LINEAR(count=size - 1, src_addr=source, dst_addr=target)
    return words

  def signal(self, value: int) -> list[int]:
    words: list[int] = self.packets.FENCE(addr=self.fence.address, data=value)
    return words

@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("size", [1, 3, 4096, 200_001])
def test_a_copy_there_and_back(card: str, size: int) -> None:
  it = Setup(card)
  data = bytes(i * 7 % 251 for i in range(size))
  it.host.mapping.copyin(0, data)
  it.submit(it.copy(it.vram.address + 16, it.host.address, size),
            it.copy(it.host.address + 64, it.vram.address + 16, size), it.signal(9))
  back = bytearray(size)
  it.host.mapping.copyout(64, memoryview(back))
  assert it.fence.mapping.load32(0) == 9 and back == data
  assert it.queue.read.mapping.load64(0) == it.queue.count and it.program.close() == {}

@pytest.mark.slow
def test_pointers_count_bytes_and_never_wrap() -> None:
  it = Setup()
  for value in range(1, 400):
    if it.queue.count % 4096 > 4096 - 16: it.queue.put([0] * ((4096 - it.queue.count % 4096) // 4))
    it.submit(it.signal(value))
  assert (it.queue.count > 4096 and it.queue.read.mapping.load64(0) == it.queue.count
          and it.fence.mapping.load32(0) == 399)

def test_a_fence_is_32_bits_wide_and_comes_after_the_copy() -> None:
  it = Setup()
  it.fence.mapping.store64(0, (1 << 64) - 1)
  it.submit(it.signal(5))
  assert it.fence.mapping.load64(0) == 0xFFFFFFFF_00000005

@pytest.mark.parametrize("fields,wanted", [
  ({"data": 0x11223344, "count": 12, "fillsize": sdma.FILL_WORD}, bytes.fromhex("44332211") * 4),
  ({"data": 0x55, "count": 4, "fillsize": sdma.FILL_BYTE}, b"\x55" * 5)])
def test_fills_count_one_unit_less(fields: dict[str, int], wanted: bytes) -> None:
  it = Setup()
  it.submit(it.packets.CONSTANT_FILL(dst_addr=it.host.address, **fields))
  back = bytearray(len(wanted) + 4)
  it.host.mapping.copyout(0, memoryview(back))
  assert back == wanted + bytes(4)

def test_writes_timestamps_and_atomics() -> None:
  it = Setup()
  it.submit(it.packets.WRITE_UNTILED(dst_addr=it.fence.address + 8, count=1, data=[1, 2]),
            it.packets.TIMESTAMP_GET_GLOBAL(write_addr=it.fence.address + 16),
            it.packets.ATOMIC(addr=it.fence.address + 8, src_data=(1 << 64) - 1, atomic_op=47),
            it.packets.NOP(count=2, data=[5, 6]), it.signal(1))
  assert (it.fence.mapping.load64(8) == (1 | 2 << 32) - 1 and it.fence.mapping.load64(16) > 0
          and it.fence.mapping.load32(0) == 1)

def test_polls_wait_for_memory() -> None:
  it = Setup()
  it.submit(it.packets.POLL_REGMEM(func=sdma.GREATER_EQUAL, mem_poll=1, addr=it.fence.address + 8, value=3,
                                   mask=0xFFFFFFFF, interval=4,
                                   retry_count=sdma.RETRY_FOREVER), it.signal(1))
  assert it.fence.mapping.load32(0) == 0
  it.fence.mapping.store32(8, 3)
  it.program.settle()
  assert it.fence.mapping.load32(0) == 1

def test_host_writes_to_vram_are_flushed_by_a_poll() -> None:
  it = Setup()
  it.vram.mapping.copyin(0, b"new!")
  with pytest.raises(StaleRead, match="through the bar"): it.submit(it.copy(it.host.address, it.vram.address, 4))
  it = Setup()
  it.vram.mapping.copyin(0, b"new!")
  it.submit(it.packets.POLL_REGMEM(hdp_flush=1), it.copy(it.host.address, it.vram.address, 4))
  assert it.host.mapping.load32(0) == int.from_bytes(b"new!", "little")

def test_indirect_buffers_end_at_a_multiple_of_8_words() -> None:
  it = Setup()
  words = [*it.copy(it.host.address + 4, it.host.address, 4), *it.signal(3)]
  for i, word in enumerate(words): it.fence.mapping.store32(256 + 4 * i, word)
  call = it.packets.INDIRECT(ib_base=it.fence.address + 256, ib_size=len(words))
  it.submit([0, 0], call)
  assert it.fence.mapping.load32(0) == 3
  with pytest.raises(PacketError, match="not at a multiple of 8"): it.submit(call)

REFUSED: dict[str, tuple[str, str, Callable[[Setup], list[int]]]] = {
  "opcode": ("gfx1100", "no packet has the opcode", lambda it: [0x42]),
  "unknown bits": ("gfx1100", "no field has its bits", lambda it: [5 | 1 << 31, 0, 0, 0]),
  "a count of 30 bits on gfx9": ("gfx942", "no field has its bits", lambda it: [1, 1 << 22, 0, *[0] * 4]),
  "an aligned fence": ("gfx1100", "align the address to 4", lambda it: it.packets.FENCE(addr=it.fence.address + 2)),
  "an aligned timestamp": ("gfx1100", "align the address to 8",
                           lambda it: it.packets.TIMESTAMP_GET_GLOBAL(write_addr=it.fence.address + 4)),
  "an aligned indirect buffer": ("gfx1100", "align the address to 32",
                                 lambda it: it.packets.INDIRECT(ib_base=it.fence.address + 4, ib_size=1)),
  "a fill of parts of words": ("gfx1100", "no whole units",
                               lambda it: it.packets.CONSTANT_FILL(dst_addr=it.fence.address, count=3, fillsize=2)),
  "a poll that ends": ("gfx1100", "polls for ever",
                       lambda it: it.packets.POLL_REGMEM(func=3, mem_poll=1, addr=it.fence.address, retry_count=5)),
  "a poll of a register": ("gfx1100", "poll of a register", lambda it: it.packets.POLL_REGMEM(func=3, addr=0x100)),
  "a packet half written": ("gfx1100", "are left", lambda it: it.copy(0, 0, 4)[:5]),
  "a trusted copy": ("gfx1100", "not emulated", lambda it: it.packets.COPY_LINEAR(tmz=1)),
  "SRBM_WRITE": ("gfx1100", "SRBM_WRITE is not emulated", lambda it: it.packets.SRBM_WRITE(addr=1)),
}

@pytest.mark.parametrize("name", REFUSED)
def test_packets_that_are_refused(name: str) -> None:
  card, message, packet = REFUSED[name]
  it = Setup(card)
  with pytest.raises(PacketError, match=message) as caught: it.submit(packet(it))
  assert "SDMA queue 0 of GPU 0" in caught.value.message

@pytest.mark.slow
def test_a_packet_does_not_go_over_the_end_of_the_ring() -> None:
  it = Setup()
  it.submit([0] * 1021)
  with pytest.raises(PacketError, match="over the end of the ring"): it.submit(it.signal(1))

def test_the_eighth_word_of_a_copy_on_gfx12() -> None:
  it = Setup("gfx1200")
  it.host.mapping.store32(0, 77)
  it.submit(it.packets.COPY_LINEAR(cpv=1, count=3, src_addr=it.host.address, dst_addr=it.host.address + 8,
                                   compression=[0]), it.signal(1))
  assert it.host.mapping.load32(8) == 77 and it.fence.mapping.load32(0) == 1

def test_a_copy_from_nowhere_is_a_fault() -> None:
  it = Setup()
  it.submit(it.copy(it.host.address, 0x7000_0000_0000, 64), it.signal(1))
  assert (it.fence.mapping.load32(0) == 0 and it.program.gpu.stopped is not None
          and "read of 0x700000000000" in it.program.gpu.stopped)

def test_cache_requests_empty_the_caches() -> None:
  it = Setup()
  xcc = it.program.gpu.xccs[0]
  port = it.program.gpu.unit_port("a wave", xcc, 0)
  port.load(it.host.address, 4)
  port.store(it.vram.address, bytes(4))
  bits = 1 << 14 | 1 << 15 | 1 << 8 | 1 << 9
  it.submit(it.packets.GCR_REQ(gcr_control_15_0=bits))
  assert not any(cache.lines() for cache in xcc.read_caches()) and not xcc.dirty.lines
