"""decode inverts encode; golden bytes print as their text; words that are no instruction."""
from __future__ import annotations
import random
import struct

import pytest
from hypothesis import given, settings, strategies as st

from tinyhw.errors import DecodeError
from tinyhw.isa.arm64.asm.syntax import decode
from tinyhw.machine.assembler.encode import encode
from tinyhw.isa.arm64.asm.syntax import disassemble, show
from tinyhw.isa.arm64.table.table import TABLE
from formats.encodings import encodings
from generators.random_words import random_instruction

@pytest.mark.slow
def test_the_reference_bytes_print_as_their_text() -> None:
  wrong = [(text, disassemble(code)) for _, code, text in encodings("arm64.txt") if disassemble(code) != text]
  assert not wrong, f"{len(wrong)} differ: {wrong[:3]}"

def test_each_thirtieth_of_them() -> None:
  assert not [text for _, code, text in list(encodings("arm64.txt"))[7::30] if disassemble(code) != text]

@pytest.mark.slow
@given(st.sampled_from(sorted(TABLE.lines)), st.integers(0, 1 << 32))
@settings(derandomize=True, deadline=None, max_examples=300)
def test_decode_inverts_encode(mnemonic: str, seed: int) -> None:
  """Another row may be the spelling that the decoder prefers, so the bytes are compared."""
  for row in TABLE.rows(mnemonic):
    inst = random_instruction(row, random.Random(seed))
    again, size = decode(encode(inst))
    assert encode(again) == encode(inst) and size == 4, f"{show(inst)} and {show(again)}"

@given(st.integers(0, (1 << 32) - 1))
@settings(derandomize=True, deadline=None, max_examples=1000)
def test_every_word_decodes_to_itself_or_is_refused(word: int) -> None:
  code = struct.pack("<I", word)
  try: inst, _ = decode(code)
  except DecodeError: return
  # high bits of a mask's rotation are ignored, so two words may be one instruction
  assert show(decode(encode(inst))[0]) == show(inst)
