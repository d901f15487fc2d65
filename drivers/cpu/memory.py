"""Host memory: buffers that the CPU computes on, and pages of machine code.

Buffers come from anonymous private mappings and are 64-byte aligned. Small buffers share a mapping. Big ones are
aligned to huge pages and ask for them. A memoryview of a buffer keeps its mapping alive.

Code pages are never writable and executable at the same time. Small kernels share pages. On Linux a changed copy of a
page is moved over the old one, so that adding code never disturbs running code. On other systems each program has pages
of its own.
"""
from __future__ import annotations
import ctypes
import errno
import mmap
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from tinyhw.device import LRUAllocator, Returned
from tinyhw.errors import DriverError
from tinyhw.threads import kept_in_forks

ALIGNMENT = 64
HUGE_PAGE = 2 << 20
SLAB_BYTES = 1 << 20
SMALL_BYTES = SLAB_BYTES // 4       # larger buffers have a mapping of their own
CODE_CHUNK_BYTES = 256 << 10
CODE_FILLER = b"\xcc"               # int3
PROT_NONE, MREMAP_MAYMOVE, MREMAP_FIXED = 0, 1, 2  # Linux, uapi/asm-generic/mman-common.h and uapi/linux/mman.h
FAILED = ctypes.c_void_p(-1).value   # MAP_FAILED

IS_WINDOWS = sys.platform == "win32"

def map_private(size: int) -> mmap.mmap:
  """Map zeroed pages, copied on write by a fork. Raises OSError or OverflowError if there is no memory."""
  if IS_WINDOWS: return mmap.mmap(-1, size)
  return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ | mmap.PROT_WRITE)

def address_of(exporter: Any, offset: int = 0) -> int:
  """Return the address of writable memory (mmap, bytearray, memoryview).

  It is valid until the memory is resized or closed.
  """
  return ctypes.addressof(ctypes.c_char.from_buffer(exporter, offset))

def memory_limit() -> int | None:
  """Return the bytes that this process may have: physical memory or its control group's limit; None if unknown."""
  limits = []
  try: limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
  except (AttributeError, ValueError, OSError): pass
  for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
    try:
      with open(path) as file: limits.append(int(file.read()))
    except (OSError, ValueError): pass  # absent, or "max"
  return min(limits) if limits else None

class Memory:
  """Bytes of host memory: their address and a view of them. `view` keeps the mapping alive."""
  __slots__ = ("address", "size", "view")

  def __init__(self, address: int, size: int, view: memoryview):
    self.address, self.size, self.view = address, size, view

  def __repr__(self) -> str: return f"<Memory {self.size} bytes at {self.address:#x}>"

def map_aligned(size: int) -> Memory:
  """Map a buffer of its own: from 2 MB on it is aligned to huge pages and asks for them.

  Raises OSError, OverflowError or MemoryError if there is no memory.
  """
  align = HUGE_PAGE if size >= HUGE_PAGE else ALIGNMENT
  mapping = map_private(size + (align if align == HUGE_PAGE else 0))
  start = -address_of(mapping) % align
  if align == HUGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
    try: mapping.madvise(mmap.MADV_HUGEPAGE, start, size)
    except OSError: pass  # a kernel built without huge pages
  return Memory(address_of(mapping, start), size, memoryview(mapping)[start:start + size])

class HostAllocator(LRUAllocator):
  """Host memory for any device whose kernels run on the CPU."""
  def __init__(self, dev: str):
    limit = memory_limit()
    super().__init__(dev, cache_limit=1 << 62 if limit is None else limit // 4, limit=limit)
    self.slab: Memory | None = None                  # the mapping for new small buffers
    self.slab_used = 0
    self.small: dict[int, list[Memory]] = {}         # small buffers that the pool returned, by size

  def _alloc(self, size: int) -> Memory | None:
    try: return self._cut(size) if size <= SMALL_BYTES else map_aligned(size)
    except (OSError, OverflowError, MemoryError): return None

  def _cut(self, size: int) -> Memory:
    if self.small.get(size): return self.small[size].pop()
    if self.slab is None or self.slab_used + size > SLAB_BYTES: self.slab, self.slab_used = map_aligned(SLAB_BYTES), 0
    start, self.slab_used = self.slab_used, self.slab_used + size
    return self.offset(self.slab, size, start)

  def _free(self, opaque: Memory, size: int) -> None:
    # a mapping ends with its last reference; parts of slabs are kept for the next buffer of their size
    if size <= SMALL_BYTES: self.small.setdefault(size, []).append(opaque)

  def _copyin(self, dest: Memory, src: memoryview) -> None: dest.view[:src.nbytes] = src
  def _copyout(self, dest: memoryview, src: Memory) -> None: dest[:] = src.view[:dest.nbytes]
  def address(self, opaque: Memory) -> int: return opaque.address
  def as_memoryview(self, opaque: Memory) -> memoryview: return opaque.view

  def offset(self, opaque: Memory, size: int, offset: int) -> Memory:
    return Memory(opaque.address + offset, size, opaque.view[offset:offset + size])

  def external(self, address: int, size: int) -> Memory:
    return Memory(address, size, memoryview((ctypes.c_char * size).from_address(address)).cast("B"))

  def map(self, buf: Any) -> Any:
    """Use buffers of other host devices in place."""
    if isinstance(buf._buf, Memory): return buf._buf
    return super().map(buf)

  def close(self) -> None:
    super().close()
    self.slab, self.slab_used, self.small = None, 0, {}

# **** pages of machine code ****

class LinuxPages:
  """Pages of machine code, filled from the front. Code stays executable at its address while more code is added.

  `put` writes a copy of the affected pages elsewhere, makes it executable, and moves it over them. The move is one
  atomic system call. So neither a running kernel nor an interrupt can meet pages that are half written or not
  executable.
  """
  can_append = True

  def __init__(self, size: int):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    self.libc, self.size = libc, size
    self.address = self._map(size, PROT_NONE)

  def _map(self, size: int, protection: int) -> int:
    address = self.libc.mmap(None, size, protection, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if address in (None, FAILED): raise _code_error("mapping", ctypes.get_errno())
    return int(address)

  def _protect(self, address: int, size: int, protection: int) -> None:
    if self.libc.mprotect(address, size, protection): raise _code_error("protecting", ctypes.get_errno())

  def put(self, start: int, code: bytes) -> None:
    """Write code at offset `start`. Earlier bytes of the same page stay. Raises DriverError."""
    first = start & -mmap.PAGESIZE
    size = (start + len(code) - first + mmap.PAGESIZE - 1) & -mmap.PAGESIZE
    copy = self._map(size, mmap.PROT_READ | mmap.PROT_WRITE)
    try:
      before = ctypes.string_at(self.address + first, start - first) if start > first else b""
      content = before + code
      ctypes.memmove(copy, content + CODE_FILLER * (size - len(content)), size)
      self._protect(copy, size, mmap.PROT_READ | mmap.PROT_EXEC)
      moved = self.libc.mremap(ctypes.c_void_p(copy), ctypes.c_size_t(size), ctypes.c_size_t(size),
                               MREMAP_MAYMOVE | MREMAP_FIXED,
                               ctypes.c_void_p(self.address + first))
      if moved in (None, FAILED): raise _code_error("moving", ctypes.get_errno())
    except DriverError:
      self.libc.munmap(copy, size)
      raise

  def close(self) -> None: self.libc.munmap(self.address, self.size)

class MacPages:
  """Pages written once, then executable. macOS. Untested."""
  can_append = False

  def __init__(self, size: int):
    self.mapping, self.size = map_private(size), size
    self.address = address_of(self.mapping)

  def put(self, start: int, code: bytes) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    self.mapping[start:start + len(code)] = code
    if libc.mprotect(self.address, self.size, mmap.PROT_READ | mmap.PROT_EXEC):
      raise _code_error("protecting", ctypes.get_errno())

  def close(self) -> None: self.mapping.close()

class WindowsPages:
  """Pages with VirtualAlloc, written once. Untested."""
  can_append = False

  def __init__(self, size: int):
    self.kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined,unused-ignore]  # exists on Windows only
    self.kernel.VirtualAlloc.restype = ctypes.c_void_p
    self.kernel.VirtualAlloc.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32, ctypes.c_uint32)
    self.kernel.VirtualProtect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32, ctypes.c_void_p)
    self.kernel.VirtualFree.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32)
    # MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE
    self.size, self.address = size, self.kernel.VirtualAlloc(None, size, 0x3000, 0x04)
    if not self.address: raise DriverError(f"VirtualAlloc of {size} bytes failed; free memory")

  def put(self, start: int, code: bytes) -> None:
    ctypes.memmove(self.address + start, code, len(code))
    old = ctypes.c_uint32()
    if not self.kernel.VirtualProtect(self.address, self.size, 0x20, ctypes.byref(old)):  # PAGE_EXECUTE_READ
      raise DriverError("VirtualProtect failed: a policy forbids executable memory; allow it for Python, or use "
                        "DEV=PYTHON")

  def close(self) -> None: self.kernel.VirtualFree(self.address, 0, 0x8000)  # MEM_RELEASE

PAGES: dict[str, Any] = {"linux": LinuxPages, "darwin": MacPages, "win32": WindowsPages}

def _code_error(what: str, number: int) -> DriverError:
  advice = ("a security policy forbids executable memory (SELinux: execmem; systemd: MemoryDenyWriteExecute); allow "
            "it for Python, or use DEV=PYTHON")
  if number == errno.ENOMEM: advice = "free memory"
  return DriverError(f"{what} pages for machine code: {os.strerror(number)}; {advice}")

class CodeChunk:
  """Pages filled from the front. They are freed when they hold no program any more and are not being filled."""
  __slots__ = ("pages", "used", "programs")

  def __init__(self, size: int):
    self.pages = PAGES.get(sys.platform, MacPages)(size)
    self.used = self.programs = 0

class CodeArena:
  """Machine code in memory. Adding code never disturbs running code.

  visible(address, size): makes placed code visible to instruction fetch, on processors that do not do so themselves.
  """
  def __init__(self, chunk_bytes: int = CODE_CHUNK_BYTES, visible: Callable[[int, int], None] | None = None):
    self.chunk_bytes, self.visible = chunk_bytes, visible
    self.lock = kept_in_forks(threading.RLock())
    self.adding = False
    self.chunk: CodeChunk | None = None  # the chunk that is being filled
    self.chunks: set[CodeChunk] = set()
    self.returned = Returned(self._release)

  def add(self, code: bytes) -> tuple[int, CodeChunk]:
    """Return the address of a runnable copy of code, 64-byte aligned, and its chunk, for `release`."""
    with self.lock:
      self.returned.take()
      nested = self.adding  # inside of a signal handler: leave its caller's chunk alone
      chunk = None if nested else self.chunk
      self.adding = True
      try:
        if chunk is None or chunk.used + len(code) > chunk.pages.size or not chunk.pages.can_append:
          chunk = self._new_chunk(len(code), nested)
        start = chunk.used
        chunk.pages.put(start, code)
        # at the final address: instruction caches may be indexed by it
        if self.visible is not None: self.visible(chunk.pages.address + start, len(code))
        chunk.used = (start + len(code) + ALIGNMENT - 1) & -ALIGNMENT
        chunk.programs += 1
      finally: self.adding = nested
      return chunk.pages.address + start, chunk

  def _new_chunk(self, size: int, alone: bool) -> CodeChunk:
    least = (size + mmap.PAGESIZE - 1) & -mmap.PAGESIZE
    chunk = CodeChunk(max(self.chunk_bytes, least) if PAGES.get(sys.platform, MacPages).can_append else least)
    self.chunks.add(chunk)
    if not alone:
      filled, self.chunk = self.chunk, chunk
      if filled is not None and not filled.programs: self._drop(filled)
    return chunk

  def release(self, chunk: CodeChunk) -> None:
    """Release one program of the chunk, which will not run again. Finalizers call this: it never blocks."""
    self.returned.put(self.lock, chunk)

  def _release(self, chunk: CodeChunk) -> None:
    chunk.programs -= 1
    if not chunk.programs and chunk is not self.chunk: self._drop(chunk)

  def _drop(self, chunk: CodeChunk) -> None:
    if chunk in self.chunks:
      self.chunks.remove(chunk)
      chunk.pages.close()

  def close(self, unmap: bool = False) -> None:
    """Free pages without programs now, others when their programs are garbage.

    unmap: free all pages now; none of their code may run any more.
    """
    with self.lock:
      self.returned.take()
      self.chunk = None
      for chunk in list(self.chunks):
        if unmap or not chunk.programs: self._drop(chunk)
