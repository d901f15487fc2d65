"""The oracle of formats/mutations.py: each rule is broken by its own mistake, and by no other."""
from __future__ import annotations

import pytest
from nvidia.warps import MEMORY, assembled, block_of, scheduled

from test.emulator.mutants.mutations import Recorder
from test.emulator.nvidia.mutations import note
from test.emulator.nvidia.rules import Did, broken
from tinyhw.emulator.errors import PageFault, StrictError
from tinyhw.emulator.nvidia.block import ThreadBlock

GIVEN = ["S2R R1, SR_TID.X", "SHF.L.U32 R1, R1, 0x2, RZ"]

def rules(code: bytes, threads: int = 32, buffers: tuple[tuple[int, int], ...] = ((MEMORY, 4096),),
          **given: object) -> set[str]:
  """Return the rules that a run breaks, until strict execution ends it."""
  recorder: Recorder[Did] = Recorder(10000)
  traces = recorder.begin()
  # named as there
  block = block_of(code, threads=threads, shared=2048, content=bytearray(4096), **given)  # type: ignore[arg-type]
  watched = ThreadBlock(block.launch, 0, block.memory, 1, watch=lambda warp, step: note(recorder, traces, warp, step))
  try: watched.run()
  except (StrictError, PageFault): pass
  return {found.rule for found in broken([traces[k] for k in sorted(traces)], buffers)}

@pytest.mark.parametrize("lines", [
  [*GIVEN, "STS [R1], R1", "BAR.SYNC 0x0", "LDS R2, [R1]", "FADD R3, R2, R2", "ISETP.LT.AND P0, PT, R1, 0x10, PT",
   "@P0 MOV R4, R3"],
  [*GIVEN, "MUFU.RCP R2, R1", "MUFU.EX2 R3, R2", "I2F R4, R1", "DADD R6, RZ, RZ", "DMUL R8, R6, R6", "MOV R6, R1"]])
def test_scheduled_code_keeps_them(lines: list[str]) -> None: assert rules(scheduled(lines), 64) == set()

PATIENCE = "[B------:R-:W-:-:S15]"

@pytest.mark.parametrize("lines,rule", [
  (["[B------:R-:W-:Y:S03] MOV R0, 0x1", "FADD R2, R0, R0"], "a result is read too early"),
  (["[B------:R-:W0:Y:S02] S2R R0, SR_TID.X", f"{PATIENCE} FADD R2, R0, R0"], "a result is read too early"),
  (["[B------:R-:W0:Y:S01] S2R R0, SR_TID.X", "[B0-----:R-:W-:-:S15] FADD R2, R0, R0"],
   "a scoreboard is waited for too early"),
  (["[B------:R-:W0:Y:S02] S2R R0, SR_TID.X", f"{PATIENCE} MOV R0, 0x1"], "a register is overwritten before its own "
   "result is there"),
  ([f"{PATIENCE} MOV R0, 0x1", "[B------:R2:W-:Y:S02] STS [RZ], R0", f"{PATIENCE} MOV R0, 0x2"],
   "a register is overwritten before it has been read"),
  (["[B------:R-:W-:Y:S05] MEMBAR.ALL.CTA"], "the next instruction issues too early"),
  ([f"{PATIENCE} MOV R0, R9"], "a register is read that nothing has written"),
  (["[B------:R-:W0:Y:S02] LDS R0, [RZ]"], "shared memory is read that nothing has written"),
  ([f"{PATIENCE} MOV R2, {MEMORY + 4096 & 0xffffffff:#x}", f"{PATIENCE} MOV R3, {MEMORY >> 32:#x}",
    "[B------:R-:W0:Y:S02] LDG.E R0, [R2]"],
   "memory is read that nothing has written")])
def test_each_rule(lines: list[str], rule: str) -> None: assert rules(assembled(lines)) == {rule}

ARRIVE, PRODUCT = f"{PATIENCE} WARPGROUP.ARRIVE", f"{PATIENCE} HGMMA.64x8x16.F32 R8, gdesc[UR8], "
# zeros, at the same address
DESCRIPTORS = [f"{PATIENCE} UMOV UR{8 + k}, {word:#x}" for k, word in enumerate((0x80000, 0x10, 0x80000, 0x10))]
ZEROS = [*GIVEN, "SHF.L.U32 R2, R1, 0x2, RZ", "MOV R4, RZ", "MOV R5, RZ", "MOV R6, RZ", "MOV R7, RZ",
         "STS.128 [R2], R4", "FENCE.VIEW.ASYNC.S",
         "BAR.SYNC 0x0"]

@pytest.mark.parametrize("lines, rule", [
  ([ARRIVE, f"{PRODUCT}RZ, !UPT, gsb0", "WARPGROUP.DEPBAR.LE gsb0, 0x0", "FADD R4, R8, R8"], ""),
  ([ARRIVE, f"{PRODUCT}RZ, !UPT", f"{PRODUCT}R8, gsb0", "WARPGROUP.DEPBAR.LE gsb0, 0x0", "MOV R8, R4"], ""),
  ([ARRIVE, f"{PRODUCT}RZ, !UPT, gsb0", "WARPGROUP.DEPBAR.LE gsb0, 0x1", "FADD R4, R8, R8"],
   "a result is read too early"),
  ([ARRIVE, f"{PRODUCT}RZ, !UPT", "WARPGROUP.DEPBAR.LE gsb0, 0x0", "FADD R4, R8, R8"], "a result is read too early"),
  ([ARRIVE, f"{PRODUCT}RZ, !UPT, gsb0", "MOV R8, R4"], "a register is overwritten before its own result is there"),
  ([f"{PRODUCT}RZ, !UPT, gsb0"], "registers of a product have not been handed over"),
  ([ARRIVE, f"{PATIENCE} MOV R9, RZ", f"{PRODUCT}RZ, !UPT, gsb0"], "registers of a product have not been handed over")])
def test_products(lines: list[str], rule: str) -> None:
  """Products of four warps, over zeros."""
  code = [line.partition("] ")[2] if line.startswith("[") else line for line in (*ZEROS, *DESCRIPTORS, *lines)]
  assert rules(scheduled(code), 128) == ({rule} if rule else set())

def test_races_of_warps() -> None:
  store = ["STS [RZ], R1", "BAR.SYNC 0x0"]
  assert rules(scheduled([*GIVEN, *store]), 64) == {"two warps touch a byte of shared memory between barriers"}
  assert rules(scheduled(["MOV R1, 0x7", *store]), 64) == set(), "the same value"
