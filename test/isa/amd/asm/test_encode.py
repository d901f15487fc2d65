"""The choice of an instruction's encoding, and refusals."""
from __future__ import annotations
from typing import Any

import pytest

from tinyhw.errors import EncodeError
from tinyhw.isa.amd.asm.encode import chosen, encode
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.regs import s, v, ve
from tinyhw.isa.amd.table.table import build, table

RDNA3, CDNA3 = table("gfx1100"), table("gfx942")
ONE = 0x3f800000

@pytest.mark.parametrize("operands,modifiers,name", [
  ((v(0), v(1), v(2)), {}, "_e32"), ((v(0), s(1), v(2)), {}, "_e32"), ((v(0), ONE, v(2)), {}, "_e32"),
  ((v(0), 0x12345678, v(2)), {}, "_e32"),
  ((v(0), v(1), s(2)), {}, "_e64"), ((v(0), v(1), ONE), {}, "_e64"), ((v(0), v(1), v(2)), {"clamp": 1}, "_e64"),
  ((v(0), v(1), v(2)), {"neg": 2}, "_e64"),
])
def test_the_shortest_encoding_that_can_say_it(operands: tuple[Any, ...], modifiers: dict[str, int], name: str) -> None:
  assert chosen(build(RDNA3["v_add_f32"], *operands, **modifiers)).name == name

def test_a_compare_is_short_where_it_writes_vcc() -> None:
  assert [len(encode(build(RDNA3["v_cmp_lt_f32"], mask, v(1), v(2)))) for mask in (s(regs.VCC), s(4))] == [4, 8]

def test_constants_are_bits_of_the_type() -> None:
  assert encode(build(RDNA3["v_add_f32"], v(0), ONE, v(1)))[0] == 0xf2
  assert encode(build(RDNA3["v_add_f16"], v(0), 0x3c00, v(1)))[0] == 0xf2
  assert encode(build(RDNA3["v_add_nc_u16"], v(0), 0x3c00, v(1)))[-4:] == b"\0\x3c\0\0"  # an integer has no inline 1.0
  assert encode(build(RDNA3["s_mov_b64"], s(0, 2), -1)) == encode(build(RDNA3["s_mov_b64"], s(0, 2), (1 << 64) - 1))
  assert encode(build(RDNA3["v_add_f64"], v(0, 2), v(2, 2), 0x40000001 << 32))[-4:] == bytes.fromhex("01000040")

@pytest.mark.parametrize("row,operands,modifiers,message", [
  (RDNA3["v_fma_f32"], (v(0), s(1), s(2), s(3)), {}, "reads 3 scalar values (registers, literals), gfx1100 can read 2"),
  (RDNA3["v_fma_f32"], (v(0), 0x12345678, 0x12345679, v(1)), {},
   "one literal at most can be in an instruction, got 0x12345679 and 0x12345678; move one to a register first"),
  (CDNA3["v_fma_f32"], (v(0), 0x12345678, v(1), v(2)), {},
   "operand src0: 0x12345678 is no inline constant, and this instruction takes no literal on gfx942; move it to a "
   "register first"),
  (CDNA3["v_add_f32"], (v(0), s(1), s(2)), {}, "reads 2 scalar values (registers, literals), gfx942 can read 1"),
  (CDNA3["v_add_f64"], (v(1, 2), ve(2, 2), ve(4, 2)), {}, "operand vdst wants 2 vector registers, got v[1:2]"),
  (RDNA3["v_add_f64"], (v(0, 2), v(2, 2), (1 << 40) + 1), {}, "operand src1: 0x10000000001 is no literal of 32 bits "
   "as a f64"),
  (RDNA3["s_mov_b32"], (s(0), 1 << 32), {}, "operand ssrc0 has 32 bits, got 0x100000000"),
  (RDNA3["v_readlane_b32"], (s(0), s(1), s(2)), {}, "operand src0 wants a vector register, got s1"),
  (RDNA3["ds_store_b32"], (v(0), None), {}, "operand data0 is missing; it wants a vector register"),
  (RDNA3["global_load_b32"], (v(1), v(2, 2), None), {"offset": 4096}, "offset must be in -4096..4095, got 4096"),
  (RDNA3["global_load_b32"], (v(1), v(2), None), {}, "vaddr has 1 registers; with this saddr it has 2"),
  (CDNA3["v_mfma_f32_16x16x16_f16"], (ve(0, 4), ve(4, 2), ve(8, 2), ve(2, 4)), {},
   "src2 (v[2:5]) overlaps vdst (v[0:3]) in part"),
])
def test_what_is_refused(row: Any, operands: tuple[Any, ...], modifiers: dict[str, int], message: str) -> None:
  with pytest.raises(EncodeError) as caught: encode(build(row, *operands, **modifiers))
  assert message in caught.value.message
