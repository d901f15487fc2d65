"""Work and resources of AMD's instructions, one by one."""
from __future__ import annotations
import pytest

from tinyhw.dtype import dtypes
from tinyhw.isa.amd.asm.syntax import parse
from tinyhw.isa.amd.model.rates import card
from tinyhw.isa.amd.model.resources import Costs, element_of, meets, operations, touched, waits
from tinyhw.isa.amd.table.form import Generation
from tinyhw.machine.model.access import Pattern
from tinyhw.machine.model.traffic import Traffic
from tinyhw.uop.ops import UOp

@pytest.mark.parametrize("arch, text, size, count, element", [
  ("gfx1100", "global_load_b128 v[0:3], v4, s[0:1]", 512, 0, ""),
  ("gfx1100:wave64", "global_load_b128 v[0:3], v4, s[0:1]", 1024, 0, ""),
  ("gfx1100", "global_store_b16 v4, v0, s[0:1]", 64, 0, ""),
  ("gfx1100", "ds_load_b64 v[0:1], v2", 256, 0, ""),
  ("gfx1100", "ds_store_2addr_b32 v0, v1, v2 offset1:1", 256, 0, ""),
  ("gfx1100", "s_load_b512 s[0:15], s[16:17], 0x0", 64, 0, ""),
  ("gfx942", "global_load_dwordx4 v[0:3], v4, s[0:1]", 1024, 0, ""),
  ("gfx1100", "v_fma_f32 v0, v1, v2, v3", 0, 64, "vf32"),
  ("gfx942", "v_pk_fma_f16 v0, v1, v2, v3", 0, 256, "vf16"),
  ("gfx1100", "v_fma_mixlo_f16 v0, v1, v2, v3 op_sel_hi:[1,1,0]", 0, 64, "vf32"),
  ("gfx1100", "v_fma_mix_f32 v0, v1, 1.0, v2 op_sel_hi:[1,0,0]", 0, 32, "vf32"),
  ("gfx1100", "v_fma_mixhi_f16 v0, v1, 1.0, neg(0)", 0, 0, "vf32"),
  ("gfx942", "v_add_f64 v[0:1], v[2:3], v[4:5]", 0, 64, "vf64"),
  ("gfx1100", "v_add_nc_u32 v0, v1, v2", 0, 0, ""),
  ("gfx1100", "v_cvt_f16_f32 v0, v1", 0, 0, ""),
  ("gfx1100", "v_dual_fmac_f32 v0, v1, v2 :: v_dual_add_f32 v3, v4, v5", 0, 96, "vf32"),
  ("gfx1100", "v_dot2_f32_f16 v0, v1, v2, v3", 0, 128, "vf32"),
  ("gfx1100", "v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]", 0, 8192, "f16"),
  ("gfx942", "v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15]", 0, 16384, "f16"),
  ("gfx942", "v_mfma_f32_4x4x4_16b_f16 v[0:3], v[16:17], v[18:19], v[0:3]", 0, 2048, "f16"),
])
def test_bytes_and_operations_of_a_wave(arch: str, text: str, size: int, count: int, element: str) -> None:
  inst = parse(text, arch)
  assert (touched(inst), operations(inst), element_of(inst)) == (size, count, element)

@pytest.mark.parametrize("arch, text, counts", [
  ("gfx1100", "s_waitcnt vmcnt(3)", {"vmcnt": 3}),
  ("gfx1100", "s_waitcnt vmcnt(0) lgkmcnt(0)", {"vmcnt": 0, "lgkmcnt": 0}),
  ("gfx942", "s_waitcnt vmcnt(40)", {"vmcnt": 40}), ("gfx1200", "s_wait_dscnt 2", {"dscnt": 2}),
  ("gfx1200", "s_wait_loadcnt_dscnt 0x0301", {"loadcnt": 3, "dscnt": 1}), ("gfx1100", "v_nop", {})])
def test_waits(arch: str, text: str, counts: dict[str, int]) -> None:
  assert waits(parse(text, arch)) == counts and not meets(parse(text, arch))

def costs_of(arch: str, pattern: Pattern, once: dict[UOp, float] | None = None) -> Costs:
  """Costs with this pattern of accesses."""
  generation = Generation(arch)
  return Costs(generation, Traffic(card(generation), generation.wave, lambda inst: pattern, None, once))

def pattern(stride: int, lanes: int = 32, fresh: float = 1.0) -> Pattern:
  """Lanes with `stride` bytes between them."""
  return Pattern((tuple(stride * lane for lane in range(lanes)),), fresh, fresh)

@pytest.mark.parametrize("text, stride, sectors", [
  ("global_load_b32 v0, v4, s[0:1]", 4, 2), ("global_load_b128 v[0:3], v4, s[0:1]", 16, 8),
  ("global_load_b32 v0, v4, s[0:1]", 64, 32),
  ("global_store_b16 v4, v0, s[0:1]", 2, 1), ("global_load_b32 v0, v4, s[0:1]", 0, 1)])
def test_memory_by_sectors(text: str, stride: int, sectors: int) -> None:
  inst, own, sizes = parse(text, "gfx1100"), costs_of("gfx1100", pattern(stride)), card(Generation("gfx1100"))
  assert (own.takes(inst)["g"] == sectors * 64 / sizes.first_rate and own.takes(inst)["2"] == sectors * 64
          * 48 / sizes.second_rate)

def test_memory_counts_what_is_asked_for_once() -> None:
  inst = parse("global_load_b32 v0, v4, s[0:1]", "gfx1100")
  once, quarter = (costs_of("gfx1100", pattern(4, fresh=fresh)).takes(inst)["m"] for fresh in (1.0, 0.25))
  assert once == 4 * quarter == 128 * 48 / 384

@pytest.mark.parametrize("text, stride, cycles", [
  ("ds_load_b32 v0, v1", 4, 1), ("ds_load_b32 v0, v1", 8, 2), ("ds_load_b32 v0, v1", 128, 32),
  ("ds_load_b32 v0, v1", 132, 1),
  ("ds_load_b32 v0, v1", 0, 1), ("ds_load_b128 v[0:3], v4", 16, 4), ("ds_load_b128 v[0:3], v4", 64, 16),
  ("ds_load_b128 v[0:3], v4", 80, 4)])
def test_local_memory_by_banks(text: str, stride: int, cycles: int) -> None:
  own = costs_of("gfx1100", pattern(stride))
  assert own.takes(parse(text, "gfx1100"))["d"] == cycles / 2  # a WGP has two of a compute unit's LDS

def test_unknown_addresses() -> None:
  own = Costs(Generation("gfx942"))
  assert own.takes(parse("ds_read_b32 v0, v1", "gfx942"))["d"] == 2
  assert own.takes(parse("global_load_dword v0, v4, s[0:1]", "gfx942"))["g"] == 64
  assert own.takes(parse("scratch_load_dword v0, off, off", "gfx942"))["g"] == 4

@pytest.mark.parametrize("text, cycles", [
  ("v_fma_f32 v0, v1, v5, v9", 1), ("v_fmac_f32 v4, v0, v1", 1), ("v_mul_lo_u32 v0, v4, v8", 4),
  ("v_add_f32 v0, v2, v6", 1),
  ("v_dual_fmac_f32 v0, v4, v8 :: v_dual_fmac_f32 v1, v5, v9", 1)])
def test_banks_of_registers_give_each_source_at_once_on_rdna(text: str, cycles: int) -> None:
  """The first sources of two operations must be in different banks, and so must the second ones. A first and a second
  one may share a bank."""
  for arch in ("gfx1100", "gfx1200"): assert Costs(Generation(arch)).takes(parse(text, arch))["v"] == cycles

def test_memory_gives_what_the_last_level_cache_keeps_once() -> None:
  buffer = UOp.param(0, dtypes.float32, 1 << 10)
  inst = parse("global_load_b32 v0, v4, s[0:1]", "gfx1100")
  inst.origin = buffer.index(UOp.const(dtypes.int32, 0)).load()
  all_of_it, tenth = (costs_of("gfx1100", pattern(4), once).takes(inst) for once in ({}, {buffer: 0.1}))
  assert tenth["m"] == pytest.approx(all_of_it["m"] / 10) and tenth["l"] == all_of_it["l"] == 128 * 48 / (5300 / 2.5)
