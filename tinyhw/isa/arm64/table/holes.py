"""Operands in the template of a row: registers, lists of registers, numbers and words.

A hole has a field of the instruction word (`letters`, most significant first) and one or several operands of the MInst.
It reads them from text (`read`), writes the text (`show`), and converts them to the bits of the field (`code`) and back
(`operands`). Holes that need more than a table are in immediates.py.
"""
from __future__ import annotations
from collections.abc import Sequence
from typing import Any

from tinyhw.errors import EncodeError
from tinyhw.isa.arm64.table import regs
from tinyhw.isa.arm64.table.reader import TextReader
from tinyhw.isa.arm64.table.words import TABLES
from tinyhw.machine.ir.inst import Access, Block, Reg, RegClass

class Hole:
  """An operand of the text.

  - width: bits of its field.
  - cls: the class of its registers, None for a number.
  - names: names of its operands in the row, one for each.
  - default: the code that an optional part has if the text leaves it out.
  """
  cls: RegClass | None = None
  access = Access.READ
  default = 0

  def __init__(self, letters: str, width: int):
    self.letters, self.width = letters, width
    self.names: tuple[str, ...] = (letters,)

  def read(self, reader: TextReader) -> list[Any]:
    """The operands from the text. Raises Unfit."""
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

# ---- registers

class RegisterHole(Hole):
  """A register. letter: that of its name (w, x, b, h, s, d, q, v, z, p).

  - suffix: its arrangement, such as "4s".
  - stack: 31 is sp, else xzr; none: 31 is neither.
  - step: the distance of numbers.
  """

  def __init__(self, letter: str, letters: str, width: int, suffix: str, stack: bool, access: Access,
               step: int = 1, none: bool = False):
    super().__init__(letters, width)
    self.letter, self.suffix, self.stack, self.access, self.step = letter, suffix, stack, access, step
    self.none = none
    if letter in "wx" and not stack: self.default = regs.ZERO
    self.cls = regs.X if letter in "wx" else {"z": regs.Z, "p": regs.P}.get(letter, regs.V)
    self.last = min(step * ((1 << width) - 1), regs.COUNTS[letter] - 1 + (letter in "wx" and not none))

  def read(self, reader: TextReader) -> list[Any]:
    head, _, suffix = reader.peek().partition(".")
    found = regs.parse(head)
    if found is None or found[0] != self.letter or suffix != self.suffix: raise reader.refuse(self.wants())
    index = found[1]
    if not self.fits(index):
      raise reader.refuse(self.wants(), close=True)
    reader.take()
    assert self.cls is not None
    return [regs.reg(self.cls, index)]

  def fits(self, index: int) -> bool:
    """Whether the field has this number."""
    if self.letter in "wx" and index >= regs.ZERO: return not self.none and (index == regs.STACK) == self.stack
    return index <= self.last and index % self.step == 0

  def show(self, values: Sequence[Any]) -> str:
    text = self.text_of(values[0])
    return f"{text}.{self.suffix}" if self.suffix else text

  def text_of(self, value: Any) -> str:
    if not isinstance(value, Reg): return str(value)
    return str(value) if value.index is None else regs.name(self.letter, value.index)

  def code(self, values: Sequence[Any]) -> int:
    value = values[0]
    if isinstance(value, Reg) and value.index is None:
      raise EncodeError(f"wants {self.wants()}, got {value}; allocate registers first")
    if not isinstance(value, Reg) or value.cls.bank is not self.bank or not self.fits(value.index or 0):
      raise EncodeError(f"wants {self.wants()}, got {value}")
    assert value.index is not None
    index = regs.ZERO if value.index == regs.STACK and self.letter in "wx" else value.index
    return index // self.step

  @property
  def bank(self) -> Any:
    assert self.cls is not None
    return self.cls.bank

  def operands(self, code: int) -> list[Any] | None:
    index = code * self.step
    if self.none and index == regs.ZERO: return None
    if self.stack and index == regs.ZERO: index = regs.STACK
    return [regs.reg(self.cls, index)] if self.cls is not None and index < len(regs.REGISTERS[self.cls]) else None

  def wants(self) -> str:
    dot = "." + self.suffix if self.suffix else ""
    last = min(self.last, 30 if self.letter in "wx" else 31)
    text = f"{self.letter}0{dot} to {self.letter}{last}{dot}" + (f" in steps of {self.step}" if self.step > 1 else "")
    if self.letter in "wx" and self.last >= regs.ZERO: text += f" or {regs.name(self.letter, regs.ZERO + self.stack)}"
    return text

class Following(RegisterHole):
  """The register after that of another hole: v31 is followed by v0. It is no operand of its own."""

  def __init__(self, letter: str, letters: str, width: int, suffix: str, step: int, add: int):
    super().__init__(letter, letters, width, suffix, False, Access.READ, step)
    self.add, self.names = add, ()

  def of(self, first: int) -> str:
    text = regs.name(self.letter, (first + self.add) % regs.COUNTS[self.letter]) if self.letter not in "wx" else \
      regs.name(self.letter, first + self.add)
    return f"{text}.{self.suffix}" if self.suffix else text

class RegisterList(Hole):
  """`{ v0.4s, v1.4s }`: contiguous registers; those of SVE as a range, `{ z0.s - z2.s }`, if they are more than two."""

  def __init__(self, letter: str, letters: str, width: int, suffix: str, count: int, access: Access):
    super().__init__(letters, width)
    self.letter, self.suffix, self.count, self.access = letter, suffix, count, access
    self.cls = regs.LISTS[letter.upper()][count - 1]

  def read(self, reader: TextReader) -> list[Any]:
    start = reader.at
    if not reader.skip("{"): raise reader.refuse(self.wants())
    indices = [self.one(reader)]
    while not reader.skip("}"):
      if reader.skip("-"):
        last = self.one(reader)
        indices += [(indices[-1] + k) % 32 for k in range(1, (last - indices[-1]) % 32 + 1)]
      elif reader.skip(","): indices.append(self.one(reader))
      else: raise reader.refuse("a comma or }")
    if indices != [(indices[0] + k) % 32 for k in range(self.count)]: raise reader.refuse(self.wants(), True, start)
    assert self.cls is not None
    return [regs.reg(self.cls, indices[0])]

  def one(self, reader: TextReader) -> int:
    head, _, suffix = reader.peek().partition(".")
    found = regs.parse(head)
    if found is None or found[0] != self.letter or suffix != self.suffix: raise reader.refuse(self.wants())
    reader.take()
    return found[1]

  def show(self, values: Sequence[Any]) -> str:
    first = values[0].index if isinstance(values[0], Reg) else None
    if first is None: return f"{{ {values[0]} }}"
    names = [f"{self.letter}{(first + k) % 32}.{self.suffix}" for k in range(self.count)]
    if self.letter == "z" and self.count > 2 and first + self.count <= 32: return f"{{ {names[0]} - {names[-1]} }}"
    return f"{{ {', '.join(names)} }}"

  def code(self, values: Sequence[Any]) -> int:
    value = values[0]
    if not isinstance(value, Reg) or value.cls.bank is not regs.VECTOR or value.index is None:
      raise EncodeError(f"wants {self.wants()}, got {value}")
    return value.index

  def operands(self, code: int) -> list[Any] | None:
    assert self.cls is not None
    return [regs.reg(self.cls, code)]

  def wants(self) -> str:
    assert self.cls is not None
    one = self.show([regs.reg(self.cls, 0)])
    return f"a list of {self.count} contiguous registers such as {one}" if self.count > 1 else f"a list such as {one}"

# ---- numbers

class Number(Hole):
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

class Label(Number):
  """The distance to a jump's target in bytes, or its block."""

  def read(self, reader: TextReader) -> list[Any]:
    text = reader.peek()
    if text[:1] == "." and len(text) > 1: return [reader.take()]
    return super().read(reader)

  def code(self, values: Sequence[Any]) -> int:
    if isinstance(values[0], Block): raise EncodeError("is a block; only encode_function knows where it is")
    return super().code(values)

class Words(Hole):
  """A word of a table in words.py. Its operand is the code."""

  def __init__(self, table: str, letters: str, width: int):
    super().__init__(letters, width)
    self.table = TABLES[table]
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
