"""Instructions between lanes: DPP controls, masks and bounds; lane reads and writes; row permutations; swaps."""
from __future__ import annotations
import struct

import pytest
from amd.kernels import Box, Kernel, words

from tinyhw.emulator.amd.execute.lanes import dpp_sources
from tinyhw.emulator.errors import UninitialisedRead, UnknownInstruction
from tinyhw.isa.amd.table import regs

def run(arch: str, name: str, lanes: int | None = None, exec_mask: int | None = None, **modifiers: int) -> list[int]:
  """Return the result of v_mov with DPP, or of another one-operand instruction, on lane + 100. Lanes that are not
  written keep 7.
  """
  k, box = Kernel(arch, lanes), Box()
  out = box.buffer(4 * k.lanes)
  k("s_load_b64", k.s(4, 2), k.s(0, 2), None)
  k("v_and_b32", k.v(0), 0x3ff, k.v(0))
  k("v_lshlrev_b32", k.v(1), 2, k.v(0))
  k("v_add_nc_u32", k.v(2), 100, k.v(0))
  k("v_mov_b32", k.v(3), 7)
  exec_ = regs.reg(regs.S[k.lanes // 32], regs.EXEC)
  wide = f"b{k.lanes}"
  k.wait(lgkm=0)
  k(f"s_mov_{wide}", k.mask(10), exec_)
  if exec_mask is not None: k(f"s_mov_{wide}", exec_, exec_mask)
  k("s_nop", 7)
  k(name, k.v(3), k.v(2), **modifiers)
  k(f"s_mov_{wide}", exec_, k.mask(10))
  k("global_store_b32", k.v(1), k.v(3), k.s(4, 2))
  k("s_endpgm")
  box.run(k, (k.lanes,))
  return words(out)

@pytest.mark.parametrize("control,expected", [
  (0x1b, lambda lane: lane ^ 3), (0x101, lambda lane: lane + 1 if lane % 16 < 15 else None),
  (0x112, lambda lane: lane - 2 if lane % 16 > 1 else None),
  (0x121, lambda lane: lane & ~15 | (lane - 1) % 16), (0x140, lambda lane: lane & ~15 | 15 - lane % 16),
  (0x141, lambda lane: lane & ~7 | 7 - lane % 8),
  (0x153, lambda lane: lane & ~15 | 3), (0x163, lambda lane: lane ^ 3)])
def test_dpp_controls(control: int, expected: object) -> None:
  for bound_ctrl in (0, 1):
    got = run("gfx1100", "v_mov_b32_dpp", dpp_ctrl=control, bound_ctrl=bound_ctrl)
    for lane in range(32):
      source = expected(lane)  # type: ignore[operator]  # a function of the lane
      assert got[lane] == (100 + source if source is not None else 0 if bound_ctrl else 7)

def test_controls_of_cdna() -> None:
  assert dpp_sources(0x138, 64)[:3] == (-1, 0, 1) and dpp_sources(0x13c, 64)[0] == 63
  assert dpp_sources(0x130, 64)[63] == -1 and dpp_sources(0x134, 64)[63] == 0
  assert dpp_sources(0x142, 64)[16:18] == (15, 15) and dpp_sources(0x142,
                                                                   64)[0] == -1 and dpp_sources(0x143, 64)[40] == 31
  assert run("gfx942", "v_mov_b32_dpp", dpp_ctrl=0x138)[:3] == [7, 100, 101]
  with pytest.raises(UnknownInstruction, match="no DPP control"): dpp_sources(0x1ff, 64)

def test_dpp_masks_and_inactive_sources() -> None:
  got = run("gfx1100", "v_mov_b32_dpp", dpp_ctrl=0x1b, row_mask=2, bank_mask=5)
  assert [lane for lane in range(32) if got[lane] != 7] == [16, 17, 18, 19, 24, 25, 26, 27]
  # lanes 0 and 1 change places; lane 3 is not active
  got = run("gfx1100", "v_mov_b32_dpp", dpp_ctrl=0xb1, exec_mask=0x7)
  assert got[:4] == [101, 100, 7, 7]
  assert run("gfx1100", "v_mov_b32_dpp", dpp_ctrl=0xb1, exec_mask=0x7, bound_ctrl=1)[2] == 0
  assert run("gfx1100", "v_mov_b32_dpp", dpp_ctrl=0xb1, exec_mask=0x7, fi=1)[2] == 103

def test_dpp8() -> None:
  selects = sum(n << 3 * i for i, n in enumerate((7, 6, 5, 4, 3, 2, 1, 0)))
  assert run("gfx1100", "v_mov_b32_dpp8", dpp8=selects) == [100 + (lane ^ 7) for lane in range(32)]
  got = run("gfx1100", "v_mov_b32_dpp8", dpp8=selects, exec_mask=0x1f)
  assert got[:8] == [0, 0, 0, 104, 103, 7, 7, 7], "inactive lanes give zeros, and are not written themselves"
  assert run("gfx1100", "v_mov_b32_dpp8", dpp8=selects, exec_mask=0x1f, fi=1)[:8] == [107, 106, 105, 104, 103, 7, 7, 7]

def test_halves_of_a_wave() -> None:
  assert run("gfx1100", "v_permlane64_b32", 64) == [100 + (lane ^ 32) for lane in range(64)]
  assert run("gfx1100", "v_permlane64_b32", 32) == [100 + lane for lane in range(32)]

def test_single_lanes() -> None:
  k, box = Kernel(), Box()
  out = box.buffer(16)
  k("s_load_b64", k.s(4, 2), k.s(0, 2), None)
  k("v_and_b32", k.v(0), 0x3ff, k.v(0))
  k("v_add_nc_u32", k.v(2), 50, k.v(0))
  k("s_mov_b32", regs.reg(regs.S[1], regs.EXEC), 0xff00)
  k("v_readfirstlane_b32", k.s(10), k.v(2))
  k("v_readlane_b32", k.s(11), k.v(2), 3)
  k("s_mov_b32", k.s(12), 37)
  k("v_readlane_b32", k.s(13), k.v(2), k.s(12))      # modulo the wave
  k("v_writelane_b32", k.v(2), k.s(12), 20)          # though lane 20 is not active
  k("v_readlane_b32", k.s(14), k.v(2), 20)
  k("s_mov_b32", regs.reg(regs.S[1], regs.EXEC), 1)
  k("v_mov_b32", k.v(9), 0)
  k.wait(lgkm=0)
  for i, register in enumerate((10, 11, 13, 14)):
    k("v_mov_b32", k.v(8), k.s(register))
    k("global_store_b32", k.v(9), k.v(8), k.s(4, 2), offset=4 * i)
  k("s_endpgm")
  box.run(k)
  assert words(out) == [58, 53, 55, 37]

def test_a_lane_that_nobody_wrote() -> None:
  k = Kernel()
  k("v_writelane_b32", k.v(2), 5, 3)
  k("v_readlane_b32", k.s(10), k.v(2), 3)
  k("v_readlane_b32", k.s(10), k.v(2), 4)
  with pytest.raises(UninitialisedRead, match="lane 4 of v2"): Box().run(k)

def two(arch: str, name: str, *more: object, **modifiers: int) -> tuple[list[int], list[int]]:
  """Return v2 (lane + 100) and v3 (lane + 200) after an instruction on both."""
  k, box = Kernel(arch), Box()
  out = box.buffer(8 * k.lanes)
  k("s_load_b64", k.s(4, 2), k.s(0, 2), None)
  k("v_and_b32", k.v(0), 0x3ff, k.v(0))
  k("v_lshlrev_b32", k.v(1), 3, k.v(0))
  k("v_add_nc_u32", k.v(2), 0x64, k.v(0))
  k("v_add_nc_u32", k.v(3), 0xc8, k.v(0))
  k("s_nop", 7)
  k(name, k.v(3), k.v(2), *more, **modifiers)
  k.wait(lgkm=0)
  k("global_store_b64", k.v(1), k.v(2, 2), k.s(4, 2))
  k("s_endpgm")
  box.run(k, (k.lanes,))
  pairs = struct.unpack(f"<{2 * k.lanes}I", out)
  return list(pairs[::2]), list(pairs[1::2])

def test_swaps() -> None:
  assert two("gfx1100", "v_swap_b32") == ([200 + lane for lane in range(32)], [100 + lane for lane in range(32)])
  v2, v3 = two("gfx950", "v_permlane32_swap_b32")
  assert v3 == [200 + lane for lane in range(32)] + [100 + lane for lane in range(32)]
  assert v2 == [232 + lane for lane in range(32)] + [132 + lane for lane in range(32)]
  v2, v3 = two("gfx950", "v_permlane16_swap_b32")
  assert v3[16:32] == [100 + lane for lane in range(16)] and v2[:16] == [216 + lane for lane in range(16)]

def test_permutations_within_rows() -> None:
  """Each lane of a row names a lane by 4 bits of two scalar operands. permlanex16 reads that lane of the other row."""
  low, high = 0x21, 0x3f
  selects = [(low | high << 32) >> 4 * i & 15 for i in range(16)]
  assert two("gfx1100", "v_permlane16_b32", low, high)[1] == [100 + (lane & 16) + selects[lane & 15]
                                                              for lane in range(32)]
  assert two("gfx1100", "v_permlanex16_b32", low, high)[1] == [100 + (~lane & 16) + selects[lane & 15]
                                                               for lane in range(32)]
