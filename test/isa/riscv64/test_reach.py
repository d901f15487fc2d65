"""Branches that do not reach their block become jumps."""
from __future__ import annotations

import pytest

from tinyhw.isa.riscv64.asm.syntax import decode, parse_function
from tinyhw.isa.riscv64.reach import REACH, extend_branches
from tinyhw.isa.riscv64.target import target
from tinyhw.machine.assembler.encode import encode_function
from tinyhw.machine.ir.inst import Function

def function(between: int, backwards: bool = False) -> Function:
  far = "nop\n" * between
  text = (f".far:\nnop\n{far}blt a0, a1, .far\nret" if backwards else
          f"beqz a0, .far\naddi a0, a0, 1\n{far}j .end\n.far:\nli a0, 7\n.end:\nret")
  return extend_branches(parse_function(text), target("riscv64:g"))

def names(made: Function) -> list[str]: return [inst.row.name for block in made.blocks for inst in block.insts]

@pytest.mark.parametrize("between", (0, 100, REACH // 4 - 4))
def test_near_branches_stay(between: int) -> None:
  assert names(function(between))[0] == "beqz" and "blt" in names(function(between, True))

@pytest.mark.parametrize("between", (REACH // 4, 5000))
def test_far_branches_go_over_a_jump(between: int) -> None:
  made = function(between)
  code, places = encode_function(made)
  assert names(made)[:2] == ["bnez", "j"] and decode(code)[0].operands[1] == 8
  assert decode(code, 4)[0].operands[0] == 4 * (between + 3) and len(places) == between + 6
  back = function(between, True)
  assert names(back)[-3:] == ["bge", "j", "ret"]
  assert decode(encode_function(back)[0], 4 * (between + 2))[0].operands[0] == -4 * (between + 2)
