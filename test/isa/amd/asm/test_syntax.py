"""Assembly text, against golden files of other assemblers."""
from __future__ import annotations
import random

from hypothesis import given, settings, strategies as st
import pytest

from amd.golden import ARCHS, vectors
from amd.random import random_instruction
from tinyhw.errors import ParseError, TinyError
from tinyhw.isa.amd.asm.syntax import assemble, disassemble, parse, show
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.table import build, table
from tinyhw.machine.ir.inst import Function, MInst

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_bytes_are_those_of_other_assemblers(arch: str) -> None:
  wrong = [(v.text, assemble(v.text, v.arch).hex(), v.right) for v in vectors(arch, ";")
           if assemble(v.text, v.arch).hex() != v.right]
  assert not wrong, f"{len(wrong)} differ: {wrong[:3]}"

@pytest.mark.slow
def test_gfx1201_has_the_bytes_of_gfx1200() -> None:
  """test_oracle.py checks that other assemblers agree."""
  for v in vectors("gfx1200", ";"):
    arch = v.arch.replace("gfx1200", "gfx1201")
    assert assemble(v.text, arch).hex() == v.right and assemble(disassemble(bytes.fromhex(v.right), arch),
                                                                arch).hex() == v.right, v.text

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_text_of_their_bytes_gives_the_bytes_again(arch: str) -> None:
  wrong = []
  for v in vectors(arch, ";"):
    text = disassemble(bytes.fromhex(v.right), v.arch)
    if assemble(text, v.arch).hex() != v.right: wrong.append((v.text, text))
  assert not wrong, f"{len(wrong)} differ: {wrong[:3]}"

@pytest.mark.parametrize("arch", ARCHS)
def test_refusals(arch: str) -> None:
  for v in vectors(arch, "!"):
    with pytest.raises(TinyError) as caught: assemble(v.text, v.arch)
    assert caught.value.message == v.right, v.text

KEYS = [(arch, row.isa.key) for arch in ("gfx942", "gfx950", "gfx1100", "gfx1200", "gfx1100:wave64", "gfx1200:wave64")
        for row in table(arch)]

@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(st.sampled_from(KEYS), st.integers(0, 1 << 32))
def test_parse_inverts_show(key: tuple[str, str], seed: int) -> None:
  inst = random_instruction(table(key[0])[key[1]], random.Random(seed))
  assert parse(show(inst), key[0]) == inst

@pytest.mark.parametrize("arch,text,same", [
  ("gfx1100", "v_add_f32 v0, 1.0, v2", "v_add_f32_e32 v0, 1.0, v2"),
  ("gfx1100", "v_add_f32 v0, 0x3f800000, v2", "v_add_f32_e32 v0, 1.0, v2"),
  ("gfx1100", "v_add_f32 v0, -1.5, v2", "v_add_f32_e32 v0, 0xbfc00000, v2"),
  ("gfx1100", "v_add_f16 v0, 1.5, v2", "v_add_f16_e32 v0, 0x3e00, v2"),
  ("gfx1100", "v_add_f64 v[0:1], v[2:3], 1.5", "v_add_f64 v[0:1], v[2:3], 0x3ff80000"),
  ("gfx1100", "v_add_f32 v0, neg(v1), abs(v2)", "v_add_f32_e64 v0, -v1, |v2|"),
  ("gfx1100", "v_add_f32 v0, neg(1.0), v2", "v_add_f32_e64 v0, neg(1.0), v2"),
  ("gfx1100", "s_and_b64 vcc, exec, -1", "s_and_b64 vcc, exec, -1"),
  ("gfx1100", "s_waitcnt vmcnt(0) & lgkmcnt(0)", "s_waitcnt vmcnt(0) lgkmcnt(0)"),
  ("gfx1100", "s_mov_b32 s0, scc", "s_mov_b32 s0, src_scc"),
  # the name that other assemblers have for it
  ("gfx1100", "global_load_dword v0, v[1:2], off", "global_load_b32 v0, v[1:2], off"),
  ("gfx942", "global_load_b32 v0, v[2:3], off", "global_load_dword v0, v[2:3], off"),
  ("gfx1100", "buffer_load_b32 v1, off, s[4:7], 0 glc offset:8", "buffer_load_b32 v1, off, s[4:7], 0 offset:8 glc"),
  ("gfx1100", "buffer_atomic_add_u32 v1, off, s[4:7], 0 glc", "buffer_atomic_add_u32 v1, off, s[4:7], 0 glc"),
  ("gfx1100", "v_mov_b16 v1.h, v2.l", "v_mov_b16_e32 v1.h, v2.l"),
  ("gfx942", "ds_swizzle_b32 v0, v1 offset:swizzle(SWAP,16)", "ds_swizzle_b32 v0, v1 offset:16415"),
  ("gfx1200", "s_load_b32 s0, s[2:3], s4 offset:0x10", "s_load_b32 s0, s[2:3], s4 offset:0x10"),
])
def test_other_ways_to_write_it(arch: str, text: str, same: str) -> None:
  assert show(parse(text, arch)) == same
  assert parse(same, arch) == parse(text, arch)

@pytest.mark.parametrize("text,message", [
  ("", "an instruction is expected"),
  ("v_ad_f32 v0, v1, v2", "gfx1100 has no instruction v_ad_f32"),
  ("v_add_f32 v0, v1", "v_add_f32 takes 3 operands (vdst, src0, src1), got 2; src1 is missing"),
  ("v_add_f32 v0, v1, v300", "v300: gfx1100 has no such register"),
  ("v_add_f32 v0, v1, s106", "s106: gfx1100 has no such register"),
  ("s_mov_b64 s[1:2], 0", "s[1:2]: a group of 2 s registers starts at a multiple of 2 on gfx1100"),
  ("v_add_f32 v0, v1, sext(v2)", "operand src1 of v_add_f32 takes no sext, got sext(v2)"),
  ("v_add_f32 v0, v1, foo", "operand src1 wants a vector register, a scalar register, an inline constant or a "
   "literal, got foo"),
  ("v_add_f32 v0, v1, v2 foo", "foo is no modifier"),
  ("v_add_f32 v0, v1, v2 glc", "v_add_f32 has no modifier glc; it has neg, abs, clamp, omod"),
  ("v_add_nc_u16 v0, 1.0, v1", "operand src0 is u16: write 1.0 as an integer"),
  ("v_add_f16 v0, 1e9, v1", "operand src0: 1e9 does not fit f16"),
  ("v_mov_b32_dpp v0, v1 quad_perm:[0,1,2,4]", "quad_perm must be four lanes in 0..3, got [0,1,2,4]"),
  ("v_mov_b32_dpp v0, v1 row_shl:16", "row_shl must be in 1..15, got 16"),
  ("v_mov_b32_dpp v0, v1 dpp8:[0,1]", "dpp8 must be eight lanes in 0..7, got [0,1]"),
  ("global_atomic_add_u32 v0, v[2:3], v1, off", "global_atomic_add_u32 takes 3 operands (vaddr, vdata, saddr), got 4"),
  ("s_waitcnt foo(0)", "gfx1100 has no foo; it has vmcnt, lgkmcnt or expcnt"),
  ("v_mov_b32 v0,", "operand 2 is missing: nothing stands after a comma"),
  ("s_nop ,", "operand 1 is missing: nothing stands before a comma"),
  ("s_load_b32 s0, s[0:1], ", "operand 3 is missing: nothing stands after a comma"),
  ("v_mov_b32 v0, v\u0663", "'\u0663' (U+0663) is not ASCII, in which instructions are written"),
  ("s_waitcnt", "s_waitcnt takes 1 operand (simm16), got 0; simm16 is missing"),
  ("v_mov_b32", "v_mov_b32 takes 2 operands (vdst, src0), got 0; vdst and src0 are missing"),
  ("s_waitcnt now", "now is neither a number nor parts like vmcnt(0)"),
  ("s_delay_alu instid0(VALU_DEP_9)", "instid0 must be NO_DEP, VALU_DEP_1, VALU_DEP_2, VALU_DEP_3, VALU_DEP_4, "
   "TRANS32_DEP_1, TRANS32_DEP_2, "
   "TRANS32_DEP_3, FMA_ACCUM_CYCLE_1, SALU_CYCLE_1, SALU_CYCLE_2 or SALU_CYCLE_3, got VALU_DEP_9"),
  ("s_getreg_b32 s0, hwreg(HW_REG_MODE, 30, 40)", "hwreg: 1 to 32 bits from one in 0..31 are expected, got 40 from 30"),
])
def test_what_is_wrong_is_said(text: str, message: str) -> None:
  with pytest.raises(TinyError) as caught: parse(text, "gfx1100")
  assert caught.value.message == message

def test_a_refused_line_is_a_parse_error() -> None:
  with pytest.raises(ParseError): parse("v_add_f32 v0", "gfx1100")

def test_virtual_registers_print() -> None:
  function = Function("f")
  a, b = function.new_reg(regs.V[1]), function.new_reg(regs.V[1])
  assert (show(MInst(table("gfx1100")["v_add_f32"], build(table("gfx1100")["v_add_f32"], a, b, 0x3f800000).operands))
          == "v_add_f32 %0:v1, %1:v1, 1.0")
