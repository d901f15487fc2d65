"""One Metal device: its queue, its kernels, waits with a deadline, and its loss.

A submission is a command buffer with one compute encoder, in which launches run at the same time except for barriers
(launch.py). A fence orders the encoders of submissions. Metal's own waits have no deadline, so this file asks for the
status. An error of one command buffer does not stop later ones, so the status of every one is looked at, in order. A
device that misses a deadline, or whose kernel fails, is lost: it refuses further work.
"""
from __future__ import annotations
import collections
import ctypes
import threading
import time
from collections.abc import Sequence
from typing import Any

from tinyhw.config import HCQDEV_WAIT_TIMEOUT_MS
from tinyhw.device import Compiled, Launch, Returned
from tinyhw.drivers.gpu.forks import lost_in_child
from tinyhw.drivers.gpu.launch import Work, shown, work_of
from tinyhw.drivers.gpu.parameters import checked
from tinyhw.drivers.gpu.polling import WaitTime, give_way, pause
from tinyhw.drivers.gpu.signals import SIGNALS
from tinyhw.drivers.metal.facts import MetalFacts
from tinyhw.drivers.metal.launch import BATCH, MetalEncoder, MetalProgram, MetalRecording, order_of_batches
from tinyhw.drivers.metal.memory import MetalAllocator
from tinyhw.drivers.metal.objc import ObjectiveC
from tinyhw.errors import CompileError, DeviceError, DriverError
from tinyhw.machine.ir.code import Code
from tinyhw.named_tuple import NamedTuple

MOST_FLYING = 48         # command buffers under way: a queue has 64, and then waits without a deadline
LANGUAGE = 3 << 16       # of kernels: 3.0, of macOS 13
CONCURRENT = 1           # MTLDispatchTypeConcurrent
SAFE, PRECISE = 0, 1     # MTLMathModeSafe, MTLMathFloatingPointFunctionsPrecise
COMPLETED, FAILED = 4, 5 # MTLCommandBufferStatus
VIRTUAL = 20             # factor of the deadlines of a virtual GPU
SHOWN_LINES = 20         # of the compiler's messages

class MetalSubmission(NamedTuple):
  """A submission under way. handle: of its command buffer, which is retained, as are `kept`."""
  number: int
  handle: int
  work: Sequence[Work]
  kept: Sequence[int] = ()

class MetalDevice(Compiled):
  """A Metal device. name: in tinyhw. about: the facts, whose handle the device owns from now on."""
  allocator: MetalAllocator

  def __init__(self, name: str, objc: ObjectiveC, about: MetalFacts):
    self.name, self.objc, self.about, self.lock = name, objc, about, threading.RLock()
    self.lost: str | None = None
    self.is_owner = False     # of the queue and the device
    self.returned = Returned(self.release)
    self.flying: collections.deque[MetalSubmission] = collections.deque()   # the oldest first
    self.submitted = self.workgroups = 0   # submissions and threadgroups that were started
    with objc.pool():
      self.queue = objc.send(about.handle, "newCommandQueue")
      self.fence = objc.send(about.handle, "newFence") if self.queue else None
    if not self.queue or not self.fence:
      objc.release(self.queue)
      objc.release(about.handle)
      raise DeviceError(f"{about.title} gives no queue; other programs may hold all of them: end some")
    self.is_owner = True
    super().__init__(name, MetalAllocator(self, about), arch="metal")

  def check(self) -> None:
    if self.lost is not None: raise DeviceError(self.lost)

  def release(self, handle: int) -> None:
    """Release an object. Running work retains the objects that it uses. A forked child has none."""
    with self.lock:
      if self.is_owner: self.objc.release(handle)

  # **** kernels ****

  def load(self, code: Code) -> MetalProgram: return MetalProgram(self, code)

  def build(self, source: bytes, function: str, name: str) -> tuple[int, int, int]:
    """Compile a source. Return the handle of the pipeline of a function, the most lanes of a threadgroup, and the lanes
    of a SIMD-group. Raises CompileError with the compiler's messages."""
    objc, error = self.objc, ctypes.c_void_p()
    with self.lock, objc.pool():
      self.check()
      self.returned.take()
      options = self._options()
      made = [options]
      try:
        made.append(objc.send(self.about.handle, "newLibraryWithSource:options:error:", objc.string(source.decode()),
                              options, ctypes.byref(error)))
        if not made[-1]: raise self._refused(name, error.value)
        made.append(objc.send(made[-1], "newFunctionWithName:", objc.string(function)))
        if not made[-1]: raise CompileError(f"{self.name}: the source of kernel {name} has no function {function}")
        pipeline = objc.send(self.about.handle, "newComputePipelineStateWithFunction:error:", made[-1],
                             ctypes.byref(error))
        if not pipeline: raise self._refused(name, error.value)
      finally:
        for thing in made: objc.release(thing)
      return pipeline, objc.send(pipeline, "maxTotalThreadsPerThreadgroup"), objc.send(pipeline, "threadExecutionWidth")

  def _options(self) -> int:
    """Return new compile options: exact division and roots, NaNs and infinities. The source forbids contraction."""
    objc, options = self.objc, self.objc.make("MTLCompileOptions")
    if objc.responds(options, "setMathMode:"):   # macOS 15
      objc.send(options, "setMathMode:", SAFE)
      objc.send(options, "setMathFloatingPointFunctions:", PRECISE)
    else: objc.send(options, "setFastMathEnabled:", False)
    objc.send(options, "setLanguageVersion:", LANGUAGE)
    return options

  def _refused(self, name: str, error: int | None) -> CompileError:
    lines = "\n".join(self.objc.description(error).splitlines()[:SHOWN_LINES])
    return CompileError(f"{self.name} ({self.about.title}) failed on kernel {name}:\n{lines}")

  # **** work ****

  def submit(self, launches: Sequence[Launch]) -> None:
    """Start launches, in order. Return at once, or when there is room for them."""
    self.enqueue(checked(launches, MetalProgram, self), order_of_batches(launches))

  def record(self, launches: Sequence[Launch]) -> MetalRecording: return MetalRecording(self, launches)

  def enqueue(self, launches: Sequence[Launch], waits: Sequence[bool]) -> None:
    """Start launches that were checked. waits: which of those with a grid wait for earlier ones."""
    started = [launch for launch in launches if launch.grid]
    with self.lock:
      for start in range(0, len(started), BATCH):
        self._enqueue(started[start:start + BATCH], waits[start:start + BATCH])

  def _enqueue(self, launches: Sequence[Launch], waits: Sequence[bool]) -> None:
    """Start one submission. In the pool no signal's handler runs, so the device knows what the GPU has."""
    self.check()
    self.returned.take()
    self._make_room()
    objc = self.objc
    with objc.pool():
      buffer = objc.send(self.queue, "commandBuffer")
      encoder = objc.send(buffer, "computeCommandEncoderWithDispatchType:", CONCURRENT) if buffer else None
      if not encoder: raise DriverError(f"{self.name} ({self.about.title}) gives no command buffer; start the program "
                                        f"again")
      state, is_encoded = MetalEncoder(objc, encoder), False
      try:
        objc.send(encoder, "waitForFence:", self.fence)
        for launch, wait in zip(launches, waits):
          if wait: state.barrier()
          state.launch(launch)
        objc.send(encoder, "updateFence:", self.fence)
        is_encoded = True
      finally:   # an error leaves a command buffer that is not committed, and does nothing
        objc.send(encoder, "endEncoding")
        if not is_encoded:
          for thing in state.kept: objc.release(thing)
      self.submitted += 1
      self.flying.append(MetalSubmission(self.submitted, objc.keep(buffer), list(map(work_of, launches)),
                                         tuple(state.kept)))
      objc.send(buffer, "commit")
      self.workgroups += sum(launch.grid for launch in launches)

  def submit_timed(self, launches: Sequence[Launch]) -> list[tuple[int, int]]:
    """Run launches one by one. Return when each began and ended by the GPU's clock, in nanoseconds of
    time.perf_counter_ns."""
    times: list[tuple[int, int]] = []
    with self.lock:
      for launch in checked(launches, MetalProgram, self):
        self.synchronize()
        begin = time.perf_counter_ns()
        if not launch.grid:
          times.append((begin, begin))
          continue
        self._enqueue([launch], [False])
        flight = self.flying[-1]
        self._wait(flight)
        seconds = self.objc.send(flight.handle, "GPUEndTime") - self.objc.send(flight.handle, "GPUStartTime")
        times.append((begin, begin + max(round(seconds * 1e9), 0)))
      self.synchronize()
    return times

  # **** waits ****

  def synchronize(self) -> None:
    """Wait until all work is done. At the deadline, lose the device and raise DriverError."""
    with self.lock:
      self.check()
      if self.flying: self._wait(self.flying[-1])
      while self.flying: self._retire()
      self.returned.take()

  def _retire(self) -> None:
    """Forget the oldest submission."""
    with SIGNALS.wait():
      oldest = self.flying.popleft()
      for thing in (oldest.handle, *oldest.kept): self.objc.release(thing)

  def _make_room(self) -> None:
    """Wait until a command buffer may be made. Forget completed submissions."""
    while self.flying and self._ended(self.flying[0]): self._retire()
    while len(self.flying) >= MOST_FLYING:
      self._wait(self.flying[0])
      self._retire()

  def _ended(self, flight: MetalSubmission) -> bool:
    """Is a submission done? Raises DriverError, and loses the device, if it failed."""
    status = self.objc.send(flight.handle, "status")
    if status != FAILED: return bool(status == COMPLETED)
    with self.objc.pool(): words = self.objc.description(self.objc.send(flight.handle, "error"))
    self._lose(f"failed at submission {flight.number} ({shown(flight.work)}): {words}")
    raise DriverError(f"{self.name} ({self.about.title}): submission {flight.number} ({shown(flight.work)}) failed: "
                      f"{words}; start the program again")

  def _wait(self, flight: MetalSubmission) -> None:
    """Wait for a submission, and retire those before it. Each has the deadline for itself. At the deadline, lose the
    device and raise DriverError."""
    timeout_ms = HCQDEV_WAIT_TIMEOUT_MS.value * (VIRTUAL if self.objc.library.virtual else 1)
    duration = WaitTime()
    while True:
      first, waited = self.flying[0], duration.look()
      if self._ended(first):
        if first is flight: return
        self._retire()
        duration.restart()
      elif waited * 1000 >= timeout_ms:
        reason = f"did not finish submission {first.number} in {timeout_ms / 1000:g} s"
        self._lose(reason)
        raise DriverError(f"{self.name} ({self.about.title}) {reason}; it was at {shown(first.work)}; a larger "
                          f"{HCQDEV_WAIT_TIMEOUT_MS.key} allows more time")
      elif self.objc.library.virtual: give_way()
      else: pause(waited)

  def _lose(self, reason: str) -> None:
    self.lost = f"{self.name} is lost since it {reason}; start the program again, or use another device"

  # **** the device ****

  def after_fork(self, in_child: bool) -> None:
    if not in_child: return
    self.lock = self.allocator.lock = threading.RLock()
    self.is_owner = False
    self.lost = lost_in_child(self.name, "Metal")

  def close(self) -> None:
    """Finish running work. The device stays as long as buffers of it are referenced."""
    super().close()
    if self.lost is not None: return
    self.synchronize()
    self.allocator.free_cache()

  def __del__(self) -> None:
    if not getattr(self, "is_owner", False): return
    while self.flying: self._retire()
    for handle in (self.fence, self.queue, self.about.handle): self.objc.release(handle)

  def facts(self) -> dict[str, Any]:
    about = self.about
    return {"arch": self.arch, "local_bytes": about.local_bytes, "memory_limit": self.allocator.limit,
            "processor": f"{about.title}, the largest buffer {about.most_bytes >> 20} MB"}
