"""Instructions that follow too soon are delayed; others are not.

The numbers are those of the vendors' documents.
"""
from __future__ import annotations
from collections.abc import Sequence

import pytest

from tinyhw.isa.amd.late.hazards import VECTOR_RESULTS, avoid_hazards
from tinyhw.isa.amd.table.regs import s, v, ve
from tinyhw.isa.amd.table.table import build, table
from tinyhw.isa.amd.target import target
from tinyhw.machine.ir.inst import Block, Function, MInst

def cured(arch: str, *blocks: Sequence[MInst]) -> list[str]:
  """Names of all instructions after the pass; s_nop and s_waitcnt_depctr with their operand."""
  function = Function("k")
  function.blocks = [Block(i) for i in range(len(blocks))]
  for block, insts in zip(function.blocks, blocks): block.insts = list(insts)
  avoid_hazards(function, target(arch))
  return [f"{i.row.name} {i.operands[0]}" if i.row.name in ("s_nop", "s_waitcnt_depctr") else i.row.name
          for b in function.blocks for i in b.insts]

def test_a_mask_two_states_before_it_is_read_on_cdna() -> None:
  rows = table("gfx942")
  compare = build(rows["v_cmp_lt_f32"], s(4, 2), v(0), v(1))
  choose = build(rows["v_cndmask_b32"], v(2), v(0), v(1), s(4, 2))
  other = build(rows["v_mov_b32"], v(3), 0)
  assert cured("gfx942", [compare, choose]) == ["v_cmp_lt_f32", "s_nop 1", "v_cndmask_b32"]
  assert cured("gfx942", [compare, other, choose]) == ["v_cmp_lt_f32", "v_mov_b32", "s_nop 0", "v_cndmask_b32"]
  assert cured("gfx942", [compare, other, other, choose])[3:] == ["v_cndmask_b32"]
  assert cured("gfx942", [compare], [choose]) == ["v_cmp_lt_f32", "s_nop 1", "v_cndmask_b32"]

def test_more_states_for_addresses_and_division_on_cdna() -> None:
  rows = table("gfx942")
  first_lane = build(rows["v_readfirstlane_b32"], s(4), v(0))
  assert cured("gfx942", [first_lane, build(rows["global_load_b32"], v(1), v(2), s(4, 2))])[1] == "s_nop 4"
  scale = build(rows["v_div_scale_f32"], v(1), table("gfx942").generation.vcc, v(2), v(3), v(2))
  assert cured("gfx942", [scale, build(rows["v_div_fmas_f32"], v(4), v(5), v(6), v(7))])[1] == "s_nop 3"
  assert cured("gfx942", [build(rows["v_mov_b32"], v(0), 1), first_lane])[1] == "s_nop 0"

def test_the_data_of_a_wide_store_on_cdna() -> None:
  rows = table("gfx942")
  store = build(rows["global_store_b128"], v(0), ve(4, 4), s(2, 2))
  assert cured("gfx942", [store, build(rows["v_mov_b32"], v(5), 0)])[1] == "s_nop 1"
  assert cured("gfx942", [store, build(rows["v_mov_b32"], v(8), 0)])[1] == "v_mov_b32"

def test_more_states_than_one_instruction_waits_on_cdna() -> None:
  rows = table("gfx942")
  product = build(rows["v_mfma_f32_32x32x2_f32"], ve(0, 16), v(16), v(17), 0)
  assert cured("gfx942", [product, build(rows["v_mov_b32"], v(18), v(3))])[1:3] == ["s_nop 15", "s_nop 2"]

def test_sums_of_products_of_bytes_on_cdna() -> None:
  """Adding to the same sum is forwarded, except from the other instruction. RDNA waits by itself."""
  rows = table("gfx942")
  def dot(d: int, a: int, name: str = "i32_i8") -> MInst: return build(rows[f"v_dot4_{name}"], v(d), v(a), v(9), v(d))
  assert cured("gfx942", [dot(0, 1), dot(0, 2)]) == ["v_dot4_i32_i8"] * 2
  assert cured("gfx942", [dot(0, 1), dot(3, 0)])[1] == "s_nop 2"
  assert cured("gfx942", [dot(0, 1), dot(0, 2, "u32_u8")])[1] == "s_nop 2"
  assert cured("gfx942", [dot(0, 1, "u32_u8"), dot(0, 2)])[1] == "s_nop 2"
  for after in (build(rows["v_mov_b32"], v(5), v(0)), build(rows["v_mov_b32"], v(0), 0),
                build(rows["global_store_b32"], v(4), v(0), s(2, 2))):
    assert cured("gfx942", [dot(0, 1), after])[1] == "s_nop 2"
  new = table("gfx1100")
  first = build(new["v_dot4_i32_iu8"], v(0), v(1), v(2), v(3), neg_lo=3)
  assert len(cured("gfx1100", [first, build(new["v_mov_b32"], v(5), v(0))])) == 2

@pytest.mark.parametrize("arch, cure", [("gfx942", "s_nop 0"), ("gfx1100", f"s_waitcnt_depctr {VECTOR_RESULTS}")])
def test_a_transcendental_result(arch: str, cure: str) -> None:
  rows = table(arch)
  assert cured(arch, [build(rows["v_rcp_f32"], v(1), v(0)), build(rows["v_mul_f32"], v(2), v(1), v(0))])[1] == cure

def test_only_vector_instructions_count_for_a_transcendental_result_on_rdna3() -> None:
  rows = table("gfx1100")
  start, use = build(rows["v_rcp_f32"], v(1), v(0)), build(rows["v_mul_f32"], v(2), v(1), v(0))
  scalar, vector = build(rows["s_mov_b32"], s(0), 0), build(rows["v_mov_b32"], v(9), 0)
  assert f"s_waitcnt_depctr {VECTOR_RESULTS}" in cured("gfx1100", [start, *[scalar] * 8, use])
  assert f"s_waitcnt_depctr {VECTOR_RESULTS}" not in cured("gfx1100", [start, *[vector] * 6, use])

def test_what_no_rule_is_about_is_not_let_through() -> None:
  """Selection emits none of these. A change that emits them must add the rules of their hazards."""
  for arch, key, operands in (("gfx942", "v_mov_b32_dpp", (v(0), v(1))), ("gfx1100", "v_cmpx_eq_u32", (v(0), v(1)))):
    row = table(arch)[key]
    shown = len([spec for spec in row.isa.specs if spec.show])
    inst = build(row, *operands[:shown]) if shown == 2 else build(row, table(arch).generation.vcc, *operands)
    with pytest.raises(AssertionError, match=f"there are hazards of {key}, and no rules"): cured(arch, [inst])
  rows = table("gfx942")
  doubles = build(rows["v_mfma_f64_16x16x4_f64"], ve(0, 8), ve(8, 2), ve(10, 2), 0)
  with pytest.raises(AssertionError, match="hazards of v_mfma_f64_16x16x4_f64, and no rules"):
    cured("gfx942", [doubles])
  cured("gfx942", [build(rows["v_mad_u16"], v(0), v(1), v(2), v(3))])
  upper = build(rows["v_mad_u16"], v(0), v(1), v(2), v(3), op_sel=8)
  with pytest.raises(AssertionError, match="hazards of v_mad_u16 with op_sel, and no rules"): cured("gfx942", [upper])
