"""Writes the three file formats of PyTorch from their description (tinyhw/nn/torch_file.py), without PyTorch: what
tests make up, and storages."""
from __future__ import annotations
import io
import pickle
import struct
import tarfile
import zipfile
from collections.abc import Mapping
from typing import Any, NamedTuple

ITEMSIZES = {"Float": 4, "Double": 8, "Half": 2, "BFloat16": 2, "Byte": 1, "Char": 1, "Short": 2, "Int": 4, "Long": 8,
             "Bool": 1}

class Global(NamedTuple):
  """A name that the reader has to look up."""
  module: str
  name: str

class Reduced(NamedTuple):
  """A call of a name, with arguments."""
  function: Any
  arguments: Any

class Built(NamedTuple):
  """An object that gets a state."""
  value: Any
  state: Any

class Stored(NamedTuple):
  """A storage: its key, the kind of its elements, and how many. view: a part of it, in the stream format: a key, an
  offset, and how many elements."""
  key: str
  kind: str
  count: int
  view: tuple[str, int, int] | None = None

class Referred(NamedTuple):
  """A tensor of the tar format: its number."""
  key: str

class Writer(pickle._Pickler):  # type: ignore[misc,name-defined]  # the one in Python, whose table can be changed
  """A pickler that writes names without importing them."""
  dispatch = dict(pickle._Pickler.dispatch)  # type: ignore[attr-defined]

  def __init__(self, file: Any, protocol: int, view: bool):
    super().__init__(file, protocol)
    self.view = view

  def _global(self, x: Global) -> None: self.write(b"c" + f"{x.module}\n{x.name}\n".encode())
  dispatch[Global] = _global

  def _reduced(self, x: Reduced) -> None:
    self.save(x.function)
    self.save(x.arguments)
    self.write(b"R")
  dispatch[Reduced] = _reduced

  def _built(self, x: Built) -> None:
    self.save(x.value)
    self.save(x.state)
    self.write(b"b")
  dispatch[Built] = _built

  def _stored(self, x: Stored) -> None:
    name = Global("torch.storage" if x.kind == "Untyped" else "torch", f"{x.kind}Storage")
    self.save(("storage", name, x.key, "cpu", x.count, *([x.view] if self.view else [])))
    self.write(b"Q")
  dispatch[Stored] = _stored

  def _referred(self, x: Referred) -> None:
    self.save(x.key)
    self.write(b"Q")
  dispatch[Referred] = _referred

def pickled(x: Any, protocol: int = 2, view: bool = False) -> bytes:
  file = io.BytesIO()
  Writer(file, protocol, view).dump(x)
  return file.getvalue()

def ordered(*pairs: Any) -> Reduced:
  return Reduced(Global("collections", "OrderedDict"), (list(map(list, pairs)),) if pairs else ())

def tensor(storage: Stored, offset: int, size: tuple[int, ...], stride: tuple[int, ...]) -> Reduced:
  return Reduced(Global("torch._utils", "_rebuild_tensor_v2"), (storage, offset, size, stride, False, ordered()))

def zip_file(x: Any, storages: Mapping[str, bytes], order: bytes | None = b"little", packing: int = zipfile.ZIP_STORED,
             protocol: int = 2) -> bytes:
  """The format since 1.6. storages: bytes by key."""
  file = io.BytesIO()
  with zipfile.ZipFile(file, "w", packing) as z:
    z.writestr("archive/data.pkl", x if isinstance(x, bytes) else pickled(x, protocol))
    if order is not None: z.writestr("archive/byteorder", order)
    for key, data in storages.items(): z.writestr(f"archive/data/{key}", data)
    z.writestr("archive/version", b"3\n")
  return file.getvalue()

def stream_file(x: Any, storages: Mapping[str, tuple[str, bytes]], little: bool = True) -> bytes:
  """The format before. storages: kind and bytes by key."""
  system = {"protocol_version": 1001, "little_endian": little, "type_sizes": {"short": 2, "int": 4, "long": 4}}
  head = [0x1950A86A20F9469CFC6C, 1001, system]
  parts = [pickled(part) for part in head] + [x if isinstance(x, bytes) else pickled(x, view=True),
                                              pickled(sorted(storages))]
  for key in sorted(storages):
    kind, data = storages[key]
    parts += struct.pack("<q", len(data) // ITEMSIZES[kind]), data
  return b"".join(parts)

def tar_file(x: Any, storages: Mapping[str, tuple[str, bytes]],
             tensors: Mapping[str, tuple[str, int, tuple[int, ...], tuple[int, ...]]],
             views: Any = ()) -> bytes:
  """The format before 0.1.10. tensors: storage, offset, size and stride by key. views: (key, key of the whole, offset,
  count)."""
  stored = [pickled(len(storages))]
  for key, (kind, data) in storages.items():
    stored += pickled((key, "cpu", Global("torch", f"{kind}Storage"))), struct.pack("<q",
                                                                                    len(data) // ITEMSIZES[kind]), data
  stored.append(pickled(list(views)))
  made = [pickled(len(tensors))]
  for key, (storage, offset, size, stride) in tensors.items():
    made += pickled((key, storage, Global("torch", "FloatTensor"))), struct.pack(f"<q{2 * len(size) + 1}q", len(size),
                                                                                 *size, *stride, offset)
  file = io.BytesIO()
  with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
    for name, data in (("storages", b"".join(stored)), ("tensors", b"".join(made)), ("pickle", pickled(x))):
      member = tarfile.TarInfo(name)
      member.size = len(data)
      tar.addfile(member, io.BytesIO(data))
  return file.getvalue()
