"""Software pipelines of products as in kernels. A pipeline that keeps the rules runs. Each wait, fence or meeting that
is left out is found.

There are two, over three steps of 64. In the first all warps copy (LDGSTS) with groups and barriers of the block. In
the second one warp requests bulk tensor copies. mbarriers say which stage is full and which is empty, and one thread of
the four multiplying warps arrives at them.
"""
from __future__ import annotations
from collections.abc import Sequence

import pytest

from nvidia.copies import tensor_map
from nvidia.products import fill, numbers, tile, tiles
from nvidia.warps import LANES, MEMORY, block_of, scheduled
from tinyhw.arithmetic import encode_bfloat16
from tinyhw.emulator.errors import EmulatorError
from tinyhw.emulator.nvidia.block import ThreadBlock
from tinyhw.emulator.nvidia.warp.numbers import words_of

# steps of 64; bytes of a stage: 64 lines of operand A, then 16 of operand B
STEPS, STAGE, SECOND = 3, 12288, 8192
A, B = numbers(64, 64 * STEPS, 1), numbers(16, 64 * STEPS, 2)
EXPECTED = [[words_of([sum(x * y for x, y in zip(row, column))] * LANES)[0] for column in B] for row in A]
MEET, NOTHING = "BAR.SYNC.DEFER_BLOCKING 0x0", "NOP"
Marked = list[tuple[str, bool]]   # lines, and whether leaving one out breaks a rule

def part(values: list[list[float]], step: int) -> list[list[float]]:
  return [row[64 * step:64 * step + 64] for row in values]
def usual(*lines: str) -> Marked: return [(line, False) for line in lines]
def needed(line: str) -> Marked: return [(line, True)]

def products(stage: int, first: bool) -> Marked:
  """Return four products of a stage, as a group."""
  found = usual(*tiles(tile(STAGE * stage, 128, False, 64), tile(STAGE * stage + SECOND, 128, False, 16)))
  for k in range(4):
    if k: found += usual("UIADD3 UR8, UR8, 0x2, URZ", "UIADD3 UR10, UR10, 0x2, URZ")
    sums = "RZ, !UPT" if first and not k else "R24"
    found += usual(f"HGMMA.64x16x16.F32.BF16 R24, gdesc[UR8], {sums}{', gsb0' * (k == 3)}")
  return found

# ***** copies by all warps *****

def image() -> bytes:
  """Return global memory: stages as they should be in shared memory."""
  found = bytearray(STAGE * STEPS)
  for step in range(STEPS):
    fill(found, tile(STAGE * step, 128, False, 64), part(A, step), encode_bfloat16)
    fill(found, tile(STAGE * step + SECOND, 128, False, 16), part(B, step), encode_bfloat16)
  return bytes(found)

def copied(step: int, stages: int) -> Marked:
  """Return lines that copy a step's operands, 16 bytes a lane and time, as a group. The group may be empty."""
  found = []
  for at in range(0, SECOND + 2048, 2048) if step < STEPS else ():
    found += usual(f"IADD3 R2, R1, {STAGE * step + at:#x}, RZ",
                   f"LDGSTS.E.BYPASS.128 [R1+{STAGE * (step % stages) + at:#x}], [R2.64]")
  return [*found, *usual("LDGDEPBAR")]

def by_all() -> Marked:
  """Return the pipeline of two stages. A step's copies start after the wait for the products of the previous step."""
  found = usual("S2R R0, SR_TID.X", "SHF.L.U32 R1, R0, 0x4, RZ",
                f"MOV R3, {MEMORY >> 32:#x}") + copied(0, 2) + copied(1, 2)
  for step in range(STEPS):
    found += needed("DEPBAR.LE SB0, 0x1") + needed("FENCE.VIEW.ASYNC.S") + needed(MEET)
    found += [("WARPGROUP.ARRIVE", not step), *products(step % 2, not step)]
    if step < STEPS - 1: found += [("WARPGROUP.DEPBAR.LE gsb0, 0x0", step + 2 < STEPS), *copied(step + 2, 2)]
  return found + needed("WARPGROUP.DEPBAR.LE gsb0, 0x0") + usual("FADD R40, R24, RZ")

# ***** bulk copies that one warp requests *****

FULL, EMPTY, MAPS, TENSORS = 0x7000, 0x7010, 0, 4096
def word(count: int) -> tuple[str, str]:
  return f"UMOV UR0, {(1 << 20) - count << 1:#x}", f"UMOV UR1, {(1 << 20) - count << 11 & 0xffffffff:#x}"

def look(name: str, at: int, parity: int) -> Marked:
  return [*usual(f"UMOV UR2, {at:#x}", f"MOV R3, {parity << 31:#x}", f"{name}:",
                 "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR2], R3"),
          (f"@!P0 BRA {name}", True)]

def asked(step: int) -> Marked:
  """Return lines that copy both boxes of a step."""
  stage = step % 2
  found = look(f"empty{step}", EMPTY + 8 * stage, 0) if step >= 2 else []
  found += usual(f"UMOV UR2, {FULL + 8 * stage:#x}", "ELECT P2, UR3, PT", f"MOV R6, {SECOND + 2048:#x}",
                 "@P2 SYNCS.ARRIVE.TRANS64 RZ, [UR2], R6")
  for which, goal in ((0, STAGE * stage), (1, STAGE * stage + SECOND)):
    words = goal, FULL + 8 * stage, 64 * step, 0
    found += usual(*(f"UMOV UR{8 + k}, {x:#x}" for k, x in enumerate(words)), f"UMOV UR4, {MAPS + 128 * which:#x}",
                   f"UMOV UR5, {MEMORY >> 32:#x}",
                   "UTMALDG.2D [UR8], [UR4]")
  return found

def by_one() -> Marked:
  """Return the pipeline in which the fifth warp copies, and four multiply."""
  found = usual("S2R R0, SR_TID.X", "ISETP.LT.U32.AND P1, PT, R0, 0x80, PT", "ISETP.NE.AND P3, PT, R0, RZ, PT",
                "@P1 BRA ready", *word(1))
  for at in (FULL, FULL + 8, EMPTY, EMPTY + 8): found += usual(f"UMOV UR2, {at:#x}", "SYNCS.EXCH.64 URZ, [UR2], UR0")
  found += needed("FENCE.VIEW.ASYNC.S") + usual("ready:") + needed(MEET) + usual("@P1 BRA multiply")
  for step in range(STEPS): found += asked(step)
  found += usual("EXIT", "multiply:")
  for step in range(STEPS):
    found += [*look(f"full{step}", FULL + 8 * (step % 2), step // 2), ("WARPGROUP.ARRIVE", not step),
              *products(step % 2, not step),
              ("WARPGROUP.DEPBAR.LE gsb0, 0x0", step != 1), *usual(f"UMOV UR2, {EMPTY + 8 * (step % 2):#x}"),
              ("@!P3 SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR2], RZ", step + 2 < STEPS)]
  return found + usual("FADD R40, R24, RZ")

def tensors() -> bytes:
  """Return global memory: two maps, then both operands line by line."""
  found = bytearray(TENSORS)
  for which, values in enumerate((A, B)):
    shape = (64 * STEPS, len(values))
    found[128 * which:128 * (which + 1)] = tensor_map(MEMORY + len(found), shape, (128 * STEPS,), (64, len(values)),
                                                      swizzle=3)
    found += b"".join(encode_bfloat16(x).to_bytes(2, "little") for row in values for x in row)
  return bytes(found)

# ***** runs *****

KINDS = {"by all": (by_all(), 128, image()), "by one": (by_one(), 160, tensors())}

def ran(lines: Sequence[str], threads: int, memory: bytes, seed: int) -> ThreadBlock:
  block = block_of(scheduled(lines), threads=threads, shared=0x7100, content=bytearray(memory), seed=seed, count=64)
  block.run()
  return block

@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_they_multiply(kind: str, seed: int) -> None:
  lines, threads, memory = KINDS[kind]
  block = ran([line for line, _ in lines], threads, memory, seed)
  for w, warp in enumerate(block.warps[:4]):
    for i in range(8):
      places = [(16 * w + lane // 4 + 8 * (i >> 1 & 1), 8 * (i >> 2) + 2 * (lane % 4) + i % 2) for lane in range(LANES)]
      assert list(warp.registers[24 + i]) == [EXPECTED[row][column] for row, column in places]

LEFT_OUT = [(kind, at) for kind, (lines, _, _) in KINDS.items() for at, (_, matters) in enumerate(lines) if matters]

@pytest.mark.slow
@pytest.mark.parametrize("kind, at", LEFT_OUT, ids=[f"{kind} {at} {KINDS[kind][0][at][0]}" for kind, at in LEFT_OUT])
def test_nothing_can_be_left_out(kind: str, at: int) -> None:
  lines, threads, memory = KINDS[kind]
  found = []
  for seed in range(12):
    try: ran([NOTHING if k == at else line for k, (line, _) in enumerate(lines)], threads, memory, seed)
    except EmulatorError: found.append(seed)
    # a test that succeeds at once needs no second one: another order may show it
    if found or "PHASECHK" not in lines[at - 1][0]: break
  assert found
