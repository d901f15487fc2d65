"""Instructions to bytes. An operand that does not fit is refused, with the allowed ones."""
from __future__ import annotations
from typing import Any

import pytest

from tinyhw.errors import EncodeError
from tinyhw.isa.sass.asm.encode import encode
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.control import Control
from tinyhw.isa.sass.table.table import build, table
from tinyhw.machine.ir.inst import Reg

def r(index: int, units: int = 1) -> Reg: return regs.reg(regs.R[units], index)

def test_an_instruction_with_its_control_word() -> None:
  inst = build(table("sm_90")["FFMA/223"], r(8), r(8), r(9), r(10))
  assert encode(inst, Control(4, False, wait=4)).hex() == int("004fc8000000000a0000000908087223",
                                                              16).to_bytes(16, "little").hex()

@pytest.mark.parametrize("key,operands,others,why", [
  ("FADD/221", (r(0), r(1), 5), {}, "FADD/221: operand b wants a R register, got 5"),
  ("FADD/221", (r(0), r(1), Reg(regs.R[1], 3)), {}, "FADD/221: operand b is virtual: %3:R"),
  ("FADD/221", (r(0), r(1), r(2, 2)), {}, "FADD/221: operand b wants a R register, got R2 of class Rx2"),
  ("FADD/221", (r(0), r(1), regs.reg(regs.UR[1], 2)), {}, "FADD/221: operand b wants a R register, got UR2 of class "
   "UR"),
  ("FADD/221", (r(0), r(1), r(2)), {"fmt": 1}, "FADD/221 has no fmt; it has a_neg"),
  ("FADD/221", (r(0), r(1)), {}, "FADD/221 takes 3 operands (d, a, b), got 2"),
  ("FADD/221", (r(0), r(1), r(2)), {"rnd": "UP"}, "FADD/221: rnd is one of RM, RP, RZ, got UP"),
  ("FSETP/20b", (regs.PT, regs.PT, r(1), r(2), regs.PT), {"bool": "AND"}, "FSETP/20b: fcmp must be given: F, LT"),
  ("ULDC/ab9", (regs.reg(regs.UR[1], 63), 0, 0), {"csize": ""}, "ULDC/ab9: operand ud: sm_90 has no UR63"),
  ("LDS/984", (r(0), r(1), 1 << 23), {"size": ""}, "LDS/984: operand o must be in -8388608..8388607, got 8388608"),
  ("BRA/947", (regs.PT, 6), {}, "BRA/947: operand t must be a multiple of 4, got 0x6"),
  ("STG/986", (regs.reg(regs.UR[1], 4), r(2, 2), 0, r(4, 2)), {"size": "128"},
   "operand b wants a group of 4 R registers, got R4 of class Rx2"),
])
def test_refusals(key: str, operands: tuple[Any, ...], others: dict[str, Any], why: str) -> None:
  with pytest.raises(EncodeError) as caught: encode(build(table("sm_90")[key], *operands, **others))
  assert why in caught.value.message

def test_a_modifier_without_a_meaning() -> None:
  inst = build(table("sm_90")["LDG/981"], r(0), regs.reg(regs.UR[1], 4), r(2, 2), 0, size="")
  inst.operands[inst.row.isa.index["size"]] = 7
  with pytest.raises(EncodeError, match="modifier size is one of 0 U8, 1 S8, 2 U16, 3 S16, 4, 5 64, 6 128, got 7"):
    encode(inst)
