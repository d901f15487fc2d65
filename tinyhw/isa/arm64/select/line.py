"""Lines of assembly with named registers, as rules have them: `fmla v%d:c.4s, v%a.4s, v%b.s[1]`.

A line is parsed once by the assembler, with numbers in place of the names. Selection then fills in virtual registers.
`%d:c` is a register that is read as c and written as d. `.%block` is a block.
"""
from __future__ import annotations
import re
from typing import Any

from tinyhw.isa.arm64.asm.syntax import parse
from tinyhw.isa.arm64.table import regs
from tinyhw.machine.ir.inst import Inst, MInst, Reg, RegClass
from tinyhw.threads import once

NAME = re.compile(r"\b([bhsdqvwx])%(\w+?)(?::(\w+))?\b(?![:\w])")

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

@once
def line(text: str) -> CodeLine:
  """Parse a line."""
  names: dict[str, int] = {}
  olds: dict[str, str] = {}
  def numbered(found: re.Match[str]) -> str:
    letter, name, old = found.groups()
    if old: olds[name] = old
    return f"{letter}{names.setdefault(name, len(names))}"
  inst = parse(NAME.sub(numbered, text).replace(".%", "._"))
  by_number = {number: Name(name) for name, number in names.items()}
  operands: list[Any] = []
  for value in inst.operands:
    if isinstance(value, Reg) and value.index is not None and value.index < regs.ZERO:
      operands.append(by_number[value.index])
    elif isinstance(value, str): operands.append(Name(value[2:]))
    else: operands.append(value)
  tied = [operands[k].text for k in inst.row.both]
  assert set(tied) == set(olds), f"{text}: {tied} are read and written, old values are named for {list(olds)}"
  return CodeLine(inst.row, operands, tuple(olds[name] for name in tied))

