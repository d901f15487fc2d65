"""tinyhw: a deep learning framework in pure Python that talks to hardware directly.

The names below are imported when they are first used, so `import tinyhw` costs almost nothing.
"""
from __future__ import annotations
import importlib as _importlib
import os as _os
import sys as _sys

__version__ = "0.1.0"

TYPE_CHECKING = False  # typing is loaded only for type checkers
if TYPE_CHECKING:
  from typing import Any
  from tinyhw import nn as nn
  from tinyhw.capture.jit import TinyJit as TinyJit
  from tinyhw.config import Context as Context, getenv as getenv
  from tinyhw.device import Device as Device
  from tinyhw.dtype import dtypes as dtypes
  from tinyhw.files.storage import fetch as fetch
  from tinyhw.function import function as function
  from tinyhw.helpers import GlobalCounters as GlobalCounters
  from tinyhw.tensor import Tensor as Tensor
  from tinyhw.uop.ops import UOp as UOp, Variable as Variable

_BESIDE = ("drivers", "autogen")
_ROOT = _os.path.dirname(__path__[0])
_PLACE = _os.path.join(__path__[0], "<beside>")   # no folder: an entry of __path__ that only _Beside understands

class _Beside:
  """Finds `drivers/` and `autogen/`, which lie next to this folder in a clone or an archive of one.

  It finds nothing else. If the clone itself were in `__path__`, setup.py, the examples and this package would become
  its own modules, recursively.
  """
  def __init__(self, path: str) -> None:
    if path != _PLACE: raise ImportError(f"{path} is not the place of {' and '.join(_BESIDE)}")

  def find_spec(self, name: str, target: Any = None) -> Any:
    import importlib.machinery as machinery  # hidden: takes time, and only an installed clone needs it
    return (machinery.PathFinder.find_spec(name, [_ROOT], target) if name in [f"{__name__}.{part}" for part in _BESIDE]
            else None)

  def iter_modules(self, prefix: str = "") -> list[tuple[str, bool]]:
    """List these packages for pkgutil."""
    return [(prefix + part, True) for part in _BESIDE if self.find_spec(f"{__name__}.{part}") is not None]

if not _os.path.isdir(_os.path.join(__path__[0], "drivers")):   # after installation they are inside
  _sys.path_hooks.insert(0, _Beside)   # before the hook of archives, which takes all paths inside of one
  __path__.append(_PLACE)

_MODULES = {
  "Context": "config", "getenv": "config", "Device": "device", "dtypes": "dtype", "TinyJit": "capture.jit",
  "GlobalCounters": "helpers",
  "fetch": "files.storage", "function": "function", "Tensor": "tensor", "UOp": "uop.ops", "Variable": "uop.ops",
}

__all__ = [*_MODULES, "nn"]  # noqa: PLE0604  # the keys of a dict, all strings

def __getattr__(name: str) -> Any:
  """The exported names, on first use."""
  if name == "nn": found = _importlib.import_module("tinyhw.nn")
  elif name in _MODULES: found = getattr(_importlib.import_module(f"tinyhw.{_MODULES[name]}"), name)
  else: raise AttributeError(f"module 'tinyhw' has no attribute {name!r}")
  globals()[name] = found
  return found

def __dir__() -> list[str]: return sorted({*globals(), *__all__})
