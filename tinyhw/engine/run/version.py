"""The version of a compiler: a digest of the contents of its files. Code on disk is used only by the compiler that made
it.

Sizes and times of files do not identify their contents, since tools that copy or unpack files set both. Reading 200
files of 1.8 MB takes 4 ms. It is done once in a process, and only if the disk cache is used. A process whose loaded
files have changed since has no version, as the files do not describe it. In an archive (zipapp) the digest is the
archive's. Without a version nothing is kept on disk.
"""
from __future__ import annotations
import importlib
import os
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

# Folders of this package whose files affect the code: all but those that run it or make graphs. The second list counts
# with all subfolders.
FOLDERS = ("", "files", "isa")
WHOLE = ("uop", "codegen", "machine", "engine")
SOURCES = (".py", ".pyc")  # .pyc: a package may be installed without its sources
_MOST_ARCHIVE_BYTES = 1 << 28

_started_ns = time.time_ns()
_versions: dict[str, str] = {}

def compiler_version(backend: ModuleType) -> str:
  """Return the version of the compiler with a backend, the module of an ISA or a renderer; empty if it has none."""
  name = backend.__name__
  if name not in _versions: _versions.setdefault(name, _digest(os.path.dirname(backend.__file__ or "")))
  return _versions[name]

def folders(own: str) -> Iterator[str]:
  """Yield the folders of a compiler: the common ones, those of constants, and the backend's own with all subfolders."""
  root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
  for folder in FOLDERS: yield os.path.join(root, folder)
  constants = os.path.dirname(importlib.import_module("tinyhw.autogen").__file__ or "")
  for whole in (*[os.path.join(root, name) for name in WHOLE], constants, own):
    for folder, below, _ in os.walk(whole):
      below[:] = sorted(name for name in below if name != "__pycache__")
      yield folder

def _digest(own: str) -> str:
  """Return a digest of all files in the folders, by name and content."""
  import hashlib  # hidden: takes 3 ms, and only caches need it
  digest = hashlib.blake2b(digest_size=16)
  try:
    archive = archive_around(own)
    if archive is None:
      for folder in folders(own):
        for name in sorted(os.listdir(folder)):
          if name.endswith(SOURCES): _add(digest, os.path.join(folder, name), name)
    else: _add(digest, archive, own[len(archive):])
  except OSError: return ""
  return digest.hexdigest()

def _add(digest: Any, path: str, name: str) -> None:
  """Add a file to the digest: the lengths of its name and contents, then both. Raises OSError."""
  file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))  # open() takes four times as long
  try:
    found = os.fstat(file)
    if found.st_size > _MOST_ARCHIVE_BYTES: raise OSError(f"{path} is too large")
    if _started_ns < found.st_mtime_ns <= time.time_ns(): raise OSError(f"{path} was changed since it was loaded")
    data = os.read(file, found.st_size)
  finally: os.close(file)
  digest.update(f"{name} {len(data)} ".encode())
  digest.update(data)
  if len(data) != found.st_size: raise OSError(f"{path} changes")

def archive_around(folder: str) -> str | None:
  """Return the archive that contains a folder; None for a folder of the file system.

  Raises OSError if it is neither.
  """
  if os.path.isdir(folder): return None
  while not os.path.isfile(folder):
    above = os.path.dirname(folder)
    if above == folder: raise OSError("the compiler's files are in no folder and no archive")
    folder = above
  return folder
