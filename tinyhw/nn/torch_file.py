"""Files that PyTorch's torch.save writes: state dicts, and other plain data with tensors in it. Source: PyTorch's
documentation, "Serialization semantics", and the files themselves.

There are three formats:

- zip, since 1.6: data.pkl is a pickle in which tensors refer to storages by key. data/<key> holds the bytes of a
  storage. byteorder names their byte order.
- stream, before that: pickles (a magic number, 1001, sizes of types, the object, the keys of storages). Then, for each
  key, 8 bytes for the number of elements, and the elements.
- tar, before 0.1.10: `storages` and `tensors` (pickles, each followed by raw data), and `pickle`, which refers to
  tensors by number.

unpickle.py reads the pickles, and runs no code. A tensor is a part of its storage with strides. Where the file is on
disk, it is a view on DISK.
"""
from __future__ import annotations
import struct
from typing import Any

from tinyhw.data_class import dataclass, replace
from tinyhw.dtype import DType, dtypes
from tinyhw.files.budget import ENTRY
from tinyhw.nn import tar_archive
from tinyhw.nn.strided import strided
from tinyhw.nn.tensor_io import FileLike, InputFile
from tinyhw.nn.unpickle import PLAIN, AllowedFunction, Internal, OpaqueName, Reader, Unpickler
from tinyhw.nn.zip_archive import STORED, Member, ZipArchive
from tinyhw.tensor import Tensor

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001
_BIG_ENDIAN = "its numbers are big-endian; save it again on a little-endian machine"

_STORAGES: dict[str, DType] = {
  "Float": dtypes.float32, "Double": dtypes.float64, "Half": dtypes.float16, "BFloat16": dtypes.bfloat16,
  "Byte": dtypes.uint8, "Char": dtypes.int8,
  "Short": dtypes.int16, "Int": dtypes.int32, "Long": dtypes.int64, "Bool": dtypes.bool,
}
_DTYPES: dict[str, DType] = {
  "float32": dtypes.float32, "float": dtypes.float32, "float64": dtypes.float64, "double": dtypes.float64,
  "float16": dtypes.float16,
  "half": dtypes.float16, "bfloat16": dtypes.bfloat16, "uint8": dtypes.uint8, "uint16": dtypes.uint16,
  "uint32": dtypes.uint32,
  "uint64": dtypes.uint64, "int8": dtypes.int8, "int16": dtypes.int16, "short": dtypes.int16, "int32": dtypes.int32,
  "int": dtypes.int32,
  "int64": dtypes.int64, "long": dtypes.int64, "bool": dtypes.bool, "float8_e4m3fn": dtypes.fp8e4m3,
  "float8_e5m2": dtypes.fp8e5m2,
  "float8_e4m3fnuz": dtypes.fp8e4m3fnuz, "float8_e5m2fnuz": dtypes.fp8e5m2fnuz,
}

@dataclass(frozen=True)
class StorageType(Internal):
  """A class of storages. dtype: the type of the elements. None: the storage is bytes, and each tensor brings its
  type."""
  dtype: DType | None

@dataclass(frozen=True)
class Storage(Internal):
  """`nbytes` bytes of a source, from `begin` on. dtype: None where tensors bring their own.

  The source is None in a run that only collects types.
  """
  source: InputFile | None
  begin: int
  nbytes: int
  dtype: DType | None

class Raw:
  """A placeholder for a tensor whose bytes are not known yet."""

# ***** functions that pickles of tensors call *****

def _naturals(x: Any) -> bool:
  return type(x) in (tuple, list) and len(x) <= 64 and all(type(d) is int and 0 <= d < 1 << 62 for d in x)

def rebuild_tensor(storage: Any, offset: Any, size: Any, stride: Any, *_: Any,
                   dtype: DType | None = None) -> Tensor | Raw:
  """Return a tensor over a storage.

  Raises ValueError for a tensor outside of the storage, FileFormatError for one that movements cannot express.
  """
  if not isinstance(storage, Storage): raise ValueError("a tensor has no storage")
  if type(offset) is not int or offset < 0 or not _naturals(size) or not _naturals(stride) or len(size) != len(stride):
    raise ValueError("offset, size or stride are no natural numbers")
  kind = dtype or storage.dtype or dtypes.uint8
  if storage.source is None: return Raw()
  return strided(storage.source, storage.begin, storage.nbytes // kind.itemsize, kind, offset, tuple(size),
                 tuple(stride))

def _rebuild_v2(storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any = False, hooks: Any = None,
                bits: Any = None,
                *_: Any) -> Tensor | Raw:
  return _with_bits(rebuild_tensor(storage, offset, size, stride), bits)

def _rebuild_v3(storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, dtype: Any,
                bits: Any = None,
                *_: Any) -> Tensor | Raw:
  if not isinstance(dtype, DType): raise ValueError("the type of its elements is no dtype")
  return _with_bits(rebuild_tensor(storage, offset, size, stride, dtype=dtype), bits)

def _with_bits(x: Tensor | Raw, bits: Any) -> Tensor | Raw:
  """Apply the bits of a tensor. `neg` says that the storage holds its negative, as for the imaginary part of a
  conjugate.

  Raises ValueError for other bits.
  """
  if bits is None: return x
  if not isinstance(bits, dict) or any(type(value) is not bool for value in bits.values()):
    raise ValueError("a tensor's bits are a dict of bools")
  others = [name for name, value in bits.items() if value and name != "neg"]
  if others:
    raise ValueError(f"a tensor has the bit {others[0]!r}, which no tensor has here; save a copy, made with "
                     f"resolve_conj() or clone()")
  return -x.to(None) if bits.get("neg") and isinstance(x, Tensor) else x

def _same(data: Any, *_: Any) -> Any:
  """Return a parameter, which is a tensor here."""
  if not isinstance(data, (Tensor, Raw)): raise ValueError("a parameter is a tensor")
  return data

def _from_type(function: Any, kind: Any, arguments: Any, state: Any) -> Any:
  """Return a tensor with attributes, or of a subclass in torch. The attributes are dropped."""
  if (not isinstance(function, AllowedFunction) or not function.name.startswith("torch._utils._rebuild")
      or type(arguments) is not tuple):
    raise ValueError("only tensors are rebuilt")
  return function.function(*arguments)

def _size(x: Any) -> tuple[int, ...]:
  if not _naturals(x): raise ValueError("sizes are natural numbers")
  return tuple(x)

def _scalar(dtype: Any, data: Any) -> Any:
  """Return a NumPy number as a Python number."""
  if not isinstance(dtype, _NumpyType) or type(data) not in (bytes, str):
    raise ValueError("a scalar is its type and its bytes")
  raw = data.encode("latin-1") if type(data) is str else data
  return struct.unpack(dtype.order + dtype.code(), raw)[0]

class _NumpyType(Internal):
  """A dtype of NumPy: a code such as "f8". Its state sets the byte order."""
  _CODES = {"b1": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q",
            "f2": "e", "f4": "f", "f8": "d"}

  def __init__(self, name: Any, *_: Any):
    if type(name) is not str or name not in self._CODES: raise ValueError("no number has such a type")
    self.name, self.order = name, "<"

  def code(self) -> str: return self._CODES[self.name]

def _state(x: Any, state: Any) -> Any:
  """BUILD: drop the attributes of a dict or tensor (`_metadata` of state dicts), or set the byte order of a NumPy
  type."""
  if isinstance(x, _NumpyType):
    if type(state) is not tuple or len(state) < 2 or state[1] not in ("<", ">", "|", "="):
      raise ValueError("a type's state has its byte order")
    x.order = "<" if state[1] in "|=" else state[1]
  elif not isinstance(x, (dict, Tensor, Raw)): raise ValueError(f"a {type(x).__name__} has no state")
  return x

_FUNCTIONS: dict[str, Any] = {
  "torch._utils _rebuild_tensor": rebuild_tensor, "torch._utils _rebuild_tensor_v2": _rebuild_v2,
  "torch._utils _rebuild_tensor_v3": _rebuild_v3,
  "torch._utils _rebuild_parameter": _same, "torch._utils _rebuild_parameter_with_state": _same,
  "torch._tensor _rebuild_from_type_v2": _from_type, "torch.nn.parameter Parameter": _same, "torch Size": _size,
  "torch device": lambda *_: "cpu",
  "numpy.core.multiarray scalar": _scalar, "numpy._core.multiarray scalar": _scalar, "numpy dtype": _NumpyType,
}
NAMES: dict[str, Any] = {
  **PLAIN, **{name: AllowedFunction(name.replace(" ", "."), function) for name, function in _FUNCTIONS.items()},
  **{f"torch {name}Storage": StorageType(dtype) for name, dtype in _STORAGES.items()},
  **{f"torch.cuda {name}Storage": StorageType(dtype) for name, dtype in _STORAGES.items()},
  "torch UntypedStorage": StorageType(None), "torch.storage UntypedStorage": StorageType(None),
  **{f"torch {name}": dtype for name, dtype in _DTYPES.items()},
  "torch Tensor": OpaqueName("torch.Tensor"), "torch._tensor Tensor": OpaqueName("torch.Tensor"),
}

# ***** the formats *****

def torch_load(t: FileLike, limit: int | None = None) -> Any:
  """Read a file of torch.save: a dict of Tensors (a state_dict), or other plain data with Tensors in it. No code in the
  file is run.

  Tensors are on DISK, and are read when they are moved, by .to() or load_state_dict. Parameters become Tensors, and
  devices are ignored.

  limit: the bytes of memory that this may use; None: 64 MB and 20 for each byte of the file. Raises FileFormatError for
  a damaged or hostile file, and for pickled objects of classes.

  >>> load_state_dict(model, torch_load("model.pth"))  # doctest: +SKIP
  """
  source = InputFile(t, "PyTorch", limit)
  head = source.read(0, min(source.size, 4), "the head")
  if head == b"PK\3\4": return _load_zip(source)
  if source.size > 262 and source.read(257, 5, "the head") == b"ustar" or _begins_like_tar(source):
    return _load_tar(source)
  return _load_stream(source)

def _load_zip(source: InputFile) -> Any:
  archive = ZipArchive(source)
  roots = [name.removesuffix("data.pkl") for name in archive.members if name == "data.pkl"
           or name.endswith("/data.pkl")]
  if len(roots) != 1: raise source.bad("it is a zip archive without data.pkl; was it written by torch.save?")
  root = roots[0]
  if f"{root}constants.pkl" in archive.members:
    raise source.bad("it is a TorchScript program; save the module's state_dict() instead")
  order = archive.members.get(f"{root}byteorder")
  if order is not None and (order.size > 16 or archive.read(order) != b"little"): raise source.bad(_BIG_ENDIAN)
  storages: dict[str, Storage] = {}

  def persistent(found: Any) -> Storage:
    kind, key, count = _storage_id(found)
    if key not in storages:
      member = archive.members.get(f"{root}data/{key}")
      if member is None: raise source.bad(f"it has no storage {key!r}")
      place, begin = _member_source(archive, member)
      storages[key] = Storage(place, begin, member.size, kind.dtype)
    return _of_type(storages[key], kind, key, count)
  pickle = archive.members[f"{root}data.pkl"]
  place, begin = _member_source(archive, pickle)
  return Unpickler(Reader(place, begin, begin + pickle.size), NAMES, persistent, _state).load()

def _member_source(archive: ZipArchive, member: Member) -> tuple[InputFile, int]:
  """Return the source and the offset of a member's bytes: in the archive, or in the unpacked copy."""
  data = archive.tensor(member)   # checks the claims of the member
  if member.method == STORED: return archive.source, archive.offset(member)
  return InputFile(data, archive.source.format, inside=archive.source), 0

def _of_type(storage: Storage, kind: StorageType, key: str, count: int) -> Storage:
  """Return a storage as elements of a type. It must have at least `count` elements."""
  assert storage.source is not None
  if count * (kind.dtype or dtypes.uint8).itemsize > storage.nbytes:
    raise storage.source.bad(f"storage {key!r} should have {count} elements, and has {storage.nbytes} bytes")
  return replace(storage, dtype=kind.dtype)

def _storage_id(found: Any) -> tuple[StorageType, str, int]:
  """Return the type, the key and the number of elements in a persistent id: ("storage", type, key, location, elements,
  ...)."""
  if type(found) is not tuple or len(found) < 5 or found[0] != "storage" or not isinstance(found[1], StorageType):
    raise ValueError("not a storage")
  if type(found[2]) not in (str, int) or type(found[4]) is not int or not 0 <= found[4] < 1 << 62:
    raise ValueError("a storage's key or size")
  return found[1], str(found[2])[:200], found[4]

def _load_stream(source: InputFile) -> Any:
  """Read the stream format. The pickle of the object is read twice: first to find its end and its storages, then with
  the offsets of the storages."""
  reader = Reader(source)
  if not source.size or source.read(0, 1, "the head") != b"\x80":
    raise source.bad("it is neither a zip archive nor begins with a pickle")
  if Unpickler(reader, {}).load() != _MAGIC:
    raise source.bad("it begins with a pickle, but not with torch.save's magic number; was it made by pickle?")
  if Unpickler(reader, {}).load() != _PROTOCOL: raise source.bad(f"its protocol is not {_PROTOCOL}")
  system = Unpickler(reader, {}).load()
  if not isinstance(system, dict) or system.get("little_endian") is not True:
    raise source.bad(_BIG_ENDIAN)
  begin = reader.position
  kinds: dict[str, tuple[StorageType, int]] = {}

  def first(found: Any) -> Storage:
    kind, key, count = _storage_id(found)
    kinds[key] = kind, count
    return Storage(None, 0, 0, kind.dtype)
  with source.budget.borrowed(): Unpickler(reader, NAMES, first, _state).load()
  source.budget.take(ENTRY * len(kinds))
  keys = Unpickler(reader, {}).load()
  if type(keys) is not list or not all(type(key) in (str, int) for key in keys):
    raise source.bad("it has no list of storages")
  storages: dict[str, Storage] = {}
  at = reader.position
  for key in map(str, keys):
    if key not in kinds or key in storages:
      raise source.bad(f"its list of storages has {key[:40]!r}, which no tensor has, or twice")
    kind, _ = kinds[key]
    count = int.from_bytes(source.read(at, 8, "the size of a storage"), "little")
    nbytes = count * (kind.dtype or dtypes.uint8).itemsize
    source.part(at + 8, nbytes, f"storage {key!r}")
    source.budget.take(ENTRY)
    storages[key] = Storage(source, at + 8, nbytes, kind.dtype)
    at += 8 + nbytes

  def second(found: Any) -> Storage:
    kind, key, count = _storage_id(found)
    view = found[5] if len(found) > 5 else None
    if key not in storages: raise source.bad(f"it has no storage {key!r}")
    storage = _of_type(storages[key], kind, key, count)
    if view is None: return storage
    _, offset, elements = view
    size = (kind.dtype or dtypes.uint8).itemsize
    if not _naturals((offset, elements)) or (offset + elements) * size > storage.nbytes:
      raise source.bad(f"a view of storage {key!r} lies outside of it")
    return replace(storage, begin=storage.begin + offset * size, nbytes=elements * size)
  return Unpickler(Reader(source, begin, reader.end), NAMES, second, _state).load()

def _begins_like_tar(source: InputFile) -> bool:
  """Does the file begin with a tar header? Old tar headers have no magic: a name, zeros, and a correct checksum."""
  if source.size < 1024: return False
  header = source.read(0, 512, "the head")
  digits = header[148:156].strip(b" \0")
  return (digits.isdigit() and all(48 <= c < 56 for c in digits) and int(digits, 8) == sum(header[:148])
          + sum(header[156:]) + 8 * 32)

def _load_tar(source: InputFile) -> Any:
  files = {member.name.removeprefix("./"): member for member in tar_archive.members(source)}
  missing = [name for name in ("storages", "tensors", "pickle") if name not in files]
  if missing: raise source.bad(f"it is a tar archive without {missing[0]!r}; was it written by torch.save?")
  readers = {name: Reader(source, member.begin, member.begin + member.size) for name, member in files.items()}
  storages = _tar_storages(source, readers["storages"])
  tensors = _tar_tensors(source, readers["tensors"], storages)

  def persistent(found: Any) -> Any:
    key = found[0] if type(found) is tuple and found else found
    made = (tensors.get(str(key)), storages.get(str(key))) if type(key) in (str, int) else (None, None)
    if made[0] is None and made[1] is None: raise source.bad("it refers to no tensor of its own")
    return made[1] if made[0] is None else made[0]
  return Unpickler(readers["pickle"], NAMES, persistent, _state).load()

def _tar_count(source: InputFile, reader: Reader) -> int:
  count = Unpickler(reader, {}).load()
  if type(count) is not int or not 0 <= count <= reader.end - reader.position:
    raise source.bad("the number of its storages or tensors is damaged")
  return count

def _tar_storages(source: InputFile, reader: Reader) -> dict[str, Storage]:
  """Read `storages`: a number, then for each storage a pickle (key, location, type), 8 bytes for the number of
  elements, and the elements. A list of views follows."""
  found: dict[str, Storage] = {}
  for _ in range(_tar_count(source, reader)):
    entry = Unpickler(reader, NAMES, internal=True).load()
    if (type(entry) is not tuple or len(entry) != 3 or type(entry[0]) not in (int, str)
        or not isinstance(entry[2], StorageType)):
      raise source.bad("a storage has no key, location and type")
    key, _, kind = entry
    source.budget.take(ENTRY)
    nbytes = int.from_bytes(reader.take(8), "little") * (kind.dtype or dtypes.uint8).itemsize
    source.part(reader.position, nbytes, "a storage")
    if nbytes > reader.end - reader.position: raise source.bad("a storage is larger than what is left")
    found[str(key)] = Storage(source, reader.position, nbytes, kind.dtype)
    reader.position += nbytes
  views = Unpickler(reader, {}).load()
  for view in views if type(views) is list else ():
    if type(view) is not tuple or len(view) != 4 or not _naturals(view[2:]) or str(view[1]) not in found:
      raise source.bad("a view of a storage is damaged")
    source.budget.take(ENTRY)
    whole = found[str(view[1])]
    size = (whole.dtype or dtypes.uint8).itemsize
    if (view[2] + view[3]) * size > whole.nbytes: raise source.bad("a view of a storage lies outside of it")
    found[str(view[0])] = replace(whole, begin=whole.begin + view[2] * size, nbytes=view[3] * size)
  return found

def _tar_tensors(source: InputFile, reader: Reader, storages: dict[str, Storage]) -> dict[str, Tensor]:
  """Read `tensors`: a number, then for each tensor a pickle (key, storage, type), 8 bytes for the number of axes, and
  as int64 the sizes, the strides and the offset."""
  found: dict[str, Tensor] = {}
  for _ in range(_tar_count(source, reader)):
    entry = Unpickler(reader, _TAR_NAMES, internal=True).load()
    if type(entry) is not tuple or len(entry) != 3 or type(entry[0]) not in (int, str) or str(entry[1]) not in storages:
      raise source.bad("a tensor has no key and storage")
    axes = int.from_bytes(reader.take(8)[:4], "little")
    if axes > 64: raise source.bad(f"a tensor has {axes} axes")
    numbers = struct.unpack(f"<{2 * axes + 1}q", reader.take(8 * (2 * axes + 1)))
    try: made = rebuild_tensor(storages[str(entry[1])], numbers[-1], numbers[:axes], numbers[axes:-1])
    except ValueError as error: raise source.bad(f"a tensor is damaged: {error}") from None
    assert isinstance(made, Tensor)
    found[str(entry[0])] = made
  return found

_TAR_NAMES = {**NAMES, **{f"torch {name}Tensor": OpaqueName(f"torch.{name}Tensor") for name in _STORAGES}}
