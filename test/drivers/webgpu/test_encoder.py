"""Commands: kernels of one pass see each other's results; what is not submitted does nothing."""
import pytest
from webgpu import adapter

from tinyhw.device import Launch
from tinyhw.drivers.webgpu.encoder import WgpuEncoder
from test.drivers.webgpu.test_launch import fill, words

def test_kernels_of_a_pass_are_in_order() -> None:
  device = adapter.opened()
  a, program = device.allocator.alloc(4096), device.load(fill())
  device.submit([Launch(program, [a], [k], 1024) for k in range(200)])
  assert words(a, 1024) == tuple(range(199, 199 + 1024))
  device.allocator.free(a)

def test_what_is_interrupted_does_nothing() -> None:
  device = adapter.opened()
  a, program = device.allocator.alloc(64), device.load(fill())
  device.allocator.copyin(a, memoryview(bytes(64)))
  with pytest.raises(KeyboardInterrupt):
    with WgpuEncoder(device) as encoder, encoder.compute_pass() as compute:
      encoder.dispatch(compute, Launch(program, [a], [5], 4), 0)
      raise KeyboardInterrupt
  assert words(a, 4) == (0, 0, 0, 0)
  device.submit([Launch(program, [a], [5], 4)])
  assert words(a, 4) == (5, 6, 7, 8)
  device.allocator.free(a)
