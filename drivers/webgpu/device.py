"""One WebGPU device: its queue, its kernels, waits with a deadline, errors, and its loss.

wgpu-native orders all work of a queue, and puts barriers between kernels. Errors come by a callback, during the call
that made them. `DevicePoll` calls the callbacks of finished work; it never waits here. A device that misses a deadline
or that the library loses refuses further work.
"""
from __future__ import annotations
import collections
import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from tinyhw.autogen import webgpu
from tinyhw.autogen.webgpu import CallbackInfo
from tinyhw.config import HCQDEV_WAIT_TIMEOUT_MS
from tinyhw.device import Compiled, Launch, Returned
from tinyhw.drivers.gpu.forks import lost_in_child
from tinyhw.drivers.gpu.launch import Work, shown, work_of
from tinyhw.drivers.gpu.parameters import checked
from tinyhw.drivers.gpu.polling import WaitTime, pause
from tinyhw.drivers.webgpu.encoder import WgpuEncoder
from tinyhw.drivers.webgpu.facts import WgpuFacts, limits_of
from tinyhw.drivers.webgpu.launch import WgpuProgram, WgpuRecording, buffer_layout_entries, uniform_layout_entries
from tinyhw.drivers.webgpu.library import Text, WgpuLibrary, text_of
from tinyhw.drivers.webgpu.memory import WgpuAllocator
from tinyhw.errors import CompileError, DeviceError, DriverError
from tinyhw.machine.ir.code import Code
from tinyhw.named_tuple import NamedTuple

BATCH = 64               # launches of a submission
MOST_FLYING = 16         # submissions under way
SLOT = 256               # bytes of a launch's numbers, or a multiple
NUMBER_BYTES = 4096      # the most bytes of the numbers of a launch
LEAST_STAGING = 64 << 10
STAGING_BYTES = 16 << 20 # of the buffer through which bytes are read, and of one write
SHOWN_LINES = 24         # of the compiler's messages
OUT_OF_MEMORY = 3        # ErrorType
_callbacks: list[Any] = []   # the library may call them until the process ends

class WgpuEvents:
  """What the library has told by callbacks. errors: (kind, message) of calls. completed: the last submission that is
  done. lost: a message. It does not refer to the device, which may be garbage before its last callback."""
  def __init__(self) -> None:
    self.errors, self.completed, self.lost = list[tuple[int, str]](), 0, ""
    self.done = address_of(webgpu.StatusCallback, self._done)
    self.error = address_of(webgpu.DeviceCallback, self._error)
    self.loss = address_of(webgpu.DeviceCallback, self._loss)

  def _done(self, status: int, message: Any, number: int | None, _: Any) -> None:
    self.completed = max(self.completed, number or 0)

  def _error(self, device: Any, kind: int, message: Any, _1: Any, _2: Any) -> None:
    self.errors.append((kind, text_of(message)))

  def _loss(self, device: Any, reason: int, message: Any, _1: Any, _2: Any) -> None:
    if reason != webgpu.LOST_DESTROYED: self.lost = text_of(message).partition("\n")[0] or "it gives no reason"

def address_of(kind: Callable[..., Any], function: Callable[..., None]) -> Any:
  """Return the address of a callback."""
  made = kind(function)
  _callbacks.append(made)
  return ctypes.cast(made, ctypes.c_void_p)

class WgpuSubmission(NamedTuple):
  """A submission under way."""
  number: int
  work: Sequence[Work]

class WgpuDevice(Compiled):
  """A WebGPU device. name: in tinyhw. about: the facts, whose adapter the device owns from now on."""
  allocator: WgpuAllocator

  def __init__(self, name: str, library: WgpuLibrary, about: WgpuFacts):
    self.name, self.library, self.about, self.lock = name, library, about, threading.RLock()
    self.lost: str | None = None
    self.events, self.owned = WgpuEvents(), list[tuple[str, int]]()   # owned: the device's own objects
    self.returned = Returned(self._undo)
    self.flying: collections.deque[WgpuSubmission] = collections.deque()   # the oldest first
    self.submitted = self.workgroups = 0   # submissions and workgroups that were started
    self.most_buffers = about.most_buffers
    self.number_bytes = min(NUMBER_BYTES, about.uniform_bytes)
    self.slot = -(-SLOT // about.uniform_alignment) * about.uniform_alignment
    try:
      self.handle = self._own("DeviceRelease", self._request())
      self.queue = self._own("QueueRelease", self.call("DeviceGetQueue", self.handle))
    finally: library.call("AdapterRelease", about.handle)
    super().__init__(name, WgpuAllocator(self, min(about.most_bytes, about.binding_bytes)), arch=about.arch)
    self.uniform_layout = self._own("BindGroupLayoutRelease", self._layout(uniform_layout_entries(), 1))
    self.uniforms = self._own("BufferRelease", self.made_buffer(BATCH * self.slot + self.number_bytes,
                                                                webgpu.USAGE_UNIFORM | webgpu.USAGE_COPY_DST))
    entry = webgpu.BindGroupEntry(buffer=self.uniforms, size=self.number_bytes)
    self.uniform_group = self._own("BindGroupRelease", self.make("BindGroup", webgpu.BindGroupDescriptor(
      layout=self.uniform_layout, entryCount=1, entries=ctypes.addressof(entry))))
    self.staging: tuple[int, int] = 0, 0    # the handle and the bytes of the buffer through which bytes are read

  def _own(self, release: str, handle: int) -> int:
    """Note an object that is released with the device."""
    self.owned.append((release, handle))
    return handle

  def _request(self) -> int:
    """Return the handle of a new device, with all limits of the adapter. Raises DeviceError."""
    found: list[tuple[int, int, str]] = []
    answer = address_of(webgpu.RequestDeviceCallback, lambda status, handle, message, _1, _2: found.append(
      (status, handle or 0, text_of(message))))
    limits = limits_of(self.library, self.about.handle)
    features = (ctypes.c_uint32 * 1)(webgpu.FEATURE_TIMESTAMP_QUERY)
    descriptor = webgpu.DeviceDescriptor(
      requiredFeatureCount=int(self.about.has_timestamps), requiredFeatures=ctypes.addressof(features),
      requiredLimits=ctypes.addressof(limits))
    descriptor.deviceLostCallbackInfo = CallbackInfo(
      mode=webgpu.CALLBACK_ALLOW_SPONTANEOUS, callback=self.events.loss)
    descriptor.uncapturedErrorCallbackInfo = webgpu.UncapturedErrorCallbackInfo(
      callback=self.events.error)
    self.library.call("AdapterRequestDevice", self.about.handle, ctypes.addressof(descriptor),
                      CallbackInfo(mode=webgpu.CALLBACK_ALLOW_SPONTANEOUS, callback=answer))
    status, handle, message = found[0] if found else (0, 0, "it does not answer")
    if status != webgpu.STATUS_SUCCESS or not handle:
      raise DeviceError(f"{self.about.title} gives no device: {message}; update its driver, or use another adapter")
    return handle

  # **** calls and errors ****

  def check(self) -> None:
    if self.events.lost and self.lost is None: self._lose(f"was lost by the library: {self.events.lost}")
    if self.lost is not None: raise DeviceError(self.lost)

  def call(self, name: str, *arguments: Any) -> Any:
    """Call a function. Raises DriverError with the errors that it made."""
    self.events.errors.clear()
    result = self.library.call(name, *arguments)
    if self.events.errors: raise self.failure(name)
    return result

  def failure(self, what: str) -> DriverError:
    """Return the errors of a call as one."""
    kind, message = self.events.errors[0]
    self.events.errors.clear()
    words = webgpu.ERROR_TYPES.get(kind, "unknown")
    return DriverError(f"{self.name} ({self.about.title}): {what}: {words} error: {' '.join(message.split())}; report "
                       f"this with the output of python3 -m tinyhw doctor --device WEBGPU")

  def make(self, kind: str, descriptor: ctypes.Structure) -> int:
    """Make an object of this device, which the caller releases."""
    with self.lock:
      self.check()
      self.returned.take()
      return int(self.call(f"DeviceCreate{kind}", self.handle, ctypes.addressof(descriptor)) or 0)

  def release(self, name: str, handle: int) -> None:
    """Release an object. Submitted work keeps what it uses."""
    with self.lock: self._undo(name, handle)

  def _undo(self, name: str, handle: int) -> None:
    if self.lost is None: self.library.call(name, handle)   # the driver of a lost device may hang

  # **** buffers ****

  def make_buffer(self, size: int, usage: int) -> int | None:
    """Return the handle of a new buffer, or None if there is no memory."""
    with self.lock:
      try: return self.make("Buffer", webgpu.BufferDescriptor(usage=usage, size=size))
      except DriverError as error:
        if f": {webgpu.ERROR_TYPES[OUT_OF_MEMORY]} error" in error.message: return None
        raise

  def made_buffer(self, size: int, usage: int) -> int:
    """Return the handle of a new buffer of the driver itself. Raises DriverError."""
    found = self.make_buffer(size, usage)
    if found is None: raise DriverError(f"{self.name} ({self.about.title}) has no memory left; end other programs")
    return found

  def write(self, handle: int, offset: int, data: memoryview) -> None:
    """Write whole words into a buffer, after all work that was submitted before."""
    with self.lock:
      self.check()
      for start in range(0, data.nbytes, STAGING_BYTES):
        part = data[start:start + STAGING_BYTES]
        memory = ((ctypes.c_char * part.nbytes).from_buffer_copy(part) if part.readonly else
                  (ctypes.c_char * part.nbytes).from_buffer(part))
        self.call("QueueWriteBuffer", self.queue, handle, offset + start, ctypes.addressof(memory), part.nbytes)
        if data.nbytes > STAGING_BYTES: self.call("QueueSubmit", self.queue, 0, None)   # the library's memory gets free

  def read(self, handle: int, offset: int, out: memoryview) -> None:
    """Read whole words of a buffer, after all work that was submitted before."""
    with self.lock:
      for start in range(0, out.nbytes, STAGING_BYTES):
        self._read(handle, offset + start, out[start:start + STAGING_BYTES])

  def _read(self, handle: int, offset: int, out: memoryview) -> None:
    self.synchronize()
    if self.staging[1] < out.nbytes:
      if self.staging[0]: self.release("BufferRelease", self.staging[0])
      size = min(max(LEAST_STAGING, 1 << (out.nbytes - 1).bit_length()), STAGING_BYTES)
      self.staging = self.made_buffer(size, webgpu.USAGE_MAP_READ | webgpu.USAGE_COPY_DST), size
    staging, size = self.staging[0], out.nbytes
    with WgpuEncoder(self) as encoder:
      self.call("CommandEncoderCopyBufferToBuffer", encoder.handle, handle, offset, staging, 0, size)
      self._follow(encoder, [(f"copy of {size} bytes to the host", None)])
    mapped: list[int] = []
    answer = webgpu.StatusCallback(lambda status, message, _1, _2: mapped.append(status))
    self.call("BufferMapAsync", staging, webgpu.MAP_READ, 0, size, CallbackInfo(
      mode=webgpu.CALLBACK_ALLOW_SPONTANEOUS, callback=ctypes.cast(answer, ctypes.c_void_p)))
    try:
      self._wait_until(lambda: bool(mapped) and not self._running(self.flying[-1]), self.flying[-1])
      if mapped != [webgpu.STATUS_SUCCESS]:
        raise DriverError(f"{self.name}: memory cannot be read; start the program again")
      address = self.call("BufferGetConstMappedRange", staging, 0, size)
      ctypes.memmove((ctypes.c_char * size).from_buffer(out), address, size)
    finally:   # an interrupt leaves no buffer that is mapped, or will be
      if self.lost is None: self.library.call("BufferUnmap", staging)
      if not mapped: _callbacks.append(answer)   # it may still be called

  # **** kernels ****

  def _layout(self, entries: Any, count: int) -> int:
    return self.make("BindGroupLayout", webgpu.BindGroupLayoutDescriptor(entryCount=count,
                                                                         entries=ctypes.addressof(entries)))

  def buffer_layout(self, count: int) -> int:
    """Return a new layout of bindings for so many buffers."""
    return self._layout(buffer_layout_entries(count), count)

  def build(self, code: Code, function: str, layout: int) -> int:
    """Compile a kernel. Return the handle of its pipeline. Raises CompileError with the compiler's messages."""
    text, name = Text(code.text), Text(function.encode())
    source = webgpu.ShaderSourceWGSL(webgpu.ChainedStruct(None, webgpu.SHADER_SOURCE_WGSL), text.view)
    layouts = (ctypes.c_void_p * 2)(layout, self.uniform_layout)
    made: list[tuple[str, int]] = []
    with self.lock:
      try:
        made.append(("ShaderModuleRelease", self._compiled(code, "ShaderModule", webgpu.ShaderModuleDescriptor(
          nextInChain=ctypes.addressof(source)))))
        made.append(("PipelineLayoutRelease", self.make("PipelineLayout", webgpu.PipelineLayoutDescriptor(
          bindGroupLayoutCount=2, bindGroupLayouts=ctypes.addressof(layouts)))))
        return self._compiled(code, "ComputePipeline", webgpu.ComputePipelineDescriptor(
          layout=made[1][1], compute=webgpu.ComputeState(module=made[0][1], entryPoint=name.view)))
      finally:
        for release, handle in made: self.release(release, handle)

  def _compiled(self, code: Code, kind: str, descriptor: ctypes.Structure) -> int:
    self.check()
    self.events.errors.clear()
    handle = int(self.library.call(f"DeviceCreate{kind}", self.handle, ctypes.addressof(descriptor)) or 0)
    if not self.events.errors: return handle
    lines = "\n".join(self.events.errors[0][1].strip().splitlines()[:SHOWN_LINES])
    self.events.errors.clear()
    raise CompileError(f"{self.name} ({self.about.title}) failed on kernel {code.name}:\n{lines}")

  def load(self, code: Code) -> WgpuProgram: return WgpuProgram(self, code)

  # **** work ****

  def submit(self, launches: Sequence[Launch]) -> None:
    """Start launches, in order. Return at once, or when there is room for them."""
    self.enqueue(checked(launches, WgpuProgram, self))

  def record(self, launches: Sequence[Launch]) -> WgpuRecording: return WgpuRecording(self, launches)

  def enqueue(self, launches: Sequence[Launch]) -> None:
    """Start launches that were checked. Those without a grid do nothing."""
    launches = [launch for launch in launches if launch.grid]
    with self.lock:
      for start in range(0, len(launches), BATCH):
        part = launches[start:start + BATCH]
        self._make_room()
        with WgpuEncoder(self) as encoder:
          offsets = self._write_numbers(part)
          with encoder.compute_pass() as compute:
            for launch, offset in zip(part, offsets): encoder.dispatch(compute, launch, offset)
          self._follow(encoder, list(map(work_of, part)))
        self.workgroups += sum(launch.grid for launch in part)

  def _write_numbers(self, launches: Sequence[Launch]) -> list[int]:
    """Write the numbers of a submission's launches, and return their offsets."""
    data, offsets = bytearray(), []
    for launch in launches:
      offsets.append(len(data))
      numbers = launch.program.numbers(launch)
      data += numbers + bytes(-len(numbers) % self.slot)
    self.write(self.uniforms, 0, memoryview(data))
    return offsets

  def _follow(self, encoder: WgpuEncoder, work: Sequence[Work]) -> None:
    """Submit what an encoder has, and note the submission."""
    commands = (ctypes.c_void_p * 1)(encoder.finish())
    try: self.call("QueueSubmit", self.queue, 1, ctypes.addressof(commands))
    finally: self.library.call("CommandBufferRelease", commands[0])
    self.submitted += 1
    self.flying.append(WgpuSubmission(self.submitted, work))
    self.call("QueueOnSubmittedWorkDone", self.queue, CallbackInfo(
      mode=webgpu.CALLBACK_ALLOW_SPONTANEOUS, callback=self.events.done, userdata1=self.submitted))

  def submit_timed(self, launches: Sequence[Launch]) -> list[tuple[int, int]]:
    """Run launches one by one. Return when each began and ended by the device's clock, if it has timestamps, in
    nanoseconds of time.perf_counter_ns."""
    checked(launches, WgpuProgram, self)
    if not self.about.has_timestamps: return super().submit_timed(launches)
    with self.lock: return [self._timed(launch) for launch in launches]

  def _timed(self, launch: Launch) -> tuple[int, int]:
    self.synchronize()
    begin = time.perf_counter_ns()
    if not launch.grid: return begin, begin
    made: list[tuple[str, int]] = []
    try:
      queries = self.make("QuerySet", webgpu.QuerySetDescriptor(type=webgpu.QUERY_TIMESTAMP, count=2))
      made.append(("QuerySetRelease", queries))
      results = self.made_buffer(16, webgpu.USAGE_QUERY_RESOLVE | webgpu.USAGE_COPY_SRC)
      made.append(("BufferRelease", results))
      with WgpuEncoder(self) as encoder:
        offsets = self._write_numbers([launch])
        with encoder.compute_pass(queries) as compute: encoder.dispatch(compute, launch, offsets[0])
        self.call("CommandEncoderResolveQuerySet", encoder.handle, queries, 0, 2, results, 0)
        self._follow(encoder, [work_of(launch)])
      self.workgroups += launch.grid
      ticks = bytearray(16)
      self.read(results, 0, memoryview(ticks))
    finally:
      for release, handle in made: self.release(release, handle)
    first, last = memoryview(ticks).cast("Q")
    return begin, begin + max(round((last - first) * self.call("QueueGetTimestampPeriod", self.queue)), 0)

  # **** waits ****

  def synchronize(self) -> None:
    """Wait until all work is done. At the deadline, lose the device and raise DriverError."""
    with self.lock:
      self.check()
      if self.flying:
        last = self.flying[-1]
        self._wait_until(lambda: not self._running(last), last)
      self.returned.take()

  def _running(self, flight: WgpuSubmission) -> bool:
    """Is a submission under way? Forget those that are done."""
    while self.flying and self.flying[0].number <= self.events.completed: self.flying.popleft()
    return self.events.completed < flight.number

  def _make_room(self) -> None:
    """Wait until there may be another submission."""
    self.check()
    self.returned.take()
    while len(self.flying) >= MOST_FLYING:
      first = self.flying[0]
      self._wait_until(lambda: not self._running(first), first)

  def _wait_until(self, is_done: Callable[[], bool], flight: WgpuSubmission) -> None:
    """Wait for something that follows a submission. Each submission before it has the deadline for itself. At the
    deadline, lose the device and raise DriverError."""
    timeout_ms, duration, seen = HCQDEV_WAIT_TIMEOUT_MS.value, WaitTime(), self.events.completed
    while True:
      self.call("DevicePoll", self.handle, 0, None)
      self.check()
      if is_done(): return
      waited = duration.look()
      if self.events.completed != seen:
        duration.restart()
        seen = self.events.completed
      elif waited * 1000 >= timeout_ms:
        first = self.flying[0] if self.flying else flight
        reason = f"did not finish submission {first.number} in {timeout_ms / 1000:g} s"
        self._lose(reason)
        raise DriverError(f"{self.name} ({self.about.title}) {reason}; it was at {shown(first.work)}; a larger "
                          f"{HCQDEV_WAIT_TIMEOUT_MS.key} allows more time")
      else: pause(waited)

  def _lose(self, reason: str) -> None:
    self.lost = f"{self.name} is lost since it {reason}; start the program again, or use another device"

  # **** the device ****

  def after_fork(self, in_child: bool) -> None:
    if not in_child: return
    self.lock = self.allocator.lock = threading.RLock()
    self.lost = lost_in_child(self.name, "WebGPU")

  def __del__(self) -> None:
    if getattr(self, "lost", "") is not None: return
    staging = [("BufferRelease", self.staging[0])] if getattr(self, "staging", (0, 0))[0] else []
    for release, handle in [*staging, *reversed(self.owned)]: self.library.call(release, handle)

  def close(self) -> None:
    """Finish running work. The device stays as long as buffers of it are referenced."""
    super().close()
    if self.lost is not None: return
    self.synchronize()
    self.allocator.free_cache()

  def facts(self) -> dict[str, Any]:
    about = self.about
    return {"arch": self.arch, "local_bytes": about.local_bytes,
            "processor": f"{about.title}, {about.kind}, {about.driver}, the largest buffer "
                         f"{self.allocator.most_bytes >> 20} MB"}
