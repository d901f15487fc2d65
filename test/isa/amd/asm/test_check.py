"""Rules that no field expresses."""
from __future__ import annotations
from typing import Any

import pytest

from tinyhw.errors import EncodeError
from tinyhw.isa.amd.asm.encode import encode
from tinyhw.isa.amd.asm.syntax import assemble
from tinyhw.isa.amd.table.regs import s, v, ve
from tinyhw.isa.amd.table.table import build, table

DUAL = "v_dual_mul_f32::v_dual_mul_f32"

@pytest.mark.parametrize("key,operands,message", [
  (DUAL, (v(0), v(1), v(2), v(2), v(4), v(7)), "v0 and v2 are written; one must be even and one odd"),
  (DUAL, (v(0), v(1), v(2), v(3), v(5), v(7)), "v1 and v5 are the first sources"),
  (DUAL, (v(0), v(1), v(2), v(3), v(4), v(6)), "v2 and v6 are the second sources"),
  ("v_dual_cndmask_b32::v_dual_mul_f32", (v(0), s(1), v(2), v(3), s(4), v(7)), "reads 3 scalar values"),
  ("v_dual_fmaak_f32::v_dual_fmaak_f32", (v(0), v(1), v(2), 5, v(3), v(4), v(7), 6),
   "both operations must have the same literal"),
  ("v_dual_fmamk_f32::v_dual_fmamk_f32", (v(0), v(1), 5, v(3), v(1), v(2), 5, v(5)),
   "v3 and v5 are added; one must be even and one odd"),
])
def test_two_operations_in_one(key: str, operands: tuple[Any, ...], message: str) -> None:
  with pytest.raises(EncodeError) as caught: encode(build(table("gfx1100")[key], *operands))
  assert message in caught.value.message

def test_the_same_scalar_counts_once() -> None:
  assert len(encode(build(table("gfx942")["v_fma_f32"], v(0), s(1), s(1), v(2)))) == 8

def test_registers_of_a_product_with_formats() -> None:
  row = table("gfx950")["v_mfma_f32_16x16x128_f8f6f4"]
  with pytest.raises(EncodeError, match="src0 has 8 registers; with cbsz:4 it has 4"):
    encode(build(row, ve(0, 4), ve(4, 8), ve(12, 8), ve(0, 4), cbsz=4))

def test_th_of_an_atomic_says_whether_it_returns() -> None:
  row = table("gfx1200")["global_atomic_add_u32"]
  with pytest.raises(EncodeError, match="th must be even: bit 0 says that the old value is returned"):
    encode(build(row, v(2, 2), v(1), None, th=1))

def test_two_moves_may_read_one_bank_on_rdna4() -> None:
  text = "v_dual_mov_b32 v1, v0 :: v_dual_mov_b32 v0, v40"
  assert assemble(text, "gfx1200").hex() == "000110ca28010001"
  with pytest.raises(EncodeError, match="v0 and v40 are the first sources"): assemble(text, "gfx1100")

@pytest.mark.parametrize("arch,text", [
  ("gfx1100", "v_readfirstlane_b32 m0, v1"), ("gfx942", "v_readlane_b32 m0, v1, s2"),
  ("gfx1200", "v_s_exp_f32 exec_lo, s1"),
  ("gfx942", "v_lshl_add_u64 v[0:1], s[86:87], s86, 56")])  # a pair and one register of it are two scalar values
def test_what_a_scalar_operand_cannot_be(arch: str, text: str) -> None:
  with pytest.raises(EncodeError): assemble(text, arch)
