"""The base of all layers of selection: emit instructions, and bring operands into a form that an instruction takes."""
from __future__ import annotations
from typing import Any

from tinyhw.isa.sass.macros.macros import CLASSES, letters_of, macro_of, make
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.form import Generation
from tinyhw.machine.ir.inst import Function, MInst, Reg, RegClass
from tinyhw.machine.select.macros import Macro
from tinyhw.machine.select.selection import Selection

FULL = 0xffffffff
COPY = {1: "move", 2: "move64", 4: "move128"}  # by count of registers

class Part(Selection):
  """One selection: its instructions and operands."""

  def __init__(self, generation: Generation, function: Function):
    super().__init__(function)
    self.generation = generation
    self.parts: dict[tuple[RegClass, Reg, int], regs.Element] = {}

  # ***** instructions *****

  def instruction(self, what: str | Macro, *operands: Any, ties: tuple[Reg, ...] = ()) -> MInst:
    """Return a macro over these operands.

    Constants without a form are moved into registers, in order, until a form fits.
    """
    values = [value if isinstance(value, Reg) else self.fitting(what, k, value) for k, value in enumerate(operands)]
    made = make(self.generation.arch, what, values, self.new, ties)
    for k, value in enumerate(values):
      if made is not None: return made
      letters = self.letters(what, k)
      if isinstance(value, Reg) or letters == "i": continue
      values[k] = self.in_register(value, int(letters[1]))
      made = make(self.generation.arch, what, values, self.new, ties)
    assert made is not None, f"macro {macro_of(self.generation.arch, what).name} has no form with registers: {values}"
    return made

  def macro(self, name: str) -> Macro: return macro_of(self.generation.arch, name)

  def letters(self, what: str | Macro, k: int) -> str:
    """Return the class of an operand of a macro."""
    return letters_of(self.generation.arch, what)[k]

  def fitting(self, what: str | Macro, k: int, value: int) -> Any:
    """Return a constant in the form of operand number k of a macro. A 32-bit zero is a register."""
    letters = self.letters(what, k)
    if letters == "p": return self.truth(value)
    if letters == "x1" and not value & FULL: return regs.RZ
    return self.in_register(value, int(letters[1])) if letters[0] == "v" else value

  def emit(self, what: str | Macro, *operands: Any, ties: tuple[Reg, ...] = ()) -> None:
    inst = self.instruction(what, *operands, ties=tuple(map(self.whole, ties)))
    inst.origin = self.origin
    self.block.insts.append(inst)

  def op(self, cls: RegClass, what: str | Macro, *sources: Any) -> Reg:
    """Emit an instruction that writes its first operand, a new register."""
    dst = self.new(cls)
    self.emit(what, dst, *sources)
    return dst

  def once(self, cls: RegClass, name: str, *sources: Any) -> Reg:
    """Emit the same, once in a block."""
    key = (name, *sources)
    if key not in self.made: self.made[key] = self.op(cls, name, *sources)
    return self.made[key]

  # ***** operands *****

  def part(self, cls: RegClass, group: Reg, at: int) -> Reg:
    """Return registers of a group, from number `at` on, without an instruction; the same object each time."""
    if isinstance(group, regs.Element): at, group = group.at + at, group.group
    if group.cls is cls: return group
    found = self.parts.get((cls, group, at))
    if found is None: found = self.parts[cls, group, at] = regs.Element(cls, group, at)
    return found

  def whole(self, value: Reg) -> Reg:
    """Copy an element of a group into registers of its own, as jumps and updates of registers require."""
    return self.op(value.cls, COPY[value.cls.units], value) if isinstance(value, regs.Element) else value

  def in_register(self, value: Any, units: int) -> Reg:
    """Return a value in registers. A constant is made once in a block."""
    if isinstance(value, Reg): return value
    if units == 2: return self.once(regs.R[2], "pack64", value & FULL, value >> 32 & FULL)
    assert units == 1, f"a constant of {units} registers"
    return self.once(regs.R[1], "move", value & FULL)

  def truth(self, value: int) -> Reg:
    """Return a constant bool as a predicate."""
    return regs.PT if value else self.once(CLASSES["p"], "p_clear")

  def half(self, value: Any, which: str) -> Any:
    """Return the low or high half of 64 bits."""
    if not isinstance(value, Reg): return value >> (32 if which == "high" else 0) & FULL
    return self.part(regs.R[1], value, 1 if which == "high" else 0)
