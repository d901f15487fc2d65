"""Weights reach the layout of an operand: each element of it has the row and the step that its source has."""
from __future__ import annotations

import pytest

from tinyhw.codegen.attention.layout import distances, groups, moves
from tinyhw.dtype import dtypes
from tinyhw.engine.run.compile import capabilities_of
from tinyhw.uop.matrix import Matrix, by_columns

def unit(arch: str) -> Matrix:
  return next(x for x in capabilities_of(arch, "").matrix if x.operand is dtypes.float16 and x.a is not None
              and x.k == 16)

@pytest.mark.parametrize("arch", ("gfx1100", "gfx1200", "gfx942", "sm_80"))
def test_sources_have_the_row_and_the_step_of_the_element(arch: str) -> None:
  matrix = unit(arch)
  assert matrix.a is not None and matrix.c is not None
  found = moves(matrix)
  assert found is not None and len(found) == matrix.a.count
  for element, move in enumerate(found):
    for lane in range(matrix.lanes):
      own = not move.distance or lane // move.distance % 2 == move.own
      source = lane if own else lane ^ move.distance
      place = (matrix.c.coordinate("row", source, move.element),
               move.tile * matrix.n + matrix.c.coordinate("column", source, move.element))
      assert place == (matrix.a.coordinate("row", lane, element), matrix.a.coordinate("step", lane, element))

@pytest.mark.parametrize("arch, exchanged", (("gfx1100", 16), ("gfx1200", 0), ("gfx942", 0), ("sm_80", 0)))
def test_only_one_layout_needs_exchanges(arch: str, exchanged: int) -> None:
  assert {move.distance for move in moves(unit(arch)) or ()} <= {0, exchanged}

def test_layouts_whose_elements_are_far_away_have_no_moves() -> None:
  assert moves(by_columns(16, 16, 16, dtypes.float16, dtypes.float32, 32)) is None

@pytest.mark.parametrize("arch, apart, rows", (("gfx1100", [16], 1), ("gfx942", [16, 32], 1), ("sm_80", [1, 2], 2)))
def test_lanes_and_elements_of_a_row(arch: str, apart: list[int], rows: int) -> None:
  matrix = unit(arch)
  assert matrix.c is not None
  assert distances(matrix.c, "column") == apart
  assert len(set(groups(matrix.c))) == rows and len(groups(matrix.c)) == matrix.c.count
