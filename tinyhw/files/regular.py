"""Regular files: open them without blocking, and write them whole.

A path may lead to a pipe, whose opener would wait for the other end for ever, or to a device, a socket or a folder.
`descriptor` and `open_regular` refuse these. `open_input` does so for paths from the user, with errors that say how to
proceed.

`atomic_file` writes under another name and renames, so that readers see the old file or the new one. A killed writer
leaves its file under the other name, and the next writer of that file removes it. A lock shows that the first writer is
gone, since the kernel drops a lock with its owner. Process ids would not do: other machines and containers have the
same ones.
"""
from __future__ import annotations
import errno
import itertools
import os
import stat
import time

from tinyhw.errors import ArgumentError, DriverError, MissingFileError

TYPE_CHECKING = False  # typing is loaded only for type checkers
if TYPE_CHECKING:
  from types import TracebackType
  from typing import Any, BinaryIO

# Without locks, a file that has not changed for a day counts as abandoned.
_ABANDONED_SECONDS = 86400
_numbers = itertools.count()
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_NOT_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)

# **** files to read ****

class NotRegular(OSError):
  """Raised for a folder, a pipe, a device or a socket in place of a file."""

def _check_regular(path: str | os.PathLike[str], found: os.stat_result) -> None:
  if not stat.S_ISREG(found.st_mode):
    raise NotRegular(errno.EINVAL, "it is a folder, a pipe, a device or a socket", os.fspath(path))

def descriptor(path: str | os.PathLike[str], flags: int = _READ_FLAGS, mode: int = 0o666) -> int:
  """Open a regular file, without blocking. flags, mode: of os.open. Raises NotRegular, and the errors of os.open.

  The file is checked twice: before, since opening a device may change it; and afterwards, since another file may have
  replaced it.
  """
  try: _check_regular(path, os.stat(path, follow_symlinks=not flags & getattr(os, "O_NOFOLLOW", 0)))
  except FileNotFoundError:
    if not flags & os.O_CREAT: raise
  opened = os.open(path, flags | _NOT_WAITING, mode)
  try: _check_regular(path, os.fstat(opened))
  except BaseException:
    os.close(opened)
    raise
  return opened

def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
  """`open(path, "rb")` of a regular file. Raises NotRegular, OSError."""
  return os.fdopen(descriptor(path), "rb")

def open_input(path: str | os.PathLike[str], what: str) -> BinaryIO:
  """Open a file that the user named for reading. what: "a GGUF file". Raises MissingFileError, ArgumentError,
  DriverError."""
  shown = os.fspath(path)
  try: return open_regular(path)
  except FileNotFoundError:
    raise MissingFileError(f"there is no file {os.path.abspath(shown)}; give the path of {what}") from None
  except NotRegular: raise ArgumentError(f"{shown} is a folder, a pipe or a device; give the path of {what}") from None
  except ValueError as error: raise ArgumentError(f"{shown!r} cannot be the name of {what}: {error}") from None
  except OSError as error:
    raise DriverError(f"opening {shown}: {error.strerror}; check its permissions, and those of its folder") from None

# **** ownership ****

def belongs_to_us(found: os.stat_result) -> bool:
  """Does it belong to this user or the administrator? Windows keeps the user's folders where others cannot write."""
  return not hasattr(os, "geteuid") or found.st_uid in (os.geteuid(), 0)

def is_ours(found: os.stat_result) -> bool:
  """Does it belong to this user or the administrator, and can no other user write to it?"""
  return belongs_to_us(found) and (not hasattr(os, "geteuid") or not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))

def make_folder(folder: str) -> None:
  """Make a folder and its missing parents, for this user only.

  Raises OSError.
  """
  try: os.mkdir(folder, 0o700)
  except FileExistsError:
    if not os.path.isdir(folder): raise
  except FileNotFoundError:
    above = os.path.dirname(folder)
    if above == folder: raise
    make_folder(above)
    try: os.mkdir(folder, 0o700)
    except FileExistsError: pass  # another process was faster

# **** files to write ****

def temporary_name(path: str) -> str:
  """Return a unique name in path's folder."""
  return f"{path}.{os.getpid()}.{next(_numbers)}.tmp"

def final_name(name: str) -> str | None:
  """Return the name from which `temporary_name` made a name; None for other names."""
  parts = name.rsplit(".", 3)
  return parts[0] if len(parts) == 4 and parts[1].isdecimal() and parts[2].isdecimal() and parts[3] == "tmp" else None

def _lock(file: int, wait: bool) -> bool | None:
  """Lock an open file until it is closed. Return False if another process has the lock, None if there are no locks."""
  try: import fcntl  # hidden: Windows has none
  except ImportError: return None
  try: fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
  except BlockingIOError: return False
  except OSError: return None
  return True

def _create(path: str, mode: int) -> tuple[str, int]:
  """Create a locked file in path's folder. Return its name and descriptor.

  A process that removes abandoned files may take it before it is locked. Then another file is created.
  """
  while True:
    name = temporary_name(path)
    opened = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | _NOT_WAITING, mode)
    if _lock(opened, True) is None or os.fstat(opened).st_nlink: return name, opened
    os.close(opened)

def remove_abandoned(folder: str, final: str | None = None) -> None:
  """Remove files that killed writers left in a folder. final: only files meant for this name.

  A folder that was being unpacked has no lock. It is removed when its contents have not changed for a day.
  """
  try:
    with os.scandir(folder) as entries:
      found = [e for e in entries if (name := final_name(e.name)) is not None and final in (None, name)]
  except OSError: return
  for entry in found:
    try:
      if not entry.is_dir(follow_symlinks=False): _remove_file(entry.path)
      elif _is_old(entry.stat(follow_symlinks=False)):
        import shutil  # hidden: rarely needed
        shutil.rmtree(entry.path, ignore_errors=True)
    except OSError: pass  # another process was faster, or another user owns it

def _is_old(found: os.stat_result) -> bool: return time.time() - found.st_mtime >= _ABANDONED_SECONDS

def _remove_file(path: str) -> None:
  """Remove this user's file if it is not locked."""
  opened = descriptor(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
  try:
    found, free = os.fstat(opened), _lock(opened, False)
    own = not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
    if own and (_is_old(found) if free is None else free): os.unlink(path)
  finally: os.close(opened)

def sync_folder(folder: str) -> None:
  """Flush the names in a folder to the disk. Systems without such a call do so by themselves, or not at all."""
  try: opened = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
  except OSError: return
  try: os.fsync(opened)
  except OSError: pass
  finally: os.close(opened)

class atomic_file:
  """`with atomic_file(path) as file`: a file to write, which replaces path when the block ends. Readers see the whole
  old file or the whole new one.

  It makes the folder. A link at path is followed: its target is replaced. A device or pipe (/dev/null, /dev/stdout) is
  written to, since no file can replace it.
  durable: the contents reach the disk before the name does, and the name before the block ends. So a crash of the
  machine leaves no empty file.
  private: the file is tinyhw's own. It replaces anything but a folder at path, and no other user can read it. Public
  files remove abandoned files of path's earlier writers. A writer of many private files calls `remove_abandoned`
  instead.
  Raises OSError.
  """
  def __init__(self, path: str, durable: bool = False, private: bool = False):
    self.path = path if private else os.path.realpath(path)
    self.durable, self.private = durable, private
    # a folder then refuses
    self.replaces = private or not os.path.exists(self.path) or os.path.isfile(self.path) or os.path.isdir(self.path)

  def __enter__(self) -> BinaryIO:
    folder, name = os.path.split(self.path)
    make_folder(folder)
    if not self.replaces:
      self.file: BinaryIO = _open_special(self.path)
      return self.file
    if not self.private: remove_abandoned(folder, name)
    self.temporary, opened = _create(self.path, 0o600 if self.private else 0o666)
    self.file = os.fdopen(opened, "wb")
    return self.file

  def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
               traceback: TracebackType | None) -> None:
    if not self.replaces: return self.file.close()
    try:
      with self.file:   # its lock is held until it has its name
        if kind is None: self._finish()
      if kind is None and os.name != "posix": os.replace(self.temporary, self.path)  # os.replace needs it closed
      if kind is None and self.durable: sync_folder(os.path.dirname(self.path))
    finally:   # also on Ctrl-C, no partial file may remain
      try: os.unlink(self.temporary)
      except OSError: pass  # it is renamed already

  def _finish(self) -> None:
    self.file.flush()
    if self.durable: os.fsync(self.file.fileno())
    if os.name == "posix": os.replace(self.temporary, self.path)

def _open_special(path: str) -> BinaryIO:
  """Open a device or pipe to write to. Raises OSError, instead of blocking, for a pipe without a reader."""
  try: opened = os.open(path, os.O_WRONLY | _NOT_WAITING)
  except OSError as error:
    if error.errno != errno.ENXIO: raise
    raise OSError(errno.ENXIO, "nobody reads from this pipe or socket; start its reader first", path) from None
  os.set_blocking(opened, True)
  return os.fdopen(opened, "wb")

def write_atomically(path: str, *parts: bytes, private: bool = False) -> None:
  """Replace the file by these bytes, as `atomic_file` does."""
  with atomic_file(path, private=private) as file: file.writelines(parts)

def packaged(path: str) -> bytes:
  """Return the bytes of a file of the package, which may be in a folder or an archive (zipapp).

  Raises OSError if it is missing.
  """
  loader: Any = __spec__.loader
  found: bytes = loader.get_data(path)
  return found
