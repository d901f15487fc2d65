"""Immediates as text."""
from __future__ import annotations

from hypothesis import given, strategies as st
import pytest

from tinyhw.errors import ParseError
from tinyhw.isa.sass.asm.immediates import BITS, parse_float, parse_signed, parse_unsigned, show_float, show_signed

@pytest.mark.parametrize("kind,bits,text", [
  ("f32", 0x3f800000, "1"), ("f32", 0xc1c00000, "-24"), ("f32", 0x3f4c422a, "0.79788458347320556641"),
  ("f32", 0x7f800000, "+INF "),
  ("f32", 0xffc00000, "-QNAN "), ("f32", 0x7f800001, "0x7f800001"), ("f32", 0x5f800000, "1.84467440737095516160e+19"),
  ("f32", 0x00100000, "1.469367938527859385e-39"), ("f64", 0x7fe00000, "8.98846567431157953865e+307"),
  ("f64", 0x40000000, "2"),
  ("f16", 0x3d37, "1.3037109375"), ("bf16", 0x3f80, "1"),
])
def test_floats(kind: str, bits: int, text: str) -> None:
  assert show_float(bits, kind) == text and parse_float(text, kind) == bits

@given(st.sampled_from(sorted(BITS)), st.integers(0, (1 << 32) - 1))
def test_parse_inverts_show(kind: str, bits: int) -> None:
  bits &= (1 << BITS[kind]) - 1
  assert parse_float(show_float(bits, kind), kind) == bits

def test_integers() -> None:
  assert parse_unsigned("-0x1", 32) == 0xffffffff and parse_signed("0xff", 8) == -1 and show_signed(-16) == "-0x10"

@pytest.mark.parametrize("text,kind", [("1e300", "f32"), ("70000.0", "f16"), ("one", "f32"), ("0x1ffffffff", "f32")])
def test_refusals(text: str, kind: str) -> None:
  with pytest.raises(ParseError): parse_float(text, kind)
