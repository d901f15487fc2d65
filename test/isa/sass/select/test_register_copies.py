"""Copies, spills and reloads of large groups of registers."""
from __future__ import annotations
import pytest

from tinyhw.isa.sass.asm.syntax import show
from tinyhw.isa.sass.macros.macros import instructions
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.target import Moves
from tinyhw.machine.ir.inst import MInst

MOVES = Moves("sm_90", 200)
SUMS, BEHIND = regs.reg(regs.R[32], 16), regs.reg(regs.R[32], 24)

def texts(inst: MInst) -> list[str]: return [show(one) for one in instructions(inst)]

def test_a_group_is_kept_and_comes_back_in_pieces() -> None:
  assert texts(MOVES.spill(SUMS, 256)) == [f"STL.128 [R200+-{384 - 16 * k:#x}], R{16 + 4 * k}" for k in range(8)]
  assert texts(MOVES.reload(SUMS, 256)) == [f"LDL.128 R{16 + 4 * k}, [R200+-{384 - 16 * k:#x}]" for k in range(8)]

@pytest.mark.parametrize("to, source", [(SUMS, BEHIND), (BEHIND, SUMS)])
def test_groups_that_overlap_are_copied_without_loss(to: regs.Reg, source: regs.Reg) -> None:
  content = {index: index for index in range(64)}
  for inst in instructions(MOVES.move(to, source)):
    goal, at = (r.index or 0 for r in (inst.operands[0], next(r for r in inst.operands[1:] if isinstance(r, regs.Reg))))
    content[goal] = content[at]
  assert [content[(to.index or 0) + k] for k in range(32)] == [(source.index or 0) + k for k in range(32)]
