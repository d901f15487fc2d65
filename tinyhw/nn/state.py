"""The state of models: their tensors by name, and the files that hold such tensors.

The formats have files of their own, and all their names are here: safetensors, PyTorch's, NumPy's, tar and zip archives.
"""
from __future__ import annotations
from typing import Any

from tinyhw.errors import ArgumentError
from tinyhw.nn.npy import npy_load as npy_load, npy_save as npy_save, npz_load as npz_load, npz_save as npz_save
from tinyhw.nn.safetensors import (inverse_safe_dtypes as inverse_safe_dtypes, safe_dtypes as safe_dtypes, safe_load as safe_load,
                                   safe_load_metadata as safe_load_metadata, safe_save as safe_save)
from tinyhw.nn.tar_archive import tar_extract as tar_extract
from tinyhw.nn.tensor_io import TensorIO as TensorIO
from tinyhw.nn.torch_file import torch_load as torch_load
from tinyhw.nn.zip_archive import zip_extract as zip_extract
from tinyhw.progress import tqdm
from tinyhw.tensor import Tensor

# ***** names *****

def get_state_dict(obj: Any, prefix: str = "", tensor_type: type = Tensor) -> dict[str, Any]:
  """The Tensors in an object by name: attributes, items of lists and dicts, all the way down: "layers.0.weight"."""
  found: dict[str, Any] = {}
  stack: list[tuple[str, Any]] = [(prefix.rstrip("."), obj)]
  seen: set[int] = set()
  while stack:
    name, x = stack.pop()
    if isinstance(x, tensor_type):
      found[name] = x
      continue
    items = _items(x)
    if items is None or id(x) in seen and not isinstance(x, (list, tuple, dict)): continue
    seen.add(id(x))
    stack.extend((f"{name}.{key}" if name else str(key), value) for key, value in reversed(items))
  return found

def _items(x: Any) -> list[tuple[Any, Any]] | None:
  """What is inside of an object, or None if it is no container."""
  if isinstance(x, tuple) and hasattr(x, "_asdict"): return list(x._asdict().items())
  if isinstance(x, (list, tuple)): return list(enumerate(x))
  if isinstance(x, dict): return list(x.items())
  if isinstance(x, type) or callable(getattr(x, "__code__", None)): return None
  return list(x.__dict__.items()) if hasattr(x, "__dict__") else None

def get_parameters(obj: Any) -> list[Tensor]:
  """The Tensors in an object."""
  return list(get_state_dict(obj).values())

def load_state_dict(model: Any, state_dict: dict[str, Tensor], strict: bool = True, verbose: bool = True, consume: bool = False,
                    realize: bool = True) -> list[Tensor]:
  """Give a model's tensors the values of state_dict. Raises ArgumentError if a name is missing (strict) or a shape differs.

  The model gets copies, so training it does not change state_dict; consume: it gets the tensors themselves, and the entries are removed.
  realize: convert and move them now, else when they are used. Returns the model's tensors.
  """
  own = get_state_dict(model)
  missing = [name for name in own if name not in state_dict]
  if strict and missing: raise ArgumentError(f"the state has no {missing[0]!r}" + (f" and {len(missing) - 1} more" if len(missing) > 1 else "") +
                                             f"; it has {', '.join(list(state_dict)[:8])}; strict=False loads what is there")
  for name, tensor in own.items():
    if name in state_dict and _fitting(tensor, state_dict[name]) is None:
      raise ArgumentError(f"{name!r} has shape {tensor.shape} in the model and {state_dict[name].shape} in the state")
  loaded = []
  for name, tensor in tqdm(own.items(), desc="loading", disable=not verbose or len(own) < 2, total=len(own)):
    if name not in state_dict: continue
    value = _fitting(tensor, state_dict[name])
    assert value is not None
    tensor.replace((value if consume else value.copied()).shard_like(tensor).cast(tensor.dtype))
    if realize: tensor.realize()
    if consume: del state_dict[name]
    loaded.append(tensor)
  return loaded

def _fitting(tensor: Tensor, value: Tensor) -> Tensor | None:
  """value in tensor's shape: (1,) and () are the same."""
  if tensor.shape == value.shape: return value
  return value.reshape(tensor.shape) if {tensor.shape, value.shape} == {(), (1,)} else None
