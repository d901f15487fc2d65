"""Jumps before and after their distance is known."""
from tinyhw.isa.sass.asm.syntax import show
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.branch import JUMP_IF, invert, jump, real
from tinyhw.isa.sass.table.table import table
from tinyhw.machine.ir.inst import Block, MInst

def test_the_opposite() -> None:
  inst = MInst(JUMP_IF, [Block(1), regs.reg(regs.P, 3), 0], None, ([],))
  inverse = invert(inst)
  assert inverse is not None and inverse.operands[2] == 1 and invert(inverse) == inst and invert(jump(Block(1))) is None

def test_text() -> None:
  rows, inst = table("sm_90"), MInst(JUMP_IF, [Block(1), regs.reg(regs.P, 3), 1], None, ([],))
  assert show(real(inst, 0x20, rows), pc=0x100) == "@!P3 BRA 0x130" and show(real(jump(Block(1)), -0x20, rows),
                                                                             pc=0x100) == "BRA 0xf0"
