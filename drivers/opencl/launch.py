"""Kernels that an OpenCL driver has compiled, their launches, and Recordings.

The arguments of a kernel (codegen/render/opencl.py) are a memory object and an offset for each buffer, then the
variables, each of 8 bytes. A kernel object keeps its arguments from launch to launch, so only those that differ are
set. A Recording has kernel objects of its own: a replay is one call for each launch.
"""
from __future__ import annotations
import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.device import Launch
from tinyhw.drivers.gpu.launch import work_of
from tinyhw.drivers.gpu.parameters import KernelParameters, program_of
from tinyhw.drivers.opencl.library import failure
from tinyhw.drivers.opencl.memory import ClMemory
from tinyhw.errors import DeviceError
from tinyhw.machine.ir.code import Code
if TYPE_CHECKING: from tinyhw.drivers.opencl.device import ClDevice

PREFIX = "k_"            # of the names of functions: codegen/render/opencl.py
MOST_GROUPS = (1 << 31) - 1
_pointer, _long = ctypes.c_void_p, ctypes.c_int64

class ClBuilt:
  """Compiled source with a function for each of `codes`. Released when it is garbage. Raises CompileError."""
  def __init__(self, device: ClDevice, codes: Sequence[Code]):
    self.device, self.handle = device, 0
    for code in codes:
      if code.arch.partition(":")[0] != "opencl":
        raise DeviceError(f"kernel {code.name} is for {code.arch}, device {device.name} takes OpenCL C; compile it for "
                          f"{device.arch}")
    self.functions = function_names(codes)
    self.handle = device.build(joined(codes), codes[0].name)

  def __del__(self) -> None:
    if getattr(self, "handle", 0): self.device.returned.put(self.device.lock, "clReleaseProgram", self.handle)

def function_names(codes: Sequence[Code]) -> list[str]:
  """Return the names of the functions in the common source. Kernels of one schedule may have the same name."""
  if len(codes) == 1: return [PREFIX + codes[0].name]
  return [f"{PREFIX}{code.name}_{k}" for k, code in enumerate(codes)]

def joined(codes: Sequence[Code]) -> bytes:
  """Return one source for several kernels: compilers read the declarations of all builtin functions for each source."""
  if len(codes) == 1: return codes[0].text
  def piece(code: Code, name: str) -> bytes:
    own = (PREFIX + code.name).encode()
    return b"#define %b %b\n%b\n#undef %b\n" % (own, name.encode(), code.text, own)
  return b"".join(map(piece, codes, function_names(codes)))

class ClProgram:
  """A compiled kernel, function number k of a source, and the kernel object of its plain launches."""
  def __init__(self, device: ClDevice, code: Code, built: ClBuilt, k: int = 0):
    self.device, self.name, self.code, self.built, self.function = device, code.name, code, built, built.functions[k]
    self.parameters = KernelParameters(device, code, ClMemory, MOST_GROUPS)
    self.own = self.kernel()
    most = device.workgroup_limit(self.own.handle)
    if code.lanes > most:
      raise DeviceError(f"kernel {code.name} has {code.lanes} lanes in a workgroup, and {device.name} allows it "
                        f"{most}; report this with the kernel's source (DEBUG=7)")

  def kernel(self) -> ClKernel:
    """Return a kernel object with arguments of its own. OpenCL keeps the program as long as the object lives."""
    return ClKernel(self.device, self.parameters, self.code.lanes, self.built.handle, self.function)

  def __repr__(self) -> str: return f"<ClProgram {self.name} on {self.device.name}>"

class ClKernel:
  """A kernel object with its arguments. values: those that are set, as (memory, offset) or an integer.

  slots: the memory from which OpenCL takes each of its arguments, and a reference to it. start: the arguments of
  `ClLibrary.start`, whose last is the place of an event. Both are made once: a launch takes two microseconds, and each
  new object of ctypes a tenth.
  """
  def __init__(self, device: ClDevice, parameters: KernelParameters, lanes: int, program: int, function: str):
    self.device, self.name, self.parameters, self.handle = device, parameters.name, parameters, 0
    self.handle = device.make_in("clCreateKernel", program, function.encode())
    self.buffers = parameters.buffers
    self.values: list[object] = [None] * parameters.count
    kinds = [*(_pointer, _long) * self.buffers, *[_long] * parameters.variables]
    self.slots = [(memory, ctypes.byref(memory)) for memory in (kind() for kind in kinds)]
    self.setter = device.library.functions["clSetKernelArg"]
    self.groups, self.lanes, self.grid = ctypes.c_size_t(), ctypes.c_size_t(lanes), 0
    self.start = (_pointer(device.queue), _pointer(self.handle), ctypes.c_uint(1), None, ctypes.byref(self.groups),
                  ctypes.byref(self.lanes), ctypes.c_uint(0), None, None)

  def set(self, position: int, value: Any) -> None:
    """Set an argument that was checked: memory of the device, or a 64-bit integer."""
    if position < self.buffers:
      found: object = (value.handle, value.offset)
      if self.values[position] == found: return
      self.values[position] = None   # if one of the two calls fails
      self._set(2 * position, value.handle)
      self._set(2 * position + 1, value.offset)
    else:
      found = value
      if self.values[position] == found: return
      self._set(self.buffers + position, value)
    self.values[position] = found

  def _set(self, index: int, value: int) -> None:
    memory, reference = self.slots[index]
    memory.value = value
    status = self.setter(self.handle, index, 8, reference)
    if status: raise failure(f"argument {index} of kernel {self.name}", status)

  def prepare(self, launch: Launch) -> None:
    """Set all arguments of a launch, and its grid. Raises DeviceError, which tells the mistake in it."""
    self.parameters.check(launch)
    for position, value in enumerate((*launch.buffers, *launch.variables)): self.set(position, value)
    self.set_grid(launch.grid)

  def set_grid(self, grid: int) -> None:
    """Set a grid that was checked."""
    self.grid = grid
    self.groups.value = grid * self.lanes.value

  def __del__(self) -> None:
    if getattr(self, "handle", 0): self.device.returned.put(self.device.lock, "clReleaseKernel", self.handle)

class ClRecording:
  """Launches with kernel objects of their own. OpenCL takes arguments over at each launch, so a patch waits for none.
  """
  def __init__(self, device: ClDevice, launches: Sequence[Launch]):
    self.device = device
    self.kernels: list[ClKernel] = []
    with device.lock:
      for launch in launches:
        self.kernels.append(program_of(launch, ClProgram, device).kernel())
        self.kernels[-1].prepare(launch)
    self.work = [work_of(launch) for launch in launches]

  def patch(self, launch: int, position: int, value: Any) -> None:
    """Replace an argument. Raises DeviceError if there is none, or for a value that it cannot have."""
    kernel = self.kernels[launch]
    kernel.parameters.check_patch(position, value)
    with self.device.lock: kernel.set(position, value)

  def patch_grid(self, launch: int, grid: int) -> None:
    """Replace the number of workgroups of a launch."""
    kernel = self.kernels[launch]
    kernel.parameters.check_grid(grid)
    kernel.set_grid(grid)

  def submit(self) -> None:
    """Run all launches."""
    self.device.enqueue(self.kernels, self.work)

  def submit_timed(self) -> list[tuple[int, int]]:
    """Run all launches. Return when each began and ended by the device's clock, in nanoseconds of
    time.perf_counter_ns."""
    return self.device.enqueue_timed(self.kernels)
