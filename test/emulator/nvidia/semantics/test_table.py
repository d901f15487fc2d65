"""Semantics that depend on modifiers and constants: truth tables as expressions, omitted parts, uniform instructions;
each instruction has one description."""
import pytest

from tinyhw.emulator.errors import UnknownInstruction
from tinyhw.emulator.notation import parse
from tinyhw.emulator.nvidia.execute.decoded import FUNCTIONS
from tinyhw.emulator.nvidia.semantics.integer import logic
from tinyhw.emulator.nvidia.semantics.table import SEMANTICS, semantics_of
from tinyhw.emulator.nvidia.warp.operands import Operands
from tinyhw.isa.sass.asm import syntax

def semantics(line: str) -> str:
  inst, _ = syntax.parse(line, "sm_90")
  return semantics_of(Operands(inst))

def test_each_instruction_has_one_description() -> None:
  """LDC has two forms: with a register in the address it is a load, without one it has semantics."""
  assert SEMANTICS.keys() & FUNCTIONS.keys() == {"LDC"}

@pytest.mark.slow
def test_truth_tables() -> None:
  a, b, c = 0xf0, 0xcc, 0xaa
  for lut in range(256):
    text = logic(lut, "a", "b", "c")
    assert eval(text, {"a": a, "b": b, "c": c, "u32": int}) & 0xff == lut, text
    parse(f"D.u32 = {logic(lut, 'A.u32', 'B.u32', 'C.u32')}")

@pytest.mark.parametrize("line,expected", [
  ("IADD3 R0, R1, -R2, RZ", "D.u32 = A.u32 + (-B.u32) + C.u32"),
  ("IADD3 R0, P0, R1, R2, RZ", "t = u64(A.u32) + u64(B.u32); PU.bool = t >= 4294967296; D.u32 = t"),
  ("IMAD R0, R1, R2, RZ", "D.u32 = A.u32 * B.u32"),
  ("ISETP.LT.AND P0, PT, R1, R2, PT", "t = (A.i32 < B.i32); PU.bool = t"),
  ("ISETP.GE.U32.OR P0, P1, R1, R2, !P3", "t = (A.u32 >= B.u32); PU.bool = (t or (not PP.bool)); PV.bool = ((not t) "
   "or (not PP.bool))"),
  ("SEL R0, R1, R2, PT", "D.u32 = A.u32"), ("VIMNMX.U32 R0, R1, R2, !PT", "D.u32 = most(A.u32, B.u32)"),
  ("PRMT R0, R1, 0x7610, R2", "D.u32 = A.u32[15:0] | (C.u32[31:16] << 16)"),
  ("SHF.R.S32.HI R0, RZ, 0x1f, R2", "D.u32 = u32(C.i32 >> 31)"),
  ("LDC.64 R0, c[0x0][0x8]", "D.u64 = W.u64"), ("LDC.S8 R0, c[0x3][0x7]", "D.i32 = i32(W.i8)"),
  ("LDC R0, c[0x0][R1]", ""),
  ("F2I.S8.TRUNC R0, R1", "D.i32 = i32(i8(B.f32))"),
  ("ISETP.LT.XOR P0, PT, R1, R2, P3", "t = (A.i32 < B.i32); PU.bool = (t != PP.bool)"),
  ("F2FP.BF16.F32.PACK_AB R0, R1, R2", "D.u32 = raw_bf16(bf16(A.f32)) << 16 | raw_bf16(bf16(B.f32))"),
  ("UIADD3 UR0, UR1, -UR2, URZ", "D.u32 = A.u32 + (-B.u32) + C.u32"),
  ("USHF.L.U32 UR0, UR1, 0x3, URZ", "D.u32 = A.u32 << 3"),
  ("S2UR UR0, SR_CTAID.X", "D.u32 = BLOCK.u32")])
def test_semantics_are_made_from_instructions(line: str, expected: str) -> None:
  assert semantics(line) == expected
  parse(expected)

@pytest.mark.parametrize("line, words", [
  ("S2R R0, SR_CLOCKLO", "special register SR_CLOCKLO"), ("S2UR UR0, SR_TID.X", "special register SR_TID.X"),
  ("PRMT.F4E R0, R1, 0x1, R2", "PRMT.F4E"), ("F2I R0, R1", "without TRUNC"), ("MUFU.SIN R0, R1", "MUFU.SIN"),
  ("ULEA UR0, UP0, UR1, UR2, 0x3", "with a carry")])
def test_what_is_not_supported_is_refused(line: str, words: str) -> None:
  with pytest.raises(UnknownInstruction, match=words): semantics(line)
