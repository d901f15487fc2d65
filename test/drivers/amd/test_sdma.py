"""The copy engine: packets of copies, waits and signals; pointers in bytes; the end of the ring."""
import pytest
from amd.box import Opener

from tinyhw.drivers.amd import sdma as copies
from tinyhw.drivers.amd.queue import READ_POINTER, RING_BYTES, WRITE_POINTER

@pytest.mark.parametrize("kind, packets", [("gfx1100", 4), ("gfx1200", 4), ("gfx942", 4)])
def test_a_copy_is_cut_into_what_a_packet_can_count(opened: Opener, monkeypatch: pytest.MonkeyPatch, kind: str,
                                                    packets: int) -> None:
  box, device = opened(kind)
  monkeypatch.setitem(copies.MOST_BYTES, device.gpu.chip.sdma, 1000)
  a, b = device.allocator.alloc(4000), device.allocator.alloc(4000)
  device.allocator.copyin(a, memoryview(bytes(range(250)) * 16))
  box.packets.clear()
  device.copies.copy(b.address, a.address, 3999)
  device.copies.ring.ring()
  assert box.packets == ["sdma COPY_LINEAR"] * packets
  out = bytearray(4000)
  device.allocator.copyout(memoryview(out), b)
  assert out[:3999] == (bytes(range(250)) * 16)[:3999]

@pytest.mark.parametrize("kind", ("gfx1100", "gfx1200", "gfx942"))
def test_signals_and_waits(opened: Opener, kind: str) -> None:
  box, device = opened(kind)
  words = device.transient.write(bytes(8))
  box.packets.clear()
  device.copies.signal(words, 7, (words + 4, 9))
  device.copies.wait_memory(words, 7)
  device.copies.ring.ring()
  assert box.packets == ["sdma FENCE", "sdma FENCE", "sdma TRAP", "sdma POLL_REGMEM"]
  offset = words - device.transient.address
  memory = device.transient.memory
  assert (memory.load32(offset), memory.load32(offset + 4)) == (7, 9)

def test_pointers_count_bytes_and_never_wrap(opened: Opener) -> None:
  box, device = opened("gfx1100")
  queue = device.copies
  pages = device.transient.write(bytes(8))
  for _ in range(2 * RING_BYTES // 64_000 + 1):
    queue.ring.put(queue.packets.NOP(count=15_999, data=[0] * 15_999))
  queue.ring.put(queue.packets.COPY_LINEAR(count=3, src_addr=pages, dst_addr=pages + 4))
  queue.ring.ring()
  assert (queue.pointers.load64(WRITE_POINTER) == queue.pointers.load64(READ_POINTER)
          == queue.doorbell.load64(queue.doorbell_offset) > 2 * RING_BYTES)
  assert queue.consumed() == queue.pointers.load64(READ_POINTER) // 4 % (RING_BYTES // 4)

def test_a_packet_does_not_cross_the_end_of_the_ring(opened: Opener) -> None:
  box, device = opened("gfx1100")
  queue, words = device.copies, device.copies.ring.words
  pages = device.transient.write(bytes(8))
  while (left := words - 3 - queue.ring.written) > 0:
    count = min(16_000, left) - 1
    queue.ring.put(queue.packets.NOP(count=count, data=[0] * count))
  queue.ring.put(queue.packets.COPY_LINEAR(count=3, src_addr=pages, dst_addr=pages + 4))
  assert queue.ring.written == words + 7
  queue.ring.ring()
  assert box.packets[-1] == "sdma COPY_LINEAR" and box.packets[-2] == "sdma NOP"
