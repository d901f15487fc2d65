"""Files that tinyhw keeps for later: a disk cache of Python values, and downloads.

The disk cache is best effort: a read-only or missing folder costs speed and never raises; a damaged entry is a miss. A value is one file,
written under another name and renamed, so any number of processes may share the folder. Values are pickled, and to read a pickle is to run it: files
that another user wrote are misses too. A writer that is killed leaves its file under the other name; who next writes to the same folder of the cache
removes it, once it is a day old.

urllib, hashlib, pickle, ... are imported inside the functions that need them: together they would double the time of `import tinyhw`.
"""
from __future__ import annotations
import functools
import itertools
import os
import sys
import time

from tinyhw.config import CACHE, CACHEDIR, DISABLE_HTTP_CACHE
from tinyhw.errors import FetchError
from tinyhw.progress import tqdm

TYPE_CHECKING = False  # typing is loaded only for type checkers
if TYPE_CHECKING:
  import pathlib
  from collections.abc import Callable, Mapping
  from types import TracebackType
  from typing import Any, BinaryIO, ParamSpec, TypeVar
  P = ParamSpec("P")
  R = TypeVar("R")

_FORMAT = b"tinyhw1\n"  # head of every entry, before the digest of the pickled value and the value
_DIGEST_BYTES = 16
_ABANDONED_SECONDS = 86400  # nobody writes to a file for a day without changing it
_ABSENT = object()
_numbers = itertools.count()
_looked_at: set[str] = set()  # folders of the cache in which this process has looked for what others left

def cache_dir() -> str:
  """CACHEDIR, else the folder tinyhw in what the system calls the user's cache. It need not exist, nor be writable.

  A relative XDG_CACHE_HOME counts as none (XDG Base Directory Specification).
  """
  if CACHEDIR.value: return os.path.abspath(os.path.expanduser(CACHEDIR.value))
  home = os.path.expanduser("~")
  if sys.platform == "win32": base = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
  else:
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base): base = os.path.join(home, "Library", "Caches") if sys.platform == "darwin" else os.path.join(home, ".cache")
  return os.path.join(base, "tinyhw")

# **** files that are whole ****

def _temporary(path: str) -> str:
  """A name beside path that no other writer has."""
  return f"{path}.{os.getpid()}.{next(_numbers)}.tmp"

def _is_temporary(name: str) -> bool:
  parts = name.rsplit(".", 3)
  return len(parts) == 4 and parts[1].isdecimal() and parts[2].isdecimal() and parts[3] == "tmp"

def _remove_abandoned(folder: str) -> None:
  """Remove what writers that were killed left in a folder, long ago. Only in the cache, and once in a process: one look at the names there."""
  if folder in _looked_at or not os.path.join(folder, "").startswith(os.path.join(os.path.realpath(cache_dir()), "")): return
  _looked_at.add(folder)
  try:
    with os.scandir(folder) as entries: found = [entry for entry in entries if _is_temporary(entry.name)]
    for entry in found:
      if time.time() - entry.stat(follow_symlinks=False).st_mtime < _ABANDONED_SECONDS: continue
      if entry.is_dir(follow_symlinks=False):
        import shutil
        shutil.rmtree(entry.path, ignore_errors=True)
      else: os.unlink(entry.path)
  except OSError: pass  # another process was faster, or the folder is somebody else's

class atomic_file:
  """`with atomic_file(path) as file`: a file to write that takes path's place when the block ends: readers see the old file or the new one, whole.

  Makes the folder. durable: the bytes are on the disk before the name is, so that a machine that stops leaves no empty file. What path links to is
  replaced, not the link; a device or pipe (/dev/null, /dev/stdout) is written to, as nothing can take its place. Raises OSError.
  """
  def __init__(self, path: str, durable: bool = False):
    self.path, self.durable = os.path.realpath(path), durable
    self.replaces = not os.path.exists(self.path) or os.path.isfile(self.path) or os.path.isdir(self.path)  # a folder then refuses
    self.temporary = _temporary(self.path)

  def __enter__(self) -> BinaryIO:
    folder = os.path.dirname(self.path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    _remove_abandoned(folder)
    self.file: BinaryIO = open(self.temporary, "xb") if self.replaces else open(self.path, "wb")
    return self.file

  def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
    try:
      with self.file:
        if kind is None and self.durable and self.replaces:
          self.file.flush()
          os.fsync(self.file.fileno())
      if kind is None and self.replaces: os.replace(self.temporary, self.path)
    finally:   # Ctrl-C too must leave no partial file
      try: os.unlink(self.temporary)
      except OSError: pass  # it is renamed already

def write_atomically(path: str, *parts: bytes) -> None:
  """Replace the file by these bytes, as `atomic_file` does."""
  with atomic_file(path) as file: file.writelines(parts)

# **** the disk cache ****

def _digest(data: bytes) -> bytes:
  import hashlib
  return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()

def _entry(table: str, key: dict[str, Any] | str | int | bytes) -> str:
  """The file of a key. A dict is a key whatever the order of its items."""
  text = sorted((str(k), repr(v)) for k, v in key.items()) if isinstance(key, dict) else key
  name = _digest(repr((type(key).__name__, text)).encode()).hex()
  safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in table)
  return os.path.join(cache_dir(), "values", safe, name[:2], name[2:])

def _is_ours(file: int) -> bool:
  """Did this user, or the administrator, write an open file? Windows keeps the cache where others cannot write."""
  return not hasattr(os, "geteuid") or os.fstat(file).st_uid in (os.geteuid(), 0)

def _lookup(table: str, key: dict[str, Any] | str | int | bytes) -> Any:
  if not CACHE: return _ABSENT
  try:
    with open(_entry(table, key), "rb") as file:
      if not _is_ours(file.fileno()): return _ABSENT
      data = file.read()
  except OSError: return _ABSENT
  start = len(_FORMAT) + _DIGEST_BYTES
  payload = data[start:]
  if data[:start] != _FORMAT + _digest(payload): return _ABSENT
  import pickle
  try: return pickle.loads(payload)
  except Exception: return _ABSENT  # noqa: BLE001  # a class that changed since may raise anything; the value is computed again

def diskcache_get(table: str, key: dict[str, Any] | str | int | bytes) -> Any:
  """The value stored under key in table, or None."""
  found = _lookup(table, key)
  return None if found is _ABSENT else found

def diskcache_put(table: str, key: dict[str, Any] | str | int | bytes, val: R, prepickled: bool = False) -> R:
  """Store a value and return it. prepickled: val is the bytes of a pickle already."""
  if not CACHE: return val
  import pickle
  payload: Any = val if prepickled else pickle.dumps(val, protocol=4)
  try: write_atomically(_entry(table, key), _FORMAT, _digest(payload), payload)
  except OSError: pass  # read-only, full or missing: the cache is best effort
  return val

def diskcache_clear() -> None:
  """Remove every stored value. Downloads stay."""
  import shutil
  shutil.rmtree(os.path.join(cache_dir(), "values"), ignore_errors=True)

def diskcache(func: Callable[P, R]) -> Callable[P, R]:
  """Decorate a pure function of picklable arguments: its results are kept on disk, by its name, its bytecode and the arguments."""
  bytecode: bytes = getattr(getattr(func, "__code__", None), "co_code", b"")
  table = f"call_{func.__module__}.{func.__qualname__}"

  @functools.wraps(func)
  def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
    import pickle
    key = pickle.dumps((bytecode, args, sorted(kwargs.items())), protocol=4)
    found = _lookup(table, key)
    if found is _ABSENT: return diskcache_put(table, key, func(*args, **kwargs))
    result: R = found
    return result
  return wrapped

# **** downloads ****

def _sha256(path: str) -> str:
  import hashlib
  digest = hashlib.sha256()
  with open(path, "rb") as file:
    while block := file.read(1 << 20): digest.update(block)
  return digest.hexdigest()

def _download(url: str, path: str, headers: Mapping[str, str]) -> None:
  """The bytes at url into a new file at path. Raises FetchError."""
  import http.client
  import urllib.request
  try:
    request = urllib.request.Request(url, headers={"User-Agent": "tinyhw", **headers})
    with urllib.request.urlopen(request, timeout=30) as response, open(path, "xb") as file:
      size = int(response.headers.get("Content-Length") or 0)
      with tqdm[bytes](desc=url.rsplit("/", 1)[-1], total=size or None, unit="B", unit_scale=True, disable=not sys.stderr.isatty(), rate=10) as bar:
        while block := response.read(1 << 16):
          file.write(block)
          bar.update(len(block))
  except http.client.IncompleteRead as error: raise FetchError(f"download of {url} ended early; try again") from error
  except (OSError, http.client.HTTPException, ValueError) as error:  # no such host or file, the connection broke, the disk is full; not a URL
    raise FetchError(f"cannot download {url}: {getattr(error, 'reason', None) or error}; check the address and the network") from error
  if size and bar.n != size: raise FetchError(f"download of {url} ended early, after {bar.n} of {size} bytes; try again")

def _unpack(archive: str, folder: str) -> None:
  """Extract a tar or zip archive into a new folder. Members that would land elsewhere raise FetchError."""
  import shutil
  import tarfile
  import zipfile
  temporary = _temporary(folder)
  try:
    if zipfile.is_zipfile(archive):
      with zipfile.ZipFile(archive) as z: z.extractall(temporary)  # drops .. and absolute paths itself
    else:
      with tarfile.open(archive) as tar:
        for member in tar.getmembers():
          inside = os.path.realpath(os.path.join(temporary, member.name)).startswith(os.path.realpath(temporary) + os.sep)
          if member.isdir() or (member.isfile() and inside): continue
          raise FetchError(f"{archive}: member {member.name!r} is a link or lies outside of the archive; unpack it by hand")
        if hasattr(tarfile, "data_filter"): tar.extractall(temporary, filter="data")  # from 3.10.12 and 3.11.4 on
        else: tar.extractall(temporary)
    os.rename(temporary, folder)
  except (tarfile.TarError, zipfile.BadZipFile) as error: raise FetchError(f"{archive} is not a tar or zip archive: {error}") from error
  except OSError:
    if not os.path.isdir(folder): raise  # otherwise another process was faster
  finally: shutil.rmtree(temporary, ignore_errors=True)

def _target(url: str, name: pathlib.Path | str | None, subdir: str | None, headers: Mapping[str, str], suffix: str) -> str:
  """Where fetch keeps the file: at name if that is a path, else in the download folder, which falls back to the temporary folder."""
  import hashlib
  import tempfile
  if name is not None and (not isinstance(name, str) or "/" in name): return os.path.abspath(name)
  varied = hashlib.md5(repr(sorted(headers.items())).encode(), usedforsecurity=False).hexdigest()[:8] if headers else ""
  file = (name or hashlib.md5(url.encode(), usedforsecurity=False).hexdigest()) + varied + suffix
  for base in (cache_dir(), os.path.join(tempfile.gettempdir(), f"tinyhw-{os.getuid() if hasattr(os, 'getuid') else 0}")):
    folder = os.path.join(base, "downloads", subdir or "")
    try: os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError: continue
    if os.access(folder, os.W_OK) or os.path.exists(os.path.join(folder, file)): break
  return os.path.join(folder, file)

def fetch(url: str, name: pathlib.Path | str | None = None, subdir: str | None = None, gunzip: bool = False, allow_caching: bool | None = None,
          headers: Mapping[str, str] | None = None, sha256: str | None = None, extract: bool = False) -> pathlib.Path:
  """Download a file once, and give its path. http, https and file URLs; a path that starts with / or . is returned as it is.

  name: its name in the download folder, or a path with a slash. sha256: of what is downloaded (before gunzip); another one raises FetchError.
  extract: the path of a folder with the contents of the tar or zip archive. allow_caching: default yes unless DISABLE_HTTP_CACHE=1.
  """
  import gzip
  import pathlib
  import shutil
  import zlib
  if url.startswith(("/", ".")): return pathlib.Path(url)
  if allow_caching is None: allow_caching = not DISABLE_HTTP_CACHE
  path = _target(url, name, subdir, headers or {}, ".gunzip" if gunzip else "")
  fresh = not (allow_caching and os.path.isfile(path) and os.path.getsize(path) > 0 and (gunzip or sha256 in (None, _sha256(path))))
  if fresh:
    temporary, unpacked = _temporary(path), _temporary(path)
    try:
      os.makedirs(os.path.dirname(path), exist_ok=True)
      _remove_abandoned(os.path.realpath(os.path.dirname(path)))
      _download(url, temporary, headers or {})
      if sha256 is not None and (found := _sha256(temporary)) != sha256:
        raise FetchError(f"{url} has the sha256 {found}, not {sha256}; the file there has changed or was damaged on the way")
      if gunzip:
        with gzip.open(temporary) as packed, open(unpacked, "xb") as file: shutil.copyfileobj(packed, file)
      os.replace(unpacked if gunzip else temporary, path)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error: raise FetchError(f"{url} is not a gzip file: {error}") from error
    finally:
      for rest in (temporary, unpacked):
        if os.path.exists(rest): os.unlink(rest)
  if not extract: return pathlib.Path(path)
  folder = path + ".extracted"
  if fresh: shutil.rmtree(folder, ignore_errors=True)
  if not os.path.isdir(folder): _unpack(path, folder)
  return pathlib.Path(folder)
