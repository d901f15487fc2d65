"""The connection: versions, statuses in words, each call failing in turn, the state after a fork."""
import errno
import os

import pytest
from gpu.processes import User
from nvidia.box import Note, code

from tinyhw.autogen.nvidia.rm import BRANCHES, Status
from tinyhw.config import Context
from tinyhw.device import Launch
from tinyhw.drivers import nvidia
from tinyhw.drivers.linux import files
from tinyhw.drivers.linux.files import Refused
from tinyhw.drivers.nvidia import rm
from tinyhw.emulator.nvidia.card.computer import GpuHost
from tinyhw.emulator.nvidia.card.gpu import ComputeMode
from tinyhw.errors import DeviceError, TinyError

@pytest.mark.parametrize("version", [*((branch, 90, 7) for branch in BRANCHES), (550, 40, 7)],
                         ids=lambda version: ".".join(map(str, version)))
def test_each_version_of_the_kernel_driver_is_spoken_to(opened, version: tuple[int, ...]) -> None:
  """Versions of a branch, and one that differs from its branch."""
  computer, device = opened("sm_90", version=version)
  Note(computer)
  program, a = device.load(code()), device.allocator.alloc(100)
  device.submit([Launch(program, [a], [1], 1)])
  device.synchronize()

def test_no_driver_and_unknown_versions_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
  computer = GpuHost("sm_90", ["sm_90"])
  monkeypatch.setattr(files, "COMPUTER", computer)
  computer.texts["/sys/module/nvidia/version"] = "610.12\n"
  with pytest.raises(DeviceError, match="version 610.12 of NVIDIA's kernel driver is not known: .* known are 535, .*; "
                     "install one of them"):
    rm.connect(computer)
  del computer.texts["/sys/module/nvidia/version"]
  node = computer.nodes.pop("/dev/nvidiactl")
  with pytest.raises(DeviceError, match="is not loaded .* nvidia-modprobe -u"): rm.connect(computer)
  with Context(EMULATE="gfx1100"), pytest.raises(DeviceError, match="EMULATE=gfx1100 has no NVIDIA GPU; .* "
                                                 "EMULATE=sm_90"):
    rm.connect(computer)
  computer.nodes["/dev/nvidiactl"] = node
  for number in (errno.ENXIO, errno.ENODEV):   # the module was unloaded
    computer.refused["/dev/nvidiactl"] = number
    with pytest.raises(DeviceError, match="is not loaded .* nvidia-modprobe -u"): rm.connect(computer)
  computer.refused.clear()
  computer.texts["/proc/driver/nvidia/version"] = ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  "
                                                   "550.163.01  Release Build\n")
  assert rm.version_of(computer) == (550, 163, 1)

def test_a_sandbox_with_nodes_and_without_files(opened) -> None:
  """The driver itself tells its version. A process without permission gets that message, and not that there is no
  driver."""
  computer, device = opened("sm_90", version=(550, 54, 14))
  for text in ("", "unknown"):
    computer.texts["/sys/module/nvidia/version"] = text
    assert rm.version_of(computer) == (550, 54, 14)
  before = computer.census()
  computer.fail("CheckVersion", 1, errno.EPERM)
  with pytest.raises(Refused, match="CheckVersion: operation not permitted"): rm.version_of(computer)
  computer.refused["/dev/nvidiactl"] = errno.EACCES
  with pytest.raises(Refused, match="opening /dev/nvidiactl: permission denied .*read and write access"):
    rm.version_of(computer)
  computer.refused.clear()
  assert computer.census() == before

def test_statuses_become_words() -> None:
  with pytest.raises(Refused, match="x: NVIDIA's driver answers no memory; drop references") as refused:
    rm.check("x", Status.NO_MEMORY)
  assert refused.value.errno == errno.ENOMEM
  with pytest.raises(Refused, match="status 0x7e; look into the kernel log"): rm.check("x", 0x7E)
  rm.check("x", 0)

def test_nodes_that_are_missing_or_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
  for path, number, said in (("/dev/nvidiactl", errno.ENOENT, "load the kernel's driver"),
                             ("/dev/nvidia-uvm", errno.ENOENT, "nvidia-modprobe -u"),
                             ("/dev/nvidia0", errno.EACCES, "read and write access"),
                             ("/dev/nvidia0", errno.EIO, "the GPU did not start")):
    computer = GpuHost("sm_90", ["sm_90"])
    monkeypatch.setattr(files, "COMPUTER", computer)
    computer.refused[path] = number
    with pytest.raises(TinyError, match=said): nvidia.open(0, lambda name: None)  # type: ignore[arg-type,return-value]
    rm.forget(computer)
    assert computer.census() == {}

def test_a_gpu_that_another_process_has_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
  computer = GpuHost("sm_90", ["sm_90"])
  monkeypatch.setattr(files, "COMPUTER", computer)
  computer.gpus[0].mode = ComputeMode.EXCLUSIVE_COMPUTE_PROCESS
  with Context(EMULATE=""):
    one, waits = User(computer), computer.process()
    for _ in range(2):
      with pytest.raises(DeviceError, match="the GPU at 0000:17:00.0 is kept from this process: another one has it "
                         ".*; wait for the other's end"):
        User(waits)
      one.device.close()  # a process keeps its GPUs until it ends
    one.close()
    other = User(waits)
    with pytest.raises(DeviceError, match="another one has it"): User(late := computer.process())
    other.kill()
    User(late).close()
  assert computer.gpus[0].reserved is None and not computer.processes and not computer.physical.allocated

def test_a_gpu_that_nobody_may_compute_on_and_one_that_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
  computer = GpuHost("sm_90", ["sm_90"])
  monkeypatch.setattr(files, "COMPUTER", computer)
  computer.gpus[0].mode = ComputeMode.COMPUTE_PROHIBITED
  with Context(EMULATE=""):
    with pytest.raises(DeviceError, match=r"nobody may compute on it \(prohibited\).*sudo nvidia-smi -i 0 -c DEFAULT"):
      User(computer)
    rm.forget(computer)
    for answer in (Status.NOT_SUPPORTED, Status.INVALID_COMMAND, errno.EPERM):
      computer.fail("AcquireComputeModeReservation", 1, answer)
      nvidia.open(0, lambda name: None).close()  # type: ignore[arg-type]
      rm.forget(computer)
  assert computer.census() == {}

def test_the_child_of_a_fork_has_no_gpu_and_may_open_it(opened) -> None:
  computer, device = opened("sm_90")
  if (child := os.fork()) == 0:
    status = 1
    try:
      device.after_fork(True)
      try: device.allocator.alloc(1 << 20)
      except DeviceError as error: status = 0 if "its child" in error.message else 2
    finally: os._exit(status)
  assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
  device.synchronize()

def test_where_unified_memory_does_without_the_process_s_memory(monkeypatch: pytest.MonkeyPatch) -> None:
  """Unified memory has nothing to do, or does not know the call. That is reported if an address space is refused
  because of it."""
  for injected, needed in ((Status.WARN_NOTHING_TO_DO, False), (errno.EINVAL, False), (Status.INVALID_STATE, True)):
    computer = GpuHost("sm_90", ["sm_90"])
    monkeypatch.setattr(files, "COMPUTER", computer)
    computer.uvm.held = not needed
    computer.fail("UvmMmInitialize", 1, injected)
    connection = rm.connect(computer)
    if needed:
      with pytest.raises(Refused, match="UvmMmInitialize: NVIDIA's driver answers invalid state"):
        nvidia.open_directly(0)
    else: assert nvidia.open_directly(0).arch == "sm_90"
    assert (connection.not_held is None) == (injected == Status.WARN_NOTHING_TO_DO)
    rm.forget(computer)
