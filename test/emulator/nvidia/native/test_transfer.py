"""Loads and stores that translated code does itself: the same memory, registers and errors as Python."""
from __future__ import annotations
import random

import pytest
from nvidia.both import assert_same, hot
from nvidia.warps import MEMORY, scheduled

from tinyhw.emulator.native import threaded
from tinyhw.emulator.nvidia.native.transfer import transfer_of
from tinyhw.isa.sass.asm.syntax import parse

pytestmark = [pytest.mark.skipif(threaded.level() is None, reason="no x86-64 with AVX2, or no executable pages"),
              pytest.mark.usefixtures(hot.__name__)]

# R1: 16 times the lane's number in the block; R2, R3: MEMORY and that
ADDRESSES = ["S2R R1, SR_TID.X", "SHF.L.U32 R1, R1, 0x4, RZ", f"IADD3 R2, R1, {MEMORY & 0xffffffff:#x}, RZ",
             f"MOV R3, {MEMORY >> 32:#x}"]
CONTENT = random.Random(1).randbytes(4096)
LOADS = (("", 5, 0), (".U8", 6, 3), (".S8", 7, 5), (".U16", 8, 2), (".S16", 9, 6), (".64", 10, 8), (".128", 12, 0))
STORES = ((".128", 16, 0), ("", 17, 4), (".U8", 18, 9), (".U16", 19, 14), (".64", 20, 8), ("", 255, 0))
GLOBAL = [*(f"LDG.E{size} R{d}, desc[UR4][R2.64+{offset:#x}]" for size, d, offset in LOADS),
          *(f"STG.E{size} desc[UR4][R2.64+{offset + 0x800:#x}], R{b}".replace("R255", "RZ")
            for size, b, offset in STORES)]
# R1: plus half of the range, so that a sign extension would be visible; UR6, UR7: MEMORY minus half of the range
BASE = MEMORY - (1 << 31)
BASES = [*ADDRESSES[:2], "IADD3 R1, R1, -0x80000000, RZ", f"UMOV UR6, {BASE & 0xffffffff:#x}",
         f"UMOV UR7, {BASE >> 32:#x}"]
BASED = [*(f"LDG.E{size} R{d}, [R1.U32+UR6+{offset:#x}]" for size, d, offset in LOADS),
         *(f"STG.E{size} [R1.U32+UR6+{offset + 0x800:#x}], R{b}".replace("R255", "RZ") for size, b, offset in STORES)]
SHARED = [*(f"STS{size} [R1+{offset:#x}], R{b}".replace("R255", "RZ") for size, b, offset in STORES),
          *(f"LDS{size} R{d}, [R1+{offset:#x}]" for size, d, offset in LOADS)]

@pytest.mark.slow
@pytest.mark.parametrize("start, lines", ((ADDRESSES, GLOBAL), (BASES, BASED), (ADDRESSES, SHARED)),
                         ids=("global", "based", "shared"))
def test_both_agree(start: list[str], lines: list[str]) -> None:
  assert all(transfer_of(parse(line, "sm_90")[0], 24) is not None for line in lines)
  for seed in range(6):
    for guard in ("", "@P5 "):
      code = scheduled([*start, *(guard * (i % 2) + line for i, line in enumerate(lines))])
      _, (_, _, error) = assert_same(code, seed, guard, content=CONTENT, shared=4096, threads=(32, 45, 70)[seed % 3])
      assert not error or guard and "no warp has written" in error

@pytest.mark.parametrize("line,message", [
  ("LDG.E.64 R4, desc[UR4][R2.64+0x4]", "OutOfBounds: an access of 8 bytes at 0x7f1000000004"),
  ("LDS.64 R4, [R1+0x4]", "OutOfBounds"),
  ("LDS R4, [R1+0x100]", "UninitialisedRead: shared memory address 0x100"), ("STS [R1+0xffc], R1", "OutOfBounds")])
def test_what_is_not_plain_is_an_error_of_python(line: str, message: str) -> None:
  for seed in range(2):
    _, (_, _, error) = assert_same(scheduled([*ADDRESSES, line]), seed, line, content=CONTENT, shared=4096)
    assert error.startswith(message)

def test_races_of_warps_are_found() -> None:
  code = scheduled(["STS [RZ], R1", "S2R R1, SR_TID.X", "LDS R5, [RZ]"])
  _, (_, _, error) = assert_same(code, 1, shared=16, threads=64)
  assert error.startswith("DataRace: shared memory address 0x0")

@pytest.mark.parametrize("line", ["LDG.E R4, desc[UR4][RZ.64]", "LDL R4, [R1]", "LDG.E RZ, desc[UR4][R2.64]",
                                  "MOV R1, R2",
                                  "LDG.E R4, [RZ.U32+UR4]", "LDG.E R4, [R2.U32+URZ]"])
def test_what_stays_python(line: str) -> None: assert transfer_of(parse(line, "sm_90")[0], 24) is None
