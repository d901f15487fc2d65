"""The device interface: classes that drivers implement. A driver's `open` returns a `Compiled`.

Drivers subclass `Compiled`, which runs programs, and `Allocator` or `LRUAllocator`, which hand out memory
(docs/hardware/new-accelerator.md). Every device is a queue: `submit` runs launches in order, and `record` prepares
launches so that one call replays all. Buffers, which own the memory, are in device.py, which also exports these names.
"""
from __future__ import annotations
import atexit
import collections
import importlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tinyhw import threads, trace
from tinyhw.errors import ArgumentError, DeviceError, OutOfMemory
from tinyhw.files.storage import diskcache_get, diskcache_put
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import kept_in_forks
if TYPE_CHECKING: from tinyhw.device import Buffer

# **** programs ****

class Launch(NamedTuple):
  """One kernel to run: a handle from `load`, opaque buffers, ints, and the number of work items.

  small: the kernel works for a few microseconds at most, so sharing it among workers would cost more than it gains.
  written: positions of the buffers that it stores to; None: any of them. A device may run independent launches at the
  same time.
  line: the source line of the program that wants it, for errors.
  """
  program: Any
  buffers: Sequence[Any]
  variables: Sequence[int] = ()
  grid: int = 1
  small: bool = False
  written: Sequence[int] | None = None
  line: trace.Location | None = None

class Recording(Protocol):
  """Launches prepared for replay.

  Keeps its programs alive, but not its buffers. A Recording may have `submit_timed`, as drivers/cpu/launch.py does.
  """
  def patch(self, launch: int, position: int, value: Any) -> None:
    """Replace argument `position` (buffers first, then variables) of launch number `launch` by an opaque buffer or an
    int."""
  def patch_grid(self, launch: int, grid: int) -> None:
    """Replace the number of work items."""
  def submit(self) -> None:
    """Run all launches."""

class Kept:
  """The default Recording: a copy of the launches, which `submit` runs."""
  def __init__(self, device: Compiled, launches: Sequence[Launch]):
    self.device = device
    self.launches = [launch._replace(buffers=list(launch.buffers), variables=list(launch.variables))
                     for launch in launches]

  def patch(self, launch: int, position: int, value: Any) -> None:
    """Replace argument `position` of launch number `launch`: buffers come first, then variables."""
    buffers, variables = self.launches[launch].buffers, self.launches[launch].variables
    assert isinstance(buffers, list) and isinstance(variables, list)
    if position < len(buffers): buffers[position] = value
    else: variables[position - len(buffers)] = value

  def patch_grid(self, launch: int, grid: int) -> None:
    self.launches[launch] = self.launches[launch]._replace(grid=grid)
  def submit(self) -> None: self.device.submit(self.launches)

  def submit_timed(self) -> list[tuple[int, int]]:
    """Run them one by one. Return the start and end of each, in nanoseconds of time.perf_counter_ns."""
    return self.device.submit_timed(self.launches)

class Compiled:
  """An opened device. arch names the target of its compiler: "x86_64:avx2", "c", "python".

  renderers: all archs that the device takes, best first. arch defaults to the first of them.
  runtime: makes from Code the handle that `load` returns. `submit` calls the handle with opaque buffers, variables, and
  the first and last work item.
  graph: makes a Recording from the device and launches.
  Subclasses may override `load`, `submit` and `record` instead.
  """
  some_asynchronous = False     # was an asynchronous device ever opened?
  # Bytes of a worker's scratch memory in which a kernel may keep the rows between two products (kept_rows.py).
  row_bytes = 0
  shares_operands = False   # do all lanes share an operand of a product, as those of a CPU's vector? (operands.py)
  copies_operands = False   # do lanes copy the operands of products to shared memory? (weights.py)
  most_buffers = 0          # that one kernel may have; 0: any number (limit.py)
  runs_in_order = False     # is one worker fast at a long loop whose steps depend on each other? (graph/places.py)

  def __init__(self, device: str, allocator: Allocator, renderers: Sequence[str] = (),
               runtime: Callable[[Any], Any] | None = None,
               graph: Callable[[Compiled, Sequence[Launch]], Recording] | None = None, arch: str | None = None):
    if arch is None and not renderers:
      raise ArgumentError(f"device {device}: give arch, or renderers, to say what code it takes")
    self.name, self.allocator = device, allocator
    self.arch = renderers[0] if arch is None else arch
    self.renderers = tuple(renderers) or (self.arch,)
    if self.arch not in self.renderers:
      raise ArgumentError(f"device {device}: arch {self.arch!r} is none of its renderers {self.renderers}")
    self.runtime, self.graph = runtime, graph
    self.kernels: dict[Any, Any] = {}  # kernels that the engine has loaded here, by the engine's keys; cleared on close
    # the launches of schedules of such kernels, as long as these live; cleared with them
    self.launches: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
    Compiled.some_asynchronous = Compiled.some_asynchronous or self.is_asynchronous
    _open.add(self)

  @property
  def renderer(self) -> Any:
    """Properties of the code that this device takes, by tinygrad's names: a RendererView."""
    return importlib.import_module("tinyhw.engine.run.renderer").RendererView(self)

  @property
  def attention_types(self) -> frozenset[Any]:
    """The types of operands with which an attention is one kernel of lanes, with an online softmax."""
    found: frozenset[Any] | None = self.__dict__.get("_attention_types")
    if found is None:
      compiling = importlib.import_module("tinyhw.engine.run.compile")
      found = self.__dict__["_attention_types"] = compiling.attention_types(self.arch)
    return found

  def load(self, code: Any) -> Any:
    """Return a handle for Launch, from Code. The program is unloaded when the handle is garbage."""
    if self.runtime is None: raise NotImplementedError
    return self.runtime(code)
  def load_all(self, codes: Sequence[Any]) -> list[Any]:
    """Return the handles of a schedule's kernels. Devices override it if loading many at once takes less time."""
    return [self.load(code) for code in codes]
  def submit(self, launches: Sequence[Launch]) -> None:
    """Run launches in order. Their memory may be read after `synchronize`."""
    for launch in launches: launch.program(launch.buffers, launch.variables, 0, launch.grid)
  def submit_timed(self, launches: Sequence[Launch]) -> list[tuple[int, int]]:
    """Run launches one by one. Return the start and end of each, in nanoseconds of time.perf_counter_ns.

    Times come from the device's clock, where it has one.
    """
    times = [time.perf_counter_ns()]
    for launch in launches:
      self.submit([launch])
      self.synchronize()
      times.append(time.perf_counter_ns())
    return list(zip(times, times[1:]))
  def record(self, launches: Sequence[Launch]) -> Recording:
    """Return the launches as one object, which runs all of them with one call."""
    return (self.graph or Kept)(self, launches)
  def program(self, code: Any) -> Callable[..., None]:
    """Return Code as a function of Buffers. f(out, a, b, variables=(), grid=1) runs it and returns when it is done."""
    handle = self.load(code)
    def run(*buffers: Buffer, variables: Sequence[int] = (), grid: int = 1) -> None:
      self.submit([Launch(handle, [b.get_buf() for b in buffers], variables, grid)])
      self.synchronize()
    return run
  def synchronize(self) -> None:
    """Return when all submitted work is done."""
  @property
  def is_asynchronous(self) -> bool:
    """May `submit` return before the work is done?"""
    return type(self).synchronize is not Compiled.synchronize
  def rest(self) -> None:
    """Let native threads end; they start again when needed."""
  def before_fork(self) -> None:
    """Come to rest, since the process is about to be copied without its other threads."""
  def after_fork(self, in_child: bool) -> None:
    """Go on after the process was copied.

    In the child, a device's own locks may be held by threads that do not exist there. Locks of `kept_in_forks` are
    free.
    """
  def close(self) -> None:
    """Stop all work and give memory back.

    Buffers that are still referenced stay readable. Subclasses call this too.
    """
    self.kernels.clear()
    self.launches.clear()
    _open.discard(self)
  def facts(self) -> dict[str, Any]:
    """Return the properties of this device that `doctor` prints."""
    return {"arch": self.arch}

  @property
  def device(self) -> str:
    """Another word for `name`."""
    return self.name

  def __repr__(self) -> str: return f"<{type(self).__name__} {self.name} {self.arch}>"

class Compiler:
  """Compiles source to code: subclasses implement `compile`.

  cachekey: the table of the disk cache where `compile_cached` keeps results; None: results are not kept. The engine
  does not use this class: it caches its own code by kernel (engine/run/compile.py).
  """
  def __init__(self, cachekey: str | None = None): self.cachekey = cachekey

  def compile(self, src: str) -> bytes:
    """Return the code of a source. Raises CompileError."""
    return src.encode()

  def compile_cached(self, src: str) -> bytes:
    """Return the code of a source, from the disk cache if it was compiled before."""
    if self.cachekey is None: return self.compile(src)
    found: bytes | None = diskcache_get(self.cachekey, src)
    return diskcache_put(self.cachekey, src, self.compile(src)) if found is None else found

  def disassemble(self, lib: bytes) -> str:
    """Return code as text."""
    raise ArgumentError(f"{type(self).__name__} has no disassembler")

_open: weakref.WeakSet[Compiled] = weakref.WeakSet()  # all devices in use, including those opened without `Device`

@atexit.register
def _rest() -> None:
  """End native threads before the interpreter frees its memory."""
  for device in list(_open): device.rest()

def are_all_of_the_host() -> bool:
  """Do all open devices work for their caller alone? Then a child of a fork disturbs nothing."""
  return not any(device.is_asynchronous for device in list(_open))

_forking: list[Compiled] = []

def _before_fork() -> None:
  threads.hold_for_fork()
  for device in list(_open):
    device.before_fork()
    _forking.append(device)

def _after_fork(in_child: bool) -> None:
  while _forking: _forking.pop().after_fork(in_child)
  threads.release_after_fork()

if hasattr(os, "register_at_fork"):
  os.register_at_fork(before=_before_fork, after_in_parent=lambda: _after_fork(False),
                      after_in_child=lambda: _after_fork(True))

# **** memory ****

class Returned:
  """Resources that finalizers give back to the owner of a lock: at once if the lock is free, else at the owner's next
  `take`.

  A finalizer runs wherever garbage is collected, whatever locks its thread holds. If it waited for another lock, and
  the thread that holds that lock waited for one of these, both would deadlock. So finalizers call `put`.
  """
  def __init__(self, give: Callable[..., None]):
    self.give, self.waiting = give, collections.deque[tuple[Any, ...]]()

  def put(self, lock: threading.RLock, *what: Any) -> None:
    """Call give(*what) under the lock, now or later."""
    self.waiting.append(what)
    if lock.acquire(blocking=False):
      try: self.take()
      finally: lock.release()

  def take(self) -> None:
    """Give back everything that waits. The lock must be held."""
    while self.waiting: self.give(*self.waiting.popleft())

VECTOR_BYTES = 16    # the largest access of a GPU's kernel

class Allocator:
  """Memory of one device. Subclasses provide _alloc, _free, _copyin, _copyout, address, offset, and as_memoryview if
  the host can see it.

  limit: bytes that live buffers may take together (None: no limit but that of _alloc). lasting: the memory has contents
  before it is written, as a file has, and is not host memory. alignment: kernels access up to so many bytes at once, at
  multiples of the access.
  """
  lasting, alignment = False, 1

  def __init__(self, dev: str, supports_copy_from_disk: bool = False, supports_transfer: bool = False,
               limit: int | None = None):
    self.dev, self.limit = dev, limit
    self.supports_copy_from_disk, self.supports_transfer = supports_copy_from_disk, supports_transfer
    # Reentrant: garbage collection may free a buffer during an allocation.
    self.lock = kept_in_forks(threading.RLock())
    # By id: the opaque buffer (which keeps its id valid) and its bytes.
    self.live: dict[int, tuple[Any, int]] = {}
    self.held = 0                   # bytes in live buffers
    self.returned = Returned(self._free_now)

  def alloc(self, size: int, options: Any = None) -> Any:
    """Return an opaque buffer of `size` bytes. Contents are undefined. Raises OutOfMemory."""
    if size < 0: raise ArgumentError(f"cannot allocate {size} bytes; a size is at least 0")
    with self.lock:
      if self.returned.waiting: self.returned.take()
      opaque = self._take(size or 1)
      self.live[id(opaque)] = (opaque, size)
      self.held += size
      return opaque

  def free(self, opaque: Any, size: int | None = None, options: Any = None) -> None:
    """Give a buffer back. Raises DeviceError if it is not live."""
    with self.lock: self._free_now(opaque)

  def drop(self, opaque: Any) -> None:
    """Free a buffer from a finalizer. It never waits, so the buffer may be given back a little later."""
    if self.returned.waiting or not self.lock.acquire(blocking=False): return self.returned.put(self.lock, opaque)
    try: self._free_now(opaque)
    finally: self.lock.release()

  def _free_now(self, opaque: Any) -> None:
    found = self.live.pop(id(opaque), None)
    if found is None: raise DeviceError(f"{self.dev}: buffer {opaque!r} is freed twice, or came from another allocator")
    self.held -= found[1]
    self._give(opaque, found[1] or 1)

  def _take(self, size: int) -> Any:
    self._check_limit(size)
    opaque = self._alloc(size)
    if opaque is None: raise self.out_of_memory(size)
    return opaque

  def _give(self, opaque: Any, size: int) -> None: self._free(opaque, size)

  def _check_limit(self, size: int) -> None:
    if self.limit is not None and self.held + size > self.limit: raise self.out_of_memory(size)

  def out_of_memory(self, size: int) -> OutOfMemory:
    limit = "" if self.limit is None else f" of {show_bytes(self.limit)} that the device has"
    if self.limit is None or self.held + size <= self.limit:
      limit += ", and the system gives no more: other programs may hold the rest"
    return OutOfMemory(f"{self.dev}: cannot allocate {show_bytes(size)}: {len(self.live)} live buffers hold "
                       f"{show_bytes(self.held)}{limit}; "
                       "drop references to tensors that are not needed, or use a smaller batch")

  def copyin(self, dest: Any, src: memoryview) -> None:
    """Copy host to device. src is contiguous bytes."""
    self._copyin(dest, src)
  def copyout(self, dest: memoryview, src: Any) -> None:
    """Copy device to host. dest is contiguous, writable bytes."""
    self._copyout(dest, src)

  def _alloc(self, size: int) -> Any:
    """Return an opaque buffer, or None if there is no memory."""
    raise NotImplementedError
  def _free(self, opaque: Any, size: int) -> None: pass
  def _copyin(self, dest: Any, src: memoryview) -> None: raise NotImplementedError
  def _copyout(self, dest: memoryview, src: Any) -> None: raise NotImplementedError
  def address(self, opaque: Any) -> int:
    """Return the device address of a buffer."""
    raise NotImplementedError
  def offset(self, opaque: Any, size: int, offset: int) -> Any:
    """Return an opaque buffer for a part of another one, valid as long as that one is. It is not freed."""
    raise NotImplementedError
  def is_aligned(self, address: int, size: int) -> bool:
    """Can kernels use foreign memory at an address? An access is no longer than the memory."""
    return address % min(self.alignment, 1 << max(size, 1).bit_length() - 1) == 0
  def external(self, address: int, size: int) -> Any:
    """Return an opaque buffer for foreign memory. It is not freed."""
    raise DeviceError(f"{self.dev} cannot use memory at a given address; copy the data with Tensor(...) instead")
  def as_memoryview(self, opaque: Any) -> memoryview | None:
    """Return the memory of a buffer, or None if the host cannot see it."""
    return None
  def map(self, buf: Buffer) -> Any:
    raise DeviceError(f"{self.dev} cannot map memory of {buf.device}; copy it with .to({self.dev!r})")
  def transfer(self, dest: Any, src: Any, size: int) -> bool:
    """Copy from an opaque buffer of another device, without the host. Return False, without any effect, if that is
    impossible.

    Called only if supports_transfer is set.
    """
    return False
  def close(self) -> None:
    """Give back all memory that no live buffer needs."""

class LRUAllocator(Allocator):
  """Keeps freed buffers, by size, for the next allocation of that size. Above cache_limit bytes, the least recently
  used sizes are freed first.

  Sizes are rounded up to four steps per power of two, so that nearly equal sizes share buffers. At most a quarter is
  wasted.
  """
  def __init__(self, dev: str, cache_limit: int = 1 << 62, **kwargs: Any):
    super().__init__(dev, **kwargs)
    self.cache_limit = cache_limit
    self.cached = 0
    self.pool: dict[int, list[Any]] = {}  # rounded size -> buffers; least recently used size first

  @staticmethod
  def rounded(size: int) -> int:
    if size <= 64: return 64
    step = max(1 << ((size - 1).bit_length() - 3), 64)
    return (size + step - 1) & -step

  def _take(self, size: int) -> Any:
    rounded = self.rounded(size)
    found = self.pool.get(rounded)
    if found:
      self.cached -= rounded
      return found.pop()
    if self.limit is not None and self.held + self.cached + rounded > self.limit: self.free_cache()
    self._check_limit(size)
    opaque = self._alloc(rounded)
    if opaque is None and self.cached:
      self.free_cache()
      opaque = self._alloc(rounded)
    if opaque is None: raise self.out_of_memory(size)
    return opaque

  def _give(self, opaque: Any, size: int) -> None:
    size = self.rounded(size)
    kept = self.pool.pop(size, None)
    if kept is None: kept = []
    kept.append(opaque)
    self.pool[size] = kept  # now the most recently used
    self.cached += size
    if self.cached > self.cache_limit: self._evict()

  def _evict(self) -> None:
    """Free buffers of the least recently used sizes until the limit holds."""
    for size in list(self.pool):
      buffers = self.pool[size]
      while buffers and self.cached > self.cache_limit:
        self.cached -= size
        self._free(buffers.pop(0), size)
      if not buffers: del self.pool[size]
      if self.cached <= self.cache_limit: return

  def free_cache(self) -> None:
    """Give all kept buffers back to the system."""
    with self.lock:
      self.returned.take()
      pool, self.pool, self.cached = self.pool, {}, 0
      for size, buffers in pool.items():
        for opaque in buffers: self._free(opaque, size)

  def close(self) -> None: self.free_cache()

def show_bytes(count: int) -> str:
  """1536 -> "1.50 KB (1536 bytes)"."""
  if count < 1024: return f"{count} bytes"
  power = min((count.bit_length() - 1) // 10, 6)
  return f"{count / 1024**power:.2f} {' KMGTPE'[power]}B ({count} bytes)"
