"""Memory of a GPU from a kernel driver, and the buffers in it. The processor does not see buffers: the copy engine
moves bytes through memory that both see.

So nothing depends on the size of the PCI window (Resizable BAR), and no cache of the bridge has to be flushed. Small
buffers are cut from bigger pieces, because the kernel allocates whole pages, slowly.

On a virtual GPU buffers have exactly the requested size. Unowned bytes follow them, so that the GPU can report accesses
beyond their ends.
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
GAP_BYTES = 64 << 10          # most unowned bytes after a small buffer of a virtual GPU
# of a staging buffer; there are two, so that one is filled while the other is emptied
STAGE_BYTES = 4 << 20

class Memory:
  """Memory that GPUs see at `address`. If it is visible, the processor sees it there too, through `mapping`. `close`
  frees it.

  kind, handle: its kind and the kernel's name for it, defined by the driver. The driver adds the reversal of each of
  its steps to `returns`.
  is_of_parent: the process that forked this one has it; some_of_parent: is there any such memory?
  """
  some_of_parent = False

  def __init__(self, kind: object, address: int, size: int, label: str, returns: Returns, handle: int = 0):
    self.kind, self.address, self.size, self.label, self.returns, self.handle = (kind, address, size, label, returns,
                                                                                 handle)
    self.seen_by: list[Any] = []           # the GPUs, as the driver knows them
    self.owner: object = None              # the device that it belongs to
    self.found: Mapping | None = None
    self.is_of_parent = False

  @property
  def mapping(self) -> Mapping:
    """The processor's view of the memory."""
    assert self.found is not None, f"{self!r} is not visible to the processor"
    return self.found

  def close(self) -> None:
    """Free the memory, which no GPU may use any more.

    Raises Refused. A second call does the remaining steps. Its addresses stay reserved until all are done.
    """
    self.returns.close()

  def leave(self) -> None:
    """Leave it to the parent, in the child of a fork. No kernel of the child may be given its address."""
    self.is_of_parent = Memory.some_of_parent = True

  def __repr__(self) -> str: return f"<{self.label}: {self.size:#x} bytes of {self.kind} at {self.address:#x}>"

class GpuBuffer:
  """A buffer: its address, and the allocation that contains it."""
  __slots__ = ("address", "size", "memory", "__weakref__")

  def __init__(self, address: int, size: int, memory: Any):
    self.address, self.size, self.memory = address, size, memory

  def __repr__(self) -> str: return f"<GpuBuffer {self.size} bytes at {self.address:#x}>"

class Pinned(GpuBuffer):
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
  """The memory of one GPU, of one kind. alignment: see Allocator.

  Freed buffers are reused. Work that still uses them runs before work that uses them anew.
  """
  def __init__(self, device: GpuDevice, kind: Any, limit: int | None, alignment: int = 1):
    super().__init__(device.name, limit=limit, supports_transfer=True)
    self.device, self.kind, self.alignment = device, kind, alignment
    self.slab: Any = None
    self.slab_used = 0
    self.small: dict[int, list[GpuBuffer]] = {}  # small buffers that the pool returned, by size

  def rounded(self, size: int) -> int:  # type: ignore[override]  # which is a function there
    return size if self.device.box.virtual else LRUAllocator.rounded(size)

  def _alloc(self, size: int) -> GpuBuffer | None:
    self.device.check()
    try: return self._cut(size) if size <= SMALL_BYTES else self._own(size)
    except Refused as error:
      if error.errno == errno.ENOMEM: return None
      raise

  def _own(self, size: int) -> GpuBuffer:
    memory = self.device.allocate(size, self.kind, "buffer")
    self.device.box.outline(memory.address, size, memory.size)  # nothing is mapped after it
    return GpuBuffer(memory.address, size, memory)

  def _cut(self, size: int) -> GpuBuffer:
    if self.small.get(size): return self.small[size].pop()
    gap = min(max(size // 4, ALIGNMENT), GAP_BYTES) if self.device.box.virtual else 0
    step = -(-(size + gap) // ALIGNMENT) * ALIGNMENT
    if self.slab is None or self.slab_used + step > self.slab.size:
      self.slab, self.slab_used = self.device.allocate(HUGE_PAGE, self.kind, "small buffers"), 0
      self.device.box.outline(self.slab.address, 0, self.slab.size)
    start, self.slab_used = self.slab_used, self.slab_used + step
    self.device.box.outline(self.slab.address + start, size, step)
    return GpuBuffer(self.slab.address + start, size, self.slab)

  def _free(self, opaque: GpuBuffer, size: int) -> None:
    if size <= SMALL_BYTES: self.small.setdefault(size, []).append(opaque)
    else: self.device.release(opaque.memory, self.device.mark())

  def keep(self, memories: set[Any]) -> None:
    """Forget all other memory, which is about to be freed."""
    self.pool, self.cached, self.slab = {}, 0, self.slab if self.slab in memories else None
    self.small = {size: [part for part in parts if part.memory in memories] for size, parts in self.small.items()}

  def _stage(self) -> Stage:
    """Return the staging buffers. Open the device if it was closed: the new one takes this allocator over."""
    if self.device.closed: Device[self.dev].synchronize()
    return self.device.stage

  def _copyin(self, dest: GpuBuffer, src: memoryview) -> None: self._stage().write(dest.address, src.cast("B"))
  def _copyout(self, dest: memoryview, src: GpuBuffer) -> None: self._stage().read(dest.cast("B"), src.address)
  def address(self, opaque: GpuBuffer) -> int: return opaque.address
  def offset(self, opaque: GpuBuffer, size: int, offset: int) -> GpuBuffer:
    return GpuBuffer(opaque.address + offset, size, opaque.memory)
  def external(self, address: int, size: int) -> GpuBuffer: return Pinned(self.device, address, size)

  def map(self, buf: Buffer) -> GpuBuffer:
    """Return a buffer of another GPU for use in place. Raises DeviceError if this GPU cannot see it."""
    opaque = buf._buf
    if not isinstance(opaque, GpuBuffer): return super().map(buf)  # type: ignore[no-any-return]
    try: self.device.share(opaque.memory)
    except Refused as error:
      raise DeviceError(f"{self.dev} cannot see memory of {buf.device}: {error.message}") from error
    return opaque

  def transfer(self, dest: GpuBuffer, src: Any, size: int) -> bool:
    """Copy from a buffer of another GPU, by its copy engine.

    Return False if they cannot see each other; then nothing has happened.
    """
    if not isinstance(src, GpuBuffer): return False
    other = src.memory.owner
    if not isinstance(other, type(self.device)): return False
    other.check()
    try: other.share(dest.memory)
    except Refused: return False
    self.device.wait_mark(self.device.mark())  # wait for this GPU's earlier work on the destination
    other.wait_mark(other.enqueue_copy(dest.address, src.address, size))
    return True

class Stage:
  """Two staging buffers that both the GPU and the processor see."""
  def __init__(self, device: GpuDevice, memory: Any):
    self.device, self.memory = device, memory
    self.busy: list[tuple[int, int] | None] = [None, None]
    self.turn = 0

  def _take(self) -> tuple[int, int]:
    """Wait for the next staging buffer. Return its number and its offset."""
    self.device.check()
    self.turn = 1 - self.turn
    busy, self.busy[self.turn] = self.busy[self.turn], None
    if busy is not None: self.device.wait_mark(busy)
    return self.turn, self.turn * STAGE_BYTES

  def write(self, dest: int, src: memoryview) -> None:
    """Copy bytes to the GPU. They are read before this returns, and visible to later submissions."""
    with self.device.lock:
      for start in range(0, src.nbytes, STAGE_BYTES):
        chunk = src[start:start + STAGE_BYTES]
        piece, offset = self._take()
        self.memory.mapping.copyin(offset, chunk)
        self.busy[piece] = self.device.enqueue_copy(dest + start, self.memory.address + offset, chunk.nbytes)

  def read(self, dest: memoryview, src: int) -> None:
    """Copy bytes from the GPU, after all submissions."""
    with self.device.lock:
      waiting: list[tuple[int, int, int]] = []  # (number of the staging buffer, offset in it, offset in dest)
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
