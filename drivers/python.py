"""The PYTHON device: kernels are Python functions (codegen/render/python.py writes them), memory is bytearrays, and a
launch is a call.

It serves machines without an assembler here and without a C compiler. It is also the oracle for tests of the other
devices.
"""
from __future__ import annotations
from collections.abc import Callable, Sequence
from typing import Any

from tinyhw import arithmetic
from tinyhw.device import Allocator, Compiled
from tinyhw.errors import DeviceError
from tinyhw.machine.ir.code import Code

Kernel = Callable[[Sequence[Any], Sequence[int], int, int], None]

def open(ordinal: int, runtime: Callable[[str], Code]) -> Compiled:
  """Open the device PYTHON, or PYTHON:1, ...; there may be any count of independent ones."""
  name = f"PYTHON:{ordinal}" if ordinal else "PYTHON"
  return PythonDevice(name, PythonAllocator(name), ["python"], runtime=load)

class PythonDevice(Compiled):
  """It has the schedules of a CPU."""
  shares_operands = True
  runs_in_order = True
  row_bytes = 1 << 18

class PythonAllocator(Allocator):
  """Opaque buffers are memoryviews of bytes. A part of one is a slice."""
  def _alloc(self, size: int) -> memoryview | None:
    try: return memoryview(bytearray(size))
    except (MemoryError, OverflowError): return None

  def _copyin(self, dest: memoryview, src: memoryview) -> None: dest[:src.nbytes] = src
  def _copyout(self, dest: memoryview, src: memoryview) -> None: dest[:] = src[:dest.nbytes]
  def offset(self, opaque: memoryview, size: int, offset: int) -> memoryview: return opaque[offset:offset + size]
  def as_memoryview(self, opaque: memoryview) -> memoryview: return opaque

  def external(self, address: int, size: int) -> memoryview:
    from ctypes import c_uint8  # only this function needs ctypes
    return memoryview((c_uint8 * size).from_address(address)).cast("B")

def load(code: Code) -> Kernel:
  """Return the function of Code whose text is Python source. Raises DeviceError for Code of another arch."""
  if code.arch != "python":
    raise DeviceError(f"the PYTHON device runs Python source, and {code.name} is code for {code.arch}; compile it for "
                      f"arch python")
  namespace = dict(vars(arithmetic))
  exec(compile(code.text, f"<tinyhw kernel {code.name}>", "exec"), namespace)
  kernel: Kernel = namespace["kernel"]
  return kernel
