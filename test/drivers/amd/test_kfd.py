"""The connection: versions, allocations, shared memory. A failure at any call leaves nothing allocated."""
import errno

import pytest
from amd.box import AMDBox

from tinyhw.autogen.amd import kfd_ioctl
from tinyhw.drivers.amd import kfd, topology
from tinyhw.drivers.linux import files
from tinyhw.errors import DeviceError

def connected(box: AMDBox) -> tuple[kfd.Kfd, topology.Gpu]:
  made, gpu = kfd.Kfd(box), topology.gpus(box)[0]
  made.acquire(gpu)
  return made, gpu

def test_a_computer_has_one_connection() -> None:
  box = AMDBox()
  assert kfd.connect(box) is kfd.connect(box) and box.held()["files"] == 1
  kfd.forget(box)
  kfd.forget(box)
  assert box.held()["files"] == 0

def test_a_gpu_is_bound_once() -> None:
  box = AMDBox()
  made, gpu = connected(box)
  made.acquire(gpu)
  assert [name for name, _ in box.calls] == ["GetVersion", "RuntimeEnable", "AcquireVm"] and box.held()["files"] == 2
  made.close()

def test_an_old_kernel_is_refused_and_an_older_one_not_asked_for_what_it_has_not() -> None:
  box = AMDBox(version=(1, 10))
  with pytest.raises(DeviceError, match=r"interface 1\.10, and 1\.11 is the oldest.*update the kernel"): kfd.Kfd(box)
  assert box.held()["files"] == 0
  box = AMDBox(version=(1, 13))
  kfd.Kfd(box).close()
  assert [name for name, _ in box.calls] == ["GetVersion"]

@pytest.mark.parametrize("call, number, advice", [
  ("open", errno.EACCES, "opening /dev/kfd: permission denied .*join the group render, which owns it"),
  ("open", errno.ENOENT, "modprobe amdgpu"), ("GetVersion", errno.ENOTTY, "/dev/kfd: GetVersion: .*update it"),
  ("RuntimeEnable", errno.EIO, "RuntimeEnable: .*dmesg")])
def test_a_connection_that_fails_leaves_no_file_open(call: str, number: int, advice: str) -> None:
  box = AMDBox()
  box.fail(call, 1, number)
  with pytest.raises(files.Refused, match=advice): kfd.Kfd(box)
  assert box.held()["files"] == 0

def test_an_address_space_that_is_taken() -> None:
  box = AMDBox()
  box.fail("AcquireVm", 1, errno.EBUSY)
  made = kfd.Kfd(box)
  with pytest.raises(files.Refused, match="used the GPU through another driver"): made.acquire(topology.gpus(box)[0])
  assert box.held()["files"] == 1
  made.acquire(topology.gpus(box)[0])
  made.close()

def test_memory_is_where_it_was_reserved_and_is_given_back() -> None:
  box = AMDBox()
  made, gpu = connected(box)
  before = box.held()
  memory = made.allocate(gpu, 5000, kfd.HOST, "commands")
  request = next(r for name, r in box.calls if name == "AllocMemoryOfGpu")
  assert (memory.size == 8192 == request.size and memory.address == request.va_addr == memory.mapping.address
          and memory.seen_by == [1000])
  assert request.flags == (kfd_ioctl.KFD_IOC_ALLOC_MEM_FLAGS_GTT | kfd_ioctl.KFD_IOC_ALLOC_MEM_FLAGS_COHERENT |
                           kfd_ioctl.KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED | kfd_ioctl.KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE |
                           kfd_ioctl.KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE
                           | kfd_ioctl.KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE |
                           kfd_ioctl.KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC)
  assert repr(memory) == f"<commands: 0x2000 bytes of host memory at {memory.address:#x}>"
  memory.close()
  memory.close()
  assert box.held() == before and [name for name, _ in box.calls[-2:]] == ["UnmapMemoryFromGpu", "FreeMemoryOfGpu"]
  made.close()

def test_big_memory_begins_at_a_huge_page() -> None:
  box = AMDBox()
  made, gpu = connected(box)
  memory = made.allocate(gpu, 3 << 20, kfd.VRAM, "buffer")
  assert memory.address % kfd.HUGE_PAGE == 0 and memory.found is None
  memory.close()
  made.close()

def test_pages_of_the_program_may_be_used_twice() -> None:
  box = AMDBox()
  made, gpu = connected(box)
  own = files.map_memory(files.PAGE)
  one, two = (made.allocate(gpu, files.PAGE, kfd.USER, "mine", own.address) for _ in range(2))
  requests = [r for name, r in box.calls if name == "AllocMemoryOfGpu"]
  assert all(r.mmap_offset == own.address and r.flags & kfd_ioctl.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR for r in requests)
  assert ([r.va_addr for r in requests] == [one.address, two.address] and len({own.address, one.address, two.address})
          == 3)
  one.close()
  two.close()
  made.close()
  own.close()

@pytest.mark.parametrize("call, number", [("AllocMemoryOfGpu", errno.ENOMEM), ("MapMemoryToGpu", errno.ENOMEM),
                                          ("mmap", errno.EINVAL)])
def test_an_allocation_that_fails_leaves_nothing(call: str, number: int) -> None:
  box = AMDBox()
  made, gpu = connected(box)
  before = box.held()
  box.fail(call, 1, number)
  with pytest.raises(files.Refused) as caught: made.allocate(gpu, 5000, kfd.HOST, "commands")
  assert caught.value.errno == number and box.held() == before
  made.close()

def test_a_second_gpu_can_see_it_too() -> None:
  box = AMDBox(count=2)
  made, first = connected(box)
  second = topology.gpus(box)[1]
  made.acquire(second)
  memory = made.allocate(first, 4096, kfd.VRAM, "buffer")
  made.share(memory, second)
  made.share(memory, second)
  assert box.memory[memory.handle][1] == [1000, 1001] == memory.seen_by
  memory.close()
  assert not box.memory
  made.close()

def test_doorbells_are_two_pages() -> None:
  box = AMDBox()
  made, gpu = connected(box)
  page = made.doorbells(3 << 62 | 1000 << 46 | 24)
  assert page.size == 8192
  page.close()
  made.close()
