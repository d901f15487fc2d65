"""Operands in the template of a row: numbers, words, and the interface of all of them.

A hole has a field of the instruction word (`letters`, most significant first) and one or several operands of the MInst.
It reads them from text (`read`), writes the text (`show`), and converts them to the bits of the field (`code`) and back
(`operands`). Registers, and numbers whose bits are a function of the value, are holes of the ISA.
"""
from __future__ import annotations
from collections.abc import Sequence
from typing import Any

from tinyhw.errors import EncodeError
from tinyhw.machine.assembler.reader import TextReader
from tinyhw.machine.ir.inst import Access, Block, RegClass
from tinyhw.named_tuple import NamedTuple

class Hole:
  """An operand of the text.

  - width: bits of its field.
  - cls: the class of its registers, None for a number.
  - names: names of its operands in the row, one for each.
  - default: the code that an optional part has if the text leaves it out.
  - fixed, early: of its Operand.
  """
  cls: RegClass | None = None
  access = Access.READ
  default = 0
  fixed: int | None = None
  early = False

  def __init__(self, letters: str, width: int):
    self.letters, self.width = letters, width
    self.names: tuple[str, ...] = (letters,)

  def read(self, reader: TextReader) -> list[Any]:
    """The operands from the text. Raises TextMismatch."""
    raise NotImplementedError

  def show(self, values: Sequence[Any]) -> str: raise NotImplementedError

  def code(self, values: Sequence[Any]) -> int:
    """The bits of the field. Raises EncodeError with the values that fit."""
    raise NotImplementedError

  def operands(self, code: int) -> list[Any] | None:
    """The operands of a field; None if the row does not have it."""
    raise NotImplementedError

  def wants(self) -> str:
    """The operands that fit, for errors."""
    raise NotImplementedError

class NumberHole(Hole):
  """An integer: code * scale + base, or base - code if it counts down."""

  def __init__(self, letters: str, width: int, signed: bool = False, scale: int = 1, base: int = 0, down: bool = False,
               hexadecimal: bool = False):
    super().__init__(letters, width)
    self.signed, self.scale, self.base, self.down, self.hexadecimal = signed, scale, base, down, hexadecimal
    least, most = (-1 << width - 1, (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
    ends = (base - least, base - most) if down else (least * scale + base, most * scale + base)
    self.low, self.high = min(ends), max(ends)

  def read(self, reader: TextReader) -> list[Any]:
    start, value = reader.at, reader.number()
    if value is None or isinstance(value, float): raise reader.refuse(self.wants(), start=start)
    if not self.fits(value): raise reader.refuse(self.wants(), True, start)
    return [value]

  def fits(self, value: int) -> bool: return self.low <= value <= self.high and (value - self.base) % self.scale == 0

  def show(self, values: Sequence[Any]) -> str:
    value = values[0]
    return hex(value) if self.hexadecimal and value and isinstance(value, int) else str(value)

  def code(self, values: Sequence[Any]) -> int:
    value = values[0]
    if not isinstance(value, int) or not self.fits(value): raise EncodeError(f"wants {self.wants()}, got {value}")
    code = self.base - value if self.down else (value - self.base) // self.scale
    return code & (1 << self.width) - 1

  def operands(self, code: int) -> list[Any] | None:
    if self.signed and code >> self.width - 1: code -= 1 << self.width
    return [self.base - code if self.down else code * self.scale + self.base]

  def wants(self) -> str:
    kind = f"a multiple of {self.scale}" if self.scale > 1 and not self.base % self.scale else "an integer"
    return f"{kind} in {self.low}..{self.high}"

class Label(NumberHole):
  """The distance to a jump's target in bytes, or its block."""

  def read(self, reader: TextReader) -> list[Any]:
    text = reader.peek()
    if text[:1] == "." and len(text) > 1: return [reader.take()]
    return super().read(reader)

  def code(self, values: Sequence[Any]) -> int:
    if isinstance(values[0], Block): raise EncodeError("is a block; only encode_function knows where it is")
    return super().code(values)

class WordTable(NamedTuple):
  """Operands that the text names by words: a word for each code, or None for a code without a name.

  - default: the code that the text may leave out.
  - others: further spellings.
  - numbered: codes without a word may be written as numbers.
  """
  words: tuple[str | None, ...]
  default: int = 0
  others: dict[str, int] = {}
  numbered: bool = False

class Words(Hole):
  """A word of a table. Its operand is the code."""

  def __init__(self, table: WordTable, letters: str, width: int):
    super().__init__(letters, width)
    self.table = table
    self.default = self.table.default
    self.codes = {**self.table.others, **{w.lower(): i for i, w in enumerate(self.table.words) if w is not None}}

  def read(self, reader: TextReader) -> list[Any]:
    start, code = reader.at, self.codes.get(reader.peek())
    if code is not None:
      reader.take()
      return [code]
    value = reader.number() if self.table.numbered else None
    if not isinstance(value, int): raise reader.refuse(self.wants(), start=start)
    if not 0 <= value < 1 << self.width: raise reader.refuse(self.wants(), True, start)
    return [value]

  def show(self, values: Sequence[Any]) -> str:
    word = self.table.words[values[0]] if values[0] < len(self.table.words) else None
    return f"#{values[0]}" if word is None else word

  def code(self, values: Sequence[Any]) -> int:
    if not isinstance(values[0], int) or self.operands(values[0]) is None:
      raise EncodeError(f"wants the code of {self.wants()}, got {values[0]}")
    return int(values[0])

  def operands(self, code: int) -> list[Any] | None:
    named = code < len(self.table.words) and self.table.words[code] is not None
    return [code] if named or self.table.numbered and 0 <= code < 1 << self.width else None

  def wants(self) -> str:
    names = [w for w in self.table.words if w is not None]
    text = ", ".join(names[:16]) + (", ..." if len(names) > 16 else "")
    return text + (f" or an integer in 0..{(1 << self.width) - 1}" if self.table.numbered else "")
