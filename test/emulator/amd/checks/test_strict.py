"""Refusals of strict execution: each mistake, and the same kernel without it."""
from __future__ import annotations

import pytest
from amd.kernels import Box, Kernel

from tinyhw.emulator.errors import EarlyWrite, MissingWait, OutOfBounds, UninitialisedRead
from tinyhw.isa.amd.table import regs

def kernel(arch: str = "gfx1100") -> tuple[Kernel, Box]:
  """v1: byte offset of the lane, s[4:5]: a buffer."""
  k, box = Kernel(arch), Box()
  box.buffer(bytes(range(256)) * 2)
  k("s_load_b64", k.s(4, 2), k.s(0, 2), None)
  k("v_and_b32", k.v(0), 0x3ff, k.v(0))
  k("v_lshlrev_b32", k.v(1), 2, k.v(0))
  k.wait(lgkm=0)
  return k, box

ARCHS = ("gfx1100", "gfx1200", "gfx942")

@pytest.mark.parametrize("arch", ARCHS)
def test_a_load_must_be_waited_for_before_its_result_is_read(arch: str) -> None:
  k, box = kernel(arch)
  k("global_load_b32", k.v(2), k.v(1), k.s(4, 2))
  k("v_add_nc_u32", k.v(3), 1, k.v(2))
  with pytest.raises(MissingWait, match=r"v2 is read before global_load_.*wait for (vmcnt|loadcnt)(.|\n)*kernel at "
                     r"0x10000"):
    box.run(k)

@pytest.mark.parametrize("arch", ARCHS)
def test_nor_may_its_result_be_overwritten(arch: str) -> None:
  k, box = kernel(arch)
  k("global_load_b32", k.v(2), k.v(1), k.s(4, 2))
  k("v_mov_b32", k.v(2), 0)
  with pytest.raises(MissingWait, match="v2 is written before global_load_"): box.run(k)

@pytest.mark.parametrize("arch", ARCHS)
def test_a_load_into_the_registers_of_its_address_is_a_load(arch: str) -> None:
  k, box = kernel(arch)
  k("global_load_b32", k.v(1), k.v(1), k.s(4, 2))
  k("v_mov_b32", k.v(2), k.v(1))
  with pytest.raises(MissingWait, match="v1 is read before global_load_"): box.run(k)
  k, box = kernel(arch)
  k("s_load_b64", k.s(4, 2), k.s(4, 2), None)
  k("s_mov_b32", k.s(6), k.s(5))
  with pytest.raises(MissingWait, match="s5 is read before s_load_"): box.run(k)

@pytest.mark.parametrize("arch", ARCHS)
def test_loads_return_in_order(arch: str) -> None:
  """Waiting for all but one of two loads is enough for the first, not for the second."""
  for register in (2, 3):
    k, box = kernel(arch)
    k("global_load_b32", k.v(2), k.v(1), k.s(4, 2))
    k("global_load_b32", k.v(3), k.v(1), k.s(4, 2), offset=4)
    k.wait(vm=1)
    k("v_mov_b32", k.v(4), k.v(register))
    k("s_endpgm")
    if register == 2: box.run(k)
    else:
      with pytest.raises(MissingWait, match="v3 is read"): box.run(k)

@pytest.mark.parametrize("arch", ARCHS)
def test_scalar_loads_do_not(arch: str) -> None:
  k, box = kernel(arch)
  k("s_load_b32", k.s(8), k.s(4, 2), None)
  k("s_load_b32", k.s(9), k.s(4, 2), None, offset=4)
  k.wait(lgkm=1)
  k("s_mov_b32", k.s(10), k.s(8))
  with pytest.raises(MissingWait, match="s8 is read"): box.run(k)

def test_on_gfx9_stores_are_counted_with_loads_and_on_gfx11_not() -> None:
  for arch, fails in (("gfx942", False), ("gfx1100", True)):
    k, box = kernel(arch)
    k("global_load_b32", k.v(2), k.v(1), k.s(4, 2))
    k("global_store_b32", k.v(1), k.v(0), k.s(4, 2), offset=0x100)
    k.wait(vm=1)
    k("v_mov_b32", k.v(4), k.v(2))
    k("s_endpgm")
    if not fails: box.run(k)
    else:
      with pytest.raises(MissingWait): box.run(k)

def test_local_and_scalar_loads_share_a_counter_on_gfx11() -> None:
  """Events of two kinds have a known order only when all have ended. Each kind alone is in order."""
  k, box = kernel()
  k("ds_store_b32", k.v(1), k.v(0))
  k("ds_load_b32", k.v(2), k.v(1))
  k("s_load_b32", k.s(8), k.s(4, 2), None)
  k.wait(lgkm=1)
  k("v_mov_b32", k.v(3), k.v(2))
  with pytest.raises(MissingWait, match="v2"): box.run(k, lds=256)

def test_a_flat_load_needs_both_counters() -> None:
  k, box = kernel()
  k("v_add_co_u32", k.v(4), regs.reg(regs.S[1], regs.VCC), k.s(4), k.v(1))
  k("v_mov_b32", k.v(5), k.s(5))
  k("flat_load_b32", k.v(6), k.v(4, 2))
  k.wait(vm=0)
  k("v_mov_b32", k.v(7), k.v(6))
  with pytest.raises(MissingWait, match="wait for lgkmcnt"): box.run(k)

def test_registers_start_uninitialised() -> None:
  for name, register in (("v_mov_b32", 9), ("v_mov_b32", 30)):
    k, box = kernel()
    k(name, k.v(2), k.v(register))
    with pytest.raises(UninitialisedRead, match=f"v{register} is read in lane 0"): box.run(k)
  k, box = kernel()
  k("s_add_u32", k.s(8), k.s(20), 1)
  with pytest.raises(UninitialisedRead, match="s20 is read"): box.run(k)
  k, box = kernel()
  k("s_cselect_b32", k.s(8), 1, 0)
  with pytest.raises(UninitialisedRead, match="src_scc"): box.run(k)
  k, box = kernel()
  k("v_cndmask_b32", k.v(2), 0, k.v(0), regs.reg(regs.S[1], regs.VCC))
  with pytest.raises(UninitialisedRead, match="vcc_lo"): box.run(k)

def test_lane_by_lane() -> None:
  """A register that half of the lanes have written may be read by them, not by the others."""
  for restored in (False, True):
    k, box = kernel()
    k("s_mov_b32", k.s(20), regs.reg(regs.S[1], regs.EXEC))
    k("s_mov_b32", regs.reg(regs.S[1], regs.EXEC), 0xffff)
    k("v_mov_b32", k.v(2), 1)
    if restored: k("s_mov_b32", regs.reg(regs.S[1], regs.EXEC), k.s(20))
    k("v_mov_b32", k.v(3), k.v(2))
    k("s_endpgm")
    if not restored: box.run(k)
    else:
      with pytest.raises(UninitialisedRead, match="v2 is read in lane 16"): box.run(k)

def test_registers_beyond_those_of_the_kernel() -> None:
  k, box = kernel()
  k("v_mov_b32", k.v(64), 0)
  with pytest.raises(OutOfBounds, match=r"v64 is beyond the 64 vector registers.*raise VGPRS"): box.run(k)
  k, box = kernel("gfx942")
  k("s_mov_b32", k.s(40), 0)
  with pytest.raises(OutOfBounds, match=r"s40 is beyond the 32 scalar"): box.run(k, sgprs=32)

def test_accumulation_registers_have_a_limit_of_their_own() -> None:
  k, box = kernel("gfx942")
  k("v_accvgpr_write_b32", regs.reg(regs.AE[1], 7), k.v(0))
  k("s_endpgm")
  box.run(k, (64,), vgprs=16, accumulator=8)
  k.code[-1] = Kernel("gfx942")("v_accvgpr_write_b32", regs.reg(regs.AE[1], 8), k.v(0)).code[0]
  with pytest.raises(OutOfBounds, match="a8 is beyond the 16"): box.run(k, (64,), vgprs=16, accumulator=8)

def test_no_vector_register_is_left_after_they_were_given_back() -> None:
  k, box = kernel()
  k("s_sendmsg", 3)
  k("v_mov_b32", k.v(2), 0)
  with pytest.raises(OutOfBounds, match="v2"): box.run(k)

@pytest.mark.parametrize("arch", ARCHS)
def test_a_wide_product_in_the_registers_of_its_source(arch: str) -> None:
  """RDNA3 writes a half of the result before it has read everything."""
  for first in (2, 4):
    k, box = kernel(arch)
    k("v_mov_b32", k.v(2), 5)
    carry = k.s(8, 2) if arch == "gfx942" else k.s(8)
    k("v_mad_u64_u32", regs.reg(regs.VE[2] if arch == "gfx942" else regs.V[2], first), carry, k.v(2), k.v(2), 0)
    k("s_endpgm")
    if first == 4 or arch != "gfx1100": box.run(k)
    else:
      with pytest.raises(EarlyWrite, match=r"v_mad_u64_u32 v\[2:3\], s8, v2, v2, 0 may write its result before it "
                         r"reads v2"):
        box.run(k)

PRODUCTS = [  # (architecture, instruction, D, A, B, C or None, overwritten operand): registers as (first, count)
  ("gfx1100", "v_wmma_f32_16x16x16_f16", (0, 8), (0, 8), (8, 8), None, r"v\[0:7\]; give it registers that no source "
   r"has"),
  ("gfx1100", "v_wmma_f32_16x16x16_f16", (15, 8), (0, 8), (8, 8), None, r"v\[8:15\]; give it registers"),
  ("gfx1100", "v_wmma_f32_16x16x16_f16", (16, 8), (0, 8), (8, 8), (20, 8), r"v\[20:27\]; give it registers"),
  ("gfx1100", "v_wmma_f32_16x16x16_f16", (16, 8), (0, 8), (8, 8), (16, 8), None),
  ("gfx1200", "v_wmma_f32_16x16x16_f16", (4, 8), (0, 4), (4, 4), None, r"v\[4:7\]; give it registers"),
  ("gfx1200", "v_wmma_f32_16x16x16_f16", (8, 8), (0, 4), (4, 4), (8, 8), None),
  ("gfx942", "v_mfma_f32_32x32x8_f16", (0, 16), (0, 2), (2, 2), None, None),
  ("gfx942", "v_mfma_f32_32x32x8_f16", (8, 16), (0, 2), (2, 2), (8, 16), None)]

@pytest.mark.parametrize("arch,name,d,a,b,c,told", PRODUCTS)
def test_products_in_the_registers_of_their_sources(arch: str, name: str, d: tuple[int, int], a: tuple[int, int],
                                                    b: tuple[int, int],
                                                    c: tuple[int, int] | None, told: str | None) -> None:
  """LLVM's constraints: D of WMMA may be C, and may overlap no other source. D of MFMA may overlap A and B."""
  k, box = Kernel(arch), Box()
  for i in range(28): k("v_mov_b32", k.v(i), 0)
  k("s_nop", 7)
  k(name, k.v(*d), k.v(*a), k.v(*b), 0 if c is None else k.v(*c))
  k("s_endpgm")
  if told is None: box.run(k, (k.lanes,))
  else:
    with pytest.raises(EarlyWrite, match=f"may write its result before it reads {told}"): box.run(k, (k.lanes,))
