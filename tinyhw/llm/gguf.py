"""GGUF files: metadata and tensors of language models, version 2 and 3.

A file is: "GGUF", version, the number of tensors, the number of metadata; the metadata (name, type, value); for each
tensor its name, sizes (innermost first), type and offset; then, aligned, the tensors' bytes. Numbers are little-endian.
Source: ggml's GGUF specification (docs/gguf.md).

The reader trusts nothing: each count is compared with the bytes that are left. Memory is charged to the file's budget
before it is used.
"""
from __future__ import annotations
import io
import math
import os
import pathlib
import re
import struct
import sys
from typing import Any, BinaryIO

from tinyhw.errors import ArgumentError, FileFormatError, ShapeError
from tinyhw.files.budget import ENTRY, SLOT, TENSOR, Budget
from tinyhw.files.regular import open_input
from tinyhw.llm.blocks import bytes_of, ggml_data_to_tensor as ggml_data_to_tensor, kind_of
from tinyhw.named_tuple import NamedTuple
from tinyhw.tensor import Tensor

MAGIC, VERSIONS = b"GGUF", (2, 3)
ALIGNMENT = 32             # bytes, if general.alignment is not given
MOST_DIMS = 4              # GGML_MAX_DIMS
MOST_DEPTH = 8             # arrays of arrays
MOST_PARTS = 99999         # files of one model
PART = re.compile(r"(.+)-([0-9]{5})-of-([0-9]{5})\.gguf")
_STRING, _ARRAY = 8, 9
# types of metadata, as codes of struct
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_SMALL = ("B", "?")        # types whose values are objects that Python has already
_NUMBER = 32               # bytes of any other number
_HEAD = 96                 # bytes of a text or list without its contents
# Bytes, at most, of the graph of a tensor: of plain elements, of quantized elements.
_GRAPH = (20 << 10, 64 << 10)

Place = tuple[tuple[int, ...], int, int]   # shape (outermost first), type and offset of a tensor

class _Reader:
  """A reader of the header, from a stream of known size."""
  def __init__(self, stream: BinaryIO, size: int, name: str):
    self.stream, self.size, self.name, self.position = stream, size, name, 0
    self.budget = Budget(name, size)

  def bad(self, why: str) -> FileFormatError: return FileFormatError(f"{self.name} is no whole GGUF file: {why}")

  def take(self, count: int, what: str) -> bytes:
    """Return the next bytes."""
    if count > self.size - self.position:
      raise self.bad(f"{what} takes {count} bytes from byte {self.position} on, and the file has {self.size}; was the "
                     f"download cut off?")
    data = self.stream.read(count)
    if len(data) != count: raise self.bad("it became shorter while it was read")
    self.position += count
    return data

  def number(self, form: str, what: str) -> Any:
    size = struct.calcsize("<" + form)
    return struct.unpack("<" + form, self.take(size, what))[0]

  def count(self, what: str, least: int) -> int:
    """Return a count of things that take at least `least` bytes each."""
    found = int(self.number("Q", what))
    if found * least > self.size - self.position:
      raise self.bad(f"{what} is {found}, and {self.size - self.position} bytes are left; was the download cut off?")
    return found

  def text(self, what: str) -> str:
    """Return a string. Bytes that are not UTF-8 become Python's surrogate escapes."""
    data = self.take(self.count(f"the length of {what}", 1), what)
    self.budget.take(_HEAD + len(data) * (1 if data.isascii() else 4))
    return data.decode("utf-8", "surrogateescape")

  def value(self, kind: int, what: str, depth: int = 0) -> Any:
    """Return a metadata value."""
    if kind in _SCALARS: return self.number(_SCALARS[kind], what)
    if kind == _STRING: return self.text(what)
    if kind != _ARRAY: raise self.bad(f"{what} has type {kind}, which metadata do not have")
    if depth >= MOST_DEPTH: raise self.bad(f"{what} is arrays in arrays, more than {MOST_DEPTH} deep")
    inner = int(self.number("I", what))
    if inner in _SCALARS:
      form = _SCALARS[inner]
      count = self.count(what, struct.calcsize(form))
      self.budget.take(_HEAD + count * (8 + struct.calcsize(form) + (0 if form in _SMALL else _NUMBER)))
      return _numbers(self.take(count * struct.calcsize("<" + form), what), form)
    count = self.count(what, 8 if inner == _STRING else 12)
    self.budget.take(_HEAD + count * SLOT)
    return [self.value(inner, what, depth + 1) for _ in range(count)]

def _numbers(data: bytes, form: str) -> list[Any]:
  """Return little-endian numbers in a format of struct."""
  view: Any = memoryview(data)
  if sys.byteorder == "little":
    found: list[Any] = view.cast(form).tolist()
    return found
  return list(struct.unpack(f"<{len(data) // struct.calcsize(form)}{form}", data))

def _header(reader: _Reader) -> tuple[dict[str, Any], dict[str, Place], int]:
  """Return the metadata, the shape, type and offset of each tensor, and the offset of the tensors' bytes.

  Every tensor is inside of the file.
  """
  if reader.size < 24 or reader.take(4, "the magic number") != MAGIC:
    raise reader.bad(f"it does not begin with {MAGIC.decode()}")
  version = reader.number("I", "the version")
  if version not in VERSIONS:
    raise reader.bad(f"its version is {version}, and {' and '.join(map(str, VERSIONS))} are known"
                     + ("; its numbers are big-endian" if version in (0x2000000, 0x3000000) else ""))
  tensors, metadata = reader.count("the number of tensors", 24), reader.count("the number of metadata", 13)
  values: dict[str, Any] = {}
  for _ in range(metadata):
    reader.budget.take(ENTRY // 2)
    key = reader.text("a name of metadata")
    if key in values: raise reader.bad(f"{key!r} stands twice in its metadata")
    values[key] = reader.value(reader.number("I", key), repr(key))
  places: dict[str, Place] = {}
  for _ in range(tensors):
    name = reader.text("a tensor's name")
    if name in places: raise reader.bad(f"it has two tensors {name!r}")
    places[name] = _place(reader, name)
  alignment = values.get("general.alignment", ALIGNMENT)
  if type(alignment) is not int or alignment <= 0 or alignment % 8:
    raise reader.bad(f"general.alignment is {alignment!r}, not a multiple of 8")
  start = -(-reader.position // alignment) * alignment
  for name, (shape, kind, offset) in places.items(): _check_place(reader, name, shape, kind, offset, alignment, start)
  return values, places, start

def _place(reader: _Reader, name: str) -> Place:
  dims = reader.number("I", f"the number of axes of {name!r}")
  if dims > MOST_DIMS: raise reader.bad(f"{name!r} has {dims} axes, and {MOST_DIMS} is the most")
  shape = tuple(reader.number("Q", f"a size of {name!r}") for _ in range(dims))[::-1]
  reader.budget.take(ENTRY + TENSOR)
  return shape, int(reader.number("I", f"the type of {name!r}")), int(reader.number("Q", f"the offset of {name!r}"))

def _check_place(reader: _Reader, name: str, shape: tuple[int, ...], kind: int, offset: int, alignment: int,
                 start: int) -> None:
  row = kind_of(kind)
  reader.budget.take(_GRAPH[row.split is not None])
  if shape and shape[-1] % row.length:
    raise reader.bad(f"{name!r} of shape {shape} has rows that are no whole number of {row.name}'s {row.length}")
  try: size = bytes_of(math.prod(shape), row)
  except ShapeError as error: raise reader.bad(f"{name!r}: {error.message}") from None
  if offset % alignment:
    raise reader.bad(f"{name!r} begins at byte {offset} of the data, which is not aligned to {alignment}")
  if start + offset + size > reader.size:
    raise reader.bad(f"{name!r} ends at byte {start + offset + size}, and the file has {reader.size}; was the "
                     f"download cut off?")

def gguf_load(fn: Tensor | str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
  """Return the metadata and the tensors of a GGUF file by name. Only the header is read. Elements are read when they
  are used, and stay quantized until then.

  fn: a path (that of the first part if there are several), or the file's bytes as a Tensor. Raises FileFormatError for
  a damaged file, MissingFileError if it does not exist.

  Use `kv, tensors = gguf_load("model.gguf")`; `tensors["output.weight"]` is a lazy float32 tensor, whatever its type in
  the file.
  """
  values, stored = gguf_read(fn)
  return values, {name: s.tensor() for name, s in stored.items()}

class Stored(NamedTuple):
  """A tensor as stored in a file: its bytes, lazy on disk, its shape and its type."""
  data: Tensor
  shape: tuple[int, ...]
  ggml_type: int

  def tensor(self) -> Tensor:
    """Return its elements."""
    return ggml_data_to_tensor(self.data, math.prod(self.shape), self.ggml_type).reshape(self.shape)

def gguf_read(fn: Tensor | str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Stored]]:
  """Read a file as gguf_load does, but return the tensors as they are stored.

  The path of a model's first part (NAME-00001-of-00003.gguf) stands for all of them.
  """
  if isinstance(fn, Tensor):
    if fn.ndim != 1: raise ArgumentError(f"a GGUF file is a vector of bytes, not a tensor of shape {fn.shape}")
    values, stored = _placed(fn, *_header(_stream_of(fn)))
    if _parts(values, "the tensor") > 1:
      raise ArgumentError("the tensor is one part of a model in several files; give the path of the first one")
    return values, stored
  path = pathlib.Path(fn)
  values, stored = _of_file(path)
  count = _parts(values, str(path))
  if count == 1: return values, stored
  name = PART.fullmatch(path.name)
  if name is None or int(name[3]) != count:
    raise FileFormatError(f"{path} is one of {count} parts of a model, and its name does not end with "
                          f"-00001-of-{count:05}.gguf; name it as it was")
  if values.get("split.no") != 0:
    raise ArgumentError(f"{path} is not the first part of a model; give the path of {name[1]}-00001-of-{name[3]}.gguf")
  for k in range(1, count): _add_part(path.with_name(f"{name[1]}-{k + 1:05}-of-{name[3]}.gguf"), k, count, stored)
  wanted = values.get("split.tensors.count", len(stored))
  if wanted != len(stored):
    raise FileFormatError(f"the parts of {path} have {len(stored)} tensors, and should have {wanted!r}")
  return values, stored

def _parts(values: dict[str, Any], name: str) -> int:
  """Return the number of files of a model."""
  count = values.get("split.count", 1)
  if type(count) is not int or not 0 <= count <= MOST_PARTS:
    raise FileFormatError(f"{name}: split.count is {count!r}, not a number of files")
  return max(count, 1)

def _add_part(path: pathlib.Path, number: int, count: int, stored: dict[str, Stored]) -> None:
  """Add the tensors of a later part. The other metadata are those of the first part."""
  values, found = _of_file(path)
  if (values.get("split.no"), values.get("split.count")) != (number, count):
    raise FileFormatError(f"{path} says that it is part {values.get('split.no')!r} of {values.get('split.count')!r}, "
                          f"counted from 0, and should be "
                          f"part {number} of {count}; are these files of one model?")
  twice = next((name for name in found if name in stored), None)
  if twice is not None:
    raise FileFormatError(f"{path} has a tensor {twice!r}, and so has an earlier part; are these files of one model?")
  stored.update(found)

def _of_file(path: pathlib.Path) -> tuple[dict[str, Any], dict[str, Stored]]:
  """Return the metadata and tensors of one file."""
  with open_input(path, "a GGUF file") as stream:
    found = _header(_Reader(stream, os.fstat(stream.fileno()).st_size, str(path)))
  return _placed(Tensor(path), *found)

def _stream_of(t: Tensor) -> _Reader:
  data = t.data()
  return _Reader(io.BytesIO(data), data.nbytes, "the tensor")

def _placed(data: Tensor, values: dict[str, Any], places: dict[str, Place],
            start: int) -> tuple[dict[str, Any], dict[str, Stored]]:
  """Return tensors over a file's bytes."""
  stored = {}
  for name, (shape, kind, offset) in places.items():
    first = start + offset
    stored[name] = Stored(data[first:first + bytes_of(math.prod(shape), kind_of(kind))], shape, kind)
  return values, stored
