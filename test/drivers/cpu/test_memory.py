"""Host memory: alignment, reuse, limits.

Code pages: never writable and executable, and adding code never disturbs running code.
"""
import ctypes
import errno
import gc
import mmap
import sys
import threading

import pytest
from host_kernels import Loaded, code, open_cpu

from tinyhw.device import Launch
from tinyhw.drivers.cpu import memory
from tinyhw.drivers.cpu.memory import CodeArena, HostAllocator
from tinyhw.errors import ArgumentError, DeviceError, DriverError, OutOfMemory

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 1000, 1 << 18, (1 << 18) + 1, 1 << 20, 3 << 20, (5 << 20) + 17])
def test_buffers_are_aligned_and_writable(size: int) -> None:
  allocator = HostAllocator("CPU")
  found = allocator.alloc(size)
  assert found.address % (memory.HUGE_PAGE if size >= memory.HUGE_PAGE else memory.ALIGNMENT) == 0
  assert found.size >= size and len(found.view) == found.size and memory.address_of(found.view) == found.address
  found.view[:] = bytes([255]) * found.size
  allocator.free(found)

def test_buffers_do_not_overlap() -> None:
  allocator = HostAllocator("CPU")
  buffers = sorted((allocator.alloc(size) for size in [1, 64, 100, 5000, 70_000, 300_000] * 8), key=lambda m: m.address)
  assert all(a.address + a.size <= b.address for a, b in zip(buffers, buffers[1:], strict=False))

def test_freed_buffers_are_used_again() -> None:
  allocator = HostAllocator("CPU")
  for size in (64, 5000, 1 << 20):
    first = allocator.alloc(size)
    allocator.free(first)
    assert allocator.alloc(size) is first

def test_freed_twice() -> None:
  allocator = HostAllocator("CPU")
  found = allocator.alloc(100)
  allocator.free(found)
  with pytest.raises(DeviceError, match="CPU: buffer <Memory .* is freed twice, or came from another allocator"):
    allocator.free(found)

def test_more_than_there_is() -> None:
  allocator = HostAllocator("CPU")
  held = allocator.alloc(3 << 20)
  with pytest.raises(OutOfMemory, match=r"CPU: cannot allocate 1.00 PB \(\d+ bytes\): 1 live buffers hold 3.00 MB "
                     r".*drop"):
    allocator.alloc(1 << 50)
  with pytest.raises(ArgumentError, match="cannot allocate -1 bytes"): allocator.alloc(-1)
  assert allocator.held == 3 << 20
  allocator.free(held)

def test_memory_that_the_system_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
  allocator = HostAllocator("CPU")
  pooled = allocator.alloc(4 << 20)
  allocator.free(pooled)
  def refuse(size: int) -> mmap.mmap: raise OSError(errno.ENOMEM, "no")
  monkeypatch.setattr(memory, "map_private", refuse)
  with pytest.raises(OutOfMemory, match="0 live buffers hold 0 bytes"): allocator.alloc(8 << 20)
  assert allocator.cached == 0, "what was kept for later was given back first"

def test_the_pool_has_a_limit() -> None:
  allocator = HostAllocator("CPU")
  allocator.cache_limit = 10 << 20
  old, new = [allocator.alloc(2 << 20) for _ in range(3)], [allocator.alloc(3 << 20) for _ in range(2)]
  for m in old + new: allocator.free(m)
  assert allocator.cached == 10 << 20 and [len(v) for v in allocator.pool.values()] == [2, 2]

def test_the_pool_is_emptied_before_an_allocation_fails() -> None:
  allocator = HostAllocator("CPU")
  allocator.limit = 10 << 20
  allocator.free(allocator.alloc(8 << 20))
  allocator.alloc(9 << 20)
  assert allocator.cached == 0

@linux
def test_views_keep_the_mapping() -> None:
  allocator = HostAllocator("CPU")
  found = allocator.alloc(4 << 20)
  view = found.view
  view[7] = 42
  allocator.free(found)
  allocator.close()
  del found
  gc.collect()
  assert view[7] == 42

def test_memory_of_someone_else() -> None:
  owner = ctypes.create_string_buffer(b"abcdef")
  found = HostAllocator("CPU").external(ctypes.addressof(owner), 6)
  found.view[0] = ord("x")
  assert owner.raw[:3] == b"xbc" and found.address == ctypes.addressof(owner)

# **** code ****

RETURN_7 = bytes.fromhex("b807000000c3")  # mov eax, 7; ret

def call(address: int) -> int: return ctypes.CFUNCTYPE(ctypes.c_int)(address)()  # type: ignore[no-any-return]

def x86_only() -> None: open_cpu(1).close()

@linux
def test_no_page_is_writable_and_executable() -> None:
  def pages() -> list[list[str]]:
    with open("/proc/self/maps") as file: return [line.split()[:2] for line in file]
  before = {span for span, _ in pages()}   # ctypes' own callbacks may be such pages
  arena = CodeArena()
  places = [arena.add(RETURN_7)[0] for _ in range(200)]
  rows = pages()
  for place in places:
    modes = [mode for span, mode in rows if int(span.split("-")[0], 16) <= place < int(span.split("-")[1], 16)]
    assert modes == ["r-xp"]
  assert not [mode for span, mode in rows if "w" in mode and "x" in mode and span not in before]
  arena.close(unmap=True)

def test_small_programs_share_pages_and_stay() -> None:
  x86_only()
  arena = CodeArena(chunk_bytes=16384)
  places = [arena.add(bytes([0xb8, i % 256, i // 256, 0, 0, 0xc3]) + bytes(i))[0] for i in range(300)]
  assert [call(p) for p in places] == list(range(300))
  assert all(p % 64 == 0 for p in places) and len(set(places)) == 300 and len(arena.chunks) < 10
  arena.close(unmap=True)

def test_programs_larger_than_a_chunk() -> None:
  x86_only()
  arena = CodeArena(chunk_bytes=4096)
  place, chunk = arena.add(RETURN_7 + bytes(10_000))
  assert call(place) == 7
  arena.release(chunk)
  arena.add(bytes(4000))
  assert chunk not in arena.chunks
  arena.close(unmap=True)

def test_pages_without_programs_are_given_back() -> None:
  arena = CodeArena(chunk_bytes=4096)
  chunks = [arena.add(bytes(2000))[1] for _ in range(10)]
  assert len(arena.chunks) == 5
  for chunk in chunks: arena.release(chunk)
  assert arena.chunks == {arena.chunk}
  last = arena.add(bytes(64))[1]
  arena.close()
  assert arena.chunks == {last}, "a program that may still run keeps its page"
  arena.release(last)
  assert not arena.chunks

def test_loading_while_another_thread_runs() -> None:
  """Kernels run on pages while code is added to them."""
  loaded = Loaded(open_cpu(2))
  where = loaded.zeros(64)
  stop = threading.Event()
  program = loaded["add"]
  def load() -> None:
    while not stop.is_set(): loaded.device.load(code("add", loaded.device.arch))
  thread = threading.Thread(target=load)
  thread.start()
  for _ in range(2000): loaded.device.submit([Launch(program, (where,), (1,), 64)])
  stop.set()
  thread.join()
  assert where.view[:512].cast("q").tolist() == [2000] * 64
  loaded.device.close()

@linux
@pytest.mark.parametrize("call_name, reason", [("_map", "mapping"), ("_protect", "protecting")])
def test_a_policy_that_forbids_code(call_name: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
  def refuse(self: object, *arguments: object) -> int: raise memory._code_error(reason, errno.EACCES)
  monkeypatch.setattr(memory.LinuxPages, call_name, refuse)
  with pytest.raises(DriverError, match=f"{reason} pages for machine code: .*SELinux.*DEV=PYTHON"):
    CodeArena().add(RETURN_7)
