"""Redundant copies of registers disappear. Groups are read and written directly."""
from __future__ import annotations
from collections.abc import Sequence

from tinyhw.isa.sass.asm.encode import encode
from tinyhw.isa.sass.asm.syntax import parse, plain
from tinyhw.isa.sass.late.drop_copies import copied, drop_copies
from tinyhw.isa.sass.target import target
from tinyhw.machine.ir.inst import Block, Function

ARCH = "sm_90"

def left(lines: Sequence[str]) -> list[str]:
  """Return the text of the instructions that the pass leaves."""
  function = Function("k")
  function.blocks = [Block(0)]
  function.blocks[0].insts = [parse(line, ARCH)[0] for line in lines]
  drop_copies(function, target(ARCH))
  return [plain(encode(inst), ARCH) for inst in function.blocks[0].insts]

def test_elements_of_groups_are_read_and_made_where_they_are() -> None:
  lines = ["LDG.E.64 R4, [R0]", "MOV R8, R4", "MOV R9, R5", "FADD R10, R8, R9", "FMUL R11, R8, R9", "MOV R4, R10",
           "MOV R5, R11", "STG.E.64 [R0], R4"]
  assert left(lines) == ["LDG.E.64 R4, [R0]", "FADD R10, R4, R5", "FMUL R5, R4, R5", "MOV R4, R10", "STG.E.64 [R0], R4"]

def test_what_is_no_copy() -> None:
  for line in ("MOV R1, RZ", "MOV RZ, R1", "MOV R1, 0x5", "@P0 MOV R1, R2", "@!P0 MOV R1, R2", "IADD3 R1, R2, RZ, RZ"):
    assert copied(parse(line, ARCH)[0]) is None
  assert copied(parse("MOV R1, R2", ARCH)[0]) == (1, 2)
