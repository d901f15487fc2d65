"""Memory of a device: what drivers give out and take back. `Allocator` counts and refuses, `LRUAllocator` keeps what is
freed for the next who asks.

Drivers subclass one of them (docs/new-accelerator.md). Buffers, which own what they are given, are in device.py, as are
these names.
"""
from __future__ import annotations
import collections
from collections.abc import Callable
import threading
from typing import TYPE_CHECKING, Any

from tinyhw.errors import ArgumentError, DeviceError, OutOfMemory
from tinyhw.threads import kept_in_forks
if TYPE_CHECKING: from tinyhw.device import Buffer

class Returned:
  """What finalizers give back to the owner of a lock: at once if the lock is free, else when its owner calls `take`.

  A finalizer runs wherever garbage is collected, under whatever locks its thread holds. If it waited for another one,
  and the thread that holds that one waited for one of these, both would wait for ever. So finalizers call `put`.
  """
  def __init__(self, give: Callable[..., None]):
    self.give, self.waiting = give, collections.deque[tuple[Any, ...]]()

  def put(self, lock: threading.RLock, *what: Any) -> None:
    """give(*what), under the lock, now or later."""
    self.waiting.append(what)
    if lock.acquire(blocking=False):
      try: self.take()
      finally: lock.release()

  def take(self) -> None:
    """Give back what waits. The lock must be held."""
    while self.waiting: self.give(*self.waiting.popleft())

class Allocator:
  """Memory of one device. Subclasses provide _alloc, _free, _copyin, _copyout, address, offset, and as_memoryview if
  the host can see it.

  limit: bytes that live buffers may take together (None: as many as _alloc gives). lasting: the memory has contents
  before it is written, as a file's has, and is none of the host's.
  """
  lasting = False

  def __init__(self, dev: str, supports_copy_from_disk: bool = False, supports_transfer: bool = False,
               limit: int | None = None):
    self.dev, self.limit = dev, limit
    self.supports_copy_from_disk, self.supports_transfer = supports_copy_from_disk, supports_transfer
    self.lock = kept_in_forks(threading.RLock())  # reentrant: garbage collection may free a buffer while one is being
                                                  # allocated
    self.live: dict[int, tuple[Any, int]] = {}  # by id: the opaque buffer (so that its id stays its own) and its bytes
    self.held = 0                   # bytes in live buffers
    self.returned = Returned(self._free_now)

  def alloc(self, size: int, options: Any = None) -> Any:
    """An opaque buffer of `size` bytes. Contents are undefined. Raises OutOfMemory."""
    if size < 0: raise ArgumentError(f"cannot allocate {size} bytes; a size is at least 0")
    with self.lock:
      self.returned.take()
      opaque = self._take(size or 1)
      self.live[id(opaque)] = (opaque, size)
      self.held += size
      return opaque

  def free(self, opaque: Any, size: int | None = None, options: Any = None) -> None:
    """Give a buffer back. Raises DeviceError if it is not live."""
    with self.lock: self._free_now(opaque)

  def drop(self, opaque: Any) -> None:
    """What finalizers call to free: it waits for nothing, so the buffer may be given back a little later."""
    self.returned.put(self.lock, opaque)

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
    """Host to device. src is contiguous bytes."""
    self._copyin(dest, src)
  def copyout(self, dest: memoryview, src: Any) -> None:
    """Device to host. dest is contiguous, writable bytes."""
    self._copyout(dest, src)

  def _alloc(self, size: int) -> Any:
    """An opaque buffer, or None if there is no memory."""
    raise NotImplementedError
  def _free(self, opaque: Any, size: int) -> None: pass
  def _copyin(self, dest: Any, src: memoryview) -> None: raise NotImplementedError
  def _copyout(self, dest: memoryview, src: Any) -> None: raise NotImplementedError
  def address(self, opaque: Any) -> int:
    """Where the device finds it."""
    raise NotImplementedError
  def offset(self, opaque: Any, size: int, offset: int) -> Any:
    """An opaque buffer for a part of another one; valid as long as that one is. Not freed."""
    raise NotImplementedError
  def external(self, address: int, size: int) -> Any:
    """An opaque buffer for memory that someone else owns. Not freed."""
    raise DeviceError(f"{self.dev} cannot use memory at a given address; copy the data with Tensor(...) instead")
  def as_memoryview(self, opaque: Any) -> memoryview | None:
    """The bytes themselves, or None where the host cannot see them."""
    return None
  def map(self, buf: Buffer) -> Any:
    raise DeviceError(f"{self.dev} cannot map memory of {buf.device}; copy it with .to({self.dev!r})")
  def transfer(self, dest: Any, src: Any, size: int) -> bool:
    """Copy from an opaque buffer of another device, without the host. False where that cannot be; then nothing has
    happened.

    Only asked where supports_transfer is set.
    """
    return False
  def close(self) -> None:
    """Give back what no live buffer needs."""

class LRUAllocator(Allocator):
  """Keeps freed buffers, by size, for the next allocation of that size; when it keeps more than cache_limit bytes, the
  oldest sizes go first.

  Sizes are rounded up to four steps per power of two, so that nearly equal sizes share (at most a quarter is wasted).
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
    """Free buffers of the sizes that were not used for longest until the limit holds."""
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
