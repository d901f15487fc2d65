"""The tensors of a model by name, and files of them in the safetensors format.

A safetensors file is: 8 bytes little-endian, the length of a JSON header; the header, {name: {dtype, shape, data_offsets}}; the elements, without
gaps or overlaps. Names are unique; `__metadata__` has strings only. Reading trusts nothing: every length, offset and shape is checked against the
file before memory is allocated for it.
"""
from __future__ import annotations
from collections.abc import Iterable
import json
import os
import pathlib
from typing import Any, BinaryIO

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import ArgumentError, FileFormatError, MissingFileError
from tinyhw.progress import tqdm
from tinyhw.storage import write_atomically
from tinyhw.tensor import Tensor

# Source: safetensors documentation, "Format"
safe_dtypes: dict[str, DType] = {
  "BOOL": dtypes.bool, "I8": dtypes.int8, "U8": dtypes.uint8, "I16": dtypes.int16, "U16": dtypes.uint16, "I32": dtypes.int32, "U32": dtypes.uint32,
  "I64": dtypes.int64, "U64": dtypes.uint64, "F16": dtypes.float16, "BF16": dtypes.bfloat16, "F32": dtypes.float32, "F64": dtypes.float64,
  "F8_E4M3": dtypes.fp8e4m3, "F8_E5M2": dtypes.fp8e5m2,
}
inverse_safe_dtypes: dict[DType, str] = {dtype: name for name, dtype in safe_dtypes.items()}
_LONGEST_HEADER = 100_000_000  # bytes, as in the reference implementation

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
    tensor.replace((value if consume else value.copied()).to(tensor.device).cast(tensor.dtype))
    if realize: tensor.realize()
    if consume: del state_dict[name]
    loaded.append(tensor)
  return loaded

def _fitting(tensor: Tensor, value: Tensor) -> Tensor | None:
  """value in tensor's shape: (1,) and () are the same."""
  if tensor.shape == value.shape: return value
  return value.reshape(tensor.shape) if {tensor.shape, value.shape} == {(), (1,)} else None

# ***** safetensors *****

def safe_save(tensors: dict[str, Tensor], fn: str | os.PathLike[str], metadata: dict[str, Any] | None = None) -> None:
  """Write tensors to a file, which appears whole or not at all. Raises MissingFileError if its folder is not there."""
  header: dict[str, Any] = {"__metadata__": {str(k): str(v) for k, v in metadata.items()}} if metadata else {}
  parts: list[Any] = []
  offset = 0
  for name, t in tensors.items():
    if not isinstance(t, Tensor): raise ArgumentError(f"{name!r}: a safetensors file holds Tensors, not {t!r}; put numbers into `metadata`")
    if t.dtype not in inverse_safe_dtypes: raise ArgumentError(f"{name!r}: a safetensors file cannot hold {t.dtype}; cast it first")
    raw, shape = t._read()
    header[name] = {"dtype": inverse_safe_dtypes[t.dtype], "shape": list(shape), "data_offsets": [offset, offset + len(raw)]}
    parts.append(raw)
    offset += len(raw)
  text = json.dumps(header, separators=(",", ":")).encode()
  text += b" " * (-len(text) % 8)
  path = os.path.abspath(fn)
  if not os.path.isdir(os.path.dirname(path)):
    raise MissingFileError(f"cannot write {os.fspath(fn)}: there is no folder {os.path.dirname(path)}; make it first")
  write_atomically(path, len(text).to_bytes(8, "little"), text, *parts)

def _tensor_header(t: Tensor | str | os.PathLike[str]) -> tuple[BinaryIO | None, bytes | None, str]:
  """An open file, or the bytes of a tensor, and a name for messages."""
  if isinstance(t, Tensor): return None, bytes(t._read()[0]), "the tensor"
  try: return open(t, "rb"), None, os.fspath(t)
  except FileNotFoundError: raise MissingFileError(f"there is no file {os.path.abspath(t)}; give the path of a safetensors file") from None
  except IsADirectoryError: raise ArgumentError(f"{os.fspath(t)} is a folder; give the path of a safetensors file") from None

def safe_load_metadata(t: Tensor | str | os.PathLike[str]) -> tuple[Any, int, dict[str, Any]]:
  """(the file or tensor, where the elements begin, the header). Raises FileFormatError for what is no safetensors file."""
  file, data, name = _tensor_header(t)
  try:
    if file is None:
      assert data is not None
      start, header = _header(data[:8], lambda n: data[8:8 + n], len(data), name)
    else: start, header = _header(file.read(8), file.read, os.fstat(file.fileno()).st_size, name)
  finally:
    if file is not None: file.close()
  return t, start, header

def _header(head: bytes, read: Any, size: int, name: str) -> tuple[int, dict[str, Any]]:
  """The header, checked: every entry lies inside of the file, and has as many bytes as its shape says."""
  def bad(why: str) -> FileFormatError: return FileFormatError(f"{name} is no whole safetensors file: {why}")
  if len(head) < 8: raise bad(f"it has {size} bytes, and the length of the header takes 8; was the download cut off?")
  length = int.from_bytes(head, "little")
  if length > min(size - 8, _LONGEST_HEADER): raise bad(f"its header should have {length} bytes, and the file has {size}; was the download cut off?")
  text = read(length)
  if not text.startswith(b"{"): raise bad("its header does not begin with {")
  try: header = json.loads(text.decode(), object_pairs_hook=_unique_keys)
  except (ValueError, RecursionError) as error: raise bad(f"its header is no JSON ({error})") from None
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

def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
  """A JSON object. Raises ValueError where it names one key twice."""
  found = dict(pairs)
  if len(found) != len(pairs): raise ValueError(f"a name stands twice among {', '.join(sorted(key for key, _ in pairs)[:8])}")
  return found

def _check_entry(key: str, entry: Any, room: int, bad: Any) -> None:
  if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= entry.keys():
    raise bad(f"the entry of {key!r} lacks dtype, shape or data_offsets")
  shape, offsets = entry["shape"], entry["data_offsets"]
  if not isinstance(entry["dtype"], str) or entry["dtype"] not in safe_dtypes:
    raise bad(f"{key!r} has dtype {entry['dtype']!r}, which is not known; known: {', '.join(safe_dtypes)}")
  if not _naturals(shape) or not _naturals(offsets) or len(offsets) != 2:
    raise bad(f"the shape or offsets of {key!r} are no lists of natural numbers")
  count = 1
  for d in shape: count *= d
  if offsets[1] > room: raise bad(f"{key!r} ends at byte {offsets[1]} of its data, which has {room}; was the download cut off?")
  if offsets[1] - offsets[0] != count * safe_dtypes[entry["dtype"]].itemsize:
    raise bad(f"{key!r} of shape {shape} and {entry['dtype']} cannot have {offsets[1] - offsets[0]} bytes")

def _naturals(x: Any) -> bool: return isinstance(x, list) and all(type(i) is int and i >= 0 for i in x)

def safe_load(fn: Tensor | str | os.PathLike[str] | pathlib.Path) -> dict[str, Tensor]:
  """The tensors of a safetensors file, on the default device. Raises FileFormatError for a damaged file."""
  _, start, header = safe_load_metadata(fn)
  entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
  if isinstance(fn, Tensor):
    data = memoryview(fn._read()[0])
    return {name: _loaded(entry, data[start + entry["data_offsets"][0]:start + entry["data_offsets"][1]]) for name, entry in entries.items()}
  with open(fn, "rb") as file: return dict(_read_entries(file, start, entries))

def _read_entries(file: BinaryIO, start: int, entries: dict[str, Any]) -> Iterable[tuple[str, Tensor]]:
  for name, entry in entries.items():
    begin, end = entry["data_offsets"]
    file.seek(start + begin)
    data = file.read(end - begin)
    if len(data) != end - begin: raise FileFormatError(f"{file.name} became shorter while it was read")
    yield name, _loaded(entry, data)

def _loaded(entry: dict[str, Any], data: bytes | memoryview) -> Tensor:
  flat = Tensor(bytes(data), dtype=safe_dtypes[entry["dtype"]])
  return Tensor(flat.reshape(tuple(entry["shape"])).uop)
