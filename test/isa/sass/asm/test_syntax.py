"""Assembly text, against a golden file of NVIDIA's assembler and disassembler."""
from __future__ import annotations
import contextlib
import gc
import random
import weakref

from hypothesis import given, strategies as st
import pytest

from nvidia.golden import vectors
from nvidia.random import random_control, random_instruction
from tinyhw.errors import ParseError, TinyError
from tinyhw.isa.sass.asm import syntax
from tinyhw.isa.sass.asm.decode import decode
from tinyhw.isa.sass.asm.encode import encode
from tinyhw.isa.sass.asm.syntax import assemble, disassemble, parse, plain, show
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.control import Control
from tinyhw.isa.sass.table.form import GENERATIONS
from tinyhw.isa.sass.table.table import build, table

@pytest.mark.slow
def test_text_is_that_of_the_disassembler() -> None:
  wrong = [(v.arch, v.text, text) for v in vectors() if not v.same(text := show(*decode(v.code, 0, v.arch), v.pc))]
  assert not wrong, f"{len(wrong)} differ: {wrong[:3]}"

@pytest.mark.slow
def test_text_gives_the_bytes_again() -> None:
  wrong = []
  for v in vectors():
    inst, control = decode(v.code, 0, v.arch)
    text = f"{control} {show(inst, control, v.pc)}"
    if encode(*parse(text, v.arch, v.pc)) != v.code: wrong.append((v.arch, text))
  assert not wrong, f"{len(wrong)} differ: {wrong[:3]}"

@pytest.mark.slow
def test_the_text_of_the_disassembler_is_understood() -> None:
  """The text has no control word, but the descriptor that the disassembler leaves out."""
  wrong = []
  for v in vectors():
    inst, control = decode(v.code, 0, v.arch)
    if v.text != show(inst, control, v.pc): continue  # sm_8x: the text is incomplete
    if parse(v.text, v.arch, v.pc)[0] != inst: wrong.append((v.arch, v.text))
  assert not wrong, f"{len(wrong)} differ: {wrong[:3]}"

KEYS = [(arch, key) for arch in GENERATIONS for key in table(arch).lines]

@pytest.mark.slow
@given(st.sampled_from(KEYS), st.integers(0, 1 << 32))
def test_parse_inverts_show(key: tuple[str, str], seed: int) -> None:
  rng, row = random.Random(seed), table(key[0])[key[1]]
  inst, control = random_instruction(row, rng), random_control(row, rng)
  assert parse(f"{control} {show(inst, control, 0x400)}", key[0], 0x400) == (inst, control)

def test_rows_that_do_not_fit_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
  """The first tried row is that of the text. Lines differ in the position of immediates, in words of their own, in
  banks and in descriptors."""
  tried: list[str] = []
  fill = syntax.fill
  monkeypatch.setattr(syntax, "fill", lambda row, *rest: (tried.append(row.isa.key), fill(row, *rest))[1])
  texts = {"IADD3 R0, R1, 0x10, RZ": "IADD3/810", "IADD3 R0, R1, R2, R3": "IADD3/210",
           "IADD3.X R0, R1, 0x10, RZ, P0, !PT": "IADD3.X/810",
           "SHF.R.S32.HI R0, RZ, 0x4, R1": "SHF/819", "IMAD R0, R1, R2, 0x5": "IMAD/424",
           "IMAD.WIDE R0, R2, 0x4, R4": "IMAD.WIDE/825",
           "LOP3.LUT R0, R1, 0xf, RZ, 0xc0, !PT": "LOP3.LUT/812", "MOV R0, 0x5": "MOV/802", "MOV R0, UR4": "MOV/c02",
           "FFMA R0, R1, R2, 1.5": "FFMA/423", "STG.E [R0+0x10], R2": "STG.plain/386",
           "STG.E desc[UR4][R0.64], R2": "STG/986",
           "DEPBAR.LE SB0, 0x1": "DEPBAR.LE/91a"}
  for text, key in texts.items():
    tried.clear()
    parse(text, "sm_90")
    assert tried == [key], text

def test_errors_of_forms_that_do_not_fit_keep_nothing_alive() -> None:
  """An error keeps its frames. If a frame keeps the error, the cycle keeps all variables of the callers: selection, a
  whole function."""
  class Known: pass
  def known_by_a_caller() -> weakref.ref[Known]:
    known = Known()
    for text in ("IADD3 R0, R1, R2, RZ", "IADD3 R0, R1, 0x5, 0x6"):  # optional predicates are tried; no form fits
      with contextlib.suppress(ParseError): parse(text, "sm_90")
    return weakref.ref(known)
  known_by_a_caller()
  gc.disable()
  try: assert known_by_a_caller()() is None
  finally: gc.enable()

def test_control_words_and_guards() -> None:
  text = "[B0-2---:R3:W1:Y:S04] @!P2 FFMA.FTZ R7, -R0.reuse, |R2|, 1.5"
  code = assemble(text, "sm_90")
  assert disassemble(code, "sm_90") == text
  assert plain(code, "sm_90") == "@!P2 FFMA.FTZ R7, -R0.reuse, |R2|, 1.5"
  inst, control = parse(text, "sm_90")
  assert control == Control(stall=4, yields=True, write=1, read=3, wait=5, reuse=1)
  assert inst == build(table("sm_90")["FFMA/423"], regs.reg(regs.R[1], 7), regs.reg(regs.R[1], 0),
                       regs.reg(regs.R[1], 2), 0x3fc00000, fmz="FTZ",
                       a_neg=1, b_abs=1, guard=regs.reg(regs.P, 2), guard_not=1)

@pytest.mark.parametrize("arch,text,why", [
  ("sm_90", "FFMA R1, R2, R3, R4, R5", "FFMA takes 4 operands, got 5"),
  ("sm_90", "HMMA.16816.F32.FOO R0, R4, R8, R12", "HMMA with these operands takes .16816, .F32, .BF16, got "
   ".16816.F32.FOO"),
  ("sm_90", "HMMA R0, R4, R8, R12", "HMMA with these operands takes .16816, .F16, and the text has none"),
  ("sm_90", "BRA 0x3", "operand t is an address, a multiple of 4, got 0x3"),
  ("sm_90", "FADDX R0, R1", "sm_90 has no instruction FADDX; did you mean FADD?"),
  ("sm_90", "FADD R0, R1", "FADD takes 3 operands, got 2"),
  ("sm_90", "MOV R0,", "operand 2 is missing: nothing stands after a comma"),
  ("sm_90", "NOP ,", "operand 1 is missing"),
  ("sm_90", "MOV R0, 0x\u0663", "'\u0663' (U+0663) is not ASCII"),
  ("sm_90", "FADD.WIDE R0, R1, R2", "takes .FTZ, .RM|RP|RZ, .SAT, got .WIDE"),
  ("sm_90", "FADD R0, R1, ~R2", "operand b wants a R register, got ~R2"),
  ("sm_90", "FADD R0, R1, R256", "sm_90 has no register R256"),
  ("sm_90", "DADD R1, R2, R4", "starts at a multiple of 2, got R1"),
  ("sm_90", "LDG.E.128 R2, desc[UR4][R4.64]", "operand d: a group of 4 R registers starts at a multiple of 4, got R2"),
  ("sm_90", "LDG.E R2, [R4.64]", "desc[..][..] is expected, got [R4.64]"),
  ("sm_90", "LDG.E R2, desc[UR4][R4.64+0x800000]", "operand o must be in -8388608..8388607, got 8388608"),
  ("sm_100", "IADD3 R0, PT, PT, R1, c[0x0][0x160], RZ", "got c[0x0][0x160]"),
  ("sm_90", "@UP0 FADD R0, R1, R2", "the guard of FADD is a P register, got UP0"),
  ("sm_90", "S2R R0, SR_NOTHING", "sm_90 has no special register SR_NOTHING"),
  ("sm_90", "BAR.SYNC.DEFER_BLOCKING R1, R2", "R2 must be the operand before it"),
  ("sm_90", "MOV R1, 0x123456789", "operand b: 0x123456789 has more than the 32 bits of an immediate"),
  ("sm_90", "IADD3 R1, R2, -0x80000001, R3", "operand b: -0x80000001 has more than the 32 bits of an immediate"),
  ("sm_90", "BRA nowhere", "operand t is an address, got nowhere; labels are known to `python3 -m tinyhw emulate`"),
  ("sm_90", "@P9 NOP", "a guard is @P0 to @P6, @PT, @UP0 to @UP6 or @UPT, or with !, as in @!P0; got @P9"),
  ("sm_90", "@P0", "an instruction is expected"),
  ("sm_90", "[B0] NOP", "a control word looks like"),
  ("sm_90", "[B------:R-:W-:Y:S15] NOP", "stall 15 does not go with yields"),
  ("sm_80", "VIADD R0, R1, 0x4", "sm_80 has no instruction VIADD"),
  ("sm_70", "NOP", "no NVIDIA architecture is called sm_70; there is sm_80"),
])
def test_refusals(arch: str, text: str, why: str) -> None:
  with pytest.raises(TinyError) as caught: assemble(text, arch)
  assert why in caught.value.message

def test_more_bytes_than_an_instruction_has() -> None:
  with pytest.raises(TinyError, match="an instruction has 16 bytes, got 17"): plain(bytes(17), "sm_90")
  with pytest.raises(ParseError, match="an instruction is expected"): parse("", "sm_90")
