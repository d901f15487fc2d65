"""Layouts of matrices over lanes: each position occurs once, except positions that lanes share."""
from collections import Counter

import pytest

from tinyhw.dtype import dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.matrix import Layout, Matrix, MatrixRows, by_columns
from tinyhw.uop.ops import UOp
from tinyhw.uop.text import parse, show

def places(layout: Layout, lanes: int, down: str, across: str) -> Counter[tuple[int, int]]:
  return Counter((layout.coordinate(down, lane, e), layout.coordinate(across, lane, e)) for lane in range(lanes)
                 for e in range(layout.count))

@pytest.mark.parametrize("m, n, k, lanes", [(4, 8, 4, 8), (16, 16, 16, 32), (2, 4, 2, 4)])
def test_every_place_is_some_lane_s(m: int, n: int, k: int, lanes: int) -> None:
  unit = by_columns(m, n, k, dtypes.float16, dtypes.float32, lanes)
  assert unit.a is not None and unit.b is not None and unit.c is not None
  assert places(unit.a, lanes, "row", "step") == {(i, x): lanes // m for i in range(m) for x in range(k)}
  assert places(unit.b, lanes, "step", "column") == {(x, j): lanes // n for x in range(k) for j in range(n)}
  assert places(unit.c, lanes, "row", "column") == {(i, j): 1 for i in range(m) for j in range(n)}

def test_digits_are_fastest_first() -> None:
  layout = Layout((("column", 4, 1), ("row", 2, 4)), (("row", 4, 1), ("row", 2, 8)))
  assert [layout.coordinate("row", 5, e) for e in range(8)] == [4, 5, 6, 7, 12, 13, 14, 15]
  assert layout.coordinate("column", 5, 3) == 1

def test_places_are_numbered_in_the_order_of_lanes() -> None:
  layout = Layout((("column", 2, 8), ("step", 2, 4), ("column", 4, 1)), (("column", 2, 4), ("step", 4, 1)))
  assert layout.digits("column") == ((2, 8), (4, 1), (2, 4)) and layout.digits("row") == ()
  packed = layout.packed("column")
  assert packed == Layout((("column", 2, 1), ("step", 2, 4), ("column", 4, 2)), (("column", 2, 8), ("step", 4, 1)))
  assert packed.packed("column") == packed

def test_a_matrix_prints_and_parses() -> None:
  unit = by_columns(4, 8, 4, dtypes.float16, dtypes.float32, 8)
  vector = UOp(Ops.CONST, dtypes.float16.vec(4), (), 1.0)
  u = UOp(Ops.MMA, dtypes.float32.vec(4), (vector, vector, UOp(Ops.CONST, dtypes.float32.vec(4), (), 0.0)), unit)
  assert parse(show(u)) is u
  assert unit == by_columns(4, 8, 4, dtypes.float16, dtypes.float32, 8) != Matrix(4, 8, 4, dtypes.float16,
                                                                                  dtypes.float32)

def test_rows_of_a_matrix_in_memory() -> None:
  rows = MatrixRows(3, 10)
  assert rows.places(6) == [0, 1, 10, 11, 20, 21] and rows.reach(6) == 22
