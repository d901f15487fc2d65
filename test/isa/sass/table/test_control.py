"""Control words."""
from __future__ import annotations

from hypothesis import given, strategies as st
import pytest

from tinyhw.errors import EncodeError, ParseError
from tinyhw.isa.sass.table.control import SHIFT, Control, parse_prefix, unpack

BOARDS = st.sampled_from((0, 1, 2, 3, 4, 5, 7))
CONTROLS = st.builds(Control, st.integers(1, 11), st.booleans(), BOARDS, BOARDS, st.integers(0, 63), st.integers(0, 15))

@given(CONTROLS)
def test_unpack_inverts_pack(control: Control) -> None:
  assert unpack(control.pack()) == control

@given(CONTROLS)
def test_the_prefix_says_all_but_reuse(control: Control) -> None:
  parsed, rest = parse_prefix(f"{control} NOP")
  assert rest == "NOP"
  assert parsed == Control(control.stall, control.yields, control.write, control.read, control.wait)

def test_the_bits() -> None:
  assert Control(4, False).pack() == 0x000fc8 << 104
  assert str(Control(2, True, write=1, read=3, wait=5)) == "[B0-2---:R3:W1:Y:S02]"

@pytest.mark.parametrize("control,why", [
  (Control(16, False), "field stall must be in 0..15, got 16"), (Control(0, True), "stall 0 does not go with yields"),
  (Control(write=6), "scoreboard write must be in 0..5, or 7 for none, got 6"),
])
def test_refusals(control: Control, why: str) -> None:
  with pytest.raises(EncodeError, match=why): control.pack()

def test_what_hardware_does_not_know() -> None:
  assert unpack(6 << SHIFT + 5) is None and unpack(0b11111 << SHIFT) is None and unpack(1 << 127) is None

@pytest.mark.parametrize("text", ["[B0] NOP", "[B-0----:R-:W-:-:S01] NOP", "[B------:R6:W-:-:S01] NOP"])
def test_prefixes_that_are_refused(text: str) -> None:
  with pytest.raises(ParseError): parse_prefix(text)
