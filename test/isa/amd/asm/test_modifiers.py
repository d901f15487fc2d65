"""Modifiers after the operands."""
from __future__ import annotations

import pytest

from tinyhw.errors import ParseError
from tinyhw.isa.amd.asm.modifiers import parse_one, show_all
from tinyhw.isa.amd.table.table import table

@pytest.mark.parametrize("arch,key,word,name,value", [
  ("gfx1100", "v_add_f32", "mul:4", "omod", 2), ("gfx1100", "v_add_f32", "clamp", "clamp", 1),
  ("gfx1100", "v_mov_b32_dpp", "row_shr:3", "dpp_ctrl", 0x113),
  ("gfx1100", "v_mov_b32_dpp8", "dpp8:[7,6,5,4,3,2,1,0]", "dpp8", 0x053977),
  ("gfx942", "v_mov_b32_sdwa", "dst_sel:WORD_1", "dst_sel", 5),
  ("gfx1100", "v_pk_add_f16", "op_sel_hi:[0,1]", "op_sel_hi", 6),
  ("gfx1100", "v_pack_b32_f16", "op_sel:[1,0,1]", "op_sel", 9), ("gfx1200", "v_cvt_f32_fp8", "byte_sel:1", "op_sel", 2),
  ("gfx1200", "v_cvt_sr_fp8_f32", "byte_sel:2", "op_sel", 8),
  ("gfx1200", "v_swmmac_f32_16x16x32_f16", "index_key:1", "op_sel", 1),
  ("gfx1200", "global_load_b32", "th:TH_LOAD_HT", "th", 2), ("gfx1200", "global_load_b32", "scope:SCOPE_SYS", "scope",
                                                             3),
  ("gfx1200", "global_atomic_add_u32_rtn", "th:TH_ATOMIC_RETURN", "th", 1),
  ("gfx950", "v_bitop3_b32", "bitop3:0x40", "bitop3", 0x40),
])
def test_words_and_values(arch: str, key: str, word: str, name: str, value: int) -> None:
  form = table(arch)[key].isa
  assert parse_one(form, word) == (name, value)
  operands = [spec.implied for spec in form.specs]
  operands[form.index[name]] = value
  assert word in show_all(form, operands)

@pytest.mark.parametrize("arch,key,word,message", [
  ("gfx1100", "v_add_f32", "faster", "faster is no modifier"),
  ("gfx1200", "global_load_b32", "th:TH_STORE_NT", "th of this instruction is TH_LOAD_"),
  ("gfx1200", "global_load_b32", "scope:WIDE", "scope must be SCOPE_CU, SCOPE_SE, SCOPE_DEV or SCOPE_SYS, got WIDE"),
  ("gfx1100", "v_pk_add_f16", "op_sel:[0,2]", "op_sel must be a list of 0 and 1"),
  ("gfx1100", "v_pk_add_f16", "op_sel:1", "op_sel must be a list like"),
  ("gfx1100", "v_pk_add_f16", "neg_lo:[0,0,0,1]", "neg_lo of v_pk_add_f16 has at most 2 bits, got 4"),
])
def test_refusals(arch: str, key: str, word: str, message: str) -> None:
  with pytest.raises(ParseError, match=message.replace("[", r"\[")): parse_one(table(arch)[key].isa, word)
