"""`torch.save` and `torch.load`, in PyTorch's own file format.

load reads plain data (numbers, texts, lists, dicts, tensors) by nn/torch_file.py, which runs no code of the file. With
weights_only=False it runs the pickle, which may do anything: only for files that you trust.
"""
from __future__ import annotations
from collections import OrderedDict
import io
import os
import pickle
from typing import Any
import zipfile

from tinyhw.compat.torch.creation import place
from tinyhw.compat.torch.dress import dress
from tinyhw.compat.torch.modules.module import Parameter
from tinyhw.dtype import DType
from tinyhw.errors import ArgumentError, FileFormatError
from tinyhw.methods.base import Handle
from tinyhw.nn.torch_file import NAMES, StorageType, torch_load
from tinyhw.nn.torch_save import torch_save
from tinyhw.tensor import Tensor

def save(obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 2,
         _use_new_zipfile_serialization: bool = True) -> None:
  """Write an object with tensors in it. f: a path, or a binary file."""
  torch_save(obj, f)

def load(f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None,
         mmap: bool | None = None, **pickle_load_args: Any) -> Any:
  """Read a file of torch.save. weights_only: True (and None) for plain data with tensors; False runs the pickle.

  map_location: the device of the tensors; None: the default one.
  """
  data = f.read() if hasattr(f, "read") else None
  target = None if map_location is None or callable(map_location) or isinstance(map_location, dict) else place(
    map_location)
  if weights_only is False: return _Trusted.load_all(io.BytesIO(data) if data is not None else f, target)
  if data is None and not isinstance(f, (str, os.PathLike)):
    raise ArgumentError(f"load wants a path or a binary file, not {f!r}")
  return _placed(torch_load(os.fspath(f) if data is None else Tensor(data)), target, {})

def _placed(x: Any, device: Any, seen: dict[int, Any]) -> Any:
  """Return a loaded object with its tensors in memory."""
  if isinstance(x, Handle):
    if id(x) not in seen: seen[id(x)] = x, dress(x._self().to(device or Tensor(0).device).contiguous().realize())
    return seen[id(x)][1]
  if isinstance(x, OrderedDict): return OrderedDict([(k, _placed(v, device, seen)) for k, v in x.items()])
  if isinstance(x, dict): return {k: _placed(v, device, seen) for k, v in x.items()}
  if isinstance(x, (list, tuple)):
    items = [_placed(v, device, seen) for v in x]
    return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
  return x

class _Trusted(pickle.Unpickler):
  """Runs the pickle of a file."""
  archive: zipfile.ZipFile
  device: Any = None

  @classmethod
  def load_all(cls, file: Any, device: Any) -> Any:
    """Return the object of a file."""
    try: archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile: raise FileFormatError("weights_only=False reads the zip format only") from None
    with archive:
      root = next((n for n in archive.namelist() if n.endswith("data.pkl")), None)
      if root is None: raise FileFormatError("the archive has no data.pkl; was it written by torch.save?")
      found = cls(io.BytesIO(archive.read(root)))
      found.archive, found.device, found.root = archive, device, root.removesuffix("data.pkl")
      return found.load()
  root = ""

  def persistent_load(self, pid: Any) -> Any:
    """Return the type and the bytes of a storage."""
    return pid[1], self.archive.read(f"{self.root}data/{pid[2]}")

  def find_class(self, module: str, name: str) -> Any:
    """Return what a name of PyTorch's stands for here, or import it."""
    own = {"_rebuild_tensor_v2": self._tensor, "_rebuild_tensor_v3": self._tensor, "_rebuild_parameter": _parameter}
    if module == "torch._utils" and name in own: return own[name]
    known = NAMES.get(f"{module} {name}")
    if isinstance(known, (StorageType, DType)): return known
    if f"{module} {name}" == "torch Size": return tuple
    if f"{module} {name}" == "torch device": return str
    return super().find_class(module, name)

  def _tensor(self, storage: Any, offset: int, size: Any, stride: Any, requires_grad: bool = False, hooks: Any = None,
              dtype: Any = None, *_: Any) -> Any:
    kind, data = storage
    found: DType = dtype if isinstance(dtype, DType) else kind.dtype
    usual, step = [0] * len(size), 1
    for axis in reversed(range(len(size))): usual[axis], step = step, step * max(size[axis], 1)
    flat = Tensor(data, dtype=found)
    if 0 in size: x = flat[:0].reshape(size)
    elif list(stride) == usual: x = flat[offset:offset + step].reshape(size)
    else:
      places = Tensor(offset)
      for axis, (n, s) in enumerate(zip(size, stride)):
        places = places + (Tensor.arange(n) * s).reshape([n if k == axis else 1 for k in range(len(size))])
      x = flat[places]
    x = dress(x.to(self.device or Tensor(0).device).contiguous().realize())
    return x.requires_grad_() if requires_grad else x

def _parameter(data: Any, requires_grad: bool, hooks: Any) -> Any: return Parameter(data, requires_grad)
