"""Registers and their names."""
from __future__ import annotations

from tinyhw.isa.sass.table import regs

def test_names() -> None:
  assert [str(regs.reg(cls, i)) for cls, i in ((regs.R[1], 3), (regs.R[2], 4), (regs.R[1], 255), (regs.UR[1], 255),
                                               (regs.P, 7), (regs.UP, 0),
                                               (regs.B, 6))] == ["R3", "R4", "RZ", "URZ", "PT", "UP0", "B6"]

def test_a_register_is_one_object() -> None:
  assert regs.reg(regs.R[1], 255) is regs.RZ and regs.NAMES["URZ"] == ("UR", 255)

def test_groups() -> None:
  assert [(regs.R[n].units, regs.R[n].align, regs.R[n].bits) for n in (1, 2, 4, 128)] == [(1, 1, 32), (2, 2, 64),
                                                                                          (4, 4, 128), (128, 8, 4096)]
