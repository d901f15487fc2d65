"""The notation of the table: kinds of operands, tokens, encodings."""
import pytest

from tinyhw.isa.x86.table import regs
from tinyhw.isa.x86.table.form import TableLine, Spec, Token, kind_of
from tinyhw.machine.ir.inst import Access

@pytest.mark.parametrize("text,size,length,expected", [
  ("rv", 64, 0, ("register", "r64", regs.R64, 0)), ("v", 0, 256, ("register", "y", regs.YMM, 0)),
  ("h", 0, 512, ("register", "y", regs.YMM, 0)),
  ("e", 0, 512, ("register", "x", regs.XMM, 0)), ("m", 0, 512, ("memory", "m512", None, 512)),
  ("mq", 0, 256, ("memory", "m64", None, 64)),
  ("b32", 0, 256, ("broadcast", "b256", None, 32)), ("vmh64", 0, 512, ("memory", "my", regs.YMM, 64)),
  ("iz", 64, 0, ("immediate", "i32", None, 32)),
  ("iz", 16, 0, ("immediate", "i16", None, 16)), ("cl", 0, 0, ("fixed", "cl", regs.R8, 0)),
  ("Dv", 64, 0, ("fixed", "rdx", regs.R64, 0))])
def test_kinds(text: str, size: int, length: int, expected: tuple[object, ...]) -> None:
  kind = kind_of(text, size, length)
  assert (kind.category, kind.key, kind.cls, kind.bits) == expected

def test_broadcast_counts_the_lanes_it_fills() -> None:
  assert kind_of("b32", 0, 512).lanes == 16 and kind_of("bh32", 0, 512).lanes == 8

def test_displacement_units() -> None:
  assert [kind_of(t, 0, 512).unit for t in ("m", "mh", "b64", "m:4", "m128", "vmv32")] == [64, 32, 8, 4, 16, 4]

def test_tokens() -> None:
  token = Token("v/m/b32={kz}")
  assert (token.kinds, token.access, token.mask, token.hidden, token.memory) == (["v", "m", "b32"], Access.WRITE, "kz",
                                                                                 False, True)
  assert Token("(rax+)").hidden and Token("(rax+)").access == Access.BOTH and Token("(rcx!)").access == 0

def test_encodings() -> None:
  spec = Spec("EVEX.256/512.66.0F38.W1 16 /r ib")
  assert (spec.space, spec.lengths, spec.pp, spec.map, spec.w, spec.opcode, spec.digit,
          spec.imm) == ("evex", (256, 512), 1, 2, "1", 0x16, -1, "ib")
  spec = Spec("F0 83 /5 ib")
  assert (spec.space, spec.lock, spec.opcode, spec.digit) == ("legacy", True, 0x83, 5)
  assert Spec("66 B8+r iw").operand16 and Spec("66 B8+r iw").plus
  assert Spec("0F AE F0").suffix == b"\xf0" and Spec("90+r OA").letters == "OA"

def test_lines() -> None:
  line = TableLine("avx/avx512f  vfoo  VEX.0F.WIG 58 /r | EVEX.0F.W0 58 /r   v={kz} v v/m/b32   fp_add wf commutes:01 "
                   "@fma/avx512dq")
  assert (line.mnemonic, line.pipe, line.mask, line.commutes) == ("vfoo", "fp_add", "kz", (0, 1))
  assert (line.vex_feature, line.evex_feature) == ("fma", "avx512dq")
