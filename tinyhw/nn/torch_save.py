"""Write the zip format of PyTorch's torch.save (torch_file.py reads it): tensors in lists, dicts and other objects.

data.pkl is a pickle of protocol 2 in which tensors are calls of `torch._utils._rebuild_tensor_v2` over storages, which
data/<key> holds. The names of PyTorch's functions and classes are written without importing them. Tensors that are the
whole of one buffer share a storage.
"""
from __future__ import annotations
from collections import OrderedDict
import io
import pickle
from typing import Any
import zipfile

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import DTypeError
from tinyhw.methods.base import Handle
from tinyhw.tensor import Tensor

_STORAGES = {dtypes.float32: "Float", dtypes.float64: "Double", dtypes.float16: "Half", dtypes.bfloat16: "BFloat16",
             dtypes.uint8: "Byte", dtypes.int8: "Char", dtypes.int16: "Short", dtypes.int32: "Int",
             dtypes.int64: "Long", dtypes.bool: "Bool"}
_NAMES = {dtypes.fp8e4m3: "float8_e4m3fn", dtypes.fp8e5m2: "float8_e5m2", dtypes.fp8e4m3fnuz: "float8_e4m3fnuz",
          dtypes.fp8e5m2fnuz: "float8_e5m2fnuz"}

class GlobalName:
  """A name of a module, written as it is."""
  def __init__(self, module: str, name: str): self.module, self.name = module, name
  def __call__(self, *_: Any) -> Any: raise NotImplementedError(f"{self.module}.{self.name} is only written")

class SavedStorage:
  """The elements of a tensor, below a key."""
  def __init__(self, key: str, kind: GlobalName, count: int): self.key, self.kind, self.count = key, kind, count

def name_of(dtype: DType) -> str:
  """Return PyTorch's name of a type."""
  short = {"Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Byte": "uint8",
           "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64", "Bool": "bool"}
  if dtype in _STORAGES: return short[_STORAGES[dtype]]
  return _NAMES.get(dtype) or repr(dtype).removeprefix("dtypes.")

_InPython: Any = vars(pickle)["_Pickler"]     # in Python, so that the writing of globals can be changed

class TorchPickler(_InPython):  # type: ignore[misc]
  """Writes the pickle, and collects the storages."""
  def __init__(self, file: Any):
    super().__init__(file, 2)
    self.storages: dict[str, bytes] = {}
    self.by_buffer: dict[int, tuple[Any, SavedStorage]] = {}

  def persistent_id(self, obj: Any) -> Any:
    """Return the id of a storage."""
    if not isinstance(obj, SavedStorage): return None
    return "storage", obj.kind, obj.key, "cpu", obj.count

  def reducer_override(self, obj: Any) -> Any:
    """Return how a tensor, a type or a name of PyTorch's is written."""
    if isinstance(obj, GlobalName): return obj.name
    if isinstance(obj, DType): return name_of(obj)
    if not isinstance(obj, Handle):
      own = getattr(type(obj), "saved_as", None)     # PyTorch's class of the same text
      return NotImplemented if own is None else (GlobalName(*own), (str(obj),))
    made = self._tensor(obj)
    if not getattr(obj, "is_parameter", False): return made
    plain: Any = obj._view(obj.uop)
    plain.__class__ = Tensor
    return GlobalName("torch._utils", "_rebuild_parameter"), (plain, bool(obj.requires_grad), OrderedDict())

  def save_global(self, obj: Any, name: str | None = None) -> None:
    """Write a name without importing its module."""
    if isinstance(obj, DType): obj = GlobalName("torch", name_of(obj))
    if not isinstance(obj, GlobalName):
      super().save_global(obj, name)
      return
    self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
    self.memoize(obj)

  def _tensor(self, x: Any) -> Any:
    if x.holds_complex: raise DTypeError("a complex tensor is not saved; save its view_as_real")
    shape = tuple([int(d) for d in x.shape])
    strides, step = [0] * len(shape), 1
    for axis in reversed(range(len(shape))): strides[axis], step = step, step * max(shape[axis], 1)
    arguments: tuple[Any, ...] = (self._storage(x), 0, shape, tuple(strides), bool(x.requires_grad), OrderedDict())
    if x.dtype in _STORAGES: return GlobalName("torch._utils", "_rebuild_tensor_v2"), arguments
    return GlobalName("torch._utils", "_rebuild_tensor_v3"), (*arguments, x.dtype)

  def _storage(self, x: Any) -> SavedStorage:
    x.realize()
    buffer = x._whole_buffer()
    if buffer is not None and id(buffer) in self.by_buffer: return self.by_buffer[id(buffer)][1]
    data = bytes(x._read()[0])
    kind = GlobalName("torch", f"{_STORAGES[x.dtype]}Storage") if x.dtype in _STORAGES else GlobalName(
      "torch.storage", "UntypedStorage")
    count = len(data) // (x.dtype.itemsize if x.dtype in _STORAGES else 1)
    found = SavedStorage(str(len(self.storages)), kind, count)
    self.storages[found.key] = data
    if buffer is not None: self.by_buffer[id(buffer)] = buffer, found
    return found

def torch_save(obj: Any, file: Any) -> None:
  """Write an object with Tensors in it, as PyTorch's torch.save does. file: a path, or a binary file.

  Raises DTypeError for complex tensors.
  """
  text = io.BytesIO()
  pickler = TorchPickler(text)
  pickler.dump(obj)
  with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
    for name, data in (("data.pkl", text.getvalue()), ("byteorder", b"little"), *[
        (f"data/{key}", data) for key, data in pickler.storages.items()], ("version", b"3\n")):
      archive.writestr(zipfile.ZipInfo(f"archive/{name}"), data)
