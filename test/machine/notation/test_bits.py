"""Formats of fixed-width words: packing, unpacking, ranges."""
from __future__ import annotations
import pytest
from hypothesis import given, settings, strategies as st

from tinyhw.errors import EncodeError
from tinyhw.machine.notation.bits import fmt

VOP2 = fmt("0 op:6 vdst:8 vsrc1:8 src0:9")  # in AMD's notation
STORE = fmt("imm[11:5] rs2:5 rs1:5 010 imm[4:0]s 0100011")  # RISC-V S-type, a signed field in two pieces

def test_bits_stand_as_drawn() -> None:
  assert VOP2.width == 32
  assert VOP2.pack(op=3, vdst=5, vsrc1=1, src0=258) == 3 << 25 | 5 << 17 | 1 << 9 | 258
  assert STORE.pack(imm=-4, rs2=10, rs1=2) == 0xfea12e23  # sw a0, -4(sp)

def test_other_constants_are_another_format() -> None:
  assert VOP2.unpack(1 << 31) is None
  assert STORE.unpack(0xfea12e23) == {"imm": -4, "rs2": 10, "rs1": 2}

def test_ignored_bits_are_zero() -> None:
  format = fmt("1 _:3 a:4")
  assert format.pack(a=5) == 0x85
  assert format.unpack(0xf5) == {"a": 5}

@pytest.mark.parametrize("field,value,range", [("op", 64, "0..63"), ("src0", -1, "0..511")])
def test_a_field_out_of_range_is_refused(field: str, value: int, range: str) -> None:
  values = {"op": 0, "vdst": 0, "vsrc1": 0, "src0": 0, field: value}
  with pytest.raises(EncodeError, match=f"field {field} must be in {range}, got {value}"): VOP2.pack(**values)

def test_a_signed_field_out_of_range_is_refused() -> None:
  with pytest.raises(EncodeError, match=r"imm must be in -2048..2047, got 2048"): STORE.pack(imm=2048, rs1=0, rs2=0)

@pytest.mark.parametrize("text", ["op:x", "imm[7:4] imm[5:0]", "a[3:1]"])
def test_a_format_that_makes_no_sense_is_refused(text: str) -> None:
  with pytest.raises(AssertionError): fmt(text)

@given(st.data())
@settings(derandomize=True, deadline=None, max_examples=50)
def test_unpack_inverts_pack(data: st.DataObject) -> None:
  format = data.draw(st.sampled_from([VOP2, STORE, fmt("a:64 11 b[0] _:5 c:20s b[9:1] d:31")]))
  values = {name: data.draw(st.integers(*f.range)) for name, f in format.fields.items()}
  assert format.unpack(format.pack(**values)) == values
