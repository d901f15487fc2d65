"""Give a tile of a sum of products to the matrix unit, its factors staged in local memory.

MATRIX opts split the ranges of rows, columns and the sum as UPCAST, LOCAL and UNROLL would: a lane computes m elements of one column, k products for
each. Then `use_matrix` turns all of a tile's products into one MMA. The workgroup first copies the part of each factor that its waves need until the
next barrier to local memory (STAGE), all lanes together; then a lane loads its share of the two matrices. How matrices are shared by lanes is
told at machine.target.Matrix. What a tile does not cover has been peeled before and stays as it is.

MMA(a, b, c) has the vectors of one lane; with lanes, its meaning involves the other lanes, so only a Program can be executed, not the kernel.
"""
from __future__ import annotations
from typing import NamedTuple

from tinyhw.codegen.affine import make, number
from tinyhw.codegen.grid import ranges_of, values_of
from tinyhw.codegen.tiling import Opt, OptOps, substitute
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

weakint = dtypes.weakint

class Tile(NamedTuple):
  """The ranges of a matrix: rows of a lane, columns (lanes), steps of the sum. lanes: all LOCAL ranges; block: the summed ranges of one staging."""
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

def use_matrix(sink: UOp, tile: Tile) -> UOp:
  """sink with the REDUCEs of the tile done by the matrix unit; their stores become one for each row."""
  fresh = 1 + max((u.arg[0] for u in sink.toposort() if u.op is Ops.RANGE), default=0)
  stores: list[UOp] = []
  for store in sink.src:
    found = [u for u in store.toposort() if u.op is Ops.REDUCE and tile.steps in ranges_of(u) and tile.rows in u.ranges and tile.columns in u.ranges]
    if not found:
      stores.append(store)
      continue
    products = {u: product(u, tile, fresh + 2 * k, 2 * k) for k, u in enumerate(found)}
    ranges = tuple(r for r in ranges_of(store) if r is not tile.rows)
    for row in range(int(tile.rows.src[0].arg)):
      changes: dict[UOp, UOp] = {tile.rows: number(row)}
      changes.update((u, UOp(Ops.GEP, u.dtype, (p,), row)) for u, p in products.items())
      stores.append(UOp(Ops.STORE, store.dtype, tuple(substitute(s, changes) for s in values_of(store)) + ranges, store.arg))
  return sink.replace(src=tuple(stores))

def product(u: UOp, tile: Tile, fresh: int, stage: int) -> UOp:
  """The matrix of sums, of which each lane has its vector. fresh: ids for two ranges, stage: two for STAGEs."""
  x, y = u.src[0].src
  if tile.rows not in x.ranges: x, y = y, x
  m, n, k = (int(r.src[0].arg) for r in (tile.rows, tile.columns, tile.steps))
  row = make(Ops.MOD, weakint, (tile.columns, number(m)))  # the matrix's lanes number its columns
  a = share(x, tile, {tile.rows: row}, fresh, stage)
  b = share(y, tile, {}, fresh + 1, stage + 1)
  dtype = u.dtype.vec(m)
  result = UOp(Ops.MMA, dtype, (a, b, UOp(Ops.CONST, dtype, (), u.dtype.const(0))), (m, n, k, n))
  loops = tuple(r for r in ranges_of(u) if r is not tile.steps)
  return UOp(Ops.REDUCE, dtype, (result, *loops), u.arg) if loops else result

def share(x: UOp, tile: Tile, mine: dict[UOp, UOp], fresh: int, stage: int) -> UOp:
  """A lane's elements of a factor, along the steps, from local memory. mine: which of the tile's rows the lane has."""
  axes = [r for r in (*tile.lanes, tile.rows, *tile.block, tile.steps) if r in x.ranges]
  local = staged(x, axes, tile, fresh, stage)
  elements = []
  for step in range(int(tile.steps.src[0].arg)):
    place = number(0)
    for r in axes: place = make(Ops.ADD, weakint, (make(Ops.MUL, weakint, (place, r.src[0])), number(step) if r is tile.steps else mine.get(r, r)))
    elements.append(UOp(Ops.LOAD, x.dtype, (UOp(Ops.INDEX, x.dtype, (local, place)),)))
  return UOp(Ops.VECTORIZE, x.dtype.vec(len(elements)), tuple(elements))

def staged(x: UOp, axes: list[UOp], tile: Tile, fresh: int, stage: int) -> UOp:
  """x at all points of axes, in row-major order, in local memory: each lane of the workgroup computes every so many-th element."""
  count, workgroup = 1, 1
  for r in axes: count *= int(r.src[0].arg)
  for r in tile.lanes: workgroup *= int(r.src[0].arg)
  turns = -(-count // workgroup)
  place = turn = UOp(Ops.RANGE, weakint, (number(turns),), (fresh, AxisType.STAGE))
  for r in tile.lanes: place = make(Ops.ADD, weakint, (make(Ops.MUL, weakint, (place, r.src[0])), r))
  if turns * workgroup != count: place = make(Ops.MOD, weakint, (place, number(count)))  # the last elements are made twice
  points: dict[UOp, UOp] = {}
  for r in reversed(axes):
    points[r] = make(Ops.MOD, weakint, (place, r.src[0])) if r is not axes[0] else place
    place = make(Ops.IDIV, weakint, (place, r.src[0]))
  return UOp(Ops.STAGE, x.dtype, (substitute(x, points), turn, *tile.lanes), (stage,))
