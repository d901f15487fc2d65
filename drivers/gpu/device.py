"""A GPU: its compute queue, its copy engine, the order of their work, its memory, and its loss.

One timeline numbers all submissions of a device, on both queues. A submission that depends on one of the other queue
waits for it in the hardware. So work takes effect in the order of submission, and freed memory can be reused at once.

Nothing waits without a deadline. A GPU that misses it, or that reports a fault, is lost. It reports the reason
(reports.py), and frees all that it holds.

A subclass knows the kernel driver, the queues and the content of packets.
"""
from __future__ import annotations
import collections
import contextlib
import errno
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from tinyhw.config import EMULATE, HCQDEV_WAIT_TIMEOUT_MS
from tinyhw.device import Compiled, Launch, Returned
from tinyhw.drivers.gpu import reports
from tinyhw.drivers.gpu.launch import ANEW, GpuRecording, GpuProgram, Work, explain, work_of
from tinyhw.drivers.gpu.memory import GpuAllocator, Memory, Stage
from tinyhw.drivers.gpu.order import EVERYTHING, Queues, AccessedRanges, order, address_range, touched, written
from tinyhw.drivers.gpu.queue import VIRTUAL_LOOKS, Ring, Timeline, Transient, wait_until
from tinyhw.drivers.linux.files import HostFiles, Refused
from tinyhw.errors import DeviceError, DriverError, TinyError
from tinyhw.machine.ir.code import Code
from tinyhw.named_tuple import NamedTuple

BATCH = 128              # launches in one submission
EMULATED = 20            # factor of the deadlines of a virtual GPU

Mark = tuple[int, int]   # (count of restarts of the timeline, number of a submission)

class RetainedMemory(NamedTuple):
  """The state that a closed device leaves: the memory of buffers that are still referenced. The next device of the GPU
  takes it over."""
  allocator: GpuAllocator
  code: GpuAllocator
  memories: set[Memory]

  def close(self) -> None:
    """Free the memory: no device takes it over."""
    with contextlib.ExitStack() as undo:
      for memory in self.memories: undo.callback(memory.close)

class Submits(Protocol):
  """The interface of a queue for submissions and reports."""
  name: str
  ring: Ring
  def state(self) -> str: ...
  def recent(self) -> list[str]: ...

class Faulted(Exception):
  """A wait met a fault. told: the end of a sentence that begins with the device's name."""
  def __init__(self, told: str):
    super().__init__(told)
    self.told = told

class GpuDevice(Compiled):
  """A GPU. Submissions, allocations and frees hold `lock`. Finalizers do not wait for it (`Returned`).

  A subclass makes `timeline`, `stage`, `transient`, `compute` and `copies` in its __init__, calls `begin` last of all,
  and overrides the methods that raise NotImplementedError.
  """
  copies_operands = True
  allocator: GpuAllocator
  code: GpuAllocator
  timeline: Timeline
  transient: Transient
  stage: Stage
  compute: Any
  copies: Any
  kernel: type[GpuProgram]
  recording: type[GpuRecording]
  user_memory: Any               # the kind of memory of the program that the GPU sees
  undo: contextlib.ExitStack
  # bytes that a read of the GPU's clock writes, and the offset of the time in them
  stamp_bytes, stamp_place = 8, 0

  def __init__(self, name: str, box: HostFiles):
    self.name, self.box, self.lock = name, box, threading.RLock()
    self.lost: str | None = None                                                  # why it cannot be used any more
    self.closed = False
    self.is_of_parent = False     # is this process the child of a fork, and the GPU open in its parent?
    self.memories: set[Memory] = set()
    self.retired: collections.deque[tuple[Mark, Memory]] = collections.deque()    # freed, but perhaps still in use
    self.returned = Returned(self._release)
    self.freed: collections.deque[Memory] = collections.deque(maxlen=64)          # for reports
    self.log: collections.deque[tuple[Mark, Sequence[Work]]] = collections.deque(maxlen=64)  # submitted work
    self.epoch, self.last = 0, ""
    self.queues = Queues()

  def begin(self, left: RetainedMemory, arch: str) -> None:
    """Finish the construction. left: the state of the previous device of this GPU, or new allocators."""
    super().__init__(self.name, left.allocator, arch=arch)
    self.code = left.code
    self.memories |= left.memories
    for memory in left.memories: memory.owner = self
    for allocator in (self.allocator, self.code): allocator.device, allocator.lock = self, self.lock

  # **** for subclasses ****

  def get_memory(self, size: int, kind: Any, label: str, host: int) -> Memory:
    """Get memory from the kernel driver. host: the address of memory of the program. Raises Refused."""
    raise NotImplementedError

  def share(self, memory: Memory) -> None:
    """Map memory of another GPU. Raises Refused if this GPU cannot see it."""
    raise NotImplementedError

  def sleep(self, ms: int) -> None:
    """Yield the processor, for `ms` at most. Raises Faulted if the kernel driver reports a fault."""
    raise NotImplementedError

  def enqueue(self, pieces: Sequence[Any], work: Sequence[Work], what: AccessedRanges = EVERYTHING) -> Mark:
    """Submit commands to the compute queue, between commands that make memory coherent before and after them.

    work: their description, for reports. what: the memory that they touch. They wait for the earlier copies that they
    need. Their completion is signalled after that of all earlier submissions.
    """
    raise NotImplementedError

  def enqueue_copy(self, dest: int, source: int, size: int) -> Mark:
    """Submit a copy to the copy engine. It waits for the earlier kernels that it needs."""
    raise NotImplementedError

  def between_stamps(self, call: list[int], begin: int, end: int) -> list[int]:
    """Return the commands of a launch, between others that write the GPU's clock to two addresses."""
    raise NotImplementedError

  def to_ns(self, ticks: int) -> int:
    """Convert ticks of the GPU's clock to nanoseconds."""
    raise NotImplementedError

  def hand_over(self, left: RetainedMemory) -> None:
    """Keep the state that this device leaves until the GPU is opened again."""
    raise NotImplementedError

  # **** memory ****

  def allocate(self, size: int, kind: Any, label: str, host: int = 0) -> Memory:
    """Allocate memory that this GPU sees. Free it with `release`.

    Raises Refused. If there is no memory, all freed memory is first returned to the kernel driver.
    """
    with self.lock:
      self.check()
      self.returned.take()
      try: memory = self.get_memory(size, kind, label, host)
      except Refused as error:
        if error.errno != errno.ENOMEM or not self.retired: raise
        self.synchronize()
        memory = self.get_memory(size, kind, label, host)
      memory.owner = self
      self.memories.add(memory)
      return memory

  def release(self, memory: Memory, busy: Mark | None = None) -> None:
    """Free memory when submission `busy` is done. Finalizers may call this: it never blocks."""
    self.returned.put(self.lock, memory, busy)

  def _release(self, memory: Memory, busy: Mark | None) -> None:
    if memory not in self.memories: return   # the device was lost or closed, and has freed it itself
    if busy is None: self._free(memory)
    else: self.retired.append((busy, memory))

  def words(self, address: int, count: int) -> list[int]:
    """Return words at an address of the GPU, or none if the processor does not see them."""
    for memory in self.memories:
      if memory.found is None or not memory.address <= address <= address + 4 * count <= memory.address + memory.size:
        continue
      found = bytearray(4 * count)
      memory.found.copyout(address - memory.address, memoryview(found))
      return list(struct.unpack(f"<{count}I", found))
    return []

  def _free(self, memory: Memory) -> None:
    self.memories.discard(memory)
    self.freed.append(memory)
    memory.close()

  def _reap(self) -> None:
    """Free memory that is not in use any more. The lock must be held."""
    self.returned.take()
    while self.retired and self._done(self.retired[0][0]): self._free(self.retired.popleft()[1])

  # **** order ****

  def mark(self) -> Mark:
    """Return the last submission."""
    return self.epoch, self.timeline.submitted

  def _done(self, mark: Mark) -> bool: return mark[0] != self.epoch or self.timeline.reached(mark[1])

  def check(self) -> None:
    """Raise DeviceError if the device is lost."""
    if self.lost is not None: raise DeviceError(self.lost)

  def wait_mark(self, mark: Mark) -> None:
    """Wait until a submission is done. Raises DriverError if the GPU does not finish it."""
    self.wait_for(lambda: self._done(mark), f"submission {mark[1]}")

  def wait_number(self, number: int) -> None:
    """Wait until a submission of the current timeline is done."""
    self.wait_mark((self.epoch, number))

  def wait_for(self, done: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds. At a fault or at the deadline, lose the device and raise DriverError."""
    with self.lock:
      self.check()
      timeout_ms = HCQDEV_WAIT_TIMEOUT_MS.value * (EMULATED if EMULATE.value else 1)
      with self._driving():
        try:
          if wait_until(done, timeout_ms, self.sleep, VIRTUAL_LOOKS if self.box.virtual else None): return
          self.sleep(1)          # there may have been a fault without an interrupt
          if done(): return      # and this program may have had no time to look
          reason = reports.late(what, timeout_ms)
        except Faulted as error: reason = error.told
        report = reports.report(self, reason)
        self._lose(reason)
        raise DriverError(report)

  @contextlib.contextmanager
  def _driving(self, work: Sequence[Work] = ()) -> Iterator[None]:
    """Lose the device at an error inside. While the hardware works or is waited for, an error leaves it in an unknown
    state.

    work: the current submission, for the error message.
    """
    try: yield
    except TinyError as error:
      if self.lost is None:
        reason, lines = error.message.splitlines()[0], reports.current(self, work)
        error.message += "".join(f"\n  {line}" for line in lines if line not in error.message)
        self._lose(f"met an error ({reason})")
      raise

  def _lose(self, reason: str) -> None:
    """Free everything, as far as possible, and be lost from now on."""
    self.lost = reports.lost(self.name, reason)
    with contextlib.suppress(TinyError): self._teardown()  # report the first error

  @contextlib.contextmanager
  def submission(self, queue: Submits, work: Sequence[Work]) -> Iterator[int]:
    """Collect commands for a queue inside as one submission, and start it at the end. Yield its number.

    An exception inside (Ctrl-C) cancels the submission, or lets it run if the hardware has seen part of it.
    """
    self.check()
    if self.timeline.submitted >= Timeline.LIMIT - 1: self._restart()
    self._reap()
    before, last, begin = self.timeline.submitted, self.last, queue.ring.written
    with self._driving(work):
      try:
        yield before + 1
        self.timeline.submitted, self.last = before + 1, queue.name
        queue.ring.ring()
      except TinyError: raise
      except BaseException:
        if queue.ring.cancel(begin): self.timeline.submitted, self.last = before, last
        elif self.timeline.submitted == before: self._lose("was interrupted in the middle of a submission")
        else: queue.ring.publish(queue.ring.written)  # a second time does no harm
        raise
    self.transient.seal(before + 1)
    self.log.append((self.mark(), work))

  def _restart(self) -> None:
    """Restart the timeline."""
    self.synchronize()
    self.queues = Queues()
    self.timeline.restart()
    self.transient.restart()
    self.epoch += 1

  # **** work ****

  def load(self, code: Code) -> GpuProgram:
    with self.lock: return self.kernel(self, code)

  def record(self, launches: Sequence[Launch]) -> GpuRecording: return self.recording(self, launches)

  def _calls(self, launches: Sequence[Launch]) -> list[list[int]]:
    """Return the packets of launches, with their arguments in memory of the next submission.

    A launch that needs earlier ones waits for them.
    """
    self.check()
    packed = [launch.program.pack(launch) if isinstance(launch.program, GpuProgram) else b"" for launch in launches]
    for launch in launches:
      if not isinstance(launch.program, GpuProgram): raise explain(launch)
    places, joined, unit = [], bytearray(), self.kernel.alignment
    for arguments in packed:
      places.append(len(joined))
      joined += arguments.ljust(-(-len(arguments) // unit) * unit, b"\0")
    offset = self.transient.take(len(joined)) if joined else 0
    address, view = self.transient.address + offset, memoryview(joined)
    calls = [launch.program.launch(address + place, launch.grid, view[place:])
             for launch, place in zip(launches, places)]
    if joined: self.transient.memory.copyin(offset, joined)
    return [call if waits else call[len(launch.program.barrier):]
            for launch, call, waits in zip(launches, calls, order(launches))]

  def submit(self, launches: Sequence[Launch]) -> None:
    """Start launches, in order. Return at once."""
    for start in range(0, len(launches), BATCH):
      with self.lock:
        part = launches[start:start + BATCH]
        words = [word for call in self._calls(part) for word in call]
        what = touched([(list(map(address_range, x.buffers)), written(x)) for x in part],
                       [x.program.place for x in part])
        self.enqueue([words], list(map(work_of, part)), what)

  def submit_timed(self, launches: Sequence[Launch]) -> list[tuple[int, int]]:
    """Run launches. Return when each began and ended by the GPU's clock, in nanoseconds of time.perf_counter_ns."""
    times: list[tuple[int, int]] = []
    for start in range(0, len(launches), BATCH):
      part = launches[start:start + BATCH]
      with self.lock: times += self.enqueue_timed(self._calls(part), list(map(work_of, part)))
    return times

  def enqueue_timed(self, calls: Sequence[list[int]], work: Sequence[Work]) -> list[tuple[int, int]]:
    """Submit the packets of launches and wait for them. Return when each began and ended, in nanoseconds of
    time.perf_counter_ns."""
    times: list[tuple[int, int]] = []
    self.check()
    for start in range(0, len(calls), BATCH):
      with self.lock:
        part, number = calls[start:start + BATCH], len(calls[start:start + BATCH])
        step = self.stamp_bytes
        offset = self.transient.take(2 * step * number)
        places = [self.transient.address + offset + step * i for i in range(2 * number)]
        words = [word for call, begin, end in zip(part, places[::2], places[1::2])
                 for word in self.between_stamps(call, begin, end)]
        self.wait_mark(self.enqueue([words], work[start:start + BATCH]))
        end_ns, stamps = time.perf_counter_ns(), bytearray(2 * step * number)
        self.transient.memory.copyout(offset, memoryview(stamps))
        ticks = [struct.unpack_from("<Q", stamps, step * i + self.stamp_place)[0] for i in range(2 * number)]
        at_ns = [end_ns - self.to_ns(ticks[-1] - tick) for tick in ticks]
        times += list(zip(at_ns[::2], at_ns[1::2]))
    return times

  def synchronize(self) -> None:
    with self.lock:
      if self.lost is None: self.wait_mark(self.mark())
      self._reap()

  # **** the end ****

  def rest(self) -> None:
    """Wait until the queues are idle. The GPU's scheduler fails if a working queue is destroyed."""
    with self.lock:
      if self.lost is None and not self._done(self.mark()): self.wait_mark(self.mark())

  def after_fork(self, in_child: bool) -> None:
    """Leave the device in the child of a fork. The child owns neither files (drivers/linux/files.py) nor memory. It may
    open the device again."""
    if not in_child: return
    self.lock = self.allocator.lock = self.code.lock = threading.RLock()
    for memory in self.memories: memory.leave()
    self.memories.clear()
    self.retired.clear()
    self.is_of_parent = True
    self.lost = (f"{self.name} belongs to the process that opened it, and this is its child; call "
                 f"Device.close({self.name!r}) to open it anew here, "
                 "or start processes with multiprocessing's \"spawn\"")

  def close(self) -> None:
    """Stop the work and free memory, except for buffers that are still referenced. A read of such a buffer opens the
    device again."""
    super().close()
    with self.lock:
      if self.is_of_parent: self.lost = f"this memory of {self.name} is that of the parent process; {ANEW}"
      if self.lost is not None: return
      self.synchronize()
      for allocator in (self.allocator, self.code): allocator.free_cache()
      self._reap()
      kept = {part.memory for allocator in (self.allocator, self.code)
              for part, _ in allocator.live.values()} & self.memories
      self.memories -= kept
      if kept: self.hand_over(RetainedMemory(self.allocator, self.code, kept))
      for allocator in (self.allocator, self.code): allocator.keep(kept)
      self.lost, self.closed = f"{self.name} was closed", True
      self.undo.close()

  def _teardown(self) -> None:
    """Free queues and memory. A failure does not stop the others."""
    for allocator in (self.allocator, self.code): allocator.keep(set())
    self.undo.close()

  def give_back(self) -> None:
    """Free all memory. It is the first entry of `undo`, and so runs last."""
    with contextlib.ExitStack() as undo:
      for memory in self.memories: undo.callback(memory.close)
      self.memories = set()
      self.retired.clear()
