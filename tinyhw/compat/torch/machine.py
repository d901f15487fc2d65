"""Devices and settings of `torch`: device, backends, mps, threads, the default type, finfo and iinfo, compile, jit.

PyTorch's "cpu" is the default device, which may be a GPU. `torch.cuda` says that there is none, so that programs take
"cpu". Settings of PyTorch's own kernels are accepted, and change nothing.
"""
from __future__ import annotations
from collections.abc import Callable
import enum
import os
from typing import Any

from tinyhw.device import Device
from tinyhw.dtype import DType, DTypeLike, dtypes, to_dtype
from tinyhw.errors import ArgumentError

class TorchDevice(str):
  """The name of a device: "cpu", "cuda:1". It equals tinyhw's name of the same device."""
  __slots__ = ()
  saved_as = "torch", "device"

  def __new__(cls, name: Any = "cpu", index: int | None = None) -> TorchDevice:
    if isinstance(name, int): name = f"cuda:{name}"
    if not isinstance(name, str): raise ArgumentError(f"a device has a name, not {name!r}")
    return super().__new__(cls, name.lower() if index is None else f"{name.lower()}:{index}")

  @property
  def type(self) -> str:
    """The kind of device."""
    return self.partition(":")[0]

  @property
  def index(self) -> int | None:  # type: ignore[override]  # PyTorch's meaning
    """The number of the device; None for the only one."""
    number = self.partition(":")[2]
    return int(number) if number else None

  def __enter__(self) -> TorchDevice:
    self._outside().append(Device.DEFAULT)
    set_default_device(self)
    return self

  def __exit__(self, *_: object) -> None: Device.DEFAULT = self._outside().pop()

  @staticmethod
  def _outside() -> list[str]: return _outside_of_contexts

  def __eq__(self, other: object) -> bool: return isinstance(other, str) and self.upper() == other.upper()
  def __ne__(self, other: object) -> bool: return not self == other
  def __hash__(self) -> int: return hash(self.upper())
  def __repr__(self) -> str:
    return f"device(type={self.type!r}" + (f", index={self.index}" if self.index is not None else "") + ")"

_outside_of_contexts: list[str] = []     # default devices before `with torch.device(...)`
_first_default: list[str] = []           # that before set_default_device, if it was called

def set_default_device(device: Any) -> None:
  """Set the device of tensors that are made without one. None, "cpu" and "meta": that from the beginning."""
  if not _first_default: _first_default.append(Device.DEFAULT)
  name = "cpu" if device is None else str(device)
  Device.DEFAULT = _first_default[0] if name.split(":")[0] in ("cpu", "meta") else Device.canonicalize(name)

def get_default_device() -> TorchDevice:
  """Return the device of tensors that are made without one."""
  return TorchDevice(Device.DEFAULT)

class Setting:
  """Settings that are accepted, and change nothing."""
  def __init__(self, **values: Any): self.__dict__.update(values)

  def is_available(self) -> bool:
    """Return False: programs take "cpu"."""
    return False

  def is_built(self) -> bool:
    """Return False."""
    return False

mps, xpu = Setting(), Setting()
backends = Setting(cudnn=Setting(enabled=True, benchmark=False, deterministic=False, allow_tf32=True),
                   cuda=Setting(matmul=Setting(allow_tf32=False)), mps=Setting(), mkldnn=Setting(enabled=True))

class NumberLimits:
  """The limits of a type: bits, max, min, and for floats eps, tiny and resolution."""
  def __init__(self, dtype: DType):
    self.max: float
    self.min: float
    self.dtype, self.bits = str(dtype).removeprefix("dtypes."), dtype.itemsize * 8
    if dtypes.is_float(dtype):
      exponent, mantissa = dtypes.finfo(dtype)
      bias = (1 << (exponent - 1)) - 1
      self.eps, self.tiny = 2.0 ** -mantissa, 2.0 ** (1 - bias)
      self.max = (2.0 - 2.0 ** -mantissa) * 2.0 ** bias
      self.min, self.smallest_normal = -self.max, self.tiny
      self.resolution = 10.0 ** -int(mantissa * 0.30103)
    else:
      signed = not dtypes.is_unsigned(dtype)
      self.max = (1 << (self.bits - signed)) - 1
      self.min = -(1 << (self.bits - 1)) if signed else 0

def finfo(dtype: DTypeLike | None = None) -> NumberLimits:
  """Return the limits of a float type; None: the default one."""
  kind = dtypes.default_float if dtype is None else to_dtype(dtype)
  if not dtypes.is_float(kind): raise ArgumentError(f"finfo wants a float type, not {kind}; use iinfo")
  return NumberLimits(kind)

def iinfo(dtype: DTypeLike) -> NumberLimits:
  """Return the limits of a type of whole numbers."""
  kind = to_dtype(dtype)
  if not dtypes.is_int(kind): raise ArgumentError(f"iinfo wants a type of whole numbers, not {kind}; use finfo")
  return NumberLimits(kind)

def get_default_dtype() -> DType:
  """Return the type of floats that are made without one."""
  return dtypes.default_float

def set_default_dtype(d: DTypeLike) -> None:
  """Set the type of floats that are made without one."""
  kind = to_dtype(d)
  if not dtypes.is_float(kind): raise ArgumentError(f"the default type is a float type, not {kind}")
  dtypes.default_float = kind

def get_num_threads() -> int:
  """Return the count of processors."""
  return os.cpu_count() or 1

def set_num_threads(count: int) -> None:
  """Do nothing: THREADS of the environment decides."""

def compile(model: Any = None, **options: Any) -> Any:
  """Return a module or function as it is: TinyJit captures."""
  return (lambda function: function) if model is None else model

def _ignored(name: str) -> Callable[..., None]:
  def setting(*args: Any, **keywords: Any) -> None:
    """Do nothing: a setting of PyTorch's own kernels."""
  setting.__name__ = name
  return setting

set_float32_matmul_precision, use_deterministic_algorithms, set_num_interop_threads = (
  _ignored(name) for name in ("set_float32_matmul_precision", "use_deterministic_algorithms",
                              "set_num_interop_threads"))

def get_float32_matmul_precision() -> str:
  """Return "highest"."""
  return "highest"

def are_deterministic_algorithms_enabled() -> bool:
  """Return True: results do not depend on threads."""
  return True

def set_default_tensor_type(t: Any) -> None:
  """Set the type of floats by a legacy class, or its name."""
  set_default_dtype(t.kind if hasattr(t, "kind") else getattr(dtypes, _FLOATS[str(t).removeprefix("torch.")]))

_FLOATS = {"FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16", "BFloat16Tensor": "bfloat16"}

# ***** torch.jit, torch.compiler, torch.distributed: programs ask whether they run there *****

def script(obj: Any = None, **options: Any) -> Any:
  """Return a function or module as it is: scripts are Python here."""
  return compile(obj, **options)

ignore = unused = export = disable = script

def trace(func: Any, example_inputs: Any = None, **options: Any) -> Any:
  """Return a function or module as it is: TinyJit captures."""
  return func

def no(*args: Any, **keywords: Any) -> bool:
  """Return False."""
  return False

def rank_of_one(group: Any = None) -> int:
  """Return 0: there is one process."""
  return 0

def size_of_one(group: Any = None) -> int:
  """Return 1: there is one process."""
  return 1

cuda_version: str | None = None

def typename(obj: Any) -> str:
  """Return the legacy name of a tensor's type, or the name of a class."""
  if callable(getattr(obj, "type", None)) and hasattr(obj, "dtype"): return str(obj.type())
  kind = type(obj)
  return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"

class AttentionBackend(enum.IntEnum):
  """PyTorch's kernels of attention, which programs choose by `with sdpa_kernel(...)`. Here the planner chooses."""
  MATH = 0
  FLASH_ATTENTION = 1
  EFFICIENT_ATTENTION = 2
  CUDNN_ATTENTION = 3
