"""Operands of a template: what they read, write and encode."""
from __future__ import annotations
from typing import Any

import pytest

from tinyhw.errors import EncodeError
from tinyhw.isa.arm64.table import regs
from tinyhw.isa.arm64.table.holes import RegisterHole, RegisterList
from tinyhw.machine.assembler.holes import Hole
from tinyhw.machine.assembler.reader import TextReader, TextMismatch, tokens
from tinyhw.machine.ir.inst import Access

def general(stack: bool = False) -> RegisterHole: return RegisterHole("x", "n", 5, "", stack, Access.READ)

CASES: list[tuple[Hole, str, int]] = [
  (general(), "x7", 7), (general(), "xzr", 31), (general(True), "sp", 31), (RegisterHole("v", "d", 5, "4s", False,
                                                                                     Access.WRITE), "v9.4s", 9),
  (RegisterHole("p", "g", 3, "", False, Access.READ), "p7", 7), (RegisterHole("x", "m", 4, "", False, Access.READ, 2),
                                                                 "x6", 3),
  (RegisterList("v", "d", 5, "8h", 2, Access.READ), "{ v31.8h, v0.8h }", 31),
  (RegisterList("z", "d", 5, "s", 3, Access.READ), "{ z4.s - z6.s }", 4)]

@pytest.mark.parametrize("hole,text,code", CASES)
def test_text_and_bits(hole: Hole, text: str, code: int) -> None:
  values = hole.read(TextReader(tokens(text)))
  assert hole.show(values) == text and hole.code(values) == code and hole.operands(code) == values

@pytest.mark.parametrize("hole,text,reason", [
  (general(), "sp", "x0 to x30 or xzr, got sp"), (general(True), "xzr", "x0 to x30 or sp, got xzr"), (general(), "x31",
                                                                                                      "got x31"),
  (general(), "w3", "got w3"),
  (RegisterList("v", "d", 5, "8h", 2, Access.READ), "{ v0.8h, v2.8h }", "a list of 2 contiguous registers"),
  (RegisterList("v", "d", 5, "8h", 2, Access.READ), "{ v0.8h; }", "a comma or }, got ;")])
def test_refused_texts(hole: Hole, text: str, reason: str) -> None:
  with pytest.raises(TextMismatch) as caught: hole.read(TextReader(tokens(text)))
  assert reason in caught.value.message

@pytest.mark.parametrize("hole,value", [(general(), regs.SP), (general(), regs.reg(regs.V, 0)), (general(), 5),
                                        (RegisterList("v", "d", 5, "8h", 2, Access.READ), regs.SP)])
def test_refused_operands(hole: Hole, value: Any) -> None:
  with pytest.raises(EncodeError, match="wants"): hole.code([value])

def test_a_field_may_not_have_register_31() -> None:
  hole = RegisterHole("x", "m", 5, "", False, Access.READ, none=True)
  assert hole.operands(31) is None and hole.wants() == "x0 to x30" and not hole.fits(31) and not hole.fits(32)
