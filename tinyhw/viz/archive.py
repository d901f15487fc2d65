"""The file of a recording: a ZIP archive of JSON members, so that a viewer reads only the members that it shows.

`index.json` names schedules and kernels. `schedule/<n>.json` and `kernel/<n>.json` have their records. `timeline.json`
has the events. The archive is built in memory, compressed, up to MOST_BYTES. Later records are in the index only.
Unpacked members draw from a budget, as with files of other formats.
"""
from __future__ import annotations
import io
import json
import os
import re
import threading
import time
import zipfile
import zlib
from typing import Any

from tinyhw.errors import FileFormatError, MissingFileError
from tinyhw.files.budget import ENTRY, Budget, parse_json
from tinyhw.files.regular import open_regular, write_atomically
from tinyhw.files.storage import cache_dir

VERSION = 1
MOST_BYTES = 256 << 20         # of all members, compressed
SUFFIX = ".viz.zip"
MEMBER = re.compile(r"(index|timeline|(schedule|kernel)/[0-9]{1,9})\.json")

class MemoryFile(io.BytesIO):
  """A file in memory that stays readable until it is garbage. A ZipFile that is collected together with its file
  finishes the archive in it."""
  def close(self) -> None: pass

class ArchiveWriter:
  """An archive under construction. Threads may add members."""
  def __init__(self) -> None:
    self.lock = threading.Lock()
    self.bytes = MemoryFile()
    self.zip = zipfile.ZipFile(self.bytes, "w", zipfile.ZIP_DEFLATED, compresslevel=3)

  def add(self, name: str, value: Any, always: bool = False) -> bool:
    """Add a member. Return False if the archive is full, unless the member must always be there."""
    data = json.dumps(value, separators=(",", ":"), default=str).encode()  # a marker's color may be anything
    with self.lock:
      if not always and self.bytes.tell() + len(data) // 4 > MOST_BYTES: return False
      self.zip.writestr(f"{name}.json", data)
    return True

  def close(self, path: str) -> None:
    """Write the archive to a file. Raises OSError."""
    with self.lock:
      self.zip.close()
      write_atomically(os.path.abspath(path), self.bytes.getvalue())

class Archive:
  """A recording to read. Raises MissingFileError, FileFormatError."""
  def __init__(self, path: str):
    self.path = path
    try: self.file = open_regular(path)
    except (OSError, ValueError) as error:
      raise MissingFileError(f"there is no recording {path}: {getattr(error, 'strerror', error)}; name one that VIZ=1 "
                             f"wrote") from None
    try: self.zip = zipfile.ZipFile(self.file)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
      raise FileFormatError(f"{path} is no recording of VIZ=1: {error}; record again") from None
    self._budget().take(2 * ENTRY * len(self.zip.namelist()))
    self.names = {name for name in self.zip.namelist() if MEMBER.fullmatch(name)}
    self.lock = threading.Lock()
    try: index = parse_json(self.read("index") or b"null", self._budget())
    except FileFormatError: raise
    except ValueError: index = None
    if not isinstance(index, dict) or index.get("version") != VERSION:
      raise FileFormatError(f"{path} is no recording of VIZ=1, or one of another version of tinyhw; record again")

  def _budget(self) -> Budget: return Budget(self.path, os.path.getsize(self.path))

  def read(self, name: str) -> bytes | None:
    """Return a member, as JSON text; None if no member has that name.

    Raises FileFormatError for a member that is damaged or too large.
    """
    if f"{name}.json" not in self.names: return None
    try:
      member = self.zip.getinfo(f"{name}.json")
      if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise zipfile.BadZipFile("it is packed in a way that is not known")
      self._budget().take(2 * member.file_size)   # no more than that is read
      with self.lock, self.zip.open(member) as file: data = file.read()
    except FileFormatError: raise
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError) as error:
      raise FileFormatError(f"{self.path}: {name} is damaged: {error}; record again") from None
    return data

  def close(self) -> None:
    self.zip.close()
    self.file.close()

def folder() -> str: return os.path.join(cache_dir(), "viz")

def new_path(program: str) -> str:
  """Return the default path of a program's recording."""
  name = re.sub(r"[^A-Za-z0-9_.-]", "_", program)
  return os.path.join(folder(), f"{time.strftime('%Y%m%d-%H%M%S')}-{name}-{os.getpid()}{SUFFIX}")

def latest() -> str:
  """Return the newest recording in CACHEDIR. Raises MissingFileError."""
  try: found = [entry for entry in os.scandir(folder()) if entry.name.endswith(SUFFIX) and entry.is_file()]
  except OSError: found = []
  if not found: raise MissingFileError(f"there is no recording in {folder()}; run a program with VIZ=1, or name a file")
  return max(found, key=lambda entry: entry.stat().st_mtime_ns).path
