"""Scalar registers that VALU has read and that are written again, on RDNA4, and masks of lanes in waves of 64 on RDNA3.
"""
from __future__ import annotations
from collections.abc import Callable

import pytest
from amd.kernels import Box, Kernel

from tinyhw.emulator.amd.checks.hazards_scalar import pairs_of
from tinyhw.emulator.errors import MissingHazard
from tinyhw.isa.amd.table import regs

ALL = 0xff9f
SALU, VALU, VCC_WAIT = ALL & ~1, ALL & ~0xe00, ALL & ~2
Part = Callable[[Kernel], None]

def run(k: Kernel, fails: str) -> None:
  k("s_endpgm")
  if not fails: Box().run(k, (k.lanes,))
  else:
    with pytest.raises(MissingHazard, match=fails): Box().run(k, (k.lanes,))

def begun(arch: str, lanes: int = 32) -> Kernel:
  """Return a kernel in which VALU has read s10."""
  k = Kernel(arch, lanes)
  for i in range(8, 14): k("s_mov_b32", k.s(i), i)
  k("s_mov_b32", k.s(20), 0)
  k("v_mov_b32", k.v(1), k.s(10))
  return k

WRITES: dict[str, tuple[Part, str]] = {
  "SALU": (lambda k: k("s_mov_b32", k.s(10), 5), "sa_sdst"),
  "VALU": (lambda k: k("v_readfirstlane_b32", k.s(10), k.v(1)), "va_sdst"),
  "SALU, the other of the pair": (lambda k: k("s_mov_b32", k.s(11), 5), "sa_sdst")}

@pytest.mark.parametrize("who", WRITES)
def test_a_pair_that_valu_has_read(who: str) -> None:
  write, wait = WRITES[who]
  register = 11 if "other" in who else 10
  immediate = SALU if wait == "sa_sdst" else VALU
  load: Part = lambda k: k("s_load_b32", k.s(30), k.s(0, 2), None)
  for between, fails in ((None, wait), (lambda k: k("s_wait_alu", immediate), ""),
                         (lambda k: k("s_wait_alu", ALL), wait), (load, "")):
    k = begun("gfx1200")
    write(k)
    if between is not None: between(k)
    k("v_mov_b32", k.v(2), k.s(register))
    run(k, fails)

def test_what_is_no_hazard() -> None:
  k = begun("gfx1200")
  k("s_mov_b32", k.s(12), 5)                          # VALU has not read this pair
  k("v_mov_b32", k.v(2), k.s(12))
  run(k, "")
  k = begun("gfx1100")                                # RDNA3 has another hazard
  k("s_mov_b32", k.s(10), 5)
  k("v_mov_b32", k.v(2), k.s(10))
  run(k, "")
  k = begun("gfx1200")
  k("v_readfirstlane_b32", k.s(10), k.v(1))
  k("s_mov_b32", k.s(20), k.s(10))                    # SALU waits for VALU by itself
  k("v_mov_b32", k.v(2), k.s(10))
  run(k, "")

def test_vcc_has_a_field_of_its_own() -> None:
  vcc = regs.reg(regs.S[1], regs.VCC)
  for immediate, fails in ((None, "va_vcc"), (VALU, "va_vcc"), (VCC_WAIT, "")):
    k = begun("gfx1200")
    k("v_cmp_eq_u32", vcc, 1, k.v(1))
    k("v_cndmask_b32", k.v(2), 0, k.v(1), vcc)
    k("v_cmp_eq_u32", vcc, 2, k.v(1))
    if immediate is not None: k("s_wait_alu", immediate)
    k("v_cndmask_b32", k.v(2), 0, k.v(1), vcc)
    run(k, fails)

def test_masks_in_waves_of_64_on_rdna3() -> None:
  for lanes, immediate, fails in ((64, None, "sa_sdst.*|as a mask"), (64, 0xff9e, ""), (32, None, "")):
    k = begun("gfx1100", lanes)
    k("v_cndmask_b32", k.v(2), 0, k.v(1), k.mask(10))
    k("s_mov_b32", k.s(10), 3)
    if immediate is not None: k("s_waitcnt_depctr", immediate)
    k("s_mov_b32", k.s(20), k.s(10))
    run(k, fails)

def test_pairs() -> None:
  assert pairs_of(0b100) == 0b1100 and pairs_of(0b1001) == 0b1111
