"""tinyhw: a deep learning framework in pure Python that talks to hardware directly.

The names below are imported when they are first used, so `import tinyhw` costs almost nothing.
"""
from __future__ import annotations
import importlib as _importlib
import os as _os

# In a clone `drivers/` and `autogen/` lie beside this folder; installed, they are already inside it.
if not _os.path.isdir(_os.path.join(__path__[0], "drivers")): __path__.append(_os.path.dirname(__path__[0]))

TYPE_CHECKING = False  # typing is loaded only for type checkers
if TYPE_CHECKING:
  from typing import Any
  from tinyhw import nn as nn
  from tinyhw.config import Context as Context, getenv as getenv
  from tinyhw.device import Device as Device
  from tinyhw.dtype import dtypes as dtypes
  from tinyhw.engine.jit import TinyJit as TinyJit
  from tinyhw.function import function as function
  from tinyhw.helpers import GlobalCounters as GlobalCounters
  from tinyhw.storage import fetch as fetch
  from tinyhw.tensor import Tensor as Tensor
  from tinyhw.uop.ops import UOp as UOp, Variable as Variable

_MODULES = {
  "Context": "config", "getenv": "config", "Device": "device", "dtypes": "dtype", "TinyJit": "engine.jit", "GlobalCounters": "helpers",
  "fetch": "storage", "function": "function", "Tensor": "tensor", "UOp": "uop.ops", "Variable": "uop.ops",
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
