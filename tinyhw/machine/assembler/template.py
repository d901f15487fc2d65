"""The template of a row: its operands as a text with holes. It reads and writes the text of instructions.

Text stands for itself. `( ... )` may be left out if all of it has its default. Numbers and words are the same in all
ISAs:

    <i> <s:i>         a number without and with a sign; <x:i> is written in hexadecimal; <i*8>, <i+1>, <64-i>
    <label:i*4>       the distance to a jump's target, in units of 4 bytes
    <name:i>          a word of a table, or a number whose bits are a function of the value (`Notation`)
    <a:hi>            the field has h above i

An ISA adds patterns for its registers.
"""
from __future__ import annotations
import re
from collections.abc import Callable, Mapping
from typing import Any

from tinyhw.machine.assembler.holes import Hole, Label, NumberHole, Words, WordTable
from tinyhw.machine.assembler.reader import TextReader, tokens
from tinyhw.named_tuple import NamedTuple

HOLE = re.compile(r"<(?:(\w+):)?(?:(\d+)-)?([a-z]+)(?:\*(\d+))?(?:\+(\d+))?>")
DIGITS = "0123456789"

Element = Any  # str (text), int (index of a hole), SameRegister, or list[Element] (an optional part)
# the match of a pattern, bits of each field, holes so far (a new one is added) -> the element
RegisterMaker = Callable[[re.Match[str], dict[str, int], list[Hole]], Element]

class Notation(NamedTuple):
  """What an ISA adds to the notation of operands.

  - registers: patterns, first match first, and functions that make the element.
  - tables: words by the name of their table.
  - numbers: name without the digits at its end -> a function that makes the hole of letters, width and digits.
  """
  registers: tuple[tuple[re.Pattern[str], RegisterMaker], ...]
  tables: Mapping[str, WordTable]
  numbers: Mapping[str, Callable[[str, int, int], Hole]]

class SameRegister:
  """A register that an earlier hole has: the same one, or the one `add` after it. spelled: the number of the first one
  -> the text."""

  def __init__(self, hole: int, spelled: Callable[[int], str], add: int):
    self.hole, self.spelled, self.add = hole, spelled, add

  def text_of(self, first: Any) -> str:
    return self.spelled(first.index) if first.index is not None else f"{first}+{self.add}"

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
    """The operands of each hole. Raises TextMismatch."""
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
      raise reader.refuse(wanted if element.add else f"{wanted} again", head[:1] == wanted[:1])

def template_of(text: str, widths: dict[str, int], notation: Notation) -> Template:
  """The template of a text. widths: bits of each field."""
  holes: list[Hole] = []
  stack: list[list[Element]] = [[]]
  at, plain = 0, ""
  def number(found: re.Match[str], widths: dict[str, int], holes: list[Hole]) -> Element:
    return added(number_of(found, widths, notation), holes)
  patterns = (*notation.registers, (HOLE, number))
  def flush() -> None:
    nonlocal plain
    if plain: stack[-1].append(plain)
    plain = ""
  while at < len(text):
    match = next(((found, make) for pattern, make in patterns if (found := pattern.match(text, at))), None)
    if match is not None:
      found, make = match
      flush()
      stack[-1].append(make(found, widths, holes))
      at = found.end()
      continue
    if text[at] == "(":
      flush()
      stack.append([])
    elif text[at] == ")":
      flush()
      part = stack.pop()
      stack[-1].append(part)
    else: plain += text[at]
    at += 1
  flush()
  return Template(stack[0], holes)

def added(hole: Hole, holes: list[Hole]) -> int:
  """Add a hole, and return its index: the element."""
  holes.append(hole)
  return len(holes) - 1

def number_of(found: re.Match[str], widths: dict[str, int], notation: Notation) -> Hole:
  """The hole of a number or word."""
  name, base, letters, scale, add = found.groups()
  width = sum(widths.get(c, 0) for c in letters)
  if name in notation.tables: return Words(notation.tables[name], letters, width)
  if name == "label":
    hole = Label(letters, width, True, int(scale or 1))
    hole.names = ("block",)
    return hole
  kind = (name or "").rstrip(DIGITS)
  if kind in notation.numbers: return notation.numbers[kind](letters, width, int(name[len(kind):] or 0))
  assert name in (None, "s", "x"), f"{found[0]}: no number is called {name}"
  return NumberHole(letters, width, name == "s", int(scale or 1), int(base or add or 0), base is not None, name == "x")
