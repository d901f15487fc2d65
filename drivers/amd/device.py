"""One AMD GPU: the subclass of drivers/gpu/device.py.

It has KFD, events, PM4 or AQL for compute, SDMA for copies, and scratch memory of waves.
"""
from __future__ import annotations
import contextlib
from collections.abc import Sequence
from typing import Any

from tinyhw.drivers.amd import faults
from tinyhw.drivers.amd.aql import AQL_RING_BYTES, AqlQueue
from tinyhw.drivers.amd.commands import Commands
from tinyhw.drivers.amd.events import Events
from tinyhw.drivers.amd.kfd import CODE, HOST, USER, VRAM, Kfd, MemoryKind, Reserved
from tinyhw.drivers.amd.launch import AMDRecording, AMDProgram
from tinyhw.drivers.amd.queue import ComputeQueue, Pm4Queue
from tinyhw.drivers.amd.sdma import CopyQueue
from tinyhw.drivers.amd.topology import Gpu
from tinyhw.drivers.gpu.device import Faulted, GpuDevice, RetainedMemory, Mark
from tinyhw.drivers.gpu.launch import Indirect, Work, work_of_copy
from tinyhw.drivers.gpu.memory import STAGE_BYTES, GpuAllocator, Memory, Stage
from tinyhw.drivers.gpu.order import EVERYTHING, AccessedRanges
from tinyhw.drivers.gpu.queue import Timeline, Transient
from tinyhw.drivers.linux.files import PAGE, Mapping

TRANSIENT_BYTES = 4 << 20
TICK_NS = 10             # of the GPU's clock, 100 MHz on all chips
SCRATCH_LANES = 64       # of the widest wave
MOST_SCRATCH_WAVES = 4095

class AMDDevice(GpuDevice):
  """A GPU that is driven through KFD."""
  kernel, recording, user_memory = AMDProgram, AMDRecording, USER

  def __init__(self, name: str, kfd: Kfd, gpu: Gpu):
    super().__init__(name, kfd.box)
    self.kfd, self.gpu = kfd, gpu
    # the memory and the other arguments of Commands.scratch
    self.scratch: tuple[Memory, int, int, int] | None = None
    self.scratch_lane = 0                                                         # of a lane, in bytes
    self.doorbell_pages: Mapping | None = None
    with contextlib.ExitStack() as undo:
      undo.callback(self.give_back)
      undo.callback(self._close_doorbells)
      self.events = Events(kfd, gpu)
      undo.callback(self.events.close)
      words = self.allocate(PAGE, HOST, "signals").mapping
      words.copyin(0, bytes(PAGE))
      self.timeline, self.barrier_words = Timeline(words, 0), (words.address + 64, words.address + 128)
      staging, transient = self.allocate(2 * STAGE_BYTES, HOST, "staging"), self.allocate(TRANSIENT_BYTES, HOST,
                                                                                          "commands and arguments")
      self.stage = Stage(self, staging)
      self.transient = Transient(transient.mapping, transient.address, self.timeline, self.wait_number,
                                 AMDProgram.alignment)
      self.compute: ComputeQueue = Pm4Queue(self) if gpu.xccs == 1 else AqlQueue(self, AQL_RING_BYTES)
      undo.callback(self.compute.close)
      self.copies = CopyQueue(self)
      undo.callback(self.copies.close)
      self.begin(kfd.kept.pop(gpu.gpu_id, None) or RetainedMemory(GpuAllocator(self, VRAM, gpu.vram_bytes or None),
                                                                  GpuAllocator(self, CODE, None), set()),
                 gpu.chip.arch)
      self.undo = undo.pop_all()

  # **** memory ****

  def get_memory(self, size: int, kind: MemoryKind, label: str, host: int) -> Reserved:
    return self.kfd.allocate(self.gpu, size, kind, label, host)
  def share(self, memory: Memory) -> None: self.kfd.share(memory, self.gpu)

  def reserve_scratch(self, lane_bytes: int) -> None:
    """Reserve scratch memory of `lane_bytes` for each lane that can run at once."""
    with self.lock:
      if lane_bytes <= self.scratch_lane: return
      chip, gpu = self.gpu.chip, self.gpu
      units = -(-lane_bytes * SCRATCH_LANES // chip.scratch_unit)
      waves = gpu.compute_units * gpu.values.get("max_slots_scratch_cu", 32)
      shared = 1 if chip.gc == 9 else gpu.shader_engines
      die_bytes = waves * units * chip.scratch_unit
      memory = self.allocate(die_bytes * gpu.xccs, VRAM, "scratch")
      old, self.scratch = self.scratch, (memory, min(waves // shared, MOST_SCRATCH_WAVES), units, die_bytes)
      self.scratch_lane = lane_bytes
      if old is not None: self.release(old[0], self.mark())

  def doorbells(self, offset: int) -> Mapping:
    """Return the GPU's doorbells, which all its queues in this process share."""
    if self.doorbell_pages is None: self.doorbell_pages = self.kfd.doorbells(offset)
    return self.doorbell_pages

  def _close_doorbells(self) -> None:
    if self.doorbell_pages is not None: self.doorbell_pages.close()

  # **** order ****

  def sleep(self, ms: int) -> None:
    fault = self.events.wait(ms)
    if fault is not None: raise Faulted(faults.explain(self, fault))

  def to_ns(self, ticks: int) -> int: return ticks * TICK_NS
  def hand_over(self, left: RetainedMemory) -> None: self.kfd.kept[self.gpu.gpu_id] = left

  @property
  def event(self) -> tuple[int, int]:
    """Return the event that a queue signals at the end of a submission."""
    return self.events.mailbox, self.events.number

  # **** work ****

  def commands(self) -> Commands:
    """Return an empty list of commands for the compute queue."""
    return Commands(self.gpu, self.barrier_words if self.gpu.xccs > 1 else None)

  def enqueue(self, pieces: Sequence[list[int] | Indirect], work: Sequence[Work],
              what: AccessedRanges = EVERYTHING) -> Mark:
    with self.lock, self.submission(self.compute, work) as number:
      first, last = self.commands(), self.commands()
      needed = self.queues.take(self.compute.name, number, what, self.timeline.completed)
      if needed: first.wait(self.timeline.address, needed)
      first.acquire("all")
      if self.scratch is not None: first.scratch(self.scratch[0].address, *self.scratch[1:])
      else: first.scratch(0, 0, 0, 0)
      last.finish()
      if self.last == self.copies.name and needed < number - 1: last.wait(self.timeline.address, number - 1)
      last.release(self.timeline.address, number, self.event)
      self.compute.put(first.words, *pieces, last.words)
    return self.epoch, number

  def enqueue_copy(self, dest: int, source: int, size: int) -> Mark:
    with self.lock, self.submission(self.copies, work_of_copy(dest, source, size)) as number:
      what = AccessedRanges([(source, source + size)], [(dest, dest + size)])
      needed = self.queues.take(self.copies.name, number, what, self.timeline.completed)
      if needed: self.copies.wait_memory(self.timeline.address, needed)
      self.copies.copy(dest, source, size)
      if self.last == self.compute.name and needed < number - 1:
        self.copies.wait_memory(self.timeline.address, number - 1)
      self.copies.signal(self.timeline.address, number, self.event)
    return self.epoch, number

  def between_stamps(self, call: list[int], begin: int, end: int) -> list[int]:
    commands = self.commands()
    commands.timestamp(begin)
    commands.words += call
    commands.finish()
    commands.timestamp(end)
    return commands.words

  def facts(self) -> dict[str, Any]:
    gpu, version = self.gpu, ".".join(map(str, self.kfd.version))
    # kernels are compiled for the caches, if their sizes are known
    caches = {"cache_bytes": gpu.caches} if all(gpu.caches[:2]) else {}
    units = f"{gpu.compute_units} compute units" + (f" on each of {gpu.xccs} dies" if gpu.xccs > 1 else "")
    return {"arch": self.arch, "processor": f"{gpu.chip.arch}, {units}", **caches,
            "threads": gpu.compute_units * gpu.xccs, "local_bytes": gpu.chip.lds_bytes,
            "memory_limit": self.allocator.limit,
            "visible_bytes": gpu.visible_bytes, "kernel_interface": f"KFD {version}"}
