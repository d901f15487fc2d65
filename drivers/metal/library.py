"""libobjc and the frameworks of a Mac by ctypes, or those of a virtual one (EMULATE=apple7).

`load_library` is the single entry point of the driver. It returns a `MetalLibrary`: C functions with their types, and
prototypes of objc_msgSend. System libraries have no file on disk since macOS 11, and open by their full path.
"""
from __future__ import annotations
import ctypes
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tinyhw.config import EMULATE
from tinyhw.errors import DeviceError

PATHS = {
  "objc": "/usr/lib/libobjc.A.dylib",
  "foundation": "/System/Library/Frameworks/Foundation.framework/Foundation",
  # without CoreGraphics a command-line program has no default device
  "graphics": "/System/Library/Frameworks/CoreGraphics.framework/CoreGraphics",
  "metal": "/System/Library/Frameworks/Metal.framework/Metal",
}

class MetalLibrary(Protocol):
  """The libraries of a Mac. virtual: its GPU advances when a program asks for the status of its work."""
  @property
  def virtual(self) -> bool: ...
  def function(self, name: str, result: Any, *types: Any) -> Callable[..., Any]:
    """Return a C function of libobjc or Metal with these types."""
  def message(self, result: Any, types: Sequence[Any]) -> Callable[..., Any]:
    """Return a prototype of objc_msgSend of its own. types: of all arguments, with receiver and selector."""

class SystemLibrary:
  """The libraries of this Mac. Raises DeviceError if one is missing."""
  virtual = False

  def __init__(self) -> None:
    self.loaded: dict[str, Any] = {}
    for name, path in PATHS.items():
      try: self.loaded[name] = ctypes.CDLL(path)
      except OSError as error:
        raise DeviceError(f"loading {path}: {error}; it is part of macOS, so the system is damaged or this process is "
                          f"in a sandbox") from None

  def function(self, name: str, result: Any, *types: Any) -> Callable[..., Any]:
    found: Any = getattr(self.loaded["metal" if name.startswith("MTL") else "objc"], name)
    found.restype, found.argtypes = result, types
    return found  # type: ignore[no-any-return]

  def message(self, result: Any, types: Sequence[Any]) -> Callable[..., Any]:
    address = ctypes.cast(self.loaded["objc"].objc_msgSend, ctypes.c_void_p).value
    assert address is not None, "a loaded symbol has an address"
    return ctypes.CFUNCTYPE(result, *types)(address)

def load_library() -> MetalLibrary:
  """Return the libraries: the virtual ones of EMULATE, else this system's. Raises DeviceError if there are none."""
  if EMULATE.value:
    emulator = importlib.import_module("tinyhw.emulator")   # the driver does not depend on it
    found = getattr(emulator.box(EMULATE.value), "metal", None)
    if found is None:
      raise DeviceError(f"EMULATE={EMULATE} has no Metal; name a GPU of Apple, such as EMULATE=apple7, or use the "
                        f"device of that card")
    return found  # type: ignore[no-any-return]
  if sys.platform != "darwin":
    raise DeviceError("Metal is part of macOS; on other systems EMULATE=apple7 DEV=METAL runs a virtual one")
  return SystemLibrary()
