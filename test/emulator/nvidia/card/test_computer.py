"""Files: refusals, as by the kernel's driver."""
import ctypes
import errno
import os

import pytest
from gpu.processes import User

from tinyhw.autogen.nvidia import methods
from tinyhw.autogen.nvidia.rm import BRANCHES, ROOT, Status, Version, structures
from tinyhw.drivers.linux.files import Refused
from tinyhw.drivers.nvidia.card import HOST, RING
from tinyhw.emulator.errors import DoorbellError, PageFault
from tinyhw.emulator.nvidia.card.computer import GpuHost

VERSIONS = [(535, 288, 1), (550, 40, 7), *((branch, 90, 7) for branch in BRANCHES[2:])]

def open_file(computer: GpuHost, path: str): return computer.open(path, os.O_RDWR)

def refused(number: int): return pytest.raises(OSError, match=os.strerror(number))

def test_calls_have_the_size_of_this_version() -> None:
  computer = GpuHost("sm_90", ["sm_90"])
  control, s = open_file(computer, "/dev/nvidiactl"), computer.structures
  with refused(errno.EINVAL): control.ioctl(s.RmAlloc.REQUEST + (8 << 16), (ctypes.c_char * 64)())
  with refused(errno.EINVAL): control.ioctl(0xC0044699, (ctypes.c_char * 64)())
  with refused(errno.EINVAL): control.ioctl(s.CheckVersion.REQUEST, s.CheckVersion())
  version = s.CheckVersion(cmd=ord("2"))
  control.ioctl(s.CheckVersion.REQUEST, version)
  assert bytes(version.versionString).rstrip(b"\0") == b"580.142"
  control.close()
  with refused(errno.EBADF): control.ioctl(s.CheckVersion.REQUEST, version)

@pytest.mark.parametrize("version, older", list(zip(VERSIONS[1:], VERSIONS)),
                         ids=lambda version: ".".join(map(str, version)))
def test_structures_of_the_version_before_are_refused(version: Version, older: Version) -> None:
  """Calls and controls are refused by their size. UVM's calls do not tell it; they are refused where the kernel would
  read past the end.
  """
  computer = GpuHost("sm_90", ["sm_90"], version=version)
  control, uvm = open_file(computer, "/dev/nvidiactl"), open_file(computer, "/dev/nvidia-uvm")
  new, old = computer.structures, structures(older)
  uvm.ioctl(new.UvmInitialize.REQUEST, new.UvmInitialize())
  root = new.RmAlloc(hClass=ROOT)
  control.ioctl(new.RmAlloc.REQUEST, root)
  for number, (own, _) in computer.objects.controls.items():
    parameters = getattr(old, own.__name__)()
    if ctypes.sizeof(parameters) == ctypes.sizeof(own): continue
    request = new.RmControl(hClient=root.hObjectNew, hObject=root.hObjectNew, cmd=number,
                            params=ctypes.addressof(parameters),
                            paramsSize=ctypes.sizeof(parameters))
    control.ioctl(new.RmControl.REQUEST, request)
    assert request.status == Status.INVALID_ARGUMENT, own.__name__
  for number, (own, _) in uvm.calls.items():
    parameters = getattr(old, own.__name__)()
    if ctypes.sizeof(parameters) >= ctypes.sizeof(own): continue
    with refused(errno.EFAULT): uvm.ioctl(number, parameters)

def test_unified_memory_is_initialized_first() -> None:
  computer = GpuHost("sm_90", ["sm_90"])
  uvm, s = open_file(computer, "/dev/nvidia-uvm"), computer.structures
  with refused(errno.EPERM): uvm.ioctl(s.UvmRegisterGpu.REQUEST, s.UvmRegisterGpu())
  with refused(errno.EINVAL): uvm.ioctl(9999, s.UvmRegisterGpu())

def test_a_card_is_bound_to_one_client_and_mapped_once() -> None:
  computer = GpuHost("sm_90", ["sm_90"])
  control, card, s = open_file(computer, "/dev/nvidiactl"), open_file(computer, "/dev/nvidia0"), computer.structures
  with refused(errno.EINVAL): card.ioctl(s.RegisterFd.REQUEST, s.RegisterFd(ctl_fd=card.fileno()))
  card.ioctl(s.RegisterFd.REQUEST, s.RegisterFd(ctl_fd=control.fileno()))
  with refused(errno.EINVAL): card.ioctl(s.RegisterFd.REQUEST, s.RegisterFd(ctl_fd=control.fileno()))
  with refused(errno.EINVAL): card.mmap(4096, 0, 0, 3, 1)

def test_a_client_ends_with_its_file(opened) -> None:
  computer, device = opened("sm_90")
  assert computer.census()["objects"] > 10
  device.close()
  computer.end_process()
  assert "objects" not in computer.census() and "ranges" not in computer.census()
  device.card.connection.undo.pop_all()
  for node in (*[mapping for mapping in list(computer.mappings)], *list(computer.descriptors.values())): node.close()
  device.card.connection.cards.clear()

def test_processes_share_the_cards_and_nothing_else(opened) -> None:
  """Memory that one process has is missing for the other. An error of one stops only its own channels. A killed process
  leaves nothing."""
  computer, device = opened("sm_90")
  user = User(computer.process())
  other, second = user.box, user.device
  assert other.gpus is computer.gpus and not set(other.engines.channels) & set(computer.engines.channels)
  assert (other.gpus[0].vram_used > 0 and other.census()["bytes"] + computer.census()["bytes"]
          == computer.physical.allocated)
  with pytest.raises(DoorbellError, match="no channel's token"):
    second.doorbell.store32(methods.USERMODE_DOORBELL, device.compute.token)
  channel = computer.engines.channels[device.compute.token].channel
  computer.engines.fail(channel, 31, PageFault(0x1000, True))
  assert device.compute.error() == 31 and second.compute.error() == 0
  assert not any(processor.stopped for processor in other.engines.channels.values())
  before = computer.census()
  user.kill()
  assert other.census() == {} and computer.census() == before and computer.physical.allocated == before["bytes"]

def test_host_memory_is_mapped_through_the_control_device(opened) -> None:
  """The real driver checks where the memory is. Host memory needs a file of the control device, the GPU's own memory
  and registers need a file of the card."""
  computer, device = opened("sm_90")
  connection, card, s = device.card.connection, device.card, computer.structures
  for kind, right, wrong in ((HOST, "/dev/nvidiactl", "/dev/nvidia0"), (RING, "/dev/nvidia0", "/dev/nvidiactl")):
    memory = card.allocate(4096, kind, "some")
    for path, goes in ((wrong, False), (right, True)):
      file = open_file(computer, path)
      if path == "/dev/nvidia0": file.ioctl(s.RegisterFd.REQUEST, s.RegisterFd(ctl_fd=connection.node.fileno()))
      request = s.RmMapMemory(hClient=connection.root, hDevice=card.device, hMemory=memory.handle, length=4096,
                              fd=file.fileno())
      if goes: connection.call(request)
      else:
        with pytest.raises(Refused, match="RmMapMemory: NVIDIA's driver answers invalid argument"):
          connection.call(request)
      file.close()
    memory.close()

def test_unified_memory_holds_the_process_s_memory_by_a_second_file() -> None:
  """Once, for a file that has begun. Without it no address space is registered, so the driver does it before the first
  one."""
  computer = GpuHost("sm_90", ["sm_90"])
  uvm, second, s = open_file(computer, "/dev/nvidia-uvm"), open_file(computer, "/dev/nvidia-uvm"), computer.structures
  def hold(file, other) -> int:
    request = s.UvmMmInitialize(uvmFd=other.fileno())
    file.ioctl(s.UvmMmInitialize.REQUEST, request)
    return request.rmStatus
  assert hold(second, uvm) == Status.INVALID_ARGUMENT
  uvm.ioctl(s.UvmInitialize.REQUEST, s.UvmInitialize())
  uvm.ioctl(s.UvmRegisterGpu.REQUEST, s.UvmRegisterGpu(gpu_uuid=(ctypes.c_uint8 * 16)(*computer.gpus[0].uuid)))
  control = open_file(computer, "/dev/nvidiactl")
  request = s.UvmRegisterVaSpace(gpuUuid=(ctypes.c_uint8 * 16)(*computer.gpus[0].uuid), rmCtrlFd=control.fileno())
  uvm.ioctl(s.UvmRegisterVaSpace.REQUEST, request)
  assert request.rmStatus == Status.PAGE_TABLE_NOT_AVAIL
  assert hold(uvm, uvm) == Status.INVALID_STATE and hold(second,
                                                         uvm) == Status.OK and hold(second, uvm) == Status.INVALID_STATE
  uvm.ioctl(s.UvmRegisterVaSpace.REQUEST, request)
  assert request.rmStatus == Status.INVALID_OBJECT_HANDLE
  second.close()
  assert not computer.uvm.held
