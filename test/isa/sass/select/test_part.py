"""Constants in instructions: as immediates, as the zero register, or in registers that a block shares."""
from __future__ import annotations

from tinyhw.isa.sass.select.part import Part
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.form import Generation
from tinyhw.machine.ir.inst import Function

def part() -> Part:
  made = Part(Generation("sm_90"), Function("k"))
  made.enter(made.function.new_block())
  return made

def names(made: Part) -> list[str]: return [inst.row.name for inst in made.block.insts]

def test_constants() -> None:
  made = part()
  x = made.new(regs.R[1])
  made.op(regs.R[1], "add32", x, 5)
  made.op(regs.R[1], "add32", 5, x)
  made.op(regs.R[1], "sub32", 5, x)
  assert names(made) == ["IADD3", "MOV", "IADD3", "IADD3"], ("an immediate is the second source; the first one is "
                                                             "made once")

def test_zero_is_a_register() -> None:
  made = part()
  made.op(regs.R[1], "add32", made.new(regs.R[1]), 0)
  assert regs.RZ in made.block.insts[0].operands and len(made.block.insts) == 1

def test_truths() -> None:
  made = part()
  x = made.new(regs.P)
  made.op(regs.P, "p_and", x, 1)
  made.op(regs.P, "p_and", x, 0)
  made.op(regs.P, "p_or", x, 0)
  assert len(made.block.insts) == 4 and regs.PT in made.block.insts[0].operands, "false is made once"

def test_halves() -> None:
  made = part()
  assert made.half(0x0000000700000009, "high") == 7 and made.half(0x0000000700000009, "low") == 9
  pair = made.new(regs.R[2])
  low, high = made.half(pair, "low"), made.half(pair, "high")
  assert (low.cls is high.cls is regs.R[1] and low is made.half(pair, "low") is not high
          and not made.block.insts), "no instruction"

def test_elements() -> None:
  made = part()
  group = made.new(regs.R[4])
  upper = made.part(regs.R[2], group, 2)
  assert made.part(regs.R[4], group, 0) is group and made.part(regs.R[1], upper,
                                                               1) is made.part(regs.R[1], group,
                                                                               3), "of the whole group"
  assert made.whole(group) is group and not made.block.insts
  copy = made.whole(upper)
  assert not isinstance(copy, regs.Element) and copy.cls is regs.R[2] and list(made.block.insts[0].reads()) == [group]
