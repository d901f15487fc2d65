"""Note which sums of an optimised kernel are for the matrix unit of a CPU, whose operands and results are registers for
whole tiles.

The unit multiplies words (DOT2, DOT4). So a sum of these over a tile of rows, of columns and of steps is one MMA. Its
ranges are as in a register tile: lanes of a vector are the columns, rows and steps are unrolled. So the kernel means
what it says, and a sum that turns out to be unsuitable is computed with vectors. The pass `tiles` replaces the others.
"""
from __future__ import annotations

from tinyhw import trace
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.dtype import dtypes
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.matrix import Matrix
from tinyhw.uop.ops import UOp

DOTS = {Ops.DOT4: dtypes.int8, Ops.DOT2: dtypes.bfloat16}   # the types of elements, but for their signs

class TileProduct(NamedTuple):
  """The tag of a REDUCE for the unit: the numbers of the ranges that are rows, columns and steps of a tile."""
  matrix: Matrix
  rows: int
  columns: int
  steps: int

def load_of(factor: UOp) -> UOp | None:
  """Return the load of a factor whose words are as in memory; None where they are computed, such as those of a mask."""
  load = factor.src[0] if factor.op is Ops.BITCAST else factor
  return load if load.op is Ops.LOAD else None

def factors_by(reduce: UOp, row: UOp) -> tuple[UOp, UOp] | None:
  """Return the factors of a sum of products of loaded words: first the one that depends on the row."""
  body = reduce.src[0]
  if reduce.arg is not Ops.ADD or body.op not in DOTS or body.src[2].op is not Ops.CONST or body.src[2].arg: return None
  if any(load_of(s) is None for s in body.src[:2]): return None
  x, y = body.src[:2] if row in body.src[0].ranges else body.src[1::-1]
  return (x, y) if row in x.ranges and row not in y.ranges else None

def unit_for(reduce: UOp, row: UOp, matrices: tuple[Matrix, ...]) -> Matrix | None:
  """Return the shape of the matrix unit that computes a sum of products of words."""
  factors, op = factors_by(reduce, row), reduce.src[0].op
  words = tuple(dtypes.uint8 if op is Ops.DOT4 and s.dtype is dtypes.uint32 else DOTS[op] for s in factors or ())
  return next((m for m in matrices if m.words == words), None)

def mark(sink: UOp, opts: tuple[Opt, ...], pieces: dict[UOp, list[UOp]], matrices: tuple[Matrix, ...]) -> UOp:
  """Return an optimised kernel with tags on the sums that are for the unit.

  opts: two MATRIX, for rows and steps, and a VECTOR for columns. pieces: the parts of each range before it was split.
  """
  axes = [o.axis for o in opts if o.op is OptOps.MATRIX]
  columns = next((o.axis for o in opts if o.op is OptOps.VECTOR), -1)
  last = {r.arg[0]: parts[-1] for r, parts in pieces.items() if parts}
  if len(axes) != 2 or not {*axes, columns} <= last.keys(): return sink
  row, step, column = last[axes[0]], last[axes[1]], last[columns]
  if (row.arg[1], step.arg[1], column.arg[1]) != (AxisType.UPCAST, AxisType.UNROLL, AxisType.VECTOR): return sink
  sizes = tuple(int(r.src[0].arg) for r in (row, column, step))
  changes: dict[UOp, UOp] = {}
  for u in sink.toposort():
    if u.op is not Ops.REDUCE or step not in ranges_of(u) or row not in u.ranges or column not in u.ranges: continue
    matrix = unit_for(u, row, tuple(m for m in matrices if (m.m, m.n, m.k) == sizes))
    if matrix is not None: changes[u] = u.replace(tag=TileProduct(matrix, row.arg[0], column.arg[0], step.arg[0]))
  trace.hand_on(changes)
  return sink.substitute(changes)
