"""Kernels and their arguments, recordings, and mistakes in launches."""
import gc

import pytest

from tinyhw.device import Launch
from tinyhw.drivers.opencl.launch import ClRecording
from tinyhw.errors import CompileError, DeviceError
from test.drivers.opencl.conftest import Opener, code

def test_arguments_are_memory_offset_and_variables(fake: Opener) -> None:
  library, device = fake()
  a, program = device.allocator.alloc(1024), device.load(code())
  device.submit([Launch(program, [a], [-5], 3), Launch(program, [device.allocator.offset(a, 8, 16)], [7], 9)])
  device.synchronize()
  assert library.kernels == [("k_example", 3, 64, [a.handle, 0, -5]), ("k_example", 9, 64, [a.handle, 16, 7])]
  before = library.calls["clSetKernelArg"]
  device.submit([Launch(program, [device.allocator.offset(a, 8, 16)], [8], 9)])
  assert library.calls["clSetKernelArg"] == before + 1   # what is equal is not set again

def test_recordings_keep_their_arguments(fake: Opener) -> None:
  library, device = fake()
  a, b, program = device.allocator.alloc(64), device.allocator.alloc(64), device.load(code())
  recording = device.record([Launch(program, [a], [1], 2), Launch(program, [b], [2], 0), Launch(program, [b], [3], 4)])
  assert isinstance(recording, ClRecording)
  device.submit([Launch(program, [b], [9], 1)])
  recording.submit()
  recording.patch(0, 0, b)
  recording.patch(0, 1, -1)
  recording.patch_grid(1, 5)
  recording.submit()
  device.synchronize()
  assert library.kernels[1:] == [
    ("k_example", 2, 64, [a.handle, 0, 1]), ("k_example", 4, 64, [b.handle, 0, 3]),
    ("k_example", 2, 64, [b.handle, 0, -1]), ("k_example", 5, 64, [b.handle, 0, 2]),
    ("k_example", 4, 64, [b.handle, 0, 3])]
  times = recording.submit_timed()
  assert len(times) == 3 and all(start <= end for start, end in times)
  with pytest.raises(DeviceError, match="kernel example has 2 arguments; there is no number 2 to patch"):
    recording.patch(0, 2, 1)
  with pytest.raises(DeviceError, match="a grid of -1 workgroups"): recording.patch_grid(0, -1)

def test_a_source_that_is_refused_as_a_whole_is_compiled_kernel_by_kernel(fake: Opener) -> None:
  library, device = fake()
  assert len(device.load_all([code(str(k)) for k in range(40)])) == 40 and library.calls["clBuildProgram"] == 3
  library.errors = "line 1: error"
  with pytest.raises(CompileError, match="failed on kernel first"): device.load_all([code("first"), code("second")])
  assert library.calls["clBuildProgram"] == 5
  del device
  gc.collect()
  assert "program" not in library.objects.values()

def test_programs_and_kernels_are_released(fake: Opener) -> None:
  library, device = fake()
  a, program = device.allocator.alloc(64), device.load(code())
  recording = device.record([Launch(program, [a], [1], 2)])
  recording.submit()
  del program, recording
  device.synchronize()
  assert not {"program", "kernel", "event"} & set(library.objects.values())

def test_mistakes_in_launches(fake: Opener) -> None:
  _, device = fake()
  a, program = device.allocator.alloc(64), device.load(code())
  for launch, words in ((Launch(program, [], [1], 1), "takes 1 buffers and 1 variables, not 0 and 1"),
                        (Launch(program, [5], [1], 1), "buffer 0: 5 is not allocated memory of OPENCL"),
                        (Launch(program, [a], [1 << 63], 1), "variable 0: 9223372036854775808 is no 64-bit integer"),
                        (Launch(program, [a], ["x"], 1), "variable 0: 'x' is no 64-bit integer"),
                        (Launch(program, [a], [1], 1 << 31), "a grid of 2147483648 workgroups; it is"),
                        (Launch(print, [a], [1], 1), "cannot launch <built-in function print>; pass what load")):
    with pytest.raises(DeviceError, match=words): device.submit([launch])
  _, other = fake()
  with pytest.raises(DeviceError, match="is of another device than OPENCL; load the code here"):
    other.submit([Launch(program, [a], [1], 1)])

def test_code_that_the_device_does_not_take(fake: Opener) -> None:
  library, device = fake()
  with pytest.raises(DeviceError, match="kernel example is for c, device OPENCL takes OpenCL C; compile it for opencl"):
    device.load(code(arch="c"))
  library.most_lanes = 32
  with pytest.raises(DeviceError, match="kernel example has 64 lanes in a workgroup, and OPENCL allows it 32; report"):
    device.load(code())
  library.errors = "line 3: undeclared identifier\nline 4: error"
  with pytest.raises(CompileError, match=r"OPENCL \(Example of Fakes\) failed on kernel example: clBuildProgram: "
                     r"BUILD_PROGRAM_FAILURE \(-11\); .*\nline 3: undeclared identifier"): device.load(code())
  gc.collect()   # tracebacks hold the programs
  device.synchronize()
  assert "program" not in library.objects.values()
