"""Scratch: each lane has its own, with bounds; flat addresses of LDS and scratch."""
from __future__ import annotations

import pytest
from amd.kernels import Box, Kernel, words

from tinyhw.emulator.errors import OutOfBounds
from tinyhw.isa.amd.table import regs

ARCHS = ("gfx1100", "gfx1200", "gfx942")

def prepared(arch: str, *sizes: int | bytes) -> tuple[Kernel, Box]:
  """Return a kernel with buffers at s[4:5], s[6:7] ...; v0: the lane, v1: 4 times the lane."""
  k, box = Kernel(arch), Box()
  for i, size in enumerate(sizes):
    box.buffer(size)
    k("s_load_b64", k.s(4 + 2 * i, 2), k.s(0, 2), None, offset=8 * i)
  k("v_and_b32", k.v(0), 0x3ff, k.v(0))
  k("v_lshlrev_b32", k.v(1), 2, k.v(0))
  k.wait(lgkm=0)
  return k, box

@pytest.mark.parametrize("arch", ARCHS)
def test_scratch_is_each_lanes_own(arch: str) -> None:
  k, box = prepared(arch, 4 * 64)
  scratch = bytearray(64 * 64 * 4)
  box.memory.add(0x800000, scratch)
  k("v_add_nc_u32", k.v(2), 5, k.v(0))
  k("v_mov_b32", k.v(3), 8)
  k("scratch_store_b32", k.v(3), k.v(2), None, offset=4)
  k("v_mov_b32", k.v(2), 0)
  k("scratch_load_b32", k.v(4), k.v(3), None, offset=4)
  k.wait(vm=0)
  k("global_store_b32", k.v(1), k.v(4), k.s(4, 2))
  k("s_endpgm")
  given = {"scratch_base": 0x800000, "scratch_wave_bytes": 64 * k.lanes, "scratch_enabled": True}
  box.run(k, (k.lanes,), **given)
  assert words(box.buffers[0])[:k.lanes] == [5 + lane for lane in range(k.lanes)]
  at = 12 // 4 * 4 * k.lanes
  assert words(scratch[at:at + 4 * k.lanes]) == [5 + lane for lane in range(k.lanes)]
  with pytest.raises(OutOfBounds, match="a lane has 8 bytes"):
    box.run(k, (k.lanes,), **{**given, "scratch_wave_bytes": 8 * k.lanes})
  with pytest.raises(OutOfBounds, match="SCRATCH_EN is 0"):
    box.run(k, (k.lanes,), **{**given, "scratch_enabled": False})

@pytest.mark.parametrize("arch", ARCHS)
def test_flat_addresses_of_local_memory_and_scratch(arch: str) -> None:
  """Lane i writes i to LDS and 50 + i to scratch through flat addresses. Even lanes read LDS, odd lanes scratch."""
  k, box = prepared(arch, 4 * 64)
  box.memory.add(0x800000, bytearray(64 * 64 * 4))
  base = regs.S[2]
  for row, name in ((4, "src_shared_base"), (6, "src_private_base")):
    k("s_mov_b64", k.s(4 + row, 2), regs.reg(base, regs.READ_ONLY[name]))
    k("v_mov_b32", k.v(row + 1), k.s(5 + row))
    k("v_mov_b32", k.v(row), k.v(1) if row == 4 else 16)
  k("v_add_nc_u32", k.v(2), 50, k.v(0))
  k("flat_store_b32", k.v(4, 2), k.v(0))
  k("flat_store_b32", k.v(6, 2), k.v(2))
  k.wait(vm=0, vs=0, lgkm=0)
  vcc = regs.reg(regs.S[k.lanes // 32], regs.VCC)
  k("v_and_b32", k.v(3), 1, k.v(0))
  k("v_cmp_eq_u32", vcc, 1, k.v(3))
  k("s_nop", 1)
  for part in (0, 1): k("v_cndmask_b32", k.v(8 + part), k.v(4 + part), k.v(6 + part), vcc)
  k("flat_load_b32", k.v(10), k.v(8, 2))
  k.wait(vm=0, lgkm=0)
  k("global_store_b32", k.v(1), k.v(10), k.s(4, 2))
  k("s_endpgm")
  box.run(k, (k.lanes,), lds=256, scratch_base=0x800000, scratch_wave_bytes=64 * k.lanes, scratch_enabled=True)
  assert words(box.buffers[0])[:k.lanes] == [50 + lane if lane & 1 else lane for lane in range(k.lanes)]
