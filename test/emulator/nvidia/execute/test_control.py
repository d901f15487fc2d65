"""Jumps, barriers, the end, special registers."""
from __future__ import annotations

import pytest

from nvidia.warps import assembled, block_of
from tinyhw.emulator.errors import EmulatorError, OutOfBounds, UnknownInstruction
from tinyhw.emulator.nvidia.warp.state import LANES

SLOW = "[B------:R-:W-:-:S13] "

def test_a_loop() -> None:
  lines = [SLOW + "IADD3 R0, R0, -0x1, RZ", SLOW + "IADD3 R1, R1, 0x3, RZ", SLOW + "ISETP.NE.AND P0, PT, R0, RZ, PT",
           "@P0 BRA 0x7f0000000000"]
  block = block_of(assembled(lines), registers={0: [5], 1: [0]})
  assert block.run() == 5 * 4 + 1 and block.warps[0].registers[1] == [15] * LANES

def test_paths_that_part() -> None:
  block = block_of(assembled(["@P0 BRA 0x7f0000000010"]), predicates={0: 1})
  with pytest.raises(EmulatorError, match="lanes 0x00000001 of 0xffffffff branch"): block.run()

def test_votes() -> None:
  """Of the lanes that run: lanes that have ended have no vote."""
  lines = [SLOW + "@P3 EXIT", SLOW + "VOTE.ANY P0, P4", SLOW + "VOTE.ALL P1, P4", SLOW + "VOTE.EQ P2, !P4",
           SLOW + "VOTE.ANY R0, PT, P4"]
  for yes, expected in ((0, (0, 0, 1)), (0xf000, (1, 0, 0)), (0xffffff00, (1, 1, 1)), (0xffff00ff, (1, 0, 0)),
                        (0xff, (0, 0, 1))):
    block = block_of(assembled(lines), registers={0: [7]}, predicates={3: 0xff, 4: yes})
    block.run()
    warp = block.warps[0]
    assert tuple(warp.predicates[k] >> 8 for k in range(3)) == tuple(x * 0xffffff for x in expected), hex(yes)
    assert warp.registers[0] == [7] * 8 + [yes & 0xffffff00] * 24
  with pytest.raises(UnknownInstruction, match="VOTE.ALL with a register"):
    block_of(assembled(["VOTE.ALL R0, PT, P4"]), predicates={4: 0}).run()

def test_lanes_that_end_do_nothing_more() -> None:
  block = block_of(assembled(["@P0 EXIT", "MOV R0, 0x5"]), registers={0: [1]}, predicates={0: 0xff})
  block.run()
  assert block.warps[0].registers[0] == [1] * 8 + [5] * 24

def test_a_barrier_is_passed_together() -> None:
  lines = ["[B------:R-:W0:Y:S02] S2R R0, SR_TID.X", "[B0-----:R-:W-:Y:S05] SHF.L.U32 R1, R0, 0x2, RZ",
           "[B------:R1:W-:Y:S02] STS [R1], R0",
           "[B-1----:R-:W-:Y:S06] BAR.SYNC.DEFER_BLOCKING 0x0", "[B------:R-:W-:Y:S05] LOP3.LUT R2, R1, 0x80, RZ, "
           "0x3c, !PT",
           "[B------:R-:W2:Y:S02] LDS R3, [R2]", "[B--2---:R-:W-:Y:S01] MOV R4, R3"]
  for seed in range(4):
    block = block_of(assembled(lines), threads=64, shared=256, seed=seed)
    block.run()
    assert [warp.registers[4] for warp in block.warps] == [list(range(32, 64)), list(range(32))]

def test_barriers_that_are_not_there() -> None:
  with pytest.raises(OutOfBounds, match="barrier 0: the launch has 0; raise BARRIER_COUNT"):
    block_of(assembled(["BAR.SYNC.DEFER_BLOCKING 0x0"]), barriers=0).run()
  with pytest.raises(UnknownInstruction, match="for some threads"):
    block_of(assembled(["BAR.SYNC.DEFER_BLOCKING 0x0, 0x40"])).run()

def test_special_registers() -> None:
  lines = [f"[B------:R-:W{k}:Y:S02] S2R R{k}, {name}"
           for k, name in enumerate(("SR_TID.X", "SR_CTAID.X", "SR_LANEID"))]
  block = block_of(assembled(lines), threads=40)
  block.run()
  assert block.warps[1].registers[0][:8] == list(range(32, 40)) and block.warps[1].registers[2][:8] == list(range(8))
  assert block.warps[0].registers[1] == [0] * LANES and block.warps[1].active == 0
  with pytest.raises(UnknownInstruction, match="special register SR_CLOCKLO"):
    block_of(assembled(["S2R R0, SR_CLOCKLO"])).run()
