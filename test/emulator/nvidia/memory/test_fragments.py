"""LDSM: each lane's part of blocks of shared memory, and refusals."""
from __future__ import annotations
import pytest

from nvidia.warps import LANES, after
from tinyhw.emulator.errors import EmulatorError, OutOfBounds, UninitialisedRead, UnknownInstruction

def pair(n: int) -> int: return n | (n + 1) << 16

ROWS = {0: [16 * lane for lane in range(LANES)],
        **{4 + k: [pair(8 * lane + 2 * k) for lane in range(LANES)] for k in range(4)}}

def loaded(text: str, shared: int = 512) -> list[list[int]]:
  """Return the halves of each lane's registers R8 on. Row n of shared memory holds the numbers 8n to 8n + 7."""
  warp = after(["STS.128 [R0], R4", text], registers=ROWS, shared=shared)
  count = int(text.partition("88")[2][1:2]) if "88." in text else 1
  return [[half for k in range(count) for word in [warp.registers[8 + k][lane]] for half in (word & 0xffff, word >> 16)]
          for lane in range(LANES)]

@pytest.mark.parametrize("count", (1, 2, 4))
@pytest.mark.parametrize("transposed", (False, True))
def test_words_of_lanes(count: int, transposed: bool) -> None:
  found = loaded(f"LDSM.16.M{'T' * transposed}88{f'.{count}' if count > 1 else ''} R8, [R0]")
  for lane, halves in enumerate(found):
    g, t = divmod(lane, 4)
    places = [(2 * t, g), (2 * t + 1, g)] if transposed else [(g, 2 * t), (g, 2 * t + 1)]
    assert halves == [64 * block + 8 * row + column for block in range(count) for row, column in places]

def test_only_the_lanes_that_say_where_rows_are_need_an_address() -> None:
  places = [16 * lane if lane < 8 else 1 << 20 for lane in range(LANES)]
  after(["STS.128 [R0], R4", "LDSM.16.M88 R8, [R1]"], registers={**ROWS, 1: places}, shared=512)
  with pytest.raises(OutOfBounds):
    after(["STS.128 [R0], R4", "LDSM.16.M88.2 R8, [R1]"], registers={**ROWS, 1: places}, shared=512)

def test_rows_are_whole() -> None:
  with pytest.raises(OutOfBounds, match="no multiple of its size"): loaded("LDSM.16.M88 R8, [R0+0x8]")
  with pytest.raises(UninitialisedRead): loaded("LDSM.16.M88 R8, [R0+0x190]", shared=1024)

def test_what_is_refused() -> None:
  with pytest.raises(EmulatorError, match="by some lanes only"):
    after(["STS.128 [R0], R4", "@P0 LDSM.16.M88 R8, [R0]"], registers=ROWS, shared=512, predicates={0: 0xff})
  with pytest.raises(UnknownInstruction, match="M816"): after(["LDSM.16.M816 R8, [R0]"], registers=ROWS, shared=512)
