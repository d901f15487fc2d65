"""Operands that instructions do not take are moved to registers, as the encoder decides."""
from __future__ import annotations

import pytest

from tinyhw.errors import CompileError
from tinyhw.isa.amd.select.part import MOST_CONSTANTS, Part
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.form import Generation
from tinyhw.isa.amd.table.table import table
from tinyhw.machine.ir.inst import Function, concrete

def part(arch: str) -> Part:
  found = Part(Generation(arch), Function("k"))
  found.enter(found.function.new_block())
  return found

def names(selection: Part) -> list[str]: return [inst.row.name for inst in selection.block.insts]

def test_rdna_reads_two_scalars_and_cdna_one() -> None:
  for arch, moves in (("gfx1100", 0), ("gfx942", 1)):
    selection = part(arch)
    a, b = selection.new(regs.S[1]), selection.new(regs.S[1])
    selection.op(regs.V[1], "v_add_f32", a, b)
    assert names(selection) == ["v_mov_b32"] * moves + ["v_add_f32"]
    selection.op(regs.V[1], "v_add_f32", a, a)
    assert names(selection)[moves + 1:] == ["v_add_f32"], "the same register twice counts once"

def test_literals_of_long_encodings() -> None:
  """RDNA has them, CDNA does not; inline constants are free. Other constants are made once, at the start of the
  function."""
  for arch, moves in (("gfx1100", 0), ("gfx942", 1)):
    selection = part(arch)
    x = selection.new(regs.V[1])
    selection.enter(selection.function.new_block())
    selection.op(regs.V[1], "v_fma_f32", x, x, 0x40490fdb)
    selection.op(regs.V[1], "v_fma_f32", x, x, 0x3f800000)
    assert names(selection) == ["v_fma_f32", "v_fma_f32"]
    selection.enter(selection.function.new_block())
    selection.op(regs.V[1], "v_fma_f32", x, 0x40490fdb, 0x40490fdb)
    assert [inst.row.name for inst in selection.order[0].insts] == ["s_mov_b32"] * moves

def test_two_literals_are_one_in_a_scalar_register() -> None:
  selection = part("gfx1100")
  x = selection.new(regs.V[1])
  selection.op(regs.V[1], "v_med3_f32", x, 0x40490fdb, 0xc0490fdb)
  assert names(selection) == ["s_mov_b32", "v_med3_f32"]

def test_constants_that_are_too_many_are_made_where_they_are_used() -> None:
  selection = part("gfx942")
  x = selection.new(regs.V[1])
  selection.enter(selection.function.new_block())
  for k in range(MOST_CONSTANTS + 2): selection.op(regs.V[1], "v_fma_f32", x, x, 0x40490fdb + k)
  assert len(selection.order[0].insts) == MOST_CONSTANTS and names(selection).count("s_mov_b32") == 2

def test_two_literals_of_a_scalar_instruction() -> None:
  selection = part("gfx1100")
  selection.op(regs.S[1], "s_add_u32", 1000, 2000)
  selection.op(regs.S[2], "s_and_b64", selection.new(regs.S[2]), (1 << 63) - 1)
  assert names(selection) == ["s_mov_b32", "s_add_u32", "s_pack64", "s_and_b64"]

def test_copies_are_made_once_in_a_block() -> None:
  selection = part("gfx1100")
  s = selection.new(regs.S[1])
  assert selection.in_vector(s, 4) is selection.in_vector(s, 4) and names(selection) == ["v_mov_b32"]
  selection.enter(selection.function.new_block())
  selection.in_vector(s, 4)
  assert names(selection) == ["v_mov_b32"]

def test_a_value_that_differs_between_lanes_is_no_scalar() -> None:
  selection = part("gfx1100")
  with pytest.raises(CompileError, match="differs between lanes"):
    selection.in_scalar(selection.new(regs.V[1]), regs.S[1])

def test_rows_have_the_classes_of_their_operands() -> None:
  row = table("gfx1100")["v_add_f32"]
  classes = tuple(None if o.cls is None else regs.S[1] if o.name == "src0" else regs.V[1] for o in row.operands)
  made = concrete(row, classes)
  assert made.isa is row.isa and made.operands[1].cls is regs.S[1] and concrete(row, classes) is made
