"""Operands of AArch64 in the template of a row: registers and lists of registers.

machine/assembler/holes.py has numbers and words. Holes that need more than a table are in immediates.py.
"""
from __future__ import annotations
from collections.abc import Sequence
from typing import Any

from tinyhw.errors import EncodeError
from tinyhw.isa.arm64.table import regs
from tinyhw.machine.assembler.holes import Hole
from tinyhw.machine.assembler.reader import TextReader
from tinyhw.machine.ir.inst import Access, Reg

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
