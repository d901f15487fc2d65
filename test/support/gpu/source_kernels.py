"""Kernels on a device that takes source text (OpenCL, WebGPU). Where there is none, tests are skipped, with the reason.
"""
from typing import TypeVar

import pytest
from generators.program_builder import same_memory

from tinyhw.codegen.render import compile_source
from tinyhw.device import Compiled, Device, Launch
from tinyhw.errors import DeviceError
from tinyhw.machine.ir.code import Code
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.program import Program

D = TypeVar("D", bound=Compiled)

def opened(name: str, kind: type[D]) -> D:
  """The first device of a name, whose driver's class is `kind`."""
  try: found = Device[name]
  except DeviceError as error: pytest.skip(error.message)
  assert isinstance(found, kind)
  return found

def run(device: Compiled, code: Code, memory: dict[int, bytearray], variables: tuple[int, ...] = (),
        grid: int = 1) -> None:
  """Run a kernel on copies of memory, by slot, and copy all of it back."""
  buffers = {slot: device.allocator.alloc(len(data)) for slot, data in memory.items()}
  for slot, data in memory.items(): device.allocator.copyin(buffers[slot], memoryview(data))
  device.submit([Launch(device.load(code), [buffers[slot] for slot in sorted(buffers)], variables, grid)])
  device.synchronize()
  for slot, data in memory.items():
    device.allocator.copyout(memoryview(data), buffers[slot])
    device.allocator.free(buffers[slot])

def check(device: Compiled, program: Program, memory: dict[int, bytearray], dialect: str) -> None:
  """Assert that a device computes what the interpreter does."""
  again = {slot: bytearray(data) for slot, data in memory.items()}
  evaluate(program, memory)
  run(device, compile_source(program, dialect), again, (), int(program.grid))
  same_memory(program, memory, again)
