"""Access to bytes of tensors and files: `TensorIO`, a file over a tensor, and `InputFile`, which the readers of file
formats use.

An InputFile reads parts of a file that it is given by path, or of a vector of bytes on any device. It makes tensors of
parts. For a file they are views on DISK, and reading happens later. A request for a part outside of the file raises
FileFormatError, so wrong lengths in a file cannot cost memory. Everything made from a file is charged to the budget of
its InputFile.
"""
from __future__ import annotations
import contextlib
import io
import os
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, NoReturn

from tinyhw.device import Buffer, computing, on_disk
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import ArgumentError, DriverError, FileFormatError, MissingFileError, TinyError
from tinyhw.files.budget import AXIS, TENSOR, Budget
from tinyhw.files.regular import atomic_file
from tinyhw.tensor import Tensor

FileLike = Tensor | str | os.PathLike[str]

def byte_tensor(t: FileLike, what: str = "this") -> Tensor:
  """Return a file, given by its path, as a tensor on DISK. Return a tensor, which must be a vector of uint8, unchanged.
  what: the caller, for messages."""
  if isinstance(t, (str, os.PathLike)): return Tensor(pathlib.Path(t))
  if not isinstance(t, Tensor): raise ArgumentError(f"{what} wants a path or a Tensor of bytes, not {t!r}")
  if t.ndim != 1 or t.dtype is not dtypes.uint8:
    raise ArgumentError(f"{what} wants a vector of uint8, not {t.dtype} of shape {t.shape}; use .bitcast()")
  return t

@contextlib.contextmanager
def writing(path: str | os.PathLike[str], what: str) -> Iterator[BinaryIO]:
  """Open a file to write. It appears whole or not at all.

  Raises MissingFileError if its folder does not exist. Raises ArgumentError, DriverError.
  """
  if not isinstance(path, (str, os.PathLike)):
    raise ArgumentError(f"the path of a {what} file is a string or a Path, not {path!r}")
  if not os.fspath(path) or "\0" in os.fspath(path):
    raise ArgumentError(f"{os.fspath(path)!r} cannot be the name of a {what} file")
  full = os.path.abspath(path)
  if not os.path.isdir(os.path.dirname(full)):
    raise MissingFileError(f"cannot write {os.fspath(path)}: there is no folder {os.path.dirname(full)}; make it first")
  if os.path.isdir(full):
    raise ArgumentError(f"cannot write {os.fspath(path)}: it is a folder; give the path of a {what} file")
  try:
    with atomic_file(full, durable=True) as file: yield file
  except OSError as error:
    if isinstance(error, TinyError): raise
    raise DriverError(f"cannot write {os.fspath(path)}: {error.strerror or error}; check the folder's permissions and "
                      f"the room on the disk") from None

class InputFile:
  """The bytes of a file of some format. format: its name, for messages. bad: makes the error for a damaged file.

  inside: the file from which these bytes were unpacked. They share its name and its budget. Otherwise they have a
  budget of `limit` bytes.
  """
  def __init__(self, t: FileLike, format: str, limit: int | None = None, inside: InputFile | None = None):
    self.tensor = byte_tensor(t, f"reading a {format} file")
    self.format, self.size = format, len(self.tensor)
    own = str(self.tensor.device).partition(":")[2] if on_disk(self.tensor.device) else "the tensor"
    self.name: str = own if inside is None else inside.name
    self._buffer: Buffer | None = self.tensor._buffer() if self.size else None
    self.budget: Budget = Budget(self.name, self.size, limit) if inside is None else inside.budget

  def bad(self, why: str) -> FileFormatError:
    return FileFormatError(f"{self.name} is no whole {self.format} file: {why}")

  def _check(self, begin: int, count: int, what: str) -> None:
    if count < 0 or begin < 0: raise self.bad(f"{what} would begin at byte {begin} and have {count} bytes")
    if begin + count > self.size:
      raise self.bad(f"{what} takes bytes {begin} to {begin + count}, and there are {self.size}; was the download cut "
                     f"off?")

  def read(self, begin: int, count: int, what: str) -> bytes:
    """Return bytes, which must exist. what: their name, for the message."""
    self._check(begin, count, what)
    if not count or self._buffer is None: return b""
    return bytes(self._buffer.view(count, dtypes.uint8, begin).as_memoryview(allow_zero_copy=True))

  def part(self, begin: int, count: int, what: str) -> Tensor:
    """Return bytes as a tensor: a view on DISK, or a part of the tensor."""
    self._check(begin, count, what)
    self.budget.take(TENSOR)
    return self.tensor[begin:begin + count]

  def unpacked(self, data: bytes | bytearray) -> Tensor:
    """Return data that was unpacked from the file as a vector of bytes: a copy, on a device that computes."""
    self.budget.take(TENSOR + len(data))
    return Tensor(data, dtype=dtypes.uint8, device=computing(self.tensor.device))

  def elements(self, begin: int, shape: tuple[int, ...], dtype: DType, what: str) -> Tensor:
    """Return elements as a tensor of a type and shape: a view on DISK, else a copy on the tensor's device."""
    count = dtype.itemsize
    for d in shape: count *= d
    self.budget.take(TENSOR + AXIS // 16 * len(shape))
    self._check(begin, count, what)
    if on_disk(self.tensor.device) and count: return self.tensor[begin:begin + count].bitcast(dtype).reshape(shape)
    self.budget.take(2 * count)
    flat = Tensor(self.read(begin, count, what), dtype=dtype, device=computing(self.tensor.device))
    return Tensor(flat.reshape(shape).uop)   # a leaf, so that backward() may fill its grad

class TensorIO(io.RawIOBase):
  """A file over a vector of uint8. Code that takes an open file can read a tensor with it, on any device. Its size is
  fixed.

  >>> with TensorIO(Tensor(b"abcdef")) as file: (file.read(2), file.seek(-1, 2), file.read())
  (b'ab', 5, b'f')
  """
  def __init__(self, t: Tensor):
    if not isinstance(t, Tensor): raise ArgumentError(f"TensorIO wants a Tensor, not {t!r}")
    self._tensor, self._position = byte_tensor(t, "TensorIO"), 0
    self._held: Buffer | None = None

  def _bytes(self) -> Buffer:
    """Return the storage. It is fetched again after a write."""
    if self._held is None: self._held = self._tensor._buffer()
    return self._held

  def _open(self) -> None:
    if self.closed: raise ArgumentError("the file is closed; make another TensorIO of the tensor")

  def readable(self) -> bool: return True
  def writable(self) -> bool: return True
  def seekable(self) -> bool: return True

  def readinto(self, buffer: Any) -> int:
    """Fill a buffer with the bytes that are left. Return their count."""
    self._open()
    target = memoryview(buffer).cast("B")
    count = min(target.nbytes, max(len(self._tensor) - self._position, 0))
    if count: self._bytes().view(count, dtypes.uint8, self._position).copyout(target[:count])
    self._position += count
    return count

  def read(self, size: int | None = -1, /) -> bytes:
    """Return at most `size` bytes, or all that are left for -1 or None."""
    self._open()
    left = max(len(self._tensor) - self._position, 0)
    data = bytearray(left if size is None or size < 0 else min(size, left))
    self.readinto(data)
    return bytes(data)

  def readall(self) -> bytes: return self.read()

  def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
    """Move to a byte counted from the beginning (whence 0), from here (1) or from the end (2). Raises ArgumentError."""
    self._open()
    if whence not in (io.SEEK_SET, io.SEEK_CUR, io.SEEK_END):
      raise ArgumentError(f"whence is 0, 1 or 2, not {whence!r}")
    if whence == io.SEEK_SET and offset < 0:
      raise ArgumentError(f"cannot go to byte {offset}: bytes are counted from 0")
    self._position = max((0, self._position, len(self._tensor))[whence] + offset, 0)
    return self._position

  def tell(self) -> int: return self._position

  def write(self, s: Any, /) -> int:
    """Overwrite bytes of the tensor, in place, from here on. Return the number of bytes that fitted before its end."""
    self._open()
    data = memoryview(s).cast("B")
    count = min(data.nbytes, max(len(self._tensor) - self._position, 0))
    if count:
      device = computing(self._tensor.device)
      self._tensor[self._position:self._position + count] = Tensor(bytes(data[:count]), device=device)
      self._held = None
    self._position += count
    return count

  def writelines(self, lines: Iterable[Any], /) -> None:
    """Write lines one after the other. Raises ArgumentError if they do not fit."""
    for line in lines:
      if self.write(line) < memoryview(line).nbytes:
        raise ArgumentError(f"the tensor has {len(self._tensor)} bytes, and cannot grow to take the lines")

  def truncate(self, size: int | None = None, /) -> NoReturn:
    """Raise ArgumentError: a tensor keeps its size."""
    raise ArgumentError("a tensor's size stays as it is; slice the tensor instead")
