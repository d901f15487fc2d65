"""Operands of RISC-V in the template of a row: registers, bases of addresses, control registers, vector types.

machine/assembler/holes.py has numbers and words.
"""
from __future__ import annotations
from collections.abc import Sequence
from typing import Any

from tinyhw.errors import EncodeError
from tinyhw.isa.riscv64.table import regs, words
from tinyhw.machine.assembler.holes import Hole, NumberHole
from tinyhw.machine.assembler.reader import TextReader
from tinyhw.machine.ir.inst import Access, Reg

KINDS = {"x": "an integer register, such as a0", "f": "a float register, such as fa0"}

class NamedRegister(Hole):
  """A register. letter: of its bank (x, f, v).

  - count: contiguous registers from this one.
  - align: its number is a multiple of it.
  """

  def __init__(self, letter: str, letters: str, width: int, access: Access, count: int = 1, align: int = 1,
               early: bool = False):
    super().__init__(letters, width)
    self.letter, self.access, self.count, self.align, self.early = letter, access, count, align, early
    self.cls = regs.GROUPS[count] if letter == "v" else regs.LETTERS[letter]

  def read(self, reader: TextReader) -> list[Any]:
    found = regs.NUMBERS.get(reader.peek())
    if found is None or found[0] != self.letter: raise reader.refuse(self.wants())
    if not self.fits(found[1]): raise reader.refuse(self.wants(), close=True)
    reader.take()
    assert self.cls is not None
    return [regs.reg(self.cls, found[1])]

  def fits(self, index: int) -> bool: return index % self.align == 0 and index + self.count <= 32

  def show(self, values: Sequence[Any]) -> str:
    value = values[0]
    return regs.name(self.letter, value.index) if isinstance(value, Reg) and value.index is not None else str(value)

  def code(self, values: Sequence[Any]) -> int:
    value = values[0]
    assert self.cls is not None
    if isinstance(value, Reg) and value.index is None:
      raise EncodeError(f"wants {self.wants()}, got {value}; allocate registers first")
    if not isinstance(value, Reg) or value.cls.bank is not self.cls.bank or not self.fits(value.index or 0):
      raise EncodeError(f"wants {self.wants()}, got {value}")
    assert value.index is not None
    return value.index

  def operands(self, code: int) -> list[Any] | None:
    assert self.cls is not None
    return [regs.reg(self.cls, code)] if self.fits(code) else None

  def wants(self) -> str:
    if self.letter != "v": return KINDS[self.letter]
    text = "a vector register, v0 to v31"
    if self.count > 1: text = f"the first of {self.count} vector registers, v0 to v{32 - self.count}"
    return f"{text} in steps of {self.align}" if self.align > 1 else text

class Base(NamedRegister):
  """The register of an address, in parentheses: (a0)."""

  def __init__(self, letters: str, width: int): super().__init__("x", letters, width, Access.READ)

  def read(self, reader: TextReader) -> list[Any]:
    if not reader.skip("("): raise reader.refuse("( and a register")
    values = super().read(reader)
    if not reader.skip(")"): raise reader.refuse(")")
    return values

  def show(self, values: Sequence[Any]) -> str: return f"({super().show(values)})"

class SameNumber(NamedRegister):
  """A register whose number is in several fields."""

  def code(self, values: Sequence[Any]) -> int:
    code = super().code(values)
    return sum(code << shift for shift in range(0, self.width, self.width // len(self.letters)))

  def operands(self, code: int) -> list[Any] | None:
    found = super().operands(code & (1 << self.width // len(self.letters)) - 1)
    return found if found is not None and self.code(found) == code else None

class MaskRegister(Hole):
  """v0, as the mask of an instruction: v0.t, or v0 as a source of bits. It has no field."""
  cls, fixed = regs.V, 0

  def __init__(self, text: str):
    super().__init__("", 0)
    self.text, self.names = text, ("mask",)

  def read(self, reader: TextReader) -> list[Any]:
    if not reader.skip(self.text): raise reader.refuse(self.text, reader.peek()[:1] == "v")
    return [regs.V0]

  def show(self, values: Sequence[Any]) -> str:
    return self.text if values[0] == regs.V0 else f"{values[0]}{self.text[2:]}"

  def code(self, values: Sequence[Any]) -> int:
    if values[0] != regs.V0: raise EncodeError(f"wants v0, got {values[0]}")
    return 0

  def operands(self, code: int) -> list[Any] | None: return [regs.V0]
  def wants(self) -> str: return self.text

class Offset(NumberHole):
  """The offset of an address in bytes; it may be left out: (a0) is 0(a0)."""

  def __init__(self, letters: str, width: int): super().__init__(letters, width, True)

  def read(self, reader: TextReader) -> list[Any]: return [0] if reader.peek() == "(" else super().read(reader)

class NoOffset(Hole):
  """An offset that may be written, but only as 0."""

  def __init__(self, letters: str, width: int):
    super().__init__("", 0)
    self.names = ()

  def read(self, reader: TextReader) -> list[Any]:
    start, value = reader.at, reader.number()
    if value not in (None, 0): raise reader.refuse("no offset", True, start)
    return []

  def show(self, values: Sequence[Any]) -> str: return ""
  def code(self, values: Sequence[Any]) -> int: return 0
  def operands(self, code: int) -> list[Any] | None: return []
  def wants(self) -> str: return "no offset"

class ControlRegister(Hole):
  """A control and status register by name, or its number. Its operand is the number."""
  NAMES = {code: name for name, code in words.CONTROL.items()}

  def read(self, reader: TextReader) -> list[Any]:
    code = words.CONTROL.get(reader.peek())
    if code is not None:
      reader.take()
      return [code]
    start, value = reader.at, reader.number()
    if not isinstance(value, int): raise reader.refuse(self.wants(), start=start)
    if not 0 <= value < 1 << self.width: raise reader.refuse(self.wants(), True, start)
    return [value]

  def show(self, values: Sequence[Any]) -> str: return self.NAMES.get(values[0], str(values[0]))

  def code(self, values: Sequence[Any]) -> int:
    if not isinstance(values[0], int) or not 0 <= values[0] < 1 << self.width:
      raise EncodeError(f"wants {self.wants()}, got {values[0]}")
    return values[0]

  def operands(self, code: int) -> list[Any] | None: return [code]
  def wants(self) -> str: return "a control register such as fcsr or vlenb, or its number in 0..4095"

class VectorType(Hole):
  """The element size, the registers of a group and the policies: e32, m1, ta, ma. Its operand is the code."""

  def read(self, reader: TextReader) -> list[Any]:
    start, value = reader.at, reader.number()
    if isinstance(value, int):
      if not 0 <= value < 1 << self.width: raise reader.refuse(self.wants(), True, start)
      return [value]
    code = self.choice(reader, words.ELEMENTS) << 3
    for names, shift in ((words.GROUPS, 0), (("tu", "ta"), 6), (("mu", "ma"), 7)):
      if not reader.skip(","): raise reader.refuse("a comma")
      code |= self.choice(reader, names) << shift
    return [code]

  def choice(self, reader: TextReader, names: Sequence[str | None]) -> int:
    found = reader.peek()
    if not found or found not in names: raise reader.refuse(", ".join(n for n in names if n))
    reader.take()
    return names.index(found)

  def show(self, values: Sequence[Any]) -> str: return words.vtype_text(values[0]) or str(values[0])

  def code(self, values: Sequence[Any]) -> int:
    if not isinstance(values[0], int) or not 0 <= values[0] < 1 << self.width:
      raise EncodeError(f"wants {self.wants()}, got {values[0]}")
    return values[0]

  def operands(self, code: int) -> list[Any] | None: return [code]
  def wants(self) -> str: return f"a vector type such as e32, m1, ta, ma, or an integer in 0..{(1 << self.width) - 1}"
