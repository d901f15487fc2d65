"""Intel syntax: parse inverts show; alternative spellings; functions with labels."""
from __future__ import annotations
import random

import pytest
from hypothesis import given, settings, strategies as st

from tinyhw.errors import ParseError
from tinyhw.isa.x86.asm.syntax import assemble, assemble_function, disassemble, parse, parse_function, show
from tinyhw.isa.x86.table import regs
from tinyhw.isa.x86.table.table import TABLE
from tinyhw.machine.ir.inst import Block, MInst, Reg
from x86.random import random_instruction

@pytest.mark.slow
@given(st.sampled_from(sorted(TABLE.mnemonics())), st.integers(0, 1 << 32))
@settings(derandomize=True, deadline=None, max_examples=200)
def test_parse_inverts_show(mnemonic: str, seed: int) -> None:
  rng = random.Random(seed)
  for row in TABLE.rows(mnemonic):
    inst = random_instruction(row, rng)
    assert parse(show(inst)) == inst

@pytest.mark.parametrize("text,same", [
  ("VADDPS YMM0,YMM1,YMMWORD PTR [RAX+RCX*4+0x10]", "vaddps ymm0, ymm1, ymmword ptr [rax + 4*rcx + 16]"),
  ("vaddps ymm0, ymm1, [0x10 + rcx*4 + rax]", "vaddps ymm0, ymm1, ymmword ptr [rax + 4*rcx + 16]"),
  ("vaddps zmm0{k1}{z},zmm1,[rax]{1to16}", "vaddps zmm0 {k1} {z}, zmm1, dword ptr [rax]{1to16}"),
  ("mov eax, [rax + rsp]", "mov eax, dword ptr [rsp + rax]"),
  ("mov eax, [rax - 8 + 4]", "mov eax, dword ptr [rax - 4]"),
  ("mov rax, 0x123456789", "movabs rax, 4886718345"), ("mov eax, 0xffffffff", "mov eax, -1"), ("shl eax", "shl eax, 1"),
  ("sal eax, 2", "shl eax, 2"),
  ("jz .+2", "je .+2"), ("setnz al", "setne al"), ("cmovc eax, ecx", "cmovb eax, ecx"),
  ("vcmpltps k1, zmm0, zmm1", "vcmpps k1, zmm0, zmm1, 1"),
  ("vcmpneq_oqpd ymm0, ymm1, ymm2", "vcmppd ymm0, ymm1, ymm2, 12"),
  ("vpcmpleud k1, zmm0, zmm1", "vpcmpud k1, zmm0, zmm1, 2"),
  ("lea rax, dword ptr [rax]", "lea rax, [rax]"),
  ("rep movsb byte ptr es:[rdi], byte ptr [rsi]", "rep movsb"), ("mov byte ptr ds:[rax], 1", "mov byte ptr [rax], 1"),
  ("vgatherdps ymm0, [rax + ymm2], ymm3", "vgatherdps ymm0, ymmword ptr [rax + ymm2], ymm3"),
  ("mov eax, [0xffffffffffffff00]", "mov eax, dword ptr [-256]"),
  ("lock\tadd dword ptr [rax], 1", "lock add dword ptr [rax], 1")])
def test_other_ways_to_write(text: str, same: str) -> None:
  assert show(parse(text)) == same

@pytest.mark.parametrize("text,code", [("jmp .+2", "eb 00"), ("jmp .", "eb fe"), ("jne .-126", "75 80"),
                                       ("jmp .+130", "e9 7d 00 00 00"),
                                       ("jne .-127", "0f 85 7b ff ff ff"), ("call .+5", "e8 00 00 00 00")])
def test_jumps_count_from_their_start(text: str, code: str) -> None:
  assert assemble(text) == bytes.fromhex(code)
  assert parse(disassemble(bytes.fromhex(code))) == parse(text)

def test_virtual_registers_and_blocks_print() -> None:
  assert show(MInst(TABLE["add_r64_r64"], [Reg(regs.R64, 3), Reg(regs.R64, 4)])) == "add %3:r64, %4:r64"
  assert show(MInst(TABLE["jne_rel"], [Block(2, name="loop")])) == "jne .loop2"
  inst = MInst(TABLE["vmovss_x_m"], [regs.reg(regs.XMM, 0), regs.RIP, None, 1, b"\0\0\x80\x3f"])
  assert show(inst) == "vmovss xmm0, dword ptr [rip + constant 0x3f800000]"

def test_labels() -> None:
  text = "xor eax, eax\n.loop:  \n  add eax, 1 ; count\n cmp eax, 10\n jb .loop\n jmp .out\n.out:\n ret\n"
  assert assemble_function(text) == bytes.fromhex("31c0 83c001 83f80a 72f8 c3")
  assert [block.name for block in parse_function(text).blocks] == ["", "loop", "out"]

@pytest.mark.parametrize("text,reason", [(".a:\nret\n.a:", "line 3: .a stands twice"),
                                         ("ret\nfoo", "line 2: no instruction is called foo"),
                                         ("mov rax,", "line 1: operand 2 is missing: nothing stands after a comma"),
                                         ("jmp .b", "no line is the label .b:")])
def test_errors_of_functions(text: str, reason: str) -> None:
  with pytest.raises(ParseError) as caught: parse_function(text)
  assert caught.value.message == reason
