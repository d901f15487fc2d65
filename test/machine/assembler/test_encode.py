"""Functions with jumps, and operands that do not encode, for AArch64's table."""
from __future__ import annotations

import pytest

from tinyhw.errors import EncodeError
from tinyhw.isa.arm64.asm.syntax import decode, parse, parse_function
from tinyhw.isa.arm64.table import regs
from tinyhw.machine.assembler.encode import encode, encode_function
from tinyhw.machine.ir.inst import Block, Function, MInst, Reg

def test_jumps_in_a_function() -> None:
  function = parse_function(".again:\n cbz x0, .out\n add x1, x1, #1\n b .again\n.out:\n ret")
  code, places = encode_function(function)
  assert [offset for offset, _ in places] == [0, 4, 8, 12]
  assert decode(code)[0].operands[1] == 12 and decode(code, 8)[0].operands[0] == -8

def test_a_jump_that_does_not_reach() -> None:
  function = parse_function(".again:\n" + "nop\n" * 9000 + "tbz x0, #3, .again\nret")
  with pytest.raises(EncodeError, match=r"tbz .*: operand 3 wants a multiple of 4 in -32768..32764, got -36000"):
    encode_function(function)

@pytest.mark.parametrize("text,operands,reason", [
  ("add x0, x1, x2", [regs.reg(regs.X, 0), regs.reg(regs.X, 1)], "add: it has 5 operands, got 2"),
  ("add x0, x1, x2", [Reg(regs.X, 7), regs.reg(regs.X, 1), regs.reg(regs.X, 2), 0, 0],
   "add Xd=, Xn, Xm(, <shift:t> #<i>): operand 1 wants x0 to x30 or xzr, got %7:x; allocate registers first"),
  ("fmov v0.4s, #1.0", [regs.reg(regs.V, 0), 0.1], "a float +-n/16 * 2**e with n in 16..31 and e in -3..4"),
  ("and x0, x1, #1", [regs.reg(regs.X, 0), regs.reg(regs.X, 1), 5], "got 0x5; load it into a register first"),
  ("b #8", [Block(1)], "is a block; only encode_function knows where it is")])
def test_operands_that_do_not_encode(text: str, operands: list[object], reason: str) -> None:
  with pytest.raises(EncodeError) as caught: encode(MInst(parse(text).row, operands))
  assert reason in caught.value.message

def test_a_block_outside_of_the_function() -> None:
  function = Function("broken")
  function.new_block().insts.append(MInst(parse("b #8").row, [Function("other").new_block(name="far")]))
  with pytest.raises(EncodeError, match="b: block .far0 is not in the function"): encode_function(function)
