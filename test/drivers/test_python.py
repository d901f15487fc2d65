"""The PYTHON device by itself: memory, programs, launches, recordings."""
import ctypes
from array import array

import pytest
from generators.program_builder import Builder, add, i32

from tinyhw.codegen.render import compile_source
from tinyhw.device import Buffer, Device, Launch
from tinyhw.drivers import python
from tinyhw.dtype import dtypes
from tinyhw.errors import DeviceError, OutOfMemory
from tinyhw.uop.enums import AxisType
from tinyhw.uop.ops import UOp

def floats(*values: float) -> bytes: return array("f", values).tobytes()

def test_launches_and_replays() -> None:
  device = python.open(0, lambda name: pytest.fail("needs no machine code"))
  assert (device.name, device.arch) == ("PYTHON", "python")
  program = device.load(compile_source(add(4), "python"))
  buffers = [device.allocator.alloc(16) for _ in range(3)]
  device.allocator.copyin(buffers[1], memoryview(floats(1, 2, 3, 4)))
  device.allocator.copyin(buffers[2], memoryview(floats(10, 20, 30, 40)))
  device.submit([Launch(program, buffers, (), 2)])
  assert memoryview(buffers[0]).cast("f").tolist() == [11, 22, 0, 0]
  recording = device.record([Launch(program, buffers, (), 4)])
  other = device.allocator.alloc(16)
  device.allocator.copyin(other, memoryview(floats(5, 5, 5, 5)))
  recording.patch(0, 2, other)
  recording.submit()
  device.synchronize()
  assert memoryview(buffers[0]).cast("f").tolist() == [6, 7, 8, 9]
  recording.patch_grid(0, 1)
  recording.patch(0, 2, buffers[1])
  (start, end), = recording.submit_timed()
  assert memoryview(buffers[0]).cast("f").tolist() == [2, 7, 8, 9] and start < end

def test_variables_can_be_patched() -> None:
  b = Builder("fill")
  out, n = b.param(0, i32, 4), b.add(UOp.variable("n", 0, 9, i32))
  with b.loop(4, AxisType.GLOBAL) as g: b.store(out, g, n + 0)
  device = python.open(1, lambda name: pytest.fail("needs no machine code"))
  memory = device.allocator.alloc(16)
  recording = device.record([Launch(device.load(compile_source(b.program(), "python")), [memory], [3], 4)])
  recording.patch(0, 1, 8)
  recording.submit()
  assert memoryview(memory).cast("i").tolist() == [8] * 4

def test_memory() -> None:
  allocator = python.open(0, lambda name: pytest.fail("")).allocator
  memory = allocator.alloc(16)
  part = allocator.offset(memory, 8, 4)
  part[0] = 7
  assert allocator.as_memoryview(memory)[4] == 7
  host = (ctypes.c_uint8 * 4)(1, 2, 3, 4)
  out = memoryview(bytearray(4))
  allocator.copyout(out, allocator.external(ctypes.addressof(host), 4))
  assert out.tolist() == [1, 2, 3, 4]
  with pytest.raises(OutOfMemory, match="PYTHON: cannot allocate"): allocator.alloc(1 << 62)

def test_as_a_device() -> None:
  buffer = Buffer("PYTHON", 4, dtypes.float32, initial_value=floats(1, 2, 3, 4))
  assert memoryview(buffer.as_memoryview()).cast("f").tolist() == [1, 2, 3, 4]
  assert Device["PYTHON"].arch == "python"

def test_code_for_another_device() -> None:
  device = python.open(0, lambda name: pytest.fail(""))
  with pytest.raises(DeviceError, match="the PYTHON device runs Python source, and add_16_1 is code for c"):
    device.load(compile_source(add(), "c"))
