"""Recipes: their text, and their accuracy with units at each end of the range that the hardware allows."""
from __future__ import annotations
from typing import Any

import numpy as np
import pytest

from test.isa.amd.machine import ARCHS, execute
from amd.recipes import BARS, FUNCTIONS, SIDES, Array, computed, truth, worst
import ulps
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.dtype import dtypes
from tinyhw.emulator.amd.semantics import approximate
from tinyhw.isa.amd.capabilities import capabilities
from tinyhw.isa.amd.macros.macros import MACROS
from tinyhw.isa.amd.select.recipes import RECIPES
from tinyhw.isa.amd.table.table import table
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

FAMILIES = ("gfx942", "gfx950", "gfx1100", "gfx1200")

@pytest.mark.parametrize("arch", FAMILIES)
@pytest.mark.parametrize("name", RECIPES)
def test_lines_are_known_and_read_what_was_made(name: str, arch: str) -> None:
  recipe, rows = RECIPES[name], table(arch)
  known = set(recipe.operands)
  for step in recipe.steps:
    assert step.key in MACROS or rows[step.key].operands
    assert {s for s in step.sources if isinstance(s, str)} <= known and step.name not in known, step
    known.add(step.name)
  assert [step.name for step in recipe.steps].count("") == 1 and recipe.steps[-1].name == ""

@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("op", FUNCTIONS, ids=lambda op: op.name)
def test_results_are_good_whatever_the_units_do(op: Ops, side: str) -> None:
  error, where = worst(op, side)
  assert error <= BARS[op], (error, where)

def test_what_is_exact() -> None:
  powers = np.arange(-149, 128, dtype=np.float32)
  whole_numbers = np.ldexp(1.0, powers.astype(np.int32)).astype(np.float32)
  for side in SIDES:
    assert (computed("exp2_f32", powers, side) == whole_numbers).all() and (computed("log2_f32", whole_numbers, side)
                                                                            == powers).all()
    zero, one = np.zeros(1, np.float32), np.ones(1, np.float32)
    assert computed("exp_f32", zero, side) == 1 and computed("log_f32", one,
                                                             side) == 0 and computed("sqrt_f32", zero, side) == 0

# ***** the instructions *****

def results(op: Ops, arch: str, x: Array) -> Array:
  n = len(x)
  r = UOp.range(n, 0, AxisType.LOOP)
  kernel = UOp.sink(UOp.param(0, dtypes.float32,
                              n).index(r).store(UOp(op, dtypes.float32,
                                                    (UOp.param(1, dtypes.float32, n).index(r).load(),)), r))
  data: dict[int, list[Any]] = {0: [0.0] * n, 1: [float(v) for v in x]}
  execute(lower(optimize(kernel, capabilities(arch)), capabilities(arch), "test"), arch, data)
  return np.array(data[0], np.float32)

@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("op", BARS, ids=lambda op: op.name)
def test_on_virtual_hardware(op: Ops, arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Two variants of the units' last bits. The results may differ, but are as accurate."""
  x = ulps.samples(dtypes.float32, 1 << 10)
  for chance in (1, 2):
    monkeypatch.setattr(approximate, "chance", chance)
    wrong = ulps.errors(results(op, arch, x), truth(op, x))
    assert wrong.max() <= BARS[op], (chance, float(x[wrong.argmax()]), wrong.max())
