"""Numbers, labels and words of a template: what they read, write and encode."""
from __future__ import annotations
from typing import Any

import pytest

from tinyhw.errors import EncodeError
from tinyhw.machine.assembler.holes import Hole, Label, NumberHole, Words, WordTable
from tinyhw.machine.assembler.reader import TextReader, TextMismatch, tokens
from tinyhw.machine.ir.inst import Block

MODES = WordTable(("near", "zero", None, "up"), 1, {"nearest": 0})
FENCES = WordTable((None, "w", "r", "rw"), 3, numbered=True)

CASES: list[tuple[Hole, str, int]] = [
  (NumberHole("i", 9, True), "-256", 256), (NumberHole("i", 7, True, 8), "504", 63),
  (NumberHole("i", 5, base=32, down=True), "32", 0), (NumberHole("i", 4, base=1), "16", 15),
  (NumberHole("i", 16, hexadecimal=True), "0x80", 128),
  (Words(MODES, "c", 2), "up", 3), (Words(FENCES, "c", 4), "r", 2),
  (Label("i", 8, True, 4), "-8", 254)]

@pytest.mark.parametrize("hole,text,code", CASES)
def test_text_and_bits(hole: Hole, text: str, code: int) -> None:
  values = hole.read(TextReader(tokens(text)))
  assert hole.show(values) == text and hole.code(values) == code and hole.operands(code) == values

@pytest.mark.parametrize("hole,text,reason", [
  (NumberHole("i", 7, True, 8), "4", "a multiple of 8 in -512..504, got 4"),
  (NumberHole("i", 4), "x0", "an integer in 0..15"),
  (Words(MODES, "c", 2), "down", "near, zero, up, got down"), (Words(FENCES, "c", 4), "#16", "or an integer in 0..15")])
def test_refused_texts(hole: Hole, text: str, reason: str) -> None:
  with pytest.raises(TextMismatch) as caught: hole.read(TextReader(tokens(text)))
  assert reason in caught.value.message

@pytest.mark.parametrize("hole,value", [(NumberHole("i", 4), 16), (NumberHole("i", 4), "x"), (Words(MODES, "c", 2), 2),
                                        (Label("i", 8, True, 4), Block(3))])
def test_refused_operands(hole: Hole, value: Any) -> None:
  with pytest.raises(EncodeError, match="wants|is a block"): hole.code([value])

def test_other_spellings_and_codes_without_a_word() -> None:
  assert Words(MODES, "c", 2).read(TextReader(tokens("nearest"))) == [0] and Words(MODES, "c", 2).operands(2) is None
  assert Words(FENCES, "c", 4).show([9]) == "#9" and Words(FENCES, "c", 4).operands(9) == [9]
  assert Label("i", 8, True, 4).read(TextReader(tokens(".loop"))) == [".loop"]
