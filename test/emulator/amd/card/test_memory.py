"""tinyhw/emulator/amd/card/memory.py: allocation, mapping, limits, the program's own view, sharing; each refusal."""
import ctypes
import errno
from typing import Any

import pytest

from test.support.amd.virtual import (
  DEVICE_MEMORY, EXECUTABLE, GTT, PAGE, PUBLIC, SHARED_MEMORY, VRAM, WRITABLE, Program)
from tinyhw.autogen.amd import kfd_ioctl as kfd
from tinyhw.drivers.linux.files import MAP_PRIVATE, MAP_SHARED, READ_WRITE, map_memory
from tinyhw.emulator.errors import StaleRead, UninitialisedRead

def refused(number: int, message: str, call: Any) -> None:
  with pytest.raises(OSError, match=message) as caught: call()
  assert caught.value.errno == number

def request(program: Program, **changes: int) -> Any:
  values = {"va_addr": 0x10_0000_0000, "size": PAGE, "gpu_id": program.gpu.gpu_id, "flags": SHARED_MEMORY}
  return kfd.AllocMemoryOfGpu(**values | changes)

ALLOCATIONS = {
  "size 0": (errno.EINVAL, "size 0", {"size": 0}),
  "no domain": (errno.EINVAL, "no domain", {"flags": WRITABLE}),
  "doorbell size": (errno.EINVAL, "doorbells", {"flags": kfd.KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL}),
  "MMIO size": (errno.EINVAL, "MMIO", {"flags": kfd.KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP, "size": 2 * PAGE}),
  "user pointer without an address": (errno.EINVAL, "user pointer", {"flags": kfd.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR}),
  "user pointer in a page": (errno.EINVAL, "begins a page",
                             {"flags": kfd.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR, "mmap_offset": 0x1234}),
  "unknown GPU": (errno.EINVAL, "no GPU", {"gpu_id": 5}),
  "more VRAM than there is": (errno.ENOMEM, "bytes of VRAM", {"flags": DEVICE_MEMORY, "size": 1 << 40}),
  "more system memory than there is": (errno.ENOMEM, "system memory", {"size": 1 << 40}),
}

@pytest.mark.parametrize("name", ALLOCATIONS)
def test_allocations_that_are_refused(name: str) -> None:
  program = Program()
  number, message, changes = ALLOCATIONS[name]
  refused(number, message, lambda: program.call(request(program, **changes)))
  assert not program.computer.memory.buffers

def test_a_small_bar_has_no_public_vram() -> None:
  program = Program(large_bar=False)
  refused(errno.EINVAL, "resizable BAR", lambda: program.allocate(PAGE, DEVICE_MEMORY))
  program.allocate(PAGE, VRAM | WRITABLE)
  program.allocate(PAGE)

def test_vram_is_counted() -> None:
  program = Program()
  def available() -> int: return int(program.call(kfd.GetAvailableMemory(gpu_id=program.gpu.gpu_id)).available)
  before = available()
  area = program.allocate(10 * PAGE, DEVICE_MEMORY)
  assert before - available() == 10 * PAGE
  program.free(area)
  assert available() == before == program.gpu.chip.vram

@pytest.mark.parametrize("address", [0, 0x1234, 1 << 47])
def test_addresses_are_whole_pages_of_the_program(address: int) -> None:
  program = Program()
  made = program.call(request(program, va_addr=address))
  refused(errno.EINVAL, "no whole pages", lambda: program.map(made.handle))

def test_ranges_do_not_overlap() -> None:
  program = Program()
  first = program.allocate(4 * PAGE)
  made = program.call(request(program, va_addr=first.address + 3 * PAGE, size=2 * PAGE))
  refused(errno.EINVAL, "overlap", lambda: program.map(made.handle))

def test_a_mapped_buffer_cannot_be_freed_and_an_unmapped_one_not_be_unmapped() -> None:
  program = Program()
  area = program.allocate(PAGE)
  refused(errno.EBUSY, "is mapped", lambda: program.call(kfd.FreeMemoryOfGpu(handle=area.handle)))
  program.unmap(area.handle)
  refused(errno.EINVAL, "is not mapped", lambda: program.unmap(area.handle))
  program.call(kfd.FreeMemoryOfGpu(handle=area.handle))
  refused(errno.EINVAL, "no buffer", lambda: program.call(kfd.FreeMemoryOfGpu(handle=area.handle)))
  refused(errno.ENOMEM, "no buffer", lambda: program.map(area.handle))

@pytest.mark.parametrize("changes,number", [({"n_devices": 0}, errno.EINVAL), ({"n_success": 2}, errno.EINVAL),
                                            ({"device_ids_array_ptr": 0}, errno.EFAULT)])
def test_lists_of_devices(changes: dict[str, int], number: int) -> None:
  program = Program()
  area = program.allocate(PAGE, map_it=False)
  array = (ctypes.c_uint32 * 1)(program.gpu.gpu_id)
  values = {"handle": area.handle, "device_ids_array_ptr": ctypes.addressof(array), "n_devices": 1}
  refused(number, "of 1 devices|of 0 devices|no address", lambda: program.call(kfd.MapMemoryToGpu(**values | changes)))

def test_success_is_counted_up_to_the_device_that_fails() -> None:
  program = Program(count=2)
  area = program.allocate(PAGE, map_it=False)
  array = (ctypes.c_uint32 * 2)(program.gpu.gpu_id, program.computer.gpus[1].gpu_id)
  call = kfd.MapMemoryToGpu(handle=area.handle, device_ids_array_ptr=ctypes.addressof(array), n_devices=2)
  refused(errno.ENODEV, "no address space", lambda: program.call(call))
  assert call.n_success == 1

# **** peers ****

def two_gpus(**options: Any) -> Program:
  program = Program(count=2, **options)
  second = program.computer.open("/dev/dri/renderD129", 2)
  program.call(kfd.AcquireVm(drm_fd=second.fileno(), gpu_id=program.computer.gpus[1].gpu_id))
  return program

def test_peers_reach_each_other() -> None:
  program = two_gpus()
  area = program.allocate(PAGE, DEVICE_MEMORY)
  program.map(area.handle, program.computer.gpus)
  area.mapping.copyin(0, b"peer")
  program.computer.gpus[0].host_writes.flush()
  assert program.computer.gpus[1].port.load(area.address, 4) == b"peer"

def test_cards_without_a_link_share_only_system_memory() -> None:
  program = two_gpus(peers=False)
  program.map(program.allocate(PAGE).handle, program.computer.gpus)
  area = program.allocate(PAGE, DEVICE_MEMORY)
  refused(errno.EINVAL, "no link", lambda: program.map(area.handle, program.computer.gpus))

def test_a_shared_buffer_lives_as_long_as_anyone_has_it() -> None:
  program = two_gpus()
  area = program.allocate(PAGE, DEVICE_MEMORY)
  area.mapping.copyin(0, b"shared")
  file = program.call(kfd.ExportDmabuf(handle=area.handle)).dmabuf_fd
  other = program.computer.gpus[1]
  made = program.call(kfd.ImportDmabuf(va_addr=0x20_0000_0000, gpu_id=other.gpu_id, dmabuf_fd=file))
  program.free(area)
  program.map(made.handle, [other])
  program.gpu.host_writes.flush()
  assert other.port.load(0x20_0000_0000, 6) == b"shared"
  shared = program.computer.descriptor(file)
  assert shared is not None and program.gpu.vram_used == PAGE
  shared.close()
  program.unmap(made.handle, [other])
  program.call(kfd.FreeMemoryOfGpu(handle=made.handle))
  assert program.gpu.vram_used == 0
  refused(errno.EINVAL, "no dma-buf",
          lambda: program.call(kfd.ImportDmabuf(gpu_id=other.gpu_id, dmabuf_fd=program.kfd.fileno())))

# **** the program's own view ****

def test_mappings_of_the_program() -> None:
  program = Program()
  area = program.allocate(2 * PAGE, see=False)
  offset = program.computer.memory.buffers[area.handle].mmap_offset
  refused(errno.EINVAL, "MAP_SHARED", lambda: program.drm.mmap(PAGE, offset, 0, READ_WRITE, MAP_PRIVATE))
  refused(errno.EINVAL, "outside", lambda: program.drm.mmap(3 * PAGE, offset, 0, READ_WRITE, MAP_SHARED))
  refused(errno.EINVAL, "no buffer", lambda: program.drm.mmap(PAGE, offset + (1 << 50), 0, READ_WRITE, MAP_SHARED))
  other = program.computer.open("/dev/dri/renderD128", 2)
  refused(errno.EACCES, "another file", lambda: other.mmap(PAGE, offset, 0, READ_WRITE, MAP_SHARED))
  hidden = program.allocate(PAGE, VRAM | WRITABLE)
  hidden_offset = program.computer.memory.buffers[hidden.handle].mmap_offset
  refused(errno.EPERM, "without PUBLIC", lambda: program.drm.mmap(PAGE, hidden_offset, 0, READ_WRITE, MAP_SHARED))
  part = program.drm.mmap(PAGE, offset + PAGE, 0, READ_WRITE, MAP_SHARED)
  part.store32(4, 7)
  assert program.gpu.port.load(area.address + PAGE + 4, 4) == b"\7\0\0\0"

def test_a_mapping_keeps_the_pages() -> None:
  program = Program()
  area = program.allocate(PAGE, DEVICE_MEMORY, see=False)
  mapping = program.drm.mmap(PAGE, program.computer.memory.buffers[area.handle].mmap_offset, 0, READ_WRITE, MAP_SHARED)
  mapping.store32(0, 1)
  program.free(area)
  assert mapping.load32(0) == 1 and program.gpu.vram_used == PAGE
  mapping.close()
  assert program.close() == {}

def test_user_pointers_are_the_programs_memory() -> None:
  program = Program()
  memory = map_memory(PAGE)
  flags = kfd.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | WRITABLE
  made = program.call(request(program, va_addr=memory.address, flags=flags, mmap_offset=memory.address))
  program.map(made.handle)
  program.gpu.port.store(memory.address + 8, b"\5\0\0\0")
  assert memory.load32(8) == 5
  refused(errno.EINVAL, "no buffer", lambda: program.drm.mmap(PAGE, made.mmap_offset, 0, READ_WRITE, MAP_SHARED))

def test_caches_may_be_older_than_the_programs_own_memory() -> None:
  program = Program()
  memory = map_memory(PAGE)
  flags = kfd.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | WRITABLE
  program.map(program.call(request(program, va_addr=memory.address, flags=flags, mmap_offset=memory.address)).handle)
  wave = program.gpu.unit_port("a wave", program.gpu.xccs[0], 0)
  wave.load(memory.address, 4)
  memory.store32(0, 7)  # no virtual mapping sees it
  with pytest.raises(StaleRead, match="which the program wrote"): wave.load(memory.address, 4)

def test_the_program_sees_its_own_writes_before_the_flush() -> None:
  program = Program()
  area = program.allocate(PAGE, DEVICE_MEMORY)
  area.mapping.store32(0, 7)
  assert area.mapping.load32(0) == 7 and program.gpu.host_writes.starts

def test_the_page_that_flushes() -> None:
  program = Program()
  made = program.call(request(program, flags=kfd.KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP | WRITABLE))
  page = program.kfd.mmap(PAGE, made.mmap_offset, 0, READ_WRITE, MAP_SHARED)
  area = program.allocate(PAGE, DEVICE_MEMORY)
  area.mapping.store32(0, 1)
  assert program.gpu.host_writes.starts
  page.store32(0, 0)
  assert not program.gpu.host_writes.starts

@pytest.mark.parametrize("flags,rights",
                         [(GTT | PUBLIC, "r"), (GTT | WRITABLE | PUBLIC, "rw"), (GTT | EXECUTABLE | PUBLIC, "rx")])
def test_rights_are_those_of_the_flags(flags: int, rights: str) -> None:
  program = Program()
  area = program.allocate(PAGE, flags)
  entry = program.gpu.table.find(area.address)
  assert entry is not None and repr(entry).split()[1] == rights

# **** two processes ****

def test_the_memory_that_one_process_takes_is_missing_for_the_other() -> None:
  one = Program()
  other = Program(beside=one)
  def available() -> int: return int(other.call(kfd.GetAvailableMemory(gpu_id=other.gpu.gpu_id)).available)
  large = one.gpu.chip.vram - PAGE
  taken = one.allocate(large, VRAM | WRITABLE, see=False)
  assert available() == PAGE
  refused(errno.ENOMEM, "0x1000 bytes of VRAM are left", lambda: other.allocate(2 * PAGE, VRAM | WRITABLE))
  one.free(taken)
  assert available() == other.gpu.chip.vram
  other.allocate(2 * PAGE, VRAM | WRITABLE)
  limit = one.computer.memory.system_limit
  one.allocate(limit - PAGE, GTT | WRITABLE)
  refused(errno.ENOMEM, "0x1000 bytes of system memory are left", lambda: other.allocate(2 * PAGE))
  one.computer.kill()
  other.allocate(2 * PAGE)

def test_what_another_process_left_in_memory_is_no_value() -> None:
  one = Program()
  other = Program(beside=one)
  left = one.allocate(PAGE, DEVICE_MEMORY)
  left.mapping.store32(0, 7)
  one.computer.kill()
  found = other.allocate(PAGE, DEVICE_MEMORY)
  with pytest.raises(UninitialisedRead): other.gpu.port.load(found.address, 4)
