"""Kernels and their arguments, recordings, and mistakes in launches, on an adapter."""
import struct

import pytest
from webgpu import adapter

from tinyhw.device import Launch
from tinyhw.drivers.webgpu.launch import WgpuRecording
from tinyhw.drivers.webgpu.memory import WgpuMemory
from tinyhw.errors import DeviceError
from tinyhw.machine.ir.code import Code

SOURCE = b"""
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@group(1) @binding(0) var<uniform> numbers: array<vec4<u32>, 2>;
@compute @workgroup_size(1)
fn k_fill(@builtin(workgroup_id) place: vec3<u32>) {
  let group = place.y * numbers[0].z + place.x;
  if (group < numbers[0].y) { data[(numbers[0].w >> 2u) + group] = numbers[1].x + group; }
}
"""

def fill(lanes: int = 1) -> Code:
  """A kernel that writes n + k into word k."""
  return Code("fill", "wgsl", SOURCE, ("buffer", "int64"), lanes=lanes)

def words(memory: WgpuMemory, count: int) -> tuple[int, ...]:
  out = bytearray(4 * count)
  memory.device.allocator.copyout(memoryview(out), memory)
  return struct.unpack(f"<{count}I", out)

def test_offsets_and_variables() -> None:
  device = adapter.opened()
  whole, program = device.allocator.alloc(4096), device.load(fill())
  device.allocator.copyin(whole, memoryview(bytes(4096)))
  for offset in (0, 36, 1000):
    device.submit([Launch(program, [device.allocator.offset(whole, 12, offset)], [offset], 3)])
  found = words(whole, 1024)
  assert found[:3] == (0, 1, 2) and found[9:12] == (36, 37, 38) and found[250:253] == (1000, 1001, 1002)
  assert sum(map(bool, found)) == 8
  device.allocator.free(whole)

def test_more_workgroups_than_a_dimension_has() -> None:
  device = adapter.opened()
  whole, program, grid = device.allocator.alloc(4 * 70001), device.load(fill()), 70000
  device.allocator.copyin(whole, memoryview(bytes(4 * 70001)))
  device.submit([Launch(program, [whole], [7], grid)])
  assert words(whole, 70001) == (*range(7, 7 + grid), 0)
  device.allocator.free(whole)

def test_recordings_keep_their_arguments() -> None:
  device = adapter.opened()
  a, b, program = device.allocator.alloc(64), device.allocator.alloc(64), device.load(fill())
  recording = device.record([Launch(program, [a], [1], 2), Launch(program, [b], [20], 0), Launch(program, [b], [3], 2)])
  assert isinstance(recording, WgpuRecording)
  recording.submit()
  assert words(a, 2) == (1, 2) and words(b, 2) == (3, 4)
  recording.patch(0, 0, b)
  recording.patch(2, 0, a)
  recording.patch(0, 1, 50)
  recording.patch_grid(1, 1)
  recording.submit()
  assert words(a, 2) == (3, 4) and words(b, 2) == (20, 51)
  times = recording.submit_timed()
  assert len(times) == 3 and all(start <= end for start, end in times)
  with pytest.raises(DeviceError, match="kernel fill has 2 arguments; there is no number 2 to patch"):
    recording.patch(0, 2, 1)
  with pytest.raises(DeviceError, match="a grid of -1 workgroups"): recording.patch_grid(0, -1)
  for memory in (a, b): device.allocator.free(memory)

def test_mistakes_in_launches() -> None:
  device = adapter.opened()
  a, program = device.allocator.alloc(64), device.load(fill())
  for launch, text in ((Launch(program, [], [1], 1), "takes 1 buffers and 1 variables, not 0 and 1"),
                       (Launch(program, [5], [1], 1), "buffer 0: 5 is not allocated memory of WEBGPU"),
                       (Launch(program, [a], [1 << 63], 1), "variable 0: 9223372036854775808 is no 64-bit integer"),
                       (Launch(program, [a], ["x"], 1), "variable 0: 'x' is no 64-bit integer"),
                       (Launch(program, [a], [1], 1 << 31), "a grid of 2147483648 workgroups; it is"),
                       (Launch(print, [a], [1], 1), "cannot launch <built-in function print>; pass what load")):
    with pytest.raises(DeviceError, match=text): device.submit([launch])
  device.allocator.free(a)

def test_code_that_the_device_does_not_take() -> None:
  device = adapter.opened()
  with pytest.raises(DeviceError, match="kernel f is for c, device WEBGPU takes WGSL; compile it for wgsl"):
    device.load(Code("f", "c", b"", ()))
  with pytest.raises(DeviceError, match=r"kernel f has 4000 buffers, and WEBGPU .* allows \d+; realize parts"):
    device.load(Code("f", "wgsl", b"", ("buffer",) * 4000))
  with pytest.raises(DeviceError, match="has 9999999 lanes"): device.load(fill(9999999))
