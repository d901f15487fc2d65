"""Effects and costs of instructions of NVIDIA's GPUs, one by one."""
from __future__ import annotations
import pytest

from tinyhw.isa.sass.asm.syntax import parse
from tinyhw.isa.sass.model.resources import (
  Costs, conflicts_of, element_of, is_local, is_private, meets, model, only_waits, operations, touched)
from tinyhw.isa.sass.table.control import Control, parse_prefix
from tinyhw.machine.ir.inst import Function, MInst
from tinyhw.machine.model.waves import WaveTimeline

@pytest.mark.parametrize("arch, text, size, count, element", [
  ("sm_80", "LDG.E.128 R0, desc[UR4][R4.64]", 512, 0, ""), ("sm_90", "LDG.E.U8 R0, desc[UR4][R4.64]", 32, 0, ""),
  ("sm_80", "STG.E.64 desc[UR4][R4.64], R2", 256, 0, ""), ("sm_80", "LDS R0, [R4]", 128, 0, ""),
  ("sm_80", "STS.128 [R4], R8", 512, 0, ""),
  ("sm_80", "LDSM.16.M88.4 R0, [R4]", 512, 0, ""), ("sm_80", "LDSM.16.MT88.2 R0, [R4]", 256, 0, ""),
  ("sm_80", "LDC R0, c[0x0][0x160]", 0, 0, ""),
  ("sm_80", "LDGSTS.E.BYPASS.128 [R4], desc[UR4][R6.64]", 512, 0, ""), ("sm_80", "LDGDEPBAR", 0, 0, ""),
  ("sm_80", "LDL R0, [RZ]", 128, 0, ""),
  ("sm_80", "FFMA R0, R1, R2, R3", 0, 64, "vf32"), ("sm_80", "HFMA2 R0, R1, R2, R3", 0, 128, "vf16"),
  ("sm_80", "DADD R0, R2, R4", 0, 32, "vf64"),
  ("sm_80", "IADD3 R0, R1, R2, R3", 0, 0, ""), ("sm_80", "MUFU.EX2 R0, R1", 0, 32, "vf32"),
  ("sm_80", "HMMA.16816.F32 R0, R4, R8, R0", 0, 4096, "f16"), ("sm_80", "HMMA.16816.F32.BF16 R0, R4, R8, R0", 0, 4096,
                                                               "bf16"),
  ("sm_80", "HMMA.1688.F32.TF32 R0, R4, R8, R0", 0, 2048, "tf32"),
  ("sm_80", "IMMA.16832.S8.S8 R0, R4.ROW, R8.COL, R0", 0, 8192, "i8"),
  ("sm_90", "HGMMA.64x256x16.F32.BF16 R24, gdesc[UR4], R24", 0, 131072, "wgmma bf16"),
  ("sm_90", "HGMMA.64x64x16.F32 R24, R56, gdesc[UR4], R24", 0, 32768, "wgmma f16"),
  ("sm_90", "IGMMA.64x64x32.S8.S8 R24, gdesc[UR8], R24", 0, 65536, "wgmma i8"),
  ("sm_89", "QMMA.16832.F32.E4M3.E4M3 R0, R4.ROW, R8.COL, R0", 0, 8192, "fp8"),
  ("sm_80", "DMMA.884 R0, R4, R8, R0", 0, 512, "f64")])
def test_bytes_and_operations_of_a_warp(arch: str, text: str, size: int, count: int, element: str) -> None:
  inst, _ = parse(text, arch)
  assert (touched(inst), operations(inst), element_of(inst)) == (size, count, element)

@pytest.mark.parametrize("arch, text, taken", [
  ("sm_80", "FFMA R0, R1, R2, R3", {"i": 1, "f": 2}), ("sm_90", "FFMA R0, R1, R2, R3", {"i": 1, "f": 1}),
  ("sm_90", "IMAD R0, R1, R2, R3", {"i": 1, "f": 2}), ("sm_80", "IADD3 R0, R1, R2, R3", {"i": 1, "a": 2}),
  ("sm_80", "HMMA.16816.F32 R0, R4, R8, R0", {"i": 1, "x": 8}),
  ("sm_89", "HMMA.16816.F32 R0, R4, R8, R0", {"i": 1, "x": 16}),
  ("sm_90", "HGMMA.64x256x16.F32 R24, gdesc[UR4], R24", {"i": 1, "x": 128, "d": 20}),
  ("sm_90", "HGMMA.64x128x16.F32.BF16 R24, R56, gdesc[UR4], R24", {"i": 1, "x": 64, "d": 8}),
  ("sm_90", "IGMMA.64x64x32.S8.S8 R24, gdesc[UR8], R24", {"i": 1, "x": 32, "d": 8}),
  ("sm_80", "LDSM.16.M88.4 R0, [R4]", {"i": 1, "d": 4}), ("sm_80", "NOP", {"i": 1}),
  ("sm_80", "MUFU.EX2 R0, R1", {"i": 1, "s": 8})])
def test_what_instructions_take(arch: str, text: str, taken: dict[str, float]) -> None:
  assert Costs(arch).takes(parse(text, arch)[0]) == taken

def test_an_asynchronous_copy_takes_shared_memory_too() -> None:
  taken = Costs("sm_80").takes(parse("LDGSTS.E.BYPASS.128 [R4], desc[UR4][R6.64]", "sm_80")[0])
  assert taken["d"] == 4 and taken["g"] > 0 and taken["m"] > 0

def test_kinds() -> None:
  insts = [parse(text, "sm_80")[0] for text in ("LDS R0, [R4]", "LDL R0, [RZ]", "BAR.SYNC 0x0", "DEPBAR.LE SB0, 0x1")]
  assert ([[kind(inst) for inst in insts].index(True) for kind in (is_local, is_private, meets, only_waits)]
          == [0, 1, 2, 3])

def one(text: str) -> tuple[MInst, Control]: return parse(text, "sm_80")

def test_control_words() -> None:
  inst, control = one("[B0-2---:R5:W1:Y:S04] LDG.E R0, desc[UR4][R4.64]")
  assert control == parse_prefix("[B0-2---:R5:W1:Y:S04]")[0]
  own = Costs("sm_80", None, {id(inst): control})
  assert own.words(inst) == "after 0 2; result 1; sources 5; 4 cycles"
  assert own.issue(inst) == 4 and own.counters(inst) == ["sb1", "sb5"] and own.waits(inst) == {"sb0": 0, "sb2": 0}
  early = own.early(inst, "sb5")
  assert own.early(inst, "sb1") is None and early is not None and early < own.latency(inst)
  assert [r.index for r in own.held(inst, "sb1")] == [0] and 4 in [r.index for r in own.held(inst, "sb5")]
  assert Costs("sm_80").words(inst) == "1 cycle" and Costs("sm_80").latency(inst) == 0

def test_groups_of_products() -> None:
  costs = Costs("sm_90")
  ends, goes_on, done = (parse(text, "sm_90")[0] for text in (
    "HGMMA.64x256x16.F32 R24, gdesc[UR4], R24, gsb0", "HGMMA.64x256x16.F32 R24, gdesc[UR4], R24",
    "WARPGROUP.DEPBAR.LE gsb0, 0x1"))
  assert (costs.counters(ends) == ["gsb"] and costs.counters(goes_on) == [] and costs.waits(done) == {"gsb": 1}
          and only_waits(done))
  assert costs.latency(ends) == 0 and costs.early(ends, "gsb") == 152 and [r.index
                                                                           for r in costs.held(ends, "gsb")] == [24]

def test_products_of_a_warpgroup_fill_the_tensor_core() -> None:
  """Two groups of a (64, 256) product are pending. A loop of four products takes the cycles of their operations, not
  their latency."""
  lines = [parse(text, "sm_90") for text in ("[B------:R-:W-:-:S06] WARPGROUP.ARRIVE",
                                             *["HGMMA.64x256x16.F32 R24, gdesc[UR4], R24"] * 3,
      "HGMMA.64x256x16.F32 R24, gdesc[UR4], R24, gsb0", "[B------:R-:W-:-:S06] WARPGROUP.DEPBAR.LE gsb0, 0x1")]
  own = Costs("sm_90", None, {id(inst): control for inst, control in lines})
  wave = WaveTimeline(model(own), 4)
  for _ in range(8):
    before = wave.now
    for inst, _ in lines: wave.step(inst)
  assert wave.now - before == pytest.approx(512, rel=0.03)

def test_a_counting_wait() -> None: assert Costs("sm_80").waits(one("DEPBAR.LE SB0, 0x2")[0]) == {"sb0": 2}

@pytest.mark.parametrize("texts, more", [
  (["FFMA R0, R2, R4, R6"], [1]), (["FFMA R0, R2, R4, R7"], [0]), (["FFMA R0, R2, R2, R6"], [0]),
  (["FFMA R0, R1, R3, R5"], [1]),
  (["FFMA R0, R2.reuse, R4, R7", "FFMA R0, R2, R4, R6"], [0, 0]),
  (["FFMA R0, R2.reuse, R4, R7", "FFMA R0, R4, R2, R6"], [0, 1]),
  (["FFMA R0, R2, R4, R7", "FFMA R0, R2, R4, R6"], [0, 1]), (["IADD3 R0, R2, R4, RZ"], [0]),
  (["HMMA.16816.F32 R0, R4, R8, R0"], [0])])
def test_registers_of_one_bank(texts: list[str], more: list[int]) -> None:
  function = Function("test")
  lines = [one(text) for text in texts]
  function.new_block().insts += [inst for inst, _ in lines]
  found = conflicts_of(function, {id(inst): control for inst, control in lines})
  assert [found.get(id(inst), 0) for inst, _ in lines] == more
  for (inst, _), cycles in zip(lines, more): assert Costs("sm_80", None, None, found).takes(inst)["i"] == 1 + cycles
