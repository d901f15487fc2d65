"""One OpenCL device: its context, its queue, its programs, waits with a deadline, and its loss.

All work is in the order of one queue. Calls of OpenCL that wait have no deadline. So this file waits before such a
call, by asking for the status of the last event. A device that misses a deadline, or whose kernel fails, is lost: it
refuses further work.
"""
from __future__ import annotations
import collections
import contextlib
import ctypes
import threading
import time
from collections.abc import Sequence
from typing import Any

from tinyhw.autogen import opencl as cl
from tinyhw.config import HCQDEV_WAIT_TIMEOUT_MS
from tinyhw.device import Compiled, Launch, Returned
from tinyhw.drivers.gpu.forks import lost_in_child
from tinyhw.drivers.gpu.launch import Work, shown, work_of
from tinyhw.drivers.gpu.parameters import program_of
from tinyhw.drivers.gpu.polling import WaitTime, pause
from tinyhw.drivers.opencl.facts import ClFacts
from tinyhw.drivers.opencl.launch import ClBuilt, ClKernel, ClProgram, ClRecording
from tinyhw.drivers.opencl.library import ClFailure, ClLibrary, failure, status_name
from tinyhw.drivers.opencl.memory import ClAllocator, ClMemory
from tinyhw.errors import CompileError, DeviceError, DriverError
from tinyhw.machine.ir.code import Code
from tinyhw.named_tuple import NamedTuple

# Products and sums stay apart (the pragma in the source says it, too); division and roots of float32 are exact
OPTIONS = b"-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"
BATCH = 256              # launches of a submission, which has one event
MOST_FLYING = 1024       # launches that are under way
MOST_TOGETHER = 16       # kernels of one source
SHOWN_LINES = 20         # of the compiler's messages
GPU_GROUPS = 16          # workgroups that a compute unit of a GPU should have, to hide the latency of memory

class ClSubmission(NamedTuple):
  """A submission under way. event: of its last launch. launches: their count."""
  number: int
  event: int
  launches: int
  work: Sequence[Work]

class ClDevice(Compiled):
  """An OpenCL device. name: in tinyhw."""
  allocator: ClAllocator

  def __init__(self, name: str, library: ClLibrary, about: ClFacts):
    self.name, self.library, self.about, self.lock = name, library, about, threading.RLock()
    self.lost: str | None = None
    self.returned = Returned(self._undo)
    # releases that wait for running work, and what must live as long
    self.retired: collections.deque[tuple[str, int, Any]] = collections.deque()
    self.flying: collections.deque[ClSubmission] = collections.deque()             # the oldest first
    self.submitted = self.workgroups = 0   # submissions and workgroups that were started
    self.device_list = (ctypes.c_void_p * 1)(about.handle)
    self.context = library.make("clCreateContext", None, 1, self.device_list, None, None)
    try: self.queue = library.make("clCreateCommandQueue", self.context, about.handle, 0)
    except ClFailure:
      library.call("clReleaseContext", self.context)
      raise
    self.timed_queue = 0
    super().__init__(name, ClAllocator(self, about), arch=about.arch)

  # **** calls ****

  def check(self) -> None:
    if self.lost is not None: raise DeviceError(self.lost)

  def call(self, name: str, *arguments: Any) -> None:
    """Make a call. Raises ClFailure, or DeviceError if the device is lost."""
    with self.lock:
      self.check()
      self.returned.take()
      self.library.call(name, *arguments)

  def make(self, name: str, *arguments: Any) -> int:
    """Make an object in this device's context."""
    return self.make_in(name, self.context, *arguments)

  def make_in(self, name: str, *arguments: Any) -> int:
    """Make an object of another one, such as a kernel of a program."""
    with self.lock:
      self.check()
      self.returned.take()
      return self.library.make(name, *arguments)

  def release(self, name: str, handle: int, held: Any = None) -> None:
    """Release an object, now or when running work is done. held: lives until then.

    The driver of a lost device may hang, so it is not asked.
    """
    with self.lock: self._undo(name, handle, held)

  def _undo(self, name: str, handle: int, held: Any = None) -> None:
    self.retired.append((name, handle, held))
    if self.lost is not None: return   # its work may still run, so what it uses stays
    if not self.flying: self._release_retired()

  def _release_retired(self) -> None:
    """Make the releases that waited. Nothing runs."""
    while self.retired:
      name, handle, held = self.retired.popleft()
      with contextlib.suppress(ClFailure): self.library.call(name, handle)
      del held

  # **** programs ****

  def build(self, source: bytes, name: str) -> int:
    """Compile a source. Return the handle of the program. Raises CompileError with the compiler's messages.

    name: of its first kernel.
    """
    text = ctypes.c_char_p(source)
    with self.lock:
      handle = self.make("clCreateProgramWithSource", 1, ctypes.byref(text), None)
      try: self.library.call("clBuildProgram", handle, 1, self.device_list, OPTIONS, None, None)
      except ClFailure as failed:
        log = self.library.text("clGetProgramBuildInfo", handle, self.about.handle, cl.PROGRAM_BUILD_LOG)
        self.release("clReleaseProgram", handle)
        lines = "\n".join(log.splitlines()[:SHOWN_LINES])
        raise CompileError(f"{self.name} ({self.about.title}) failed on kernel {name}: {failed.message}\n{lines}"
                           ) from failed
    return handle

  def workgroup_limit(self, kernel: int) -> int:
    """Return the lanes that a workgroup of a kernel may have."""
    with self.lock:
      return self.library.number("clGetKernelWorkGroupInfo", kernel, self.about.handle, cl.KERNEL_WORK_GROUP_SIZE)

  def load(self, code: Code) -> ClProgram: return ClProgram(self, code, ClBuilt(self, [code]))

  def load_all(self, codes: Sequence[Code]) -> list[ClProgram]:
    """Load several kernels with few runs of the compiler. If it refuses a source, its kernels are loaded one by one."""
    found: list[ClProgram] = []
    for start in range(0, len(codes), MOST_TOGETHER):
      part = codes[start:start + MOST_TOGETHER]
      try: built = ClBuilt(self, part)
      except CompileError:
        found += map(self.load, part)
        continue
      found += [ClProgram(self, code, built, k) for k, code in enumerate(part)]
    return found

  # **** work ****

  def submit(self, launches: Sequence[Launch]) -> None:
    """Start launches, in order. Return at once, or when there is room for them."""
    with self.lock:
      for start in range(0, len(launches), BATCH):
        part = launches[start:start + BATCH]
        self._enqueue([program_of(launch, ClProgram, self).own for launch in part], list(map(work_of, part)), part)

  def record(self, launches: Sequence[Launch]) -> ClRecording: return ClRecording(self, launches)

  def enqueue(self, kernels: Sequence[ClKernel], work: Sequence[Work]) -> None:
    """Start kernels whose arguments are set."""
    with self.lock:
      for start in range(0, len(kernels), BATCH):
        self._enqueue(kernels[start:start + BATCH], work[start:start + BATCH])

  def _enqueue(self, kernels: Sequence[ClKernel], work: Sequence[Work], launches: Sequence[Launch] = ()) -> None:
    """Start one submission. launches: those whose arguments must be set first."""
    self.check()
    self.returned.take()
    self._make_room(len(kernels))
    start, event, started = self.library.start, ctypes.c_void_p(), 0
    last = max((k for k, kernel in enumerate(kernels) if (launches[k].grid if launches else kernel.grid)), default=-1)
    try:
      for kernel in kernels:
        if launches: kernel.prepare(launches[started])
        if started == last: status = start(*kernel.start[:-1], ctypes.byref(event))
        else: status = start(*kernel.start) if kernel.grid else 0
        if status: raise failure(f"{self.name} ({self.about.title}): starting kernel {kernel.name}", status)
        started += 1
    finally:   # an interrupt, or a later launch that is refused, leaves some of them started
      self.workgroups += sum([kernel.grid for kernel in kernels[:started]])
      if started and last >= 0: self._follow(event, started, work)

  def _follow(self, event: ctypes.c_void_p, started: int, work: Sequence[Work]) -> None:
    """Note a submission that was started. event: of its last launch; without one, a new one is put after it."""
    if not event.value: self.library.call("clEnqueueMarkerWithWaitList", self.queue, 0, None, ctypes.byref(event))
    self.submitted += 1
    self.flying.append(ClSubmission(self.submitted, event.value or 0, started, work))
    self.library.call("clFlush", self.queue)

  def submit_timed(self, launches: Sequence[Launch]) -> list[tuple[int, int]]:
    """Run launches. Return when each began and ended by the device's clock, in nanoseconds of time.perf_counter_ns."""
    return ClRecording(self, launches).submit_timed()

  def enqueue_timed(self, kernels: Sequence[ClKernel]) -> list[tuple[int, int]]:
    """Run kernels whose arguments are set, in a queue that keeps times. Return the times as submit_timed does."""
    with self.lock:
      self.synchronize()
      if not self.timed_queue:
        self.timed_queue = self.make("clCreateCommandQueue", self.about.handle, cl.QUEUE_PROFILING_ENABLE)
      zero, begin, times = 0, time.perf_counter_ns(), list[tuple[int, int]]()
      for kernel in kernels:
        now = time.perf_counter_ns()
        if not kernel.grid:
          times.append((now, now))
          continue
        event = ctypes.c_void_p()
        self.call("clEnqueueNDRangeKernel", self.timed_queue, *kernel.start[1:-1], ctypes.byref(event))
        self.call("clFlush", self.timed_queue)
        self.flying.append(ClSubmission(self.submitted, event.value or 0, 1, [(kernel.name, None)]))
        self._wait(self.flying[0])
        found = [self.library.number("clGetEventProfilingInfo", event, asked) for asked in
                 (cl.PROFILING_COMMAND_QUEUED, cl.PROFILING_COMMAND_START, cl.PROFILING_COMMAND_END)]
        zero = zero or now - found[0]   # the device's clock has a zero of its own
        self._retire()
        times.append((max(found[1] + zero, begin), max(found[2] + zero, begin)))
      return times

  def copy(self, name: str, memory: ClMemory, host: Any, size: int) -> None:
    """Copy bytes between a buffer and memory of the program. Nothing of either is in use afterwards."""
    with self.lock:
      self.synchronize()
      try: self.call(name, self.queue, memory.handle, 1, memory.offset, size, ctypes.byref(host), 0, None, None)
      except ClFailure as failed:
        self.lost = self._lost(f"failed to copy {size} bytes ({failed.status})")
        raise

  # **** waits ****

  def synchronize(self) -> None:
    """Wait until all work is done. At the deadline, lose the device and raise DriverError."""
    with self.lock:
      self.check()
      if self.flying: self._wait(self.flying[-1])
      while self.flying: self._retire()
      self._release_retired()

  def _retire(self) -> None:
    self.library.call("clReleaseEvent", self.flying.popleft().event)

  def _make_room(self, count: int) -> None:
    """Wait until `count` launches may be started. Forget completed submissions."""
    while self.flying and self._ended(self.flying[0]): self._retire()
    while self.flying and sum(flight.launches for flight in self.flying) + count > MOST_FLYING:
      self._wait(self.flying[0])
      self._retire()

  def _ended(self, flight: ClSubmission) -> bool:
    """Is a submission done? Raises DriverError, and loses the device, if it failed."""
    status = ctypes.c_int()
    self.library.call("clGetEventInfo", flight.event, cl.EVENT_COMMAND_EXECUTION_STATUS, 4, ctypes.byref(status), None)
    if status.value < 0: raise self._failed(f"submission {flight.number} ({shown(flight.work)})", status.value)
    return status.value == cl.COMPLETE

  def _wait(self, flight: ClSubmission) -> None:
    """Wait for a submission, and retire those before it. Each has the deadline for itself: drivers compile some kernels
    when they run first. At the deadline, lose the device and raise DriverError."""
    timeout_ms, duration = HCQDEV_WAIT_TIMEOUT_MS.value, WaitTime()
    while not self._ended(flight):
      first, waited = self.flying[0], duration.look()
      if self._ended(first):
        if first is not flight: self._retire()
        duration.restart()
      elif waited * 1000 >= timeout_ms:
        reason = f"did not finish submission {first.number} in {timeout_ms / 1000:g} s"
        self.lost = self._lost(reason)
        raise DriverError(f"{self.name} ({self.about.title}) {reason}; it was at {shown(first.work)}; a larger "
                          f"{HCQDEV_WAIT_TIMEOUT_MS.key} allows more time")
      else: pause(waited)

  def _failed(self, what: str, status: int) -> ClFailure:
    """Lose the device, and return the error of a command that failed."""
    self.lost = self._lost(f"failed at {what}: {status_name(status)}")
    return failure(f"{self.name} ({self.about.title}): {what}", status)

  def _lost(self, reason: str) -> str:
    return f"{self.name} is lost since it {reason}; start the program again, or use another device"

  # **** the device ****

  def after_fork(self, in_child: bool) -> None:
    if not in_child: return
    self.lock = self.allocator.lock = threading.RLock()
    self.lost = lost_in_child(self.name, "OpenCL")

  def close(self) -> None:
    """Finish running work. The context stays as long as buffers of it are referenced."""
    super().close()
    if self.lost is not None: return
    self.synchronize()
    self.allocator.free_cache()

  def facts(self) -> dict[str, Any]:
    about = self.about
    groups = 1 if about.kind == "processor" else GPU_GROUPS
    return {"arch": self.arch, "threads": about.units * groups, "local_bytes": about.local_bytes,
            "memory_limit": self.allocator.limit,
            "processor": f"{about.title}, {about.kind}, {about.units} compute units, driver {about.driver}"}
