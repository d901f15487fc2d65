"""Integers that the text spells in words."""
from __future__ import annotations

import pytest

from tinyhw.errors import EncodeError, ParseError, TinyError
from tinyhw.isa.amd.asm.immediates import DEPCTR, WAIT, WORDS, parse_dpp, parse_swizzle, show_dpp
from tinyhw.isa.amd.table.form import Generation

CDNA3, RDNA3, RDNA4 = Generation("gfx942"), Generation("gfx1100"), Generation("gfx1200")

@pytest.mark.parametrize("kind,generation",
                         [(kind, g) for kind in WORDS for g in (CDNA3, RDNA3, RDNA4) if kind != "depctr" or not g.cdna])
def test_every_value_is_shown_and_parsed(kind: str, generation: Generation) -> None:
  """Values that have words, and values that only have a number."""
  words = WORDS[kind]
  for value in (*range(0, 0x10000, 41), 0xffff): assert words.parse(words.show(value, generation), generation) == value

def test_wait_counts_that_are_left_out_are_greatest() -> None:
  assert [WAIT.make(g, vmcnt=0) for g in (CDNA3, RDNA3)] == [0x0f70, 0x03f7]
  assert DEPCTR.make(RDNA3, va_vdst=0) == 0x0f9f
  with pytest.raises(EncodeError, match="vmcnt must be in 0..63, got 64"): WAIT.make(CDNA3, vmcnt=64)
  with pytest.raises(EncodeError, match="gfx942 has no vscnt; it has lgkmcnt, expcnt or vmcnt|gfx942 has no vscnt; it "
                     "has vmcnt, lgkmcnt or expcnt"):
    WAIT.make(CDNA3, vscnt=0)

@pytest.mark.parametrize("generation", [CDNA3, RDNA3])
def test_permutations_of_lanes(generation: Generation) -> None:
  for value in range(0x200):
    name, _, text = show_dpp(value, generation).partition(":")
    assert parse_dpp(name, text, generation) == value

def test_permutations_belong_to_generations() -> None:
  assert show_dpp(0x151, CDNA3) == "row_newbcast:1" and show_dpp(0x151, RDNA3) == "row_share:1"
  with pytest.raises(ParseError, match="gfx1100 has no row_bcast"): parse_dpp("row_bcast", "15", RDNA3)

@pytest.mark.parametrize("text,value", [
  ('swizzle(BITMASK_PERM,"00p11")', 0x64), ("swizzle(BROADCAST,16,0)", 0x10), ("swizzle(QUAD_PERM,0,1,2,3)", 0x80e4),
  ("swizzle(SWAP,16)", 0x401f),
  ("swizzle(REVERSE,4)", 0x0c1f)])
def test_swizzles(text: str, value: int) -> None:
  assert parse_swizzle(text) == value

@pytest.mark.parametrize("text", ["swizzle(SWAP,3)", "swizzle(QUAD_PERM,0,1)", "swizzle(TWIST,1)",
                                  'swizzle(BITMASK_PERM,"00x11")'])
def test_what_is_no_swizzle(text: str) -> None:
  with pytest.raises(ParseError, match="BITMASK_PERM with five of 0, 1, p, i in quotes"): parse_swizzle(text)

@pytest.mark.parametrize("kind,text,message", [
  ("hwreg", "hwreg(HW_REG_NOTHING)", "a hardware register that is none of HW_REG_MODE"),
  ("hwreg", "hwreg(1, 2)", "first bit, number of bits"),
  ("sendmsg", "sendmsg(MSG_NOTHING)", "a message that is none of MSG_INTERRUPT"),
  ("sendmsg", "sendmsg(1, 2)", "sends no operation or stream"),
  ("gpr_idx", "gpr_idx(SRC7)", "gpr_idx of SRC0, SRC1, SRC2 or DST is expected"),
  ("delay", "instid7(NEXT)", "is none of instid0"),
])
def test_refusals(kind: str, text: str, message: str) -> None:
  with pytest.raises(TinyError, match=message.replace("(", r"\(")): WORDS[kind].parse(text, RDNA3)
