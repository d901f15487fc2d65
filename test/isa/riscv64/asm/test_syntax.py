"""Spellings of RISC-V assembly text, functions with labels, and errors."""
from __future__ import annotations
import random

import pytest
from generators.random_words import random_instruction
from hypothesis import given, settings, strategies as st

from tinyhw.errors import ParseError
from tinyhw.isa.riscv64.asm.syntax import assemble, assemble_function, disassemble, parse, parse_function, show
from tinyhw.isa.riscv64.table.table import TABLE

@given(st.sampled_from(sorted(TABLE.lines)), st.integers(0, 1 << 32))
@settings(derandomize=True, deadline=None, max_examples=200)
def test_parse_inverts_show(mnemonic: str, seed: int) -> None:
  for row in TABLE.rows(mnemonic):
    text = show(random_instruction(row, random.Random(seed)))
    assert show(parse(text)) == text

@pytest.mark.parametrize("text,same", [
  ("ADD x10,X11,a2", "add a0, a1, a2"), ("add a0, a1, -5", "addi a0, a1, -5"), ("ld a0, (sp)", "ld a0, 0(sp)"),
  ("amoadd.w a0, a1, 0(a2)", "amoadd.w a0, a1, (a2)"), ("vmsge.vv v1, v2, v3", "vmsle.vv v1, v3, v2"),
  ("vmxor.mm v4, v4, v4", "vmxor.mm v4, v4, v4"), ("vmfgt.vv v1, v2, v3, v0.t", "vmflt.vv v1, v3, v2, v0.t"),
  ("vle1.v v2, (a0)", "vlm.v v2, (a0)"), ("csrw fcsr, 3", "csrwi fcsr, 3"),
  ("fadd.s f0, f1, f2, dyn", "fadd.s ft0, ft1, ft2"),
  ("sd fp, 8(sp)", "sd s0, 8(sp)"), ("vsetivli zero, 4, 0xd0", "vsetivli zero, 4, e32, m1, ta, ma")])
def test_other_ways_to_write(text: str, same: str) -> None: assert show(parse(text)) == same

def test_the_disassembler_prefers_aliases() -> None:
  for text, alias in (("addi a0, a1, 0", "mv a0, a1"), ("addi a0, zero, 7", "li a0, 7"), ("jalr zero, 0(ra)", "ret"),
                      ("sgt a0, a1, a2", "slt a0, a2, a1")):
    assert disassemble(assemble(text)) == alias

def test_labels() -> None:
  text = "li a0, 0  # count\n.loop:\n addi a0, a0, 1 ; one more\n blt a0, a1, .loop\n j .out\n.out:\n ret\n"
  assert assemble_function(text) == b"".join(map(assemble, (
    "li a0, 0", "addi a0, a0, 1", "blt a0, a1, -4", "j 4", "ret")))
  assert [block.name for block in parse_function(text).blocks] == ["", "loop", "out"]

@pytest.mark.parametrize("text,reason", [
  ("addi a0, a1, 2048", "addi: operand 3 wants an integer in -2048..2047, got 2048"),
  ("fadd.s a0, fa1, fa2", "fadd.s: operand 1 wants a float register, such as fa0, got a0"),
  ("vadd.vv v0, v1, v2, v0.t", "vadd.vv: the result is in v0, which is the mask"),
  ("vrgather.vv v1, v1, v2", "vrgather.vv: the result v1 is also a source, whose elements are read after the first are "
   "written"),
  ("vlseg3e8.v v30, (a0)", "vlseg3e8.v: operand 1 wants the first of 3 vector registers, v0 to v29, got v30"),
  ("vmv2r.v v1, v2", "vmv2r.v: operand 1 wants the first of 2 vector registers, v0 to v30 in steps of 2, got v1"),
  ("beq a0, a1, 4096", "beq: operand 3 wants a multiple of 2 in -4096..4094, got 4096"),
  ("vsetivli zero, 4, e32, m3, ta, ma", "vsetivli: operand 4 wants m1, m2, m4, m8, mf8, mf4, mf2, got m3"),
  ("vaddd.vv v1, v2, v3", "no instruction is called vaddd.vv; did you mean vadd.vv, vadd.vx or vadd.vi?"),
  ("lw a0, 4[a1]", "lw: operand 2 wants ( and a register, got [")])
def test_errors(text: str, reason: str) -> None:
  with pytest.raises(ParseError) as caught: parse(text)
  assert caught.value.message == reason
