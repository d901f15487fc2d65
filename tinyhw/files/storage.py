"""Persistent files: a disk cache of Python values, and downloads.

The disk cache is best effort: a read-only or missing folder costs speed and never raises. A value is one file, written
under another name and renamed, so any number of processes may share the folder. Entries are not trusted. An entry holds
its table, its whole key, and a digest of everything. An entry is a miss if it is damaged, has another key, is no
regular file, or is writable by others, since reading a pickle executes it. When the cache is too large, the least
recently used entries are removed (files/cache.py).

Downloads are kept in a folder to which only this user can write. It is in the cache, or in the temporary folder if the
cache is not writable. A folder there that another user made is not used.

urllib, hashlib, pickle, ... are imported inside the functions that need them: together they would double the time of
`import tinyhw`.
"""
from __future__ import annotations
import functools
import os
import stat
import sys
import time

from tinyhw.config import CACHE, CACHEDIR, DISABLE_HTTP_CACHE
from tinyhw.errors import FetchError
from tinyhw.files.regular import (atomic_file, belongs_to_us, descriptor, is_ours, make_folder, open_regular,
                                  remove_abandoned, write_atomically)
from tinyhw.files.progress import tqdm

TYPE_CHECKING = False  # typing is loaded only for type checkers
if TYPE_CHECKING:
  import pathlib  # hidden: see the head of this file
  from collections.abc import Callable, Mapping
  from typing import Any, BinaryIO, ParamSpec, TypeVar
  Key = dict[str, Any] | str | int | bytes
  P = ParamSpec("P")
  R = TypeVar("R")

# The head of every entry. The digest of the rest, the length of the key, the key and the pickled value follow.
_FORMAT = b"tinyhw2\n"
_DIGEST_BYTES, _LENGTH_BYTES = 16, 8
_HEAD_BYTES = len(_FORMAT) + _DIGEST_BYTES + _LENGTH_BYTES
_MOST_ENTRY_BYTES = 1 << 28
_FRESH_SECONDS = 3600  # an entry is marked as used at most this often
_ENTRY_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
_MOST_DOWNLOAD = 64 << 30  # bytes
_ABSENT = object()
_looked_at: set[str] = set()  # cache folders in which this process has removed abandoned files

def cache_dir() -> str:
  """Return CACHEDIR, else the folder tinyhw in the system's cache folder of the user. It need not exist, nor be
  writable.

  A relative XDG_CACHE_HOME counts as unset (XDG Base Directory Specification).
  """
  if CACHEDIR.value: return os.path.abspath(os.path.expanduser(CACHEDIR.value))
  home = os.path.expanduser("~")
  if sys.platform == "win32": base = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
  else:
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
      base = os.path.join(home, "Library", "Caches") if sys.platform == "darwin" else os.path.join(home, ".cache")
  return os.path.join(base, "tinyhw")

# **** the disk cache ****

def _digest(*parts: bytes | memoryview) -> bytes:
  import hashlib  # hidden: see the head of this file
  digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
  for part in parts: digest.update(part)
  return digest.digest()

def _full_key(table: str, key: Key) -> bytes:
  """Return the complete identity of an entry, as the entry stores it. The order of a dict's items does not matter."""
  text = sorted((str(k), repr(v)) for k, v in key.items()) if isinstance(key, dict) else key
  return repr((table, type(key).__name__, text)).encode("utf-8", "surrogatepass")

def _entry(table: str, full: bytes) -> str:
  """Return the file of a full key."""
  name = _digest(full).hex()
  safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in table)
  return os.path.join(values_folder(), safe, name[:2], name[2:])

def values_folder() -> str:
  """Return the folder of the disk cache's tables."""
  return os.path.join(cache_dir(), "values")  # cache.RESULTS

def _read_entry(path: str) -> bytes:
  """Return the bytes of an entry; none if it is not ours, or too large. Marks it as used. Raises OSError."""
  with os.fdopen(descriptor(path, _ENTRY_FLAGS), "rb") as file:
    found = os.fstat(file.fileno())
    if not is_ours(found) or found.st_size > _MOST_ENTRY_BYTES: return b""
    data = file.read(found.st_size)
    if time.time() - found.st_mtime > _FRESH_SECONDS: os.utime(file.fileno() if os.utime in os.supports_fd else path)
  return data

def _lookup(table: str, key: Key) -> Any:
  if not CACHE: return _ABSENT
  full = _full_key(table, key)
  try: data = _read_entry(_entry(table, full))
  except OSError: return _ABSENT
  head, rest = data[:len(_FORMAT) + _DIGEST_BYTES], memoryview(data)[len(_FORMAT) + _DIGEST_BYTES:]
  if head != _FORMAT + _digest(rest): return _ABSENT
  start = _LENGTH_BYTES + len(full)
  if rest[:start] != len(full).to_bytes(_LENGTH_BYTES, "little") + full: return _ABSENT
  import pickle  # hidden: see the head of this file
  try: return pickle.loads(rest[start:])
  # A class that has changed since may raise anything. The value is computed again.
  except Exception: return _ABSENT  # noqa: BLE001

def diskcache_get(table: str, key: Key) -> Any:
  """The value stored under key in table, or None."""
  found = _lookup(table, key)
  return None if found is _ABSENT else found

def diskcache_put(table: str, key: Key, val: R, prepickled: bool = False) -> R:
  """Store a value and return it. prepickled: val is the bytes of a pickle already."""
  if not CACHE: return val
  import pickle  # hidden: see the head of this file
  from tinyhw.files.cache import written  # hidden: only writers need it
  full = _full_key(table, key)
  payload: Any = val if prepickled else pickle.dumps(val, protocol=4)
  length = len(full).to_bytes(_LENGTH_BYTES, "little")
  if _HEAD_BYTES + len(full) + len(payload) > _MOST_ENTRY_BYTES: return val
  path = _entry(table, full)
  try:
    _clean(os.path.dirname(path))
    write_atomically(path, _FORMAT, _digest(length, full, payload), length, full, payload, private=True)
    written(cache_dir(), _HEAD_BYTES + len(full) + len(payload))
  except OSError: pass  # read-only, full or missing: the cache is best effort
  return val

def _clean(folder: str) -> None:
  """Remove the files of killed writers in a folder of the cache, once in a process. It lists the names there once."""
  if folder in _looked_at: return
  _looked_at.add(folder)
  remove_abandoned(folder)

def diskcache_clear() -> None:
  """Remove every stored value. Downloads stay."""
  import shutil  # hidden: see the head of this file
  shutil.rmtree(values_folder(), ignore_errors=True)

def _code_of(code: Any) -> Any:
  """Return the behaviour of a function as its own code defines it, with nested functions."""
  if not hasattr(code, "co_code"): return code
  return code.co_code, [_code_of(constant) for constant in code.co_consts], code.co_names, code.co_freevars

def diskcache(func: Callable[P, R]) -> Callable[P, R]:
  """Decorate a pure function of picklable arguments. Its results are kept on disk, by its name, its code and the
  arguments.

  Its code is bytecode, constants, names and defaults. Functions that it calls are not included.
  """
  code = repr((_code_of(getattr(func, "__code__", None)), getattr(func, "__defaults__", None),
               getattr(func, "__kwdefaults__", None)))
  table = f"call_{func.__module__}.{func.__qualname__}"

  @functools.wraps(func)
  def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
    import pickle  # hidden: see the head of this file
    key = pickle.dumps((code, args, sorted(kwargs.items())), protocol=4)
    found = _lookup(table, key)
    if found is _ABSENT: return diskcache_put(table, key, func(*args, **kwargs))
    result: R = found
    return result
  return wrapped

# **** downloads ****

def _sha256(path: str) -> str:
  import hashlib  # hidden: see the head of this file
  digest = hashlib.sha256()
  with open_regular(path) as file:
    while block := file.read(1 << 20): digest.update(block)
  return digest.hexdigest()

def _download(url: str, file: BinaryIO, headers: Mapping[str, str], sha256: str | None, limit: int | None) -> None:
  """Download url into a file. sha256: the expected digest, if given. limit: the maximum bytes.

  Raises FetchError.
  """
  import hashlib  # hidden: see the head of this file
  import http.client  # hidden: see the head of this file
  import urllib.request  # hidden: see the head of this file
  try:
    request = urllib.request.Request(url, headers={"User-Agent": "tinyhw", **headers})
    digest, most = None if sha256 is None else hashlib.sha256(), _MOST_DOWNLOAD if limit is None else limit
    with urllib.request.urlopen(request, timeout=30) as response:
      size = int(response.headers.get("Content-Length") or 0)
      with tqdm[bytes](desc=url.rsplit("/", 1)[-1], total=size or None, unit="B", unit_scale=True,
                       disable=not sys.stderr.isatty(), rate=10) as bar:
        while block := response.read(1 << 16):
          if max(size, bar.n + len(block)) > most:
            raise FetchError(f"{url} has more than {most} bytes; if it is what you want, allow more: fetch(..., "
                             f"limit=bytes)")
          file.write(block)
          if digest is not None: digest.update(block)
          bar.update(len(block))
  except FetchError: raise
  except http.client.IncompleteRead as error: raise FetchError(f"download of {url} ended early; try again") from error
  except (OSError, http.client.HTTPException, ValueError) as error:  # no such host or file, the connection broke, the
                                                                     # disk is full; not a URL
    raise FetchError(f"cannot download {url}: {getattr(error, 'reason', None) or error}; check the address and the "
                     f"network") from error
  if size and bar.n != size:
    raise FetchError(f"download of {url} ended early, after {bar.n} of {size} bytes; try again")
  if digest is not None and digest.hexdigest() != sha256:
    raise FetchError(f"{url} has the sha256 {digest.hexdigest()}, not {sha256}; the file there has changed or was "
                     f"damaged on the way")

def _private_folder(base: str, parts: list[str]) -> str | None:
  """Return the folder below base, made if it is missing. None if it, or a folder between, belongs to another user, or
  cannot be made.

  A folder of ours to which others may write becomes private: its files are checked one by one.
  """
  folder = base
  try:
    make_folder(base)
    for part in parts:
      folder = os.path.join(folder, part)
      make_folder(folder)
      found = os.lstat(folder)
      if not stat.S_ISDIR(found.st_mode) or not belongs_to_us(found): return None
      if not is_ours(found): os.chmod(folder, 0o700)
  except OSError: return None
  return folder

def _download_folder(subdir: str | None, file: str) -> str:
  """Return the folder for downloads: in the cache, else below the temporary folder.

  Raises FetchError if others could replace a file there.
  """
  import tempfile  # hidden: see the head of this file
  user = os.getuid() if hasattr(os, "getuid") else 0
  parts = ["downloads", *[part for part in (subdir or "").split("/") if part not in ("", ".")]]
  if ".." in parts:
    raise FetchError(f"subdir={subdir!r} leads out of the folder of downloads; name a folder inside of it")
  temporary = tempfile.gettempdir()
  for base, inside in ((cache_dir(), parts), (temporary, [f"tinyhw-{user}", *parts])):
    folder = _private_folder(base, inside)
    if folder is not None and (os.access(folder, os.W_OK) or os.path.exists(os.path.join(folder, file))): return folder
  fallback = os.path.join(temporary, f"tinyhw-{user}")
  raise FetchError(f"neither {cache_dir()} nor {fallback} is a folder that this user alone can write to; set CACHEDIR "
                   f"to one")

def _target(url: str, name: str | None, subdir: str | None, headers: Mapping[str, str], suffix: str) -> str:
  """Return the path of a download for which the user gave none."""
  import hashlib  # hidden: see the head of this file
  varied = hashlib.md5(repr(sorted(headers.items())).encode(), usedforsecurity=False).hexdigest()[:8] if headers else ""
  file = (name or hashlib.md5(url.encode(), usedforsecurity=False).hexdigest()) + varied + suffix
  return os.path.join(_download_folder(subdir, file), file)

def _is_kept(path: str, chosen: bool) -> bool:
  """Is the downloaded file there already?

  A file of another user does not count, unless the user chose the path.
  """
  try: found = os.stat(path, follow_symlinks=chosen)
  except OSError: return False
  return stat.S_ISREG(found.st_mode) and found.st_size > 0 and (chosen or belongs_to_us(found))

def fetch(url: str, name: pathlib.Path | str | None = None, subdir: str | None = None, gunzip: bool = False,
          allow_caching: bool | None = None,
          headers: Mapping[str, str] | None = None, sha256: str | None = None, extract: bool = False,
          limit: int | None = None) -> pathlib.Path:
  """Download a file once, and return its path.

  It takes http, https and file URLs. A path that starts with / or . is returned unchanged.
  name: its name in the download folder, or a path with a slash. sha256: of the download, before gunzip. Another digest
  raises FetchError.
  extract: return the path of a folder with the contents of the tar or zip archive. allow_caching: default yes unless
  DISABLE_HTTP_CACHE=1.
  limit: the maximum bytes of the download, and of its unpacked contents. None: 64 GB for the download; for the contents
  64 MB and 20 for each byte of it. Raises FetchError beyond.
  """
  import pathlib  # hidden: see the head of this file
  import shutil  # hidden: see the head of this file
  if url.startswith(("/", ".")): return pathlib.Path(url)
  if allow_caching is None: allow_caching = not DISABLE_HTTP_CACHE
  if isinstance(name, pathlib.Path) or name is not None and "/" in name: path, chosen = os.path.abspath(name), True
  else: path, chosen = _target(url, name, subdir, headers or {}, ".gunzip" if gunzip else ""), False
  fresh = not (allow_caching and _is_kept(path, chosen) and (gunzip or sha256 in (None, _sha256(path))))
  if fresh: _fetch(url, path, chosen, headers or {}, gunzip, sha256, limit)
  if not extract: return pathlib.Path(path)
  folder = path + ".extracted"
  if fresh: shutil.rmtree(folder, ignore_errors=True)
  if not os.path.isdir(folder):
    from tinyhw.files.unpack import unpack_archive  # hidden: only archives need it
    unpack_archive(path, folder, limit)
  return pathlib.Path(folder)

def _fetch(url: str, path: str, chosen: bool, headers: Mapping[str, str], gunzip: bool, sha256: str | None,
           limit: int | None) -> None:
  """Download to a path, whole or not at all. Raises FetchError."""
  import tempfile  # hidden: see the head of this file
  from tinyhw.files.unpack import unpack_file  # hidden: only packed files need it
  try:
    if not chosen: _clean(os.path.dirname(path))
    with atomic_file(path, durable=True, private=not chosen) as file:
      if not gunzip: return _download(url, file, headers, sha256, limit)
      with tempfile.TemporaryFile(dir=os.path.dirname(path)) as packed:
        _download(url, packed, headers, sha256, limit)
        size = packed.tell()
        packed.seek(0)
        unpack_file(packed, file, url, size, limit)
  except OSError as error:
    if isinstance(error, FetchError): raise
    raise FetchError(f"cannot write {path}: {error.strerror or error}; check the folder's permissions and the room on "
                     f"the disk") from error
