"""Registers of AArch64 in templates: their names, lists, and registers that two fields or two places share."""
from __future__ import annotations
from typing import Any

import pytest

from tinyhw.isa.arm64.table import regs
from tinyhw.isa.arm64.table.template import NOTATION, Amount, Repeated
from tinyhw.machine.assembler.template import template_of
from tinyhw.machine.ir.inst import Access, Reg

WIDTHS = {"d": 5, "n": 5, "m": 5}

@pytest.mark.parametrize("text,letters,names", [
  ("Wd=, Xn|sp, Xm|30", "wxx", ["x1", "sp", "x2"]), ("{ Vd.4s*2= }, [Xn|sp]", "vx", ["v1*2", "sp"]),
  ("Zd.s+, Bn, Vm.d", "zbv", ["z1", "v3", "v2"])])
def test_names_choose_class_and_part(text: str, letters: str, names: list[str]) -> None:
  holes: Any = template_of(text, WIDTHS, NOTATION).holes
  assert "".join(hole.letter for hole in holes) == letters
  values = [hole.operands(code)[0] for hole, code in zip(holes, (1, 31 if names[1] == "sp" else 3, 2))]
  assert [str(value) for value in values] == names and holes[0].access is not Access.READ

def test_a_register_that_stands_twice_is_one_operand() -> None:
  template = template_of("Zd.s=, Zd.s, Zd+1.s", WIDTHS, NOTATION)
  assert len(template.holes) == 1 and template.show([[regs.reg(regs.Z, 31)]]) == "z31.s, z31.s, z0.s"
  assert template.show([[Reg(regs.Z, 4)]]) == "%4:z.s, %4:z+0, %4:z+1"

def test_a_register_in_two_fields() -> None:
  hole = Repeated("v", "nm", 10, "4s", False, Access.READ)
  assert hole.code([regs.reg(regs.V, 3)]) == 3 << 5 | 3 and hole.operands(3 << 5 | 4) is None

def test_the_shift_of_an_extended_register_is_at_most_4() -> None:
  assert Amount("s", 3).operands(4) == [4] and Amount("s", 3).operands(5) is None
