"""The notation of RISC-V's operands in the template of a row. table.py explains it."""
from __future__ import annotations
import re
from collections.abc import Callable

from tinyhw.isa.riscv64.table.holes import (
  Base, ControlRegister, MaskRegister, NamedRegister, NoOffset, Offset, SameNumber, VectorType)
from tinyhw.isa.riscv64.table.words import TABLES
from tinyhw.machine.assembler.holes import Hole
from tinyhw.machine.assembler.template import Element, Notation, added
from tinyhw.machine.ir.inst import Access

REGISTER = re.compile(r"([XFV])([a-z]{1,3})(?:\*(\d))?(?:/(\d))?(!?)([=+]?)(?![\w<:])")
BASE = re.compile(r"\[X([a-z])\]")
MASK = re.compile(r"v0(?:\.t)?")
ACCESS = {"": Access.READ, "=": Access.WRITE, "+": Access.BOTH}

NUMBERS: dict[str, Callable[[str, int, int], Hole]] = {
  "offset": lambda letters, width, bits: Offset(letters, width),
  "no": lambda letters, width, bits: NoOffset(letters, width),
  "csr": lambda letters, width, bits: ControlRegister(letters, width),
  "vtype": lambda letters, width, bits: VectorType(letters, width)}

def register_of(found: re.Match[str], widths: dict[str, int], holes: list[Hole]) -> Element:
  letter, letters, count, align, early, access = found.groups()
  width = sum(widths.get(c, 0) for c in letters)
  assert width, f"{found[0]}: the word has no field {letters}"
  kind = SameNumber if len(letters) > 1 else NamedRegister
  hole = kind(letter.lower(), letters, width, ACCESS[access], int(count or 1), int(align or 1), bool(early))
  return added(hole, holes)

def base_of(found: re.Match[str], widths: dict[str, int], holes: list[Hole]) -> Element:
  return added(Base(found[1], widths[found[1]]), holes)

def mask_of(found: re.Match[str], widths: dict[str, int], holes: list[Hole]) -> Element:
  return added(MaskRegister(found[0]), holes)

NOTATION = Notation(((REGISTER, register_of), (BASE, base_of), (MASK, mask_of)), TABLES, NUMBERS)
