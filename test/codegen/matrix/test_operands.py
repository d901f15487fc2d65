"""The parts of split ranges that are rows, columns and steps of a product, and their numbering."""
from test.codegen.kernels import axis
from tinyhw.codegen.matrix.operands import ProductRange, first_index, further, position, tile_of
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.matrix import by_columns
from tinyhw.uop.ops import UOp

OPTS = Opt(OptOps.MATRIX, 0, 4), Opt(OptOps.MATRIX, 1, 8), Opt(OptOps.MATRIX, 2, 4), Opt(OptOps.LOCAL, 0, 2)

def parts(number: int, *kinds: tuple[int, str]) -> list[UOp]:
  """Return the parts of a range, with these sizes and kinds."""
  return [axis(size, 10 * number + k, kind) for k, (size, kind) in enumerate(kinds)]

def split() -> dict[UOp, list[UOp]]:
  """Return the split of (64, 8) x (8, 32), with two waves along the rows."""
  return {axis(64, 0): parts(1, (8, "GLOBAL"), (2, "LOCAL"), (4, "UPCAST")),
          axis(32, 1): parts(2, (4, "GLOBAL"), (8, "LOCAL")),
          axis(8, 2, "REDUCE"): parts(3, (2, "REDUCE"), (4, "UNROLL"))}

def test_the_last_parts_are_in_the_unit() -> None:
  pieces = split()
  rows, columns, steps = pieces.values()
  tile = tile_of(OPTS, pieces)
  assert tile is not None and (tile.rows, tile.columns, tile.steps) == (rows[-1], columns[-1], steps[-1])
  assert ((tile.row.size, tile.column.size, tile.step.size) == (8, 8, 4) and tile.lanes == (rows[1], columns[1])
          and not tile.bulk)

def test_loops_belong_to_the_tile_where_they_are_blocked() -> None:
  tile = tile_of((*OPTS, Opt(OptOps.BLOCK, 2, 2), Opt(OptOps.BULK_COPY, 2, 1)), split())
  assert tile is not None and tile.step.size == 8 and tile.bulk

def test_no_tile_without_all_three() -> None:
  pieces = split()
  assert tile_of(OPTS[3:], pieces) is None
  peeled = {r: p[:-1] if r.arg[0] == 1 else p for r, p in pieces.items()}
  assert tile_of(OPTS, peeled) is None

def test_numbers_of_lanes_and_elements() -> None:
  unit, lane = by_columns(4, 8, 4, dtypes.float32, dtypes.float32, 8), UOp.const(dtypes.weakint, 3)
  assert unit.c is not None
  for element in range(unit.c.count):
    for name in ("row", "column"):
      assert further(first_index(unit.c, name, lane), unit.c, name, element).arg == unit.c.coordinate(name, 3, element)

def test_positions_are_numbers_of_digits() -> None:
  side = ProductRange(tuple(parts(1, (3, "LOCAL"), (5, "UPCAST"), (4, "UPCAST"))))
  found = position([UOp.const(dtypes.weakint, k) for k in (2, 4, 3)], side)
  assert found.op is Ops.CONST and found.arg == (2 * 5 + 4) * 4 + 3 == side.size - 1
