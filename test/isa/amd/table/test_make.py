"""Rows made from lines: encodings, operands and modifiers."""
from __future__ import annotations

import pytest

from tinyhw.isa.amd.table.form import Form
from tinyhw.isa.amd.table.table import table

def form_of(arch: str, key: str) -> Form:
  form: Form = table(arch)[key].isa
  return form

@pytest.mark.parametrize("arch,key,names", [
  ("gfx1100", "v_add_f32", ["_e32", "_e64"]), ("gfx1100", "v_add_f32_dpp", ["_dpp", "_e64_dpp"]),
  ("gfx1100", "v_add_f32_e64_dpp", ["_e64_dpp"]),
  ("gfx942", "v_add_f32_sdwa", ["_sdwa"]), ("gfx942", "v_add_f32_dpp", ["_dpp"]),
  ("gfx942", "s_load_dword", ["", "", ""]),
  ("gfx1200", "s_add_u32", [""])])
def test_encodings_whose_operands_are_alike_are_one_row(arch: str, key: str, names: list[str]) -> None:
  assert [encoding.name for encoding in form_of(arch, key).encodings] == names

@pytest.mark.parametrize("arch,key", [
  ("gfx1100", "v_add_f32_sdwa"), ("gfx942", "v_add_f32_dpp8"), ("gfx1100", "v_readfirstlane_b32_dpp"),
  ("gfx1100", "v_add_f64_dpp"), ("gfx1100", "s_add_u32_e64")])
def test_forms_that_there_are_not(arch: str, key: str) -> None:
  assert table(arch).get(key) is None

@pytest.mark.parametrize("arch,key,modifiers", [
  ("gfx1100", "v_add_f32", "neg abs clamp omod"), ("gfx1100", "v_add_nc_u32", "clamp"),
  ("gfx942", "v_add_u32_sdwa", "sext clamp dst_sel dst_unused src0_sel src1_sel"),
  ("gfx1100", "v_pk_add_f16", "neg_lo neg_hi op_sel clamp op_sel_hi"),
  ("gfx1100", "v_fma_mix_f32", "neg abs op_sel clamp op_sel_hi"),
  ("gfx1100", "v_add_f32_dpp", "neg abs clamp omod dpp_ctrl row_mask bank_mask bound_ctrl fi"),
  ("gfx1100", "v_mov_b32_dpp8", "dpp8 fi"),
  ("gfx942", "v_mfma_f32_32x32x1_2b_f32", "cbsz abid blgp"), ("gfx950", "v_mfma_f32_16x16x128_f8f6f4", "cbsz blgp"),
  ("gfx942", "global_load_b32", "offset sc0 nt sc1"), ("gfx1100", "global_load_b32", "offset glc slc dlc"),
  ("gfx1200", "global_load_b32", "offset th scope"),
  ("gfx942", "ds_load_b32", "offset"), ("gfx1100", "ds_load_b32", "offset gds"), ("gfx942", "buffer_wbl2", "sc0 sc1")])
def test_modifiers(arch: str, key: str, modifiers: str) -> None:
  assert [spec.name for spec in form_of(arch, key).specs if not spec.show] == modifiers.split()

def test_modifiers_have_bits_for_the_sources_that_they_can_change() -> None:
  form = form_of("gfx1100", "v_ldexp_f32")  # its second source is an integer
  assert form.specs[form.index["neg"]].mask == 0b01
  form = form_of("gfx1100", "v_fma_f16")
  assert form.specs[form.index["neg"]].mask == 0b111 and form.specs[form.index["op_sel"]].mask == 0b1111

def test_what_modifiers_are_where_they_are_left_out() -> None:
  form = form_of("gfx942", "v_add_f32_sdwa")
  assert {name: form.specs[i].implied for name, i in form.index.items()
          if name.endswith("_sel")} == {"dst_sel": 6, "src0_sel": 6, "src1_sel": 6}
  assert form_of("gfx1100", "v_fma_mix_f32").specs[-1].implied == 0 and form_of("gfx1100",
                                                                                "v_pk_add_f16").specs[-1].implied == 7

def test_an_atomic_that_returns_nothing_has_no_destination() -> None:
  assert ("vdst" not in form_of("gfx1100", "global_atomic_add_u32").index
          and "vdst" in form_of("gfx1100", "global_atomic_add_u32_rtn").index)
