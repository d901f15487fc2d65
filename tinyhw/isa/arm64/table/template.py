"""The template of a row: its operands as a text with holes. It reads and writes the text of instructions.

The notation is explained in table.py.
"""
from __future__ import annotations
import re
from collections.abc import Sequence
from typing import Any

from tinyhw.isa.arm64.table.holes import Following, Hole, Label, Number, RegisterHole, RegisterList, Words
from tinyhw.isa.arm64.table.immediates import (
  BitField, ByteMask, TwoFloats, DupMask, Float, Mask, Moved, Shifted, SystemRegister)
from tinyhw.isa.arm64.table.reader import TextReader, tokens
from tinyhw.isa.arm64.table.words import TABLES
from tinyhw.machine.ir.inst import Access

REGISTER = re.compile(r"([BHSDQWXVZP])([a-z]{1,3})(\|sp|\|30)?(?:\*(\d))?(?:\+(\d))?(?:\.(\w+))?([=+]?)(?![\w<:])")
LIST = re.compile(r"\{ ([VZ])([a-z])\.(\w+)(?:\*(\d))?([=+]?) \}")
HOLE = re.compile(r"<(?:(\w+):)?(?:(\d+)-)?([a-z]+)(?:\*(\d+))?(?:\+(\d+))?>")
ACCESS = {"": Access.READ, "=": Access.WRITE, "+": Access.BOTH}

# Numbers that are no tables of words: their name, without digits at its end -> the hole, from letters, width and digits
NUMBERS: dict[str, Any] = {
  "label": lambda letters, width, bits: Label(letters, width),
  "mask": lambda letters, width, bits: Mask(letters, width, bits),
  "lanes": lambda letters, width, bits: Mask(letters, width, bits, exact=True),
  "dupmask": lambda letters, width, bits: DupMask(letters, width, bits, exact=True),
  "movz": lambda letters, width, bits: Moved(letters, width, bits, "z"),
  "movn": lambda letters, width, bits: Moved(letters, width, bits, "n"),
  "movm": lambda letters, width, bits: Moved(letters, width, bits, "mask"),
  "shifted": lambda letters, width, bits: Shifted(letters, width, bits),
  "sshifted": lambda letters, width, bits: Shifted(letters, width, bits, signed=True),
  "amount": lambda letters, width, bits: Amount(letters, width),
  "float": lambda letters, width, bits: Float(letters, width),
  "bytes": lambda letters, width, bits: ByteMask(letters, width),
  "left": lambda letters, width, bits: BitField(letters, width, "left"),
  "right": lambda letters, width, bits: BitField(letters, width, "right"),
  "insert": lambda letters, width, bits: BitField(letters, width, "insert"),
  "extract": lambda letters, width, bits: BitField(letters, width, "extract"),
  "system": lambda letters, width, bits: SystemRegister(letters, width),
  "zeroone": lambda letters, width, bits: TwoFloats(letters, width, "0.0", "1.0"),
  "halfone": lambda letters, width, bits: TwoFloats(letters, width, "0.5", "1.0"),
  "halftwo": lambda letters, width, bits: TwoFloats(letters, width, "0.5", "2.0"),
}

class Repeated(RegisterHole):
  """A register whose number is in several fields."""

  def __init__(self, letter: str, letters: str, width: int, suffix: str, stack: bool, access: Access):
    super().__init__(letter, letters, width // len(letters), suffix, stack, access)
    self.copies, self.each = len(letters), width // len(letters)
    self.width = width

  def code(self, values: Sequence[Any]) -> int:
    code = super().code(values)
    return sum(code << self.each * k for k in range(self.copies))

  def operands(self, code: int) -> list[Any] | None:
    one = code & (1 << self.each) - 1
    if any(code >> self.each * k & (1 << self.each) - 1 != one for k in range(self.copies)): return None
    return super().operands(one)

class Amount(Number):
  """The shift of an extended register: 0 to 4, although its field has three bits."""

  def __init__(self, letters: str, width: int):
    super().__init__(letters, width)
    self.high = 4

  def operands(self, code: int) -> list[Any] | None: return [code] if code <= self.high else None

class SameRegister:
  """A register that an earlier hole has: the same one, or the one `add` after it."""

  def __init__(self, hole: int, register: RegisterHole, add: int):
    self.hole = hole
    self.shape = Following(register.letter, register.letters, register.width, register.suffix, register.step, add)

  def text_of(self, first:
    Any) -> str: return self.shape.of(first.index) if first.index is not None else f"{first}+{self.shape.add}"

Element = Any  # str (text), int (index of a hole), SameRegister, or list[Element] (an optional part)

class Template:
  """elements: text, holes, and optional parts."""

  def __init__(self, elements: list[Element], holes: list[Hole]):
    self.elements, self.holes = elements, tuple(holes)

  # ---- writing

  def show(self, values: list[list[Any]]) -> str:
    """The text of the operands. values: the operands of each hole."""
    return self.shown(self.elements, values)

  def shown(self, elements: list[Element], values: list[list[Any]]) -> str:
    parts = []
    for element in elements:
      if isinstance(element, str): parts.append(element)
      elif isinstance(element, SameRegister): parts.append(element.text_of(values[element.hole][0]))
      elif isinstance(element, list): parts.append("" if self.is_usual(element, values) else self.shown(element,
                                                                                                        values))
      else: parts.append(self.holes[element].show(values[element]))
    return "".join(parts)

  def is_usual(self, elements: list[Element], values: list[list[Any]]) -> bool:
    """Whether an optional part has its usual values."""
    for element in elements:
      if isinstance(element, list) and not self.is_usual(element, values): return False
      if isinstance(element, int) and values[element] != self.holes[element].operands(self.holes[element].default):
        return False
    return True

  # ---- reading

  def read(self, reader: TextReader) -> list[list[Any]]:
    """The operands of each hole. Raises Unfit."""
    values: list[list[Any]] = [hole.operands(hole.default) or [] for hole in self.holes]
    self.take(self.elements, reader, values)
    if reader.peek(): raise reader.refuse("the end of the line")
    return values

  def take(self, elements: list[Element], reader: TextReader, values: list[list[Any]]) -> None:
    for element in elements:
      if isinstance(element, str): self.take_text(element, reader)
      elif isinstance(element, int): values[element] = self.holes[element].read(reader)
      elif isinstance(element, SameRegister): self.take_again(element, reader, values)
      elif self.begins(element, reader): self.take(element, reader, values)

  def begins(self, elements: list[Element], reader: TextReader) -> bool:
    """Whether an optional part is next: its first token is there, and after a comma the second one may be."""
    first = elements[0]
    if isinstance(first, int): return bool(reader.peek())
    found = tokens(first)
    if reader.peek() != found[0]: return False
    if found[0] != ",": return True
    after = reader.tokens[reader.at + 1] if reader.at + 1 < len(reader.tokens) else ""
    if len(found) > 1: return after == found[1] or found[1] == "#" and (after[:1].isdigit() or after in ("-", "+"))
    return True

  def take_text(self, text: str, reader: TextReader) -> None:
    for token in tokens(text):
      if token[0].isdigit():
        start, value = reader.at, reader.number()
        if value is None: raise reader.refuse(f"#{token}", start=start)
        if value != float(int(token, 0) if "." not in token else token): raise reader.refuse(f"#{token}", True, start)
      elif not reader.skip(token) and token != "#": raise reader.refuse(token if token != "," else "a comma")

  def take_again(self, element: SameRegister, reader: TextReader, values: list[list[Any]]) -> None:
    wanted = element.text_of(values[element.hole][0])
    if not reader.skip(wanted):
      head = reader.peek().partition(".")[0]
      raise reader.refuse(wanted if element.shape.add else f"{wanted} again", head[:1] == wanted[:1])

def template_of(text: str, widths: dict[str, int]) -> Template:
  """The template of a text without capitals. widths: bits of each field."""
  holes: list[Hole] = []
  stack: list[list[Element]] = [[]]
  at, plain = 0, ""
  def flush() -> None:
    nonlocal plain
    if plain: stack[-1].append(plain)
    plain = ""
  while at < len(text):
    found = LIST.match(text, at) or HOLE.match(text, at) or REGISTER.match(text, at)
    if found:
      flush()
      stack[-1].append(element_of(found, widths, holes))
      at = found.end()
    elif text[at] == "(":
      flush()
      stack.append([])
      at += 1
    elif text[at] == ")":
      flush()
      part = stack.pop()
      stack[-1].append(part)
      at += 1
    else:
      plain += text[at]
      at += 1
  flush()
  return Template(stack[0], holes)

def element_of(found: re.Match[str], widths: dict[str, int], holes: list[Hole]) -> Element:
  """The element of a match. A new hole is added to `holes`."""
  if found.re is REGISTER: return register_of(found, widths, holes)
  if found.re is LIST:
    letter, field, suffix, count, access = found.groups()
    hole: Hole = RegisterList(letter.lower(), field, widths[field], suffix, int(count or 1), ACCESS[access])
  else: hole = number_of(found, widths)
  holes.append(hole)
  return len(holes) - 1

def number_of(found: re.Match[str], widths: dict[str, int]) -> Hole:
  """The hole of a number or word."""
  name, base, letters, scale, add = found.groups()
  width = sum(widths.get(c, 0) for c in letters)
  if name in TABLES: return Words(name, letters, width)
  kind = (name or "").rstrip("0123456789")
  if kind in NUMBERS and kind not in ("s", "x"):
    hole: Hole = NUMBERS[kind](letters, width, int(name[len(kind):] or 0))
    if isinstance(hole, Label): hole = scaled_label(hole, int(scale or 1))
    return hole
  assert name in (None, "s", "x"), f"{found[0]}: no number is called {name}"
  return Number(letters, width, name == "s", int(scale or 1), int(base or add or 0), base is not None, name == "x")

def scaled_label(hole: Label, scale: int) -> Label:
  """A label whose code counts units of `scale` bytes."""
  made = Label(hole.letters, hole.width, True, scale)
  made.names = ("block",)
  return made

def register_of(found: re.Match[str], widths: dict[str, int], holes: list[Hole]) -> Element:
  letter, letters, stack, step, add, suffix, access = found.groups()
  width = sum(widths.get(c, 0) for c in letters)
  assert width, f"{found[0]}: the word has no field {letters}"
  if len(letters) > 1:
    holes.append(Repeated(letter.lower(), letters, width, suffix or "", stack == "|sp", ACCESS[access]))
    return len(holes) - 1
  hole = RegisterHole(letter.lower(), letters, width, suffix or "", stack == "|sp", ACCESS[access], int(step or 1),
                  stack == "|30")
  for at, earlier in enumerate(holes):
    if earlier.letters == letters: return SameRegister(at, hole, int(add or 0))
  holes.append(hole)
  return len(holes) - 1
