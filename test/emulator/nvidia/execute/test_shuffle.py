"""SHFL against PTX's shfl.sync, lane by lane, step by step in Python and as translated code; reads of inactive lanes.
"""
from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from nvidia.both import assert_same, run_both
from nvidia.warps import after, assembled, block_of, scheduled

from tinyhw.emulator.errors import MissingWait, StrictError, UninitialisedRead
from tinyhw.emulator.native import threaded, translate
from tinyhw.emulator.nvidia.warp.state import LANES

MODES = ("IDX", "UP", "DOWN", "BFLY")
VALUES = [1000 + lane for lane in range(LANES)]

def of_ptx(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
  """Return (source lane, predicate), by the pseudo-code of the PTX ISA."""
  bval, cval, segmask = b & 31, c & 31, c >> 8 & 31
  max_lane = (lane & segmask) | (cval & ~segmask & 31)
  min_lane = lane & segmask
  if mode == "UP":
    j = lane - bval
    pval = j >= max_lane
  elif mode == "DOWN":
    j = lane + bval
    pval = j <= max_lane
  elif mode == "BFLY":
    j = lane ^ bval
    pval = j <= max_lane
  else:
    j = min_lane | (bval & ~segmask & 31)
    pval = j <= max_lane
  return (j if pval else lane), pval

def checked(line: str, mode: str, b: list[int], c: list[int]) -> None:
  """Check a line. R9 holds the clamps, R8 the distances, R7 the values. The predicate is P0."""
  warp = after([line], registers={6: [7], 7: VALUES, 8: b, 9: c}, predicates={0: 0})
  expected = [of_ptx(mode, lane, b[lane], c[lane]) for lane in range(LANES)]
  assert warp.registers[6] == [VALUES[lane] for lane, _ in expected]
  assert warp.predicates[0] == sum(1 << lane for lane, (_, truth) in enumerate(expected) if truth)

words = st.one_of(st.integers(0, 31), st.integers(0, (1 << 32) - 1))
clamps = st.builds(lambda clamp, segment: clamp | segment << 8, st.integers(0, 31),
                   st.sampled_from((0, 16, 24, 28, 30, 31, 5, 21)))

@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.sampled_from(MODES), st.lists(words, min_size=LANES, max_size=LANES),
       st.lists(st.one_of(clamps, words), min_size=LANES, max_size=LANES))
def test_distances_and_clamps_of_each_lane(mode: str, b: list[int], c: list[int]) -> None:
  checked(f"SHFL.{mode} P0, R6, R7, R8, R9", mode, b, c)

@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.sampled_from(MODES), st.integers(0, 31), clamps, st.lists(words, min_size=LANES, max_size=LANES))
def test_constants(mode: str, n: int, m: int, b: list[int]) -> None:
  checked(f"SHFL.{mode} P0, R6, R7, {n:#x}, {m:#x}", mode, [n] * LANES, [m] * LANES)
  checked(f"SHFL.{mode} P0, R6, R7, R8, {m:#x}", mode, b, [m] * LANES)
  checked(f"SHFL.{mode} P0, R6, R7, {n:#x}, R9", mode, [n] * LANES, [m ^ k % 2 for k in range(LANES)])

def test_a_register_of_zeros_and_its_own_register() -> None:
  warp = after(["SHFL.UP PT, R7, R7, 0x1, RZ"], registers={7: VALUES})
  assert warp.registers[7] == [VALUES[0], *VALUES[:-1]]

def test_a_sum_of_all_lanes() -> None:
  """Each lane has it, by five exchanges."""
  lines = [line for k in range(5) for line in (f"SHFL.BFLY PT, R1, R0, {1 << k:#x}, 0x1f", "IADD3 R0, R0, R1, RZ")]
  assert after(lines, registers={0: VALUES}).registers[0] == [sum(VALUES)] * LANES

# ***** inactive lanes *****

def test_a_lane_whose_guard_is_false() -> None:
  with pytest.raises(StrictError, match="SHFL.BFLY: lane 0 reads lane 15, which does not execute it"):
    after(["@P1 SHFL.BFLY PT, R6, R7, 0xf, 0x1f"], registers={6: [0], 7: VALUES}, predicates={1: 0xff})
  warp = after(["@P1 SHFL.BFLY PT, R6, R7, 0x7, 0x1f"], registers={6: [3], 7: VALUES}, predicates={1: 0xff})
  assert warp.registers[6] == VALUES[7::-1] + [3] * 24

def test_lanes_that_have_ended_or_never_were() -> None:
  line = "[B------:R0:W1:-:S02] SHFL.DOWN PT, R6, R7, 0x1, 0x1f"
  slow = "[B------:R-:W-:-:S13] "
  with pytest.raises(StrictError, match="lane 15 reads lane 16"):
    block_of(assembled([slow + "@P1 EXIT", line]), registers={7: VALUES}, predicates={1: 0xffff0000}).run()
  with pytest.raises(StrictError, match="lane 19 reads lane 20"):
    block_of(assembled([line]), registers={7: VALUES}, threads=20).run()

def test_a_register_that_nothing_has_written() -> None:
  with pytest.raises(UninitialisedRead, match="R7 is read in lanes 0xffff0000"):
    block = block_of(scheduled(["@P1 MOV R7, 0x1", "SHFL.BFLY PT, R6, R7, 0x1, 0x1f"]), predicates={1: 0xffff})
    block.run()

# ***** latency of the result *****

@pytest.mark.parametrize("word, behind, message", [
  ("[B------:R-:W2:-:S02]", "[B------:R-:W-:-:S05]", "R6 is read, and scoreboard 2 has not been waited for"),
  ("[B------:R-:W-:-:S15]", "[B------:R-:W-:-:S05]", "R6 is read, and no scoreboard tells when"),
  ("[B------:R-:W2:-:S02]", "[B--2---:R-:W-:-:S05]", "")])
def test_results_are_late(word: str, behind: str, message: str) -> None:
  block = block_of(assembled([f"{word} SHFL.BFLY PT, R6, R7, 0x1, 0x1f", f"{behind} MOV R0, R6"]),
                   registers={7: VALUES})
  if not message: block.run()
  else:
    with pytest.raises(MissingWait, match=message): block.run()

def test_sources_are_read_late_and_the_predicate_is_late_too() -> None:
  first = "[B------:R3:W2:-:S02] SHFL.BFLY P0, R6, R7, 0x1, 0x1f"
  for line, message in (("[B------:R-:W-:-:S05] MOV R7, 0x1", "R7 is overwritten while it may still be read: "
                         "scoreboard 2, 3"),
                        ("[B------:R-:W-:-:S05] @P0 MOV R0, 0x1", "P0 is read, and scoreboard 2"),
                        ("[B---3--:R-:W-:-:S05] MOV R7, 0x1", "")):
    block = block_of(assembled([first, line]), registers={0: [0], 7: VALUES})
    if not message: block.run()
    else:
      with pytest.raises(MissingWait, match=message): block.run()

# ***** translated code *****

@pytest.mark.slow
@pytest.mark.skipif(threaded.level() is None, reason="no x86-64 with AVX2, or no executable pages")
def test_translated_code_does_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(translate, "HOT", 1)
  translate._kept.clear()
  lines = ["IADD3 R6, R7, R8, RZ", "SHFL.BFLY P1, R9, R6, 0x3, 0x1f", "@P1 IADD3 R10, R9, R6, RZ",
           "@!P2 SHFL.IDX PT, R11, R10, 0x0, 0x1f",
           "SHFL.DOWN P3, R12, R10, R13, 0x181f", "SEL R14, R12, R11, P3"]
  errors = set()
  for seed in range(12):
    found = assert_same(scheduled(lines), seed, str(seed))
    errors.add(found[0][2].partition(":")[0])
  assert errors == {"", "StrictError"}, "a guard takes lane 0 away now and then"
  (_, _, error), (_, _, other) = run_both(scheduled(lines), 1, hidden=(7,))
  assert error == other and "R7 is read in lanes 0xffffffff" in error
