"""Queues of KFD: their memory, creation and doorbells, and the compute queue that reads PM4. AQL queues are in aql.py,
copies in sdma.py.

A queue takes pieces of words (`put`), and its ring signals them to the hardware. Memory of queues obeys the rules of
Linux, amdkfd/kfd_queue.c: the ring, the page of pointers, the end-of-pipe buffer and the save area of waves are
separate allocations, of exactly the sizes that it requires.
"""
from __future__ import annotations
import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tinyhw.autogen.amd import hsa, kfd_ioctl, pm4
from tinyhw.drivers.amd.kfd import DOORBELL_BYTES, HOST, VRAM, Kfd, MemoryKind
from tinyhw.drivers.amd.topology import Gpu
from tinyhw.drivers.gpu.launch import Indirect
from tinyhw.drivers.gpu.memory import Memory
from tinyhw.drivers.gpu.queue import Ring, Transient
from tinyhw.drivers.linux.files import PAGE, Mapping, Returns, fence

RING_BYTES = 1 << 20
MOST_SHOWN = 1 << 15                                    # words of an indirect buffer that a report searches
EOP_BYTES = 4096
PRIORITY = 7                                            # of 15; other users of the machine may be more important
# in the page of pointers, which is an AQL queue's descriptor
WRITE_POINTER: int = hsa.Queue.write_dispatch_id.offset
READ_POINTER: int = hsa.Queue.read_dispatch_id.offset

class Owner(Protocol):
  """The interface of a queue's device."""
  kfd: Kfd
  gpu: Gpu
  transient: Transient
  def allocate(self, size: int, kind: MemoryKind, label: str) -> Memory: ...
  def doorbells(self, offset: int) -> Mapping: ...
  def wait_for(self, done: Callable[[], bool], what: str) -> None: ...
  def words(self, address: int, count: int) -> list[int]: ...

class Queue:
  """A queue of the kernel: memory, doorbell, and a ring of words. kind: a KFD_IOC_QUEUE_TYPE.

  Subclasses define the content of the ring, and the unit of its pointers and its doorbell: words, bytes or packets.
  """
  name = ""
  kind = kfd_ioctl.KFD_IOC_QUEUE_TYPE_COMPUTE

  def __init__(self, owner: Owner, ring_bytes: int = RING_BYTES):
    self.owner = owner
    taken: list[Memory] = []
    with contextlib.ExitStack() as undo:
      def allocate(size: int, kind: MemoryKind, label: str) -> Memory:
        memory = owner.allocate(size, kind, f"{self.name} queue: {label}")
        undo.callback(memory.close)
        taken.append(memory)
        return memory
      self.memory, pointers = allocate(ring_bytes, HOST, "ring"), allocate(PAGE, HOST, "pointers")
      self.pointers = pointers.mapping
      self.memory.mapping.copyin(0, self.empty_ring(ring_bytes))
      self.pointers.copyin(0, self.descriptor())
      request = kfd_ioctl.CreateQueue(
        ring_base_address=self.memory.address, ring_size=ring_bytes, gpu_id=owner.gpu.gpu_id, queue_type=self.kind,
        queue_percentage=kfd_ioctl.KFD_MAX_QUEUE_PERCENTAGE, queue_priority=PRIORITY,
        write_pointer_address=pointers.address + WRITE_POINTER,
        read_pointer_address=pointers.address + READ_POINTER)
      if self.kind in (kfd_ioctl.KFD_IOC_QUEUE_TYPE_COMPUTE, kfd_ioctl.KFD_IOC_QUEUE_TYPE_COMPUTE_AQL):
        sizes, save = owner.gpu.queue_sizes(), allocate(owner.gpu.queue_sizes().total, VRAM, "saved waves")
        request.eop_buffer_address, request.eop_buffer_size = allocate(EOP_BYTES, VRAM,
                                                                       "end of pipe").address, EOP_BYTES
        request.ctx_save_restore_address, request.ctx_save_restore_size, request.ctl_stack_size = (
          save.address, sizes.save, sizes.control_stack)
      owner.kfd.node.ioctl(request)
      self.number = int(request.queue_id)
      destroyed = Returns(owner.kfd.unreturned)
      destroyed.add(lambda: owner.kfd.node.ioctl(kfd_ioctl.DestroyQueue(queue_id=self.number)))
      # the kernel's queue reads it until it is destroyed, in all cases
      for memory in taken: memory.returns.add(destroyed.close)
      self.doorbell, self.doorbell_offset = (owner.doorbells(request.doorbell_offset),
                                             request.doorbell_offset & (DOORBELL_BYTES - 1))
      self.undo = undo.pop_all()
    self.ring = self.make_ring(ring_bytes // 4)

  def empty_ring(self, size: int) -> bytes:
    """Return the initial content of the ring."""
    return bytes(size)

  def descriptor(self) -> bytes:
    """Return the initial content of the page of pointers."""
    return bytes(PAGE)

  def make_ring(self, words: int) -> Ring:
    return Ring(self.memory.mapping, words, self.consumed, self.publish, self.wait)

  def wait(self, done: Callable[[], bool]) -> None:
    """Wait for room in the ring."""
    self.owner.wait_for(done, f"room in the {self.name} queue")

  def consumed(self) -> int:
    """Return the position in the ring of the next word that the hardware reads."""
    raise NotImplementedError

  def pointer(self, written: int) -> int:
    """Return the write pointer for a count of written words."""
    return written

  def doorbell_value(self, written: int) -> int:
    """Return the value for the doorbell."""
    return self.pointer(written)

  def publish(self, written: int) -> None:
    """Signal the hardware: the write pointer in memory first, then the doorbell."""
    fence()
    self.pointers.store64(WRITE_POINTER, self.pointer(written))
    fence()
    self.doorbell.store64(self.doorbell_offset, self.doorbell_value(written))

  def state(self) -> str:
    """Return the progress of the queue, for reports."""
    return (f"{self.name} queue {self.number}: {self.consumed()} of {self.ring.written % self.ring.words} words read "
            f"(modulo {self.ring.words})")

  def close(self) -> None:
    """Destroy the queue and free its memory. It should be idle. A second call does nothing."""
    self.undo.close()

class ComputeQueue(Protocol):
  """A queue for PM4 commands, of this file or of aql.py."""
  name: str
  ring: Ring
  def put(self, *pieces: list[int] | Indirect) -> None: ...
  def state(self) -> str: ...
  def recent(self) -> list[str]: ...
  def close(self) -> None: ...

class Pm4Queue(Queue):
  """A ring of PM4 packets.

  Its read pointer has 32 bits, in words, and wraps with the ring. The write pointer never wraps.
  """
  name = "compute"

  def consumed(self) -> int: return self.pointers.load32(READ_POINTER) & self.ring.words - 1

  def put(self, *pieces: list[int] | Indirect) -> None:
    """Append commands, in order."""
    words = list[int]()
    for piece in pieces:
      words += (pm4.GFX10.INDIRECT_BUFFER(ib_base=piece[0], ib_size=piece[1], valid=1) if isinstance(piece, Indirect)
                else piece)
    limit = self.ring.words // 4
    for start in range(0, len(words), limit): self.ring.put(words[start:start + limit])

  def recent(self) -> list[str]:
    """Return the packets around the read position of the hardware, as text."""
    return show_packets(self.owner, self.ring.recent(64))

def show_packets(owner: Owner, words: Sequence[int], most: int = 12) -> list[str]:
  """Return the last packets of words as text, each followed by the last packets of its indirect buffer.

  The words may begin inside of a packet, so the start with the most valid packets is taken.
  """
  table, best = {9: pm4.GFX9, 10: pm4.GFX10}[owner.gpu.chip.packets], list[tuple[pm4.Packet, dict[str, Any]]]()
  for start in range(len(words)):
    found, place = list[tuple[pm4.Packet, dict[str, Any]]](), start
    try:
      while place < len(words):
        packet, fields, size = table.read(words, place)
        found.append((packet, fields))
        place += size
    except ValueError: pass  # the rest is cut off, or the start was inside of a packet
    best = max(best, found, key=len)
    if place == len(words): break    # all words from here on are packets
  lines = list[str]()
  for packet, fields in best[-most:]:
    lines.append(f"{packet.name} " + " ".join(f"{name}={_number(value)}" for name, value in fields.items() if value))
    if packet is table.INDIRECT_BUFFER and fields["ib_size"] <= MOST_SHOWN:
      lines += ["  " + line for line in show_packets(owner, owner.words(fields["ib_base"], fields["ib_size"]))]
  return lines

def _number(value: int | list[int]) -> str:
  return ",".join(f"{v:#x}" for v in value) if isinstance(value, list) else f"{value:#x}" if value > 9 else str(value)
