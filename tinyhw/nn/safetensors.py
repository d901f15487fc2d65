"""Files of tensors in the safetensors format. Source: safetensors documentation, "Format".

A file is: 8 bytes little-endian, the length of a JSON header; the header, {name: {dtype, shape, data_offsets}}; the
elements, without gaps or overlaps. Names are unique. `__metadata__` has strings only. Every length, offset and shape is
checked against the file. Only the header is read: the tensors are views on DISK.
"""
from __future__ import annotations
import json
import os
from typing import Any

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import ArgumentError, FileFormatError
from tinyhw.files.budget import parse_json
from tinyhw.nn.tensor_io import FileLike, InputFile, writing
from tinyhw.tensor import Tensor

safe_dtypes: dict[str, DType] = {
  "BOOL": dtypes.bool, "I8": dtypes.int8, "U8": dtypes.uint8, "I16": dtypes.int16, "U16": dtypes.uint16,
  "I32": dtypes.int32, "U32": dtypes.uint32,
  "I64": dtypes.int64, "U64": dtypes.uint64, "F16": dtypes.float16, "BF16": dtypes.bfloat16, "F32": dtypes.float32,
  "F64": dtypes.float64,
  "F8_E4M3": dtypes.fp8e4m3, "F8_E5M2": dtypes.fp8e5m2, "F8_E4M3FNUZ": dtypes.fp8e4m3fnuz,
  "F8_E5M2FNUZ": dtypes.fp8e5m2fnuz,
}
inverse_safe_dtypes: dict[DType, str] = {dtype: name for name, dtype in safe_dtypes.items()}
_WITHOUT_A_TYPE = ("C64", "F4", "F6_E2M3", "F6_E3M2", "F8_E8M0")  # types of the format that no dtype here has
_LONGEST_HEADER = 100_000_000  # bytes, as in the reference implementation

# ***** writing *****

def safe_save(tensors: dict[str, Tensor], fn: str | os.PathLike[str], metadata: dict[str, Any] | None = None) -> None:
  """Write tensors to a file, which appears whole or not at all. One tensor at a time is in memory. Raises
  MissingFileError if its folder does not exist.

  >>> safe_save({"weight": Tensor([1.0, 2.0])}, "model.safetensors", metadata={"epoch": 3})
  >>> safe_load("model.safetensors")["weight"].tolist()
  [1.0, 2.0]
  """
  if not isinstance(tensors, dict):
    raise ArgumentError(f"safe_save wants a dict of Tensors by name, not {type(tensors)}; see get_state_dict")
  if metadata is not None and not isinstance(metadata, dict):
    raise ArgumentError(f"metadata are strings by name, not {metadata!r}")
  for name, t in tensors.items(): _check_to_save(name, t)
  sizes = {name: _count(t._static_shape()) * t.dtype.itemsize for name, t in tensors.items()}
  # so that each begins at a multiple of the size of its elements
  order = sorted(tensors, key=lambda name: -tensors[name].dtype.itemsize)
  offsets: dict[str, int] = {}
  end = 0
  for name in order: end = offsets.setdefault(name, end) + sizes[name]
  header: dict[str, Any] = {"__metadata__": {str(k): str(v) for k, v in metadata.items()}} if metadata else {}
  for name, t in tensors.items():
    begin = offsets[name]
    header[name] = {"dtype": inverse_safe_dtypes[t.dtype], "shape": list(t._static_shape()),
                    "data_offsets": [begin, begin + sizes[name]]}
  try: text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
  except UnicodeEncodeError:
    raise ArgumentError("a name or the metadata has half of a surrogate pair, which no file can hold") from None
  text += b" " * (-len(text) % 8)
  with writing(fn, "safetensors") as file:
    file.write(len(text).to_bytes(8, "little") + text)
    for name in order: file.write(tensors[name]._read(zero_copy=True)[0])

def _check_to_save(name: Any, t: Any) -> None:
  if not isinstance(name, str): raise ArgumentError(f"{name!r}: a name in a safetensors file is a string")
  if name == "__metadata__":
    raise ArgumentError("no tensor can be named __metadata__ in a safetensors file; pass strings as `metadata`")
  if not isinstance(t, Tensor):
    raise ArgumentError(f"{name!r}: a safetensors file holds Tensors, not {t!r}; put numbers into `metadata`")
  if t.dtype not in inverse_safe_dtypes:
    raise ArgumentError(f"{name!r}: a safetensors file cannot hold {t.dtype}; cast it first")

def _count(shape: tuple[int, ...]) -> int:
  count = 1
  for d in shape: count *= d
  return count

# ***** reading *****

def safe_load(fn: FileLike) -> dict[str, Tensor]:
  """Return the tensors of a safetensors file, on DISK. Their elements are read when they are moved, by .to() or
  load_state_dict.

  If fn is a tensor of bytes, they are copies on its device. Raises FileFormatError for a damaged file.
  """
  source = InputFile(fn, "safetensors")
  start, header = _header(source)
  return {name: source.elements(start + entry["data_offsets"][0], tuple(entry["shape"]), safe_dtypes[entry["dtype"]],
                                repr(name))
          for name, entry in header.items() if name != "__metadata__"}

def safe_load_metadata(t: FileLike) -> tuple[Tensor, int, dict[str, Any]]:
  """Return (the file's bytes, the offset of the elements, the header). The header has dtype, shape and data_offsets by
  name.

  Raises FileFormatError.
  """
  source = InputFile(t, "safetensors")
  return source.tensor, *_header(source)

def _header(source: InputFile) -> tuple[int, dict[str, Any]]:
  """Return the offset of the elements, and the checked header: every entry is inside of the file, and has as many bytes
  as its shape needs."""
  bad, size = source.bad, source.size
  if size < 8: raise bad(f"it has {size} bytes, and the length of the header takes 8; was the download cut off?")
  length = int.from_bytes(source.read(0, 8, "the length of the header"), "little")
  if length > min(size - 8, _LONGEST_HEADER):
    raise bad(f"its header should have {length} bytes, and the file has {size}; was the download cut off?")
  text = source.read(8, length, "the header")
  if not text.startswith(b"{"): raise bad("its header does not begin with {")
  try: header = parse_json(text, source.budget, unique=True)
  except FileFormatError: raise
  except ValueError as error: raise bad(f"its header is no JSON ({error})") from None
  room = size - 8 - length
  entries = {key: entry for key, entry in header.items() if key != "__metadata__"}
  for key, entry in entries.items(): _check_entry(key, entry, room, bad)
  metadata = header.get("__metadata__", {})
  if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
    raise bad("its metadata are not strings by name")
  end = 0
  for begin, after, key in sorted((*entry["data_offsets"], key) for key, entry in entries.items()):
    if begin != end: raise bad(f"{key!r} begins at byte {begin} of the data, and what lies before it ends at {end}")
    end = after
  if end != room: raise bad(f"its tensors end at byte {end} of the data, which has {room}")
  return 8 + length, header

def _check_entry(key: str, entry: Any, room: int, bad: Any) -> None:
  if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= entry.keys():
    raise bad(f"the entry of {key!r} lacks dtype, shape or data_offsets")
  dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
  if dtype in _WITHOUT_A_TYPE:
    raise bad(f"{key!r} has dtype {dtype}, which tinyhw does not have; known: {', '.join(safe_dtypes)}")
  if not isinstance(dtype, str) or dtype not in safe_dtypes:
    raise bad(f"{key!r} has dtype {dtype!r}, which is not known; known: {', '.join(safe_dtypes)}")
  if not _naturals(shape) or not _naturals(offsets) or len(offsets) != 2:
    raise bad(f"the shape or offsets of {key!r} are no lists of natural numbers")
  if offsets[1] > room:
    raise bad(f"{key!r} ends at byte {offsets[1]} of its data, which has {room}; was the download cut off?")
  if offsets[1] - offsets[0] != _bounded_count(shape, room) * safe_dtypes[dtype].itemsize:
    raise bad(f"{key!r} of shape {shape[:8]} and {dtype} cannot have {offsets[1] - offsets[0]} bytes")

def _bounded_count(shape: list[int], most: int) -> int:
  """Return the number of elements of a shape, or some number above `most`. The product of all sizes could take long."""
  if 0 in shape: return 0
  count = 1
  for d in shape:
    count *= d
    if count > most: break
  return count

def _naturals(x: Any) -> bool: return isinstance(x, list) and all(type(i) is int and 0 <= i < 1 << 63 for i in x)
