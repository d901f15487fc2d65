"""Asynchronous copies. Their warp may read them after its wait, others after a barrier; any other access is an error.
"""
from __future__ import annotations
import struct
from collections.abc import Sequence

import pytest

from nvidia.warps import LANES, MEMORY, assembled, block_of, give
from tinyhw.emulator.errors import (
  DataRace, MissingHazard, MissingWait, OutOfBounds, PageFault, UninitialisedRead, UnknownInstruction)
from tinyhw.emulator.nvidia.block import ThreadBlock

START = "[B------:R5:W-:-:S02] LDGSTS.E [R0], [R2.64]"
AGAIN = "[B------:R5:W-:-:S02] LDGSTS.E [R0+0x80], [R2.64+0x80]"
COMMIT = "[B------:R-:W0:-:S02] LDGDEPBAR"
LOAD = "[B------:R-:W1:-:S02] LDS R4, [R0]"
BARRIER = "[B------:R-:W-:-:S06] BAR.SYNC 0x0"

def wait(left: int) -> str: return f"[B------:R-:W-:-:S04] DEPBAR.LE SB0, {left:#x}"

def block(lines: Sequence[str], threads: int = LANES, other: int = 0, arch: str = "sm_90",
          seed: int = 0) -> ThreadBlock:
  """Return a block: lane n copies word n, from memory that has numbers, to word n of shared memory. The second warp
  copies to `other` words further on."""
  places = [MEMORY + 4 * lane for lane in range(LANES)]
  given = {0: [4 * lane for lane in range(LANES)], 2: [x & 0xffffffff for x in places], 3: [x >> 32 for x in places]}
  content = bytearray(struct.pack("<256I", *range(256)))
  made = block_of(assembled(lines, arch), arch, registers=given, content=content, threads=threads, shared=1024,
                  seed=seed)
  for warp in made.warps[1:]: warp.registers[0] = [4 * (lane + other) for lane in range(LANES)]
  return made

def loaded(lines: Sequence[str], arch: str = "sm_90") -> list[int]:
  """Return R4 of the first warp after lines have been executed."""
  made = block(lines, arch=arch)
  warp = made.warps[0]
  made.run()
  return list(warp.registers[4])

@pytest.mark.parametrize("arch", ("sm_80", "sm_89", "sm_90"))
def test_a_copy_is_there_when_it_has_been_waited_for(arch: str) -> None:
  assert loaded([START, COMMIT, wait(0), LOAD], arch) == list(range(32))

def test_it_is_not_there_before() -> None:
  for lines in ([START, LOAD], [START, COMMIT, LOAD], [START, COMMIT, wait(1), LOAD], [COMMIT, START, wait(0), LOAD]):
    with pytest.raises(MissingWait, match="4 bytes are read that an asynchronous copy still writes"): block(lines).run()

def test_groups_are_done_in_order() -> None:
  assert loaded([START, COMMIT, AGAIN, COMMIT, wait(1), LOAD]) == list(range(32))
  later = "[B------:R-:W1:-:S02] LDS R4, [R0+0x80]"
  with pytest.raises(MissingWait): block([START, COMMIT, AGAIN, COMMIT, wait(1), later]).run()
  assert loaded([START, COMMIT, AGAIN, COMMIT, wait(0), later]) == list(range(32, 64))

def test_a_wait_that_leaves_more_groups_than_there_are_waits_for_none() -> None:
  with pytest.raises(MissingWait): block([START, COMMIT, AGAIN, COMMIT, wait(3), LOAD]).run()

def test_nobody_else_writes_there_meanwhile() -> None:
  with pytest.raises(DataRace, match="a store where an asynchronous copy still writes"):
    block([START, "[B------:R5:W-:-:S02] STS [R0], R2"]).run()
  with pytest.raises(DataRace, match="two asynchronous copies"): block([START, START]).run()

def test_others_see_it_behind_a_barrier() -> None:
  """The second warp's lanes copy to other addresses than the first one's, and read the bytes that the first one copied.
  """
  crossed = "[B------:R-:W1:-:S02] LDS R4, [R0+0x80]"
  for seed in range(4):
    made = block([START, COMMIT, wait(0), BARRIER, crossed], 64, 32, seed=seed)
    made.warps[1].registers[0] = [4 * (lane + 32) for lane in range(LANES)]
    with pytest.raises(UninitialisedRead): made.run()   # beyond the bytes that the second warp copied
    first = block([START, COMMIT, wait(0), BARRIER, LOAD], 64, 32, seed=seed)
    first.run()
    assert [list(warp.registers[4]) for warp in first.warps] == [list(range(32))] * 2

def test_a_barrier_alone_is_not_enough() -> None:
  """The copy may still write after it. Another warp's read there is a race; the own warp's read lacks a wait."""
  swapped = "[B------:R-:W1:-:S02] LDS R4, [R6]"
  for seed in range(4):
    made = block([START, COMMIT, BARRIER, swapped], 64, 32, seed=seed)
    for n, warp in enumerate(made.warps): give(warp, 6, [4 * (lane + 32 * (1 - n)) for lane in range(LANES)])
    with pytest.raises((DataRace, MissingWait)): made.run()

def test_readers_before_have_to_have_met() -> None:
  """A warp overwrites bytes that another one reads, without a barrier between."""
  lines = [START, COMMIT, wait(0), BARRIER, LOAD, START]
  for seed in range(8):
    made = block(lines, 64, 0, seed=seed)
    with pytest.raises(DataRace): made.run()

def test_scoreboards() -> None:
  with pytest.raises(MissingWait, match="LDGDEPBAR takes no scoreboard"):
    block([START, "[B------:R-:W-:-:S02] LDGDEPBAR"]).run()
  with pytest.raises(MissingHazard, match="scoreboard 0 is waited for 1 cycles after it was taken; 2 are needed"):
    block([START, "[B------:R-:W0:-:S01] LDGDEPBAR", wait(0)]).run()
  with pytest.raises(MissingWait, match="R2 is overwritten while it may still be read"):
    block([START, "[B------:R-:W-:-:S05] MOV R2, R0"]).run()

def test_places() -> None:
  with pytest.raises(OutOfBounds, match="no multiple of its size"): block([START.replace("R0", "R0+0x2")]).run()
  with pytest.raises(OutOfBounds, match="the block has 1024 bytes"): block([START.replace("R0", "R0+0x400")]).run()
  with pytest.raises(PageFault): block([START.replace("R2.64", "R2.64+0x7f0")]).run()

def test_lanes_without_work_copy_nothing() -> None:
  made = block([START.replace("LDGSTS.E", "@P0 LDGSTS.E").replace("R2.64", "R2.64"), COMMIT, wait(0), LOAD])
  made.warps[0].predicates[0], made.warps[0].known["P", 0] = 0xffff, (1 << LANES) - 1
  with pytest.raises(UninitialisedRead): made.run()

def test_what_is_not_supported() -> None:
  with pytest.raises(UnknownInstruction, match="LDGSTS.BYPASS of 4 bytes: it copies 16"):
    block(["LDGSTS.E.BYPASS [R0], [R2.64]"]).run()
  with pytest.raises(UnknownInstruction, match="fills with zeros"): block(["LDGSTS.E.ZFILL [R0], [R2.64], P0"]).run()
