"""tinyhw/emulator/amd/card/computer.py: calls of /dev/kfd, owners of files, and resources of the process."""
import ctypes
import errno
import os
from typing import Any

import pytest

from test.support.amd.virtual import PAGE, SDMA, Program
from tinyhw.autogen.amd import kfd_ioctl as kfd
from tinyhw.drivers.linux.files import MAP_SHARED, READ_WRITE
from tinyhw.emulator.amd.card.computer import GpuHost

def test_the_version_is_the_boxes() -> None:
  version = Program(version=(1, 14)).call(kfd.GetVersion())
  assert (version.major_version, version.minor_version) == (1, 14)

def test_an_address_space_is_that_of_one_file() -> None:
  program = Program(count=2)
  other, second = program.computer.open("/dev/dri/renderD128", 2), program.computer.open("/dev/dri/renderD129", 2)
  gpu_id, next_id = (gpu.gpu_id for gpu in program.computer.gpus)
  program.call(kfd.AcquireVm(drm_fd=program.drm.fileno(), gpu_id=gpu_id))  # the same again
  for file, gpu, number, message in (
      (other.fileno(), gpu_id, errno.EBUSY, "from another file"),
      (second.fileno(), gpu_id, errno.EINVAL, "render node of"),
      (program.kfd.fileno(), next_id, errno.EINVAL, "no render node"), (5, next_id, errno.EINVAL, "no render node"),
      (second.fileno(), 3, errno.EINVAL, "no GPU")):
    with pytest.raises(OSError, match=message) as caught: program.call(kfd.AcquireVm(drm_fd=file, gpu_id=gpu))
    assert caught.value.errno == number

def test_closing_files_gives_nothing_back() -> None:
  """The kernel's driver cleans up when the process ends, not before. Even then another file is refused."""
  program = Program()
  program.allocate(PAGE)
  program.kfd.close()
  program.drm.close()
  computer = program.computer
  assert computer.census()["buffers"] == 1
  again, drm = computer.open("/dev/kfd", 2), computer.open("/dev/dri/renderD128", 2)
  call = kfd.AcquireVm(drm_fd=drm.fileno(), gpu_id=program.gpu.gpu_id)
  with pytest.raises(OSError, match="from another file"): again.ioctl(kfd.AcquireVm.REQUEST, call)
  again.close()
  drm.close()
  program.areas[0].mapping.close()
  computer.end_process()
  assert computer.census() == {} and program.gpu.drm is None

def test_the_end_of_the_process_takes_everything_back() -> None:
  program = Program("gfx942")
  for kind in (0, SDMA): program.queue(kind)
  program.call(kfd.CreateEvent(event_type=kfd.KFD_IOC_EVENT_SIGNAL))
  for area in program.areas:
    if area.mapping is not None: area.mapping.close()
  program.doorbells.close()
  program.kfd.close()
  program.drm.close()
  census = program.computer.census()
  assert census["queues"] == 2 and census["events"] == 1 and census["buffers"] == census["ranges"] == len(program.areas)
  program.computer.end_process()
  assert program.computer.census() == {} and not program.computer.scheduler.actors

@pytest.mark.slow
def test_a_file_is_of_the_process_that_opened_it() -> None:
  program = Program()
  child = os.fork()
  if child == 0:
    try: program.call(kfd.GetVersion())
    except OSError as error: os._exit(error.errno or 0)
    os._exit(0)
  assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == errno.EBADF

@pytest.mark.parametrize("request_number,error", [(0x80084B7F, errno.ENOTTY), (0x80086401, errno.ENOTTY),
                                                  (0xC020_4B1C, errno.EINVAL)])
def test_unknown_calls(request_number: int, error: int) -> None:
  with pytest.raises(OSError) as caught: Program().kfd.ioctl(request_number, (ctypes.c_uint64 * 8)())
  assert caught.value.errno == error

@pytest.mark.parametrize("call,since", [(kfd.RuntimeEnable, (1, 13)), (kfd.ExportDmabuf, (1, 12))])
def test_older_kernels_have_fewer_calls(call: Any, since: tuple[int, int]) -> None:
  with pytest.raises(OSError) as caught: Program(version=(since[0], since[1] - 1)).call(call())
  assert caught.value.errno == errno.ENOTTY
  if call is kfd.RuntimeEnable: Program(version=since).call(call())

def test_structures_may_be_shorter_or_longer_than_the_kernels() -> None:
  program = Program()
  short = (ctypes.c_uint32 * 1)()
  program.kfd.ioctl(2 << 30 | 4 << 16 | ord("K") << 8 | 1, short)
  assert short[0] == kfd.VERSION[0]
  long = (ctypes.c_uint32 * 4)(9, 9, 9, 9)
  program.kfd.ioctl(2 << 30 | 16 << 16 | ord("K") << 8 | 1, long)
  assert list(long) == [*kfd.VERSION, 9, 9]

def test_clocks_go_on() -> None:
  program = Program()
  first, second = (program.call(kfd.GetClockCounters(gpu_id=program.gpu.gpu_id)) for _ in range(2))
  assert second.gpu_clock_counter >= first.gpu_clock_counter > 0 and first.system_clock_freq == 10**9

def test_apertures() -> None:
  program = Program(count=2)
  count = program.call(kfd.GetProcessAperturesNew()).num_of_nodes
  found = (kfd.ProcessDeviceApertures * count)()
  program.call(kfd.GetProcessAperturesNew(kfd_process_device_apertures_ptr=ctypes.addressof(found), num_of_nodes=count))
  assert [item.gpu_id for item in found] == [gpu.gpu_id for gpu in program.computer.gpus] and found[0].scratch_base

def test_the_runtime_is_enabled_once() -> None:
  program = Program()
  program.call(kfd.RuntimeEnable())
  program.call(kfd.RuntimeEnable(mode_mask=1))
  with pytest.raises(OSError, match="enabled already") as caught: program.call(kfd.RuntimeEnable(mode_mask=1))
  assert caught.value.errno == errno.EBUSY
  program.call(kfd.RuntimeEnable())
  program.call(kfd.RuntimeEnable(mode_mask=1))

def test_retry_of_faults_is_off() -> None:
  program = Program()
  assert program.call(kfd.SetXnackMode(xnack_enabled=0xFFFFFFFF)).xnack_enabled == 0
  with pytest.raises(OSError, match="no retry") as caught: program.call(kfd.SetXnackMode(xnack_enabled=1))
  assert caught.value.errno == errno.EPERM
  program.queue()
  with pytest.raises(OSError, match="there are queues") as caught: program.call(kfd.SetXnackMode(xnack_enabled=0))
  assert caught.value.errno == errno.EBUSY

@pytest.mark.parametrize("offset,number", [(1 << 62, errno.EFAULT), (3 << 62, errno.EINVAL), (2 << 62, errno.EINVAL)])
def test_offsets_of_mmap(offset: int, number: int) -> None:
  with pytest.raises(OSError) as caught: Program().kfd.mmap(8192, offset, 0, READ_WRITE, MAP_SHARED)
  assert caught.value.errno == number

def test_computers_share_nothing() -> None:
  first, second = Program(), Program()
  assert isinstance(first.computer, GpuHost)
  first.allocate(PAGE)
  assert "buffers" in first.computer.census() and "buffers" not in second.computer.census()

# **** two processes on one computer ****

def test_processes_have_address_spaces_of_their_own() -> None:
  """The same addresses are other memory, handles and events of one are not the other's, and each binds a GPU once."""
  one = Program()
  other = Program(beside=one)
  place = 0x10_0000_0000
  first, second = (program.allocate(PAGE, address=place) for program in (one, other))
  first.mapping.store32(0, 1)
  second.mapping.store32(0, 2)
  assert [program.gpu.port.load(place, 4)[0] for program in (one, other)] == [1, 2]
  lone = other.allocate(PAGE)
  with pytest.raises(OSError, match="no buffer") as caught: one.call(kfd.FreeMemoryOfGpu(handle=lone.handle))
  assert caught.value.errno == errno.EINVAL
  event = one.call(kfd.CreateEvent(event_type=kfd.KFD_IOC_EVENT_SIGNAL))
  with pytest.raises(OSError, match="no event"): other.call(kfd.SetEvent(event_id=event.event_id))
  queue = one.queue()
  with pytest.raises(OSError, match="no queue"): other.call(kfd.DestroyQueue(queue_id=queue.request.queue_id))
  one.call(kfd.RuntimeEnable(mode_mask=1))
  other.call(kfd.RuntimeEnable(mode_mask=1))
  one.call(kfd.DestroyEvent(event_id=event.event_id))
  assert other.close() == {}

def test_a_process_that_is_killed_leaves_nothing_and_the_other_goes_on() -> None:
  one = Program("gfx942")
  other = Program(beside=one)
  for kind in (0, 2, SDMA): other.queue(kind)
  other.call(kfd.CreateEvent(event_type=kfd.KFD_IOC_EVENT_SIGNAL))
  shared = other.allocate(PAGE)
  other.call(kfd.ExportDmabuf(handle=shared.handle))
  waits, signal, queue = other.allocate(PAGE), one.allocate(PAGE), one.queue()
  ring = other.queue()
  ring.submit(other.wait(waits.address, 1), other.release(waits.address, 2))
  one.settle()
  actors = len(one.computer.scheduler.actors)
  other.computer.kill()
  assert other.computer.census() == {} and len(one.computer.scheduler.actors) < actors and not other.gpu.table.ranges
  with pytest.raises(OSError) as caught: other.call(kfd.GetVersion())
  assert caught.value.errno == errno.EBADF
  queue.submit(one.release(signal.address, 7))
  one.settle()
  assert signal.mapping.load64(0) == 7
  one.computer.kill()
  assert one.computer.physical.allocated == one.gpu.vram_used == 0 and not one.computer.scheduler.actors
