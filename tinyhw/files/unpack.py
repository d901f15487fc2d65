"""Unpack downloads on the disk: gzip, bzip2 and xz files, tar and zip archives. Loaded when needed.

One number of bytes, `Room`, bounds all writes: FREE and TIMES the size of the packed file, or the caller's limit.
Writes draw from it beforehand: their bytes, and MEMBER for each file or folder. Memory stays small: packed data come in
pieces, headers of tar are at most LONGEST_READ, xz uses at most XZ_BYTES. Zip members are stored, or packed by deflate
or bzip2.
"""
from __future__ import annotations
import importlib
import importlib.util
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO
import zipfile
import zlib

from tinyhw.errors import FetchError
from tinyhw.files.budget import FREE, TIMES
from tinyhw.files.regular import temporary_name

MEMBER = 4096              # bytes for a file or folder besides its contents
LONGEST_READ = 1 << 20     # maximum bytes of a tar header
XZ_BYTES = 128 << 20       # twice the memory that the largest preset of xz takes
_PIECE = 1 << 16
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
# some Pythons are built without them
_BZ2: Any = importlib.import_module("bz2") if importlib.util.find_spec("_bz2") else None
_LZMA: Any = importlib.import_module("lzma") if importlib.util.find_spec("_lzma") else None
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError,
            *([_LZMA.LZMAError] if _LZMA else []))

class Room:
  """The bytes that may be written for a packed file. limit: their number; None: by its size.

  Raises FetchError if they are not enough.
  """
  def __init__(self, name: str, size: int, limit: int | None):
    self.name, self.most = name, FREE + TIMES * size if limit is None else limit
    self.left = self.most

  def take(self, count: int) -> None:
    self.left -= count
    if self.left < 0:
      raise FetchError(f"{self.name} would unpack to more than {self.most} bytes; if you trust it, allow more: "
                       f"fetch(..., limit=bytes)")

class _Gzip:
  """zlib's decompressor, with the interface of those of bz2 and lzma."""
  def __init__(self) -> None:
    self.object, self.rest, self.needs_input = zlib.decompressobj(16 + zlib.MAX_WBITS), b"", True

  @property
  def eof(self) -> bool: return self.object.eof
  @property
  def unused_data(self) -> bytes: return self.object.unused_data

  def decompress(self, data: bytes, most: int) -> bytes:
    found = self.object.decompress(self.rest + data, most)
    self.rest = self.object.unconsumed_tail
    self.needs_input = not self.rest and len(found) < most
    return found

_KINDS: dict[bytes, Callable[[], Any]] = {   # by the first bytes of a file
  b"\x1f\x8b": _Gzip, **({b"BZh": _BZ2.BZ2Decompressor} if _BZ2 else {}),
  **({b"\xfd7zXZ\0": lambda: _LZMA.LZMADecompressor(_LZMA.FORMAT_XZ, memlimit=XZ_BYTES)} if _LZMA else {})}

def _kind(file: BinaryIO) -> Callable[[], Any] | None:
  """Return the decompressor for a file's first bytes; None: it is not packed."""
  head = file.read(6)
  file.seek(0)
  return next((make for magic, make in _KINDS.items() if head.startswith(magic)), None)

def _pieces(file: BinaryIO, make: Callable[[], Any]) -> Iterator[bytes]:
  """Yield the contents of a packed file, which may be several joined files, with zeros after them.

  Raises EOFError if it ends early.
  """
  unpacker, data = None, b""
  while True:
    if not data and (unpacker is None or unpacker.needs_input): data = file.read(_PIECE // 4)
    if unpacker is None:
      if not data: return
      data = data.lstrip(b"\0")
      if not data: continue
      unpacker = make()
    elif not data and unpacker.needs_input: raise EOFError("it ends early")
    yield unpacker.decompress(data, _PIECE)
    data = unpacker.unused_data if unpacker.eof else b""
    if unpacker.eof: unpacker = None

def unpack_file(packed: BinaryIO, file: BinaryIO, name: str, size: int, limit: int | None) -> None:
  """Write the contents of a packed file. size: of the packed file. Raises FetchError."""
  room, make = Room(name, size, limit), _kind(packed)
  try:
    if make is not _Gzip: raise EOFError("it begins otherwise")
    for piece in _pieces(packed, make):
      room.take(len(piece))
      file.write(piece)
  except _DAMAGED as error: raise FetchError(f"{name} is not a gzip file: {error}") from error

class _Capped:
  """A file that limits reads of whole headers to LONGEST_READ."""
  def __init__(self, file: BinaryIO): self.file, self.seek, self.tell, self.name = file, file.seek, file.tell, None
  def read(self, count: int = -1) -> bytes:
    if not 0 <= count <= LONGEST_READ:
      raise tarfile.ReadError(f"a header has {count} bytes; at most {LONGEST_READ} are read")
    return self.file.read(count)

def unpack_archive(archive: str, folder: str, limit: int | None) -> None:
  """Extract a tar or zip archive into a new folder, whole or not at all.

  Raises FetchError, also for members that would land elsewhere.
  """
  temporary = temporary_name(folder)
  size = os.path.getsize(archive)
  try:
    os.mkdir(temporary)
    if zipfile.is_zipfile(archive): _unzip(archive, temporary, Room(archive, size, limit))
    else:
      with open(archive, "rb") as file: _untar(archive, file, temporary, size, limit)
    os.rename(temporary, folder)
  except _DAMAGED as error: raise FetchError(f"{archive} is not a tar or zip archive: {error}") from error
  except OSError as error:
    if isinstance(error, FetchError): raise
    if not os.path.isdir(folder):
      raise FetchError(f"cannot unpack {archive}: {error}; check the room on the disk") from error
  finally: shutil.rmtree(temporary, ignore_errors=True)   # if the folder exists, another process was faster

def _unzip(archive: str, folder: str, room: Room) -> None:
  with zipfile.ZipFile(archive) as z:
    for member in z.infolist():
      if member.compress_type not in _METHODS:
        raise NotImplementedError(f"{member.filename!r:.200} is packed by method {member.compress_type}")
      room.take(MEMBER + member.file_size)   # no more is read
      z.extract(member, folder)              # it drops .. and absolute paths itself

def _untar(archive: str, file: BinaryIO, folder: str, size: int, limit: int | None) -> None:
  """Extract a tar archive. A packed one is first unpacked whole next to its members, since headers give the members'
  offsets."""
  make = _kind(file)
  if make is None: return _untar_plain(archive, file, folder, Room(archive, size, limit))
  room = Room(archive, size, limit)
  with tempfile.TemporaryFile(dir=os.path.dirname(folder)) as whole:
    for piece in _pieces(file, make):
      room.take(len(piece))
      whole.write(piece)
    whole.seek(0)
    _untar_plain(archive, whole, folder, Room(archive, size, limit))

def _untar_plain(archive: str, file: BinaryIO, folder: str, room: Room) -> None:
  capped: Any = _Capped(file)
  options: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}   # from 3.10.12 and 3.11.4 on
  with tarfile.open(fileobj=capped, mode="r:") as tar:
    members = []
    for member in tar:
      room.take(MEMBER + member.size)
      inside = os.path.realpath(os.path.join(folder, member.name)).startswith(os.path.realpath(folder) + os.sep)
      if not member.isdir() and not (member.isfile() and inside):
        raise FetchError(f"{archive}: member {member.name!r:.200} is a link or lies outside of the archive; unpack it "
                         f"by hand")
      members.append(member)
    tar.extractall(folder, members, **options)
