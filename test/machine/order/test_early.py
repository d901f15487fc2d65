"""Early results: conflicts with sources, and refusal of final code."""
from __future__ import annotations

import pytest
from generators.invented import cisc, lanes, matmul_loop

from tinyhw.config import Context
from tinyhw.errors import AllocationError
from tinyhw.machine.ir.inst import Access, Bank, Block, Function, Inst, MInst, Operand, Reg, RegClass
from tinyhw.machine.ir.target import Target
from tinyhw.machine.order.early import check_early, meets, overwritten
from tinyhw.machine.passes import run

BANK, OTHER = Bank("a", 16, tuple(range(16))), Bank("b", 16, tuple(range(16)))
ONE, PAIR, ELSE = RegClass("a", BANK, 32, naming="a{}".format), RegClass("pair", BANK, 64, 2,
                                                                         naming="p{}".format), RegClass("b", OTHER, 32)

def wide(tie: int | None = None, early: bool = True) -> Inst:
  return Inst("wide", None, (Operand("d", Access.WRITE, PAIR, tie=tie, early=early), Operand("x", Access.READ, ONE),
                             Operand("c", Access.READ, PAIR)))

def made(row: Inst, d: int, x: int, c: int) -> MInst:
  return MInst(row, [Reg(PAIR, index=d), Reg(ONE, index=x), Reg(PAIR, index=c)])

def test_registers_that_meet() -> None:
  assert meets(Reg(PAIR, index=4), Reg(ONE, index=5)) and meets(Reg(PAIR, index=4), Reg(PAIR, index=3))
  assert not meets(Reg(PAIR, index=4), Reg(ONE, index=6)) and not meets(Reg(ONE, index=4), Reg(ELSE, index=4))

def test_sources_of_an_early_result() -> None:
  found = overwritten(made(wide(), 4, 5, 8))
  assert found is not None and [r.index for r in found] == [4, 5]
  assert overwritten(made(wide(), 4, 6, 8)) is None and overwritten(made(wide(early=False), 4, 5, 8)) is None
  assert overwritten(made(wide(), 4, 6, 8), Reg(ONE, index=4)) is not None, "what it would read"
  assert overwritten(made(wide(tie=2), 4, 6, 4)) is None and overwritten(made(wide(tie=2), 4, 5, 4)) is not None

def test_a_result_that_is_read_too_is_no_source_of_its_own() -> None:
  """Its old value is in its register; another source must not be."""
  row = Inst("masked", None, (Operand("d", Access.BOTH, ONE, early=True), Operand("m", Access.READ, ONE)))
  assert overwritten(MInst(row, [Reg(ONE, index=5), Reg(ONE, index=4)])) is None
  assert overwritten(MInst(row, [Reg(ONE, index=5), Reg(ONE, index=5)])) is not None

def test_the_error_names_the_instruction() -> None:
  function = Function("k")
  function.blocks = [Block(0)]
  function.blocks[0].insts = [made(wide(), 4, 5, 8)]
  with pytest.raises(AllocationError, match="k, block .b0, instruction `wide p4, a5, p8`: p4 is written before a5 is "
                     "read"):
    check_early(function, lanes(16, 3))

def test_final_code_is_looked_at_with_check() -> None:
  def early(function: Function, target: Target) -> Function:
    inst = function.blocks[0].insts[0]
    row = Inst("bad", None, (Operand("d", Access.WRITE, ONE, early=True), Operand("x", Access.READ, ONE)))
    function.blocks[0].insts.insert(0, MInst(row, [Reg(ONE, index=1), Reg(ONE, index=1)], inst.origin))
    return function
  target = cisc(10, 15)
  target.hooks = {"after:layout": (early,)}
  with Context(CHECK=0): run(matmul_loop(target, 4, 2), target)
  with Context(CHECK=1), pytest.raises(AllocationError, match="`bad a1, a1`"): run(matmul_loop(target, 4, 2), target)
