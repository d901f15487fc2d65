"""The shared part of all assemblers: lines, operands, integers, the driver of asm and disasm."""
from __future__ import annotations
import io

import pytest

from tinyhw.errors import ParseError
from tinyhw.machine.notation.text import (ascii_only, one_of, parse_bytes, parse_integer, show_bytes, split_operands,
                                          statements,
                                          strip_comment, translate)

def test_comments_and_blanks_are_dropped() -> None:
  assert strip_comment("  add r0, r1  # sum ; of two ") == "add r0, r1"
  assert list(statements(["; only a comment", "", "  nop", "ret # done"])) == [(3, "nop"), (4, "ret")]

def test_operands_split_at_outer_commas() -> None:
  assert split_operands("v0, s[0:1], [a, b], {1, 2}") == ["v0", "s[0:1]", "[a, b]", "{1, 2}"]
  assert split_operands("  ") == []

@pytest.mark.parametrize("text, why", [("v0,", "operand 2 is missing: nothing stands after"),
                                       (",", "operand 1 is missing: nothing stands before"),
                                       ("v0,, v1", "operand 2 is missing: nothing stands before")])
def test_a_missing_operand(text: str, why: str) -> None:
  with pytest.raises(ParseError, match=why): split_operands(text)

def test_other_digits_than_those_of_ascii() -> None:
  assert ascii_only("v0") == "v0"
  with pytest.raises(ParseError, match=r"'\u0663' \(U\+0663\) is not ASCII"): ascii_only("v\u0663")

@pytest.mark.parametrize("text,value", [("12", 12), ("-0x1F", -31), ("0b101", 5), ("1fh", 31), ("+ 7", 7),
                                        ("1_000", 1000), ("--3", 3)])
def test_integers(text: str, value: int) -> None:
  assert parse_integer(text) == value

@pytest.mark.parametrize("text", ["", "eax", "x1", "0x", "1.5", "12q", "\u0663", "0x\u0663"])
def test_other_words_are_no_integers(text: str) -> None:
  assert parse_integer(text) is None

@pytest.mark.parametrize("text", ["c5 f4 58 c2", "c5f458c2", "0xc5,0xf4,0x58,0xc2", "[0xc5, 0xf4, 0x58, 0xC2]"])
def test_bytes(text: str) -> None:
  code = parse_bytes(text)
  assert code == b"\xc5\xf4\x58\xc2"
  assert show_bytes(code) == "c5 f4 58 c2"

def test_what_is_not_hex_is_no_bytes() -> None:
  assert parse_bytes("vaddps") is None

def test_one_of() -> None:
  assert [one_of(["a"]), one_of(["a", "b", "a"]), one_of(["a", "b", "c"])] == ["a", "a or b", "a, b or c"]

def test_translate_goes_on_after_a_refused_line() -> None:
  def one(text: str) -> str:
    if text == "bad": raise ParseError("that is bad")
    return text.upper()
  output, errors = io.StringIO(), io.StringIO()
  assert translate(["good", "# comment", "bad", "fine"], one, output, errors) == 1
  assert output.getvalue() == "GOOD\nFINE\n"
  assert errors.getvalue() == "line 3: that is bad\n"
  assert translate(["good"], one, output, errors) == 0
