"""Generations and layouts."""
from __future__ import annotations

import pytest

from tinyhw.errors import EncodeError
from tinyhw.isa.sass.table.form import Generation, bracketed, layout, ranges, width_of

def test_generations() -> None:
  assert [(g.name, g.wide, g.split) for g in map(Generation, ("sm_86", "sm_90a", "sm_120"))] == [
    ("sm_80", False, False), ("sm_90", False, True), ("sm_120", True, True)]
  assert Generation("sm_89").has("8x") and not Generation("sm_90").has("8x") and Generation("sm_90").has("")

def test_an_unknown_architecture() -> None:
  with pytest.raises(EncodeError, match="no NVIDIA architecture is called sm_75; there is sm_80, sm_89"):
    Generation("sm_75")

def test_a_field_in_two_places() -> None:
  places = ranges("16-23,34-81")
  form = layout({"t": (places, True)}, {ranges("0-11"): 0x947, ranges("91"): 1})
  assert width_of(places) == 56 and form.width == 128
  word = form.pack(t=-4)
  assert (word & 0xfff == 0x947 and word >> 16 & 0xff == 0xfc and word >> 34 & (1 << 48) - 1 == (1 << 48) - 1
          and word >> 91 == 1)
  assert form.unpack(word) == {"t": -4} and form.unpack(word | 1 << 100) is None

def test_fields_do_not_overlap() -> None:
  with pytest.raises(AssertionError): layout({"a": (ranges("16-23"), False), "b": (ranges("20-27"), False)}, {})

@pytest.mark.parametrize("text, found, rest", [
  ("desc[UR4][R2.64+0x10]", [("desc", "UR4"), ("", "R2.64+0x10")], ""),
  ("gdesc[UR4].tnspB", [("gdesc", "UR4")], ".tnspB"),
  ("c[0x0][0x14]", [("c", "0x0"), ("", "0x14")], ""), ("R1", [], "R1"), ("[R1", [], "[R1"), ("]a[", [], "]a["),
  ("-x[R1]|", [("x", "R1")], "-|"),
  ("", [], ""), ("[[R1]]", [("", "[R1")], "]")])
def test_brackets(text: str, found: list[tuple[str, str]], rest: str) -> None: assert bracketed(text) == (found, rest)
