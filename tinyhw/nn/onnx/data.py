"""TensorProtos as Tensors: every element type, the three locations of elements, and external files in the model's
folder."""
from __future__ import annotations
from array import array
import os
from typing import Any

from tinyhw.dtype import DType, dtypes, least_upper_dtype
from tinyhw.errors import ArgumentError, FileFormatError
from tinyhw.files.budget import SLOT, TENSOR, Budget
from tinyhw.files.regular import NotRegular, open_regular
from tinyhw.helpers import prod
from tinyhw.named_tuple import NamedTuple
from tinyhw.nn.onnx.narrow import NARROW, decoded, unpacked
from tinyhw.nn.onnx.texts import TextTensor
from tinyhw.tensor import Tensor

class ElementType(NamedTuple):
  """A row of TYPES: the dtype of the elements here, the field of the TensorProto that holds them if raw_data does not,
  and the bits of each in the file."""
  name: str
  dtype: DType | None   # None: not supported
  field: str
  bits: int

# Source: onnx.proto, TensorProto.DataType and the comments of its fields.
TYPES: dict[int, ElementType] = {number: ElementType(*row) for number, row in {
  1: ("float", dtypes.float32, "float_data", 32), 2: ("uint8", dtypes.uint8, "int32_data", 8),
  3: ("int8", dtypes.int8, "int32_data", 8),
  4: ("uint16", dtypes.uint16, "int32_data", 16), 5: ("int16", dtypes.int16, "int32_data", 16),
  6: ("int32", dtypes.int32, "int32_data", 32),
  7: ("int64", dtypes.int64, "int64_data", 64), 8: ("string", None, "string_data", 0),
  9: ("bool", dtypes.bool, "int32_data", 8),
  10: ("float16", dtypes.float16, "int32_data", 16), 11: ("double", dtypes.float64, "double_data", 64),
  12: ("uint32", dtypes.uint32, "uint64_data", 32), 13: ("uint64", dtypes.uint64, "uint64_data", 64),
  14: ("complex64", None, "float_data", 64), 15: ("complex128", None, "double_data", 128),
  16: ("bfloat16", dtypes.bfloat16, "int32_data", 16), 17: ("float8e4m3fn", dtypes.fp8e4m3, "int32_data", 8),
  18: ("float8e4m3fnuz", dtypes.fp8e4m3fnuz, "int32_data", 8), 19: ("float8e5m2", dtypes.fp8e5m2, "int32_data", 8),
  20: ("float8e5m2fnuz", dtypes.fp8e5m2fnuz, "int32_data", 8),
  **{number: (row.name, row.holder, "int32_data", row.bits) for number, row in NARROW.items()},
}.items()}

STRING = 8
_EXTERNAL = 1                                        # TensorProto.DataLocation

def element_type(number: int, where: str) -> ElementType:
  """Return a row of TYPES that tinyhw supports. Raises FileFormatError for others."""
  row = TYPES.get(number)
  if row is None: raise FileFormatError(f"{where} has elements of type {number}, which ONNX does not define")
  if row.dtype is None:
    raise FileFormatError(f"{where} has elements of type {row.name}, which tensors here do not have")
  return row

def to_tensor(proto: dict[str, Any], folder: str | None = None, load_external: bool = True,
              budget: Budget | None = None) -> Tensor | TextTensor | None:
  """Convert a TensorProto to a Tensor or TextTensor. Return None if its elements are in another file that is not to be
  loaded.

  folder: other files must be in it; None: no other files. budget: that of the model. Raises FileFormatError where sizes
  do not agree, or a file is not inside of folder.
  """
  name = f"the tensor {proto.get('name', '')!r}"
  number = proto.get("data_type", 0)
  if number == STRING: return _strings(proto, name, budget)
  row = element_type(number, name)
  assert row.dtype is not None
  shape = tuple(proto["dims"])
  if any(d < 0 for d in shape): raise FileFormatError(f"{name} has a negative size in its shape {shape}")
  count = prod(shape)
  size, apart = (count * row.bits + 7) // 8, False
  budget = budget or Budget(name, size)
  if proto.get("data_location", 0) == _EXTERNAL:
    if not load_external: return None
    raw: Any = _external(proto, folder, size, name, budget)
  elif "raw_data" in proto: raw = proto["raw_data"]
  else:
    raw, apart = _typed(proto, row, count, name, budget), row.bits == 6
    if apart: size = count
  if len(raw) != size:
    raise FileFormatError(f"{name} of shape {shape} and {row.name} should have {size} bytes, and has {len(raw)}")
  narrow = NARROW.get(number)
  budget.take(TENSOR + 64 * len(shape) + (size if narrow else count * row.dtype.itemsize))
  with budget.borrowed():
    budget.take(size)
    if row.dtype is dtypes.bool: raw = bytes(raw).translate(_TRUTHS)
    flat = (Tensor.zeros(0, dtype=row.dtype) if not count
            else Tensor(bytes(raw), dtype=row.dtype if narrow is None else dtypes.uint8))
  if narrow is not None and count: flat = decoded(flat if apart else unpacked(flat, row.bits)[:count], narrow)
  return Tensor(flat.reshape(shape).uop)

def _strings(proto: dict[str, Any], name: str, budget: Budget | None) -> TextTensor:
  """Return a tensor of strings."""
  shape, rows = tuple(proto["dims"]), proto["string_data"]
  if any(d < 0 for d in shape) or prod(shape) != len(rows):
    raise FileFormatError(f"{name} of shape {shape} has {len(rows)} strings")
  if budget is not None: budget.take(sum(64 + 4 * len(row) for row in rows) + SLOT * len(rows))
  return TextTensor([bytes(row).decode("utf-8", "replace") for row in rows], shape)

_TRUTHS = b"\0" + b"\1" * 255   # a bool is 0 or 1

def to_dense(proto: dict[str, Any], folder: str | None = None, load_external: bool = True,
             budget: Budget | None = None) -> Tensor | None:
  """Convert a SparseTensorProto to a Tensor. An index is the position of a value in row-major order, or one number for
  each axis. Return None and raise FileFormatError as to_tensor does."""
  values, indices = (to_tensor(proto[part], folder, load_external, budget) if part in proto else None
                     for part in ("values", "indices"))
  if values is None or indices is None: return None
  shape = tuple(proto["dims"])
  name = f"the sparse tensor {proto['values'].get('name', '')!r}"
  if isinstance(values, TextTensor) or isinstance(indices, TextTensor) or any(d < 0 for d in shape):
    raise FileFormatError(f"{name} of shape {shape} has text, or a negative size")
  rows = indices.tolist()
  if indices.ndim == 2: rows = [sum(i * prod(shape[k + 1:]) for k, i in enumerate(row)) for row in rows]
  if indices.ndim not in (1, 2) or indices.ndim == 2 and indices.shape[1] != len(shape) or len(rows) != values.numel():
    raise FileFormatError(f"{name} of shape {shape} has {values.numel()} values at indices of shape {indices.shape}")
  if any(not 0 <= i < prod(shape) for i in rows): raise FileFormatError(f"{name} has an index outside of {shape}")
  if budget is not None: budget.take(prod(shape) * values.dtype.itemsize)
  flat = Tensor.zeros(prod(shape), dtype=values.dtype)
  return (flat.scatter(0, Tensor(rows, dtype=dtypes.int64), values) if rows else flat).reshape(shape)

def _typed(proto: dict[str, Any], row: ElementType, count: int, name: str, budget: Budget) -> Any:
  """Return the bytes of elements that are stored as numbers. Floats narrower than 32 bits are stored as their codes.
  One number holds two codes of 4 bits, four of 2 bits, or one of 6 bits."""
  values = proto[row.field]
  stored = -(-count * row.bits // 8) if row.bits in (2, 4) else count
  if len(values) != stored:
    raise FileFormatError(f"{name} should have {stored} numbers in {row.field}, and has {len(values)}")
  if values.typecode in "fd": return memoryview(values).cast("B")
  if row.bits == 64: return memoryview(values).cast("B")
  bits = max(row.bits, 8)
  mask = (1 << bits) - 1
  budget.take(2 * len(values) * bits // 8)
  if row.dtype is dtypes.bool: return bytes(bytearray(x != 0 for x in values))
  return memoryview(array({8: "B", 16: "H", 32: "I"}[bits], (x & mask for x in values))).cast("B")

def _external(proto: dict[str, Any], folder: str | None, size: int, name: str, budget: Budget) -> bytes:
  """Return the elements of a tensor that are in a file in the model's folder, or below it.

  That file's size counts for the budget.
  """
  entries = {entry.get("key", ""): entry.get("value", "") for entry in proto["external_data"]}
  if folder is None:
    raise FileFormatError(f"{name} stands in another file, and the model was given as bytes; give the model's path "
                          f"instead")
  location = entries.get("location", "")
  outside = (not location or "\0" in location or os.path.isabs(location)
             or ".." in location.replace("\\", "/").split("/"))
  path, inside = os.path.realpath(os.path.join(folder, "" if outside else location)), os.path.realpath(folder)
  if outside or os.path.commonpath([inside, path]) != inside:
    raise FileFormatError(f"{name} stands in {location!r}, which is not inside of the model's folder")
  try: offset, length = int(entries.get("offset") or 0), int(entries.get("length") or size)
  except ValueError: raise FileFormatError(f"{name}: the offset or the length in {location!r} is no number") from None
  if length != size:
    raise FileFormatError(f"{name} should have {size} bytes, and {length} are said to stand in {location!r}")
  try:
    with open_regular(path) as file:
      held = os.fstat(file.fileno())
      budget.add(path, held.st_size)
      if offset < 0 or offset + length > held.st_size:
        raise FileFormatError(f"{name} stands at bytes {offset} to {offset + length} of {location!r}, which has "
                              f"{held.st_size}")
      budget.take(length)
      file.seek(offset)
      return file.read(length)
  except NotRegular: raise FileFormatError(f"{name} stands in {location!r}, which is no file") from None
  except OSError as error:
    raise FileFormatError(f"{name} stands in {location!r}, which cannot be read: {error.strerror}") from None

def dtype_of(number: int) -> DType:
  """Return the type that an attribute such as Cast's `to` names.

  Raises ArgumentError for a type that no Tensor has.
  """
  row = TYPES.get(number)
  if row is None or row.dtype is None or number in NARROW:
    raise ArgumentError(f"the model asks for the element type {row.name if row else number}, which has no arithmetic "
                        f"here")
  return row.dtype

def wide(x: Tensor) -> Tensor:
  """Return x in float32 at least. In half precision, squares and sums may overflow although the final result does
  not."""
  return x.cast(least_upper_dtype(x.dtype, dtypes.float32))
