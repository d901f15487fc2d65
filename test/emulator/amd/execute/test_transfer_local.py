"""LDS instructions in kernels, and the crossbar."""
from __future__ import annotations

import pytest
from amd.kernels import Box, Kernel, words

from tinyhw.emulator.errors import DataRace, StrictError

ARCHS = ("gfx1100", "gfx1200", "gfx942")

def prepared(arch: str = "gfx1100") -> tuple[Kernel, Box]:
  """Return a kernel with one buffer at s[4:5]; v0: the lane, v1: 4 times the lane, v2: 100 + the lane."""
  k, box = Kernel(arch), Box()
  box.buffer(4096)
  k("s_load_b64", k.s(4, 2), k.s(0, 2), None)
  k("v_and_b32", k.v(0), 0x3ff, k.v(0))
  k("v_lshlrev_b32", k.v(1), 2, k.v(0))
  k("v_add_nc_u32", k.v(2), 0x64, k.v(0))
  k.wait(lgkm=0)
  return k, box

def finish(k: Kernel, box: Box, row: int, size: int = 32, lds: int = 1024) -> list[int]:
  k.wait(lgkm=0)
  k("global_store_b32", k.v(1), k.v(row), k.s(4, 2))
  k("s_endpgm")
  box.run(k, (size,), lds=lds)
  return words(box.buffers[0])[:size]

@pytest.mark.parametrize("arch", ARCHS)
def test_loads_and_stores(arch: str) -> None:
  k, box = prepared(arch)
  k("ds_store_b32", k.v(1), k.v(2), offset=64)
  k("v_xor_b32", k.v(3), 4, k.v(1))
  k.wait(lgkm=0)
  k("ds_load_b32", k.v(4), k.v(3), offset=64)
  assert finish(k, box, 4) == [100 + (lane ^ 1) for lane in range(32)]

@pytest.mark.parametrize("arch", ARCHS)
def test_two_elements_in_one_instruction(arch: str) -> None:
  k, box = prepared(arch)
  k("ds_store_2addr_b32", k.v(1), k.v(2), k.v(0), offset0=0, offset1=64)
  k.wait(lgkm=0)
  k("ds_load_2addr_stride64_b32", k.v(4, 2), k.v(1), offset0=0, offset1=1)
  k.wait(lgkm=0)
  k("v_sub_nc_u32", k.v(6), k.v(4), k.v(5))
  assert finish(k, box, 6) == [100] * 32

def test_narrow_elements() -> None:
  k, box = prepared()
  k("v_mov_b32", k.v(3), 0x8281)
  k("ds_store_b16", k.v(1), k.v(3))
  k("v_mov_b32", k.v(5), 0)
  k.wait(lgkm=0)
  k("ds_load_i8", k.v(4), k.v(1), offset=1)
  k("ds_load_u8_d16_hi", k.v(5), k.v(1))
  k.wait(lgkm=0)
  k("v_add_nc_u32", k.v(6), k.v(4), k.v(5))
  assert finish(k, box, 6) == [0x810000 - 126] * 32

@pytest.mark.parametrize("arch", ARCHS)
def test_atomics(arch: str) -> None:
  k, box = prepared(arch)
  k("v_mov_b32", k.v(3), 0)
  k("ds_store_b32", k.v(3), k.v(3))
  k.wait(lgkm=0)
  k("ds_add_rtn_u32", k.v(4), k.v(3), k.v(0))
  assert finish(k, box, 4) == [lane * (lane - 1) // 2 for lane in range(32)]

@pytest.mark.parametrize("arch,first", [("gfx1100", "new"), ("gfx942", "compared")])
def test_the_order_of_a_comparing_store(arch: str, first: str) -> None:
  """The value to compare with is the second operand on RDNA3, the first on CDNA."""
  k, box = prepared(arch)
  k("ds_store_b32", k.v(1), k.v(0))
  k("v_and_b32", k.v(3), 0x1e, k.v(0))
  k.wait(lgkm=0)
  operands = (k.v(2), k.v(3)) if first == "new" else (k.v(3), k.v(2))
  k("ds_cmpstore_rtn_b32" if first == "new" else "ds_cmpst_rtn_b32", k.v(4), k.v(1), *operands)
  k.wait(lgkm=0)
  k("ds_load_b32", k.v(5), k.v(1))
  assert finish(k, box, 5) == [100 + lane if lane % 2 == 0 else lane for lane in range(32)]

def test_races_between_waves() -> None:
  """Both waves write the same addresses, or one reads bytes that the other writes, without a barrier."""
  k, box = prepared()
  k("v_and_b32", k.v(3), 0x7c, k.v(1))
  k("ds_store_b32", k.v(3), k.v(2))
  with pytest.raises(DataRace, match="write by wave"): finish(k, box, 2, 64)

def test_a_barrier_without_a_wait_is_no_order() -> None:
  for waited in (False, True):
    k, box = prepared()
    k("ds_store_b32", k.v(1), k.v(2))
    k("v_xor_b32", k.v(3), 0x80, k.v(1))       # the other wave's
    if waited: k.wait(lgkm=0)
    k("s_barrier")
    k("ds_load_b32", k.v(4), k.v(3))
    if waited: assert finish(k, box, 4, 64) == [100 + (lane ^ 32) for lane in range(64)]
    else:
      with pytest.raises(DataRace): finish(k, box, 4, 64)

def test_atomics_want_alignment() -> None:
  k, box = prepared()
  k("ds_add_u32", k.v(1), k.v(0), offset=1)
  with pytest.raises(StrictError, match="no multiple of 4"): finish(k, box, 2)

def test_the_crossbar() -> None:
  k, box = prepared()
  k("v_sub_nc_u32", k.v(3), 0x7c, k.v(1))
  k("ds_bpermute_b32", k.v(4), k.v(3), k.v(2))
  assert finish(k, box, 4) == [131 - lane for lane in range(32)]
  k, box = prepared()
  k("v_lshlrev_b32", k.v(3), 1, k.v(1))        # lane i writes to lane 2 i, modulo 32: the higher one wins
  k("ds_permute_b32", k.v(4), k.v(3), k.v(2))
  assert finish(k, box, 4) == [100 + 16 + lane // 2 if lane % 2 == 0 else 0 for lane in range(32)]
  k, box = prepared()
  k("ds_swizzle_b32", k.v(4), k.v(2), offset=0x1f | 1 << 10)      # xor 1
  assert finish(k, box, 4) == [100 + (lane ^ 1) for lane in range(32)]
  k, box = prepared()
  k("ds_swizzle_b32", k.v(4), k.v(2), offset=0x8000 | 0x1b)       # quads backwards
  assert finish(k, box, 4) == [100 + (lane ^ 3) for lane in range(32)]
