"""DLPack capsules: pass memory to another array library, or take it from one, without a copy.

A capsule holds the address of a managed tensor (autogen/dlpack.py). The taker renames the capsule, and calls the
deleter when it no longer needs the memory. A capsule that nobody took calls the deleter itself when it is destroyed.
Any thread may call a deleter, so the callbacks of this module are never freed.
"""
from __future__ import annotations
import ctypes
import sys
from collections.abc import Sequence
from typing import Any

from tinyhw.autogen import dlpack as c
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import InterchangeError
from tinyhw.named_tuple import NamedTuple

_CODES: dict[DType, int] = {
  dtypes.bool: c.kDLBool, dtypes.bfloat16: c.kDLBfloat,
  **dict.fromkeys((dtypes.float16, dtypes.float32, dtypes.float64), c.kDLFloat),
  **dict.fromkeys((dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64), c.kDLInt),
  **dict.fromkeys((dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64), c.kDLUInt),
  dtypes.fp8e4m3: c.kDLFloat8_e4m3fn, dtypes.fp8e4m3fnuz: c.kDLFloat8_e4m3fnuz, dtypes.fp8e5m2: c.kDLFloat8_e5m2,
  dtypes.fp8e5m2fnuz: c.kDLFloat8_e5m2fnuz,
}
_DTYPES = {(code, dtype.itemsize * 8): dtype for dtype, code in _CODES.items()}
VERSION = c.VERSION
_HOST_MEMORY = (c.kDLCPU, c.kDLCUDAHost, c.kDLROCMHost)

_python = ctypes.pythonapi
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p,
                         ctypes.c_void_p)(("PyCapsule_New", _python))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", _python))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", _python))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", _python))
# The same for a capsule that is being destroyed: a py_object would revive it.
_dying_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _python))
_dying_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _python))

class Taken(NamedTuple):
  """Memory of another library. strides: in elements. owner: keep it for as long as the memory is used."""
  address: int
  shape: tuple[int, ...]
  strides: tuple[int, ...]
  dtype: DType
  read_only: bool
  owner: Any

# ***** giving *****

# address of a managed tensor that another library holds -> the objects that must live as long
_given: dict[int, tuple[Any, ...]] = {}

def _forget(managed: int) -> None:
  """Release memory that the other library no longer uses."""
  _given.pop(managed, None)

def _forget_untaken(capsule: int) -> None:
  """Release the memory of a capsule that is being destroyed, if nobody took it."""
  for name in (c.NAME, c.LEGACY_NAME):
    if _dying_is_valid(capsule, name): _given.pop(_dying_pointer(capsule, name), None)

_release, _drop = c.Deleter(_forget), ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_forget_untaken)
# other libraries may call them while Python ends
for _callback in (_release, _drop): _python.Py_IncRef(ctypes.py_object(_callback))

def give(memory: memoryview, dtype: DType, shape: Sequence[int], strides: Sequence[int], offset: int, versioned: bool,
         copied: bool) -> Any:
  """Return a capsule for writable memory of the host. The capsule and its taker keep the memory alive. offset: that of
  the first element, in elements."""
  n = len(shape)
  sizes, steps = (ctypes.c_int64 * n)(*shape), (ctypes.c_int64 * n)(*strides)
  address = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + offset * dtype.itemsize if memory.nbytes else None
  tensor = c.DLTensor(data=address, device_type=c.kDLCPU, ndim=n, code=_CODES[dtype], bits=dtype.itemsize * 8, lanes=1,
                      shape=ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64)),
                      strides=ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64)))
  deleter = ctypes.cast(_release, ctypes.c_void_p)
  managed: ctypes.Structure
  if versioned:
    managed = c.DLManagedTensorVersioned(*VERSION, None, deleter, c.FLAG_IS_COPIED if copied else 0, tensor)
  else: managed = c.DLManagedTensor(tensor, None, deleter)
  _given[ctypes.addressof(managed)] = managed, sizes, steps, memory
  return _new(ctypes.addressof(managed), c.NAME if versioned else c.LEGACY_NAME, ctypes.cast(_drop, ctypes.c_void_p))

# ***** taking *****

class _Owner:
  """An owner that calls the deleter of a managed tensor when its last reference goes."""
  def __init__(self, address: int, deleter: int | None):
    self.address, self.delete = address, c.Deleter(deleter) if deleter else None

  def __del__(self) -> None:
    if self.delete is not None and not sys.is_finalizing(): self.delete(self.address)

def take(capsule: Any) -> Taken:
  """Return the contents of a capsule, which belong to the caller from now on.

  Raises InterchangeError for an object that is no such capsule, or for one that was taken before.
  """
  if type(capsule).__name__ != "PyCapsule":
    raise InterchangeError(f"__dlpack__() gave {type(capsule).__name__}, which is no DLPack capsule")
  name, used = (c.NAME, c.USED) if _is_valid(capsule, c.NAME) else (c.LEGACY_NAME, c.LEGACY_USED)
  if not _is_valid(capsule, name):
    raise InterchangeError("the capsule holds no DLPack tensor, or was taken already; ask for a new one")
  address = _pointer(capsule, name)
  managed: Any = (c.DLManagedTensorVersioned if name is c.NAME else c.DLManagedTensor).from_address(address)
  flags = managed.flags if name is c.NAME else 0
  if name is c.NAME and managed.major > VERSION[0]:
    raise InterchangeError(f"the capsule is of DLPack {managed.major}.{managed.minor}, and up to {VERSION[0]} is "
                           f"known here; "
                           f"ask for it with max_version={VERSION}")
  tensor = managed.dl_tensor
  if tensor.device_type not in _HOST_MEMORY:
    raise InterchangeError(f"the memory is on a device (DLPack type {tensor.device_type}), which cannot be used in "
                           f"place; move it to the CPU first")
  dtype = _DTYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
  if dtype is None:
    raise InterchangeError(f"elements of DLPack type {tensor.code} with {tensor.bits} bits and {tensor.lanes} lanes "
                           f"have no dtype here; convert them")
  shape = tuple(tensor.shape[:tensor.ndim]) if tensor.ndim else ()
  strides = tuple(tensor.strides[:tensor.ndim]) if tensor.ndim and tensor.strides else row_major(shape)
  data = (tensor.data or 0) + tensor.byte_offset
  _rename(capsule, used)
  return Taken(data, shape, strides, dtype, bool(flags & c.FLAG_READ_ONLY), _Owner(address, managed.deleter))

def row_major(shape: Sequence[int]) -> tuple[int, ...]:
  """Return the strides of contiguous elements in row-major order."""
  strides: list[int] = []
  step = 1
  for n in reversed(shape):
    strides.append(step)
    step *= max(n, 1)
  return tuple(reversed(strides))

def dense_order(taken: Taken) -> list[int] | None:
  """Return the axes from outer to inner if the elements are contiguous in that order, else None."""
  order = sorted(range(len(taken.shape)), key=lambda axis: (-taken.strides[axis], -taken.shape[axis], axis))
  step = 1
  for axis in reversed(order):
    if taken.shape[axis] == 1: continue
    if taken.strides[axis] != step: return None
    step *= taken.shape[axis]
  return order

def bytes_of(taken: Taken) -> bytes:
  """Return a copy of the elements in row-major order."""
  size = taken.dtype.itemsize
  if 0 in taken.shape: return b""
  rows = [taken.address]
  inner, axis = size, len(taken.shape)
  # the last axes, which are contiguous
  while axis and (taken.strides[axis - 1] * size == inner or taken.shape[axis - 1] == 1):
    axis -= 1
    inner *= taken.shape[axis]
  for n, stride in zip(taken.shape[:axis], taken.strides):
    rows = [row + i * stride * size for row in rows for i in range(n)]
  return b"".join([ctypes.string_at(row, inner) for row in rows])
