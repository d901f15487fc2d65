"""Conversion of Python's data to bytes of elements, and back. Tensor([1, 2, 3]), numpy() and tolist() use it on the
host."""
from __future__ import annotations
import array
import importlib
from collections.abc import Sequence
import math
from sys import float_info
from typing import Any

from tinyhw.arithmetic import elements, to_bytes
from tinyhw.dtype import ALIASES_BY_TYPE, ConstType, DType, complex_of, dtypes, plane_of, truncate
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.methods.checks import real
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.ops import UOp

class HostData(NamedTuple):
  """Elements in row-major order, as bytes."""
  data: Any  # bytes-like; of complex numbers two of these, the real and the imaginary parts
  shape: tuple[Any, ...]  # ints
  dtype: DType

_LARGEST = int(float_info.max)
_ARRAY_CODES = frozenset("bBhHiIqQfd")
_TRUTH = b"\0" + b"\1" * 255
_SIGNED = {1: dtypes.int8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}
_UNSIGNED = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}
_FLOATS = {"e": dtypes.float16, "f": dtypes.float32, "d": dtypes.float64}

def pack(values: Sequence[ConstType], dtype: DType) -> Any:
  """Return numbers as elements of dtype. Integers wrap, floats round, and floats become integers by rounding to
  zero."""
  if dtype is dtypes.bool: return bytes(map(bool, values))
  if dtype.fmt in _ARRAY_CODES:
    try: return memoryview(array.array(dtype.fmt, values)).cast("B")
    except (TypeError, OverflowError): values = [truncate[dtype](_finite(x, dtype)) for x in values]
    return memoryview(array.array(dtype.fmt, values)).cast("B")
  return b"".join([to_bytes(truncate[dtype](x), dtype) for x in values])

def _finite(x: ConstType, dtype: DType) -> ConstType:
  if isinstance(x, float) and not math.isfinite(x) and not dtypes.is_float(dtype):
    raise DTypeError(f"cannot make {x} an element of {dtype}; use a float type")
  return x

MOST_DEPTH = 64    # the largest number of axes of nested lists

def from_nested(data: Sequence[Any], dtype: DType | None) -> HostData:
  """Convert lists or tuples of numbers, nested to any depth.

  Raises ShapeError if they are ragged, DTypeError for an element that is no number.
  """
  shape: list[int] = []
  level: Any = data
  rows: list[Any] = [data]
  while isinstance(level, (list, tuple)):
    if len(shape) == MOST_DEPTH:
      raise ShapeError(f"lists are nested more than {MOST_DEPTH} deep, or contain themselves")
    shape.append(len(level))
    if not all(isinstance(row, (list, tuple)) and len(row) == shape[-1] for row in rows):
      raise ShapeError(f"cannot make a tensor of nested lists of different lengths at depth {len(shape) - 1}; make "
                       f"the rows equally long")
    rows = [x for row in rows for x in row]
    if not rows: break
    level = rows[0]
  if not all(type(x) in (int, float, bool) for x in rows):
    rows = [_number(x) for x in rows]
    if any(isinstance(x, complex) for x in rows): return from_complex(rows, tuple(shape), dtype)
  if dtype is None: dtype = type_of(rows)
  else: check_held(rows, dtype)
  return HostData(pack(rows, dtype), tuple(shape), dtype)

def from_complex(values: Sequence[Any], shape: tuple[int, ...], dtype: DType | None) -> HostData:
  """Convert complex numbers to two planes. Raises DTypeError for a dtype that is not complex."""
  if dtype is None: dtype = complex_of(dtypes.default_float)
  if not dtypes.is_complex(dtype): raise DTypeError(f"complex numbers are no elements of {dtype}; take a complex type")
  plane = plane_of(dtype)
  return HostData(tuple([pack(part, plane) for part in ([x.real for x in values], [x.imag for x in values])]), shape,
                  dtype)

def check_held(values: Sequence[ConstType], dtype: DType) -> None:
  """Raise DTypeError for Python numbers that a type cannot hold: whole numbers outside of its range.

  Floats are rounded, even to infinity; 2.7 becomes 2.
  """
  if dtype is dtypes.void or dtype in dtypes.weaks: raise DTypeError(f"{dtype} has no elements; use a type of numbers")
  if dtype is dtypes.bool or not values: return
  least, most = (-_LARGEST, _LARGEST) if dtypes.is_float(dtype) else dtype.limits()
  if dtypes.is_float(dtype): values = [x for x in values if type(x) is int]
  if all(least <= x <= most for x in values): return
  for x in values:
    # pack refuses infinite values
    if isinstance(x, float) and (not math.isfinite(x) or least <= int(x) <= most): continue
    if least <= x <= most: continue
    raise DTypeError(f"{_shown(x)} does not fit into {dtype}, which holds {_shown(least)} to {_shown(most)}; make a "
                     f"wider one, and cast that")

def _shown(x: ConstType) -> str:
  return str(x) if not isinstance(x, int) or x.bit_length() < 128 else f"a number of {x.bit_length()} bits"

def holds_arrays(data: Any) -> bool:
  """Are there Tensors, or arrays with axes, in a list, or in the first list of lists?

  This is asked only after an element turned out to be no number.
  """
  for _ in range(MOST_DEPTH):
    if not isinstance(data, (list, tuple)) or not data: break
    if any(hasattr(x, "uop") or getattr(x, "shape", ()) for x in data): return True
    data = data[0]
  return False

def type_of(rows: Sequence[ConstType]) -> DType:
  """Return the type of data without a dtype. Raises DTypeError for integers that the default type does not hold."""
  kinds = set(map(type, rows))
  if float in kinds or not kinds: return dtypes.default_float
  if int not in kinds: return dtypes.bool
  for x in (min(rows), max(rows)):
    if not dtypes.default_int.min <= x <= dtypes.default_int.max:
      raise DTypeError(f"{x} does not fit into {dtypes.default_int}, the default for integers; pass "
                       f"dtype=dtypes.int64, or one that holds it")
  return dtypes.default_int

def _number(x: Any) -> Any:
  if isinstance(x, (bool, int, float, complex)): return x
  if isinstance(x, UOp): return real("an element", x)
  if isinstance(x, (list, tuple)):
    raise ShapeError("cannot make a tensor of lists that mix numbers and lists; make the rows equally deep")
  item = getattr(x, "item", None)
  if item is None: raise DTypeError(f"cannot make an element of {x!r} of {type(x)}; give numbers")
  return item()  # scalars of array libraries, and tensors of one element

def from_bytes(data: Any, dtype: DType) -> HostData:
  """Return raw bytes as a vector."""
  view = memoryview(data).cast("B")
  if view.nbytes % dtype.itemsize:
    raise ShapeError(f"{view.nbytes} bytes are no whole number of {dtype}, which has {dtype.itemsize} each")
  return HostData(truth(view) if dtype is dtypes.bool else view, (view.nbytes // dtype.itemsize,), dtype)

def truth(data: Any) -> bytes:
  """Return bools of 0 and 1, as devices expect them, from bytes. Every byte but 0 is true."""
  return bytes(data).translate(_TRUTH)

def from_array(data: Any, dtype: DType | None) -> HostData:
  """Convert anything with the buffer protocol or __array__. The shape stays, and so does the type unless another is
  asked for."""
  try: view = memoryview(data)
  except (TypeError, ValueError):
    data = _array_of(data)
    if getattr(data.dtype, "name", "") in EXTENSIONS: return _of_extension(data, dtype)
    try: view = memoryview(data)
    except (TypeError, ValueError) as error:
      raise DTypeError(f"cannot make a tensor of an array of {data.dtype}: {error}; give numbers") from None
  if (view.format or "B")[:1] in ">!" and hasattr(data, "astype"):
    view = memoryview(data := data.astype(data.dtype.newbyteorder("=")))
  source = _type_of_format(view.format or "B", view.itemsize)
  if dtypes.is_complex(source):
    if dtype is not None: raise DTypeError(f"complex numbers are no elements of {dtype}; take a complex type")
    flat: Any = memoryview(view.tobytes()).cast(plane_of(source).fmt)  # type: ignore[call-overload]
    return HostData((flat[::2].tobytes(), flat[1::2].tobytes()), tuple(view.shape or ()), source)
  if dtype is not None and dtype is not source and hasattr(data, "astype") and dtype.fmt is not None:
    view, source = memoryview(data.astype(ALIASES_BY_TYPE[dtype])), dtype
  raw = view.tobytes() if view.nbytes else b""  # in row-major order, whatever the strides
  if dtype is None or dtype is source:
    return HostData(truth(raw) if source is dtypes.bool else raw, tuple(view.shape or ()), source)
  return HostData(pack(list(elements(raw, source)), dtype), tuple(view.shape or ()), dtype)

# Types of the package ml_dtypes, which have no buffers: the type here, and the NumPy type by which the elements are
# read. Types that are missing here become the narrowest one that holds them.
EXTENSIONS: dict[str, tuple[DType, str]] = {
  "bfloat16": (dtypes.bfloat16, "uint16"), "float8_e4m3fn": (dtypes.fp8e4m3, "uint8"),
  "float8_e5m2": (dtypes.fp8e5m2, "uint8"), "float8_e4m3fnuz": (dtypes.fp8e4m3fnuz, "uint8"),
  "float8_e5m2fnuz": (dtypes.fp8e5m2fnuz, "uint8"),
  "float8_e3m4": (dtypes.float16, "float16"), "float8_e4m3": (dtypes.float16, "float16"),
  "float8_e4m3b11fnuz": (dtypes.float16, "float16"), "float8_e8m0fnu": (dtypes.bfloat16, "float32"),
  **dict.fromkeys(("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"), (dtypes.fp8e4m3, "float32")),
  **dict.fromkeys(("int1", "int2", "int4"), (dtypes.int8, "int8")),
  **dict.fromkeys(("uint1", "uint2", "uint4"), (dtypes.uint8, "uint8")),
}
_BITS = frozenset(("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"))   # read by bits

def _of_extension(data: Any, dtype: DType | None) -> HostData:
  """Convert an array of a type of EXTENSIONS. Numbers that are read as another type are rounded to the type here."""
  name = data.dtype.name
  source, read = EXTENSIONS[name]
  raw = data.view(read).tobytes() if name in _BITS else data.astype(read).tobytes()
  if read == "float32": raw = bytes(pack(list(elements(raw, dtypes.float32)), source))
  if dtype is not None and dtype is not source:
    raw, source = bytes(pack(list(elements(raw, source)), dtype)), dtype
  return HostData(raw, tuple(data.shape), source)

def _array_of(data: Any) -> Any:
  """Return an object without a buffer as a NumPy array. Raises ArgumentError."""
  if not hasattr(data, "__array__") and not hasattr(data, "__array_interface__"):
    hint = "; of a file it is made from a pathlib.Path, or Tensor.from_url" if isinstance(data, str) else ""
    raise ArgumentError(f"cannot make a tensor of {type(data)}; give numbers, lists, bytes or an array{hint}")
  try: return data.__array__() if hasattr(data, "__array__") else importlib.import_module("numpy").asarray(data)
  except Exception as error:  # another library's, of any kind
    raise ArgumentError(
      f"{type(data)} gives no array: {error}; Tensor.from_dlpack takes what has __dlpack__") from error

def _type_of_format(form: str, itemsize: int) -> DType:
  code = form.lstrip("@=<")
  if code == "?": return dtypes.bool
  if code in ("B", "H", "I", "L", "Q", "N", "c"): return _UNSIGNED[itemsize]
  if code in ("b", "h", "i", "l", "q", "n"): return _SIGNED[itemsize]
  if code in _FLOATS: return _FLOATS[code]
  if code in ("Zf", "Zd"): return dtypes.complex64 if code == "Zf" else dtypes.complex128
  raise DTypeError(f"cannot make a tensor of elements with format {form!r}; convert them to a number type in native "
                   f"byte order")

def nested(data: memoryview, dtype: DType, shape: tuple[int, ...]) -> Any:
  """Return bytes of elements as Python numbers, in lists as deep as the shape."""
  rows: Any = list(elements(data, dtype))
  if not shape: return rows[0]
  for n in reversed(shape[1:]):
    rows = [rows[i:i + n] for i in range(0, len(rows), n)] if n else rows
  return rows if 0 not in shape else _empty(shape)

def _empty(shape: tuple[int, ...]) -> Any: return [_empty(shape[1:]) for _ in range(shape[0])] if shape else []
