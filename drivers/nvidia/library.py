"""NVIDIA's driver library (libcuda), by ctypes: the calls of cuda.py, with their types, and statuses in words.

Source: cuda.h of CUDA 12. A call returns a status. `Library.call` raises an error if it is not 0.
"""
from __future__ import annotations
import ctypes
import errno
from typing import Any

from tinyhw.drivers.linux.files import Refused
from tinyhw.errors import DeviceError

NAMES = ("libcuda.so.1", "libcuda.so")
# Folders of the library; a container may bring it without telling the loader
FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib",
           "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib")
_int, _pointer, _size, _address, _u32 = ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_uint
# Calls that wait for running work before they return, or may do so. These are copies ("API synchronization behavior" of
# the driver API's reference). They are also calls that make, free or load, in which the library may synchronize the
# context. They wait without a limit, so cuda.py waits itself before such a call.
WAITING: dict[str, tuple[Any, ...]] = {
  "cuMemAlloc_v2": (_pointer, _size), "cuMemFree_v2": (_address,), "cuMemcpyHtoD_v2": (_address, _pointer, _size),
  "cuMemcpyDtoH_v2": (_pointer, _address, _size), "cuMemcpyPeer": (_address, _pointer, _address, _pointer, _size),
  "cuMemHostRegister_v2": (_pointer, _size, _u32), "cuMemHostUnregister": (_pointer,),
  "cuModuleLoadData": (_pointer, _pointer), "cuModuleUnload": (_pointer,),
  "cuModuleGetFunction": (_pointer, _pointer, ctypes.c_char_p),
}
SIGNATURES: dict[str, tuple[Any, ...]] = {
  **WAITING, "cuInit": (_u32,), "cuDriverGetVersion": (_pointer,), "cuDeviceGetCount": (_pointer,),
  "cuDeviceGet": (_pointer, _int),
  "cuDeviceGetName": (_pointer, _int, _int), "cuDeviceGetAttribute": (_pointer, _int, _int),
  "cuDeviceTotalMem_v2": (_pointer, _int),
  "cuDevicePrimaryCtxRetain": (_pointer, _int), "cuCtxSetCurrent": (_pointer,),
  "cuMemHostGetDevicePointer_v2": (_pointer, _pointer, _u32),
  "cuFuncSetAttribute": (_pointer, _int, _int),
  "cuLaunchKernel": (_pointer, _u32, _u32, _u32, _u32, _u32, _u32, _u32, _pointer, _pointer, _pointer),
  "cuEventCreate": (_pointer, _u32), "cuEventDestroy_v2": (_pointer,), "cuEventRecord": (_pointer, _pointer),
  "cuEventQuery": (_pointer,),
  "cuEventElapsedTime": (_pointer, _pointer, _pointer), "cuGetErrorName": (_int, _pointer),
  "cuGetErrorString": (_int, _pointer),
}
OUT_OF_MEMORY, NO_DEVICE, INVALID_IMAGE, NO_BINARY, NOT_READY = 2, 100, 200, 209, 600
MULTIPROCESSORS, MAJOR, MINOR, L2_BYTES = 16, 75, 76, 38   # CUdevice_attribute
SHARED_OF_FUNCTION = 8                                     # CUfunction_attribute
MAPPED = 2                                                 # of cuMemHostRegister
WITHOUT_TIME = 2                                           # of cuEventCreate
ADVICE = {
  OUT_OF_MEMORY: (errno.ENOMEM, "drop references to tensors that are not needed, or use a smaller batch"),
  NO_DEVICE: (errno.ENODEV, "no GPU is visible; look at CUDA_VISIBLE_DEVICES, and at nvidia-smi"),
  46: (errno.EBUSY, "the GPU is in exclusive use; wait, or choose another"),
  803: (errno.EINVAL, "library and kernel module are of different versions; restart after an update"),
  INVALID_IMAGE: (errno.EINVAL, "the library does not read our file; report this with its version"),
  NO_BINARY: (errno.EINVAL, "the code is for another kind of GPU"),
}
STICKY = (700, 702, 709, 710, 714, 715, 716, 717, 718, 719)   # a kernel has destroyed the context

class Failure(Refused):
  """A call that failed. status: of CUDA."""
  def __init__(self, message: str, number: int, status: int):
    super().__init__(message, number)
    self.status = status

def load_library() -> Any:
  """Load the library. Raises DeviceError if there is none."""
  for name in (*NAMES, *(f"{folder}/{NAMES[0]}" for folder in FOLDERS)):
    try: return ctypes.CDLL(name)
    except OSError: continue
  raise DeviceError("NVIDIA's driver library (libcuda.so.1) is not there; install the vendor's driver, or have the "
                    "container's toolkit bring it")

class Library:
  """The functions of the library for `call`. loaded: the result of load_library."""
  def __init__(self, loaded: Any):
    self.functions: dict[str, Any] = {}
    for name, types in SIGNATURES.items():
      function = getattr(loaded, name, None)
      if function is None:
        raise DeviceError(f"NVIDIA's driver library has no {name}; it is older than CUDA 12: update the driver")
      function.argtypes, function.restype = types, ctypes.c_int
      self.functions[name] = function

  def call(self, name: str, *arguments: Any) -> None:
    """Call a function. Raises Failure."""
    status = int(self.functions[name](*arguments))
    if status: raise self.failure(name, status)

  def failure(self, name: str, status: int) -> Failure:
    """Return the error of a status."""
    words = []
    for ask in ("cuGetErrorName", "cuGetErrorString"):
      text = ctypes.c_char_p()
      words.append(text.value.decode() if not self.functions[ask](status, ctypes.byref(text)) and text.value
                   else f"status {status}")
    number, hint = ADVICE.get(status, (errno.EIO if status in STICKY else errno.EINVAL,
                                       "look into the kernel log (dmesg) for NVRM and Xid"))
    return Failure(f"{name}: {words[1]} ({words[0]}); {hint}", number, status)

  def number(self, name: str, *arguments: Any, kind: Any = ctypes.c_int) -> int:
    """Return a number that a function writes to its first argument."""
    found = kind()
    self.call(name, ctypes.byref(found), *arguments)
    return int(found.value or 0)

  def text(self, name: str, *arguments: Any) -> str:
    """Return text that a function writes to its first argument."""
    found = ctypes.create_string_buffer(256)
    self.call(name, found, len(found), *arguments)
    return found.value.decode("utf-8", "replace")
