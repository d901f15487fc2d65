"""The device NV through NVIDIA's driver library: the same code in the vendor's file format, loaded by libcuda.

It serves containers that deny programs the kernel driver's calls. It is also an independent check of our own driver:
DEV=NV:CUDA. All work is in one order, that of the library's default stream. Calls of the library wait without a
deadline. So we wait before the calls, with a deadline.
"""
from __future__ import annotations
import collections
import contextlib
import ctypes
import os
import struct
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from tinyhw.config import EMULATE, HCQDEV_WAIT_TIMEOUT_MS
from tinyhw.device import VECTOR_BYTES, Compiled, Launch, LRUAllocator, Returned
from tinyhw.drivers.gpu import reports
from tinyhw.drivers.gpu.device import BATCH
from tinyhw.drivers.gpu.forks import begin_use, lost_in_child
from tinyhw.drivers.gpu.launch import Work, work_of
from tinyhw.drivers.gpu.polling import LONGEST_SLEEP, SHARE
from tinyhw.drivers.gpu.queue import wait_until
from tinyhw.drivers.nvidia.chips import CHIPS, Chip, check_code, known_kinds
from tinyhw.drivers.nvidia.cubin import cubin
from tinyhw.drivers.nvidia.library import (
  L2_BYTES, MAJOR, MAPPED, MINOR, MULTIPROCESSORS, NOT_READY, OUT_OF_MEMORY, SHARED_OF_FUNCTION, STICKY)
from tinyhw.drivers.nvidia.library import WAITING, WITHOUT_TIME, Failure, Library, load_library
from tinyhw.errors import DeviceError, DriverError
from tinyhw.machine.ir.code import Code
from tinyhw.named_tuple import NamedTuple

MOST_GROUPS = (1 << 31) - 1
SHARED_WITHOUT_ASKING = 48 << 10  # of a block; static memory is never more
# pending launches. If about 1024 of them, with their events, are pending, the library waits for room
MOST_FLYING = 384

class CudaMemory:
  """A buffer: its address."""
  __slots__ = ("address", "size", "device", "host", "__weakref__")
  def __init__(self, address: int, size: int, device: CudaDevice, host: int = 0):
    self.address, self.size, self.device, self.host = address, size, device, host

  def __repr__(self) -> str: return f"<CudaMemory {self.size} bytes at {self.address:#x}>"

class Registered(CudaMemory):
  """Memory of the program that the GPU sees as long as this object lives."""
  def __del__(self) -> None:
    self.device.returned.put(self.device.lock, "cuMemHostUnregister", self.host)

class CudaAllocator(LRUAllocator):
  """The memory of one GPU."""
  alignment = VECTOR_BYTES

  def __init__(self, device: CudaDevice, limit: int | None):
    super().__init__(device.name, limit=limit, supports_transfer=True)
    self.device = device

  def _alloc(self, size: int) -> CudaMemory | None:
    try: return CudaMemory(self.device.number("cuMemAlloc_v2", size, kind=ctypes.c_uint64), size, self.device)
    except Failure as failure:
      if failure.status == OUT_OF_MEMORY: return None
      raise

  def _free(self, opaque: CudaMemory, size: int) -> None:
    # a lost context has freed everything
    if self.device.lost is None: self.device.call("cuMemFree_v2", opaque.address)

  def _copyin(self, dest: CudaMemory, src: memoryview) -> None:
    data = src.cast("B")
    source = ((ctypes.c_char * data.nbytes).from_buffer(data) if not data.readonly
              else (ctypes.c_char * data.nbytes).from_buffer_copy(data))
    self.device.call("cuMemcpyHtoD_v2", dest.address, source, data.nbytes)

  def _copyout(self, dest: memoryview, src: CudaMemory) -> None:
    self.device.call("cuMemcpyDtoH_v2", (ctypes.c_char * dest.nbytes).from_buffer(dest.cast("B")), src.address,
                     dest.nbytes)

  def address(self, opaque: CudaMemory) -> int: return opaque.address
  def offset(self, opaque: CudaMemory, size: int, offset: int) -> CudaMemory:
    return CudaMemory(opaque.address + offset, size, self.device)

  def external(self, address: int, size: int) -> CudaMemory:
    self.device.call("cuMemHostRegister_v2", address, size, MAPPED)
    return Registered(self.device.number("cuMemHostGetDevicePointer_v2", address, 0, kind=ctypes.c_uint64), size,
                      self.device, address)

  def transfer(self, dest: CudaMemory, src: Any, size: int) -> bool:
    """Copy from another GPU of the library's. Return False for memory of other drivers."""
    if not isinstance(src, CudaMemory): return False
    src.device.synchronize()
    self.device.call("cuMemcpyPeer", dest.address, self.device.context, src.address, src.device.context, size)
    self.device.synchronize()
    return True

class CudaProgram:
  """A kernel that the library has loaded. Unloaded when it is garbage."""
  def __init__(self, device: CudaDevice, code: Code):
    if code.arch.partition(":")[0] != device.arch:
      raise DeviceError(f"kernel {code.name} is for {code.arch}, device {device.name} is {device.arch}; compile it "
                        f"for that")
    self.device, self.name, self.code = device, code.name, code
    self.buffers = code.arguments.count("buffer")
    self.slots = struct.Struct(f"<{len(code.arguments)}q")
    self.maps, self.written = None, b""   # tensor maps in memory of the card, and their content
    if code.descriptors: self.maps = device.allocator.alloc(sum(len(data) for _, data in code.descriptors))
    self.image = cubin(code)
    self.module = device.number("cuModuleLoadData", ctypes.c_char_p(self.image), kind=ctypes.c_void_p)
    self.function = device.number("cuModuleGetFunction", self.module, code.name.encode(), kind=ctypes.c_void_p)
    if code.local_bytes > SHARED_WITHOUT_ASKING:
      device.call("cuFuncSetAttribute", self.function, SHARED_OF_FUNCTION, code.local_bytes)

  def launch(self, launch: Launch) -> None:
    """Start it. Raises DeviceError, which tells the mistake in the launch."""
    if len(launch.buffers) != self.buffers or len(launch.variables) != len(self.code.arguments) - self.buffers:
      raise DeviceError(f"kernel {self.name} takes {self.buffers} buffers and "
                        f"{len(self.code.arguments) - self.buffers} variables, "
                        f"not {len(launch.buffers)} and {len(launch.variables)}")
    if not 0 <= launch.grid <= MOST_GROUPS:
      raise DeviceError(f"kernel {self.name}: a grid of {launch.grid} blocks; it is from 0 to {MOST_GROUPS}")
    if not launch.grid: return
    try:
      values = [ctypes.c_int64(v)
                for v in self.slots.unpack(self.slots.pack(*[b.address for b in launch.buffers], *launch.variables))]
    except (struct.error, AttributeError, TypeError) as error:
      raise DeviceError(f"kernel {self.name}: {launch.buffers} and {tuple(launch.variables)} are not all memory of "
                        f"this device, or 64-bit "
                        "integers") from error
    if self.maps is not None: values.append(ctypes.c_int64(self.tell_maps(launch)))
    places = (ctypes.c_void_p * max(len(values), 1))(*[ctypes.addressof(v) for v in values])
    self.device.call("cuLaunchKernel", self.function, launch.grid, 1, 1, self.code.lanes, 1, 1, self.code.local_bytes,
                     None, places, None)

  def tell_maps(self, launch: Launch) -> int:
    """Write the tensor maps of a launch's buffers, in order with earlier and later kernels. Return their address."""
    assert self.maps is not None, "only kernels with maps write any"
    data = b"".join((int.from_bytes(data[:8], "little") + launch.buffers[buffer].address).to_bytes(8, "little")
                    + data[8:]
                    for buffer, data in self.code.descriptors)
    if data != self.written: self.device.allocator.copyin(self.maps, memoryview(data))
    self.written = data
    return int(self.maps.address)

  def __del__(self) -> None:
    if getattr(self, "maps", None) is not None: self.device.allocator.drop(self.maps)
    if getattr(self, "module", 0): self.device.returned.put(self.device.lock, "cuModuleUnload", self.module)

class Submission(NamedTuple):
  """Launches and the event after them.

  number: of the submission. before: the count of launches that the device had started before.
  """
  number: int
  before: int
  event: int
  work: Sequence[Work]

class CudaDevice(Compiled):
  """A GPU that is driven through libcuda. instead: the reason why the kernel driver is not used, although it was
  requested."""
  copies_operands = True
  allocator: CudaAllocator

  def __init__(self, name: str, library: Library, ordinal: int, instead: str = ""):
    self.name, self.library, self.lock, self.instead = name, library, threading.RLock(), instead
    self.returned = Returned(self._undo)
    # calls that free garbage; they wait until the device is idle
    self.retired: collections.deque[tuple[str, int]] = collections.deque()
    self.lost: str | None = None
    # submissions that may be pending, the oldest first
    self.flying: collections.deque[Submission] = collections.deque()
    self.submitted = self.started = 0                                        # submissions; launches
    self.events: list[int] = []                                              # events free for reuse
    self.handle = library.number("cuDeviceGet", ordinal)
    self.title = library.text("cuDeviceGetName", self.handle)
    major, minor = (library.number("cuDeviceGetAttribute", which, self.handle) for which in (MAJOR, MINOR))
    self.chip = self._chip(f"sm_{major}{minor}")
    limit = library.number("cuDeviceTotalMem_v2", self.handle, kind=ctypes.c_size_t)
    self.context = library.number("cuDevicePrimaryCtxRetain", self.handle, kind=ctypes.c_void_p)
    super().__init__(name, CudaAllocator(self, limit), arch=self.chip.arch)

  def _chip(self, arch: str) -> Chip:
    found = next((chip for chip in CHIPS if chip.arch == arch), None)
    if found is None: raise DeviceError(f"{self.title} is {arch}, and kernels are made for {known_kinds()}")
    check_code(arch, self.title)
    return found

  def call(self, name: str, *arguments: Any) -> None:
    """Make a call in this GPU's context, from any thread. A call that would wait for running work is made when that is
    done.

    Raises DriverError. The device is lost if a kernel has destroyed the context, or misses the deadline.
    """
    with self.lock:
      self.returned.take()
      if name in WAITING: self.synchronize()
      self._call(name, *arguments)

  def _call(self, name: str, *arguments: Any) -> None:
    if self.lost is not None: raise DeviceError(self.lost)
    try:
      self.library.call("cuCtxSetCurrent", self.context)
      self.library.call(name, *arguments)
    except Failure as failure:
      if failure.status in STICKY: self.lost = reports.lost(self.name, f"ran a kernel that failed ({failure.message})")
      raise

  def _undo(self, name: str, handle: int) -> None:
    """Make a call for garbage, when the device is idle: finalizers never block.

    If the device is lost, the library has freed it already.
    """
    if self.lost is not None: return
    self.retired.append((name, handle))
    with contextlib.suppress(DriverError):
      event = self._record()
      if self._ended(event): self._give_back()
      self.events.append(event)

  def _give_back(self) -> None:
    """Make the calls for garbage. The device is idle."""
    while self.retired:
      with contextlib.suppress(DriverError, DeviceError): self._call(*self.retired.popleft())

  def number(self, name: str, *arguments: Any, kind: Any = ctypes.c_int) -> int:
    """Return a number that a call writes to its first argument."""
    found = kind()
    self.call(name, ctypes.byref(found), *arguments)
    return int(found.value or 0)

  def load(self, code: Code) -> CudaProgram: return CudaProgram(self, code)

  def submit(self, launches: Sequence[Launch]) -> None:
    """Start launches, in order. Return at once, or when there is room for them."""
    for start in range(0, len(launches), BATCH):
      part = launches[start:start + BATCH]
      with self.lock:
        self._make_room(len(part))
        before = self.started
        for launch in part: self._start(launch)
        self.flying.append(Submission(self.submitted + 1, before, self._record(), list(map(work_of, part))))
        self.submitted += 1

  def _start(self, launch: Launch) -> None:
    if not isinstance(launch.program, CudaProgram):
      raise DeviceError(f"cannot launch {launch.program!r}; pass what load() of this device returned")
    launch.program.launch(launch)
    self.started += 1

  def submit_timed(self, launches: Sequence[Launch]) -> list[tuple[int, int]]:
    """Run launches. Return when each began and ended by the GPU's clock, in nanoseconds of time.perf_counter_ns."""
    return [times for start in range(0, len(launches), BATCH) for times in self._timed(launches[start:start + BATCH])]

  def _timed(self, launches: Sequence[Launch]) -> list[tuple[int, int]]:
    self.synchronize()
    with contextlib.ExitStack() as undo:
      def event() -> int:
        made = self.number("cuEventCreate", 0, kind=ctypes.c_void_p)
        undo.callback(self.returned.put, self.lock, "cuEventDestroy_v2", made)
        return made
      events = [event() for _ in range(len(launches) + 1)]
      start = time.perf_counter_ns()
      self.call("cuEventRecord", events[0], None)
      for launch, mark in zip(launches, events[1:]):
        self._start(launch)
        self.call("cuEventRecord", mark, None)
      self.synchronize()
      def elapsed(mark: int) -> int:
        found = ctypes.c_float()
        self.call("cuEventElapsedTime", ctypes.byref(found), events[0], mark)
        return start + int(found.value * 1e6)
      times = [start, *(elapsed(mark) for mark in events[1:])]
    return list(zip(times, times[1:]))

  # **** waits ****

  def synchronize(self) -> None:
    """Wait until all work is done. At the deadline, lose the device and raise DriverError."""
    with self.lock:
      event = self._record()   # a new one: some work in this context may not be ours
      try: self._wait(event, self.submitted)
      finally: self.events.append(event)
      while self.flying: self.events.append(self.flying.popleft().event)
      self._give_back()

  def _record(self) -> int:
    """Record an event after all started work."""
    event = ctypes.c_void_p(self.events.pop() if self.events else None)
    if not event.value: self._call("cuEventCreate", ctypes.byref(event), WITHOUT_TIME)
    self._call("cuEventRecord", event.value, None)
    return event.value or 0

  def _ended(self, event: int) -> bool:
    try: self._call("cuEventQuery", event)
    except Failure as failure:
      if failure.status != NOT_READY: raise
      return False
    return True

  def _reap(self) -> None:
    """Forget completed submissions."""
    while self.flying and self._ended(self.flying[0].event): self.events.append(self.flying.popleft().event)

  def _make_room(self, count: int) -> None:
    """Wait until `count` launches may be started."""
    def flying() -> int: return self.started - self.flying[0].before if self.flying else 0
    while flying() + count > MOST_FLYING:
      self._wait(self.flying[0].event, self.flying[0].number)
      self._reap()

  def _wait(self, event: int, number: int) -> None:
    """Wait for an event, which is after submission `number`.

    At the deadline, lose the device and raise DriverError.
    """
    timeout_ms, begin = HCQDEV_WAIT_TIMEOUT_MS.value, time.monotonic()
    def sleep(ms: int) -> None: time.sleep(min(ms / 1000, (time.monotonic() - begin) / SHARE, LONGEST_SLEEP))
    if wait_until(lambda: self._ended(event), timeout_ms, sleep): return
    self._reap()
    if self._ended(event): return   # this program may have had no time to look
    reason = reports.late(f"submission {number}" if self.flying else "what this process told it", timeout_ms)
    done = self.flying[0].number - 1 if self.flying else self.submitted
    lines = reports.beginning(self.name, self.arch, reason, done, self.submitted)
    if self.flying: lines.append(f"  {reports.was_at(self.flying[0].number, self.flying[0].work)}")
    self.lost = reports.lost(self.name, reason)
    raise DriverError("\n".join([*lines, reports.advice(self.name, self.arch)]))

  def after_fork(self, in_child: bool) -> None:
    if not in_child: return
    self.lock = self.allocator.lock = threading.RLock()
    self.lost = lost_in_child(self.name, "CUDA")

  def close(self) -> None:
    """Finish running work. The context stays until the process ends: buffers that are still referenced are in it."""
    super().close()
    if self.lost is None:
      self.synchronize()
      self.allocator.free_cache()
      while self.events: self.call("cuEventDestroy_v2", self.events.pop())

  def facts(self) -> dict[str, Any]:
    version = self.library.number("cuDriverGetVersion")
    count = self.library.number("cuDeviceGetAttribute", MULTIPROCESSORS, self.handle)
    l2 = self.library.number("cuDeviceGetAttribute", L2_BYTES, self.handle)
    return {"arch": self.arch, "processor": f"{self.title}, {count} multiprocessors",
            "cache_bytes": (self.chip.cache_bytes, l2), "threads": count,
            "local_bytes": self.chip.local_bytes, "memory_limit": self.allocator.limit,
            "kernel_interface": f"libcuda, CUDA {version // 1000}.{version % 1000 // 10}"
            + (f", since {self.instead}" if self.instead else "")}

_library: list[Library] = []

def open(ordinal: int, runtime: Callable[[str], Code]) -> CudaDevice:
  """Open GPU number `ordinal` of the library's as NV:CUDA. Raises DeviceError or DriverError, which have advice."""
  return open_as("NV:CUDA", ordinal)

def open_as(kind: str, ordinal: int, instead: str = "") -> CudaDevice:
  """Open it under another name. instead: the reason."""
  if EMULATE.value:
    raise DeviceError(f"{EMULATE.key}={EMULATE.value}: virtual GPUs have no vendor's library; unset {EMULATE.key}, or "
                      f"use DEV=NV")
  begin_use("CUDA")
  if not _library:
    library = Library(load_library())
    # cuInit reads the variable. Without it the fastest GPU is number 0, and all numbers, those in CUDA_VISIBLE_DEVICES
    # too, mean other GPUs than NV's (visible.py). A search by bus position would not fix the latter. Python passes the
    # variable to the C library. A value of the user stays
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    library.call("cuInit", 0)
    _library.append(library)
  count = _library[0].number("cuDeviceGetCount")
  if ordinal >= count: raise DeviceError(f"there is no GPU number {ordinal}: NVIDIA's driver library sees {count}")
  return CudaDevice(f"{kind}:{ordinal}" if ordinal else kind, _library[0], ordinal, instead)
