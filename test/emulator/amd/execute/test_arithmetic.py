"""Operands and modifiers of instructions with semantics in the notation: constants, negation, literals, SDWA, VOPD,
comparisons that write EXEC."""
from __future__ import annotations
import struct

import pytest
from amd.kernels import Box, Kernel, words

from tinyhw.emulator.amd.execute.arithmetic import Mode, check_mode, semantics_of, reads_result
from tinyhw.emulator.errors import UnknownInstruction
from tinyhw.isa.amd.table import regs

VCC, EXEC = regs.reg(regs.S[1], regs.VCC), regs.reg(regs.S[1], regs.EXEC)

def f(x: float) -> int: return int(struct.unpack("<I", struct.pack("<f", x))[0])

def results(k: Kernel, *rows: int) -> list[int]:
  """Return the values of lane 0 in vector registers at the end."""
  box = Box()
  out = box.buffer(4 * len(rows))
  k("s_load_b64", k.s(40, 2), k.s(0, 2), None)
  k(f"s_mov_b{k.lanes}", regs.reg(regs.S[k.lanes // 32], regs.EXEC), 1)
  k("s_nop", 7)
  k("v_mov_b32", k.v(40), 0)
  k.wait(lgkm=0)
  for i, row in enumerate(rows): k("global_store_b32", k.v(40), k.v(row), k.s(40, 2), offset=4 * i)
  k("s_endpgm")
  box.run(k, (1,))
  return words(out)

def test_constants_have_the_type_of_their_operand() -> None:
  k = Kernel()
  k("v_mov_b32", k.v(1), f(1.0))
  k("v_add_f32", k.v(2), f(0.5), k.v(1))             # inline
  k("v_add_f32", k.v(3), f(0.3), k.v(1))             # a literal
  k("v_add_nc_u32", k.v(4), 0xfffffff0, k.v(1))      # inline -16
  k("v_mov_b32", k.v(5), 0x7777)
  k("v_add_f16", k.v(5), 0x3c00, k.v(1))             # inline 1.0 as float16
  k("v_add_f64", k.v(6, 2), 0x3fe0000000000000, 0x4010000000000000)  # 0.5 + 4.0
  k("v_lshlrev_b64", k.v(8, 2), 4, 0xffffffffffffffff)
  found = results(k, 2, 3, 4, 5, 7, 8, 9)
  assert found == [f(1.5), f(1.0 + struct.unpack("<f", struct.pack("<f", 0.3))[0]), f(1.0) - 16, 0x3c00, 0x40120000,
                   0xfffffff0, 0xffffffff]

def test_negation_and_magnitude() -> None:
  k = Kernel()
  k("v_mov_b32", k.v(1), f(-3.0))
  k("v_add_f32", k.v(2), k.v(1), 0, abs=1)
  k("v_add_f32", k.v(3), k.v(1), 0, neg=1, abs=1)
  k("v_fma_f32", k.v(4), k.v(1), k.v(1), k.v(1), neg=4)
  assert results(k, 2, 3, 4) == [f(3.0), f(-3.0), f(12.0)]

def test_literals_of_fmaak_and_fmamk() -> None:
  k = Kernel()
  k("v_mov_b32", k.v(1), f(2.0))
  k("v_fmaak_f32", k.v(2), k.v(1), k.v(1), f(0.25))
  k("v_fmamk_f32", k.v(3), k.v(1), f(10.0), k.v(1))
  assert results(k, 2, 3) == [f(4.25), f(22.0)]

def test_both_halves_of_a_dual_instruction_read_before_either_writes() -> None:
  k = Kernel()
  for i, x in ((1, 1.0), (2, 10.0), (3, 100.0), (4, 1000.0)): k("v_mov_b32", k.v(i), f(x))
  k("v_dual_mov_b32::v_dual_add_f32", k.v(4), k.v(1), k.v(3), k.v(4), k.v(2))
  assert results(k, 3, 4) == [f(1010.0), f(1.0)]

def test_dual_instructions_whose_halves_read_each_others_results() -> None:
  for x, y, expected in (((4, 1), (3, 3, 2), [110.0, 1.0]), ((4, 3), (3, 2, 1), [11.0, 100.0]),
                         ((4, 3), (3, 2, 4), [1010.0, 100.0])):
    k = Kernel()
    for i, value in ((1, 1.0), (2, 10.0), (3, 100.0), (4, 1000.0)): k("v_mov_b32", k.v(i), f(value))
    k("v_dual_mov_b32::v_dual_add_f32", k.v(x[0]), k.v(x[1]), k.v(y[0]), k.v(y[1]), k.v(y[2]))
    assert results(k, 3, 4) == [f(value) for value in expected]

def test_dual_instructions_with_a_literal_and_vcc() -> None:
  k = Kernel()
  k("s_mov_b32", VCC, 1)
  for i, x in ((1, 1.0), (2, 10.0), (3, 100.0), (4, 1000.0)): k("v_mov_b32", k.v(i), f(x))
  k("v_dual_fmamk_f32::v_dual_cndmask_b32", k.v(6), k.v(1), f(7.0), k.v(2), k.v(7), k.v(4), k.v(3))
  assert results(k, 6, 7) == [f(17.0), f(100.0)]

def test_parts_of_registers_with_sdwa() -> None:
  k = Kernel("gfx942")
  k("v_mov_b32", k.v(1), 0x00fe8007)
  k("v_mov_b32", k.v(2), 0x11111111)
  k("v_mov_b32", k.v(3), 0x11111111)
  k("v_mov_b32", k.v(4), 0x11111111)
  # byte 0 + byte 2 to word 1; the other word is kept
  k("v_add_nc_u32_sdwa", k.v(2), k.v(1), k.v(1), src0_sel=0, src1_sel=2, dst_sel=5, dst_unused=2)
  # sign-extended from byte 0
  k("v_mov_b32_sdwa", k.v(3), k.v(1), src0_sel=5, dst_sel=0, dst_unused=1)
  k("v_mov_b32_sdwa", k.v(4), k.v(1), src0_sel=4, sext=1)
  assert results(k, 2, 3, 4) == [0x01051111, 0xfffffffe, 0xffff8007]

def test_comparisons_that_write_exec() -> None:
  """RDNA writes EXEC only, CDNA the mask as well."""
  for arch in ("gfx1100", "gfx942"):
    k, box = Kernel(arch), Box()
    out = box.buffer(4 * k.lanes)
    k("s_load_b64", k.s(4, 2), k.s(0, 2), None)
    k("v_and_b32", k.v(0), 0x3ff, k.v(0))
    k("v_lshlrev_b32", k.v(1), 2, k.v(0))
    k("v_mov_b32", k.v(2), 9)
    k.wait(lgkm=0)
    if arch == "gfx942": k("v_cmpx_lt_u32", k.s(10, 2), 5, k.v(0))
    else: k("v_cmpx_lt_u32", 5, k.v(0))
    k("global_store_b32", k.v(1), k.v(2), k.s(4, 2))
    k("s_endpgm")
    box.run(k, (k.lanes,))
    assert words(out) == [0] * 6 + [9] * (k.lanes - 6)

def test_carries_in_masks_that_are_named() -> None:
  k = Kernel()
  k("v_mov_b32", k.v(1), 0xffffffff)
  k("v_add_co_u32", k.v(2), k.s(10), k.v(1), k.v(1))
  k("v_add_co_ci_u32", k.v(3), k.s(11), k.v(1), k.v(1), k.s(10))
  assert results(k, 2, 3) == [0xfffffffe, 0xffffffff]

def test_modes() -> None:
  check_mode(Mode("gfx1100", 32))
  check_mode(Mode("gfx1100", 32, denormals=0xc))
  for mode in (Mode("gfx1100", 32, rounding=1), Mode("gfx1100", 32, denormals=0xd)):
    with pytest.raises(UnknownInstruction, match="is not emulated"): check_mode(mode)

def test_what_meanings_say() -> None:
  assert reads_result("D.f32 = fma(S0.f32, S1.f32, D.f32)") and not reads_result("D.f32 = S0.f32; D1.f32 = S1.f32")
  assert semantics_of("v_add_f32") == "D.f32 = S0.f32 + S1.f32" and semantics_of("s_endpgm") is None
