"""Tables in text of which a kernel needs a few entries. Each entry is parsed at first use."""
from __future__ import annotations
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

T = TypeVar("T")
V = TypeVar("V")

class Lazy(Mapping[str, V]):
  """A mapping whose values are converted from others at first use. An invalid entry raises its error then."""

  def __init__(self, sources: Mapping[str, T], make: Callable[[T], V]):
    self._sources, self._make = sources, make
    self._made: dict[str, V] = {}

  def __getitem__(self, key: str) -> V:
    found = self._made.get(key)
    if found is None: found = self._made.setdefault(key, self._make(self._sources[key]))
    return found

  def __contains__(self, key: object) -> bool: return key in self._sources
  def __iter__(self) -> Iterator[str]: return iter(self._sources)
  def __len__(self) -> int: return len(self._sources)

def blocks_of(text: str) -> dict[str, list[str]]:
  """Split a text into blocks by name. A block begins in the first column with its name. The lines below it are
  indented."""
  found: dict[str, list[str]] = {}
  for line in text.split("\n"):
    if not line or line.isspace(): continue
    if not line[0].isspace():
      name = line.split(None, 1)[0]
      assert name not in found, f"{name} stands twice in the text"
      lines = found[name] = []
    lines.append(line)
  return found
