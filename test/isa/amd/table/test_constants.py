"""Inline constants and literals by the type of their operand."""
from __future__ import annotations
import struct

import pytest

from tinyhw.isa.amd.table.constants import FLOAT_NAMES, KINDS

@pytest.mark.parametrize("kind,letter,shift", [("f16", "e", 0), ("f32", "f", 0), ("f64", "d", 0), ("bf16", "f", 16)])
def test_inline_floats_are_those_of_the_type(kind: str, letter: str, shift: int) -> None:
  for code, text in enumerate(FLOAT_NAMES[:-1], 240):
    assert KINDS[kind].codes[int.from_bytes(struct.pack("<" + letter, float(text)), "little") >> shift] == code

@pytest.mark.parametrize("kind", KINDS)
def test_inline_integers_are_sign_extended(kind: str) -> None:
  constants = KINDS[kind]
  assert [constants.codes[n & constants.mask] for n in (0, 1, 64, -1, -16)] == [128, 129, 192, 193, 208]

def test_integers_of_16_bits_have_no_inline_floats() -> None:
  assert 0x3c00 not in KINDS["i16"].codes

@pytest.mark.parametrize("kind,value,dword", [
  ("f32", 0x12345678, 0x12345678), ("f64", 0x40000001 << 32, 0x40000001), ("f64", 1 << 40 | 1, None),
  ("i64", (1 << 64) - 100, 0xffffff9c), ("i64", 0x80000000, None), ("b64", 0x80000000, 0x80000000),
  ("b64", (1 << 64) - 100, None),
])
def test_what_a_literal_means(kind: str, value: int, dword: int | None) -> None:
  assert KINDS[kind].literal(value) == dword
  if dword is not None: assert KINDS[kind].value(dword) == value

def test_constants_of_packed_halves() -> None:
  """An inline float is in the lower half, with `twice` in both."""
  assert KINDS["f16x2"].values[242] == 0x3c00 and KINDS["f16x2 twice"].values[242] == 0x3c003c00
