"""The folder of the cache: how much is in it, what goes first when it is full, and the command
`python3 -m tinyhw cache`.

Results (kernels, winners of searches, results of @diskcache) take at most the limit, and so do recordings; what was not
used for longest goes first. Downloads are kept until somebody clears them, as a user asked for each. Processes need no
lock: each removes the oldest files that it sees, which another one may have removed before; whoever reads a file while
it goes reads it to its end.

Looking at all files takes long, so writers of results count: each adds to the ledger, a file that is as long as there
were blocks written since somebody looked. When those are an eighth of the limit, or when there is no ledger, the writer
looks, and leaves seven eighths of the limit.
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
SHARE = 8               # the part of the limit that is written before somebody looks
RESULTS = "values"      # the folder of the disk cache's tables
LEDGER = "written"      # in it
LIMIT_FILE = "limit"
# What `cache` shows and clears: name -> folders below that of the cache, and those in them that count elsewhere.
KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
  "kernels": ((f"{RESULTS}/code",), ()),
  "searches": ((f"{RESULTS}/beam",), ()),
  "calls": ((RESULTS,), ("code", "beam", LEDGER)),
  "recordings": (("viz", "profile"), ()),
  "downloads": (("downloads",), ()),
}

class File:
  """A file of the cache. used: when it was, in nanoseconds. size: in whole blocks."""
  __slots__ = ("path", "used", "size")
  def __init__(self, path: str, found: os.stat_result):
    self.path, self.used, self.size = path, found.st_mtime_ns, blocks(found.st_size) * BLOCK_BYTES

def blocks(size: int) -> int: return -(-size // BLOCK_BYTES)

def files_in(folder: str, without: Sequence[str] = ()) -> Iterator[File]:
  """The files below a folder, links not followed; what is being written is left out. without: names in it that are
  left out."""
  try:
    with os.scandir(folder) as scanned: entries = [entry for entry in scanned if entry.name not in without]
  except OSError: return
  for entry in entries:
    try:
      if entry.is_dir(follow_symlinks=False): yield from files_in(entry.path)
      elif final_name(entry.name) is None: yield File(entry.path, entry.stat(follow_symlinks=False))
    except OSError: continue  # another process removed it

# **** the limit ****

def limit(folder: str) -> int | None:
  """The most bytes of the results, and of the recordings, in a cache's folder: CACHE_LIMIT, else what was set there.

  None: there is no limit.
  """
  text = CACHE_LIMIT.value or _stored_limit(folder)
  return parse_size(text) if text else DEFAULT_LIMIT

def _stored_limit(folder: str) -> str:
  """What `cache limit` has set; nothing if that is not to be believed."""
  try:
    with os.fdopen(descriptor(os.path.join(folder, LIMIT_FILE), os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)),
                   "rb") as file:
      text = file.read(64).decode(errors="replace").strip() if is_ours(os.fstat(file.fileno())) else ""
    parse_size(text or "none")
  except (OSError, ArgumentError): return ""
  return text

# **** making room ****

def written(folder: str, size: int) -> None:
  """A file of results was written in a cache's folder: make room if it is time. Raises OSError."""
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
    os.ftruncate(ledger, 1)  # not empty: somebody has looked
  finally: os.close(ledger)

def make_room(folder: str, most: int, without: Sequence[str] = (), keep: int = 0) -> int:
  """Remove the files below a folder that were not used for longest, until the rest takes at most so many bytes; tells
  how many it removed.

  keep: so many of the newest stay in any case.
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
  """A recording was written to a cache's folder: remove the oldest ones if there are too many."""
  most = limit(folder)
  if most is not None: make_room(os.path.join(folder, kind), most, keep=1)

# **** the command ****

def examine(folder: str) -> dict[str, Any]:
  """What is in the cache's folder, as JSON can hold it."""
  kinds = {}
  for kind, (places, without) in KINDS.items():
    found = [file for place in places for file in files_in(os.path.join(folder, *place.split("/")), without)]
    kinds[kind] = {"entries": len(found), "bytes": sum(file.size for file in found)}
  return {"folder": folder, "limit": limit(folder), "kinds": kinds}

def show_size(size: int) -> str:
  """Bytes as `parse_size` reads them, rounded: 3.2M."""
  for unit in reversed(SIZE_UNITS):
    if unit and size >= SIZE_UNITS[unit]: return f"{size / SIZE_UNITS[unit]:.1f}{unit}"
  return str(size)

def show(facts: dict[str, Any]) -> str:
  """The facts of `examine` as text."""
  most = "none" if facts["limit"] is None else show_size(facts["limit"])
  lines = [f"folder      {facts['folder']}", f"limit       {most}, of kernels, searches and calls together, and of "
           f"recordings"]
  lines += [f"{kind:<10}  {found['entries']:>7} entries  {show_size(found['bytes']):>8}"
            for kind, found in facts["kinds"].items()]
  return "\n".join(lines)

def clear(folder: str, kinds: Iterable[str]) -> int:
  """Remove all files of some kinds; tells how many. Raises ArgumentError, DriverError where some cannot be removed."""
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
  """Keep a limit in the cache's folder for all processes without CACHE_LIMIT, and make room at once.

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
  """What the command prints for its words: nothing, `clear [KIND ...]`, `limit [SIZE]`; None for others.

  Facts where `--json` wants them.
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
