"""Compute the sums that are noted for a CPU's matrix unit (transform/tile_sums.py) with it:

    REDUCE(DOT2(x[row, step], y[step, column], 0), loops, step)
      ->  REDUCE(MMA(tile of x, tile of y, 0), loops)

A tile register is only loaded and stored. So the result goes to an array of scratch memory, and what follows reads it
there. Rows of x are loaded from where they are. Those of y must be adjacent along the columns: a panel (STAGE) is. The
pass runs when shared arrays have their places, since it needs the distance of a tile's rows in memory.
"""
from __future__ import annotations
import math

from tinyhw import trace
from tinyhw.codegen.kernel.access import access_of
from tinyhw.codegen.kernel.affine import linear, make, number
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.transform.stage import TILE, next_array, position_of
from tinyhw.codegen.transform.tile_sums import TileProduct, factors_by, load_of
from tinyhw.codegen.transform.tiling import at_most, size_of, substitute
from tinyhw.dtype import dtypes
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.matrix import MatrixRows
from tinyhw.uop.ops import UOp

weakint = dtypes.weakint

def tiles(sink: UOp, capabilities: Capabilities) -> UOp:
  """Compute sums of products of words with a CPU's matrix unit, where their operands can be tiles."""
  order = sink.toposort()
  found = [u for u in order if u.op is Ops.REDUCE and isinstance(u.tag, TileProduct)]
  if not found: return sink
  array = next_array(order)
  changes = {u: value for k, u in enumerate(found) if (value := _in_tiles(u, u.tag, array + k)) is not None}
  trace.hand_on(changes)
  return _with_adjacent_lanes(sink.substitute(changes), [u.tag for u in changes])

def _with_adjacent_lanes(sink: UOp, tiles: list[TileProduct]) -> UOp:
  """Return the kernel with lanes along the rows of results if only these are adjacent in memory.

  Results come from an array, so lanes may go along either. Rows and columns change their ranges' numbers, too: lanes
  have the last one.
  """
  nodes = sink.toposort()
  ranges = {r.arg[0]: r for r in nodes if r.op is Ops.RANGE}
  if len({tile[1:3] for tile in tiles}) != 1 or not {*tiles[0][1:3]} <= ranges.keys(): return sink
  row, column = ranges[tiles[0].rows], ranges[tiles[0].columns]
  if any(not {row, column} <= set(ranges_of(store)) for store in sink.src): return sink
  if any(u.op in (Ops.REDUCE, Ops.STAGE) and {row, column} & set(ranges_of(u)) for u in nodes): return sink
  stores = [access_of(store) for store in sink.src]
  if any(a.stride(row) != 1 or a.stride(column) == 1 for a in stores): return sink
  return sink.substitute({row: row.replace(arg=column.arg), column: column.replace(arg=row.arg)})

def _in_tiles(u: UOp, tile: TileProduct, array: int) -> UOp | None:
  """Return the value of a sum out of an array that the unit's results are stored to; None if an operand is no tile."""
  ranges = {r.arg[0]: r for r in (*u.ranges, *ranges_of(u))}
  row, column, step = ranges[tile.rows], ranges[tile.columns], ranges[tile.steps]
  factors = factors_by(u, row)
  if factors is None: return None
  a, b = _operand(factors[0], row, step), _operand(factors[1], step, column)
  if a is None or b is None: return None
  a = _prefetching(a, sorted([r for r in u.ranges if r.arg[1] is AxisType.LOOP], key=lambda r: r.arg))
  matrix, closed = tile.matrix, {row, column, *ranges_of(u)}
  own = [r for r in ranges.values() if r.arg[1] in TILE and r not in closed]   # each has a tile of its own
  size = matrix.m * matrix.n
  zero = UOp(Ops.CONST, u.dtype.vec(size), (), u.dtype.const(0))
  total, loops = UOp(Ops.MMA, zero.dtype, (a, b, zero), matrix), [r for r in ranges_of(u) if r is not step]
  if loops: total = UOp(Ops.REDUCE, zero.dtype, (total, *loops), Ops.ADD)
  local = UOp(Ops.DEFINE_LOCAL, u.dtype, (), (array, math.prod(map(size_of, own)) * size))
  first = make(Ops.MUL, weakint, (position_of(own), number(size)))
  store = UOp(Ops.STORE, dtypes.void, (UOp(Ops.INDEX, u.dtype, (local, first)), total, *own))
  filled = UOp(Ops.AFTER, u.dtype, (local, store))
  place = make(Ops.ADD, weakint, (first, position_of([row, column])))
  return UOp(Ops.LOAD, u.dtype, (UOp(Ops.INDEX, u.dtype, (filled, place)),))

def _operand(x: UOp, down: UOp, along: UOp) -> UOp | None:
  """Return the tile of words with a row for each iteration of `down` and a column for each of `along`."""
  load = load_of(x)
  if load is None or len(load.src) != 1: return None
  terms, constant = linear(load.src[0].src[1])
  stride = terms.pop(down, 0)
  if terms.pop(along, 0) != 1 or stride <= 0 or any({down, along} & set(t.ranges) for t in terms): return None
  array, index = load.src[0].src
  first = UOp(Ops.INDEX, load.dtype, (array, substitute(index, {down: number(0), along: number(0)})))
  return UOp(Ops.LOAD, load.dtype.vec(size_of(down) * size_of(along)), (first,), MatrixRows(size_of(down), stride))

def _prefetching(tile: UOp, loops: list[UOp]) -> UOp:
  """Return the load of a tile that also brings rows near for the next iteration of a loop, in equal parts: one for each
  iteration of the loops inside of it that read the same tile again.

  Otherwise all of these wait while the next rows come from memory. loops: the output's, outermost first.
  """
  array, index = tile.src[0].src
  own = [r for r in loops if r in index.ranges]
  again = loops[loops.index(own[-1]) + 1:] if own else []
  if array.op is not Ops.PARAM or not again or not all(map(size_of, (own[-1], *again))): return tile
  rows = -(-tile.arg.rows // math.prod(map(size_of, again)))
  following = at_most(make(Ops.ADD, weakint, (own[-1], number(1))), size_of(own[-1]) - 1)
  part = at_most(make(Ops.MUL, weakint, (position_of(again), number(rows))), tile.arg.rows - rows)
  place = make(Ops.ADD, weakint, (substitute(index, {own[-1]: following}),
                                  make(Ops.MUL, weakint, (part, number(tile.arg.stride)))))
  return tile.replace(src=(*tile.src, UOp(Ops.INDEX, array.dtype, (array, place))),
                      arg=MatrixRows(tile.arg.rows, tile.arg.stride, rows))
