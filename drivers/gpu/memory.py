"""What a kernel driver gives a GPU of memory, and the buffers in it. The processor does not see buffers: bytes go
through memory that both see, moved by the copy engine.

So nothing depends on the size of the PCI window (Resizable BAR), and no cache of the bridge has to be flushed. Small
buffers are cut from bigger pieces, because the kernel gives whole pages and takes its time.

On a virtual GPU buffers have the size that was asked for, and bytes that are nobody's behind them, so that it can tell
of accesses beyond their ends.
"""
from __future__ import annotations
import errno
from typing import TYPE_CHECKING, Any

from tinyhw.device import Device, LRUAllocator
from tinyhw.drivers.linux.files import PAGE, Mapping, Refused, Returns
from tinyhw.errors import DeviceError
if TYPE_CHECKING:
  from tinyhw.device import Buffer
  from tinyhw.drivers.gpu.device import GpuDevice

ALIGNMENT = 256
HUGE_PAGE = 2 << 20           # of GPUs of all vendors, and of x86-64
SMALL_BYTES = HUGE_PAGE // 4  # larger buffers are allocations of their own
GAP_BYTES = 64 << 10          # most bytes of nobody's behind a small buffer of a virtual GPU
STAGE_BYTES = 4 << 20         # of the memory through which bytes go; there are two, so that one is filled while the
                              # other is emptied

class Memory:
  """Memory that GPUs see at `address`; the processor sees it there too, through `mapping`, if it is visible. `close`
  gives it back.

  kind, handle: what it is and what the kernel calls it, in the words of a driver, which adds to `returns` how each of
  its steps is undone.
  """
  def __init__(self, kind: object, address: int, size: int, label: str, returns: Returns, handle: int = 0):
    self.kind, self.address, self.size, self.label, self.returns, self.handle = (kind, address, size, label, returns,
                                                                                 handle)
    self.seen_by: list[Any] = []           # the GPUs, as the driver knows them
    self.owner: object = None              # the device that it belongs to
    self.found: Mapping | None = None

  @property
  def mapping(self) -> Mapping:
    """How the processor sees it."""
    assert self.found is not None, f"{self!r} is not visible to the processor"
    return self.found

  def close(self) -> None:
    """Give it back; the GPUs must have done with it.

    Raises Refused; a second call does what is left. Its addresses stay taken until all is done.
    """
    self.returns.close()

  def __repr__(self) -> str: return f"<{self.label}: {self.size:#x} bytes of {self.kind} at {self.address:#x}>"

class Part:
  """A buffer: where it is, and the allocation that it lies in."""
  __slots__ = ("address", "size", "memory", "__weakref__")

  def __init__(self, address: int, size: int, memory: Any):
    self.address, self.size, self.memory = address, size, memory

  def __repr__(self) -> str: return f"<Part {self.size} bytes at {self.address:#x}>"

class Pinned(Part):
  """Memory of the program that the GPU sees as long as this object lives."""
  __slots__ = ("device",)

  def __init__(self, device: GpuDevice, address: int, size: int):
    first = address & -PAGE
    memory = device.allocate(address + size - first, device.user_memory, "memory of the program", first)
    super().__init__(memory.address + address - first, size, memory)
    self.device = device

  def __del__(self) -> None:
    if hasattr(self, "device"): self.device.release(self.memory, self.device.mark())

class GpuAllocator(LRUAllocator):
  """The memory of one GPU, of one kind.

  Freed buffers are used again; work that still uses them comes before work that uses them anew.
  """
  def __init__(self, device: GpuDevice, kind: Any, limit: int | None):
    super().__init__(device.name, limit=limit, supports_transfer=True)
    self.device, self.kind = device, kind
    self.slab: Any = None
    self.slab_used = 0
    self.small: dict[int, list[Part]] = {}  # small buffers that the pool gave back, by size

  def rounded(self, size: int) -> int:  # type: ignore[override]  # which is a function there
    return size if self.device.box.virtual else LRUAllocator.rounded(size)

  def _alloc(self, size: int) -> Part | None:
    self.device.check()
    try: return self._cut(size) if size <= SMALL_BYTES else self._own(size)
    except Refused as error:
      if error.errno == errno.ENOMEM: return None
      raise

  def _own(self, size: int) -> Part:
    memory = self.device.allocate(size, self.kind, "buffer")
    self.device.box.outline(memory.address, size, memory.size)  # behind it nothing is mapped
    return Part(memory.address, size, memory)

  def _cut(self, size: int) -> Part:
    if self.small.get(size): return self.small[size].pop()
    gap = min(max(size // 4, ALIGNMENT), GAP_BYTES) if self.device.box.virtual else 0
    step = -(-(size + gap) // ALIGNMENT) * ALIGNMENT
    if self.slab is None or self.slab_used + step > self.slab.size:
      self.slab, self.slab_used = self.device.allocate(HUGE_PAGE, self.kind, "small buffers"), 0
      self.device.box.outline(self.slab.address, 0, self.slab.size)
    start, self.slab_used = self.slab_used, self.slab_used + step
    self.device.box.outline(self.slab.address + start, size, step)
    return Part(self.slab.address + start, size, self.slab)

  def _free(self, opaque: Part, size: int) -> None:
    if size <= SMALL_BYTES: self.small.setdefault(size, []).append(opaque)
    else: self.device.release(opaque.memory, self.device.mark())

  def keep(self, memories: set[Any]) -> None:
    """All other memory is about to be given back."""
    self.pool, self.cached, self.slab = {}, 0, self.slab if self.slab in memories else None
    self.small = {size: [part for part in parts if part.memory in memories] for size, parts in self.small.items()}

  def _stage(self) -> Stage:
    """Through which bytes go. Opens the device if it was closed: the new one takes this allocator over."""
    if self.device.closed: Device[self.dev].synchronize()
    return self.device.stage

  def _copyin(self, dest: Part, src: memoryview) -> None: self._stage().write(dest.address, src.cast("B"))
  def _copyout(self, dest: memoryview, src: Part) -> None: self._stage().read(dest.cast("B"), src.address)
  def address(self, opaque: Part) -> int: return opaque.address
  def offset(self, opaque: Part, size: int, offset: int) -> Part:
    return Part(opaque.address + offset, size, opaque.memory)
  def external(self, address: int, size: int) -> Part: return Pinned(self.device, address, size)

  def map(self, buf: Buffer) -> Part:
    """A buffer of another GPU, to be used in place. Raises DeviceError where this GPU cannot see it."""
    opaque = buf._buf
    if not isinstance(opaque, Part): return super().map(buf)  # type: ignore[no-any-return]
    try: self.device.share(opaque.memory)
    except Refused as error:
      raise DeviceError(f"{self.dev} cannot see memory of {buf.device}: {error.message}") from error
    return opaque

  def transfer(self, dest: Part, src: Any, size: int) -> bool:
    """Copy from a buffer of another GPU, by its copy engine.

    False where they cannot see each other; then nothing has happened.
    """
    if not isinstance(src, Part): return False
    other = src.memory.owner
    if not isinstance(other, type(self.device)): return False
    try: other.share(dest.memory)
    except Refused: return False
    self.device.wait_mark(self.device.mark())  # what this GPU still does with the place
    other.wait_mark(other.enqueue_copy(dest.address, src.address, size))
    return True

class Stage:
  """Two pieces of memory that both the GPU and the processor see, through which bytes go."""
  def __init__(self, device: GpuDevice, memory: Any):
    self.device, self.memory = device, memory
    self.busy: list[tuple[int, int] | None] = [None, None]
    self.turn = 0

  def _take(self) -> tuple[int, int]:
    """The next piece, when it is free: its number and its offset."""
    self.device.check()
    self.turn = 1 - self.turn
    busy, self.busy[self.turn] = self.busy[self.turn], None
    if busy is not None: self.device.wait_mark(busy)
    return self.turn, self.turn * STAGE_BYTES

  def write(self, dest: int, src: memoryview) -> None:
    """Copy bytes to the GPU. They are taken when this returns, and are there for work that is submitted after."""
    with self.device.lock:
      for start in range(0, src.nbytes, STAGE_BYTES):
        chunk = src[start:start + STAGE_BYTES]
        piece, offset = self._take()
        self.memory.mapping.copyin(offset, chunk)
        self.busy[piece] = self.device.enqueue_copy(dest + start, self.memory.address + offset, chunk.nbytes)

  def read(self, dest: memoryview, src: int) -> None:
    """Copy bytes from the GPU, after all that was submitted."""
    with self.device.lock:
      waiting: list[tuple[int, int, int]] = []  # (piece, offset there, where it goes)
      for start in range(0, dest.nbytes, STAGE_BYTES):
        piece, offset = self._take()
        self.busy[piece] = self.device.enqueue_copy(self.memory.address + offset, src + start,
                                                    min(STAGE_BYTES, dest.nbytes - start))
        waiting.append((piece, offset, start))
        if len(waiting) == 2: self._fetch(dest, *waiting.pop(0))
      for entry in waiting: self._fetch(dest, *entry)

  def _fetch(self, dest: memoryview, piece: int, offset: int, start: int) -> None:
    busy, self.busy[piece] = self.busy[piece], None
    assert busy is not None
    self.device.wait_mark(busy)
    self.memory.mapping.copyout(offset, dest[start:start + STAGE_BYTES])
