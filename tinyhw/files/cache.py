"""The cache folder: its size, the order of eviction, and the command `python3 -m tinyhw cache`.

Results (kernels, winners of searches, results of @diskcache) take at most the limit, and so do recordings. The least
recently used files are removed first. Downloads are kept until a user clears them, since a user asked for each.
Processes need no lock: each removes the oldest files that it sees. Another process may have removed a file before, and
a process that reads a removed file reads it to its end.

Listing all files is slow, so writers of results keep a count. Each adds to the ledger, a file whose length is the
number of blocks written since the last listing. When those are an eighth of the limit, or when there is no ledger, the
writer lists the files, and removes all but seven eighths of the limit.
"""
from __future__ import annotations
import os

from tinyhw.config import CACHE_LIMIT, SIZE_UNITS, parse_size
from tinyhw.errors import ArgumentError, DriverError
from tinyhw.files.regular import NotRegular, descriptor, final_name, is_ours, write_atomically

TYPE_CHECKING = False  # typing is loaded only for type checkers
if TYPE_CHECKING:
  from collections.abc import Iterable, Iterator, Sequence
  from typing import Any

DEFAULT_LIMIT = 1 << 30
BLOCK_BYTES = 4096      # a file takes whole blocks of the disk
SHARE = 8               # the part of the limit that is written between listings
RESULTS = "values"      # the folder of the disk cache's tables
LEDGER = "written"      # a file in that folder
LIMIT_FILE = "limit"
# The kinds that `cache` shows and clears: name -> folders below the cache folder, and subfolders that belong to another
# kind.
KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
  "kernels": ((f"{RESULTS}/code",), ()),
  "searches": ((f"{RESULTS}/beam",), ()),
  "calls": ((RESULTS,), ("code", "beam", LEDGER)),
  "recordings": (("viz", "profile"), ()),
  "downloads": (("downloads",), ()),
}

class CacheFile:
  """A file of the cache. used: time of its last use, in nanoseconds. size: in whole blocks."""
  __slots__ = ("path", "used", "size")
  def __init__(self, path: str, found: os.stat_result):
    self.path, self.used, self.size = path, found.st_mtime_ns, blocks(found.st_size) * BLOCK_BYTES

def blocks(size: int) -> int: return -(-size // BLOCK_BYTES)

def files_in(folder: str, without: Sequence[str] = ()) -> Iterator[CacheFile]:
  """Yield the files below a folder, without following links, and without files that are being written. without: names
  in it to skip."""
  try:
    with os.scandir(folder) as scanned: entries = [entry for entry in scanned if entry.name not in without]
  except OSError: return
  for entry in entries:
    try:
      if entry.is_dir(follow_symlinks=False): yield from files_in(entry.path)
      elif final_name(entry.name) is None: yield CacheFile(entry.path, entry.stat(follow_symlinks=False))
    except OSError: continue  # another process removed it

# **** the limit ****

def limit(folder: str) -> int | None:
  """Return the maximum bytes of results, and of recordings, in a cache folder: CACHE_LIMIT, else the stored limit.

  None: there is no limit.
  """
  text = CACHE_LIMIT.value or _stored_limit(folder)
  return parse_size(text) if text else DEFAULT_LIMIT

def _stored_limit(folder: str) -> str:
  """Return the limit that `cache limit` has stored; nothing if the file is not trustworthy."""
  try:
    with os.fdopen(descriptor(os.path.join(folder, LIMIT_FILE), os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)),
                   "rb") as file:
      text = file.read(64).decode(errors="replace").strip() if is_ours(os.fstat(file.fileno())) else ""
    parse_size(text or "none")
  except (OSError, ArgumentError): return ""
  return text

# **** making room ****

def written(folder: str, size: int) -> None:
  """Count a file of results that was written in a cache folder, and make room if it is time. Raises OSError."""
  most = limit(folder)
  if most is None: return
  flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
  path = os.path.join(folder, RESULTS, LEDGER)
  try: ledger = descriptor(path, flags, 0o600)
  except NotRegular: return os.unlink(path)   # the next writer makes one
  try:
    before = os.fstat(ledger).st_size
    os.write(ledger, b"." * blocks(size))
    if before and (before + blocks(size)) * BLOCK_BYTES <= most // SHARE: return
    make_room(os.path.join(folder, RESULTS), most - most // SHARE, (LEDGER,))
    os.ftruncate(ledger, 1)  # not empty: the files have been listed
  finally: os.close(ledger)

def make_room(folder: str, most: int, without: Sequence[str] = (), keep: int = 0) -> int:
  """Remove the least recently used files below a folder until the rest takes at most `most` bytes. Return how many it
  removed.

  keep: the number of newest files that stay in any case.
  """
  found = sorted(files_in(folder, without), key=lambda file: (file.used, file.path))
  total, removed = sum(file.size for file in found), 0
  for file in found[:len(found) - keep]:
    if total <= most: break
    try: os.unlink(file.path)
    except FileNotFoundError: pass   # another process was faster
    except OSError: continue
    total, removed = total - file.size, removed + 1
  return removed

def recorded(folder: str, kind: str) -> None:
  """Remove the oldest recordings if there are too many, after one was written to a cache folder."""
  most = limit(folder)
  if most is not None: make_room(os.path.join(folder, kind), most, keep=1)

# **** the command ****

def examine(folder: str) -> dict[str, Any]:
  """Return the contents of the cache folder, as data for JSON."""
  kinds = {}
  for kind, (places, without) in KINDS.items():
    found = [file for place in places for file in files_in(os.path.join(folder, *place.split("/")), without)]
    kinds[kind] = {"entries": len(found), "bytes": sum(file.size for file in found)}
  return {"folder": folder, "limit": limit(folder), "kinds": kinds}

def show_size(size: int) -> str:
  """Format bytes as `parse_size` reads them, rounded: 3.2M."""
  for unit in reversed(SIZE_UNITS):
    if unit and size >= SIZE_UNITS[unit]: return f"{size / SIZE_UNITS[unit]:.1f}{unit}"
  return str(size)

def show(facts: dict[str, Any]) -> str:
  """Format the facts of `examine` as text."""
  most = "none" if facts["limit"] is None else show_size(facts["limit"])
  lines = [f"folder      {facts['folder']}", f"limit       {most}, of kernels, searches and calls together, and of "
           f"recordings"]
  lines += [f"{kind:<10}  {found['entries']:>7} entries  {show_size(found['bytes']):>8}"
            for kind, found in facts["kinds"].items()]
  return "\n".join(lines)

def clear(folder: str, kinds: Iterable[str]) -> int:
  """Remove all files of some kinds, and return how many. Raises ArgumentError; DriverError if some cannot be
  removed."""
  wanted = list(kinds)
  unknown = [kind for kind in wanted if kind not in KINDS]
  if unknown: raise ArgumentError(f"the cache has no {unknown[0]!r}; it has {', '.join(KINDS)}")
  removed, refused = 0, list[str]()
  for kind in wanted:
    places, without = KINDS[kind]
    for file in [file for place in places for file in files_in(os.path.join(folder, *place.split("/")), without)]:
      try: os.unlink(file.path)
      except FileNotFoundError: continue
      except OSError as error: refused.append(f"{file.path}: {error.strerror}")
      else: removed += 1
  if refused: raise DriverError(f"{len(refused)} files could not be removed ({refused[0]}); check their permissions")
  return removed

def set_limit(folder: str, text: str) -> None:
  """Store a limit in the cache folder for all processes without CACHE_LIMIT, and make room at once.

  Raises ArgumentError, DriverError.
  """
  most = parse_size(text)
  try: write_atomically(os.path.join(folder, LIMIT_FILE), text.encode(), private=True)
  except OSError as error:
    raise DriverError(
      f"cannot write {os.path.join(folder, LIMIT_FILE)}: {error.strerror}; set CACHE_LIMIT instead") from None
  if most is None: return
  make_room(os.path.join(folder, RESULTS), most - most // SHARE, (LEDGER,))
  for kind in KINDS["recordings"][0]: make_room(os.path.join(folder, kind), most, keep=1)

def run(arguments: Sequence[str], folder: str) -> str | dict[str, Any] | None:
  """Return the output of the command for its words: nothing, `clear [KIND ...]`, `limit [SIZE]`; None for others.

  With `--json` the output is facts.
  """
  words = [word for word in arguments if word != "--json"]
  if words[:1] == ["clear"]:
    kinds = words[1:] or [kind for kind in KINDS if kind != "downloads"]
    return f"removed {clear(folder, kinds)} files: {', '.join(kinds)}" + ("" if words[1:]
                                                                          else "; `cache clear downloads` removes "
                                                                          "downloads")
  if words[:1] == ["limit"] and len(words) == 2: set_limit(folder, words[1])
  elif words not in ([], ["limit"]): return None
  facts = examine(folder)
  return facts if "--json" in arguments else show(facts)
