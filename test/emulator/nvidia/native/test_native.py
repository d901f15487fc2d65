"""Machine code of the host and Python give the same result for each instruction that both have, in all lanes, in some,
and in those of a guard."""
from __future__ import annotations

import pytest
from nvidia.both import REGISTERS, assert_same, hot
from nvidia.warps import scheduled

from tinyhw.emulator.native import threaded
from tinyhw.emulator.nvidia.native.native import computation, native
from tinyhw.isa.sass.asm.syntax import parse

pytestmark = [pytest.mark.skipif(threaded.level() is None, reason="no x86-64 with AVX2, or no executable pages"),
              pytest.mark.usefixtures(hot.__name__)]

CONSTANTS = bytes(range(1, 65))
LINES = """
FADD R0, R1, -R2
FADD R0, |R1|, -|R2|
FMUL R0, R1, 0x40490fdb
FFMA R0, R1, -R2, R3
FFMA R0, R1, 2, |R3|
FADD R0, R1, UR4
FMNMX R0, R1, -R2, PT
HADD2 R0, R1, -R2
HADD2 R0, |R1|.H1_H1, -|R2|.H0_H0
HADD2 R0, R1, 1, -2
HMUL2 R0, R1, R2
HMUL2 R0, -R1.H0_H0, R2
HMNMX2 R0, R1, -R2, PT
HMNMX2 R0, R1, R2.H1_H1, !PT
HMNMX2.NAN R0, R1, 6, 6, PT
HMNMX2.NAN R0, R1, R2, !PT
HSET2.LT.AND R0, R1, R2, PT
HSET2.NEU.AND R0, R1, R1, PT
HSET2.GEU.AND R0, -R1, 0.5, 0.25, PT
HSET2.EQ.AND R0, R1, R2.H0_H0, PT
HSET2.BF.LT.OR R0, R1, R2, P2
HSETP2.LT.AND P0, P1, R1, R2, P3
HSETP2.GTU.OR P0, P1, R1, -R2.H0_H0, PT
FMNMX R0, |R1|, R2, !PT
FMNMX.NAN R0, R1, R2, P3
FMNMX.NAN R0, R1, R2, !PT
DADD R0, R2, -R4
DADD R0, R2, UR4
DADD R0, R2, 1.5
DMUL R0, R2, R4
DFMA R0, R2, R4, -R6
IADD3 R0, R1, R2, R3
IADD3 R0, -R1, -R2, RZ
IADD3 R0, R1, -0x5, RZ
IADD3 R0, P1, R1, R2, RZ
IADD3 R0, P1, P2, R1, R2, R3
IADD3 R0, P1, R1, -R2, RZ
IADD3 R0, P1, P2, -R1, -R2, RZ
IADD3.X R0, R1, R2, RZ, P0, !PT
IADD3.X R0, P2, R1, ~R2, RZ, P0, !PT
IADD3.X R0, P1, P2, R1, R2, R3, P3, P4
IMAD R0, R1, R2, R3
IMAD R0, R1, 0x11, -R3
IMAD R0, R1, R2, RZ
IMAD.WIDE R0, R2, R3, R4
IMAD.WIDE R0, R2, 0x4, -R4
IMAD.WIDE.U32 R0, R2, R3, R4
IMAD.WIDE.U32 R0, P3, R2, R3, R4
IMAD.WIDE R0, R2, R3, RZ
LOP3.LUT R0, R1, R2, RZ, 0xc0, !PT
LOP3.LUT R0, R1, 0xff00, RZ, 0xfc, !PT
LOP3.LUT R0, R1, R2, R3, 0x96, !PT
LOP3.LUT R0, R1, R2, R3, 0xe8, !PT
LOP3.LUT P0, R0, R1, R2, R3, 0x1d, !PT
LOP3.LUT P0, RZ, R1, 0x1, RZ, 0xc0, P2
PLOP3.LUT P0, P1, P2, P3, P4, 0x96, 0xe8
PLOP3.LUT P0, PT, !P2, P3, PT, 0x80, 0x8
PLOP3.LUT P0, P2, P2, P3, P0, 0xd4, 0x2b
SHF.L.U32 R0, R1, 0x3, RZ
SHF.L.U32 R0, R1, R2, RZ
SHF.L.U64.HI R0, R1, 0x5, R3
SHF.L.U64.HI R0, R1, 0x25, R3
SHF.L.U64.HI R0, R1, R2, R3
SHF.R.U32.HI R0, RZ, 0x5, R3
SHF.R.S32.HI R0, RZ, 0x1f, R3
SHF.R.S32.HI R0, RZ, R2, R3
SHF.R.U32.HI R0, RZ, R2, R3
SHF.R.U64 R0, R1, 0x7, R3
SHF.R.U64 R0, R1, 0x27, R3
SHF.R.U64 R0, R1, R2, R3
SHF.R.S64 R0, R1, 0x21, R3
SHF.R.W.U32 R0, R1, R2, R3
SHF.L.W.U32.HI R0, R1, R2, R3
PRMT R0, R1, 0x5410, R3
PRMT R0, R1, 0x7632, R3
PRMT R0, R1, 0x8880, R3
PRMT R0, R1, 0x4, RZ
PRMT R0, R1, R2, R3
SGXT R0, R1, 0x8
SGXT.U32 R0, R1, 0x10
SGXT R0, R1, R2
SGXT.U32 R0, R1, R2
SEL R0, R1, R2, P0
SEL R0, R1, 0x7, !P0
VIMNMX R0, R1, R2, PT
VIMNMX.U32 R0, R1, R2, !PT
VIMNMX R0, R1, R2, P3
ISETP.LT.AND P0, PT, R1, R2, PT
ISETP.GE.U32.AND P0, P1, R1, 0x10, P2
ISETP.NE.OR P0, P1, R1, RZ, !P2
ISETP.EQ.AND P0, PT, R1, R2, P0
ISETP.LT.AND P0, P1, R1, R2, !PT
ISETP.GT.U32.AND.EX P0, PT, R1, R2, PT, P3
FSETP.GEU.AND P0, PT, R1, R2, PT
FSETP.LT.AND P0, P1, |R1|, -R2, P2
FSETP.NE.OR P0, PT, R1, R2, P3
FSETP.NEU.AND P0, PT, R1, R2, PT
FSETP.NAN.AND P0, PT, R1, R1, PT
FSETP.NUM.AND P0, PT, R1, R2, PT
DSETP.GT.AND P0, P1, R2, R4, PT
DSETP.LEU.AND P0, PT, R2, -R4, PT
F2I.TRUNC.NTZ R0, R1
F2I.U32.TRUNC.NTZ R0, -R1
F2I.S8.TRUNC.NTZ R0, R1
F2I.U16.TRUNC.NTZ R0, R1
I2F R0, R1
I2F.U32 R0, R1
I2F.F64 R0, R2
F2F.F64.F32 R0, R2
F2F.F32.F64 R0, R2
F2FP.F16.F32.PACK_AB R0, R1, R2
HADD2.F32 R0, -RZ, R1.H1_H1
HADD2.F32 R0, -RZ, R1.H0_H0
HADD2.F32 R0, -R1.H0_H0, |R2|.H1_H1
MOV R0, R1
MOV R0, 0x12345678
MOV R0, UR5
S2R R0, SR_TID.X
S2R R0, SR_CTAID.X
S2R R0, SR_LANEID
LDC R0, c[0x0][0x8]
LDC.64 R0, c[0x0][0x10]
UMOV UR6, UR5
UIADD3 UR6, -UR4, 0x7, UR5
UIADD3.X UR6, UR4, UR5, URZ, UP0, !UPT
UIADD3.X UR6, UR4, ~UR5, URZ, UP1, !UPT
ULOP3.LUT UR6, UR4, 0xff, UR5, 0x96, !UPT
USHF.L.U32 UR6, UR4, 0x3, URZ
USHF.R.S32.HI UR6, URZ, 0x1f, UR4
ULEA UR6, UR4, UR5, 0x3
S2UR UR6, SR_CTAID.X
ULDC UR6, c[0x0][0x14]
ULDC.64 UR6, c[0x0][0x18]
""".strip().splitlines()

UNIFORM = ("U", "S2UR")     # they have no guard here

@pytest.mark.slow
@pytest.mark.parametrize("line", LINES)
def test_both_agree(line: str) -> None:
  inst, _ = parse(line, "sm_90")
  found = computation(inst, REGISTERS, len(CONSTANTS))
  assert found is not None and native(found.shape, False) is not None and native(found.shape, True) is not None
  for seed in range(4):
    for guard in ("", "@P5 ", "@!P6 "):
      if guard and line.startswith(UNIFORM): continue
      code = scheduled([f"{guard}{line}"])
      assert_same(code, seed, f"{guard}{line}", threads=32 if seed % 2 else 45, constants=CONSTANTS)

@pytest.mark.parametrize("line", ["IMAD.WIDE R2, R2, R3, R2", "IMAD.WIDE R2, R3, R2, R4", "DFMA R2, R4, R2, R2",
                                  "IADD3 R1, P0, R1, R1, RZ",
                                  "IADD3.X R1, P0, R1, R1, RZ, P0, !PT", "SEL R1, R1, R1, P0",
                                  "ISETP.LT.AND P0, P1, R1, R2, P0",
                                  "SHF.R.U64 R1, R1, R1, R1", "LOP3.LUT P0, R1, R1, R2, R1, 0x1d, P0"])
def test_results_may_overlap_operands(line: str) -> None:
  """All operands are read before anything is written."""
  for seed in range(6): assert_same(scheduled([line]), seed, line, threads=32 if seed % 2 else 40)

@pytest.mark.parametrize("line", [
  "MUFU.RCP R0, R1", "F2I.S64.TRUNC R0, R1", "I2F.S64 R0, R2", "LDC.U8 R0, c[0x0][0x8]", "LDC R0, c[0x0][0x40]",
  "LDC R0, c[0x0][R1]", "FADD.SAT R0, R1, R2", "MOV RZ, R1", "ISETP.LT.XOR P0, PT, R1, R2, P1",
  "UIADD3 UR6, UP1, UR4, 0x7, UR5", "IMAD.WIDE.U32 R0, P3, R2, R3, -R4", "F2FP.BF16.F32.PACK_AB R0, R1, R2",
  "HFMA2 R0, R1, R2, R3", "HADD2.BF16_V2 R0, R1, R2"])
def test_what_stays_python(line: str) -> None:
  found = computation(parse(line, "sm_90")[0], REGISTERS, len(CONSTANTS))
  assert found is None or native(found.shape, False) is None
