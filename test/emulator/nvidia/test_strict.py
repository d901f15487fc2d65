"""Control words that are too hasty, each found: the hardware would read what was there before."""
from __future__ import annotations
from typing import Any

import pytest

from sass_warps import assembled, block_of
from tinyhw.emulator.errors import MissingHazard, MissingWait, OutOfBounds, UninitialisedRead
from tinyhw.emulator.nvidia.strict import waits

def run(*lines: str, arch: str = "sm_90", **given: Any) -> None: block_of(assembled(lines, arch), arch, **given).run()

CASES = [
  (["[B------:R-:W-:Y:S03] FADD R0, R1, R1", "FADD R2, R0, R0"], MissingHazard, "R0 is read 3 cycles after its instruction; it is there after 4"),
  (["[B------:R-:W-:Y:S04] FADD R0, R1, R1", "IADD3 R2, R0, R0, RZ"], MissingHazard, "R0 is read 4 cycles .* after 5"),
  (["[B------:R-:W-:-:S12] ISETP.EQ.AND P0, PT, R1, RZ, PT", "@P0 MOV R0, R1"], MissingHazard, "P0 is read 12 cycles .* after 13"),
  (["[B------:R-:W-:Y:S04] ISETP.EQ.AND P0, PT, R1, RZ, PT", "SEL R0, R1, RZ, P0"], MissingHazard, "P0 is read 4 cycles .* after 5"),
  (["[B------:R-:W-:Y:S02] DADD R2, R4, R4", "MOV R2, R1"], MissingHazard, "R2 is overwritten 2 cycles after another result"),
  (["[B------:R-:W-:Y:S01] IADD3 R0, R1, R1, RZ", "[B------:R-:W0:Y:S02] MUFU.RCP R1, R4"], MissingHazard,
   "R1 is overwritten 1 cycles after another instruction began to read it"),
  (["[B------:R-:W0:Y:S02] MUFU.RCP R0, R1", "FADD R2, R0, R0"], MissingWait, "R0 is read, and scoreboard 0 has not been waited for"),
  (["[B------:R-:W0:Y:S02] MUFU.RCP R0, R1", "[B-1----:R-:W-:Y:S01] FADD R2, R0, R0"], MissingWait, "R0 is read, and scoreboard 0"),
  (["[B------:R-:W-:Y:S02] MUFU.RCP R0, R1", "[B012345:R-:W-:Y:S01] FADD R2, R0, R0"], MissingWait, "no scoreboard tells when"),
  (["[B------:R-:W0:Y:S02] MUFU.RCP R0, R1", "MOV R0, R1"], MissingWait, "R0 is overwritten before its own result is there"),
  (["[B------:R-:W0:Y:S02] MUFU.RCP R0, R1", "MOV R1, RZ"], MissingWait, "R1 is overwritten while it may still be read"),
  (["[B------:R2:W-:Y:S02] STS [RZ], R1", "MOV R1, RZ"], MissingWait, "R1 is overwritten while it may still be read: scoreboard 2"),
  (["[B------:R-:W0:Y:S01] MUFU.RCP R0, R1", "[B0-----:R-:W-:Y:S01] FADD R2, R0, R0"], MissingHazard, "scoreboard 0 is waited for 1 cycles after"),
  (["IADD3 R2, R3, R1, RZ"], UninitialisedRead, "R3 is read in lanes 0xffffffff"),
  (["@P0 MOV R2, R1"], UninitialisedRead, "P0 is read in lanes 0xffffffff"),
  (["MOV R99, R1"], OutOfBounds, "R99: the launch gives each lane 64 registers; raise REGISTER_COUNT"),
]

@pytest.mark.parametrize("lines, error, message", CASES, ids=[message for _, _, message in CASES])
def test_haste_is_found(lines: list[str], error: type[Exception], message: str) -> None:
  with pytest.raises(error, match=message): run(*lines, registers={1: [1], 4: [0], 5: [0]}, shared=16)

WAITLESS = ("[B------:R-:W0:Y:S02] MUFU.RCP R0, R1", "FADD R2, R0, R0")

def test_an_error_says_where() -> None:
  with pytest.raises(MissingWait) as caught: run("NOP", *WAITLESS, registers={1: [1]})
  assert "\n  at 0x7f0000000020 (kernel + 0x20): [B------:R-:W-:Y:S01] FADD R2, R0, R0\n  warp 0 of block 0, kernel text" in str(caught.value)

def test_patience_is_enough() -> None:
  run("[B------:R-:W0:Y:S02] MUFU.RCP R0, R1", "[B0-----:R-:W-:Y:S04] FADD R2, R0, R0", "[B------:R-:W-:Y:S05] FADD R3, R2, R0", "MOV R0, R3",
      registers={1: [1]})
  run("[B------:R-:W-:-:S13] ISETP.EQ.AND P0, PT, R1, RZ, PT", "@P0 MOV R0, R1", registers={1: [1]})

def test_float64_has_scoreboards_on_some_chips() -> None:
  lines = ["[B------:R-:W-:-:S15] DADD R2, R4, R4", "DADD R6, R2, R2"]
  run(*lines, registers={4: [0], 5: [0]})
  with pytest.raises(MissingWait, match="no scoreboard tells when"): run(*lines, arch="sm_80", registers={4: [0], 5: [0]})

def test_words() -> None:
  assert waits(0b100101) == "scoreboard 0, 2, 5"
