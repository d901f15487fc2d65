"""Compute a tile of a sum of products on the matrix unit, with its operands staged in shared memory (matrix/local.py).

`use_matrix` turns all of a tile's products into MMAs. The unit's layout maps a lane and an element to a row and a
column. Parts outside of the tile have been peeled before and stay as they are.

MMA(a, b, c) has the vectors of one lane. Its result depends on the other lanes, so only a Program can be executed, not
the kernel.
"""
from __future__ import annotations
import math

from tinyhw.codegen.kernel.affine import linear, make, number
from tinyhw.codegen.kernel.grid import ranges_of, values_of
from tinyhw.codegen.matrix.local import RANGES, share, shared_operands
from tinyhw.codegen.matrix.operands import WorkgroupTile, first_index, further
from tinyhw.codegen.transform.tiling import substitute
from tinyhw.dtype import DType, can_lossless_cast, dtypes
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import Ops
from tinyhw.uop.matrix import PIECE_BYTES, Layout, Matrix, Scattered
from tinyhw.uop.ops import UOp

weakint = dtypes.weakint

def use_matrix(sink: UOp, tile: WorkgroupTile, matrices: tuple[Matrix, ...]) -> UOp:
  """Return sink with the REDUCEs of the tile as MMAs, of a shape of `matrices`.

  Their stores become one for each element of a lane.
  """
  fresh = 1 + max((u.arg[0] for u in sink.toposort() if u.op is Ops.RANGE), default=0)
  stores: list[UOp] = []
  for store in sink.src:
    found = [u for u in store.toposort() if u.op is Ops.REDUCE and tile.steps in ranges_of(u) and tile.rows in u.ranges
             and tile.columns in u.ranges]
    if not found:
      stores.append(store)
      continue
    matrix = unit_of(found[0], tile, matrices)
    assert matrix.c is not None, "only a unit that lanes share is chosen"
    wave = UOp(Ops.RANGE, weakint, (number(matrix.lanes),), tile.columns.arg)
    products = {u: product(u, tile, matrix, wave, fresh + 2 * RANGES * k, 2 * k) for k, u in enumerate(found)}
    ranges = tuple(wave if r is tile.columns else r for r in ranges_of(store) if r is not tile.rows)
    row, column, count = first_index(matrix.c, "row", wave), first_index(matrix.c, "column", wave), matrix.c.count
    width = neighbours(store, found, tile, matrix.c)
    if width > 1:
      stores += [row_stored(store, products[found[0]], row_pieces, width, ranges)
                 for row_pieces in row_pieces_of(store, tile, matrix.c, wave, width)]
      continue
    for element in range(count):
      changes = {tile.rows: further(row, matrix.c, "row", element),
                 tile.columns: further(column, matrix.c, "column", element)}
      changes.update((u, UOp(Ops.GEP, u.dtype, (p,), element)) for u, p in products.items())
      stores.append(UOp(Ops.STORE, store.dtype, tuple(substitute(s, changes) for s in values_of(store)) + ranges))
  return sink.replace(src=tuple(stores))

class RowPieces(NamedTuple):
  """A row of which a lane has elements.

  first: the INDEX of its first element. places: positions of all its pieces, as in uop/matrix.Scattered.
  """
  first: UOp
  places: tuple[tuple[int, int], ...]

def row_pieces_of(store: UOp, tile: WorkgroupTile, layout: Layout, wave: UOp, width: int) -> list[RowPieces]:
  """Return the rows of which a lane has elements, in pieces of this many."""
  pieces: dict[int, list[tuple[int, int]]] = {}   # row -> column and first element of each
  for element in range(0, layout.count, width):
    line, along = (layout.coordinate(axis, 0, element) for axis in ("row", "column"))
    pieces.setdefault(line, []).append((along, element))
  row, column = first_index(layout, "row", wave), first_index(layout, "column", wave)
  found = []
  for down, members in pieces.items():
    least = min(members)[0]
    at = {tile.rows: make(Ops.ADD, weakint, (row, number(down))),
          tile.columns: make(Ops.ADD, weakint, (column, number(least)))}
    found.append(RowPieces(substitute(store.src[0], at),
                           tuple([(element, along - least) for along, element in sorted(members)])))
  return found

def row_stored(store: UOp, value: UOp, row_pieces: RowPieces, width: int, ranges: tuple[UOp, ...]) -> UOp:
  """Return a STORE of a lane's pieces of a row."""
  memory, element = store.src[1].dtype, value.dtype.scalar()
  if len(row_pieces.places) > 1:
    return UOp(Ops.STORE, store.dtype, (row_pieces.first, value, *ranges), Scattered(width, row_pieces.places))
  if width < value.dtype.count: value = UOp(Ops.GEP, element.vec(width), (value,), row_pieces.places[0][0])
  if memory is not element: value = UOp(Ops.CAST, memory.vec(width), (value,))
  return UOp(Ops.STORE, store.dtype, (row_pieces.first, value, *ranges))

def neighbours(store: UOp, found: list[UOp], tile: WorkgroupTile, layout: Layout) -> int:
  """Return how many contiguous elements of a lane a product's store has for certain, aligned to their number.

  This is at most a piece. The elements must be stored unchanged or as float16. 1: `coalesce` may find some.
  """
  index, value, *gate = values_of(store)
  name, radix, stride = layout.elements[0]
  stored = value.src[0] if value.op is Ops.CAST and value.dtype is dtypes.float16 else value
  if gate or (name, stride) != ("column", 1) or stored is not found[0]: return 1
  terms, constant = linear(index.src[1])
  if terms.pop(tile.columns, 0) != 1 or any(tile.columns in term.ranges for term in terms): return 1
  width = math.gcd(radix, PIECE_BYTES // value.dtype.itemsize)
  return width if not any(factor % width for factor in (constant, *terms.values())) else 1

def unit_of(reduction: UOp, tile: WorkgroupTile, matrices: tuple[Matrix, ...]) -> Matrix:
  """Return the shape of the matrix unit that a tile was made for."""
  sizes = tuple(int(r.src[0].arg) for r in (tile.rows, tile.columns, tile.steps))
  return next(x for x in matrices if (x.m, x.n, x.k) == sizes and factors(reduction, x) is not None)

def product(u: UOp, tile: WorkgroupTile, matrix: Matrix, wave: UOp, fresh: int, stage: int) -> UOp:
  """Return the matrix of sums, of which each lane has its vector.

  fresh: ids for 2 * RANGES ranges. stage: ids for two shared arrays.
  """
  x, y = factors(u, matrix) or u.src[0].src
  if tile.rows not in x.ranges: x, y = y, x
  assert matrix.c is not None
  if matrix.shared_operands: a, b = shared_operands(x, y, tile, wave, fresh, stage)
  else:
    a = share(x, tile, tile.row, "row", wave, matrix, matrix.a, fresh, stage)
    b = share(y, tile, tile.column, "column", wave, matrix, matrix.b, fresh + RANGES, stage + 1)
  dtype = u.dtype.vec(matrix.c.count)
  result = UOp(Ops.MMA, dtype, (a, b, UOp(Ops.CONST, dtype, (), u.dtype.const(0))), matrix)
  loops = tuple(r for r in ranges_of(u) if r is not tile.steps)
  return UOp(Ops.REDUCE, dtype, (result, *loops), u.arg) if loops else result

def factors(reduction: UOp, matrix: Matrix) -> tuple[UOp, UOp] | None:
  """Return the operands of a sum of products in the type of the matrix unit.

  Operands that were widened to the type of the sum are converted to the unit's type instead, if that is exact.
  """
  body = reduction.src[0]
  if reduction.arg is not Ops.ADD or body.op is not Ops.MUL or reduction.dtype is not matrix.result: return None
  x, y = (operand_of(without_choice(s), matrix.operand) for s in body.src)
  return None if x is None or y is None else (x, y)

def operand_of(u: UOp, dtype: DType) -> UOp | None:
  """Return an operand in a type of the matrix unit, exactly; None if that is impossible."""
  source = u.src[0] if u.op is Ops.CAST else u
  if source.dtype is dtype: return source
  if u.dtype is dtype: return u
  return UOp(Ops.CAST, dtype, (source,)) if u.op is Ops.CAST and can_lossless_cast(source.dtype, dtype) else None

def without_choice(u: UOp) -> UOp:
  """Return the value of a choice between it and 0, if the choice does nothing: its LOAD has the same gate and gives 0
  there."""
  if u.op is not Ops.WHERE or not is_zero(u.src[2]): return u
  load = u.src[1].src[0] if u.src[1].op is Ops.CAST else u.src[1]
  return (u.src[1] if load.op is Ops.LOAD and len(load.src) > 2 and load.src[1] is u.src[0] and is_zero(load.src[2])
          else u)

def is_zero(u: UOp) -> bool: return u.op is Ops.CONST and u.arg == 0
