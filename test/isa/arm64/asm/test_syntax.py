"""Text of instructions: parse inverts show; alternative spellings; functions with labels; errors."""
from __future__ import annotations
import random

import pytest
from hypothesis import example, given, settings, strategies as st

from tinyhw.errors import ParseError
from tinyhw.machine.assembler.encode import encode
from tinyhw.isa.arm64.asm.syntax import assemble, disassemble, parse, show
from tinyhw.isa.arm64.table.table import TABLE
from generators.random_words import random_instruction

@pytest.mark.slow
@given(st.sampled_from(sorted(TABLE.lines)), st.integers(0, 1 << 32))
@example("ldr", 0)  # ldr x0, [x1, #8]: of the row with a signed offset and of the one with an unsigned offset
@settings(derandomize=True, deadline=None, max_examples=300)
def test_parse_inverts_show(mnemonic: str, seed: int) -> None:
  """The bytes are the same. A row that the decoder never takes (unseen) may give way to an earlier row of the same
  text."""
  rows = TABLE.rows(mnemonic)
  for row in rows:
    inst = random_instruction(row, random.Random(seed))
    text = show(inst)
    parsed = parse(text)
    assert show(parsed) == text
    if "unseen" not in row.isa.words or parsed.row is row: assert encode(parsed) == encode(inst), text
    else: assert rows.index(parsed.row) < rows.index(row), text

@pytest.mark.parametrize("text,same", [
  ("ADD X0,X1,#0x10", "add x0, x1, #16"), ("add x0, x1, 16", "add x0, x1, #16"), ("add x0, x1, #-16",
                                                                                  "sub x0, x1, #16"),
  ("cmp w3, #-1", "cmn w3, #1"), ("add x0, x1, #8192", "add x0, x1, #2, lsl #12"), ("bic x0, x1, #0xff",
                                                                                    "and x0, x1, #0xffffffffffffff00"),
  ("ldr x0, [x1, #0]", "ldr x0, [x1]"), ("ldr x0,[x1,#-8]", "ldr x0, [x1, #-8]"), ("b.cs #8", "b.hs #8"),
  ("csel x0, x1, x2, cc", "csel x0, x1, x2, lo"), ("fmov s0, #1", "fmov s0, #1.00000000"),
  ("ld3w {z0.s, z1.s, z2.s}, p0/z, [x0]", "ld3w { z0.s - z2.s }, p0/z, [x0]"),
  ("mov x0, #0xffffffffffffffff", "mov x0, #-1"), ("mrs x0, ctr_el0", "mrs x0, CTR_EL0")])
def test_other_ways_to_write(text: str, same: str) -> None:
  assert show(parse(text)) == same

def test_the_decoder_prefers_the_name_of_an_unscaled_offset() -> None:
  assert disassemble(assemble("ldr x0, [x1, #-8]")) == "ldur x0, [x1, #-8]"

@pytest.mark.parametrize("text,reason", [
  ("", "an instruction is expected"), ("fmlaa v0.4s, v0.4s, v0.4s",
                                       "no instruction is called fmlaa; did you mean fmla, fmlal, fmlal2 or "
   "fmlalb?"),
  ("add x0, x1, #4097", "add: operand 3 wants an integer in 0..4095, or a multiple of 4096 in 0..16773120, got 4097"),
  ("orr x0, x1, #5", "orr: operand 3 wants a mask of 64 bits: contiguous ones, rotated, in elements of 2, 4, 8, ... "
   "bits that repeat; not 0 and not all ones, got 5"),
  ("ldp x0, x1, [x2, #512]", "ldp: operand 3 wants a multiple of 8 in -512..504, got 512"),
  ("casp x1, x2, x4, x5, [x0]", "casp: operand 1 wants x0 to x30 in steps of 2, got x1"),
  ("casp x0, x2, x4, x5, [x0]", "casp: operand 2 wants x1, got x2"),
  ("ldr x0, [x0], #8", "ldr: the base x0 is written back, so it cannot hold data too"),
  ("add x0, x1, x\u0662", "'\u0662' (U+0662) is not ASCII, in which instructions are written")])
def test_errors(text: str, reason: str) -> None:
  with pytest.raises(ParseError) as caught: parse(text)
  assert caught.value.message == reason
