"""Distances against those of NVIDIA's own assembler: none is shorter than the shortest seen."""
from __future__ import annotations

import pytest

from tinyhw.isa.sass.asm.syntax import parse
from tinyhw.isa.sass.model.latency import LATENCIES, distance, latency_of, overwrite_distance, reuse_distance
from tinyhw.machine.ir.inst import Inst

# producer, reader, the register, cycles: the shortest distances between such instructions in compiled code of sm_90a
SEEN = [
  ("FFMA R0, R4, R5, R6", "FFMA R1, R0, R2, R3", "R", False, 4),
  ("FADD R0, R8, R11", "LOP3.LUT R2, R0, 0x12d687, RZ, 0x3c, !PT", "R", False, 5),
  ("IADD3 R0, R1, R2, RZ", "ISETP.GE.AND P0, PT, R0, R3, PT", "R", False, 4),
  ("IADD3 R0, R1, R2, RZ", "IMAD R3, R0, R1, RZ", "R", False, 5),
  ("LOP3.LUT R0, R1, R2, RZ, 0xc0, !PT", "MUFU.RCP R1, R0", "R", False, 4),
  ("IMAD R0, R1, R2, RZ", "STG.E desc[UR4][R2.64], R0", "R", False, 5),
  ("DFMA R0, R2, R4, R6", "DFMA R8, R0, R2, R4", "R", False, 8),
  ("DMUL R0, R2, R4", "FSEL R6, R0, R7, P0", "R", False, 10),
  ("HMMA.16816.F32 R4, R8, R12, R4", "FADD R0, R4, R5", "R", False, 24),
  ("F2FP.F16.F32.PACK_AB R0, RZ, R1", "HFMA2 R2, R0, R3, R4", "R", False, 6),
  ("ISETP.EQ.AND P0, PT, R0, RZ, PT", "SEL R1, R2, R3, P0", "P", False, 4),
  ("ISETP.EQ.AND P0, PT, R0, RZ, PT", "@P0 BRA 0x0", "P", True, 13),
  ("DSETP.LT.AND P0, PT, R0, R2, PT", "FSEL R1, R2, R3, P0", "P", False, 6),
  ("DSETP.LT.AND P0, PT, R0, R2, PT", "@P0 BRA 0x0", "P", True, 14),
  ("IMAD.WIDE R0, R2, R3, R4", "LDG.E R6, desc[UR4][R0.64]", "R", False, 5),
  ("R2UR UR8, R12", "HGMMA.64x64x8.F32.TF32 R24, gdesc[UR8], R24", "UR", False, 15),
  ("MOV R24, R56", "HGMMA.64x64x16.F32.BF16 R24, R56, gdesc[UR4], R24", "R", False, 16),
  ("VOTEU.ANY UP0, P0", "HGMMA.64x8x16.F32.BF16 R24, gdesc[UR8], R24, !UP0, gsb0", "UP", False, 8),
  ("ULDC.64 UR4, c[0x0][0x208]", "LDG.E R6, desc[UR4][R0.64]", "UR", False, 2),
]

@pytest.mark.parametrize("producer, reader, bank, guard, cycles", SEEN)
def test_readers_are_no_earlier_than_seen(producer: str, reader: str, bank: str, guard: bool, cycles: int) -> None:
  first, second = (parse(text, "sm_90")[0].row for text in (producer, reader))
  assert distance(latency_of(first), first.pipe, second, bank, guard) >= cycles

def test_a_later_result_stays() -> None:
  """Distances are at least those that NVIDIA gave Mesa for Ampere.

  They are 1 between plain arithmetic, 6 before a load if the first is guarded, 8 between products, 13 and 12 around
  products.
  """
  alu, load, double, product = (parse(text, "sm_90")[0].row for text in (
    "MOV R0, R1", "LDG.E R0, desc[UR4][R2.64]", "DADD R0, R2, R4", "HMMA.16816.F32 R0, R4, R8, R12"))
  def between(first: str, second: Inst, board: bool = False) -> int:
    return overwrite_distance(LATENCIES[first], first, second, board)
  assert between("alu", alu) >= 1 and between("alu", load, True) >= 6 and between("alu", product) >= 2
  assert between("fp64", alu) >= 6 and between("fp64", double) >= 2 and between("fp64", load, True) >= 10
  assert between("tensor", alu) >= 13 and between("tensor", product) >= 8 and between("tensor", load, True) >= 17

def test_what_is_still_read() -> None:
  move, product = (parse(text, "sm_90")[0].row for text in ("MOV R0, R1", "HMMA.16816.F32 R0, R4, R8, R12"))
  assert reuse_distance(move, False) == 1 and reuse_distance(product, False) == reuse_distance(move, True) == 2
