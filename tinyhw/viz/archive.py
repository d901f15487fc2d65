"""The file of a recording: a ZIP archive of JSON members, so that a viewer reads only what it shows.

`index.json` names schedules and kernels; `schedule/<n>.json` and `kernel/<n>.json` have what was recorded of each; `timeline.json` has the events.
The archive is made in memory, compressed, up to MOST_BYTES; what is recorded later is in the index only.
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
from tinyhw.storage import cache_dir, write_atomically

VERSION = 1
MOST_BYTES = 256 << 20         # of all members, compressed
MOST_MEMBER_BYTES = 512 << 20  # of one member, to be read
SUFFIX = ".viz.zip"
MEMBER = re.compile(r"(index|timeline|(schedule|kernel)/[0-9]{1,9})\.json")

class Memory(io.BytesIO):
  """Bytes that stay readable until they are garbage: a ZipFile that is collected together with its file wants to end the archive."""
  def close(self) -> None: pass

class Writer:
  """An archive that is being made. Threads may add members."""
  def __init__(self) -> None:
    self.lock = threading.Lock()
    self.bytes = Memory()
    self.zip = zipfile.ZipFile(self.bytes, "w", zipfile.ZIP_DEFLATED, compresslevel=3)

  def add(self, name: str, value: Any, always: bool = False) -> bool:
    """Add a member; False if the archive is full, and this is not one that has to be there always."""
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
    try: self.zip = zipfile.ZipFile(path)
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
      raise MissingFileError(f"there is no recording {path}: {error.strerror}; name one that VIZ=1 wrote") from None
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
      raise FileFormatError(f"{path} is no recording of VIZ=1: {error}; record again") from None
    self.names = {name for name in self.zip.namelist() if MEMBER.fullmatch(name)}
    self.lock = threading.Lock()
    try: index = json.loads(self.read("index") or b"null")
    except ValueError: index = None
    if not isinstance(index, dict) or index.get("version") != VERSION:
      raise FileFormatError(f"{path} is no recording of VIZ=1, or one of another version of tinyhw; record again")

  def read(self, name: str) -> bytes | None:
    """A member, as JSON text; None if there is none of that name. Raises FileFormatError for one that is damaged or too large."""
    if f"{name}.json" not in self.names: return None
    try:
      with self.lock, self.zip.open(f"{name}.json") as member: data = member.read(MOST_MEMBER_BYTES + 1)
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError) as error:
      raise FileFormatError(f"{self.path}: {name} is damaged: {error}; record again") from None
    if len(data) > MOST_MEMBER_BYTES: raise FileFormatError(f"{self.path}: {name} has more than {MOST_MEMBER_BYTES} bytes")
    return data

  def close(self) -> None: self.zip.close()

def folder() -> str: return os.path.join(cache_dir(), "viz")

def new_path(program: str) -> str:
  """Where a recording of a program goes, if the user does not say it."""
  return os.path.join(folder(), f"{time.strftime('%Y%m%d-%H%M%S')}-{re.sub(r'[^A-Za-z0-9_.-]', '_', program)}-{os.getpid()}{SUFFIX}")

def latest() -> str:
  """The newest recording in CACHEDIR. Raises MissingFileError."""
  try: found = [entry for entry in os.scandir(folder()) if entry.name.endswith(SUFFIX)]
  except OSError: found = []
  if not found: raise MissingFileError(f"there is no recording in {folder()}; run a program with VIZ=1, or name a file")
  return max(found, key=lambda entry: entry.stat().st_mtime_ns).path
