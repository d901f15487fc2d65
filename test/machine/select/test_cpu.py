"""Selection by rules for CPUs, seen in the code of AArch64 and RISC-V."""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

import pytest
from generators.program_builder import Builder

from tinyhw.data_class import replace
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.arm64.target import target as arm64
from tinyhw.isa.riscv64.target import target as riscv64
from tinyhw.machine.ir.inst import Function
from tinyhw.machine.select.cpu import access_bytes, integer_bits, is_condition, numbers_of
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

F32, I32 = dtypes.float32, dtypes.int32
TARGETS = (lambda: arm64("arm64:neon"), lambda: riscv64("riscv64:rva22"))

def selected(program: Program, target: Callable[[], Any]) -> Function:
  function: Function = target().select(program, target())
  return function

def names(function: Function, depth: int) -> list[str]:
  return [inst.row.name for block in function.blocks for inst in block.insts if block.depth == depth]

@pytest.mark.parametrize("target", TARGETS)
def test_constants_of_a_grid_are_made_before_it(target: Callable[[], Any]) -> None:
  b = Builder("once")
  out = b.param(0, F32, 64)
  with b.loop(64, AxisType.GLOBAL) as g: b.store(out, g, b.add(b.load(out, g) * 0.1 + 0.3))
  function = selected(b.program(), target)
  same = Builder("once")
  out = same.param(0, F32, 64)
  with same.loop(64, AxisType.GLOBAL) as g: same.store(out, g, same.add(same.load(out, g) + same.load(out, g)))
  assert len(names(function, 0)) >= len(names(selected(same.program(), target), 0)) + 2
  assert len(names(function, 1)) == len(names(selected(same.program(), target), 1)) + 1

@pytest.mark.parametrize("target", TARGETS)
def test_a_sum_that_is_only_an_index_is_no_instruction(target: Callable[[], Any]) -> None:
  def program(more: int) -> Program:
    b = Builder("offset")
    out = b.param(0, F32, 64)
    with b.loop(32, AxisType.GLOBAL) as g: b.store(out, g, b.load(out, b.add(g + more)))
    return b.program()
  assert len(names(selected(program(3), target), 1)) <= len(names(selected(program(0), target), 1)) + 1

@pytest.mark.parametrize("target", TARGETS)
def test_what_has_no_rule_is_refused(target: Callable[[], Any]) -> None:
  b = Builder("missing")
  out = b.param(0, F32, 4)
  with b.loop(4, AxisType.GLOBAL) as g: b.store(out, g, b.add(UOp(Ops.SIN, F32, (b.load(out, g),))))
  with pytest.raises(CompileError, match="missing: .* has no SIN of dtypes.float32; decompose it before selection"):
    selected(b.program(), target)

@pytest.mark.parametrize("target", TARGETS)
def test_a_value_needs_a_definition(target: Callable[[], Any]) -> None:
  b = Builder("undefined")
  out = b.param(0, F32, 4)
  with b.loop(4, AxisType.GLOBAL) as g: b.store(out, g, b.load(out, g))
  made = b.program()
  without = tuple(u for u in made.uops if u.op is not Ops.LOAD)
  with pytest.raises(CompileError, match="its definition does not come before its use"):
    selected(replace(made, uops=without), target)

def test_conditions() -> None:
  a, b = UOp.variable("a", 0, 9), UOp.variable("b", 0, 9)
  test = a < b
  assert is_condition(test, test.where(a, b)) and not is_condition(test, test.where(test, test))

def test_sizes() -> None:
  assert access_bytes(dtypes.bool.vec(8)) == 8 and access_bytes(F32.vec(4)) == 16
  assert numbers_of(dtypes.int8) == {"bits": 32, "last": 31} and numbers_of(dtypes.int64.vec(2))["bits"] == 64
  assert [integer_bits(d, v) for d, v in ((dtypes.int8, -1), (dtypes.uint8, 255), (dtypes.bool, True))] == [-1, 255, 1]
