"""The oracle of mutations, rule by rule: short traces that keep a rule, and traces that break it."""
from __future__ import annotations

import pytest

from test.emulator.amd.rules import (
  Did, Known, Local, broken, cdna_hazards, in_flight, local_races, rdna3_transcendental, rdna4_scalars)
from test.emulator.amd.rules import rdna_products, undefined, waits
from tinyhw.isa.amd.asm import syntax
from tinyhw.isa.amd.asm.decode import decode

def trace(arch: str, text: str) -> list[Did]:
  """Return instructions, one a line, as one wave executes them with all lanes."""
  lanes = (1 << (64 if arch == "gfx942" else 32)) - 1
  return [Did(decode(syntax.assemble(line.strip(), arch), 0, arch)[0], lanes, k)
          for k, line in enumerate(text.strip().splitlines())]

WAITS = (
  ("gfx942", "global_load_dword v1, v0, s[0:1] \n v_mov_b32 v2, v1", "is touched"),
  ("gfx942", "global_load_dword v1, v0, s[0:1] \n s_waitcnt vmcnt(0) \n v_mov_b32 v2, v1", ""),
  ("gfx942", "global_load_dword v1, v0, s[0:1] \n global_store_dword v0, v3, s[0:1] \n s_waitcnt vmcnt(1) \n "
   "v_mov_b32 v2, v1", ""),
  ("gfx942", "global_load_dword v1, v0, s[0:1] \n s_waitcnt lgkmcnt(0) \n v_mov_b32 v2, v1", "is touched"),
  ("gfx1100", "global_load_b32 v1, v0, s[0:1] \n global_load_b32 v2, v0, s[0:1] \n s_waitcnt vmcnt(1) \n v_mov_b32 "
   "v3, v1", ""),
  ("gfx1100", "global_load_b32 v1, v0, s[0:1] \n global_load_b32 v2, v0, s[0:1] \n s_waitcnt vmcnt(1) \n v_mov_b32 "
   "v3, v2", "is touched"),
  ("gfx1100", "global_load_b32 v1, v0, s[0:1] \n global_store_b32 v0, v2, s[0:1] \n s_waitcnt vmcnt(1) \n v_mov_b32 "
   "v3, v1", "is touched"),
  ("gfx1100", "global_load_b32 v1, v0, s[0:1] \n v_mov_b32 v1, 0", "is touched"),
  ("gfx1100", "global_load_b32 v1, v0, s[0:1] \n global_load_b32 v1, v0, s[0:1]", ""),
  ("gfx1100", "global_load_b32 v1, v1, s[0:1] \n v_mov_b32 v3, v1", "is touched"),
  ("gfx1100", "s_load_b32 s4, s[0:1], 0x0 \n s_load_b32 s5, s[0:1], 0x4 \n s_waitcnt lgkmcnt(1) \n s_mov_b32 s6, s4",
   "is touched"),
  ("gfx1100", "s_load_b32 s4, s[0:1], 0x0 \n s_load_b32 s5, s[0:1], 0x4 \n s_waitcnt lgkmcnt(0) \n s_mov_b32 s6, s4",
   ""),
  ("gfx1100", "ds_load_b32 v1, v0 \n s_load_b32 s5, s[0:1], 0x4 \n s_waitcnt lgkmcnt(1) \n v_mov_b32 v3, v1",
   "is touched"),
  ("gfx1200", "ds_load_b32 v1, v0 \n s_wait_loadcnt 0x0 \n v_mov_b32 v3, v1", "is touched"),
  ("gfx1200", "ds_load_b32 v1, v0 \n s_wait_dscnt 0x0 \n v_mov_b32 v3, v1", ""),
  ("gfx1200", "s_load_b32 s4, s[0:1], 0x0 \n s_wait_kmcnt 0x0 \n s_mov_b32 s6, s4", ""),
)

@pytest.mark.parametrize("arch, text, rule", WAITS)
def test_waits(arch: str, text: str, rule: str) -> None: check(list(waits(trace(arch, text), Known(arch))), rule)

MFMA, SGEMM, DGEMM = ("v_mfma_f32_16x16x16_f16 v[0:3], v[8:9], v[10:11], v[0:3]",
                      "v_mfma_f32_32x32x2_f32 v[0:15], v16, v17, v[0:15]",
                      "v_mfma_f64_16x16x4_f64 v[0:7], v[8:9], v[10:11], v[0:7]")
# For CDNA: first instruction, second instruction, wait states that they need, rule that reports it
PAIRS = (
  ("v_cmp_eq_u32 s[4:5], v0, v1", "v_cndmask_b32 v2, v0, v1, s[4:5]", 2, "scalar register, VALU"),
  ("v_cmp_eq_u32 vcc, v0, v1", "v_div_fmas_f32 v2, v0, v1, v3", 4, "div_fmas"),
  ("v_readfirstlane_b32 s4, v0", "v_readlane_b32 s5, v1, s4", 4, "lane's number"),
  ("v_cmpx_eq_u32 v0, v1", "v_readfirstlane_b32 s4, v2", 4, "EXEC, a lane"),
  ("v_mov_b32 v2, v1", "v_readfirstlane_b32 s4, v2", 1, "a lane of it"),
  ("v_readfirstlane_b32 s4, v0", "global_load_dword v1, v0, s[4:5]", 5, "memory reads it"),
  ("v_mov_b32 v2, v1", "v_mov_b32_dpp v3, v2 row_shr:1 row_mask:0xf bank_mask:0xf", 2, "DPP"),
  ("v_rcp_f32 v2, v1", "v_add_f32 v3, v2, v2", 1, "transcendental"),
  ("global_store_dwordx4 v0, v[4:7], s[0:1]", "v_mov_b32 v5, v1", 2, "wide store"),
  ("v_mov_b32 v8, v1", MFMA, 2, "MFMA reads it"),
  (MFMA, "v_mov_b32 v20, v1", 7, "use of the result"),
  (MFMA, "global_store_dword v30, v1, s[0:1]", 7, "use of the result"),
  (MFMA, "v_mov_b32 v1, v20", 7, "use of the result"),
  (MFMA, "v_mfma_f32_16x16x16_f16 v[20:23], v[0:1], v[10:11], v[20:23]", 7, "as a factor"),
  (MFMA, "v_mfma_f32_16x16x16_f16 v[20:23], v[8:9], v[10:11], v[2:5]", 5, "part of a result"),
  (SGEMM, "v_mov_b32 v20, v1", 18, "use of the result"),
  (DGEMM, "v_mov_b32 v20, v1", 11, "use of the result"),
  (DGEMM, "global_store_dword v30, v1, s[0:1]", 18, "use of the result"),
  ("v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[20:35]", "v_mov_b32 v20, v40", 7, "adds to"),
)

@pytest.mark.parametrize("first, second, states, rule", PAIRS)
def test_pairs_of_cdna(first: str, second: str, states: int, rule: str) -> None:
  for between in (states, states - 1):
    nops = [f"s_nop {min(between - k, 16) - 1}" for k in range(0, between, 16)]
    found = list(cdna_hazards(trace("gfx942", "\n".join((first, *nops, second))), Known("gfx942")))
    check(found, rule if between < states else "")

def test_a_sum_goes_on_at_once() -> None:
  for product in (MFMA, SGEMM, DGEMM):
    assert not list(cdna_hazards(trace("gfx942", f"{product}\n{product}"), Known("gfx942")))

WMMA = "v_wmma_f32_16x16x16_f16 v[0:7], {}, v[16:23], v[0:7]"

def test_products_of_rdna() -> None:
  first, second = WMMA.format("v[8:15]"), "v_wmma_f32_16x16x16_f16 v[24:31], v[0:7], v[16:23], v[24:31]"
  for text, rule in ((f"{first}\n{second}", "as a factor"), (f"{first}\nv_nop\n{second}", ""),
                     (f"{first}\ns_nop 1\n{second}", "as a factor"),
                     (f"{first}\n{first}", "")):
    check(list(rdna_products(trace("gfx1100", text), Known("gfx1100"))), rule)

@pytest.mark.parametrize("between, rule", (
  ("", "transcendental"), ("\n".join(["v_mov_b32 v9, 0"] * 5), "transcendental"),
  ("\n".join(["v_mov_b32 v9, 0"] * 6), ""),
  ("v_exp_f32 v8, v7", "transcendental"), ("v_exp_f32 v8, v7\nv_exp_f32 v9, v7", ""), ("s_waitcnt_depctr 0xfff", ""),
  ("s_nop 7", "transcendental"),
  ("ds_load_b32 v6, v5", ""), ("v_mov_b32 v2, 0", "")))
def test_transcendental_results_of_rdna3(between: str, rule: str) -> None:
  text = f"v_rcp_f32 v2, v1\n{between}\nv_add_f32 v3, v2, v2".replace("\n\n", "\n")
  check(list(rdna3_transcendental(trace("gfx1100", text), Known("gfx1100"))), rule)

@pytest.mark.parametrize("text, rule", (
  ("v_mov_b32 v0, s4\ns_mov_b32 s4, 0\nv_mov_b32 v1, s4", "sa_sdst"),
  ("v_mov_b32 v0, s5\ns_mov_b32 s4, 0\ns_add_co_u32 s6, s4, s4", "sa_sdst"),
  ("v_mov_b32 v0, s4\ns_mov_b32 s4, 0\ns_wait_alu 0xff9e\nv_mov_b32 v1, s4", ""),
  ("v_mov_b32 v0, s4\ns_mov_b32 s4, 0\ns_wait_alu 0xf19f\nv_mov_b32 v1, s4", "sa_sdst"),
  ("v_mov_b32 v0, s4\nv_readfirstlane_b32 s4, v3\nv_mov_b32 v1, s4", "va_sdst"),
  ("v_mov_b32 v0, s4\nv_readfirstlane_b32 s4, v3\ns_mov_b32 s6, s4\nv_mov_b32 v1, s4", ""),
  ("v_mov_b32 v0, s4\ns_mov_b32 s4, 0\ns_load_b32 s8, s[0:1], 0x0\nv_mov_b32 v1, s4", ""),
  ("v_cndmask_b32 v0, v1, v2, vcc_lo\nv_cmp_eq_u32 vcc_lo, v3, v4\nv_cndmask_b32 v5, v1, v2, vcc_lo", "va_vcc"),
  ("s_mov_b32 s4, 0\nv_mov_b32 v1, s4", "")))
def test_scalar_registers_of_rdna4(text: str, rule: str) -> None:
  check(list(rdna4_scalars(trace("gfx1200", text), Known("gfx1200"))), rule)

@pytest.mark.parametrize("text, rule", (
  ("v_mov_b32 v1, v0", ""), ("v_mov_b32 v1, v2", "vector register without"), ("s_mov_b32 s4, s15", ""),
  ("s_mov_b32 s4, s3", "scalar register without"),
  ("s_or_b32 s4, s3, exec_lo", ""), ("s_cselect_b32 s4, 1, 0", "scalar register without"),
  ("v_mov_b32 v3, 0\nglobal_store_b32 v0, v3, s[0:1]", "")))
def test_registers_without_a_value(text: str, rule: str) -> None:
  check(list(undefined(trace("gfx1100", text), Known("gfx1100"))), rule)

def test_lanes_without_a_value() -> None:
  first, second = trace("gfx1100", "v_mov_b32 v1, 0\nv_mov_b32 v2, v1")
  check(list(undefined([first._replace(exec=3), second._replace(exec=7)], Known("gfx1100"))), "vector register without")
  check(list(undefined([first._replace(exec=7), second._replace(exec=3)], Known("gfx1100"))), "")

STORE, LOAD, BARRIER, WAIT = "ds_store_b32 v0, v1", "ds_load_b32 v2, v0", "s_barrier", "s_waitcnt lgkmcnt(0)"

def local(text: str) -> list[Did]:
  """Return a trace whose LDS accesses are all at byte 4."""
  return [did._replace(local=Local("store" in did.inst.row.name, ((4, 4),))) if did.inst.row.name.startswith("ds_")
          else did
          for did in trace("gfx1100", text)]

@pytest.mark.parametrize("first, second, rule", (
  (STORE, LOAD, "race at byte 4"), (LOAD, LOAD, ""), (STORE, STORE, "race at byte 4"),
  (f"{STORE}\n{WAIT}\n{BARRIER}", f"{BARRIER}\n{LOAD}", ""),
  (f"{STORE}\n{BARRIER}", f"{BARRIER}\n{LOAD}", "race at byte 4"),
  (f"{BARRIER}\n{LOAD}", f"{STORE}\n{WAIT}\n{BARRIER}", "")))
def test_races(first: str, second: str, rule: str) -> None:
  check(list(local_races([local(first), local(second)], Known("gfx1100"))), rule)

def test_local_memory_ends_and_begins_empty() -> None:
  text = "v_mov_b32 v1, 0\nds_store_b32 v0, v1\ns_waitcnt lgkmcnt(0)\nds_load_b32 v2, v0"
  assert not list(broken([local(text)], "gfx1100", 8))
  check(list(broken([local(text)], "gfx1100", 4)), "beyond the LDS")
  check(list(broken([local("ds_load_b32 v2, v0")], "gfx1100", 8)), "without a value")

def test_what_is_in_flight() -> None:
  flying = [len(f) for _, _, f in in_flight(trace("gfx1100", f"{LOAD}\n{LOAD}\ns_waitcnt lgkmcnt(1)\n{WAIT}\ns_endpgm"),
                                            Known("gfx1100"))]
  assert flying == [0, 1, 2, 1, 0]

def check(found: list[object], rule: str) -> None:
  """Check that the rule is reported, or none."""
  assert bool(found) == bool(rule) and all(rule in str(x) for x in found[:1]), found

def test_waves_may_write_the_same() -> None:
  def wave(value: bytes) -> list[Did]:
    return [did._replace(local=Local(True, ((4, 4),), (value,))) for did in trace("gfx1100", STORE)]
  check(list(local_races([wave(b"same"), wave(b"same")], Known("gfx1100"))), "")
  check(list(local_races([wave(b"same"), wave(b"some")], Known("gfx1100"))), "race at byte 5")
