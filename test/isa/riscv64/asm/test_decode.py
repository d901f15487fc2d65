"""decode inverts encode; golden bytes print as LLVM prints them; every word is an instruction or refused."""
from __future__ import annotations
import random
import struct

import pytest
from formats.encodings import encodings
from generators.random_words import random_instruction
from hypothesis import given, settings, strategies as st

from tinyhw.errors import DecodeError
from tinyhw.isa.riscv64.asm.syntax import decode, disassemble, show
from tinyhw.isa.riscv64.table.table import TABLE
from tinyhw.machine.assembler.encode import encode

@pytest.mark.slow
def test_the_reference_bytes_print_as_their_text() -> None:
  assert not [(text, disassemble(code)) for _, code, text in encodings("riscv64.txt") if disassemble(code) != text]

def test_each_twentieth_of_them() -> None:
  assert not [text for _, code, text in list(encodings("riscv64.txt"))[7::20] if disassemble(code) != text]

@given(st.sampled_from(sorted(TABLE.lines)), st.integers(0, 1 << 32))
@settings(derandomize=True, deadline=None, max_examples=200)
def test_decode_inverts_encode(mnemonic: str, seed: int) -> None:
  """Another row may be the spelling that the decoder prefers, so the bytes are compared."""
  for row in TABLE.rows(mnemonic):
    inst = random_instruction(row, random.Random(seed))
    again, size = decode(encode(inst))
    assert encode(again) == encode(inst) and size == 4, f"{show(inst)} and {show(again)}"

@given(st.integers(0, (1 << 32) - 1), st.sampled_from([0x57, 0x07, 0x27, 0x33, 0x13, 0x53, 0x2f, 0x73, 0x0f, 0x63]))
@settings(derandomize=True, deadline=None, max_examples=1000)
def test_every_word_decodes_to_itself_or_is_refused(word: int, opcode: int) -> None:
  code = struct.pack("<I", word & ~0x7f | opcode)
  try: inst, _ = decode(code)
  except DecodeError: return
  assert encode(inst) == code

@pytest.mark.parametrize("word", [0, 0xffffffff, 0x00000001, 0x02008057])   # vadd.vv v0, v0, v1, v0.t: v0 is the mask
def test_words_that_are_no_instruction(word: int) -> None:
  with pytest.raises(DecodeError): decode(struct.pack("<I", word & ~(1 << 25) if word == 0x02008057 else word))
