"""A WebGPU adapter of this machine, for tests that run kernels. Without one they are skipped, with the reason."""
import pytest
from generators.program_builder import same_memory

from tinyhw.codegen.render import compile_source
from tinyhw.device import Device, Launch
from tinyhw.drivers.webgpu.device import WgpuDevice
from tinyhw.errors import DeviceError
from tinyhw.machine.ir.code import Code
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.program import Program

def opened() -> WgpuDevice:
  """The first WebGPU adapter."""
  try: found = Device["WEBGPU"]
  except DeviceError as error: pytest.skip(error.message)
  assert isinstance(found, WgpuDevice)
  return found

def run(code: Code, memory: dict[int, bytearray], variables: tuple[int, ...] = (), grid: int = 1) -> None:
  """Run a kernel on copies of memory, by slot, and copy all of it back."""
  device = opened()
  buffers = {slot: device.allocator.alloc(len(data)) for slot, data in memory.items()}
  for slot, data in memory.items(): device.allocator.copyin(buffers[slot], memoryview(data))
  device.submit([Launch(device.load(code), [buffers[slot] for slot in sorted(buffers)], variables, grid)])
  device.synchronize()
  for slot, data in memory.items():
    device.allocator.copyout(memoryview(data), buffers[slot])
    device.allocator.free(buffers[slot])

def check(program: Program, memory: dict[int, bytearray]) -> None:
  """Assert that the device computes what the interpreter does."""
  again = {slot: bytearray(data) for slot, data in memory.items()}
  evaluate(program, memory)
  run(compile_source(program, "wgsl"), again, (), int(program.grid))
  same_memory(program, memory, again)
