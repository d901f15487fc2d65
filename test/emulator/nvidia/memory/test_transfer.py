"""Memory of all kinds: sizes, signs, offsets, inactive lanes, bounds."""
from __future__ import annotations
import struct

import pytest

from nvidia.warps import LANES, MEMORY, after, assembled, block_of, words
from tinyhw.emulator.errors import DataRace, OutOfBounds, PageFault, StrictError, UninitialisedRead, UnknownInstruction

def addresses(step: int, start: int = MEMORY) -> dict[int, list[int]]:
  """Return R0 and R1: an address for each lane."""
  places = [start + step * k for k in range(LANES)]
  return {0: [x & 0xffffffff for x in places], 1: [x >> 32 for x in places]}

@pytest.mark.parametrize("word, code", [("U8", "B"), ("S8", "b"), ("U16", "H"), ("S16", "h")])
def test_narrow_loads_are_extended(word: str, code: str) -> None:
  size = struct.calcsize(code)
  content = bytearray(bytes((17 * k + 120) & 255 for k in range(size * LANES + 8)))
  warp = after([f"LDG.E.{word} R2, desc[UR4][R0.64+0x8]"], registers=addresses(size), content=content)
  assert warp.registers[2] == [x & 0xffffffff for x in struct.unpack(f"<{LANES}{code}", content[8:])]

@pytest.mark.parametrize("word, count", [("", 1), (".64", 2), (".128", 4)])
def test_groups_go_there_and_back(word: str, count: int) -> None:
  given = {4 + k: words(k) for k in range(count)}
  content = bytearray(16 * LANES)
  lines = [f"STG.E{word} desc[UR4][R0.64+-0x10], R4", f"LDG.E{word} R8, desc[UR4][R0.64+-0x10]"]
  warp = after(lines, registers={**addresses(16, MEMORY + 16), **given}, content=content)
  assert [warp.registers[8 + k] for k in range(count)] == list(given.values())
  assert struct.unpack_from("<I", content, 16)[0] == words(0)[1]

def test_a_guard_keeps_from_memory() -> None:
  content = bytearray(4 * 16)  # the other lanes' addresses do not exist
  warp = after(["@P0 STG.E desc[UR4][R0.64], R2", "@P0 LDG.E R3, desc[UR4][R0.64]"],
               registers={**addresses(4), 2: words(1), 3: [5]}, content=content,
               predicates={0: 0xffff})
  assert warp.registers[3] == words(1)[:16] + [5] * 16
  with pytest.raises(PageFault):
    after(["STG.E desc[UR4][R0.64], R2"], registers={**addresses(4), 2: words(1)}, content=content)

@pytest.mark.parametrize("start", (MEMORY - 0x1000, MEMORY - 0xfffff000), ids=("near", "beyond half of the range"))
def test_a_base_in_uniform_registers(start: int) -> None:
  """The lanes' 32 bits have no sign, the base has 64 bits, the constant a sign."""
  offsets, content = [MEMORY - start + 4 * k for k in range(LANES)], bytearray(1024)
  base = [f"UMOV UR8, {start & 0xffffffff:#x}", f"UMOV UR9, {start >> 32:#x}",
          f"UMOV UR6, {start + 512 & 0xffffffff:#x}", "UMOV UR7, UR9"]
  lines = [*base, "STG.E [R0.U32+UR8+0x10], R2", "LDG.E R3, [R0.U32+UR6+-0x1f0]", "LDGSTS.E [R4], [R0.U32+UR8+0x10]",
           "LDGDEPBAR",
           "DEPBAR.LE SB0, 0x0", "LDS R5, [R4]"]
  warp = after(lines, registers={0: offsets, 2: words(1), 4: [4 * k for k in range(LANES)]}, content=content,
               shared=128)
  assert warp.registers[3] == warp.registers[5] == words(1)
  assert struct.unpack_from("<I", content, 16)[0] == words(1)[0]

def test_a_base_that_is_late() -> None:
  """A uniform register has a fixed latency, too."""
  base = [f"[B------:R-:W-:-:S12] UMOV UR8, {MEMORY & 0xffffffff:#x}",
          f"[B------:R-:W-:-:S{{}}] UMOV UR9, {MEMORY >> 32:#x}"]
  load = "[B------:R-:W0:Y:S02] LDG.E R3, [R0.U32+UR8]"
  def run(stall: str) -> None:
    block_of(assembled([base[0], base[1].format(stall), load]), registers={0: [0]}, content=bytearray(16)).run()
  run("12")
  with pytest.raises(StrictError, match="UR9"): run("08")
  with pytest.raises(UninitialisedRead, match="UR8"):
    block_of(assembled([load]), registers={0: [0]}, content=bytearray(16)).run()

def test_addresses_are_aligned() -> None:
  with pytest.raises(OutOfBounds, match="an access of 4 bytes at 0x7f1000000002: the address is no multiple of its "
                     "size"):
    after(["LDG.E R2, desc[UR4][R0.64+0x2]"], registers=addresses(4), content=bytearray(256))

def test_shared_memory() -> None:
  given = {0: [4 * k for k in range(LANES)], 1: [4 * (LANES - 1 - k) for k in range(LANES)], 2: words(1)}
  warp = after(["STS [R0+0x40], R2", "LDS R3, [R1+0x40]", "STS.U8 [R0], R2", "LDS.S8 R4, [R0]"], registers=given,
               shared=256)
  assert warp.registers[3] == words(1)[::-1]
  assert warp.registers[4] == [x | 0xffffff00 if x & 0x80 else x & 0xff for x in words(1)]
  with pytest.raises(OutOfBounds, match="the block has 128 bytes"):
    after(["STS [R0+0x40], R2"], registers=given, shared=128)
  with pytest.raises(UninitialisedRead): after(["LDS R3, [R1+0x40]"], registers=given, shared=256)
  with pytest.raises(UnknownInstruction, match="a scaled address"):
    after(["LDS R3, [R1.X4]"], registers=given, shared=256)

def test_warps_that_meet_in_shared_memory_without_a_barrier() -> None:
  number = "[B------:R-:W0:Y:S02] S2R R2, SR_TID.X"
  with pytest.raises(DataRace):
    after([number, "[B0-----:R-:W-:Y:S02] STS [R0], R2"], registers={0: [0]}, shared=16, threads=64)
  after(["STS [R0], R2"], registers={0: [0], 2: [1]}, shared=16, threads=64)   # stores of the same value do not race

def test_local_memory_is_the_lane_s() -> None:
  warp = after(["STL.64 [RZ+0x8], R2", "LDL R4, [RZ+0xc]", "LDL R5, [R0]"],
               registers={0: [8], 2: words(1), 3: words(2)}, local=16)
  assert (warp.registers[4], warp.registers[5]) == (words(2), words(1))
  with pytest.raises(OutOfBounds, match="a lane has 16 bytes; raise SHADER_LOCAL"):
    after(["STL.64 [RZ+0x10], R2"], registers={2: [0], 3: [0]}, local=16)
  with pytest.raises(UninitialisedRead, match="which lane 0 has not all written"): after(["LDL R4, [RZ]"], local=16)

def test_constant_memory() -> None:
  bank = bytes(range(64))
  warp = after(["LDC.64 R2, c[0x0][0x8]", "LDC.S8 R4, c[0x0][R0+0x10]", "ULDC.64 UR6, c[0x0][0x20]"],
               registers={0: [1]}, constants=bank)
  assert (warp.registers[2] == [0x0b0a0908] * LANES and warp.registers[3] == [0x0f0e0d0c] * LANES
          and warp.registers[4] == [0x11] * LANES)
  assert warp.uniform[6:8].tolist() == [0x23222120, 0x27262524]
  with pytest.raises(OutOfBounds, match="bank 0 has 64 bytes"): after(["LDC R2, c[0x0][0x40]"], constants=bank)
  with pytest.raises(OutOfBounds, match="constant bank 3 has not been given"):
    after(["LDC R2, c[0x3][0x0]"], constants=bank)
