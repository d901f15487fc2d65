"""Instructions from texts with names: the choice of the form, parts of groups, several lines, missing forms."""
from __future__ import annotations
from typing import Any

import pytest

from tinyhw.isa.sass.macros import macros

from tinyhw.isa.sass.asm.syntax import show
from tinyhw.isa.sass.macros.macros import OperandClass, expand_macros, kind_of, macros_of, make, pieces
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.target import target
from tinyhw.machine.ir.inst import Access, Block, Function, MInst, Reg
from tinyhw.machine.select.macros import MACRO

def r(index: int, units: int = 1) -> Reg: return regs.reg(regs.R[units], index)
def p(index: int) -> Reg: return regs.reg(regs.P, index)

def texts(name: str, *operands: Any, arch: str = "sm_90") -> list[str]:
  """Return the expansion of a macro over physical registers, including temporary ones."""
  made = pieces(arch, name, tuple(map(kind_of, operands)))
  assert made is not None
  return [show(MInst(one.row, macros.filled(one, list(operands)))) for one in made]

@pytest.mark.parametrize("arch", ("sm_80", "sm_89", "sm_90"))
def test_every_macro_is_an_instruction(arch: str) -> None:
  for name, macro in macros_of(arch).items():
    kinds = tuple(None if letters == "i" else OperandClass(macros.CLASSES[letters]) for _, _, letters in macro.operands)
    assert pieces(arch, name, kinds), name

def test_forms() -> None:
  assert texts("add32", r(0), r(1), r(2)) == ["IADD3 R0, R1, R2, RZ"]
  assert texts("add32", r(0), r(1), 0xfffffffb) == ["IADD3 R0, R1, -0x5, RZ"]
  assert texts("mul_f32", r(0), r(1), 0x3fc00000) == ["FMUL R0, R1, 1.5"]
  assert texts("add32", r(0), r(1), regs.RZ) == ["IADD3 R0, R1, RZ, RZ"]
  assert (pieces("sm_90", "add32", (OperandClass(regs.R[1]), None, OperandClass(regs.R[1]))) is None
          and make("sm_90", "add32", [r(0), 5, r(1)]) is None)
  assert texts("max_u32", r(0), r(1), r(2), arch="sm_80") == ["IMNMX.U32 R0, R1, R2, !PT"]

def test_parts() -> None:
  assert texts("add64", r(0, 2), r(2, 2), 0x0000000700000009, p(1)) == ["IADD3 R0, P1, R2, 0x9, RZ",
                                                                        "IADD3.X R1, R3, 0x7, RZ, P1, !PT"]
  assert texts("bytes_of2", r(0), r(4, 4), 0x4410) == ["PRMT R0, R6, 0x4410, RZ"]
  assert texts("load_b64_if", r(4, 2), p(0), r(2, 2), -8) == ["@P0 LDG.E.64 R4, [R2+-0x8]"]
  assert texts("load_b64_if+UR6", r(4, 2), p(0), r(3), -8) == ["@P0 LDG.E.64 R4, [R3.U32+UR6+-0x8]"]
  assert texts("store_b128+UR40", r(3), r(4, 4), 0) == ["STG.E.128 [R3.U32+UR40], R4"]
  assert texts("copy_b128+UR8", r(1), r(2), 16, 32) == ["LDGSTS.E.BYPASS.128 [R1+0x10], [R2.U32+UR8+0x20]"]

def test_rows_over_virtual_registers() -> None:
  function = Function("k")
  a, b, d = (function.new_reg(regs.R[1]) for _ in range(3))
  one = make("sm_90", "add32", [d, a, b])
  assert one is not None and one.row.encoding is not MACRO and list(one.writes()) == [d] and list(one.reads()) == [a, b]
  wide = [function.new_reg(regs.R[2]) for _ in range(3)]
  several = make("sm_90", "add64", wide, function.new_reg)
  assert (several is not None and several.row.encoding is MACRO and [o.early for o in several.row.operands]
          == [True, False, False, True])
  assert several.operands[3].cls is regs.P, "the carry is a register of its own"
  old, gate = function.new_reg(regs.R[1]), function.new_reg(regs.P)
  load = make("sm_90", "load_b32_if", [d, gate, wide[0], 0], ties=(old,))
  assert (load is not None and load.row.both == (0,) and load.row.operands[0].access is Access.BOTH
          and set(load.reads()) == {gate, wide[0], old})
  constant, argument = make("sm_90", "move", [d, 5]), make("sm_90", "argument_b32", [d, 0x210])
  assert (constant is not None and argument is not None and constant.row.rematerialize and argument.row.rematerialize
          and not one.row.rematerialize)

def test_elements_of_groups_are_sources() -> None:
  """The group is the operand. A single line may write a register that it reads, since it reads first."""
  function = Function("k")
  group, pair, d = (function.new_reg(regs.R[units]) for units in (4, 2, 1))
  third, second = regs.Element(regs.R[1], group, 2), regs.Element(regs.R[1], pair, 1)
  added = make("sm_90", "add32", [d, third, second])
  assert added is not None and list(added.reads()) == [group, pair] and not any(o.early for o in added.row.operands)
  for k, index in ((0, 1), (1, 4), (2, 8)): added.operands[k] = regs.reg(added.operands[k].cls, index)
  block = Block(0)
  function.blocks, block.insts = [block], [added]
  assert [show(i) for i in expand_macros(function, target("sm_90")).blocks[0].insts] == ["IADD3 R1, R6, R9, RZ"]
  wide = make("sm_90", "add64", [function.new_reg(regs.R[2]), regs.Element(regs.R[2], group, 2), 7], function.new_reg)
  assert wide is not None and wide.row.operands[1].cls is regs.R[4] and wide.row.operands[0].early

def test_elements_of_large_groups_are_sources_wherever_they_stand() -> None:
  """Use two groups of 128 registers. The text is parsed for single registers, whatever group they belong to."""
  function = Function("k")
  first, second = function.new_reg(regs.R[64]), function.new_reg(regs.R[128])
  sources = [regs.Element(regs.R[1], first, 63), regs.Element(regs.R[1], second, 126)]
  made = make("sm_90", "add_f32", [function.new_reg(regs.R[1]), *sources])
  assert made is not None
  made.operands[:3] = [r(9), r(32, 64), r(96, 128)]
  function.blocks = [Block(0)]
  function.blocks[0].insts = [made]
  expand_macros(function, target("sm_90"))
  assert [show(inst) for inst in function.blocks[0].insts] == ["FADD R9, R95, R222"]

def test_elements_of_a_group_have_one_row() -> None:
  """Positions of elements are operands. So one row rounds and stores each pair of a product's sums."""
  function = Function("k")
  group = function.new_reg(regs.R[128])
  made = [make("sm_90", "add_f32", [function.new_reg(regs.R[1]), regs.Element(regs.R[1], group, k),
                                    regs.Element(regs.R[1], group, k + 1)])
          for k in (0, 40)]
  assert made[0] is not None and made[1] is not None and made[0].row is made[1].row
  assert [one.operands[3:] for one in made if one is not None] == [[0, 1], [40, 41]]

def test_lines_with_a_guard_keep_what_they_may_not_write() -> None:
  function = Function("k")
  old, gate, group = function.new_reg(regs.R[1]), function.new_reg(regs.P), function.new_reg(regs.R[2])
  scaled = make("sm_90", "mul_f32_if", [function.new_reg(regs.R[1]), gate, regs.Element(regs.R[1], group, 1),
                                        0x40000000], ties=(old,))
  assert scaled is not None and scaled.row.encoding is MACRO and scaled.row.both == (0,)
  for k, value in enumerate((r(3), p(1), r(4, 2))): scaled.operands[k] = value
  block = Block(0)
  function.blocks, block.insts = [block], [scaled]
  last = expand_macros(function, target("sm_90")).blocks[0].insts[0]
  assert show(last) == "@P1 FMUL R3, R5, 2" and last.row.operands[0].access is Access.BOTH

def test_expansion() -> None:
  function, block = Function("k"), Block(0)
  made = make("sm_90", "move64", [r(0, 2), r(4, 2)])
  assert made is not None
  block.insts, function.blocks = [made], [block]
  assert [show(i) for i in expand_macros(function, target("sm_90")).blocks[0].insts] == ["MOV R0, R4", "MOV R1, R5"]
  assert {i.comment for i in block.insts} == {"move64"}

def test_operands_are_counted() -> None:
  with pytest.raises(AssertionError, match="macro add32 takes 3 operands, got 2"): make("sm_90", "add32", [r(0), r(1)])
