"""AQL queues, for GPUs that present several compute dies as one. No other kind of queue is read by all dies.

Packets have 64 bytes. Those used here are vendor packets that send every die to an indirect buffer of PM4.
Source: ROCm, hsa.h, amd_hsa_queue.h and amd_gpu_pm4.h. Each packet has the barrier bit, so all dies finish a packet
before any die begins the next.
"""
from __future__ import annotations
import ctypes
import struct
from collections.abc import Callable, Sequence

from tinyhw.autogen.amd import hsa, kfd_ioctl, pm4
from tinyhw.drivers.amd.queue import READ_POINTER, Queue, show_packets
from tinyhw.drivers.gpu.launch import Indirect
from tinyhw.drivers.linux.files import PAGE, Mapping, fence
from tinyhw.drivers.gpu.queue import Ring

WORDS = hsa.PACKET_BYTES // 4
AQL_RING_BYTES = 4096 * hsa.PACKET_BYTES
INVALID = hsa.HEADER(type=hsa.PACKET_TYPE_INVALID)
HEADER = hsa.HEADER(type=hsa.PACKET_TYPE_VENDOR_SPECIFIC, barrier=1) | hsa.FORMAT_PM4_IB << 16

class PacketRing(Ring):
  """A ring whose packets become valid with their first word, which is written last."""
  def __init__(self, memory: Mapping, words: int, consumed: Callable[[], int], publish: Callable[[int], None],
               wait: Callable[[Callable[[], bool]], None]):
    super().__init__(memory, words, consumed, publish, wait, whole=True)

  def _write(self, words: Sequence[int]) -> None:
    place = self.written % self.words
    super()._write([INVALID, *words[1:]])
    fence()
    self.memory.store32(place * 4, words[0])

class AqlQueue(Queue):
  """A compute queue of all dies of a GPU.

  Its pointers count packets. The doorbell receives the index of the last packet.
  """
  name = "compute"
  kind = kfd_ioctl.KFD_IOC_QUEUE_TYPE_COMPUTE_AQL

  def empty_ring(self, size: int) -> bytes:
    return struct.pack(f"<I{hsa.PACKET_BYTES - 4}x", INVALID) * (size // hsa.PACKET_BYTES)

  def descriptor(self) -> bytes:
    """Return the queue descriptor. The command processor derives its address from that of the read pointer."""
    gpu = self.owner.gpu
    queue = hsa.Queue(base_address=self.memory.address, size=self.memory.size // hsa.PACKET_BYTES,
                      max_cu_id=gpu.compute_units * gpu.xccs - 1,
                      max_wave_id=gpu.values.get("max_waves_per_simd", 8) * gpu.values["simd_per_cu"] - 1,
                      read_dispatch_id_field_base_byte_offset=READ_POINTER,
                      queue_properties=hsa.QUEUE_PROPERTIES(is_ptr64=1))
    return bytes(queue).ljust(PAGE, b"\0")

  def make_ring(self, words: int) -> Ring:
    return PacketRing(self.memory.mapping, words, self.consumed, self.publish, self.wait)

  def consumed(self) -> int: return self.pointers.load64(READ_POINTER) * WORDS & self.ring.words - 1
  def pointer(self, written: int) -> int: return written // WORDS
  def doorbell_value(self, written: int) -> int: return written // WORDS - 1

  def put(self, *pieces: list[int] | Indirect) -> None:
    """Append commands, in order. Words are copied to memory that all dies read."""
    transient, joined = self.owner.transient, list[int]()
    for piece in (*pieces, None):
      if isinstance(piece, list):
        joined += piece
        continue
      if joined: self._send(Indirect(transient.write(struct.pack(f"<{len(joined)}I", *joined)), len(joined)))
      joined = []
      if piece is not None: self._send(piece)

  def _send(self, place: Indirect) -> None:
    packet = hsa.Pm4IndirectPacket(header=HEADER & 0xFFFF, format=HEADER >> 16, remaining=hsa.PM4_REMAINING)
    packet.indirect_buffer[:] = pm4.GFX9.INDIRECT_BUFFER(ib_base=place.address, ib_size=place.words, valid=1)
    self.ring.put(list((ctypes.c_uint32 * WORDS).from_buffer_copy(packet)))

  def recent(self) -> list[str]:
    """Return the packets around the read position of the hardware, as text."""
    words = self.ring.recent(2 * WORDS)
    return [line for start in range(1, len(words), WORDS) for line in show_packets(self.owner, words[start:start + 4])]
