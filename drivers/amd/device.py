"""The AMD device: one GPU, its compute queue, its copy engine, and the order of what they do.

All submissions of a device, on both queues, are numbered by one timeline. One that follows a submission of the other queue waits for it in the
hardware, so work happens in the order in which it was submitted, and memory that is freed can be used again at once. Nothing waits without a
deadline: a GPU that misses it, or that reports a fault, is lost, says why (faults.py), and gives all that it holds back.
"""
from __future__ import annotations
import collections
import contextlib
import errno
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from tinyhw.config import EMULATE, HCQDEV_WAIT_TIMEOUT_MS
from tinyhw.device import Compiled, Launch
from tinyhw.drivers.amd import faults
from tinyhw.drivers.amd.aql import AQL_RING_BYTES, AqlQueue
from tinyhw.drivers.amd.commands import Commands
from tinyhw.drivers.amd.events import Events, HardwareFault, MemoryFault
from tinyhw.drivers.amd.kfd import CODE, HOST, VRAM, Kfd, Kind, Memory, leave
from tinyhw.drivers.amd.launch import ARGUMENT_ALIGNMENT, AMDRecording, Program, explain
from tinyhw.drivers.amd.memory import STAGE_BYTES, AMDAllocator, Stage
from tinyhw.drivers.amd.queue import ComputeQueue, Indirect, Pm4Queue
from tinyhw.drivers.amd.sdma import CopyQueue
from tinyhw.drivers.amd.topology import Gpu
from tinyhw.drivers.linux.files import PAGE, Mapping, Refused
from tinyhw.drivers.queue import Ring, Timeline, Transient, wait_until
from tinyhw.errors import DeviceError, DriverError, TinyError
from tinyhw.machine.code import Code

TRANSIENT_BYTES = 4 << 20
BATCH = 128              # launches of one submission
TICK_NS = 10             # of the GPU's clock, 100 MHz on all chips
EMULATED = 20            # a virtual GPU has so many times as long for what it does
SCRATCH_LANES = 64       # of the widest wave
MOST_SCRATCH_WAVES = 4095

class Left(NamedTuple):
  """What a device that was closed leaves: the memory of buffers that are still referenced, which the next device of the GPU takes over."""
  allocator: AMDAllocator
  code: AMDAllocator
  memories: set[Memory]

  def close(self) -> None:
    """Nobody takes it over."""
    with contextlib.ExitStack() as undo:
      for memory in self.memories: undo.callback(memory.close)

Mark = tuple[int, int]   # (how often the timeline began anew, the number of a submission)

class Submits(Protocol):
  """A queue, as submissions see it."""
  name: str
  ring: Ring

class Faulted(Exception):
  """A wait met a fault."""
  def __init__(self, fault: MemoryFault | HardwareFault):
    super().__init__(fault)
    self.fault = fault

class AMDDevice(Compiled):
  """A GPU that is driven through KFD. `lock` is held by whoever submits, allocates or frees, which the garbage collector does anywhere."""
  allocator: AMDAllocator

  def __init__(self, name: str, kfd: Kfd, gpu: Gpu):
    self.name, self.kfd, self.gpu, self.lock = name, kfd, gpu, threading.RLock()
    self.lost: str | None = None                                                  # why it can do nothing any more
    self.closed = False
    self.memories: set[Memory] = set()
    self.retired: collections.deque[tuple[Mark, Memory]] = collections.deque()    # given back, but perhaps still in use
    self.freed: collections.deque[Memory] = collections.deque(maxlen=64)         # for reports
    self.log: collections.deque[tuple[Mark, Sequence[str]]] = collections.deque(maxlen=64)  # what was submitted
    self.epoch, self.last = 0, ""
    self.scratch: tuple[Memory, int, int, int] | None = None                      # with what Commands.scratch wants
    self.scratch_lane = 0                                                         # bytes of a lane
    self.doorbell_pages: Mapping | None = None
    with contextlib.ExitStack() as undo:
      undo.callback(self._give_back)
      self.events = Events(kfd, gpu)
      undo.callback(self.events.close)
      words = self.allocate(PAGE, HOST, "signals").mapping
      words.copyin(0, bytes(PAGE))
      self.timeline, self.meeting = Timeline(words, 0), (words.address + 64, words.address + 128)
      staging, transient = self.allocate(2 * STAGE_BYTES, HOST, "staging"), self.allocate(TRANSIENT_BYTES, HOST, "commands and arguments")
      self.stage = Stage(self, staging)
      self.transient = Transient(transient.mapping, transient.address, self.timeline, lambda number: self.wait_mark((self.epoch, number)),
                                 ARGUMENT_ALIGNMENT)
      self.compute: ComputeQueue = Pm4Queue(self) if gpu.xccs == 1 else AqlQueue(self, AQL_RING_BYTES)
      undo.callback(self.compute.close)
      self.copies = CopyQueue(self)
      undo.callback(self.copies.close)
      left = kfd.kept.pop(gpu.gpu_id, None) or Left(AMDAllocator(self, VRAM, gpu.vram_bytes or None), AMDAllocator(self, CODE, None), set())
      super().__init__(name, left.allocator, arch=gpu.chip.arch)
      self.code = left.code
      self.memories |= left.memories
      for memory in left.memories: memory.owner = self
      for allocator in (self.allocator, self.code): allocator.device, allocator.lock = self, self.lock
      self.undo = undo.pop_all()

  # **** memory ****

  def allocate(self, size: int, kind: Kind, label: str, host: int = 0) -> Memory:
    """Memory that this GPU sees, to be given to `release`. Raises Refused; when there is none, only after all that is freed has been given back."""
    with self.lock:
      self.check()
      try: memory = self.kfd.allocate(self.gpu, size, kind, label, host)
      except Refused as error:
        if error.errno != errno.ENOMEM or not self.retired: raise
        self.synchronize()
        memory = self.kfd.allocate(self.gpu, size, kind, label, host)
      memory.owner = self
      self.memories.add(memory)
      return memory

  def release(self, memory: Memory, busy: Mark | None = None) -> None:
    """Give memory back, when submission `busy` is done. May be called by the garbage collector."""
    with self.lock:
      if memory not in self.memories: return   # the device was lost, or closed, and has given it back itself
      if busy is None: self._free(memory)
      else: self.retired.append((busy, memory))

  def words(self, address: int, count: int) -> list[int]:
    """Words that the processor sees at an address of the GPU's; none where it sees nothing."""
    for memory in self.memories:
      if memory.found is None or not memory.address <= address <= address + 4 * count <= memory.address + memory.size: continue
      found = bytearray(4 * count)
      memory.found.copyout(address - memory.address, memoryview(found))
      return list(struct.unpack(f"<{count}I", found))
    return []

  def _free(self, memory: Memory) -> None:
    self.memories.discard(memory)
    self.freed.append(memory)
    memory.close()

  def _reap(self) -> None:
    """Give back what nothing uses any more."""
    while self.retired and self._done(self.retired[0][0]): self._free(self.retired.popleft()[1])

  def reserve_scratch(self, lane_bytes: int) -> None:
    """Have so many bytes for each lane that can run at once."""
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
    """The GPU's doorbells, which all its queues in this process share."""
    if self.doorbell_pages is None: self.doorbell_pages = self.kfd.doorbells(offset)
    return self.doorbell_pages

  # **** order ****

  def mark(self) -> Mark:
    """The last submission."""
    return self.epoch, self.timeline.submitted

  def _done(self, mark: Mark) -> bool: return mark[0] != self.epoch or self.timeline.reached(mark[1])

  def check(self) -> None:
    """Raises DeviceError if the device is lost."""
    if self.lost is not None: raise DeviceError(self.lost)

  def wait_mark(self, mark: Mark) -> None:
    """Return when a submission is done. Raises DriverError when the GPU does not do it."""
    self.wait_for(lambda: self._done(mark), f"submission {mark[1]}")

  def wait_for(self, done: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds. Raises DriverError, and the device is lost, at a fault or at the deadline."""
    with self.lock:
      self.check()
      timeout_ms = HCQDEV_WAIT_TIMEOUT_MS.value * (EMULATED if EMULATE.value else 1)
      def sleep(ms: int) -> None:
        fault = self.events.wait(ms)
        if fault is not None: raise Faulted(fault)
      with self._driving():
        try:
          if wait_until(done, timeout_ms, sleep): return
          sleep(1)  # a fault may have happened without an interrupt that came here
          reason = f"did not finish {what} in {timeout_ms / 1000:g} s"
        except Faulted as error: reason = faults.explain(self, error.fault)
        report = faults.report(self, reason)
        self._lose(reason)
        raise DriverError(report)

  @contextlib.contextmanager
  def _driving(self, names: Sequence[str] = ()) -> Iterator[None]:
    """The hardware works, or is waited for: an error here leaves it in a state that nobody knows, so the device is lost.

    names: what is being submitted, for the error, which tells what the hardware was at.
    """
    try: yield
    except TinyError as error:
      if self.lost is None:
        reason, lines = error.message.splitlines()[0], faults.current(self, names)
        error.message += "".join(f"\n  {line}" for line in lines if line not in error.message)
        self._lose(f"met an error ({reason})")
      raise

  def _lose(self, reason: str) -> None:
    """Give everything back, as far as that goes, and be lost from now on."""
    self.lost = f"{self.name} is lost since it {reason}; start the program again, or use another device"
    with contextlib.suppress(TinyError): self._teardown()  # the first error is the one that is told

  @contextlib.contextmanager
  def _submission(self, queue: Submits, names: Sequence[str]) -> Iterator[int]:
    """What is put into a queue inside is the submission of the number that this gives; it starts at the end.

    An exception that comes in between (Ctrl-C) takes it back, or lets it run if the hardware knows of it already.
    """
    self.check()
    if self.timeline.submitted >= Timeline.LIMIT - 1: self._restart()
    self._reap()
    before, last, begin = self.timeline.submitted, self.last, queue.ring.written
    with self._driving(names):
      try:
        yield before + 1
        self.timeline.submitted, self.last = before + 1, queue.name
        queue.ring.ring()
      except TinyError: raise
      except BaseException:
        if queue.ring.cancel(begin): self.timeline.submitted, self.last = before, last
        elif self.timeline.submitted == before: self._lose("was interrupted in the middle of a submission")
        else: queue.ring.publish(queue.ring.written)  # once more does no harm
        raise
    self.transient.seal(before + 1)
    self.log.append((self.mark(), names))

  def _restart(self) -> None:
    """The timeline begins anew."""
    self.synchronize()
    self.timeline.restart()
    self.transient.restart()
    self.epoch += 1

  @property
  def event(self) -> tuple[int, int]:
    """What a queue signals when a submission is done."""
    return self.events.mailbox, self.events.number

  # **** work ****

  def commands(self) -> Commands:
    """An empty list of commands for the compute queue."""
    return Commands(self.gpu, self.meeting if self.gpu.xccs > 1 else None)

  def enqueue(self, pieces: Sequence[list[int] | Indirect], names: Sequence[str]) -> Mark:
    """Submit commands to the compute queue, between what makes memory coherent before and after them. names: of the kernels, for reports."""
    with self.lock, self._submission(self.compute, names) as number:
      first, last = self.commands(), self.commands()
      if self.last == self.copies.name: first.wait(self.timeline.address, number - 1)
      first.acquire("all")
      if self.scratch is not None: first.scratch(self.scratch[0].address, *self.scratch[1:])
      else: first.scratch(0, 0, 0, 0)
      last.release(self.timeline.address, number, self.event)
      self.compute.put(first.words, *pieces, last.words)
    return self.epoch, number

  def enqueue_copy(self, dest: int, source: int, size: int) -> Mark:
    """Submit a copy to the copy engine."""
    with self.lock, self._submission(self.copies, [f"copy of {size} bytes from {source:#x} to {dest:#x}"]) as number:
      if self.last == self.compute.name: self.copies.wait_memory(self.timeline.address, number - 1)
      self.copies.copy(dest, source, size)
      self.copies.signal(self.timeline.address, number, self.event)
    return self.epoch, number

  def enqueue_timed(self, calls: Sequence[list[int]], names: Sequence[str]) -> list[tuple[int, int]]:
    """Submit the packets of launches, wait for them, and tell when each began and ended, in nanoseconds of time.perf_counter_ns."""
    times: list[tuple[int, int]] = []
    self.check()
    for start in range(0, len(calls), BATCH):
      with self.lock:
        part, number = calls[start:start + BATCH], len(calls[start:start + BATCH])
        offset, commands = self.transient.take(16 * number), self.commands()
        for i, call in enumerate(part):
          commands.timestamp(self.transient.address + offset + 16 * i)
          commands.words += call
          commands.timestamp(self.transient.address + offset + 16 * i + 8)
        self.wait_mark(self.enqueue([commands.words], names[start:start + BATCH]))
        end_ns, stamps = time.perf_counter_ns(), bytearray(16 * number)
        self.transient.memory.copyout(offset, memoryview(stamps))
        ticks = struct.unpack(f"<{2 * number}Q", stamps)
        to_ns = [end_ns - (ticks[-1] - tick) * TICK_NS for tick in ticks]
        times += list(zip(to_ns[::2], to_ns[1::2]))
    return times

  def _calls(self, launches: Sequence[Launch]) -> list[list[int]]:
    """The packets of launches, whose arguments are the next submission's."""
    self.check()
    packed = [launch.program.pack(launch) if isinstance(launch.program, Program) else b"" for launch in launches]
    for launch in launches:
      if not isinstance(launch.program, Program): raise explain(launch)
    places, joined = [], bytearray()
    for arguments in packed:
      places.append(len(joined))
      joined += arguments.ljust(-(-len(arguments) // ARGUMENT_ALIGNMENT) * ARGUMENT_ALIGNMENT, b"\0")
    address = self.transient.write(bytes(joined)) if joined else 0
    return [launch.program.launch(address + place, launch.grid) for launch, place in zip(launches, places)]

  def load(self, code: Code) -> Program:
    with self.lock: return Program(self, code)

  def submit(self, launches: Sequence[Launch]) -> None:
    """Start launches, in order; returns at once."""
    for start in range(0, len(launches), BATCH):
      with self.lock:
        part = launches[start:start + BATCH]
        words = [word for call in self._calls(part) for word in call]
        self.enqueue([words], [launch.program.name for launch in part])

  def submit_timed(self, launches: Sequence[Launch]) -> list[tuple[int, int]]:
    """Run launches, and tell when each began and ended by the GPU's clock, in nanoseconds of time.perf_counter_ns."""
    times: list[tuple[int, int]] = []
    for start in range(0, len(launches), BATCH):
      part = launches[start:start + BATCH]
      with self.lock: times += self.enqueue_timed(self._calls(part), [launch.program.name for launch in part])
    return times

  def record(self, launches: Sequence[Launch]) -> AMDRecording: return AMDRecording(self, launches)

  def synchronize(self) -> None:
    with self.lock:
      if self.lost is None: self.wait_mark(self.mark())
      self._reap()

  # **** the end ****

  def rest(self) -> None:
    """A queue that is destroyed while it works upsets the GPU's scheduler, so let it come to its end."""
    with self.lock:
      if self.lost is None and not self._done(self.mark()): self.wait_mark(self.mark())

  def after_fork(self, in_child: bool) -> None:
    """The child has neither the GPU's files nor its memory, and may open the device for itself."""
    if not in_child: return
    leave(self.kfd.box)
    self.lock = self.allocator.lock = self.code.lock = threading.RLock()
    self.memories.clear()
    self.retired.clear()
    self.lost = (f"{self.name} belongs to the process that opened it, and this is its child; call Device.close({self.name!r}) to open it anew here, "
                 "or start processes with multiprocessing's \"spawn\"")

  def close(self) -> None:
    """Stop what runs and give memory back, but that of buffers which are still referenced: whoever reads them opens the device again."""
    super().close()
    with self.lock:
      if self.lost is not None: return
      self.synchronize()
      for allocator in (self.allocator, self.code): allocator.free_cache()
      self._reap()
      kept = {part.memory for allocator in (self.allocator, self.code) for part, _ in allocator.live.values()} & self.memories
      self.memories -= kept
      if kept: self.kfd.kept[self.gpu.gpu_id] = Left(self.allocator, self.code, kept)
      for allocator in (self.allocator, self.code): allocator.keep(kept)
      self.lost, self.closed = f"{self.name} was closed", True
      self.undo.close()

  def _teardown(self) -> None:
    """Give back queues, events and memory. Each is tried, whatever becomes of the others."""
    for allocator in (self.allocator, self.code): allocator.keep(set())
    self.undo.close()

  def _give_back(self) -> None:
    with contextlib.ExitStack() as undo:
      if self.doorbell_pages is not None: undo.callback(self.doorbell_pages.close)
      for memory in self.memories: undo.callback(memory.close)
      self.memories = set()
      self.retired.clear()

  def facts(self) -> dict[str, Any]:
    gpu, version = self.gpu, ".".join(map(str, self.kfd.version))
    caches = {"cache_bytes": gpu.caches} if all(gpu.caches[:2]) else {}  # kernels are compiled for them, so only where they are known
    units = f"{gpu.compute_units} compute units" + (f" on each of {gpu.xccs} dies" if gpu.xccs > 1 else "")
    return {"arch": self.arch, "processor": f"{gpu.chip.arch}, {units}", **caches,
            "threads": gpu.compute_units * gpu.xccs, "local_bytes": gpu.chip.lds_bytes, "memory_limit": self.allocator.limit,
            "visible_bytes": gpu.visible_bytes, "kernel_interface": f"KFD {version}"}
