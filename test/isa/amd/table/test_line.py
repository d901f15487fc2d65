"""Parsing of lines of the table."""
from __future__ import annotations

import pytest

from tinyhw.isa.amd.table.form import Generation
from tinyhw.isa.amd.table.line import TableLine, Token, cell, limited
from tinyhw.machine.ir.inst import Access

TEXT = "v_fma_f32 v_fused@rdna4    1cb . 213 -   f32= f32[vc] src2:f32?   clamp op_sel@cdna pipe:trans@rdna3"

def test_cells() -> None:
  assert [cell("1cb . vop2:13 -", i, "vop3") for i in range(4)] == [("vop3", 0x1cb), ("vop3", 0x1cb), ("vop2", 0x13),
                                                                    ("vop3", -1)]

def test_words_of_some_generations() -> None:
  assert [limited("omod@rdna", Generation(a)) for a in ("gfx942", "gfx1100", "gfx1200")] == ["", "omod", "omod"]

@pytest.mark.parametrize("arch,op,words,pipe", [
  ("gfx942", 0x1cb, {"clamp", "op_sel"}, "valu"), ("gfx1100", 0x213, {"clamp"}, "trans"),
  ("gfx1200", -1, {"clamp"}, "valu")])
def test_a_line_as_a_generation_has_it(arch: str, op: int, words: set[str], pipe: str) -> None:
  line = TableLine(TEXT, "vop3 valu", Generation(arch))
  assert (line.format, line.op, line.words, line.pipe) == ("vop3", op, words, pipe)
  assert line.mnemonic == ("v_fused" if arch == "gfx1200" else "v_fma_f32")
  assert line.operands == [Token("vdst", Access.WRITE, "", "f32", False),
                           Token("src0", Access.READ, "vc", "f32", False),
                           Token("src2", Access.READ, "", "f32", True)]

def test_an_operand_that_is_none_is_told() -> None:
  with pytest.raises(AssertionError, match="s_x: b32! is no operand"):
    TableLine("s_x  1 . . .  b32!", "sop1 salu", Generation("gfx942"))
