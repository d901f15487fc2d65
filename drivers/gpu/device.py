"""A GPU: its compute queue, its copy engine, the order of what they do, the memory that it holds, and how it is lost.

All submissions of a device, on both queues, are numbered by one timeline. One that follows a submission of the other
queue waits for it in the hardware, so work happens in the order in which it was submitted, and memory that is freed can
be used again at once. Nothing waits without a
deadline: a GPU that misses it, or that reports a fault, is lost, says why (reports.py), and gives all that it holds
back.

A subclass knows the kernel driver, the queues and what is in the packets.
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
from tinyhw.drivers.gpu.launch import GpuRecording, Kernel, Work, explain, work_of
from tinyhw.drivers.gpu.memory import GpuAllocator, Memory, Stage
from tinyhw.drivers.gpu.order import EVERYTHING, Queues, Touched, order, place, touched, written
from tinyhw.drivers.gpu.queue import VIRTUAL_LOOKS, Ring, Timeline, Transient, wait_until
from tinyhw.drivers.linux.files import Box, Refused
from tinyhw.errors import DeviceError, DriverError, TinyError
from tinyhw.machine.ir.code import Code
from tinyhw.named_tuple import NamedTuple

BATCH = 128              # launches of one submission
EMULATED = 20            # a virtual GPU has so many times as long for what it does

Mark = tuple[int, int]   # (how often the timeline began anew, the number of a submission)

class Left(NamedTuple):
  """What a device that was closed leaves: the memory of buffers that are still referenced, which the next device of
  the GPU takes over."""
  allocator: GpuAllocator
  code: GpuAllocator
  memories: set[Memory]

  def close(self) -> None:
    """Nobody takes it over."""
    with contextlib.ExitStack() as undo:
      for memory in self.memories: undo.callback(memory.close)

class Submits(Protocol):
  """A queue, as submissions and reports see it."""
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
  """A GPU. `lock` is held by whoever submits, allocates or frees; finalizers do not wait for it (`Returned`).

  A subclass makes `timeline`, `stage`, `transient`, `compute` and `copies` in its __init__, calls `begin` last of all,
  and says what follows below.
  """
  allocator: GpuAllocator
  code: GpuAllocator
  timeline: Timeline
  transient: Transient
  stage: Stage
  compute: Any
  copies: Any
  kernel: type[Kernel]
  recording: type[GpuRecording]
  user_memory: Any               # the kind of memory of the program that the GPU sees
  undo: contextlib.ExitStack
  stamp_bytes, stamp_place = 8, 0  # what a look at the GPU's clock writes, and where the time is in it

  def __init__(self, name: str, box: Box):
    self.name, self.box, self.lock = name, box, threading.RLock()
    self.lost: str | None = None                                                  # why it can do nothing any more
    self.closed = False
    self.memories: set[Memory] = set()
    self.retired: collections.deque[tuple[Mark, Memory]] = collections.deque()    # given back, but perhaps still in use
    self.returned = Returned(self._release)
    self.freed: collections.deque[Memory] = collections.deque(maxlen=64)          # for reports
    self.log: collections.deque[tuple[Mark, Sequence[Work]]] = collections.deque(maxlen=64)  # what was submitted
    self.epoch, self.last = 0, ""
    self.queues = Queues()

  def begin(self, left: Left, arch: str) -> None:
    """All is there. left: of the device of this GPU before, or new allocators."""
    super().__init__(self.name, left.allocator, arch=arch)
    self.code = left.code
    self.memories |= left.memories
    for memory in left.memories: memory.owner = self
    for allocator in (self.allocator, self.code): allocator.device, allocator.lock = self, self.lock

  # **** what a subclass says ****

  def get_memory(self, size: int, kind: Any, label: str, host: int) -> Memory:
    """Memory of the kernel driver. host: where it is, of memory of the program. Raises Refused."""
    raise NotImplementedError

  def share(self, memory: Memory) -> None:
    """See memory of another GPU. Raises Refused where it cannot."""
    raise NotImplementedError

  def sleep(self, ms: int) -> None:
    """Give the processor away, for so long at most. Raises Faulted where the kernel driver reports a fault."""
    raise NotImplementedError

  def enqueue(self, pieces: Sequence[Any], work: Sequence[Work], what: Touched = EVERYTHING) -> Mark:
    """Submit commands to the compute queue, between what makes memory coherent before and after them. work: what they
    are, for reports.

    what: the memory that they touch. They wait for the copies before that they need; that they are done is told after
    all that was submitted before.
    """
    raise NotImplementedError

  def enqueue_copy(self, dest: int, source: int, size: int) -> Mark:
    """Submit a copy to the copy engine, which waits for the kernels before that it needs."""
    raise NotImplementedError

  def between_stamps(self, call: list[int], begin: int, end: int) -> list[int]:
    """The commands of a launch, between others that write the GPU's clock to two addresses."""
    raise NotImplementedError

  def to_ns(self, ticks: int) -> int:
    """Nanoseconds, of a number of ticks of the GPU's clock."""
    raise NotImplementedError

  def hand_over(self, left: Left) -> None:
    """Hold what this device leaves until the GPU is opened again."""
    raise NotImplementedError

  def leave(self) -> None:
    """In the child of a fork: close what is the parent's."""
    raise NotImplementedError

  # **** memory ****

  def allocate(self, size: int, kind: Any, label: str, host: int = 0) -> Memory:
    """Memory that this GPU sees, to be given to `release`.

    Raises Refused; when there is none, only after all that is freed has been given back.
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
    """Give memory back, when submission `busy` is done. Finalizers may call this: it waits for nothing."""
    self.returned.put(self.lock, memory, busy)

  def _release(self, memory: Memory, busy: Mark | None) -> None:
    if memory not in self.memories: return   # the device was lost, or closed, and has given it back itself
    if busy is None: self._free(memory)
    else: self.retired.append((busy, memory))

  def words(self, address: int, count: int) -> list[int]:
    """Words that the processor sees at an address of the GPU's; none where it sees nothing."""
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
    """Give back what nothing uses any more. The lock must be held."""
    self.returned.take()
    while self.retired and self._done(self.retired[0][0]): self._free(self.retired.popleft()[1])

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

  def wait_number(self, number: int) -> None:
    """Return when a submission since the timeline began is done."""
    self.wait_mark((self.epoch, number))

  def wait_for(self, done: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds. Raises DriverError, and the device is lost, at a fault or at the deadline."""
    with self.lock:
      self.check()
      timeout_ms = HCQDEV_WAIT_TIMEOUT_MS.value * (EMULATED if EMULATE.value else 1)
      with self._driving():
        try:
          if wait_until(done, timeout_ms, self.sleep, VIRTUAL_LOOKS if self.box.virtual else None): return
          self.sleep(1)          # a fault may have happened without an interrupt that came here
          if done(): return      # and this program may have had no time to look
          reason = reports.late(what, timeout_ms)
        except Faulted as error: reason = error.told
        report = reports.report(self, reason)
        self._lose(reason)
        raise DriverError(report)

  @contextlib.contextmanager
  def _driving(self, work: Sequence[Work] = ()) -> Iterator[None]:
    """The hardware works, or is waited for: an error here leaves it in a state that nobody knows, so the device is
    lost.

    work: what is being submitted, for the error, which tells what the hardware was at.
    """
    try: yield
    except TinyError as error:
      if self.lost is None:
        reason, lines = error.message.splitlines()[0], reports.current(self, work)
        error.message += "".join(f"\n  {line}" for line in lines if line not in error.message)
        self._lose(f"met an error ({reason})")
      raise

  def _lose(self, reason: str) -> None:
    """Give everything back, as far as that goes, and be lost from now on."""
    self.lost = reports.lost(self.name, reason)
    with contextlib.suppress(TinyError): self._teardown()  # the first error is the one that is told

  @contextlib.contextmanager
  def submission(self, queue: Submits, work: Sequence[Work]) -> Iterator[int]:
    """What is put into a queue inside is the submission of the number that this gives; it starts at the end.

    An exception that comes in between (Ctrl-C) takes it back, or lets it run if the hardware knows of it already.
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
        else: queue.ring.publish(queue.ring.written)  # once more does no harm
        raise
    self.transient.seal(before + 1)
    self.log.append((self.mark(), work))

  def _restart(self) -> None:
    """The timeline begins anew."""
    self.synchronize()
    self.queues = Queues()
    self.timeline.restart()
    self.transient.restart()
    self.epoch += 1

  # **** work ****

  def load(self, code: Code) -> Kernel:
    with self.lock: return self.kernel(self, code)

  def record(self, launches: Sequence[Launch]) -> GpuRecording: return self.recording(self, launches)

  def _calls(self, launches: Sequence[Launch]) -> list[list[int]]:
    """The packets of launches, whose arguments are the next submission's, and of which those wait for others that need
    them."""
    self.check()
    packed = [launch.program.pack(launch) if isinstance(launch.program, Kernel) else b"" for launch in launches]
    for launch in launches:
      if not isinstance(launch.program, Kernel): raise explain(launch)
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
    """Start launches, in order; returns at once."""
    for start in range(0, len(launches), BATCH):
      with self.lock:
        part = launches[start:start + BATCH]
        words = [word for call in self._calls(part) for word in call]
        what = touched([(list(map(place, x.buffers)), written(x)) for x in part], [x.program.place for x in part])
        self.enqueue([words], list(map(work_of, part)), what)

  def submit_timed(self, launches: Sequence[Launch]) -> list[tuple[int, int]]:
    """Run launches, and tell when each began and ended by the GPU's clock, in nanoseconds of time.perf_counter_ns."""
    times: list[tuple[int, int]] = []
    for start in range(0, len(launches), BATCH):
      part = launches[start:start + BATCH]
      with self.lock: times += self.enqueue_timed(self._calls(part), list(map(work_of, part)))
    return times

  def enqueue_timed(self, calls: Sequence[list[int]], work: Sequence[Work]) -> list[tuple[int, int]]:
    """Submit the packets of launches, wait for them, and tell when each began and ended, in nanoseconds of
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
    """A queue that is destroyed while it works upsets the GPU's scheduler, so let it come to its end."""
    with self.lock:
      if self.lost is None and not self._done(self.mark()): self.wait_mark(self.mark())

  def after_fork(self, in_child: bool) -> None:
    """The child has neither the GPU's files nor its memory, and may open the device for itself."""
    if not in_child: return
    self.leave()
    self.lock = self.allocator.lock = self.code.lock = threading.RLock()
    self.memories.clear()
    self.retired.clear()
    self.lost = (f"{self.name} belongs to the process that opened it, and this is its child; call "
                 f"Device.close({self.name!r}) to open it anew here, "
                 "or start processes with multiprocessing's \"spawn\"")

  def close(self) -> None:
    """Stop what runs and give memory back, but that of buffers which are still referenced: whoever reads them opens
    the device again."""
    super().close()
    with self.lock:
      if self.lost is not None: return
      self.synchronize()
      for allocator in (self.allocator, self.code): allocator.free_cache()
      self._reap()
      kept = {part.memory for allocator in (self.allocator, self.code)
              for part, _ in allocator.live.values()} & self.memories
      self.memories -= kept
      if kept: self.hand_over(Left(self.allocator, self.code, kept))
      for allocator in (self.allocator, self.code): allocator.keep(kept)
      self.lost, self.closed = f"{self.name} was closed", True
      self.undo.close()

  def _teardown(self) -> None:
    """Give back queues and memory. Each is tried, whatever becomes of the others."""
    for allocator in (self.allocator, self.code): allocator.keep(set())
    self.undo.close()

  def give_back(self) -> None:
    """Give all memory back; for `undo`, where it is the first and so comes last."""
    with contextlib.ExitStack() as undo:
      for memory in self.memories: undo.callback(memory.close)
      self.memories = set()
      self.retired.clear()
