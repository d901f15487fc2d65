"""Rows, registers and instructions: reads and writes in their order, and equality."""
from __future__ import annotations

import pytest

from tinyhw.machine.ir.inst import Access, Bank, Block, Effect, Function, Inst, MInst, Operand, Reg, RegClass

BANK = Bank("r", 8, tuple(range(8)))
WORD = RegClass("word", BANK, 32, names=tuple(f"r{i}" for i in range(8)))
PAIR = RegClass("pair", BANK, 64, units=2, align=2, names=tuple(f"p{i}" for i in range(8)))

def operand(name: str, access: int, **more: object) -> Operand: return Operand(name, access, WORD, **more)

MOV = Inst("mov", "", (operand("dst", Access.WRITE), operand("src", Access.READ)))
FMA = Inst("fma", "", (operand("acc", Access.BOTH), operand("a", Access.READ),
                       operand("index", Access.READ, optional=True),
                       Operand("imm", Access.READ, kind="imm8")))
JUMP = Inst("jl", "", (Operand("block", Access.READ, kind="block"),), effects=Effect.JUMP)

def test_positions_of_operands() -> None:
  assert (MOV.reads, MOV.writes, MOV.both, MOV.only_reads) == ((1,), (0,), (), (1,))
  assert (FMA.reads, FMA.writes, FMA.both, FMA.only_reads) == ((0, 1, 2), (0,), (0,),
                                                               (1, 2)), "an immediate is no register"

def test_registers() -> None:
  function = Function("f")
  a, b = function.new_reg(WORD), function.new_reg(WORD)
  assert (a.id, b.id) == (0, 1) and a != b and a == a and repr(a) == "%0:word" and function.registers == [a, b]
  assert Reg(WORD, index=3) == Reg(WORD, index=3) != Reg(WORD, index=4) and repr(Reg(WORD, index=3)) == "r3"
  assert Reg(WORD, index=2) != Reg(PAIR, index=2) and a != Reg(WORD, index=0), "a virtual register is no physical one"
  assert len({Reg(WORD, index=3), Reg(WORD, index=3), a}) == 2

def test_reads_and_writes_in_operand_order() -> None:
  f = Function("f")
  a, b, c, old = (f.new_reg(WORD) for _ in range(4))
  assert list(MInst(FMA, [a, b, c, 5]).reads()) == [a, b, c] and list(MInst(FMA, [a, b, c, 5]).writes()) == [a]
  assert list(MInst(FMA, [a, b, c, 5], ties=(old,)).reads()) == [b, c, old], ("in SSA form the old value is another "
                                                                              "register")
  assert list(MInst(FMA, [a, b, None, 5]).reads()) == [a, b], "an optional operand that is not there"
  block = f.new_block()
  block.params = [f.new_reg(WORD)]
  assert (list(MInst(JUMP, [block], None, ([c],)).reads()) == [c]
          and not list(MInst(JUMP, [block], None, ([c],)).writes()))

def test_equality_is_of_what_is_done() -> None:
  a, b = Reg(WORD, index=1), Reg(WORD, index=2)
  assert MInst(MOV, [a, b], origin="here") == MInst(MOV, [a, b], comment="there") != MInst(MOV, [b, a])
  assert MInst(FMA, [a, b, None, 1]) != MInst(FMA, [a, b, None, 1],
                                              ties=(b,)) and str(MInst(MOV, [a, b])) == "mov r1, r2"
  with pytest.raises(TypeError, match="unhashable"): hash(MInst(MOV, [a, b]))

def test_blocks() -> None:
  f = Function("f")
  first, second = f.new_block(name="entry"), f.new_block(1, "loop")
  first.insts.append(MInst(JUMP, [second], None, ([],)))
  assert first.successors() == [second] and second.successors() == [] and f.blocks == [first, second]
  assert repr(second) == ".loop1" and repr(Block(7)) == ".b7"
