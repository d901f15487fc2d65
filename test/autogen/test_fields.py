"""Rows of words with named bits: encoding, decoding, refusals."""
import pytest
from hypothesis import given, strategies as st

from tinyhw.autogen.fields import Layout, Register, Table, Word, lines

EXAMPLE = "op:0-7=13 flag:8 wide:12-19@9 wide:12-15@11 | addr:0-63 | whole | values*"

def test_fields_stand_where_the_row_says() -> None:
  layout = Layout("EXAMPLE", EXAMPLE, 9)
  assert layout.words == 4 and layout.rest == "values" and layout.names() == ["flag", "wide", "addr", "whole", "values"]
  assert layout.encode({"flag": 1, "wide": 0xFF, "addr": 0x1122334455667788, "whole": 5, "values": [6, 7]}) == [
    0xFF10D, 0x55667788, 0x11223344, 5, 6, 7]

def test_a_generation_has_its_own_fields() -> None:
  assert Layout("EXAMPLE", EXAMPLE, 11).fields["wide"].high == 15
  assert "wide" not in Layout("EXAMPLE", EXAMPLE, 10).fields
  assert Layout("EXAMPLE", "a | b*@9", 11).words == 1 and Layout("EXAMPLE", "a | b*@9", 11).rest is None

@given(st.integers(0, 1), st.integers(0, 255), st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1),
       st.lists(st.integers(0, 2**32 - 1), max_size=3))
def test_decode_inverts_encode(flag: int, wide: int, addr: int, whole: int, values: list[int]) -> None:
  layout, given_values = Layout("EXAMPLE", EXAMPLE, 9), {"flag": flag, "wide": wide, "addr": addr, "whole": whole,
                                                         "values": values}
  assert layout.decode(layout.encode(given_values)) == given_values

def test_encode_refuses_what_does_not_fit_and_what_is_no_field() -> None:
  layout = Layout("EXAMPLE", EXAMPLE, 9)
  with pytest.raises(ValueError, match="EXAMPLE: wide=0x100 does not fit into bits 12 to 19"):
    layout.encode({"wide": 256})
  with pytest.raises(ValueError, match="flag=-0x1 does not fit"): layout.encode({"flag": -1})
  with pytest.raises(ValueError, match="EXAMPLE has no field wider; it has flag, wide"): layout.encode({"wider": 1})
  with pytest.raises(ValueError, match="no field op"): layout.encode({"op": 13})

def test_decode_refuses_bits_that_no_field_has() -> None:
  layout = Layout("EXAMPLE", EXAMPLE, 9)
  with pytest.raises(ValueError, match=r"word 0 is 0x0000020d, and no field has its bits 0x200"):
    layout.decode([0x20D, 0, 0, 0])
  with pytest.raises(ValueError, match="op is 0xe, not 0xd"): layout.decode([14, 0, 0, 0])
  with pytest.raises(ValueError, match="has 4 words or more, not 3"): layout.decode([13, 0, 0])
  with pytest.raises(ValueError, match="has 1 words, not 2"): Word("WORD", "a:0-3").decode([1, 2])

def test_words_and_registers_are_called() -> None:
  assert Word("WORD", "low:0-3 high:28-31")(low=5, high=6) == 0x60000005
  register = Register("REGISTER", 0x2E00, "enable:0 count:4-7", 9)
  assert register(count=3) == 0x30 and register.address == 0x2E00 and Table([register]).REGISTER is register

def test_lines_go_on_where_they_are_indented() -> None:
  assert ([(name, rest.split()) for name, rest in lines("# title\nA  x | y  # why\n  | z\n\nB\n")]
          == [("A", ["x", "|", "y", "|", "z"]), ("B", [])])
