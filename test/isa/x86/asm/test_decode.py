"""decode(encode(x)) == x for every row, and bytes that are no instruction."""
from __future__ import annotations
import random

import pytest
from hypothesis import given, settings, strategies as st

from tinyhw.errors import DecodeError
from tinyhw.isa.x86.asm.decode import decode, decode_all
from tinyhw.isa.x86.asm.encode import encode
from tinyhw.isa.x86.table.table import TABLE
from x86.random import random_instruction

MNEMONICS = sorted(TABLE.mnemonics())

@pytest.mark.slow
@given(st.sampled_from(MNEMONICS), st.integers(0, 1 << 32))
@settings(derandomize=True, deadline=None, max_examples=400)
def test_decode_inverts_encode(mnemonic: str, seed: int) -> None:
  rng = random.Random(seed)
  for row in TABLE.rows(mnemonic):
    inst = random_instruction(row, rng)
    code = encode(inst)
    assert decode(b"\xcc" + code + b"\xcc", 1) == (inst, len(code))

@pytest.mark.slow
def test_every_row_decodes_to_itself() -> None:
  rng = random.Random(1)
  insts = [random_instruction(row, rng) for row in TABLE]
  code = b"".join(map(encode, insts))
  assert [inst for _, inst in decode_all(code)] == insts

@pytest.mark.slow
@given(st.binary(min_size=1, max_size=16))
@settings(derandomize=True, deadline=None, max_examples=500)
def test_what_decodes_encodes_to_the_same_meaning(code: bytes) -> None:
  try: inst, size = decode(code)
  except DecodeError: return
  again = encode(inst)
  assert 0 < size <= len(code)
  assert decode(again) == (inst, len(again))

@pytest.mark.parametrize("code", ["0f ff", "d8 c0", "62 f1 74 28 58 c2".replace("28", "68"), "c5 f4 ff c2", "88 e0",
                                  "c5 f8 41 c0"])
def test_unknown_bytes(code: str) -> None:
  with pytest.raises(DecodeError, match=f"offset 2: no instruction of the table starts with {code}"):
    decode(b"\x90\x90" + bytes.fromhex(code), 2)

@pytest.mark.parametrize("code", ["", "c5", "48", "62 f1 74", "48 8b 85 00", "81 c0 01 00"])
def test_code_that_ends_early(code: str) -> None:
  with pytest.raises(DecodeError, match="offset 0: the code ends within an instruction"): decode(bytes.fromhex(code))

@pytest.mark.parametrize("code,same",
                         [("8b c8", "89 c1"), ("c4 e1 74 58 c2", "c5 f4 58 c2"), ("81 c1 05 00 00 00", "83 c1 05"),
                          ("0f 84 00 00 00 00", "74 04")])
def test_longer_encodings_mean_the_same(code: str, same: str) -> None:
  inst, size = decode(bytes.fromhex(code))
  assert size == len(bytes.fromhex(code)) and encode(inst) == bytes.fromhex(same)
