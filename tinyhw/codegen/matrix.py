"""Give a tile of a sum of products to the matrix unit, its factors staged in local memory.

MATRIX opts split the ranges of rows, columns and the sum as UPCAST, LOCAL and UNROLL would. Then `use_matrix` turns all of a tile's products into one
MMA: the columns' range becomes the lanes of a wave, and rows and columns of the tile become what the unit's layout says of a lane and an element
(uop/matrix.py). The workgroup first copies the part of each factor that its waves need until the next barrier to local memory (STAGE), all lanes
together; then a lane loads its share of the two matrices. What a tile does not cover has been peeled before and stays as it is.

MMA(a, b, c) has the vectors of one lane; with lanes, its meaning involves the other lanes, so only a Program can be executed, not the kernel.
"""
from __future__ import annotations
from typing import NamedTuple

from tinyhw.codegen.affine import make, number
from tinyhw.codegen.grid import ranges_of, values_of
from tinyhw.codegen.tiling import Opt, OptOps, substitute
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.matrix import Layout, Matrix
from tinyhw.uop.ops import UOp

weakint = dtypes.weakint

class Tile(NamedTuple):
  """The ranges of a matrix: rows, columns (lanes), steps of the sum. lanes: all LOCAL ranges; block: the summed ranges of one staging."""
  rows: UOp
  columns: UOp
  steps: UOp
  lanes: tuple[UOp, ...]
  block: tuple[UOp, ...]

def tile_of(opts: tuple[Opt, ...], pieces: dict[UOp, list[UOp]]) -> Tile | None:
  """The tile that MATRIX opts made, if it is still there after peeling. pieces: what became of each range."""
  axes = [o.axis for o in opts if o.op is OptOps.MATRIX]
  if not axes: return None
  parts = {r.arg[0]: list(p) for r, p in pieces.items() if r.arg[0] in axes and p}
  if len(parts) < 3: return None
  def last(axis: int, kind: AxisType) -> UOp | None: return next((p for p in reversed(parts[axis]) if p.arg[1] is kind), None)
  rows, columns, steps = (last(axis, kind) for axis, kind in zip(axes, (AxisType.UPCAST, AxisType.LOCAL, AxisType.UNROLL)))
  if rows is None or columns is None or steps is None: return None
  blocked = any(o.op is OptOps.BLOCK and o.axis == axes[2] for o in opts)
  block = tuple([p for p in parts[axes[2]] if p.arg[1] is AxisType.REDUCE][-1:]) if blocked else ()
  lanes = sorted((p for ps in pieces.values() for p in ps if p.arg[1] is AxisType.LOCAL), key=lambda p: p.arg)
  return Tile(rows, columns, steps, tuple(lanes), block)

def use_matrix(sink: UOp, tile: Tile, matrices: tuple[Matrix, ...]) -> UOp:
  """sink with the REDUCEs of the tile done by the matrix unit, of a shape of `matrices`; their stores become one for each element of a lane."""
  fresh = 1 + max((u.arg[0] for u in sink.toposort() if u.op is Ops.RANGE), default=0)
  stores: list[UOp] = []
  for store in sink.src:
    found = [u for u in store.toposort() if u.op is Ops.REDUCE and tile.steps in ranges_of(u) and tile.rows in u.ranges and tile.columns in u.ranges]
    if not found:
      stores.append(store)
      continue
    matrix = unit_of(found[0], tile, matrices)
    assert matrix.c is not None, "only a unit that lanes share is chosen"
    wave = UOp(Ops.RANGE, weakint, (number(matrix.lanes),), tile.columns.arg)
    products = {u: product(u, tile, matrix, wave, fresh + 2 * k, 2 * k) for k, u in enumerate(found)}
    ranges = tuple(wave if r is tile.columns else r for r in ranges_of(store) if r is not tile.rows)
    for element in range(matrix.c.count):
      changes = {tile.rows: place(matrix.c, "row", wave, element), tile.columns: place(matrix.c, "column", wave, element)}
      changes.update((u, UOp(Ops.GEP, u.dtype, (p,), element)) for u, p in products.items())
      stores.append(UOp(Ops.STORE, store.dtype, tuple(substitute(s, changes) for s in values_of(store)) + ranges, store.arg))
  return sink.replace(src=tuple(stores))

def unit_of(reduction: UOp, tile: Tile, matrices: tuple[Matrix, ...]) -> Matrix:
  """The shape that a tile was made for."""
  sizes = tuple(int(r.src[0].arg) for r in (tile.rows, tile.columns, tile.steps))
  return next(x for x in matrices if (x.m, x.n, x.k) == sizes and factors(reduction, x) is not None)

def place(layout: Layout, axis: str, lane: UOp, element: int) -> UOp:
  """The row, column or step of an element of a lane, as an index."""
  total, span = number(layout.place(axis, 0, element)), 1
  for name, radix, stride in layout.lanes:
    if name == axis:
      digit = make(Ops.MOD, weakint, (make(Ops.IDIV, weakint, (lane, number(span))), number(radix)))
      total = make(Ops.ADD, weakint, (make(Ops.MUL, weakint, (digit, number(stride))), total))
    span *= radix
  return total

def product(u: UOp, tile: Tile, matrix: Matrix, wave: UOp, fresh: int, stage: int) -> UOp:
  """The matrix of sums, of which each lane has its vector. fresh: ids for two ranges, stage: two for STAGEs."""
  x, y = factors(u, matrix) or u.src[0].src
  if tile.rows not in x.ranges: x, y = y, x
  assert matrix.a is not None and matrix.b is not None and matrix.c is not None
  a = share(x, tile, wave, matrix.a, fresh, stage)
  b = share(y, tile, wave, matrix.b, fresh + 1, stage + 1)
  dtype = u.dtype.vec(matrix.c.count)
  result = UOp(Ops.MMA, dtype, (a, b, UOp(Ops.CONST, dtype, (), u.dtype.const(0))), matrix)
  loops = tuple(r for r in ranges_of(u) if r is not tile.steps)
  return UOp(Ops.REDUCE, dtype, (result, *loops), u.arg) if loops else result

def factors(reduction: UOp, matrix: Matrix) -> tuple[UOp, UOp] | None:
  """What a sum of products multiplies, if its types are the matrix unit's; factors may be widened to the type of the sum."""
  body = reduction.src[0]
  if reduction.arg is not Ops.ADD or body.op is not Ops.MUL or reduction.dtype is not matrix.result: return None
  x, y = (s.src[0] if s.op is Ops.CAST and s.src[0].dtype is matrix.operand else s for s in body.src)
  return (x, y) if x.dtype is y.dtype is matrix.operand else None

def share(x: UOp, tile: Tile, wave: UOp, layout: Layout, fresh: int, stage: int) -> UOp:
  """A lane's elements of a factor from local memory."""
  axes = [r for r in (*tile.lanes, tile.rows, *tile.block, tile.steps) if r in x.ranges]
  local = staged(x, axes, tile, wave, fresh, stage)
  names = {tile.rows: "row", tile.columns: "column", tile.steps: "step"}
  places = []
  for element in range(layout.count):
    at = number(0)
    for r in axes:
      digit = place(layout, names[r], wave, element) if r in names else r
      at = make(Ops.ADD, weakint, (make(Ops.MUL, weakint, (at, r.src[0])), digit))
    places.append(UOp(Ops.INDEX, x.dtype, (local, at)))
  dtype = x.dtype.vec(len(places))
  if layout.elements == (("step", layout.count, 1),): return UOp(Ops.LOAD, dtype, (places[0],))  # steps are the last axis
  return UOp(Ops.VECTORIZE, dtype, tuple([UOp(Ops.LOAD, x.dtype, (p,)) for p in places]))

def staged(x: UOp, axes: list[UOp], tile: Tile, wave: UOp, fresh: int, stage: int) -> UOp:
  """x at all points of axes, in row-major order, in local memory: each lane of the workgroup computes every so many-th element."""
  lanes = tuple(wave if r is tile.columns else r for r in tile.lanes)
  count, workgroup = 1, 1
  for r in axes: count *= int(r.src[0].arg)
  for r in lanes: workgroup *= int(r.src[0].arg)
  turns = -(-count // workgroup)
  at = turn = UOp(Ops.RANGE, weakint, (number(turns),), (fresh, AxisType.STAGE))
  for r in lanes: at = make(Ops.ADD, weakint, (make(Ops.MUL, weakint, (at, r.src[0])), r))
  if turns * workgroup != count: at = make(Ops.MOD, weakint, (at, number(count)))  # the last elements are made twice
  points: dict[UOp, UOp] = {}
  for r in reversed(axes):
    points[r] = make(Ops.MOD, weakint, (at, r.src[0])) if r is not axes[0] else at
    at = make(Ops.IDIV, weakint, (at, r.src[0]))
  return UOp(Ops.STAGE, x.dtype, (substitute(x, points), turn, *lanes), (stage,))
