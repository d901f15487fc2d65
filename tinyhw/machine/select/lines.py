"""Lines of assembly with named registers, as rules of selection have them: `fmla v%d:c.4s, v%a.4s, v%b.s[1]`.

A line is parsed once by the assembler, with numbers in place of the names. Selection then fills in virtual registers.
`%d:c` is a register that is read as c and written as d. `.%block` is a block.
"""
from __future__ import annotations
import re
from collections.abc import Callable
from typing import Any

from tinyhw.machine.ir.inst import Inst, MInst, Reg, RegClass

class CodeLine:
  """A parsed line: the row, its operands (the names of registers and blocks, and numbers), and the old values of those
  that are read and written."""

  def __init__(self, row: Inst, operands: list[Any], olds: tuple[str, ...]):
    self.row, self.operands, self.olds = row, operands, olds
    self.classes: dict[str, RegClass] = {name.text: o.cls for name, o in zip(operands, row.operands)
                                         if isinstance(name, Name) and o.cls is not None}

  def made(self, values: dict[str, Any], origin: Any, arguments: tuple[list[Reg], ...] = ()) -> MInst:
    """The instruction with these registers."""
    operands = [values[o.text] if isinstance(o, Name) else o for o in self.operands]
    return MInst(self.row, operands, origin, arguments, "", tuple(values[name] for name in self.olds))

class Name:
  """The name of a register or block in a line."""
  __slots__ = ("text",)
  def __init__(self, text: str): self.text = text

class LineReader:
  """The reader of an ISA's lines.

  - parse: its assembler.
  - letters: of registers in the text.
  - first: the number of the register that stands for the first name. Registers that lines use by themselves (zero, a
    stack pointer) have numbers below it, or far above it.
  - fixed: the name of the value in an operand that the hardware fixes (a mask register); selection gives it.
  """

  def __init__(self, parse: Callable[[str], MInst], letters: str, first: int = 0, fixed: str = ""):
    self.parse, self.first, self.fixed = parse, first, fixed
    self.name = re.compile(rf"\b([{letters}])%(\w+?)(?::(\w+))?\b(?![:\w])")

  def __call__(self, text: str) -> CodeLine:
    """Parse a line."""
    names: dict[str, int] = {}
    olds: dict[str, str] = {}
    def numbered(found: re.Match[str]) -> str:
      letter, name, old = found.groups()
      if old: olds[name] = old
      return f"{letter}{names.setdefault(name, self.first + len(names))}"
    inst = self.parse(self.name.sub(numbered, text).replace(".%", "._"))
    by_number = {number: Name(name) for name, number in names.items()}
    operands: list[Any] = []
    for value, operand in zip(inst.operands, inst.row.operands):
      if operand.fixed is not None: operands.append(Name(self.fixed))
      elif isinstance(value, Reg) and value.index in by_number: operands.append(by_number[value.index])
      elif isinstance(value, str): operands.append(Name(value[2:]))
      else: operands.append(value)
    tied = [operands[k].text for k in inst.row.both]
    assert set(tied) == set(olds), f"{text}: {tied} are read and written, old values are named for {list(olds)}"
    return CodeLine(inst.row, operands, tuple(olds[name] for name in tied))
