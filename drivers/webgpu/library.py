"""wgpu-native by ctypes: where the library is, the calls of this driver with their types, texts.

Source: `webgpu.h` and `wgpu.h` of wgpu-native. The structures of the interface differ between versions, so a library of
another version than those of `autogen/webgpu.py` is refused. Calls have no status: errors come by a callback
(device.py).
"""
from __future__ import annotations
import ctypes
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tinyhw.autogen import webgpu
from tinyhw.autogen.webgpu import CallbackInfo, Future, StringView
from tinyhw.config import WEBGPU_LIBRARY
from tinyhw.errors import DeviceError

PREFIX = "wgpu"
WHEEL = "wgpu"   # the Python package that has the library in its folder `resources`; it is not imported
NAMES = ("libwgpu_native-release.so", "libwgpu_native-release.dylib", "wgpu_native-release.dll", "libwgpu_native.so",
         "libwgpu_native.dylib", "wgpu_native.dll")
WAYLAND = "WAYLAND_DISPLAY"   # the socket of the desktop's display, for libwayland
_pointer, _size, _u32, _u64 = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32, ctypes.c_uint64
_make = (_pointer, _pointer, _pointer)
_release = (None, _pointer)
# result, arguments
CALLS: dict[str, tuple[Any, ...]] = {
  "GetVersion": (_u32,), "CreateInstance": (_pointer, _pointer),
  "InstanceEnumerateAdapters": (_size, _pointer, _pointer, _pointer),
  "AdapterGetInfo": (_u32, _pointer, _pointer), "AdapterGetLimits": (_u32, _pointer, _pointer),
  "AdapterGetFeatures": (None, _pointer, _pointer), "AdapterRelease": _release,
  "AdapterInfoFreeMembers": (None, webgpu.AdapterInfo),
  "SupportedFeaturesFreeMembers": (None, webgpu.SupportedFeatures),
  "AdapterRequestDevice": (Future, _pointer, _pointer, CallbackInfo),
  "DeviceGetQueue": (_pointer, _pointer), "DevicePoll": (_u32, _pointer, _u32, _pointer), "DeviceRelease": _release,
  "DeviceCreateBuffer": _make, "DeviceCreateShaderModule": _make, "DeviceCreateBindGroupLayout": _make,
  "DeviceCreatePipelineLayout": _make, "DeviceCreateComputePipeline": _make, "DeviceCreateBindGroup": _make,
  "DeviceCreateCommandEncoder": _make, "DeviceCreateQuerySet": _make,
  "CommandEncoderBeginComputePass": _make, "CommandEncoderFinish": _make, "CommandEncoderRelease": _release,
  "CommandEncoderCopyBufferToBuffer": (None, _pointer, _pointer, _u64, _pointer, _u64, _u64),
  "CommandEncoderResolveQuerySet": (None, _pointer, _pointer, _u32, _u32, _pointer, _u64),
  "ComputePassEncoderSetPipeline": (None, _pointer, _pointer),
  "ComputePassEncoderSetBindGroup": (None, _pointer, _u32, _pointer, _size, _pointer),
  "ComputePassEncoderDispatchWorkgroups": (None, _pointer, _u32, _u32, _u32),
  "ComputePassEncoderEnd": _release, "ComputePassEncoderRelease": _release, "CommandBufferRelease": _release,
  "QueueSubmit": (None, _pointer, _size, _pointer),
  "QueueWriteBuffer": (None, _pointer, _pointer, _u64, _pointer, _size),
  "QueueOnSubmittedWorkDone": (Future, _pointer, CallbackInfo), "QueueGetTimestampPeriod": (ctypes.c_float, _pointer),
  "BufferMapAsync": (Future, _pointer, _u64, _size, _size, CallbackInfo),
  "BufferGetConstMappedRange": (_pointer, _pointer, _size, _size), "BufferUnmap": _release, "BufferRelease": _release,
  "ShaderModuleRelease": _release, "BindGroupLayoutRelease": _release, "PipelineLayoutRelease": _release,
  "ComputePipelineRelease": _release, "BindGroupRelease": _release, "QuerySetRelease": _release,
  "QueueRelease": _release,
}
INSTALL = f"install the Python package {WHEEL}, or give the path of wgpu-native with {WEBGPU_LIBRARY.key}"

def library_paths() -> list[str]:
  """Return where the library may be, best first: the one that is named, the wheel's, the system's."""
  if WEBGPU_LIBRARY.value: return [str(WEBGPU_LIBRARY.value)]
  try: spec = importlib.util.find_spec(WHEEL)
  except (ImportError, ValueError): spec = None
  folders = list(spec.submodule_search_locations or ()) if spec is not None else []
  wheel = [Path(folder, "resources", name) for folder in folders for name in NAMES]
  return [*[str(path) for path in wheel if path.exists()], *NAMES]

def load_library() -> Any:
  """Load wgpu-native. Raises DeviceError if there is none."""
  for path in library_paths():
    try: return ctypes.CDLL(os.path.expanduser(path))
    except OSError as error: reason = str(error)
  if WEBGPU_LIBRARY.value: raise DeviceError(f"{WEBGPU_LIBRARY.key}: {reason}; name the file of wgpu-native's library")
  raise DeviceError(f"the library of wgpu-native is not there; {INSTALL}")

def text_of(view: Any) -> str:
  """Return a text of the library, which it keeps."""
  return ctypes.string_at(view.data, view.length).decode("utf-8", "replace") if view.data and view.length else ""

@contextmanager
def without_wayland() -> Iterator[None]:
  """Keep libwayland quiet where the environment names no display.

  Mesa's Vulkan layer asks Wayland which GPU shows the desktop. Without XDG_RUNTIME_DIR libwayland prints an error for
  each question; a path that is no socket fails without a word.
  """
  if "XDG_RUNTIME_DIR" in os.environ or WAYLAND in os.environ:
    yield
    return
  os.environ[WAYLAND] = os.devnull
  try: yield
  finally: del os.environ[WAYLAND]

class Text:
  """A text for the library. Valid as long as this object lives."""
  def __init__(self, text: bytes):
    self.memory = ctypes.create_string_buffer(text, max(len(text), 1))
    self.view = StringView(ctypes.addressof(self.memory), len(text))

class WgpuLibrary:
  """The functions of the library, as attributes without the prefix, and its instance. loaded: of load_library."""
  def __init__(self, loaded: Any):
    self.functions: dict[str, Any] = {}
    for name, (result, *arguments) in CALLS.items():
      function = getattr(loaded, PREFIX + name, None)
      if function is None:
        raise DeviceError(f"the library has no {PREFIX}{name}; it is another library, or of another version: {INSTALL}")
      function.restype, function.argtypes = result, arguments
      self.functions[name] = function
    number = self.call("GetVersion")
    self.version = ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))
    if number >> 24 not in webgpu.VERSIONS:
      raise DeviceError(f"wgpu-native is version {self.version}, and this driver knows the structures of "
                        f"{', '.join(map(str, webgpu.VERSIONS))} only; install another version of {WHEEL}")
    self.instance = self.call("CreateInstance", None)
    if not self.instance: raise DeviceError("wgpu-native gives no instance; update the system's graphics drivers")

  def call(self, name: str, *arguments: Any) -> Any:
    """Call a function."""
    return self.functions[name](*arguments)

  def adapters(self) -> list[int]:
    """Return the handles of all adapters but OpenGL's; the caller releases them."""
    options = webgpu.InstanceEnumerateAdapterOptions(backends=webgpu.BACKEND_PRIMARY)
    with without_wayland():
      count = self.call("InstanceEnumerateAdapters", self.instance, ctypes.addressof(options), None)
      found = (_pointer * max(count, 1))()
      count = min(count, self.call("InstanceEnumerateAdapters", self.instance, ctypes.addressof(options), found))
    return [handle or 0 for handle in found[:count]]
