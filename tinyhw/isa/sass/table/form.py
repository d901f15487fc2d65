"""The semantics of a line of the table: generations, the fields of an instruction, and the form of a row (`Inst.isa`).

The encoder, the decoder and the text read the form. table.py explains the notation.
"""
from __future__ import annotations
import functools
from typing import TYPE_CHECKING, Any

from tinyhw.errors import EncodeError
from tinyhw.isa.sass.table.modifiers import Enumeration
from tinyhw.machine.ir.inst import Access, Inst, RegClass
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import once
if TYPE_CHECKING:
  from tinyhw.machine.notation.bits import Format

# ---- generations

GENERATIONS = ("sm_80", "sm_89", "sm_90", "sm_100", "sm_120")
SAME = {"sm_86": "sm_80", "sm_90a": "sm_90", "sm_100a": "sm_100", "sm_120a": "sm_120"}
# "%" and one of these limits a word of a line to some generations.
GROUPS = {
  "80": GENERATIONS[:1], "89": GENERATIONS[1:2], "90": GENERATIONS[2:3], "100": GENERATIONS[3:4],
  "120": GENERATIONS[4:],
  "9-": GENERATIONS[:3], "10-": GENERATIONS[:4], "89+": GENERATIONS[1:], "9+": GENERATIONS[2:], "10+": GENERATIONS[3:],
  "8x": GENERATIONS[:2], "9x": GENERATIONS[2:4], "80,90": ("sm_80", "sm_90"),
}

class Generation:
  """A column of the table. arch: sm_80, sm_86, sm_89, sm_90, sm_100 or sm_120, with or without an "a" at the end.

  wide: fields of uniform registers have eight bits. split: the low bits of a branch offset are separate from the
  others.
  """

  def __init__(self, arch: str):
    self.arch, self.name = arch, SAME.get(arch, arch)
    if self.name not in GENERATIONS:
      raise EncodeError(f"no NVIDIA architecture is called {arch}; there is {', '.join((*GENERATIONS, *SAME))}")
    self.wide = self.name in GROUPS["10+"]
    self.split = self.name in GROUPS["9+"]

  def has(self, group: str) -> bool:
    """Return whether a word limited to this group holds here. "" holds everywhere."""
    return not group or self.name in GROUPS[group]

# ---- fields

Ranges = tuple[tuple[int, int], ...]  # first and last bit, the least significant range first

@once
def ranges(text: str) -> Ranges:
  """Parse "76,80" or "16-23,34-81"."""
  found = []
  for word in text.split(","):
    low, _, high = word.partition("-")
    found.append((int(low), int(high or low)))
  return tuple(found)

@once
def width_of(places: Ranges) -> int: return sum(high - low + 1 for low, high in places)

def placed(places: Ranges, value: int) -> int:
  """Return the lowest bits of a value at their positions in an instruction."""
  word = 0
  for low, high in places:
    word |= (value & (1 << high - low + 1) - 1) << low
    value >>= high - low + 1
  return word

WORD_BITS, CONTROL_BIT = 128, 105  # bits of an instruction; the first bit of its control word

def layout(places: dict[str, tuple[Ranges, bool]], constants: dict[Ranges, int]) -> Format:
  """Return the format of an instruction without its control word.

  places: fields by name, with whether they are signed. constants: constant bits. Other bits are zeros.
  """
  from tinyhw.machine.notation.bits import fmt  # the encoder needs no format
  bits = ["0"] * CONTROL_BIT
  for at, value in constants.items():
    for low, high in at:
      for bit in range(low, high + 1): bits[bit], value = str(value & 1), value >> 1
  for name, (at, signed) in places.items():
    first = 0
    for low, high in at:
      assert all(b == "0" for b in bits[low:high + 1]), f"{name}: bits {low}-{high} are those of {bits[low:high + 1]}"
      last = first + high - low
      bits[low:high + 1] = [f"{name}[{last}:{first}]{'s' if signed else ''}"] + [""] * (high - low)
      first = last + 1
  return fmt(" ".join(["0" * (WORD_BITS - CONTROL_BIT), *(b for b in reversed(bits) if b)]))

# Kinds of integers: the signed ones, and the bytes of a unit of the field.
SIGNED = ("s", "to", "at", "rel", "s24", "w")
SCALE = {"to": 4, "rel": 4, "w": 4}
NO_GROUP = 7  # of a matrix product: no group
# the allowed integers, if some values are invalid
ALLOWED = {"sb": tuple(range(6)), "gsb": (0, NO_GROUP), "gsb0": (0,)}

class Spec(NamedTuple):
  """A field of a row, which is an operand of its instructions.

  kind: one of
  - R, UR, P, UP, B: registers
  - "enum": a modifier
  - "flag": a sign or another one-bit mark of an operand
  - u (unsigned), s, s24 (signed), w (signed, in words)
  - to (a code address, from the end of the instruction), at (the same in bytes), rel (a distance)
  - f32, f64, half: the bits of a float
  - sr: a special register
  - sb: a scoreboard; boards: a set of them
  - gsb, gsb0: a group of matrix products; gsb is 0 or none, gsb0 is 0

  implied: the value if the text leaves it out. units: registers of a group, or the modifier that gives their count.
  reuse: of a source, its bit in Control.reuse; -1 if it cannot stay in the cache.
  """
  name: str
  kind: str
  at: Ranges
  access: Access = Access.READ
  implied: object = 0
  classes: tuple[RegClass, ...] = ()
  units: int | str = 1
  enumeration: Enumeration | None = None
  reuse: int = -1
  inverse: bool = False  # a predicate register n is written as 7 - n

  @property
  def register(self) -> bool: return bool(self.classes)
  @property
  def signed(self) -> bool: return self.kind in SIGNED

class TokenPart(NamedTuple):
  """A field in the text of an operand.

  negate, sign, absolute: fields for "!", "-" and "|..|". inverse: the sign is written "~". suffixes: fields or literal
  words.
  """
  name: str
  negate: str = ""
  sign: str = ""
  absolute: str = ""
  inverse: bool = False
  suffixes: tuple[str, ...] = ()
  following: bool = False  # the register after that of the field; the text names it too

class Token(NamedTuple):
  """An operand of the text: brackets with a word before them and a sum inside, or one bare part.

  optional: it is left out if it has its default.
  """
  groups: tuple[tuple[str, tuple[TokenPart, ...]], ...]
  optional: bool = False
  brackets: bool = False
  literal: str = ""                          # a word that is always there
  spaced: bool = False                       # parts are separated by a blank, not by "+" in brackets
  flags: tuple[tuple[str, str], ...] = ()    # after the brackets: (field, word), ".tnspA"

  def parts(self) -> list[TokenPart]: return [part for _, parts in self.groups for part in parts]

def bracketed(text: str) -> tuple[list[tuple[str, str]], str]:
  """Split a text into its brackets, each with the lower-case letters before it, and the rest.

  "desc[UR4][R2.64].x" gives (desc, UR4), ("", R2.64) and .x.
  """
  found: list[tuple[str, str]] = []
  rest = ""
  while "[" in text:
    before, _, after = text.partition("[")
    inside, closing, left = after.partition("]")
    if not closing: break
    prefix = before[len(before.rstrip(SMALL)):]
    found.append((prefix, inside))
    rest, text = rest + before[:len(before) - len(prefix)], left
  return found, rest + text

SMALL = "abcdefghijklmnopqrstuvwxyz"

def mnemonic_of(key: str) -> str:
  """Return the first word of the text, for a row's key or a line's name."""
  return key.partition("/")[0].partition(".")[0]

class Form:
  """The `Inst.isa` of a row.

  key: of the table. mnemonic: the first word of the text. words: the dotted words after it: names of modifiers, or
  literal words ("=WIDE"). specs: parallel to the row's operands: those of the text, then modifiers and flags, then the
  guard. index: name -> position. constants: constant bits. properties: the words of its line. result: "fixed" for a
  fixed latency, "board" if the result releases a scoreboard. sources: the same for the reading of the sources. row: the
  row of this form. fields: the encoder's cache.
  """
  row: Inst | None = None
  fields: tuple[Any, ...] = ()

  def __init__(self, key: str, generation: Generation, words: tuple[str, ...], tokens: tuple[Token, ...],
               specs: tuple[Spec, ...],
               constants: dict[Ranges, int], properties: frozenset[str]):
    self.key, self.mnemonic, self.generation = key, mnemonic_of(key), generation
    self.words, self.tokens, self.specs, self.constants, self.properties = words, tokens, specs, constants, properties
    self.result = "board" if "board" in properties else "fixed"
    self.sources = "board" if "reads" in properties else "fixed"
    self.index = {spec.name: i for i, spec in enumerate(specs)}

  @functools.cached_property
  def format(self) -> Format:
    """The format of all bits of the instruction."""
    return layout({spec.name: (spec.at, spec.signed) for spec in self.specs}, self.constants)

  @functools.cached_property
  def constant(self) -> int:
    """The constant bits, at their positions."""
    word = 0
    for at, value in self.constants.items(): word |= placed(at, value)
    return word
