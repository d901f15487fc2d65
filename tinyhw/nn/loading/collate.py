"""Items become a batch: tensors, arrays and numbers are stacked, within tuples, lists and dicts.

Elements are joined on the host, where items come from. Items that are expressions are computed first.
"""
from __future__ import annotations
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.methods.base import Handle
from tinyhw.tensor import Tensor

def collate(batch: Sequence[Any], tensor: Callable[[Any], Any]) -> Any:
  """Return items as one. tensor: makes a tensor of numbers or of an array.

  Raises ShapeError for tensors of different shapes, ArgumentError for lists of different lengths, and for items that
  have no form in a batch.
  """
  first = batch[0]
  if isinstance(first, Handle): return _stacked(batch)
  if isinstance(first, (str, bytes)): return list(batch)
  if _is_array(first): return _stacked([tensor(x) for x in batch])
  if isinstance(first, (bool, int, float)): return tensor(list(batch))
  if isinstance(first, Mapping):
    found = {key: collate([x[key] for x in batch], tensor) for key in first}
    try: return type(first)(found)  # type: ignore[call-arg]
    except TypeError: return found
  if isinstance(first, tuple) and hasattr(first, "_fields"):
    return type(first)(*[collate(parts, tensor) for parts in zip(*batch)])
  if isinstance(first, Sequence):
    lengths = {len(x) for x in batch}
    if len(lengths) > 1: raise ArgumentError(f"items of different lengths {sorted(lengths)} make no batch; give a "
                                             f"collate_fn")
    return [collate(parts, tensor) for parts in zip(*batch)]
  raise ArgumentError(f"a batch is made of tensors, arrays, numbers, texts, dicts and lists, not "
                      f"{type(first).__name__}; give a collate_fn")

def _is_array(x: Any) -> bool: return hasattr(x, "__array_interface__") and not isinstance(x, (Handle, str, bytes))

def _stacked(items: Sequence[Any]) -> Any:
  first = items[0]
  for x in items:
    if x.shape != first.shape:
      raise ShapeError(f"items of shapes {first.shape} and {x.shape} make no batch; give a collate_fn that pads them")
  if first.dtype.fmt is None or first.holds_complex or 0 in first.shape or not isinstance(first.device, str):
    return type(first).stack(*items)
  data = b"".join([Tensor._memory(x, zero_copy=True).cast("B") for x in items])
  found = Tensor(data, dtype=first.dtype, device=first.device).reshape(len(items), *first.shape)
  found.__class__ = Tensor if type(first) is Tensor else type(first.detach())
  return found

def convert(data: Any, tensor: Callable[[Any], Any]) -> Any:
  """Return an item with its arrays as tensors."""
  if _is_array(data): return tensor(data)
  if isinstance(data, Mapping): return {key: convert(x, tensor) for key, x in data.items()}
  if isinstance(data, tuple) and hasattr(data, "_fields"): return type(data)(*[convert(x, tensor) for x in data])
  if isinstance(data, tuple): return [convert(x, tensor) for x in data]
  if isinstance(data, Sequence) and not isinstance(data, (str, bytes)): return [convert(x, tensor) for x in data]
  return data

def default_collate(batch: Sequence[Any]) -> Any:
  """Return items as a batch. Whole numbers become int32, floats float32."""
  return collate(batch, Tensor)

def default_convert(data: Any) -> Any:
  """Return an item with its arrays as tensors."""
  return convert(data, Tensor)
