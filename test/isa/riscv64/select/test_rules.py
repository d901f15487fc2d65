"""Every rule assembles for every type that it names, and the operations are those of the rules, executed by QEMU."""
from __future__ import annotations

import pytest
from riscv64.machine import needs_qemu, run
from x86 import operations

from tinyhw.dtype import DType
from tinyhw.isa.riscv64.capabilities import capabilities
from tinyhw.isa.riscv64.select.line import line
from tinyhw.isa.riscv64.select.rules import EXTENSIONS, IMMEDIATES, LEVELS, SHORT_EXTENSIONS, scalar_rules, vector_rules
from tinyhw.isa.riscv64.select.select import Selector
from tinyhw.uop.enums import Ops
from tinyhw.uop.program import Program

@pytest.mark.parametrize("level", LEVELS)
def test_every_line_assembles_and_defines_its_result(level: str) -> None:
  selector = Selector.__new__(Selector)
  for found, lanes in ((scalar_rules(level), 1), (vector_rules(level), 4)):
    for (op, dtype), rules in found.items():
      for rule in rules:
        lines = [line(Selector.spelled(selector, text, dtype.vec(lanes), {"b": 1})) for text in rule.lines]
        assert "d" in lines[-1].classes, f"{op.name} of {dtype}"

@pytest.mark.parametrize("level", LEVELS)
def test_the_operations_are_those_of_the_rules(level: str) -> None:
  besides = {Ops.WHERE, Ops.CAST, Ops.BITCAST}
  known = capabilities(level)
  assert {p for p in known.operations if p[0] not in besides} == set(scalar_rules(level))
  assert {p for p in known.vector_operations if p[0] not in besides} == set(vector_rules(level))

@pytest.mark.parametrize("condition,value,number", [
  ("b:add", 2047, 2047), ("b:add", 2048, None), ("b:add", -2048, -2048), ("b:sub", 2048, -2048), ("b:sub", -2048, None),
  ("b:shift", 31, 31), ("b:shift", 32, None), ("b:power", 8, 3), ("b:power", 12, None),
  ("b:five", 15, 15), ("b:five", 16, None), ("b:amount", 31, 31), ("b:amount", 32, None)])
def test_constants(condition: str, value: int, number: int | None) -> None:
  assert IMMEDIATES[condition](value, 32) == number

def test_extensions_assemble() -> None:
  assert set(EXTENSIONS) == set(SHORT_EXTENSIONS)
  for text in (*EXTENSIONS.values(), *SHORT_EXTENSIONS.values()):
    for one in text.split("; "): line(one)

def on_riscv(program: Program, arch: str, memory: list[bytes]) -> None: run(program, arch, memory)

@needs_qemu
@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("op,dtype", operations.by_name(capabilities("riscv64:rva22").operations),
                         ids=lambda x: getattr(x, "name", str(x)))
def test_operations(op: Ops, dtype: DType, level: str) -> None:
  """Every operation of every type, with the corners of the type."""
  operations.run(op, dtype, 1, level, on_riscv)
