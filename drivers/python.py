"""The PYTHON device: kernels are Python functions (codegen/render/python.py writes them), memory is bytearrays, and a launch is a call.

For machines without an assembler here and without a C compiler, and the oracle that the other devices are tested against.
"""
from __future__ import annotations
import time
from collections.abc import Callable, Sequence
from typing import Any

from tinyhw import arithmetic
from tinyhw.device import Allocator, Compiled, Launch
from tinyhw.errors import DeviceError
from tinyhw.machine.code import Code

Kernel = Callable[[Sequence[Any], Sequence[int], int, int], None]

def open(ordinal: int, runtime: Callable[[str], Code]) -> Compiled:
  """The device PYTHON, or PYTHON:1, ...: independent ones as many as you like."""
  return PythonDevice(f"PYTHON:{ordinal}" if ordinal else "PYTHON")

class PythonAllocator(Allocator):
  """Opaque buffers are memoryviews of bytes; a part of one is a slice."""
  def _alloc(self, size: int) -> memoryview | None:
    try: return memoryview(bytearray(size))
    except (MemoryError, OverflowError): return None

  def _copyin(self, dest: memoryview, src: memoryview) -> None: dest[:src.nbytes] = src
  def _copyout(self, dest: memoryview, src: memoryview) -> None: dest[:] = src[:dest.nbytes]
  def offset(self, opaque: memoryview, size: int, offset: int) -> memoryview: return opaque[offset:offset + size]
  def as_memoryview(self, opaque: memoryview) -> memoryview: return opaque

  def external(self, address: int, size: int) -> memoryview:
    from ctypes import c_uint8  # this device needs ctypes for nothing else
    return memoryview((c_uint8 * size).from_address(address)).cast("B")

class PythonRecording:
  """Launches kept as they are; replay calls them again."""
  def __init__(self, launches: Sequence[Launch]):
    self.launches = [launch._replace(buffers=list(launch.buffers), variables=list(launch.variables)) for launch in launches]

  def patch(self, launch: int, position: int, value: Any) -> None:
    """Replace argument `position` of launch number `launch`: buffers come first, then variables."""
    buffers, variables = self.launches[launch].buffers, self.launches[launch].variables
    assert isinstance(buffers, list) and isinstance(variables, list)
    if position < len(buffers): buffers[position] = value
    else: variables[position - len(buffers)] = value

  def patch_grid(self, launch: int, grid: int) -> None: self.launches[launch] = self.launches[launch]._replace(grid=grid)
  def submit(self) -> None: _run(self.launches)

  def submit_timed(self) -> list[tuple[int, int]]:
    """Run them; when each began and ended."""
    times = [time.perf_counter_ns()]
    for launch in self.launches:
      _run([launch])
      times.append(time.perf_counter_ns())
    return list(zip(times, times[1:]))

def _run(launches: Sequence[Launch]) -> None:
  for launch in launches: launch.program(launch.buffers, launch.variables, 0, launch.grid)

class PythonDevice(Compiled):
  """Runs everything at once, on the calling thread."""
  def __init__(self, name: str): super().__init__(name, "python", PythonAllocator(name))

  def load(self, code: Code) -> Kernel:
    """The function of Code whose text is Python source. Raises DeviceError for Code of another arch."""
    if code.arch != "python":
      raise DeviceError(f"{self.name} runs Python source, and {code.name} is code for {code.arch}; compile it for arch python")
    namespace = dict(vars(arithmetic))
    exec(compile(code.text, f"<tinyhw kernel {code.name}>", "exec"), namespace)
    kernel: Kernel = namespace["kernel"]
    return kernel

  def submit(self, launches: Sequence[Launch]) -> None: _run(launches)
  def record(self, launches: Sequence[Launch]) -> PythonRecording: return PythonRecording(launches)
