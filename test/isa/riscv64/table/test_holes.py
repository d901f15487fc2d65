"""Operands of RISC-V's templates: what they read, write and encode."""
from __future__ import annotations
from typing import Any

import pytest

from tinyhw.errors import EncodeError
from tinyhw.isa.riscv64.table import regs
from tinyhw.isa.riscv64.table.holes import (
  Base, ControlRegister, MaskRegister, NamedRegister, NoOffset, Offset, SameNumber, VectorType)
from tinyhw.machine.assembler.holes import Hole
from tinyhw.machine.assembler.reader import TextReader, TextMismatch, tokens
from tinyhw.machine.ir.inst import Access, Reg

def register(letter: str, count: int = 1, align: int = 1) -> NamedRegister:
  return NamedRegister(letter, "d", 5, Access.READ, count, align)

CASES: list[tuple[Hole, str, int]] = [
  (register("x"), "a0", 10), (register("f"), "fs0", 8), (register("v"), "v31", 31), (register("v", 4, 4), "v28", 28),
  (Base("n", 5), "(sp)", 2), (SameNumber("f", "mn", 10, Access.READ), "fa1", 11 << 5 | 11),
  (MaskRegister("v0.t"), "v0.t", 0),
  (Offset("i", 12), "-4", 4092), (ControlRegister("c", 12), "vlenb", 0xc22), (ControlRegister("c", 12), "768", 768),
  (VectorType("i", 11), "e16, mf2, ta, mu", 0x4f), (VectorType("i", 11), "4", 4), (NoOffset("z", 0), "", 0)]

@pytest.mark.parametrize("hole,text,code", CASES)
def test_text_and_bits(hole: Hole, text: str, code: int) -> None:
  values = hole.read(TextReader(tokens(text)))
  assert hole.show(values) == text and hole.code(values) == code and hole.operands(code) == values

@pytest.mark.parametrize("hole,text,reason", [
  (register("x"), "fa0", "an integer register, such as a0, got fa0"),
  (register("v", 2, 2), "v3", "in steps of 2, got v3"),
  (register("v", 3), "v30", "v0 to v29, got v30"), (Base("n", 5), "(a0", "), got the end of the line"),
  (MaskRegister("v0.t"), "v1.t", "v0.t, got v1.t"), (NoOffset("z", 0), "4", "no offset, got 4"),
  (ControlRegister("c", 12), "mstatus", "a control register such as fcsr or vlenb"),
  (VectorType("i", 11), "e12, m1, ta, ma", "e8, e16, e32, e64, got e12")])
def test_refused_texts(hole: Hole, text: str, reason: str) -> None:
  with pytest.raises(TextMismatch) as caught: hole.read(TextReader(tokens(text)))
  assert reason in caught.value.message

@pytest.mark.parametrize("hole,value", [(register("x"), regs.V0), (register("v"), Reg(regs.V, 3)), (register("x"), 5),
                                        (MaskRegister("v0"), regs.reg(regs.V, 1)), (ControlRegister("c", 12), 4096),
                                        (VectorType("i", 10), 1024), (register("v", 2, 2), regs.reg(regs.V, 3))])
def test_refused_operands(hole: Hole, value: Any) -> None:
  with pytest.raises(EncodeError, match="wants"): hole.code([value])

def test_a_missing_offset_is_zero() -> None: assert Offset("i", 12).read(TextReader(tokens("(a0)"))) == [0]
