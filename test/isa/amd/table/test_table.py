"""Properties of the rows; every row can be made."""
from __future__ import annotations

import pytest

from tinyhw.errors import EncodeError
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.table import build, table
from tinyhw.machine.ir.inst import Access, Effect

ARCHS = ("gfx942", "gfx950", "gfx1100", "gfx1200", "gfx1100:wave64", "gfx1200:wave64")

@pytest.mark.parametrize("arch", ARCHS)
def test_every_row_can_be_made_and_has_one_opcode_for_each_encoding(arch: str) -> None:
  rows = table(arch)
  seen: dict[tuple[object, ...], str] = {}
  for row in rows:
    assert len(row.operands) == len(row.isa.specs) and row.isa.encodings
    for encoding in row.isa.encodings:
      returns = "th" in row.isa.index and row.isa.key.endswith("_rtn")  # th tells it too
      key = (encoding.format_name, returns, *sorted(encoding.values.items()))
      assert seen.setdefault(key, row.isa.key) == row.isa.key, f"{row.isa.key} and {seen[key]} are both {key}"

def test_one_name_in_all_generations() -> None:
  for name, spelled in (("global_load_b32", ("global_load_dword", "global_load_b32")),
                        ("s_addc_u32", ("s_addc_u32", "s_add_co_ci_u32"))):
    rows = [table(a)[name] for a in ("gfx942", "gfx1200")]
    assert tuple(r.isa.mnemonic for r in rows) == spelled and {r.name for r in rows} == {name}
    assert table("gfx942")[spelled[1]] is rows[0] and table("gfx1200")[spelled[0]] is rows[1]

def test_roles_classes_and_types() -> None:
  row = table("gfx942")["v_add_f64"]
  assert [(o.name, o.access, o.cls) for o in row.operands[:3]] == [
    ("vdst", Access.WRITE, regs.VE[2]), ("src0", Access.READ, regs.VE[2]), ("src1", Access.READ, regs.VE[2])]
  assert row.isa.specs[1].classes == (regs.VE[2], regs.S[2]) and row.isa.specs[1].type.name == "f64"
  assert table("gfx1100")["v_add_f64"].operands[0].cls is regs.V[2]
  assert table("gfx1100")["v_fmac_f32"].operands[0].access == Access.BOTH
  assert table("gfx1100")["v_add_f32_dpp"].operands[0].access == Access.BOTH  # inactive lanes keep their value

def test_a_buffer_atomic_returns_in_the_register_of_its_data() -> None:
  rows = table("gfx1100")
  assert ([rows[key].operands[0].access for key in ("buffer_atomic_add_u32", "buffer_atomic_add_u32_rtn")]
          == [Access.READ, Access.BOTH])

def test_masks_are_as_wide_as_a_wave() -> None:
  assert ([table(a)["v_cmp_lt_f32"].operands[0].cls for a in ("gfx942", "gfx1100", "gfx1100:wave64")]
          == [regs.S[2], regs.S[1], regs.S[2]])

def test_what_is_read_and_written_besides_operands() -> None:
  rows = table("gfx1100")
  assert rows["s_add_u32"].isa.writes == ("scc",) and rows["s_add_u32"].effects == Effect.WRITE_FLAGS
  assert rows["s_and_saveexec_b32"].isa.reads == ("exec",
                                                  ) and set(rows["s_and_saveexec_b32"].isa.writes) == {"exec", "scc"}
  assert rows["v_cmpx_lt_f32"].isa.writes == ("exec",) and rows["v_div_fmas_f32"].isa.reads == ("vcc", "exec")

@pytest.mark.parametrize("name,counters", [
  ("global_load_b32", ("vmcnt", "vmcnt", "loadcnt")), ("global_store_b32", ("vmcnt", "vscnt", "storecnt")),
  ("global_atomic_add_u32", ("vmcnt", "vscnt", "storecnt")),
  ("global_atomic_add_u32_rtn", ("vmcnt", "vmcnt", "loadcnt")),
  ("ds_load_b32", ("lgkmcnt", "lgkmcnt", "dscnt")), ("s_load_b32", ("lgkmcnt", "lgkmcnt", "kmcnt")),
  ("flat_load_b32", ("vmcnt+lgkmcnt", "vmcnt+lgkmcnt", "loadcnt+dscnt")), ("v_add_f32", ("", "", "")),
])
def test_counters(name: str, counters: tuple[str, ...]) -> None:
  assert tuple(table(a)[name].isa.counter for a in ("gfx942", "gfx1100", "gfx1200")) == counters

def test_build_refuses() -> None:
  row = table("gfx1100")["v_add_f32"]
  with pytest.raises(EncodeError, match=r"v_add_f32 takes 3 operands \(vdst, src0, src1\), got 2"):
    build(row, regs.v(0), regs.v(1))
  with pytest.raises(EncodeError, match="v_add_f32 has no modifier offset; it has neg, abs, clamp, omod"):
    build(row, regs.v(0), regs.v(1), regs.v(2), offset=4)
  with pytest.raises(EncodeError, match="gfx1100 has no instruction s_add_f32"): table("gfx1100")["s_add_f32"]

def test_build_keeps_bits_that_no_operand_has() -> None:
  """Bit 2 of op_sel_hi belongs to a third source and stays set if there are two."""
  inst = build(table("gfx1100")["v_pk_add_f16"], regs.v(0), regs.v(1), regs.v(2), op_sel_hi=1)
  assert inst.operands[inst.row.isa.index["op_sel_hi"]] == 0b101

# LLVM, VOP3Instructions.td and, for v_wmma, VOP3PInstructions.td: opcodes with "@earlyclobber $vdst";
# FeatureMADIntraFwdBug is gfx11.0's
EARLY = {"v_qsad_pk_u16_u8", "v_mqsad_pk_u16_u8", "v_mqsad_u32_u8"}

@pytest.mark.parametrize("arch", ["gfx942", "gfx950", "gfx1100", "gfx1200"])
def test_results_that_are_written_early(arch: str) -> None:
  more = {"v_mad_u64_u32", "v_mad_i64_i32"} if arch == "gfx1100" else set()
  found = {row.name: [row.operands[i].name for i in row.early] for row in table(arch) if row.early}
  assert {name for name in found if not name.startswith("v_wmma_")} == EARLY | more
  assert {name for name in found if name.startswith("v_wmma_")} == {row.name for row in table(arch)
                                                                    if row.name.startswith("v_wmma_")}
  assert set(map(tuple, found.values())) == {("vdst",)}
