"""The rows, columns and steps of a product on the matrix unit: their ranges, and the numbering of elements.

MATRIX opts split the ranges of rows, columns and the sum as UPCAST, LOCAL and UNROLL would. Further UPCAST and LOCAL
opts make several matrices of a wave and several waves (chosen by matrix_tile.py). The columns' range becomes the lanes
of a wave. The unit's layouts (uop/matrix.py) give the elements of a lane.
"""
from __future__ import annotations
import math

from tinyhw.codegen.kernel.affine import make, number
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.dtype import dtypes
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.matrix import Layout
from tinyhw.uop.ops import UOp

weakint = dtypes.weakint

class ProductRange(NamedTuple):
  """One of the three ranges of a product under its opts, parts outermost first. The last part is in the unit's matrix.
  """
  parts: tuple[UOp, ...]

  @property
  def size(self) -> int: return math.prod(int(r.src[0].arg) for r in self.parts)

class WorkgroupTile(NamedTuple):
  """The work of a workgroup between two barriers.

  `row`, `column`: parts of the result's rows and columns (waves, matrices of a wave, within a matrix).
  `step`: parts of the sum (loops, repetitions, within a matrix). `lanes`: all LOCAL ranges.
  `bulk`: both operands are copied by bulk copies, if both are tensors.
  `aligned`: memory is accessed only at multiples of the access size.
  """
  row: ProductRange
  column: ProductRange
  step: ProductRange
  lanes: tuple[UOp, ...]
  bulk: bool = False
  aligned: bool = False

  @property
  def rows(self) -> UOp: return self.row.parts[-1]
  @property
  def columns(self) -> UOp: return self.column.parts[-1]
  @property
  def steps(self) -> UOp: return self.step.parts[-1]

def tile_of(opts: tuple[Opt, ...], pieces: dict[UOp, list[UOp]], aligned: bool = False) -> WorkgroupTile | None:
  """Return the tile that MATRIX opts made, if it still exists after peeling.

  pieces: the parts of each range. aligned: as in WorkgroupTile.
  """
  axes = [o.axis for o in opts if o.op is OptOps.MATRIX]
  if not axes: return None
  parts = {r.arg[0]: list(p) for r, p in pieces.items() if r.arg[0] in axes and p}
  if len(parts) < 3: return None
  blocked = any(o.op is OptOps.BLOCK and o.axis == axes[2] for o in opts)
  def parts_of(axis: int, own: AxisType, *others: AxisType) -> ProductRange:
    """Return the parts of these kinds; the unit's part (the innermost of its kind) is last."""
    found = [p for kind in others for p in parts[axis] if p.arg[1] is kind]
    last = [p for p in parts[axis] if p.arg[1] is own][-1:]
    return ProductRange((*(p for p in found if p not in last), *last))
  ranges = (parts_of(axes[0], AxisType.UPCAST, AxisType.LOCAL, AxisType.UPCAST),
            parts_of(axes[1], AxisType.LOCAL, AxisType.LOCAL, AxisType.UPCAST),
            parts_of(axes[2], AxisType.UNROLL, *([AxisType.REDUCE] if blocked else []), AxisType.UNROLL))
  if any(not s.parts or s.parts[-1].arg[1] is not kind
         for s, kind in zip(ranges, (AxisType.UPCAST, AxisType.LOCAL, AxisType.UNROLL))):
    return None
  if blocked:   # of the loops, only the innermost one is between two barriers
    loops = [p for p in ranges[2].parts if p.arg[1] is AxisType.REDUCE]
    ranges = (*ranges[:2], ProductRange(tuple(p for p in ranges[2].parts if p not in loops[:-1])))
  lanes = sorted((p for ps in pieces.values() for p in ps if p.arg[1] is AxisType.LOCAL), key=lambda p: p.arg)
  bulk = any(o.op is OptOps.BULK_COPY and o.axis == axes[2] for o in opts)
  return WorkgroupTile(*ranges, tuple(lanes), bulk, aligned)

def first_index(layout: Layout, axis: str, lane: UOp) -> UOp:
  """Return the row, column or step of the first element of a lane, as an index."""
  total, span = number(0), 1
  for name, radix, stride in layout.lanes:
    if name == axis:
      digit = make(Ops.MOD, weakint, (make(Ops.IDIV, weakint, (lane, number(span))), number(radix)))
      total = make(Ops.ADD, weakint, (make(Ops.MUL, weakint, (digit, number(stride))), total))
    span *= radix
  return total

def further(first: UOp, layout: Layout, axis: str, element: int) -> UOp:
  """Return the row, column or step of another element of the lane."""
  return make(Ops.ADD, weakint, (first, number(layout.coordinate(axis, 0, element))))

def times(u: UOp, factor: int) -> UOp: return make(Ops.MUL, weakint, (u, number(factor)))

def position(digits: list[UOp], extent: ProductRange) -> UOp:
  """Return the number of a row, column or step within the tile, from its digits."""
  total = number(0)
  for digit, r in zip(digits, extent.parts):
    total = make(Ops.ADD, weakint, (make(Ops.MUL, weakint, (total, r.src[0])), digit))
  return total
