"""Bytes to instructions, against a golden file of NVIDIA's assembler."""
from __future__ import annotations
import random

from hypothesis import given, strategies as st
import pytest

from nvidia.golden import vectors
from nvidia.random import random_control, random_instruction
from tinyhw.errors import DecodeError
from tinyhw.isa.sass.asm.decode import decode, decode_all
from tinyhw.isa.sass.asm.encode import encode
from tinyhw.isa.sass.table.form import GENERATIONS
from tinyhw.isa.sass.table.table import table

def test_bytes_of_the_assembler_decode_and_encode_again() -> None:
  wrong = [(v.arch, v.text) for v in vectors() if encode(*decode(v.code, 0, v.arch)) != v.code]
  assert not wrong, f"{len(wrong)} differ: {wrong[:3]}"

KEYS = [(arch, key) for arch in GENERATIONS for key in table(arch).lines]

@given(st.sampled_from(KEYS), st.integers(0, 1 << 32))
def test_decode_inverts_encode(key: tuple[str, str], seed: int) -> None:
  rng, row = random.Random(seed), table(key[0])[key[1]]
  inst, control = random_instruction(row, rng), random_control(row, rng)
  assert decode(b"\0" * 16 + encode(inst, control), 16, key[0]) == (inst, control)

@given(st.sampled_from(vectors()), st.integers(0, 127))
def test_what_decodes_with_a_bit_flipped_encodes_to_itself(vector: object, bit: int) -> None:
  code, arch = vector.code, vector.arch  # type: ignore[attr-defined]
  flipped = (int.from_bytes(code, "little") ^ 1 << bit).to_bytes(16, "little")
  try: inst, control = decode(flipped, 0, arch)
  except DecodeError: return
  assert encode(inst, control) == flipped

@pytest.mark.parametrize("code,why", [
  ("00", "an instruction has 16 bytes, there are 1"),
  ("18790000000000000000000000c00f80", "the control word 0x4007e0 has no meaning"),
  ("ff7f0000000000000000000000c00f00", "sm_90 has no instruction with opcode 0xfff"),
  ("18790000000000000000000010c00f00", "NOP/918 has no meaning with bits 100 so"),
  ("0872000000000000003c000000c00f00", ""),
])
def test_refusals(code: str, why: str) -> None:
  with pytest.raises(DecodeError) as caught: decode(bytes.fromhex(code))
  assert caught.value.message.startswith("offset 0: ") and why in caught.value.message

def test_all_instructions_of_some_bytes() -> None:
  nop = bytes.fromhex("18790000000000000000000000c00f00")
  assert [(offset, inst.row.name) for offset, inst, _ in decode_all(nop * 2, "sm_90")] == [(0, "NOP"), (16, "NOP")]
