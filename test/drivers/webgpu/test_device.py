"""One device on an adapter: tensors, captured steps, compiler's messages, deadlines, loss."""
import ctypes
import gc
import os
import subprocess
import sys
from typing import Any

import pytest
from webgpu import adapter

from tinyhw import Tensor, TinyJit
from tinyhw.autogen import webgpu
from tinyhw.drivers.webgpu.device import MOST_FLYING, WgpuDevice
from tinyhw.drivers.webgpu.facts import find_adapter
from tinyhw.drivers.webgpu.library import Text
from tinyhw.device import Launch
from tinyhw.errors import CompileError, DeviceError, DriverError
from tinyhw.machine.ir.code import Code
from test.drivers.webgpu.test_launch import fill, words

def another() -> WgpuDevice:
  """A device of its own on the first adapter."""
  library = adapter.opened().library
  return WgpuDevice("WEBGPU", library, find_adapter(library, 0))

def test_tensors_and_captured_steps() -> None:
  adapter.opened()
  @TinyJit
  def step(x: Tensor) -> Tensor: return ((x * 2 + 1).softmax(1) @ x).realize()
  for k in range(4):
    x = Tensor([[0.5 * k + i + j for j in range(40)] for i in range(40)], device="WEBGPU").realize()
    wanted = ((x.to("PYTHON") * 2 + 1).softmax(1) @ x.to("PYTHON")).tolist()
    for a, b in zip(step(x).tolist(), wanted): assert a == pytest.approx(b, rel=1e-5)

@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool",
                                   "float16", "bfloat16", "float32"])
def test_types_that_wgsl_does_not_have_are_parts_or_pairs_of_words(dtype: str) -> None:
  adapter.opened()
  x = Tensor([[(7 * i * i + 3 * j) % 100 for j in range(37)] for i in range(11)]).cast(dtype)
  def result(device: str) -> list[object]:
    y = x.to(device)
    return [(y + y.transpose(0, 1)[:11, :11].sum()).tolist(), y[1:, 3:].contiguous().tolist(), (y < y[0]).tolist(),
            y.flip(1).cast("int64").sum(1).tolist(), y.cast("float32").tolist()]
  assert result("WEBGPU") == result("PYTHON")

def test_infinities_nans_and_signs_of_zero() -> None:
  adapter.opened()
  inf, nan = float("inf"), float("nan")
  def result(device: str) -> list[str]:
    x = Tensor([inf, -inf, nan, 0.0, -0.0, 1.0], device=device)
    return [str(y.tolist()) for y in (x * 0, x - x, x + 0.0, 0.0 - x, x != x, x == x, x.max(), x.maximum(1), x / x,
                                      x.isnan(), x.where(x > 0, nan), (x + inf) - inf, -x)]
  assert result("WEBGPU") == result("PYTHON")

def test_facts_and_close() -> None:
  device = another()
  facts = device.facts()
  assert facts["arch"] == device.about.arch and facts["local_bytes"] >= 16 << 10
  assert device.about.title in facts["processor"]
  device.allocator.free(device.allocator.alloc(100))
  device.close()

def test_a_device_that_is_garbage_releases_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
  gc.collect()   # devices of earlier tests
  device, released = another(), list[str]()
  library, call = device.library, device.library.call
  a, program = device.allocator.alloc(64), device.load(fill())
  device.submit([Launch(program, [a], [5], 1)])
  assert words(a, 1) == (5,)
  device.allocator.free(a)
  device.close()
  def noted(name: str, *arguments: Any) -> Any:
    if name.endswith("Release"): released.append(name)
    return call(name, *arguments)
  monkeypatch.setattr(library, "call", noted)
  del a, program, device
  gc.collect()
  assert sorted(released) == sorted(["ComputePipelineRelease", "BindGroupRelease", "QueueRelease", "DeviceRelease"]
                                    + ["BindGroupLayoutRelease"] * 2 + ["BufferRelease"] * 2)

def test_the_compiler_says_which_line_is_wrong() -> None:
  device = adapter.opened()
  with pytest.raises(CompileError, match=r"failed on kernel bad:(.|\n)*nowhere"):
    device.load(Code("bad", "wgsl", b"@compute @workgroup_size(1) fn k_bad() { nowhere = 1; }", ()))
  with pytest.raises(CompileError, match="failed on kernel gone:"):
    device.load(Code("gone", "wgsl", b"@compute @workgroup_size(1) fn other() { }", ()))
  assert (Tensor([1, 2], device="WEBGPU") + 1).tolist() == [2, 3]

def test_only_some_submissions_are_under_way() -> None:
  device = another()
  a, program = device.allocator.alloc(4 * 64), device.load(fill())
  for k in range(3 * MOST_FLYING): device.submit([Launch(program, [a], [k], 64)])
  assert len(device.flying) <= MOST_FLYING and device.submitted == 3 * MOST_FLYING
  assert device.workgroups == 64 * device.submitted
  device.synchronize()
  assert not device.flying and words(a, 1) == (3 * MOST_FLYING - 1,)

def test_an_error_of_a_call_is_told_and_the_device_goes_on() -> None:
  device = another()
  with pytest.raises(DriverError, match="DeviceCreateBuffer: validation error: .*usage.*; report this with the outp"):
    device.made_buffer(64, webgpu.USAGE_MAP_READ | webgpu.USAGE_STORAGE)
  a, program = device.allocator.alloc(64), device.load(fill())
  device.submit([Launch(program, [a], [5], 1)])
  assert words(a, 1) == (5,)

def test_a_device_that_the_library_loses_refuses_work() -> None:
  device = another()
  a, program, text = device.allocator.alloc(64), device.load(fill()), Text(b"the cable is out\nmore")
  device.events._loss(None, 1, text.view, None, None)
  for work in (device.synchronize, lambda: device.submit([Launch(program, [a], [1], 2)]), lambda: device.load(fill()),
               lambda: device.allocator.copyin(a, memoryview(bytes(64)))):
    with pytest.raises(DeviceError, match="WEBGPU is lost since it was lost by the library: the cable is out; start"):
      work()
  device.allocator.free(a)
  device.close()

def test_a_copied_process_has_no_device() -> None:
  device = another()
  device.after_fork(False)
  device.synchronize()
  device.after_fork(True)
  with pytest.raises(DeviceError, match='WebGPU cannot be used after a fork: start processes with "spawn"'):
    device.synchronize()

ENDLESS = """
import os
from tinyhw.device import Device, Launch
from tinyhw.errors import DeviceError, DriverError
from tinyhw.machine.ir.code import Code
device = Device["WEBGPU"]
source = b'''@group(0) @binding(0) var<storage, read_write> data: array<atomic<u32>>;
@group(1) @binding(0) var<uniform> numbers: array<vec4<u32>, 1>;
@compute @workgroup_size(64) fn k_endless() {
  for (var k = 0u; k < 65000u; k++) { atomicAdd(&data[0], numbers[0].y); }
}'''
a = device.allocator.alloc(64)
program = device.load(Code("endless", "wgsl", source, ("buffer",)))
device.submit([Launch(program, [a], [], 1 << 24, line=("train.py", 7, "step"))])
try: device.synchronize()
except DriverError as error: print(error.message, flush=True)
try: device.synchronize()
except DeviceError as error: print(error.message, flush=True)
os._exit(0)
"""

def test_a_kernel_that_takes_hours_loses_the_device() -> None:
  adapter.opened()
  done = subprocess.run([sys.executable, "-c", ENDLESS], env=dict(os.environ, HCQDEV_WAIT_TIMEOUT_MS="300", DEV=""),
                        capture_output=True, text=True)
  first, second = done.stdout.splitlines()
  assert "did not finish submission 1 in 0.3 s; it was at endless of train.py:7; a larger HCQDEV_WAIT" in first
  assert second.startswith("WEBGPU is lost since it did not finish submission 1 in 0.3 s; start the program again")
  assert ctypes.sizeof(webgpu.Future) == 8
