"""The devices DISK:/path: the bytes of one file as memory. They store bytes and compute nothing.

Nothing is mapped into memory. Bytes are read on demand, directly to their destination. So a file that shrinks under a
tensor gives an error and not a signal. An open file stays the same file: replacing it under its name (as `safe_save`
does) disturbs no reader. Files are read only, unless the Buffer has `BufferOptions(writable=True)`. Then the first
write creates the file and extends it.
"""
from __future__ import annotations
import errno
import os
import threading
from collections.abc import Callable
from typing import Any

from tinyhw.device import Allocator, BufferOptions, Compiled
from tinyhw.errors import ArgumentError, DeviceError, DriverError, FileFormatError, MissingFileError
from tinyhw.files.regular import NotRegular, descriptor
from tinyhw.machine.ir.code import Code
from tinyhw.named_tuple import NamedTuple

_opening = threading.Lock()
_MOST_AT_ONCE = 1 << 30  # bytes of one call; Linux transfers at most 2 GiB - 4 KiB

def open(path: str, runtime: Callable[[str], Code]) -> Compiled:
  """Open the device of one file, which need not exist before it is read."""
  return DiskDevice(path)

class File:
  """One file, opened at first use. size: bytes that its owner may use. Closed with the last reference."""
  __slots__ = ("path", "size", "writable", "_descriptor")

  def __init__(self, path: str, size: int, writable: bool):
    self.path, self.size, self.writable = path, size, writable
    self._descriptor = -1

  def __del__(self) -> None:
    if self._descriptor >= 0: os.close(self._descriptor)

  def opened(self, make: bool = False) -> int:
    """Return its descriptor. make: create and extend the file if necessary.

    Raises MissingFileError, ArgumentError, DriverError.
    """
    if self._descriptor < 0:
      with _opening:   # two threads must not open it twice
        if self._descriptor < 0: self._descriptor = self._open(make)
    if make and os.fstat(self._descriptor).st_size < self.size:
      try: os.ftruncate(self._descriptor, self.size)
      except OSError as error:
        raise DriverError(f"cannot make {self.path} {self.size} bytes long: {error.strerror}") from None
    return self._descriptor

  def _open(self, make: bool) -> int:
    flags = (os.O_RDWR if self.writable else os.O_RDONLY) | (os.O_CREAT if make else 0)
    try: return descriptor(self.path, flags | getattr(os, "O_BINARY", 0))
    except NotRegular:
      raise ArgumentError(
        f"{self.path} is a folder, a pipe or a device; a tensor's bytes come from a regular file") from None
    except (OSError, ValueError) as error: raise self._refusal(error) from None

  def _refusal(self, error: OSError | ValueError) -> Exception:
    if not isinstance(error, OSError): return ArgumentError(f"{self.path!r} cannot be the name of a file: {error}")
    if error.errno == errno.ENOENT: return MissingFileError(f"there is no file {self.path}; check the path")
    if error.errno == errno.EISDIR: return ArgumentError(f"{self.path} is a folder; give the path of a file in it")
    return DriverError(f"opening {self.path}: {error.strerror}; check its permissions, and those of its folder")

  def length(self) -> int:
    """Return its current bytes."""
    return os.fstat(self.opened()).st_size

  def read(self, offset: int, dest: memoryview) -> None:
    """Fill dest. Raises FileFormatError if the file ends early."""
    file, done = self.opened(), 0
    while done < dest.nbytes:
      try: count = _read_at(file, dest[done:done + _MOST_AT_ONCE], offset + done)
      except OSError as error: raise DriverError(f"reading {self.path}: {error.strerror}") from None
      if not count:
        raise FileFormatError(f"{self.path} ends at byte {offset + done}, and bytes {offset} to "
                              f"{offset + dest.nbytes} are wanted; "
                              "it became shorter since it was opened, or is another file now")
      done += count

  def write(self, offset: int, source: memoryview) -> None:
    """Overwrite a part.

    Raises DeviceError for a file that was not opened for writing, DriverError if writing fails.
    """
    if not self.writable:
      raise DeviceError(f"{self.path} is open for reading only; to write to it, use Tensor.empty(n, "
                        f"device=\"DISK:{self.path}\", dtype=...)"
                        ".assign(x)")
    file, done = self.opened(make=True), 0
    while done < source.nbytes:
      try: done += _write_at(file, source[done:done + _MOST_AT_ONCE], offset + done)
      except OSError as error: raise DriverError(f"writing {self.path}: {error.strerror}") from None

if hasattr(os, "preadv"):
  def _read_at(descriptor: int, dest: memoryview, offset: int) -> int: return os.preadv(descriptor, [dest], offset)
  def _write_at(descriptor: int, source: memoryview, offset: int) -> int:
    return os.pwritev(descriptor, [source], offset)
else:
  import io
  # for systems without reads at a position: there a descriptor has one position for all threads
  _position = threading.Lock()

  def _read_at(descriptor: int, dest: memoryview, offset: int) -> int:
    with _position, io.FileIO(descriptor, "rb", closefd=False) as file:
      file.seek(offset)
      return file.readinto(dest) or 0

  def _write_at(descriptor: int, source: memoryview, offset: int) -> int:
    with _position, io.FileIO(descriptor, "r+b", closefd=False) as file:
      file.seek(offset)
      return file.write(source)

class FileRange(NamedTuple):
  """An opaque buffer: a file from an offset on."""
  file: File
  begin: int

class DiskAllocator(Allocator):
  """Memory that is a file: it has contents before the first write, and takes no memory of the host."""
  def __init__(self, device: DiskDevice, path: str):
    super().__init__(device.name)
    self.device, self.path, self.lasting = device, path, True   # the device lives as long as its buffers

  def alloc(self, size: int, options: BufferOptions | None = None) -> FileRange:
    return FileRange(File(self.path, size, options is not None and options.writable), 0)
  # the last reference closes it
  def free(self, opaque: FileRange, size: int | None = None, options: Any = None) -> None: pass
  def drop(self, opaque: FileRange) -> None: pass

  def _copyin(self, dest: FileRange, src: memoryview) -> None: dest.file.write(dest.begin, src)
  def _copyout(self, dest: memoryview, src: FileRange) -> None: src.file.read(src.begin, dest)
  def offset(self, opaque: FileRange, size: int, offset: int) -> FileRange:
    return FileRange(opaque.file, opaque.begin + offset)

class DiskDevice(Compiled):
  """The device of one path."""
  def __init__(self, path: str):
    self.name = f"DISK:{path}"
    super().__init__(self.name, DiskAllocator(self, path), arch="disk")

  def load(self, code: Code) -> Any: raise self._refusal()
  def submit(self, launches: Any) -> None: raise self._refusal()
  def record(self, launches: Any) -> Any: raise self._refusal()
  def _refusal(self) -> DeviceError:
    return DeviceError(f"{self.name} computes nothing; move the tensor first, with .to(None)")
