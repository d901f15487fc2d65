"""Arrays in NumPy's files: .npy and .npz. Source: NumPy's documentation, numpy.lib.format, versions 1.0 to 3.0.

A .npy file is: the magic b"\\x93NUMPY", two bytes of version, the length of a header, the header, the elements. The
header is a Python dict literal with three keys. A parser for just this form reads it, and nothing is evaluated. A .npz
file is a zip archive of .npy files.
"""
from __future__ import annotations
import os
import re
import zipfile
from typing import Any

from tinyhw.device import computing
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import ArgumentError
from tinyhw.files.budget import TENSOR
from tinyhw.nn.tensor_io import FileLike, InputFile, writing
from tinyhw.nn.zip_archive import STORED, ZipArchive
from tinyhw.tensor import Tensor

_MAGIC = b"\x93NUMPY"
_LENGTH_BYTES = {1: 2, 2: 4, 3: 4}   # by major version
_LONGEST_HEADER = 10_000             # bytes, as in NumPy
_MOST_AXES = 64
_ALIGNMENT = 64
_TYPES: dict[str, DType] = {
  "b1": dtypes.bool, "i1": dtypes.int8, "u1": dtypes.uint8, "i2": dtypes.int16, "u2": dtypes.uint16, "i4": dtypes.int32,
  "u4": dtypes.uint32,
  "i8": dtypes.int64, "u8": dtypes.uint64, "f2": dtypes.float16, "f4": dtypes.float32, "f8": dtypes.float64,
}
_CODES = {dtype: code for code, dtype in _TYPES.items()}
_WITHOUT_A_TYPE = {"O": "Python objects, which are pickles that may run anything", "c": "complex numbers", "U": "text",
                   "S": "text", "a": "text",
                   "V": "raw bytes or records", "M": "dates", "m": "times", "g": "long doubles",
                   "f": "floats of a size that no dtype has"}
_STRING = r"'[^'\\]*'|\"[^\"\\]*\""
# it can match in one way only, so the time is linear
_ENTRY = re.compile(rf"\s*({_STRING})\s*:\s*({_STRING}|True|False|\([\d\sL,]*\))\s*(?:,|(?=\}}))")
_RECORDS = re.compile(r"['\"]descr['\"]\s*:\s*\[")

# ***** reading *****

def npy_load(fn: FileLike) -> Tensor:
  """Return the array in a .npy file, as a Tensor of its shape. It is on DISK, and is read when it is moved. Big-endian
  numbers are read and converted now.

  Raises FileFormatError for a damaged file, and for elements without a dtype (objects, text, records, complex numbers).

  >>> npy_save(Tensor([[1, 2], [3, 4]]), "array.npy")
  >>> npy_load("array.npy").tolist()
  [[1, 2], [3, 4]]
  """
  return _array(InputFile(fn, "npy"))

def npz_load(fn: FileLike, limit: int | None = None) -> dict[str, Tensor]:
  """Return the arrays in a .npz file by name. Uncompressed arrays stay on DISK. The others are unpacked. Raises
  FileFormatError.

  limit: the bytes of memory that this may use; None: 64 MB and 20 for each byte of the file.

  >>> npz_save({"weight": Tensor([1.0, 2.0]), "bias": Tensor([0.5])}, "arrays.npz")
  >>> npz_load("arrays.npz")["weight"].tolist()
  [1.0, 2.0]
  """
  archive = ZipArchive(InputFile(fn, "npz", limit))
  found: dict[str, Tensor] = {}
  for name, member in archive.members.items():
    if not name.endswith(".npy"):
      raise archive.source.bad(f"its member {name!r} is no array (.npy); zip_extract reads any member")
    source = InputFile(archive.tensor(member), f"npy ({name!r})", inside=archive.source)
    found[name.removesuffix(".npy")] = _array(source)
    if member.method != STORED: source.budget.give(member.size)   # the unpacked bytes are free again
  return found

def _array(source: InputFile) -> Tensor:
  head = source.read(0, 8, "the magic")
  if head[:6] != _MAGIC: raise source.bad(f"it begins with {head[:6]!r}")
  if head[6] not in _LENGTH_BYTES: raise source.bad(f"it has version {head[6]}.{head[7]}; versions 1 to 3 are known")
  width = _LENGTH_BYTES[head[6]]
  length = int.from_bytes(source.read(8, width, "the length of the header"), "little")
  if length > _LONGEST_HEADER: raise source.bad(f"its header has {length} bytes; at most {_LONGEST_HEADER} are read")
  dtype, big, fortran, shape = _header(source, source.read(8 + width, length, "the header"))
  order = shape[::-1] if fortran else shape
  begin = 8 + width + length
  swap = big and dtype.itemsize > 1
  x = _byteswapped(source, begin, order, dtype) if swap else source.elements(begin, order, dtype, "the array")
  return x.permute(list(range(len(shape)))[::-1]) if fortran and len(shape) > 1 else x

def _header(source: InputFile, text: bytes) -> tuple[DType, bool, bool, tuple[int, ...]]:
  """Return the type, whether it is big-endian, whether the first axis is contiguous, and the shape."""
  try: header = text.decode()
  except UnicodeDecodeError: header = text.decode("latin-1")
  if _RECORDS.search(header):
    raise source.bad("its elements are records of several fields; save each field as an array of its own")
  found, inside, at = {}, header.strip(), 1
  while (entry := _ENTRY.match(inside, at)) is not None:
    found[entry[1][1:-1]] = entry[2]
    at = entry.end()
  if inside[:1] != "{" or inside[at:].strip() != "}": found = {}
  if (found.keys() != {"descr", "fortran_order", "shape"} or found["fortran_order"] not in ("True", "False")
      or found["shape"][0] != "("):
    raise source.bad(f"its header is not one of an array: {header[:80]!r}")
  numbers = [n.strip() for n in found["shape"][1:-1].split(",")]
  if not numbers[-1]: numbers.pop()
  numbers = [n[:-1] if n[1:].endswith("L") else n for n in numbers]   # as Python 2 wrote them
  if len(numbers) > _MOST_AXES or not all(n.isdecimal() and len(n) < 20 for n in numbers):
    raise source.bad(f"its shape is {found['shape'][:80]}, which is not one of natural numbers")
  dtype, big = _type(source, found["descr"][1:-1])
  return dtype, big, found["fortran_order"] == "True", tuple(int(n) for n in numbers)

def _type(source: InputFile, descr: str) -> tuple[DType, bool]:
  order, code = (descr[0], descr[1:]) if descr[:1] in ("<", ">", "|", "=") else ("=", descr)
  if code in _TYPES: return _TYPES[code], order == ">"
  what = _WITHOUT_A_TYPE.get(code[:1], "of a type that is not known")
  raise source.bad(f"its elements ({descr[:20]!r}) are {what}; save them as numbers of another type")

def _byteswapped(source: InputFile, begin: int, shape: tuple[int, ...], dtype: DType) -> Tensor:
  """Return big-endian elements with their bytes reversed."""
  size = dtype.itemsize
  count = size
  for d in shape: count *= d
  source.budget.take(TENSOR + 3 * count)
  data = source.read(begin, count, "the array")
  swapped = bytearray(count)
  for i in range(size): swapped[i::size] = data[size - 1 - i::size]
  return Tensor(Tensor(swapped, dtype=dtype, device=computing(source.tensor.device)).reshape(shape).uop)

# ***** writing *****

def _saved(t: Any, name: str) -> bytes:
  """Return the head of the .npy file of a tensor."""
  if not isinstance(t, Tensor): raise ArgumentError(f"{name} wants Tensors, not {t!r}; make one with Tensor(...)")
  if t.dtype not in _CODES:
    raise ArgumentError(f"NumPy has no {t.dtype}; cast it first, or use safe_save, which has it")
  order = "|" if t.dtype.itemsize == 1 else "<"
  text = f"{{'descr': '{order}{_CODES[t.dtype]}', 'fortran_order': False, 'shape': {t._static_shape()}, }}"
  head = len(_MAGIC) + 4
  text += " " * (-(head + len(text) + 1) % _ALIGNMENT) + "\n"
  return _MAGIC + bytes([1, 0]) + len(text).to_bytes(2, "little") + text.encode()

def npy_save(t: Tensor, fn: str | os.PathLike[str]) -> None:
  """Write a tensor as a .npy file, which appears whole or not at all. Raises ArgumentError for types that NumPy lacks
  (bfloat16, fp8).

  >>> npy_save(Tensor([[1, 2], [3, 4]]), "saved.npy")
  """
  head = _saved(t, "npy_save")
  with writing(fn, "npy") as file:
    file.write(head)
    file.write(t._read(zero_copy=True)[0])

def npz_save(tensors: dict[str, Tensor], fn: str | os.PathLike[str], compressed: bool = False) -> None:
  """Write tensors as a .npz file, which appears whole or not at all. compressed: use deflate. Raises ArgumentError.

  >>> npz_save({"weight": Tensor([1.0, 2.0]), "bias": Tensor([0.5])}, "saved.npz")
  """
  if not isinstance(tensors, dict):
    raise ArgumentError(f"npz_save wants a dict of Tensors by name, not {type(tensors)}")
  for name in tensors:
    if not isinstance(name, str) or not name or "\0" in name:
      raise ArgumentError(f"{name!r} cannot be the name of an array; use a string")
  heads = {name: _saved(t, "npz_save") for name, t in tensors.items()}
  packing = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
  with writing(fn, "npz") as file, zipfile.ZipFile(file, "w", packing) as archive:
    for name, t in tensors.items():
      entry = zipfile.ZipInfo(f"{name}.npy")
      entry.compress_type = packing
      with archive.open(entry, "w", force_zip64=True) as member:
        member.write(heads[name])
        member.write(t._read(zero_copy=True)[0])
