"""Operators of ai.onnx.ml on features: vectors of numbers, and maps. Source: ONNX operator schemas (ai.onnx.ml)."""
from __future__ import annotations
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.nn.onnx.operator import Floats, Ints, Strings, Value, as_numbers, operator
from tinyhw.nn.onnx.ops.indexing import wrapped
from tinyhw.nn.onnx.ops.shape import check_count
from tinyhw.nn.onnx.texts import TextTensor
from tinyhw.tensor import Tensor

ML = "ai.onnx.ml"

@operator("ArrayFeatureExtractor", 1, ML)
def array_feature_extractor(x: Tensor, indices: Tensor) -> Tensor:
  y = x[..., wrapped(indices, int(x.shape[-1])).flatten()]
  return y.reshape(1, -1) if x.ndim == 1 else y

@operator("Binarizer", 1, ML)
def binarizer(x: Tensor, *, threshold: float = 0.0) -> Tensor: return (x > threshold).cast(x.dtype)

def _row(values: list[Any], x: Tensor, what: str, dtype: Any) -> Tensor:
  """Return one number, or one for each feature."""
  if len(values) not in (1, int(x.shape[-1]) if x.ndim else 1):
    raise ShapeError(f"{what} has {len(values)} numbers for the features of {x.shape}; give one, or one for each")
  return Tensor(values, dtype=dtype, device=x.device)

@operator("Scaler", 1, ML)
def scaler(x: Tensor, *, offset: Floats | None = None, scale: Floats | None = None) -> Tensor:
  """Subtract the offset, then multiply by the scale."""
  wide = x.cast(dtypes.float32)
  if offset: wide = wide - _row(offset, x, "offset", dtypes.float32)
  return wide * _row(scale, x, "scale", dtypes.float32) if scale else wide

@operator("Imputer", 1, ML)
def imputer(x: Tensor, *, imputed_value_floats: Floats | None = None, imputed_value_int64s: Ints | None = None,
            replaced_value_float: float = 0.0, replaced_value_int64: int = 0) -> Tensor:
  """Replace one value (which may be NaN) by others, for each feature."""
  values: list[Any] = imputed_value_floats or imputed_value_int64s or []
  if not values: raise ArgumentError("Imputer wants imputed_value_floats or imputed_value_int64s")
  old = replaced_value_float if imputed_value_floats else replaced_value_int64
  hit = x.isnan() if old != old else x.eq(old)
  return hit.where(_row(values, x, "imputed_value", x.dtype), x)

@operator("Normalizer", 1, ML)
def normalizer(x: Tensor, *, norm: str = "MAX") -> Tensor:
  """Divide each row by its largest element, or by the sum of absolute values or the root of that of squares."""
  v = x.cast(dtypes.float32)
  if norm == "MAX": size = v.max(-1, keepdim=True)
  elif norm == "L1": size = v.abs().sum(-1, keepdim=True)
  elif norm == "L2": size = v.square().sum(-1, keepdim=True).sqrt()
  else: raise ArgumentError(f"norm is MAX, L1 or L2, not {norm!r}")
  return v / size.eq(0).where(1, size)

@operator("FeatureVectorizer", 1, ML)
def feature_vectorizer(*parts: Tensor, inputdimensions: Ints | None = None) -> Tensor:
  """Join features to one row each. inputdimensions: the sizes that the parts are cut or padded to."""
  widths = inputdimensions or [int(x.shape[-1]) if x.ndim > 1 else 1 for x in parts]
  if len(widths) != len(parts) or not parts or min(widths) < 0:
    raise ArgumentError(f"inputdimensions={widths} are not one size for each of {len(parts)} inputs")
  rows = []
  for x, width in zip(parts, widths):
    if x.ndim not in (1, 2): raise ShapeError(f"features have a shape (N,) or (N, F), not {x.shape}")
    y = x.cast(dtypes.float32).reshape(int(x.shape[0]), -1)
    check_count(int(y.shape[0]) * width, "FeatureVectorizer")
    rows.append(y[:, :width].pad([None, (0, max(0, width - int(y.shape[1])))]))
  return rows[0].cat(*rows[1:], dim=1)

# ***** maps: dicts of numbers or text, on the host *****

def _map(x: Value) -> dict[Any, Any]:
  if not isinstance(x, dict): raise ArgumentError("a map is wanted; give a dict")
  return x

@operator("DictVectorizer", 1, ML)
def dict_vectorizer(x: Value, *, int64_vocabulary: Ints | None = None, string_vocabulary: Strings | None = None) -> Any:
  """Return the values of a map in the order of a vocabulary. Missing ones are 0 or empty text."""
  return _of_values(_map(x), string_vocabulary or int64_vocabulary or [])

def _of_values(found: dict[Any, Any], keys: list[Any]) -> Any:
  kinds = {type(value) for value in found.values()}
  if str in kinds: return TextTensor([found.get(key, "") for key in keys])
  return Tensor([found.get(key, 0) for key in keys], dtype=dtypes.float32 if float in kinds else dtypes.int64)

@operator("CastMap", 1, ML)
def cast_map(x: Value, *, cast_to: str = "TO_FLOAT", map_form: str = "DENSE", max_map: int = 1) -> Any:
  """Return the values of a map with whole keys, ordered by key. SPARSE: in a row of max_map, at the index that the key
  is."""
  found = _map(x)
  for value, wanted in ((cast_to, ("TO_FLOAT", "TO_STRING", "TO_INT64")), (map_form, ("DENSE", "SPARSE"))):
    if value not in wanted: raise ArgumentError(f"CastMap has {value!r}, and one of {', '.join(wanted)} is wanted")
  check_count(max_map, "CastMap")
  text = cast_to == "TO_STRING"
  row = [found[key] for key in sorted(found)]
  if map_form == "SPARSE": row = [found.get(key, "" if text else 0) for key in range(max_map)]
  if text: return TextTensor(map(str, row), (1, len(row)))
  try: numbers = [float(value) for value in row]
  except ValueError: raise ArgumentError(f"CastMap cannot make numbers of {row!r:.80}") from None
  return Tensor(numbers, dtype=dtypes.float32 if cast_to == "TO_FLOAT" else dtypes.int64).reshape(1, -1)

@operator("ZipMap", 1, ML, folds=False)
def zip_map(x: Tensor, *, classlabels_int64s: Ints | None = None, classlabels_strings: Strings | None = None) -> Any:
  """Return a map from labels to scores for each row: (N, E) -> N dicts. The values are read."""
  labels: list[Any] = classlabels_strings or classlabels_int64s or []
  if x.ndim not in (1, 2) or int(x.shape[-1]) != len(labels):
    raise ShapeError(f"ZipMap has {len(labels)} labels for scores of shape {x.shape}")
  numbers = as_numbers(x)
  return [dict(zip(labels, numbers[i:i + len(labels)])) for i in range(0, len(numbers), len(labels) or 1)]
