"""libOpenCL by ctypes: the calls of this driver with their types, and statuses in words.

Source: `CL/cl.h` of OpenCL 1.2, without a call of later versions. Calls that return a status raise `ClFailure` if it is
not 0. Calls that make an object write the status to their last argument.
"""
from __future__ import annotations
import ctypes
from typing import Any

from tinyhw.autogen.opencl import STATUS
from tinyhw.errors import DeviceError, DriverError

NAMES = ("libOpenCL.so.1", "libOpenCL.so", "/System/Library/Frameworks/OpenCL.framework/OpenCL", "OpenCL.dll")
_int, _u32, _u64, _size, _pointer, _text = (ctypes.c_int, ctypes.c_uint, ctypes.c_uint64, ctypes.c_size_t,
                                            ctypes.c_void_p, ctypes.c_char_p)
_info = (_pointer, _u32, _size, _pointer, _pointer)     # object, name, size of memory, memory, size of the answer
_copy = (_pointer, _pointer, _u32, _size, _size, _pointer, _u32, _pointer, _pointer)
STATUS_CALLS: dict[str, tuple[Any, ...]] = {
  "clGetPlatformIDs": (_u32, _pointer, _pointer), "clGetPlatformInfo": _info,
  "clGetDeviceIDs": (_pointer, _u64, _u32, _pointer, _pointer), "clGetDeviceInfo": _info,
  "clReleaseContext": (_pointer,), "clReleaseCommandQueue": (_pointer,), "clReleaseMemObject": (_pointer,),
  "clReleaseProgram": (_pointer,), "clReleaseKernel": (_pointer,), "clReleaseEvent": (_pointer,),
  "clBuildProgram": (_pointer, _u32, _pointer, _text, _pointer, _pointer),
  "clGetProgramBuildInfo": (_pointer, *_info), "clGetKernelWorkGroupInfo": (_pointer, *_info),
  "clSetKernelArg": (_pointer, _u32, _size, _pointer),
  "clEnqueueNDRangeKernel": (_pointer, _pointer, _u32, _pointer, _pointer, _pointer, _u32, _pointer, _pointer),
  "clEnqueueReadBuffer": _copy, "clEnqueueWriteBuffer": _copy,
  "clEnqueueMarkerWithWaitList": (_pointer, _u32, _pointer, _pointer), "clFlush": (_pointer,),
  "clGetEventInfo": _info, "clGetEventProfilingInfo": _info,
}
MAKING_CALLS: dict[str, tuple[Any, ...]] = {
  "clCreateContext": (_pointer, _u32, _pointer, _pointer, _pointer, _pointer),
  "clCreateCommandQueue": (_pointer, _pointer, _u64, _pointer),
  "clCreateBuffer": (_pointer, _u64, _size, _pointer, _pointer),
  "clCreateProgramWithSource": (_pointer, _u32, _pointer, _pointer, _pointer),
  "clCreateKernel": (_pointer, _text, _pointer),
}
ADVICE = {
  "DEVICE_NOT_AVAILABLE": "another process may have it, or its driver has failed; clinfo shows more",
  "COMPILER_NOT_AVAILABLE": "this driver cannot compile source; install the vendor's complete package",
  "MEM_OBJECT_ALLOCATION_FAILURE": "drop references to tensors that are not needed, or use a smaller batch",
  "OUT_OF_RESOURCES": "a kernel has failed or needs too much; use a smaller batch, or see the system's log",
  "OUT_OF_HOST_MEMORY": "the computer has no memory left; use a smaller batch",
  "BUILD_PROGRAM_FAILURE": "report the kernel's source (DEBUG=7) with the driver's version",
  "PLATFORM_NOT_FOUND_KHR": "install an OpenCL driver (Debian: apt install pocl-opencl-icd, or the GPU vendor's)",
}
NO_MEMORY = ("MEM_OBJECT_ALLOCATION_FAILURE", "OUT_OF_HOST_MEMORY", "OUT_OF_RESOURCES", "INVALID_BUFFER_SIZE")
REPORT = "report this with the output of python3 -m tinyhw doctor --device OPENCL"

class ClFailure(DriverError):
  """A call that failed. status: the name of the error without CL_."""
  def __init__(self, message: str, status: str):
    super().__init__(message)
    self.status = status

def status_name(status: int) -> str: return STATUS.get(status, f"status {status}")

def failure(what: str, status: int) -> ClFailure:
  """Return the error of a status. what: the call, or the command that failed."""
  name = status_name(status)
  return ClFailure(f"{what}: {name} ({status}); {ADVICE.get(name, REPORT)}", name)

def load_library() -> Any:
  """Load the OpenCL library. Raises DeviceError if there is none."""
  for name in NAMES:
    try: return ctypes.CDLL(name)
    except OSError: continue
  raise DeviceError("the OpenCL library (libOpenCL.so.1) is not there; install its loader and a driver (Debian: apt "
                    "install ocl-icd-libopencl1 pocl-opencl-icd)")

class ClLibrary:
  """The functions of the library. loaded: the result of load_library."""
  def __init__(self, loaded: Any):
    self.functions: dict[str, Any] = {}
    for calls, result in ((STATUS_CALLS, _int), (MAKING_CALLS, _pointer)):
      for name, types in calls.items():
        function = getattr(loaded, name, None)
        if function is None:
          raise DeviceError(f"the OpenCL library has no {name}; it is older than OpenCL 1.2: update it")
        function.argtypes, function.restype = types, result
        self.functions[name] = function
    # Another object of one function, for objects of ctypes alone: converting nine arguments takes 0.9 of 1.2 us.
    self.start: Any = loaded["clEnqueueNDRangeKernel"]
    self.start.restype = _int

  def call(self, name: str, *arguments: Any) -> None:
    """Call a function. Raises ClFailure."""
    status = self.functions[name](*arguments)
    if status: raise failure(name, status)

  def make(self, name: str, *arguments: Any) -> int:
    """Call a function that makes an object, and return its handle. Raises ClFailure."""
    status = _int()
    handle = self.functions[name](*arguments, ctypes.byref(status))
    if status.value or not handle: raise failure(name, status.value)
    return int(handle)

  def list(self, name: str, *arguments: Any) -> list[int]:
    """Return the handles of a call that lists platforms or devices."""
    count = _u32()
    self.call(name, *arguments, 0, None, ctypes.byref(count))
    found = (_pointer * count.value)()
    self.call(name, *arguments, count.value, found, None)
    return [handle or 0 for handle in found]

  def bytes(self, name: str, *asked: Any) -> bytes:
    """Return an answer of unknown size."""
    size = _size()
    self.call(name, *asked, 0, None, ctypes.byref(size))
    memory = ctypes.create_string_buffer(max(size.value, 1))
    self.call(name, *asked, size.value, memory, None)
    return memory.raw[:size.value]

  def text(self, name: str, *asked: Any) -> str:
    """Return an answer that is a text."""
    return self.bytes(name, *asked).rstrip(b"\0").decode("utf-8", "replace").strip()

  def number(self, name: str, *asked: Any) -> int:
    """Return an answer that is a number of any size."""
    return int.from_bytes(self.bytes(name, *asked)[:8], "little")
