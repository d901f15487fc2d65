"""Functions with labels, virtual registers in the text, and texts that no row takes, for AArch64's table."""
from __future__ import annotations

import pytest

from tinyhw.errors import DecodeError, ParseError
from tinyhw.isa.arm64.asm.syntax import assemble, assemble_function, disassemble, parse, parse_function
from tinyhw.isa.arm64.table import regs
from tinyhw.machine.assembler.reader import TextMismatch
from tinyhw.machine.assembler.syntax import merged, show
from tinyhw.machine.ir.inst import Block, MInst, Reg

def test_virtual_registers_and_blocks_print() -> None:
  assert show(MInst(parse("fmla v0.4s, v1.4s, v2.s[1]").row, [Reg(regs.V, 3), Reg(regs.V, 4), Reg(regs.V, 5), 1])) == (
    "fmla %3:v.4s, %4:v.4s, %5:v.s[1]")
  assert show(MInst(parse("cbz w0, #8").row, [Reg(regs.X, 3), Block(2, name="loop")])) == "cbz %3:x, #.loop2"

def test_labels() -> None:
  text = "mov w0, #0\n.loop:\n  add w0, w0, #1 ; count\n cmp w0, #10\n b.lo .loop\n b .out\n.out:\n ret\n"
  assert assemble_function(text) == b"".join(map(assemble, (
    "mov w0, #0", "add w0, w0, #1", "cmp w0, #10", "b.lo #-8", "b #4", "ret")))
  assert [block.name for block in parse_function(text).blocks] == ["", "loop", "out"]

@pytest.mark.parametrize("text,reason", [(".a:\nret\n.a:", "line 3: .a stands twice"),
                                         ("ret\nfoo", "line 2: no instruction is called foo"),
                                         ("add x0,", "line 1: add: operand 1 wants x0 to x30"),
                                         ("b .b", "no line is the label .b:")])
def test_errors_of_functions(text: str, reason: str) -> None:
  with pytest.raises(ParseError) as caught: parse_function(text)
  assert caught.value.message.startswith(reason)

def test_bytes_that_are_left() -> None:
  with pytest.raises(DecodeError, match="ret ends after 4 bytes; these are left: 00"):
    disassemble(assemble("ret") + b"\0")

def test_two_refusals_become_one() -> None:
  made = merged(TextMismatch("operand 2 wants x0, got v0", 3), TextMismatch("operand 2 wants a number, got v0", 3))
  assert made.message == "operand 2 wants x0 or a number, got v0"
