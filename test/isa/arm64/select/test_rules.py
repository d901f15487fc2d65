"""The notation of rules, and that every rule assembles for every type that it names."""
from __future__ import annotations

import pytest
from arm64.machine import needs_qemu, run
from x86 import operations

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.arm64.capabilities import capabilities
from tinyhw.isa.arm64.select.line import line
from tinyhw.isa.arm64.select.rules import CONDITIONS, LANES, LEVELS, SCALAR_RULES, immediate, vector_rules
from tinyhw.isa.arm64.table import regs
from tinyhw.isa.arm64.target import target
from tinyhw.isa.arm64.select.select import Selector
from tinyhw.machine.select.rules import FLOATS, family
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.program import Program

ARCH = "arm64:neon"
KNOWN = capabilities(ARCH)

def spelled(text: str, dtype: DType) -> str:
  """A line of a rule for a type, with some number for a constant."""
  selector = Selector.__new__(Selector)
  return Selector.spelled(selector, text, dtype, {"b": 1, "bits": 32, "last": 31})

@pytest.mark.parametrize("level", ("", *LEVELS))
def test_every_line_assembles_and_defines_its_result(level: str) -> None:
  for (op, dtype), rules in (vector_rules(level) if level else SCALAR_RULES).items():
    for rule in rules:
      lines = [line(spelled(text, dtype.vec(16 // dtype.itemsize) if level else dtype)) for text in rule.lines]
      assert "d" in lines[-1].classes, f"{op.name} of {dtype}"
      given = set("abc") | {name for one in lines for name in one.classes}
      assert all(name in given for one in lines for name in one.olds)

@pytest.mark.parametrize("level", LEVELS)
def test_the_operations_are_those_of_the_rules(level: str) -> None:
  """A pair that capabilities promise has a rule, or is one of what selection does besides."""
  known = capabilities(level)
  besides = {*GroupOp.Comparison, Ops.WHERE, Ops.CAST, Ops.BITCAST}
  assert {p for p in known.operations if p[0] not in besides} == set(SCALAR_RULES)
  of_masks = {p for p in known.vector_operations if p[1] is dtypes.bool}
  assert {p for p in known.vector_operations - of_masks if p[0] not in besides} == set(vector_rules(level))

def test_comparisons_have_a_condition_and_a_line_for_each_family() -> None:
  for dtype in (*dtypes.ints, *FLOATS, dtypes.bool):
    assert set(CONDITIONS[family(dtype)]) == set(LANES[family(dtype)]) == set(GroupOp.Comparison)

@pytest.mark.parametrize("condition,value,bits,number", [
  ("b:add", 4095, 32, 4095), ("b:add", 4096, 32, None), ("b:sub", -5, 32, 5), ("b:mask", -256, 32, 0xffffff00),
  ("b:mask", 5, 32, None), ("b:shift", 31, 32, 31), ("b:shift", 32, 32, None), ("b:power", 8, 64, 3), ("b:power", -8,
                                                                                                       64, None),
  ("b:right", 0, 8, None), ("b:right", 8, 8, 8)])
def test_constants(condition: str, value: int, bits: int, number: int | None) -> None:
  assert immediate(condition, value, bits) == number

def on_arm(program: Program, arch: str, memory: list[bytes]) -> None: run(program, arch, memory)

CASES = [(op, dtype, vectors) for vectors in (False, True)
         for op, dtype in operations.by_name(KNOWN.vector_operations if vectors else KNOWN.operations)]

@pytest.mark.slow
@needs_qemu
@pytest.mark.parametrize("op,dtype,vectors", CASES, ids=lambda x: getattr(x, "name", str(x)))
def test_operations(op: Ops, dtype: DType, vectors: bool) -> None:
  """Every operation of every type, with the corners of the type, as scalars or at every number of lanes."""
  lanes = 2 if vectors else 1
  while lanes * dtype.itemsize <= (16 if vectors else 8) and lanes <= 16:
    operations.run(op, dtype, lanes, ARCH, on_arm)
    if not vectors: break
    lanes *= 2

def test_the_target_has_the_classes_of_the_rules() -> None:
  assert target(ARCH).classes == (regs.X, regs.V)
