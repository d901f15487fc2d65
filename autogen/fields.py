"""Words with named bits: registers, command packets, and tables of them. One row of text says where each field is;
encoder and decoder both read it.

A row describes the 32-bit words of a value, separated by "|". In a word stand names of fields with their bits:

  count:0-21       bits 0 to 21                      op:0-7=13    bits 0 to 7, which always hold 13
  barrier:8        bit 8                             data         the whole word
  addr:0-63        this word and the next one, low word first     values*      all words that follow
  size:0-12@9,11   a field that only generations 9 and 11 have

Names are the vendor's. Bits without a name are zero: encoders write that, decoders insist on it.
"""
from __future__ import annotations
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

class Field(NamedTuple):
  """Bits low..high of the words from number `word` on.

  high is up to 63: the next word follows. fixed: the constant value.
  """
  name: str
  word: int
  low: int
  high: int
  fixed: int | None = None

  @property
  def mask(self) -> int: return (1 << (self.high - self.low + 1)) - 1

def of_generation(text: str, generation: int | None) -> str | None:
  """Return text without its "@9,11", or None if that does not name the generation."""
  text, _, generations = text.partition("@")
  return text if not generations or str(generation) in generations.split(",") else None

class Layout:
  """The fields of a value of several words. rest: the name of the words that follow them, if the row has any."""
  def __init__(self, name: str, text: str, generation: int | None = None):
    self.name = name
    self.fields: dict[str, Field] = {}
    self.rest: str | None = None
    self.words = 0
    self._base: list[int] = []                                      # the words with the constant fields
    self._places: dict[str, tuple[int, int, int]] = {}             # the other fields: word, first bit, mask
    for part in text.split("|") if text.strip() else ():
      items = [kept for item in part.split() if (kept := of_generation(item, generation)) is not None]
      if items and items[0].endswith("*"): self.rest = items[0][:-1]
      else: self.words += max([self._add(item) for item in items], default=0)
    self._base = [0] * self.words
    for field in self.fields.values():
      if field.fixed is None: self._places[field.name] = field.word, field.low, field.mask
      else: self._base[field.word] |= field.fixed << field.low

  def _add(self, item: str) -> int:
    """Add a field. Return the count of its words."""
    item, _, fixed = item.partition("=")
    name, _, bits = item.partition(":")
    low, _, high = bits.partition("-") if bits else ("0", "", "31")
    assert name not in self.fields, f"{self.name}: two fields are called {name}"
    self.fields[name] = field = Field(name, self.words, int(low), int(high or low), int(fixed, 0) if fixed else None)
    return field.high // 32 + 1

  def encode(self, values: dict[str, Any]) -> list[int]:
    """Return the words.

    Missing fields are 0. Raises ValueError for an unknown field, or a value that does not fit.
    """
    words, places = self._base[:], self._places
    for name, value in values.items():
      if name not in places:
        if name == self.rest: continue
        raise ValueError(f"{self.name} has no field {name}; it has {', '.join(self.names())}")
      word, low, mask = places[name]
      if value & ~mask:
        raise ValueError(f"{self.name}: {name}={value:#x} does not fit into bits {low} to {self.fields[name].high}")
      value <<= low
      words[word] |= value & 0xFFFF_FFFF
      if value >> 32: words[word + 1] |= value >> 32
    if self.rest: words += values.get(self.rest, ())
    return words

  def names(self) -> list[str]:
    """The arguments of `encode`."""
    return [f.name for f in self.fields.values() if f.fixed is None] + ([self.rest] if self.rest else [])

  def decode(self, words: Sequence[int]) -> dict[str, Any]:
    """Return the fields of words. Raises ValueError for another count of words, and for bits outside of all fields."""
    if len(words) < self.words or len(words) > self.words and self.rest is None:
      raise ValueError(f"{self.name} has {self.words} words{' or more' if self.rest else ''}, not {len(words)}")
    left = list(words[:self.words])
    found: dict[str, Any] = {}
    for field in self.fields.values():
      pair = words[field.word] | (words[field.word + 1] << 32 if field.high >= 32 else 0)
      value = pair >> field.low & field.mask
      if field.fixed is None: found[field.name] = value
      elif value != field.fixed: raise ValueError(f"{self.name}: {field.name} is {value:#x}, not {field.fixed:#x}")
      taken = field.mask << field.low
      left[field.word] &= ~taken
      if field.high >= 32: left[field.word + 1] &= ~(taken >> 32)
    for number, word in enumerate(left):
      if word:
        raise ValueError(f"{self.name}: word {number} is {words[number]:#010x}, and no field has its bits {word:#x}")
    if self.rest: found[self.rest] = list(words[self.words:])
    return found

class Word(Layout):
  """One word with named bits. Calling it returns the word: WORD(type=2, barrier=1)."""
  def __call__(self, **values: int) -> int: return self.encode(values)[0]
  def __repr__(self) -> str: return self.name

class Register(Word):
  """A register: its bits, and its address in units of words."""
  def __init__(self, name: str, address: int, text: str, generation: int | None = None):
    super().__init__(name, text, generation)
    self.address = address

class Table:
  """Rows by name, as attributes."""
  def __init__(self, rows: Iterable[Any]):
    self.rows: dict[str, Any] = {row.name: row for row in rows}
    self.__dict__.update(self.rows)

  if TYPE_CHECKING:
    def __getattr__(self, name: str) -> Any: ...

def lines(text: str) -> list[tuple[str, str]]:
  """Return the rows of a table's text without comments: (name, rest). A row continues in indented lines."""
  rows: list[str] = []
  for line in text.splitlines():
    line = line.partition("#")[0].rstrip()
    if line.startswith(" "): rows[-1] += line
    elif line: rows.append(line)
  return [(row.split()[0], row.partition(" ")[2]) for row in rows]

def members(name: str) -> list[str]:
  """Return COMPUTE_DIM_X, COMPUTE_DIM_Y, COMPUTE_DIM_Z for COMPUTE_DIM_{X,Y,Z}. {0-15} are the numbers from 0 to 15."""
  first, opened, inner = name.partition("{")
  if not opened: return [name]
  inner = inner.rstrip("}")
  low, ranged, high = inner.partition("-")
  return [first + part for part in (map(str, range(int(low), int(high) + 1)) if ranged else inner.split(","))]
