"""The NULL device takes everything and does nothing."""
import pytest

from tinyhw.device import Buffer, Launch
from tinyhw.drivers import null
from tinyhw.dtype import dtypes
from tinyhw.errors import DeviceError
from tinyhw.machine.ir.code import Code

def test_nothing_happens() -> None:
  device = null.open(0, lambda name: pytest.fail("needs no machine code"))
  program = device.load(Code("k", device.arch, b"", ("buffer",)))
  memory = device.allocator.alloc(1 << 60)
  device.allocator.copyin(memory, memoryview(b"1234"))
  device.submit([Launch(program, [memory, device.allocator.offset(memory, 4, 4)], (), 1 << 40)])
  recording = device.record([Launch(program, [memory])])
  recording.patch(0, 0, memory)
  recording.patch_grid(0, 3)
  recording.submit()
  device.synchronize()
  assert [start == end for start, end in device.record([Launch(program, [memory])] * 2).submit_timed()] == [True, True]
  device.allocator.free(memory)

def test_reading_is_refused() -> None:
  buffer = Buffer("NULL", 4, dtypes.float32, preallocate=True)
  with pytest.raises(DeviceError, match="NULL has no memory to read"): buffer.as_memoryview()
