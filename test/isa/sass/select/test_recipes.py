"""Recipes: their text, their correctness for any error of the special function unit, and the cost of rare operands."""
from __future__ import annotations
import itertools
from typing import Any

import pytest

from test.codegen.kernels import data_for, wild
from test.isa.sass.select.test_alu import applied
from test.isa.sass.machine import ARCHS, check, execute
from tinyhw.codegen.passes import lower
from tinyhw.dtype import DType, dtypes
from tinyhw.emulator.nvidia.semantics import approximate
from tinyhw.emulator.python.floats import float32_of
from tinyhw.isa.sass.capabilities import capabilities
from tinyhw.isa.sass.macros.macros import macros_of, signed
from tinyhw.isa.sass.select.recipes import RECIPES
from tinyhw.isa.sass.target import assemble
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

OPS = (Ops.SQRT, Ops.RECIPROCAL, Ops.FDIV)
MANTISSAS = (0, 1, 2, 0x123456, 0x3504f2, 0x3504f3, 0x400000, 0x5a5a5a, 0x7ffffe, 0x7fffff)
EXPONENTS = (0, 1, 2, 24, 62, 63, 66, 67, 68, 126, 127, 128, 186, 187, 188, 252, 253, 254, 255)
NUMBERS = [float32_of(sign << 31 | exponent << 23 | mantissa) for sign in range(2) for exponent in EXPONENTS
           for mantissa in MANTISSAS]

@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", RECIPES)
def test_lines_are_known_and_read_what_was_made(name: str, arch: str) -> None:
  recipe, macros = RECIPES[name], macros_of(arch)
  known = set(recipe.operands)
  for step in recipe.steps:
    shown = macros[step.key].shown
    changes = macros[step.key].operands[0][1].name == "BOTH"
    assert len(step.sources) == shown - 1 + changes, step
    assert {s for s in step.sources if isinstance(s, str)} <= known and step.name not in known, step
    known.add(step.name)

def test_signs() -> None:
  fma = macros_of("sm_90")["fma_f32"]
  assert signed(fma, 5, 2).lines == ("FFMA d, -a, |b|, -c",)
  with pytest.raises(AssertionError, match="takes no signs"): signed(macros_of("sm_90")["rcp_rarely"], 1, 0)

def operands(op: Ops) -> list[list[float]]:
  """Return all pairs of the more unusual numbers, or all numbers."""
  if op is not Ops.FDIV: return [NUMBERS]
  few = [x for sign in range(2) for exponent in (0, 67, 127, 187, 254, 255)
         for x in (float32_of(sign << 31 | exponent << 23 | mantissa) for mantissa in (0, 0x7fffff))]
  return [list(column) for column in zip(*itertools.product(few, few))]

@pytest.mark.parametrize("chance", (0, 1))
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_results_are_correctly_rounded(op: Ops, chance: int, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(approximate, "chance", chance)
  columns = operands(op)
  n = len(columns[0])
  data: dict[int, list[Any]] = {0: [0.0] * n, **{k + 1: column for k, column in enumerate(columns)}}
  check(applied(op, dtypes.float32, AxisType.LOCAL, n), ARCHS[chance], data=data, optimized=False, what=op.name)

@pytest.mark.parametrize("op, common, rare", [(Ops.RECIPROCAL, 3.0, 0.0), (Ops.RECIPROCAL, 2.0 ** -126, 2.0 ** 127),
                                              (Ops.FDIV, 1e-12, 2.0 ** 127)])
def test_rare_operands_cost_more(op: Ops, common: float, rare: float) -> None:
  """Zero dividends are common. A rare operand in one lane makes its warp take the longer path."""
  program = lower(applied(op, dtypes.float32, AxisType.LOCAL, 32), capabilities("sm_90"), "test")
  def executed(divisors: list[float]) -> int:
    return execute(program, "sm_90", {0: [0.0] * 32, 1: divisors if op is Ops.RECIPROCAL else [0.0, 1.0] * 16,
                                      2: divisors})
  usual = executed([common] * 32)
  assert usual + 10 < executed([common] * 31 + [rare]) == executed([rare] * 32)

@pytest.mark.parametrize("divisor", (3.0, -7.0, 255.0, 1.9999998807907104, -1.5 * 2.0 ** -60, 2.0 ** 60,
                                     3.0 * 2.0 ** 61))
def test_divisors_that_are_constants(divisor: float) -> None:
  """They need no reciprocal instruction, except outside of the common range."""
  n, r = len(NUMBERS), UOp.range(len(NUMBERS), 0, AxisType.LOCAL)
  x, y = UOp.param(1, dtypes.float32, n).index(r).load(), UOp.const(dtypes.float32, divisor)
  kernel = UOp.sink(UOp.param(0, dtypes.float32, n).index(r).store(UOp(Ops.FDIV, dtypes.float32, (x, y)), r))
  check(kernel, "sm_90", data={0: [0.0] * n, 1: NUMBERS}, optimized=False, what=f"by {divisor}")
  names = [inst.row.name for _, inst, _ in assemble(lower(kernel, capabilities("sm_90"), "test"), "sm_90")[2]]
  assert ("MUFU" in names) == (abs(divisor) > 2.0 ** 60)

@pytest.mark.parametrize("source", (dtypes.int32, dtypes.uint32, dtypes.uint8), ids=str)
def test_integers_divided_by_constants_need_no_check(source: DType) -> None:
  n = 96
  r = UOp.range(n, 0, AxisType.LOCAL)
  x = UOp(Ops.CAST, dtypes.float32, (UOp.param(1, source, n).index(r).load(),))
  for divisor in (255.0, -3.0, 2.0 ** 59 * 1.7):
    y = UOp.const(dtypes.float32, divisor)
    kernel = UOp.sink(UOp.param(0, dtypes.float32, n).index(r).store(UOp(Ops.FDIV, dtypes.float32, (x, y)), r))
    check(kernel, "sm_80", data=data_for(kernel, 3, wild), optimized=False, what=f"{source} by {divisor}")
    names = [inst.row.name for _, inst, _ in assemble(lower(kernel, capabilities("sm_80"), "test"), "sm_80")[2]]
    assert "VOTE" not in names and "FSETP" not in names
