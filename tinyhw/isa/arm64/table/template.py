"""The notation of AArch64's operands in the template of a row. table.py explains it."""
from __future__ import annotations
import re
from collections.abc import Callable, Sequence
from typing import Any

from tinyhw.isa.arm64.table.holes import Following, RegisterHole, RegisterList
from tinyhw.isa.arm64.table.immediates import (
  BitField, ByteMask, TwoFloats, DupMask, Float, Mask, Moved, Shifted, SystemRegister)
from tinyhw.isa.arm64.table.words import TABLES
from tinyhw.machine.assembler.holes import Hole, NumberHole
from tinyhw.machine.assembler.template import Element, Notation, SameRegister, added
from tinyhw.machine.ir.inst import Access

REGISTER = re.compile(r"([BHSDQWXVZP])([a-z]{1,3})(\|sp|\|30)?(?:\*(\d))?(?:\+(\d))?(?:\.(\w+))?([=+]?)(?![\w<:])")
LIST = re.compile(r"\{ ([VZ])([a-z])\.(\w+)(?:\*(\d))?([=+]?) \}")
ACCESS = {"": Access.READ, "=": Access.WRITE, "+": Access.BOTH}

# Numbers that are no tables of words: their name, without digits at its end -> the hole, from letters, width and digits
NUMBERS: dict[str, Callable[[str, int, int], Hole]] = {
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

class Amount(NumberHole):
  """The shift of an extended register: 0 to 4, although its field has three bits."""

  def __init__(self, letters: str, width: int):
    super().__init__(letters, width)
    self.high = 4

  def operands(self, code: int) -> list[Any] | None: return [code] if code <= self.high else None

def list_of(found: re.Match[str], widths: dict[str, int], holes: list[Hole]) -> Element:
  letter, field, suffix, count, access = found.groups()
  return added(RegisterList(letter.lower(), field, widths[field], suffix, int(count or 1), ACCESS[access]), holes)

def register_of(found: re.Match[str], widths: dict[str, int], holes: list[Hole]) -> Element:
  letter, letters, stack, step, add, suffix, access = found.groups()
  width = sum(widths.get(c, 0) for c in letters)
  assert width, f"{found[0]}: the word has no field {letters}"
  letter, suffix = letter.lower(), suffix or ""
  if len(letters) > 1:
    return added(Repeated(letter, letters, width, suffix, stack == "|sp", ACCESS[access]), holes)
  for at, earlier in enumerate(holes):
    if earlier.letters == letters:
      following = Following(letter, letters, width, suffix, int(step or 1), int(add or 0))
      return SameRegister(at, following.of, following.add)
  return added(RegisterHole(letter, letters, width, suffix, stack == "|sp", ACCESS[access], int(step or 1),
                            stack == "|30"), holes)

NOTATION = Notation(((LIST, list_of), (REGISTER, register_of)), TABLES, NUMBERS)
