"""The copy engine (SDMA): copies of memory in order with the compute queue, and to and from the host through shared
memory.

Packets: autogen/amd/sdma.py. A packet may not cross the end of the ring, so the rest of the ring is filled with NOPs,
which are words of zero.
"""
from __future__ import annotations
from tinyhw.autogen.amd import kfd_ioctl, sdma
from tinyhw.drivers.amd.queue import READ_POINTER, Queue
from tinyhw.drivers.gpu.queue import Ring

# Bytes of one copy packet, by generation, as far as the count reaches. ROCm stays below 2^22 by 32 bytes on the older
# one.
MOST_BYTES = {4: 0x3FFFE0, 6: 1 << 30, 7: 1 << 30}
PACKETS = {4: sdma.V4, 6: sdma.V6, 7: sdma.V7}
POLL_INTERVAL = 4

class CopyQueue(Queue):
  """A queue of a copy engine. Its pointers count bytes and never wrap."""
  name = "copy"
  kind = kfd_ioctl.KFD_IOC_QUEUE_TYPE_SDMA

  def make_ring(self, words: int) -> Ring:
    self.generation = self.owner.gpu.chip.sdma
    self.packets = PACKETS[self.generation]
    return Ring(self.memory.mapping, words, self.consumed, self.publish, self.wait, whole=True)

  def consumed(self) -> int: return self.pointers.load64(READ_POINTER) // 4 & self.ring.words - 1

  def pointer(self, written: int) -> int: return written * 4

  def wait_memory(self, address: int, value: int) -> None:
    """Wait until the word at an address is `value` or more."""
    self.ring.put(self.packets.POLL_REGMEM(func=sdma.GREATER_EQUAL, mem_poll=1, addr=address, value=value,
                                           mask=0xFFFF_FFFF, interval=POLL_INTERVAL,
                                           retry_count=sdma.RETRY_FOREVER))

  def copy(self, dest: int, source: int, size: int) -> None:
    """Copy bytes."""
    most = MOST_BYTES[self.generation]
    for start in range(0, size, most):
      self.ring.put(self.packets.COPY_LINEAR(count=min(most, size - start) - 1, src_addr=source + start,
                                             dst_addr=dest + start))

  def signal(self, address: int, value: int, event: tuple[int, int]) -> None:
    """When all earlier commands are done, write a 32-bit value, then signal event (mailbox, number)."""
    uncached = {} if self.generation == 4 else {"mtype": sdma.MTYPE_UC}
    self.ring.put(self.packets.FENCE(addr=address, data=value, **uncached))
    self.ring.put(self.packets.FENCE(addr=event[0], data=event[1], **uncached))
    self.ring.put(self.packets.TRAP(int_context=event[1]))
