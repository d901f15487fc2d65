"""Wait states: each row of the table, once with too few and once with enough, on the architectures that need it."""
from __future__ import annotations
from collections.abc import Callable

import pytest
from amd.kernels import Box, Kernel

from tinyhw.emulator.errors import MissingHazard
from tinyhw.isa.amd.table import regs

VCC, EXEC, M0 = regs.reg(regs.S[2], regs.VCC), regs.reg(regs.S[2], regs.EXEC), regs.s(regs.M0)
Part = Callable[[Kernel], None]

def prepared(arch: str = "gfx942") -> Kernel:
  k = Kernel(arch)
  for i in range(1, 24): k("v_mov_b32", k.v(i), 0)
  for i in range(8, 20): k("s_mov_b32", k.s(i), 0)
  k("v_cmp_eq_u32", VCC, 0, k.v(1))
  k("s_nop", 15)
  k("s_nop", 15)
  return k

# first instruction, second instruction, wait states between them
PAIRS: dict[str, tuple[Part, Part, int]] = {
  "a mask as a carry": (lambda k: k("v_cmp_eq_u32", VCC, 0, k.v(1)),
                        lambda k: k("v_cndmask_b32", k.v(2), 0, k.v(1), VCC), 2),
  "a scalar result as an operand": (lambda k: k("v_readfirstlane_b32", k.s(9), k.v(1)),
                                    lambda k: k("v_add_f32", k.v(2), k.s(9), k.v(1)), 2),
  "vcc and div_fmas": (lambda k: k("v_cmp_eq_u32", VCC, 0, k.v(1)),
                       lambda k: k("v_div_fmas_f32", k.v(2), k.v(1), k.v(1), k.v(1)), 4),
  "the lane of readlane": (lambda k: k("v_readfirstlane_b32", k.s(9), k.v(1)),
                           lambda k: k("v_readlane_b32", k.s(10), k.v(2), k.s(9)), 4),
  "the vector of readlane": (lambda k: k("v_mov_b32", k.v(2), 0), lambda k: k("v_readfirstlane_b32", k.s(10), k.v(2)),
                             1),
  "exec and readlane": (lambda k: k("v_cmpx_eq_u32", EXEC, 0, k.v(1)),
                        lambda k: k("v_readfirstlane_b32", k.s(10), k.v(2)), 4),
  "an address": (lambda k: k("v_readfirstlane_b32", k.s(8), k.v(1)),
                 lambda k: k("global_load_b32", k.v(2), k.v(1), k.s(8, 2)), 5),
  "dpp": (lambda k: k("v_mov_b32", k.v(2), 0), lambda k: k("v_mov_b32_dpp", k.v(3), k.v(2), dpp_ctrl=0x101), 2),
  "m0": (lambda k: k("s_mov_b32", M0, 8), lambda k: k("s_movrels_b32", k.s(9), k.s(1)), 1),
  "a transcendental result": (lambda k: k("v_rcp_f32", k.v(2), k.v(1)),
                              lambda k: k("v_add_f32", k.v(3), k.v(2), k.v(1)), 1),
  "a part of a register": (lambda k: k("v_mov_b32_sdwa", k.v(2), k.v(1), dst_sel=4),
                           lambda k: k("v_mov_b32", k.v(3), k.v(2)), 1),
  "an operand of MFMA": (lambda k: k("v_mov_b32", k.v(2), 0),
                         lambda k: k("v_mfma_f32_16x16x16_f16", k.v(8, 4), k.v(2, 2), k.v(4, 2), k.v(12, 4)), 2),
}

@pytest.mark.parametrize("name", PAIRS)
def test_pairs(name: str) -> None:
  first, second, states = PAIRS[name]
  for waits in (states - 1, states):
    k, box = prepared(), Box()
    box.memory.add(0, bytearray(4096))
    first(k)
    if waits: k("s_nop", waits - 1)
    second(k)
    k("s_nop", 15)
    k("s_nop", 15)
    k("s_endpgm")
    if waits == states: box.run(k, (64,))
    else:
      with pytest.raises(MissingHazard, match=rf"{states} wait states are needed(.|\n)*there are {waits}(.|\n)*s_nop "
                         rf"0"):
        box.run(k, (64,))

def test_another_register_needs_none() -> None:
  k = prepared()
  k("v_rcp_f32", k.v(2), k.v(1))
  k("v_add_f32", k.v(3), k.v(1), k.v(1))
  k("s_endpgm")
  Box().run(k, (64,))

def test_rdna_interlocks_what_cdna_does_not() -> None:
  k = Kernel("gfx1100")
  k("v_mov_b32", k.v(1), 0)
  k("v_readfirstlane_b32", k.s(9), k.v(1))
  k("v_add_f32", k.v(2), k.s(9), k.v(1))
  k("s_endpgm")
  Box().run(k)

def test_wmma_after_wmma_wants_something_between() -> None:
  for between in (None, "s_nop", "v_nop"):
    k = Kernel("gfx1100")
    for i in range(1, 40): k("v_mov_b32", k.v(i), 0)
    k("v_wmma_f32_16x16x16_f16", k.v(8, 8), k.v(16, 8), k.v(24, 8), k.v(8, 8))
    if between: k(between, *([0] if between == "s_nop" else []))
    k("v_wmma_f32_16x16x16_f16", k.v(32, 8), k.v(8, 8), k.v(24, 8), k.v(32, 8))
    k("s_endpgm")
    if between == "v_nop": Box().run(k)
    else:
      with pytest.raises(MissingHazard, match="wmma.*(.|\n)*v_nop"): Box().run(k)

def test_permlane_after_cmpx_on_rdna3() -> None:
  for between in (False, True):
    k = Kernel("gfx1100")
    k("v_mov_b32", k.v(1), 0)
    k("v_cmpx_eq_u32", 0, k.v(1))
    if between: k("v_mov_b32", k.v(3), 0)
    k("v_permlane16_b32", k.v(1), k.v(1), 0, 0)
    k("s_endpgm")
    if between: Box().run(k)
    else:
      with pytest.raises(MissingHazard, match="cmpx"): Box().run(k)

def test_a_transcendental_result_on_rdna3() -> None:
  """Six other VALU instructions, or two transcendental ones, or a wait, must come before VALU reads it."""
  def others(count: int, name: str) -> Part:
    def add(k: Kernel) -> None:
      for i in range(count): k(name, k.v(10 + i), k.v(1))
    return add
  for between, fails in ((others(0, "v_mov_b32"), True), (others(5, "v_mov_b32"), True),
                         (others(6, "v_mov_b32"), False),
                         (others(1, "v_exp_f32"), True),
                         (others(2, "v_exp_f32"), False), (lambda k: k("s_waitcnt_depctr", 0x0fff), False),
                         (lambda k: k("s_nop", 15), True)):
    k = Kernel("gfx1100")
    k("v_mov_b32", k.v(1), 0x3f800000)
    k("v_rcp_f32", k.v(2), k.v(1))
    between(k)
    k("v_add_f32", k.v(3), k.v(2), k.v(1))
    k("s_endpgm")
    if not fails: Box().run(k)
    else:
      with pytest.raises(MissingHazard, match="va_vdst"): Box().run(k)
