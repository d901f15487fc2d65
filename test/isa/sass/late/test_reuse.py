"""The sources that stay in the reuse cache for the next instruction."""
from __future__ import annotations
import pytest

from tinyhw.isa.sass.asm.syntax import parse, show
from tinyhw.isa.sass.late.reuse import mark_reuse

@pytest.mark.parametrize("lines, marked", [
  (["FFMA R0, R4, R8, R0", "FFMA R1, R4, R9, R1"], ["FFMA R0, R4.reuse, R8, R0", "FFMA R1, R4, R9, R1"]),
  (["FFMA R0, R4, R8, R0", "FFMA R1, R4, R8, R1"], ["FFMA R0, R4.reuse, R8.reuse, R0", "FFMA R1, R4, R8, R1"]),
  # at another operand
  (["FFMA R0, R4, R8, R0", "FFMA R1, R8, R4, R1"], ["FFMA R0, R4, R8, R0", "FFMA R1, R8, R4, R1"]),
  # it writes the register
  (["FFMA R4, R4, R8, R0", "FFMA R1, R4, R9, R1"], ["FFMA R4, R4, R8, R0", "FFMA R1, R4, R9, R1"]),
  (["FADD R0, R4, R8", "IADD3 R1, R4, R9, RZ"], ["FADD R0, R4.reuse, R8", "IADD3 R1, R4, R9, RZ"]),
  # it waits
  (["FADD R0, R4, R8", "[B0-----:R-:W-:-:S01] FADD R1, R4, R9"], ["FADD R0, R4, R8", "FADD R1, R4, R9"]),
  # it may not be executed
  (["@P0 FADD R0, R4, R8", "FADD R1, R4, R9"], ["@P0 FADD R0, R4, R8", "FADD R1, R4, R9"]),
  (["FADD R0, R4, R8", "NOP", "FADD R1, R4, R9"], ["FADD R0, R4, R8", "NOP", "FADD R1, R4, R9"]),
  (["FADD R0, RZ, R8", "FADD R1, RZ, R9"], ["FADD R0, RZ, R8", "FADD R1, RZ, R9"]),
  (["DADD R0, R4, R8", "DADD R2, R4, R6"], ["DADD R0, R4, R8", "DADD R2, R4, R6"]),
])
def test_marks(lines: list[str], marked: list[str]) -> None:
  assert [show(inst, control) for inst, control in mark_reuse([parse(line, "sm_80") for line in lines])] == marked
