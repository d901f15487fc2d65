"""The device that the vendor's library drives, on a stand-in for the library."""
import ctypes
import errno
import os
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from nvidia.fake_cuda import FakeCuda, Loaded
from nvidia.box import code

from tinyhw.config import Context
from tinyhw.device import Device, Launch
from tinyhw.drivers import nvidia
from tinyhw.drivers.linux import files
from tinyhw.drivers.nvidia import cuda, rm
from tinyhw.emulator.nvidia.card.computer import GpuHost
from tinyhw.errors import DeviceError, DriverError, OutOfMemory

Opener = Callable[..., tuple[FakeCuda, cuda.CudaDevice]]

@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Opener]:
  def make(order: str = "", **arguments) -> tuple[FakeCuda, cuda.CudaDevice]:
    made = FakeCuda(**arguments)
    monkeypatch.setattr(cuda, "load_library", lambda: Loaded(made))
    monkeypatch.setattr(cuda, "_library", [])
    monkeypatch.setenv("CUDA_DEVICE_ORDER", order)
    if not order: monkeypatch.delenv("CUDA_DEVICE_ORDER")
    return made, cuda.open(0, lambda name: None)  # type: ignore[arg-type,return-value]
  with Context(EMULATE=""): yield make

def test_numbers_go_by_the_place_on_the_bus(fake: Opener) -> None:
  """The C library's environment tells the library before it starts, and a user's choice is kept."""
  assert fake()[0].order == b"PCI_BUS_ID" == os.environb[b"CUDA_DEVICE_ORDER"]
  assert fake(order="FASTEST_FIRST")[0].order == b"FASTEST_FIRST"

def test_virtual_gpus_have_no_vendors_library(fake: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
  """The library would open a real GPU. If the kernel driver refuses, its message is shown."""
  library, _ = fake()
  begun = library.calls["cuDeviceGetCount"]
  computer = GpuHost("sm_90", ["sm_90"])
  monkeypatch.setattr(nvidia, "machine", lambda: computer)
  with Context(EMULATE="sm_90"):
    with pytest.raises(DeviceError, match="EMULATE=sm_90: virtual GPUs have no vendor's library; unset EMULATE, or "
                       "use DEV=NV"):
      cuda.open(0, lambda name: None)  # type: ignore[arg-type,return-value]
    computer.fail("RmAlloc", 1, errno.EPERM)
    with pytest.raises(DriverError, match="operation not permitted"):
      nvidia.open(0, lambda name: None)  # type: ignore[arg-type,return-value]
  assert library.calls["cuDeviceGetCount"] == begun
  rm.forget(computer)

def test_bytes_launches_and_what_is_given_back(fake: Opener) -> None:
  library, device = fake()
  data, out = bytes(range(256)) * 40, bytearray(10240)
  a, program = device.allocator.alloc(10240), device.load(code())
  device.allocator.copyin(a, memoryview(data))
  device.allocator.copyout(memoryview(out), a)
  assert out == data and device.arch == "sm_90" and device.name == "NV:CUDA"
  device.submit([Launch(program, [a], [-5], 3), Launch(program, [a], [6], 0),
                 Launch(program, [device.allocator.offset(a, 8, 16)], [7], 9)])
  device.synchronize()
  assert library.kernels == [("example", 3, 64, [a.address, -5]), ("example", 9, 64, [a.address + 16, 7])]
  device.allocator.free(a)
  del program
  device.close()
  assert not library.memory and not library.modules and not library.events

def test_tensor_maps_are_in_memory_of_the_card(fake: Opener) -> None:
  """They are written before the launch, if the addresses have changed."""
  library, device = fake()
  maps = (0, (64).to_bytes(8, "little") + bytes(range(120))), (0, bytes(128))
  program, a, b = device.load(code(descriptors=maps)), device.allocator.alloc(1000), device.allocator.alloc(1000)
  for buffer in (a, a, b):
    device.submit([Launch(program, [buffer], [5], 3)])
    data = bytearray(256)
    device.allocator.copyout(memoryview(data), program.maps)
    assert ([int.from_bytes(data[k:k + 8], "little") - buffer.address for k in (0, 128)] == [64, 0]
            and data[8:128] == bytes(range(120)))
  assert [kernel[3][1:] for kernel in library.kernels] == [[5, program.maps.address]] * 3

@pytest.mark.parametrize("compute, most", [((8, 0), 166912), ((8, 9), 101376), ((9, 0), 232448)])
def test_shared_memory_is_dynamic(fake: Opener, compute: tuple[int, int], most: int) -> None:
  """The library takes at most 48 KiB of static memory. It takes more dynamic memory if the sum fits the card."""
  library, device = fake(compute=compute)
  for size in (0, 1000, 48 << 10, (48 << 10) + 4, most):
    program = device.load(code(device.arch, arguments=(), local_bytes=size))
    device.submit([Launch(program, [], [], 1)])
    assert library.shared[-1] == size and library.calls["cuFuncSetAttribute"] == (0 if size <= 48 << 10
                                                                                  else 1 + (size == most))
  with pytest.raises(DriverError, match="error number 1"): device.load(code(device.arch, local_bytes=most + 4))

def test_recordings_and_times(fake: Opener) -> None:
  library, device = fake()
  a, program = device.allocator.alloc(100), device.load(code())
  recording = device.record([Launch(program, [a], [1], 2)])
  recording.patch(0, 1, 9)
  recording.patch_grid(0, 5)
  recording.submit()
  assert library.kernels == [("example", 5, 64, [a.address, 9])]
  times = device.submit_timed([Launch(program, [a], [1], 2)] * 3)
  assert [end - begin for begin, end in times] == [1_000_000] * 3

def test_what_is_wrong_is_told(fake: Opener) -> None:
  library, device = fake()
  a, program = device.allocator.alloc(100), device.load(code())
  for launch, said in ((Launch(program, [], [1]), "takes 1 buffers and 1 variables"),
                       (Launch(program, [a], [1], -1), "a grid of -1"),
                       (Launch(program, [a], [1 << 70], 1), "64-bit integers"),
                       (Launch("x", [a], [1], 1), "cannot launch 'x'")):
    with pytest.raises(DeviceError, match=said): device.submit([launch])
  with pytest.raises(DeviceError, match="is for sm_80, device NV:CUDA is sm_90"): device.load(code("sm_80"))
  with pytest.raises(OutOfMemory): device.allocator.alloc(1 << 33)
  with pytest.raises(DeviceError, match="there is no GPU number 1"):
    cuda.open(1, lambda name: None)  # type: ignore[arg-type,return-value]
  with pytest.raises(DeviceError, match="Stand-in is sm_70, and kernels are made for sm_80, sm_86, sm_89, sm_90 "):
    fake(compute=(7, 0))
  with pytest.raises(DeviceError, match="Stand-in is of the kind sm_100, for which nothing compiles here yet"):
    fake(compute=(10, 0))

def test_a_kernel_that_fails_loses_the_device(fake: Opener) -> None:
  library, device = fake()
  library.failing["cuEventQuery"] = (0, 700)
  with pytest.raises(DriverError, match="error number 700"): device.synchronize()
  with pytest.raises(DeviceError, match="NV:CUDA is lost since it ran a kernel that failed .*start"):
    device.load(code())
  device.close()

def test_a_kernel_that_never_ends_loses_the_device_at_the_deadline(fake: Opener) -> None:
  """The message is that of our own driver (test/drivers/gpu/test_device.py).

  The stand-in fails a call that would wait for the kernel.
  """
  library, device = fake()
  a, b, out = device.allocator.alloc(64), device.allocator.alloc(64), bytearray(64)
  program, endless, other = device.load(code()), device.load(code(name="endless")), device.load(code(name="other"))
  library.endless = "endless"
  device.submit([Launch(program, [a], [1], 1)])
  device.submit([Launch(other, [a], [1], 1), Launch(endless, [a], [1], 1)])
  device.submit([Launch(program, [a], [1], 1)])
  with Context(HCQDEV_WAIT_TIMEOUT_MS=20), pytest.raises(DriverError) as caught:
    device.allocator.copyout(memoryview(out), a)
  assert caught.value.message == (
    "NV:CUDA (sm_90) did not finish submission 3 in 0.02 s\n  submission 1 is the last one that it has done, 3 was "
    "submitted last\n"
    "  submission 2, which it was at: other, endless\n"
    "  the kernel's log (dmesg) may tell more; with EMULATE=sm_90 DEV=NV a virtual GPU runs the same and names the "
    "instruction")
  for call in (lambda: device.submit([Launch(program, [a], [1], 1)]), lambda: device.load(code()),
               lambda: device.allocator.alloc(9 << 20),
               lambda: device.allocator.copyin(a, memoryview(bytes(10))), device.synchronize):
    with pytest.raises(DeviceError, match="NV:CUDA is lost since it did not finish submission 3 .*use another device"):
      call()
  device.allocator.free(b)
  device.allocator.free_cache()
  del other
  device.close()

@pytest.mark.parametrize("wait", (
  lambda device, a: device.synchronize(), lambda device, a: device.close(), lambda device,
  a: device.allocator.copyin(a, memoryview(bytes(64))),
  lambda device, a: device.allocator.alloc(1 << 20), lambda device, a: device.load(code()), lambda device,
  a: device.allocator.free_cache(),
  lambda device, a: device.allocator.transfer(a, a, 64), lambda device, a: device.allocator.external(a.address, 64),
  lambda device, a: device.submit_timed([Launch(device.load(code()), [a], [1], 1)])),
  ids=("synchronize", "close", "copyin", "alloc", "load", "free_cache", "transfer", "external", "submit_timed"))
def test_nothing_waits_without_a_deadline(fake: Opener,
                                          wait: Callable[[cuda.CudaDevice, cuda.CudaMemory], object]) -> None:
  library, device = fake()
  a, endless = device.allocator.alloc(64), device.load(code(name="endless"))
  device.allocator.free(device.allocator.alloc(1000))
  library.endless = "endless"
  device.submit([Launch(endless, [a], [1], 1)])
  with Context(HCQDEV_WAIT_TIMEOUT_MS=5), pytest.raises(DriverError, match=r"did not finish submission 1 in 0.005 "
                                                        r"s\n.*\n.*was at: endless"):
    wait(device, a)

def test_a_device_is_not_told_of_more_than_the_library_has_room_for(fake: Opener) -> None:
  library, device = fake()
  a, endless = device.allocator.alloc(64), device.load(code(name="endless"))
  for k in range(40): device.submit([Launch(endless, [a], [k], 1)] * 100)
  assert len(library.kernels) == 4000
  library.endless = "endless"
  with Context(HCQDEV_WAIT_TIMEOUT_MS=5), pytest.raises(DriverError, match="did not finish submission 41 in"):
    for k in range(2000): device.submit([Launch(endless, [a], [k], 1)])

def test_garbage_waits_for_nothing(fake: Opener) -> None:
  """Resources that finalizers free while a kernel runs are freed when all is done."""
  library, device = fake()
  a, endless, program = device.allocator.alloc(64), device.load(code(name="endless")), device.load(code())
  own = (ctypes.c_char * 100)()
  part = device.allocator.external(ctypes.addressof(own), 100)
  library.endless = "endless"
  device.submit([Launch(endless, [a], [1], 1)])
  del program, part
  assert len(library.modules) == 2 and library.registered
  library.behind, library.endless = 0, ""
  library.late.clear()
  device.synchronize()
  assert len(library.modules) == 1 and not library.registered

def test_garbage_waits_for_no_lock(fake: Opener) -> None:
  """A finalizer runs under any locks of its thread. The allocator's lock may belong to another thread."""
  _, device = fake()
  program, held, enough, over = device.load(code(descriptors=((0, bytes(128)),
                                                              ))), threading.Event(), threading.Event(), list[bool]()
  def hold() -> None:
    with device.allocator.lock:
      held.set()
      over.append(enough.wait(1))
  thread = threading.Thread(target=hold)
  thread.start()
  held.wait()
  del program
  enough.set()
  thread.join()
  assert over == [True], "the kernel's memory was given back before the lock was free"

def test_what_others_run_in_the_context_is_waited_for_with_the_deadline(fake: Opener) -> None:
  """The others are another library of the process, or this device before it was closed and opened again."""
  library, device = fake()
  a = device.allocator.alloc(64)
  library.behind = 1
  with Context(HCQDEV_WAIT_TIMEOUT_MS=5), pytest.raises(DriverError, match="did not finish what this process told it "
                                                        "in 0.005 s"):
    device.allocator.copyin(a, memoryview(bytes(64)))

def test_what_is_done_at_the_deadline_is_done(fake: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
  """A program that was suspended past the deadline polls once more before it gives the GPU up."""
  _, device = fake()
  monkeypatch.setattr(cuda, "wait_until", lambda *arguments: False)
  device.synchronize()

def test_a_wait_sleeps_for_longer_and_longer(fake: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
  library, device = fake()
  now, slept = [100.0], list[float]()
  def sleep(seconds: float) -> None:
    slept.append(seconds)
    now[0] += seconds
  def monotonic() -> float:
    now[0] += 0.0001
    return now[0]
  monkeypatch.setattr(time, "sleep", sleep)
  monkeypatch.setattr(time, "monotonic", monotonic)
  library.behind = 1
  with pytest.raises(DriverError, match="in 30 s"): device.synchronize()
  assert slept[:100] == sorted(slept[:100]) and 0 < slept[0] < 0.0005 and max(slept) == 0.005

def test_memory_of_the_program_and_of_other_gpus(fake: Opener) -> None:
  library, first = fake(count=2)
  second = cuda.open(1, lambda name: None)  # type: ignore[arg-type,return-value]
  own = (ctypes.c_char * 100)(*b"x" * 100)
  part, a, out = first.allocator.external(ctypes.addressof(own), 100), second.allocator.alloc(100), bytearray(100)
  assert (second.name == "NV:CUDA:1" and second.allocator.transfer(a, part, 100)
          and not second.allocator.transfer(a, object(), 100))
  second.allocator.copyout(memoryview(out), a)
  assert out == b"x" * 100 and library.registered
  del part
  assert not library.registered

@pytest.mark.parametrize("call", ("open", "mmap", "CardInfo", "RegisterFd", "GetClassList", "UvmInitialize",
                                  "UvmRegisterGpu", "UvmMapExternal",
                                  "RmMapMemory", "GetWorkSubmitToken", "UvmRegisterChannel"))
@pytest.mark.parametrize("number", (errno.EPERM, errno.EINVAL), ids=errno.errorcode.get)
def test_a_sandbox_that_does_not_know_a_call(fake: Opener, monkeypatch: pytest.MonkeyPatch, call: str,
                                             number: int) -> None:
  """The library takes over, and finds the GPU free. It is a client of its own, so we must not keep the GPU reserved."""
  fake()
  computer = GpuHost("sm_90", ["sm_90"])
  monkeypatch.setattr(files, "COMPUTER", computer)
  with Context(EMULATE=""):
    computer.fail(call, 1, number)
    device = nvidia.open(0, lambda name: None)  # type: ignore[arg-type,return-value]
    assert isinstance(device,
                      cuda.CudaDevice) and f"CUDA 12.8, since {device.instead}" in device.facts()["kernel_interface"]
    assert errno.errorcode[number] in device.instead
    assert computer.gpus[0].reserved is None and computer.gpus[0].vram_used == 0
    rm.forget(computer)
    assert computer.census() == {}

def test_what_the_resource_manager_answers_is_no_sandbox(fake: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
  fake()
  computer = GpuHost("sm_90", ["sm_90"])
  monkeypatch.setattr(files, "COMPUTER", computer)
  with Context(EMULATE=""):
    computer.fail("GetClassList", 1, rm.Status.INVALID_ARGUMENT)
    with pytest.raises(DriverError, match="GetClassList: NVIDIA's driver answers invalid argument"):
      nvidia.open(0, lambda name: None)  # type: ignore[arg-type,return-value]
    rm.forget(computer)

def test_it_is_a_device_of_its_own_and_the_way_out(fake: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
  """If a container denies programs the kernel driver's calls, NV uses the library. If nothing helps, the first refusal
  is shown."""
  fake()
  assert [Device.canonicalize(name) for name in ("nv:cuda", "NV:CUDA:0", "cuda:cuda:2")] == ["NV:CUDA", "NV:CUDA",
                                                                                             "NV:CUDA:2"]
  computer = GpuHost("sm_90", ["sm_90"])
  monkeypatch.setattr(files, "COMPUTER", computer)
  with Context(EMULATE=""):
    computer.fail("RmAlloc", 1, errno.EPERM)
    device = nvidia.open(0, lambda name: None)  # type: ignore[arg-type,return-value]
    assert isinstance(device, cuda.CudaDevice) and device.name == "NV"
    del computer.texts["/sys/module/nvidia/version"]
    node = computer.nodes.pop("/dev/nvidiactl")
    computer.nodes["/dev/dxg"] = lambda: None   # type: ignore[assignment,return-value]
    assert isinstance(nvidia.open(0, lambda name: None),
                      cuda.CudaDevice), "Windows' driver"  # type: ignore[arg-type,return-value]
    computer.nodes["/dev/nvidiactl"] = node
    computer.fail("RmAlloc", 1, errno.EPERM)
    monkeypatch.setattr(cuda, "_library", [])
    def missing() -> None: raise DeviceError("no library")
    monkeypatch.setattr(cuda, "load_library", missing)
    with pytest.raises(DriverError, match="making a client: operation not permitted"):
      nvidia.open(0, lambda name: None)  # type: ignore[arg-type,return-value]
  rm.forget(computer)
