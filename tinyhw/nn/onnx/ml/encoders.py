"""Encoders of ai.onnx.ml: labels to other labels, categories to vectors. Source: ONNX operator schemas (ai.onnx.ml).

Numbers are looked up by kernels: each element is compared with all keys. Text is looked up on the host.
"""
from __future__ import annotations
import math
from collections.abc import Sequence
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError
from tinyhw.nn.onnx.ml.features import ML
from tinyhw.nn.onnx.operator import Floats, Ints, Strings, Value, as_numbers, as_tensor, operator
from tinyhw.nn.onnx.ops.shape import check_count
from tinyhw.nn.onnx.texts import TextTensor
from tinyhw.tensor import Tensor

def _elements(x: Value) -> list[Any]: return list(x.values) if isinstance(x, TextTensor) else as_numbers(x)

def _matches(x: Tensor, keys: Sequence[Any]) -> Tensor:
  """Return which element equals which key: a further axis of bools. NaN equals NaN."""
  check_count(int(x.numel()) * len(keys), "a lookup")
  kind = x.dtype if dtypes.is_float(x.dtype) or all(isinstance(key, int) for key in keys) else dtypes.float64
  found: Tensor = x.cast(kind).unsqueeze(-1).eq(Tensor(list(keys), dtype=kind, device=x.device))
  if not any(isinstance(key, float) and math.isnan(key) for key in keys): return found
  nans = Tensor([key != key for key in keys], dtype=dtypes.bool, device=x.device)
  return found | (x.isnan().unsqueeze(-1) & nans)

def places(x: Value, keys: Sequence[Any]) -> Any:
  """Return the index of each element in keys, or their number if it is not there: as a Tensor, of text as a list. Of
  equal keys the last one counts."""
  if isinstance(x, TextTensor):
    place = {key: i for i, key in enumerate(keys)}
    return [place.get(text, len(keys)) for text in x.values]
  tensor = as_tensor(x)
  if not keys: return tensor.zeros_like(dtype=dtypes.int32)
  order = Tensor.arange(len(keys), dtype=dtypes.int32, device=tensor.device)
  best = _matches(tensor, keys).where(order, -1).max(-1)
  return (best < 0).where(len(keys), best)

def mapped(x: Value, keys: Sequence[Any], values: Sequence[Any], default: Any, dtype: Any) -> Any:
  """Return the values of keys. dtype: of the values; None: they are text."""
  if len(keys) != len(values): raise ArgumentError(f"{len(keys)} keys have {len(values)} values; give as many")
  if any(isinstance(key, str) != isinstance(x, TextTensor) for key in keys[:1]):
    raise ArgumentError(f"the keys {list(keys[:4])!r} have another type than the input")
  index, shape = places(x, keys), [int(d) for d in x.shape]
  table = [*values, default]
  if dtype is None:
    return TextTensor([table[i] for i in (index if isinstance(index, list) else as_numbers(index))], shape)
  if isinstance(index, list): return Tensor([table[i] for i in index], dtype=dtype).reshape(shape)
  return Tensor(table, dtype=dtype, device=index.device)[index]

@operator("LabelEncoder", 2, ML)
def label_encoder(x: Value, *, default_float: float = -0.0, default_int64: int = -1, default_string: str = "_Unused",
                  default_tensor: Value | None = None, keys_floats: Floats | None = None,
                  keys_int64s: Ints | None = None, keys_strings: Strings | None = None,
                  keys_tensor: Value | None = None, values_floats: Floats | None = None,
                  values_int64s: Ints | None = None, values_strings: Strings | None = None,
                  values_tensor: Value | None = None) -> Any:
  keys = next((k for k in (keys_strings, keys_int64s, keys_floats) if k),
              [] if keys_tensor is None else _elements(keys_tensor))
  if values_strings: return mapped(x, keys, values_strings, _default(default_tensor, default_string), None)
  if values_int64s: return mapped(x, keys, values_int64s, _default(default_tensor, default_int64), dtypes.int64)
  if values_floats: return mapped(x, keys, values_floats, _default(default_tensor, default_float), dtypes.float32)
  if values_tensor is None: raise ArgumentError("LabelEncoder has no values; give one of the attributes values_*")
  kind = values_tensor.dtype
  usual = default_string if kind is None else default_float if dtypes.is_float(kind) else default_int64
  return mapped(x, keys, _elements(values_tensor), _default(default_tensor, usual), kind)

def _default(tensor: Value | None, usual: Any) -> Any: return usual if tensor is None else _elements(tensor)[0]

@operator("LabelEncoder", 1, ML)
def label_encoder_of_classes(x: Value, *, classes_strings: Strings, default_int64: int = -1,
                             default_string: str = "_Unused") -> Any:
  """Text becomes its index in the classes, an index becomes the text."""
  return _exchanged(x, classes_strings, list(range(len(classes_strings))), default_string, default_int64)

@operator("CategoryMapper", 1, ML)
def category_mapper(x: Value, *, cats_int64s: Ints, cats_strings: Strings, default_int64: int = -1,
                    default_string: str = "_Unused") -> Any:
  return _exchanged(x, cats_strings, cats_int64s, default_string, default_int64)

def _exchanged(x: Value, strings: list[str], numbers: list[int], text: str, number: int) -> Any:
  if isinstance(x, TextTensor): return mapped(x, strings, numbers, number, dtypes.int64)
  return mapped(x, numbers, strings, text, None)

@operator("OneHotEncoder", 1, ML)
def one_hot_encoder(x: Value, *, cats_int64s: Ints | None = None, cats_strings: Strings | None = None,
                    zeros: int = 1) -> Tensor:
  """Return a vector for each element, with a one at the index of its category."""
  keys: Sequence[Any] = cats_strings or cats_int64s or []
  if not keys or bool(cats_strings) != isinstance(x, TextTensor):
    raise ArgumentError("OneHotEncoder wants categories of the type of its input: cats_int64s or cats_strings")
  index = places(x if isinstance(x, TextTensor) else as_tensor(x).cast(dtypes.int64), keys)
  tensor = Tensor(index, dtype=dtypes.int32).reshape(list(x.shape)) if isinstance(index, list) else index
  if not zeros and len(keys) in as_numbers(tensor):
    raise ArgumentError("an element is of no category; with zeros=1 it becomes a vector of zeros")
  found: Tensor = tensor.unsqueeze(-1).eq(Tensor.arange(len(keys), dtype=dtypes.int32, device=tensor.device))
  return found.cast(dtypes.float32)
