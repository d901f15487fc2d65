"""The text of operands."""
from __future__ import annotations

import pytest

from tinyhw.errors import ParseError
from tinyhw.isa.sass.asm.operands import split_operands
from tinyhw.isa.sass.asm.syntax import assemble, plain

def test_split() -> None:
  assert split_operands("R0, desc[UR4][R2.64+0x10], {5,4}, +INF ") == ["R0", "desc[UR4][R2.64+0x10]", "{5,4}", "+INF"]
  assert split_operands(" ") == []

@pytest.mark.parametrize("arch,text", [
  ("sm_90", "LDS R0, [RZ]"), ("sm_90", "LDS R0, [0x10]"), ("sm_90", "LDS R0, [R4.X16+-0x8]"),
  ("sm_90", "LDS R0, [R4+UR5+0x10]"),
  ("sm_90", "LDC R0, c[0x3][R2+0x28]"), ("sm_90", "LDC R0, c[0x0][0x210]"), ("sm_80", "FADD R0, -R1, |R2|.reuse"),
  ("sm_80", "FFMA R0, R1, -|c[0x0][0x160]|, R3"), ("sm_90", "HADD2 R0, -|R1|.H0_H0, R2.H1_H1"),
  ("sm_90", "DEPBAR {5,4,0}"),
  ("sm_90", "HGMMA.64x64x16.F32 R24, gdesc[UR8].negA.negB, R24, gsb0"), ("sm_90", "IADD3 R0, PT, P1, R2, R3, R4"),
  ("sm_80", "IADD3.X R9, R9, ~c[0x0][0x1c], RZ, P1, !PT"), ("sm_90", "RET.REL.NODEC R2 0x0"),
  ("sm_90", "UP2UR.B3 UR62, UPR, UR62, 0xff"),
])
def test_text_that_is_its_own(arch: str, text: str) -> None:
  assert plain(assemble(text, arch), arch) == text

@pytest.mark.parametrize("text,why", [
  ("LDS R0, R4", "[..] is expected, got R4"), ("LDS R0, [P0]", "operand a wants a R register, got P0"),
  ("LDS R0.reuse, [R4]", "cannot stay in the reuse cache"),
  ("FADD R0, |R1, R2", "| is expected after"), ("PRMT R0, R1.H0_H0, R2, R3", ".H0_H0 is unexpected in R1.H0_H0"),
  ("DEPBAR 5", "scoreboards are written"),
  ("DEPBAR.LE 0, 0x1", "is written SB0"), ("RET.REL.NODEC R2", "2 words are expected, got R2"),
  ("UR2UP UPX, UR62.B3", "UPR is expected, got UPX"),
  ("S2UR UR70, SR_TID.X", "sm_90 has no UR70 here"), ("SHF.L.U32 R0, R1, x, R2", "wants a R register, got x"),
  ("BSSY P0, 0x10", "wants a B register"),
])
def test_refusals(text: str, why: str) -> None:
  with pytest.raises(ParseError) as caught: assemble(text, "sm_90")
  assert why in caught.value.message
