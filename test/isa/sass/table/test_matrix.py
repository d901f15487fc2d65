"""The layouts of matrix units: each element has a position, factors agree on the steps, results are as in the PTX
ISA."""
from __future__ import annotations

import pytest

from tinyhw.isa.sass.macros.macros import macros_of
from tinyhw.isa.sass.table.matrix import (
  FP8_OF_GROUPS, FP8_OF_WARPS, OF_GROUPS, TF32, VECTOR, Unit, every_unit, less_exact, units)

OF_WARPS = (*units("sm_89"), *FP8_OF_WARPS, TF32)

@pytest.mark.parametrize("unit", OF_WARPS, ids=lambda unit: unit.key)
def test_layouts(unit: Unit) -> None:
  m = unit.matrix
  assert (f"{unit.key}{'_steps' * (unit is VECTOR)}" in macros_of("sm_89") and m.a is not None and m.b is not None
          and m.c is not None)
  for layout, axes, size in ((m.a, ("row", "step"), m.m * m.k), (m.b, ("step", "column"), m.k * m.n),
                             (m.c, ("row", "column"), m.m * m.n)):
    places = {tuple(layout.coordinate(axis, lane, element) for axis in axes) for lane in range(32)
              for element in range(layout.count)}
    assert len(places) == size and (size == 32 * layout.count or unit is VECTOR)

@pytest.mark.parametrize("unit", [unit for unit in OF_WARPS if unit is not VECTOR], ids=lambda unit: unit.key)
def test_places_are_the_hardware_s(unit: Unit) -> None:
  """g is lane / 4, t is lane % 4. Register k of the result: row g + 8 * (k >> 1), column 2t + (k & 1).

  A register of a factor has n adjacent steps: those from n * t on, and from n * t + 4n on.
  """
  m = unit.matrix
  assert m.a is not None and m.b is not None and m.c is not None
  n = 4 // m.operand.itemsize
  for lane in range(32):
    g, t = divmod(lane, 4)
    for k in range(4):
      assert (m.c.coordinate("row", lane, k), m.c.coordinate("column", lane, k)) == (g + 8 * (k >> 1), 2 * t + (k & 1))
    for k in range(2 * n):
      step = n * t + k % n + 4 * n * (k // n)
      assert (m.b.coordinate("step", lane, k), m.b.coordinate("column", lane, k)) == (step, g)
    for k in range(4 * n):
      register = k // n
      row, step = g + 8 * (register & 1), n * t + k % n + 4 * n * (register >> 1)
      assert (m.a.coordinate("row", lane, k), m.a.coordinate("step", lane, k)) == (row, step)

@pytest.mark.parametrize("unit", (*OF_GROUPS, *FP8_OF_GROUPS), ids=lambda unit: unit.key.format(unit.matrix.n))
def test_places_of_a_group_s_result_are_the_hardware_s(unit: Unit) -> None:
  """Warp w of the four has the rows from 16w on. For every eight columns it has the elements of a warp's product."""
  m = unit.matrix
  assert unit in every_unit("sm_90") and unit not in OF_WARPS and m.c is not None and m.lanes == 128
  for thread in range(m.lanes):
    warp, g, t = thread // 32, thread % 32 // 4, thread % 4
    for k in range(m.n // 2):
      row, column = 16 * warp + g + 8 * (k >> 1 & 1), 8 * (k >> 2) + 2 * t + (k & 1)
      assert (m.c.coordinate("row", thread, k), m.c.coordinate("column", thread, k)) == (row, column)

def test_units_that_are_less_exact_must_be_allowed() -> None:
  assert {generation: sorted(less_exact(generation)) for generation in ("sm_80", "sm_89", "sm_90")} == {
    "sm_80": ["ALLOW_TF32"], "sm_89": ["ALLOW_FP8_SUMS", "ALLOW_TF32"], "sm_90": ["ALLOW_FP8_SUMS", "ALLOW_TF32"]}
  assert not {*units("sm_89"), *units("sm_90")} & {*FP8_OF_WARPS, *FP8_OF_GROUPS, TF32}
