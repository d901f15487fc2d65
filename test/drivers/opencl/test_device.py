"""One device: order, waits, its loss; on a stand-in for the library, and on a device of this machine if there is one.
"""
import os
import struct
import threading
import time

import pytest
from generators.program_builder import convert, memory_for, same_memory
from opencl import pocl
from opencl.fake_opencl import facts

from tinyhw import Tensor, TinyJit
from tinyhw.codegen.render import compile_source
from tinyhw.config import Context
from tinyhw.device import Launch
from tinyhw.drivers.opencl.device import MOST_FLYING
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError, DeviceError, DriverError
from tinyhw.machine.ir.code import Code
from tinyhw.uop.evaluate.evaluate import evaluate
from test.drivers.opencl.conftest import Opener, code

def test_facts_and_close(fake: Opener) -> None:
  library, device = fake(facts("Card", DEVICE_DOUBLE_FP_CONFIG=0))
  assert device.facts() == {"arch": "opencl", "threads": 64, "local_bytes": 32 << 10, "memory_limit": 1 << 30,
                            "processor": "Card of Fakes, GPU, 4 compute units, driver 7"}
  device.allocator.free(device.allocator.alloc(100))
  device.close()
  assert "memory" not in library.objects.values()

def test_a_device_that_fails_to_open_keeps_nothing(fake: Opener) -> None:
  library, _ = fake()
  before = dict(library.objects)
  library.failing["clCreateCommandQueue"] = (2, -6)
  from tinyhw.drivers import opencl
  with pytest.raises(DriverError, match="OUT_OF_HOST_MEMORY"): opencl.open(0, lambda name: None)  # type: ignore
  assert library.objects == before

def test_only_some_launches_are_under_way(fake: Opener) -> None:
  library, device = fake()
  a, program = device.allocator.alloc(64), device.load(code())
  for _ in range(3): device.submit([Launch(program, [a], [1], 2)] * MOST_FLYING)
  assert sum(flight.launches for flight in device.flying) <= MOST_FLYING
  assert device.workgroups == 6 * MOST_FLYING and device.submitted == 3 * MOST_FLYING // 256
  device.synchronize()
  assert not device.flying and "event" not in library.objects.values()

def test_a_kernel_that_never_ends_loses_the_device(fake: Opener) -> None:
  library, device = fake()
  a, program, endless = device.allocator.alloc(64), device.load(code()), device.load(code("endless"))
  library.endless = "k_endless"
  device.submit([Launch(program, [a], [1], 2)])
  device.submit([Launch(endless, [a], [1], 2, line=("train.py", 7, "step"))])
  with Context(HCQDEV_WAIT_TIMEOUT_MS=30):
    with pytest.raises(DriverError, match=r"did not finish submission 2 in 0.03 s; it was at endless of train.py:7; a "
                       r"larger HCQDEV_WAIT_TIMEOUT_MS allows more time"):
      device.allocator.copyout(memoryview(bytearray(64)), a)
  for work in (device.synchronize, lambda: device.submit([Launch(program, [a], [1], 2)]),
               lambda: device.allocator.copyin(a, memoryview(bytes(64))), lambda: device.load(code())):
    with pytest.raises(DeviceError, match="OPENCL is lost since it did not finish submission 2 in 0.03 s"): work()
  device.allocator.free(a)
  device.close()

def test_the_deadline_is_that_of_one_submission(fake: Opener) -> None:
  """Ten submissions, of which each takes most of the time that one may take."""
  library, device = fake()
  a, program = device.allocator.alloc(64), device.load(code())
  library.ended = False
  for _ in range(10): device.submit([Launch(program, [a], [1], 2)])
  start = time.monotonic()
  ends = {flight.event: start + 0.05 * flight.number for flight in device.flying}
  def ask(event: int, asked: int, size: int, place: object, length: object) -> int:
    return library.answer(struct.pack("<i", int(time.monotonic() < ends[event])), size, place, length)
  library.clGetEventInfo = ask   # type: ignore[method-assign]
  with Context(HCQDEV_WAIT_TIMEOUT_MS=250): device.synchronize()
  assert not device.flying and device.lost is None

def test_a_kernel_that_fails_loses_the_device(fake: Opener) -> None:
  library, device = fake()
  a, program = device.allocator.alloc(64), device.load(code("broken"))
  library.faults = "k_broken"
  device.submit([Launch(program, [a], [1], 2)])
  with pytest.raises(DriverError, match=r"\(Example of Fakes\): submission 1 \(broken\): OUT_OF_RESOURCES \(-5\)"):
    device.synchronize()
  with pytest.raises(DeviceError, match="OPENCL is lost since it failed at submission 1"): device.synchronize()

def test_a_mistake_in_a_later_launch_leaves_the_earlier_ones_under_way(fake: Opener) -> None:
  library, device = fake()
  a, program = device.allocator.alloc(64), device.load(code())
  with pytest.raises(DeviceError, match="buffer 0: None is not allocated memory"):
    device.submit([Launch(program, [a], [1], 2), Launch(program, [None], [1], 2)])
  assert [flight.launches for flight in device.flying] == [1] and len(library.kernels) == 1
  device.submit([Launch(program, [a], [2], 2)])
  device.synchronize()
  assert device.submitted == 2 and "event" not in library.objects.values()

def test_a_copy_and_a_start_that_fail(fake: Opener) -> None:
  library, device = fake()
  a = device.allocator.alloc(64)
  library.failing["clEnqueueReadBuffer"] = (1, -5)
  with pytest.raises(DriverError, match="clEnqueueReadBuffer: OUT_OF_RESOURCES"):
    device.allocator.copyout(memoryview(bytearray(64)), a)
  with pytest.raises(DeviceError, match="is lost since it failed to copy 64 bytes"): device.synchronize()
  library, device = fake()
  a, program = device.allocator.alloc(64), device.load(code())
  library.failing["clEnqueueNDRangeKernel"] = (3, -4)
  with pytest.raises(DriverError, match=r"starting kernel example: MEM_OBJECT_ALLOCATION_FAILURE \(-4\); drop refer"):
    device.submit([Launch(program, [a], [1], 2)] * 4)
  assert len(library.kernels) == 2 and [flight.launches for flight in device.flying] == [2]
  library.failing.clear()   # what did not start harms nothing
  device.submit([Launch(program, [a], [1], 2)])
  device.synchronize()

def test_garbage_of_another_thread_waits_for_the_lock(fake: Opener) -> None:
  library, device = fake()
  programs = [device.load(code())]
  with device.lock:
    thread = threading.Thread(target=programs.clear)
    thread.start()
    thread.join(10)
    assert not thread.is_alive() and "program" in library.objects.values()
  device.submit([])
  device.synchronize()
  device.make("clCreateBuffer", 1, 8, None)
  assert "program" not in library.objects.values()

def test_a_copied_process_has_no_device(fake: Opener) -> None:
  _, device = fake()
  device.after_fork(False)
  device.synchronize()
  device.after_fork(True)
  with pytest.raises(DeviceError, match='OpenCL cannot be used after a fork: start processes with "spawn"'):
    device.synchronize()

# ***** on a device of this machine *****

def test_tensors_and_captured_steps() -> None:
  pocl.opened()
  @TinyJit
  def step(x: Tensor) -> Tensor: return ((x * 2 + 1).softmax(1) @ x).realize()
  for k in range(4):
    x = Tensor([[0.5 * k + i + j for j in range(40)] for i in range(40)], device="OPENCL").realize()
    wanted = ((x.to("PYTHON") * 2 + 1).softmax(1) @ x.to("PYTHON")).tolist()
    for a, b in zip(step(x).tolist(), wanted): assert a == pytest.approx(b, rel=1e-5)

def test_times_of_a_device_are_in_order() -> None:
  device = pocl.opened()
  source = (b"__kernel void k_fill(__global uchar *m, long o, long n) {"
            b"((__global int *)(m + o))[get_global_id(0)] = n; }")
  program = device.load(Code("fill", "opencl", source, ("buffer", "int64"), lanes=16))
  a = device.allocator.alloc(1 << 16)
  times = device.submit_timed([Launch(program, [a], [k], 1024) for k in range(3)])
  assert all(start <= end for start, end in times) and times[0][1] <= times[1][0] <= times[2][0]
  out = bytearray(1 << 16)
  device.allocator.copyout(memoryview(out), a)
  assert set(memoryview(out).cast("i")) == {2}
  device.allocator.free(a)

def test_kernels_of_a_schedule_are_compiled_together() -> None:
  """Three kernels with one name, and functions that two of them need."""
  device = pocl.opened()
  programs = [convert(dtypes.float32, dtypes.uint64, 8), convert(dtypes.float32, dtypes.int64, 8),
              convert(dtypes.float64, dtypes.float32, 8)]
  loaded = device.load_all([compile_source(program, "opencl:fp64") for program in programs])
  assert len({program.built for program in loaded}) == 1 and {program.name for program in loaded} == {"convert"}
  for program, kernel in zip(loaded, programs):
    memory = memory_for(kernel)
    buffers = [device.allocator.alloc(len(memory[slot])) for slot in (0, 1)]
    device.allocator.copyin(buffers[1], memoryview(memory[1]))
    device.submit([Launch(program, buffers, (), 8)])
    again = {0: bytearray(len(memory[0])), 1: memory[1]}
    device.allocator.copyout(memoryview(again[0]), buffers[0])
    evaluate(kernel, memory)
    same_memory(kernel, memory, again)

def test_the_compiler_says_which_line_is_wrong() -> None:
  device = pocl.opened()
  with pytest.raises(CompileError, match=r"failed on kernel bad: clBuildProgram: BUILD_PROGRAM_FAILURE(.|\n)*nowhere"):
    device.load(Code("bad", "opencl", b"__kernel void k_bad() { nowhere = 1; }", ()))
  assert (Tensor([1, 2], device="OPENCL") + 1).tolist() == [2, 3] and os.getpid()
