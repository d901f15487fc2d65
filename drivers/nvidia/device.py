"""One NVIDIA GPU: the subclass of drivers/gpu/device.py.

It has two channels of one group, one for kernels and one for copies.
"""
from __future__ import annotations
import contextlib
import time
from collections.abc import Sequence
from typing import Any

from tinyhw.autogen.nvidia import methods
from tinyhw.device import VECTOR_BYTES
from tinyhw.drivers.gpu.device import Faulted, GpuDevice, RetainedMemory, Mark
from tinyhw.drivers.gpu.launch import Indirect, Work, work_of_copy
from tinyhw.drivers.gpu.memory import STAGE_BYTES, GpuAllocator, Memory, Stage
from tinyhw.drivers.gpu.order import EVERYTHING, AccessedRanges
from tinyhw.drivers.gpu.queue import Timeline, Transient
from tinyhw.drivers.linux.files import PAGE
from tinyhw.drivers.nvidia import faults
from tinyhw.drivers.nvidia.card import HOST, USER, VRAM, Card, MemoryKind
from tinyhw.drivers.nvidia.channel import Channel, make_channels
from tinyhw.drivers.nvidia.commands import Commands
from tinyhw.drivers.nvidia.launch import NVRecording, NVProgram

TRANSIENT_BYTES = 8 << 20
SHARED_WINDOW, LOCAL_WINDOW = 0x7294_0000_0000, 0x7293_0000_0000   # unused addresses, 4 GiB each
# allocation units of local memory; as in Mesa NVK
WARP_UNIT, TPC_UNIT, LOCAL_UNIT = 0x200, 0x8000, 0x20000
WARP = 32
POLL_SECONDS = 0.0001
SETUP: list[Work] = [("setup", None)]

def _up(value: int, unit: int) -> int: return -(-value // unit) * unit

class NVDevice(GpuDevice):
  """A GPU that is driven through NVIDIA's kernel driver."""
  kernel, recording, user_memory = NVProgram, NVRecording, USER
  stamp_bytes, stamp_place = 16, 8

  def __init__(self, name: str, card: Card):
    super().__init__(name, card.connection.box)
    self.card = card
    self.local: tuple[Memory, int] | None = None    # with its bytes for a TPC
    self.local_lane = 0                             # bytes of a lane
    with contextlib.ExitStack() as undo:
      self.undo = undo                              # for a loss of the device before it is open
      undo.callback(self.give_back)
      words = self.allocate(PAGE, HOST, "signals").mapping
      words.copyin(0, bytes(PAGE))
      self.timeline = Timeline(words, 0)
      staging, transient = self.allocate(2 * STAGE_BYTES, HOST, "staging"), self.allocate(TRANSIENT_BYTES, HOST,
                                                                                          "commands and arguments")
      self.stage = Stage(self, staging)
      self.transient = Transient(transient.mapping, transient.address, self.timeline, self.wait_number,
                                 NVProgram.alignment)
      self.doorbell = card.usermode(undo)
      self.compute, self.copies = make_channels(self, undo)
      limit = card.facts.get("memory_kib", 0) << 10 or None
      self.begin(card.kept or RetainedMemory(GpuAllocator(self, VRAM, limit, VECTOR_BYTES),
                                             GpuAllocator(self, VRAM, None), set()), card.chip.arch)
      card.kept = None
      self._introduce()
      self.undo = undo.pop_all()

  def _introduce(self) -> None:
    """Bind the engines' objects to the channels' subchannels."""
    with self.submission(self.compute, SETUP) as number:
      commands = self.commands()
      commands.setup(self.card.chip.compute, SHARED_WINDOW, LOCAL_WINDOW)
      commands.release(self.timeline.address, number, wait=True)
      self._put(self.compute, number, commands.words)
    with self.submission(self.copies, SETUP) as number:
      commands = self.commands()
      commands.acquire(self.timeline.address, number - 1)
      commands.bind(methods.COPY_SUBCHANNEL, self.copies.number)
      commands.release(self.timeline.address, number, wait=True)
      self._put(self.copies, number, commands.words)
    self.synchronize()

  def _put(self, channel: Channel, number: int, *pieces: list[int] | Indirect) -> None:
    """Append a submission's commands."""
    channel.put(*pieces)
    channel.mark(self.timeline, number)

  # **** memory ****

  def get_memory(self, size: int, kind: MemoryKind, label: str, host: int) -> Memory:
    return self.card.allocate(size, kind, label, host)
  def share(self, memory: Memory) -> None: self.card.share(memory)

  def reserve_local(self, lane_bytes: int) -> None:
    """Reserve local memory of `lane_bytes` for each lane that can run at once."""
    with self.lock:
      if lane_bytes <= self.local_lane: return
      chip = self.card.chip
      tpc_bytes = _up(_up(lane_bytes * WARP, WARP_UNIT) * chip.warps * chip.sms_of_tpc, TPC_UNIT)
      memory = self.allocate(_up(tpc_bytes * self.card.tpc_places, LOCAL_UNIT), VRAM, "local memory")
      old, self.local, self.local_lane = self.local, (memory, tpc_bytes), lane_bytes
      if old is not None: self.release(old[0], self.mark())

  # **** order ****

  def sleep(self, ms: int) -> None:
    time.sleep(min(ms / 1000, POLL_SECONDS))
    self.doorbell.load32(methods.USERMODE_TIME)  # a poll of the device: it advances a virtual one
    for channel in (self.compute, self.copies):
      error = channel.error()
      if error: raise Faulted(faults.explain(self, channel, error))

  def to_ns(self, ticks: int) -> int: return ticks
  def hand_over(self, left: RetainedMemory) -> None: self.card.kept = left

  # **** work ****

  def commands(self) -> Commands:
    """Return an empty list of commands."""
    return Commands(self.card.chip.generation)

  def enqueue(self, pieces: Sequence[list[int] | Indirect], work: Sequence[Work],
              what: AccessedRanges = EVERYTHING) -> Mark:
    with self.lock, self.submission(self.compute, work) as number:
      first, last = self.commands(), self.commands()
      needed = self.queues.take(self.compute.name, number, what, self.timeline.completed)
      if needed: first.acquire(self.timeline.address, needed)
      first.see_earlier_kernels()
      if self.local is not None: first.local_memory(self.local[0].address, self.local[1])
      if self.last == self.copies.name and needed < number - 1: last.acquire(self.timeline.address, number - 1)
      last.release(self.timeline.address, number, wait=True)
      self._put(self.compute, number, first.words, *pieces, last.words)
    return self.epoch, number

  def enqueue_copy(self, dest: int, source: int, size: int) -> Mark:
    with self.lock, self.submission(self.copies, work_of_copy(dest, source, size)) as number:
      commands, what = self.commands(), AccessedRanges([(source, source + size)], [(dest, dest + size)])
      needed = self.queues.take(self.copies.name, number, what, self.timeline.completed)
      if needed: commands.acquire(self.timeline.address, needed)
      commands.copy(dest, source, size)
      if self.last == self.compute.name and needed < number - 1: commands.acquire(self.timeline.address, number - 1)
      commands.copied(self.timeline.address, number)
      self._put(self.copies, number, commands.words)
    return self.epoch, number

  def between_stamps(self, call: list[int], begin: int, end: int) -> list[int]:
    before, after = self.commands(), self.commands()
    before.release(begin, 0, wait=True, timestamp=True)
    after.release(end, 0, wait=True, timestamp=True)
    return before.words + call + after.words

  def facts(self) -> dict[str, Any]:
    card, l2 = self.card, self.card.facts.get("l2_kib", 0) << 10
    caches = {"cache_bytes": (card.chip.cache_bytes, l2)} if l2 else {}
    return {"arch": self.arch, "processor": f"{card.name}, {card.multiprocessors} multiprocessors", **caches,
            "threads": card.multiprocessors,
            "local_bytes": card.chip.local_bytes, "memory_limit": self.allocator.limit,
            "kernel_interface": f"NVIDIA {card.connection.shown}"}
