"""Enumerations of modifiers."""
from __future__ import annotations

from tinyhw.isa.sass.table.form import ranges, width_of
from tinyhw.isa.sass.table.modifiers import ENUMERATIONS

def test_each_value_fits_its_bits_and_each_word_is_there_once() -> None:
  for enumeration in ENUMERATIONS.values():
    assert len(enumeration.words) <= 1 << width_of(ranges(enumeration.bits)), enumeration.name
    words = [word for word in enumeration.words if word != "?"]
    assert len(set(words)) == len(words), enumeration.name

def test_what_is_left_out() -> None:
  assert ENUMERATIONS["rnd"].implied == 0 and ENUMERATIONS["size"].implied == 4 and ENUMERATIONS["bool"].implied == -1

def test_sizes() -> None:
  assert ENUMERATIONS["size"].units == (1, 1, 1, 1, 1, 2, 4)
  assert ENUMERATIONS["gmma16"].words[7] == "64x64x16" and ENUMERATIONS["gmma16"].units[7] == 32
  assert ENUMERATIONS["gmmai"].words[15] == "64x64x32" and ENUMERATIONS["gmmai"].words[51] == "64x256x32"
