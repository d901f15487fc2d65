"""Choose the tile of a kernel that keeps rows between two products: attention (engine/schedule/kept_rows.py).

Lanes and repetitions run along the rows. So all lanes share the elements of the other operands, each fold of a row is a
fold of registers, and no reduction crosses lanes. The products have repetitions along the row and along the columns of
the result. The tile is the cheapest one by the model of register_tile.py, summed over both products, whose rows fit
into shared memory.
"""
from __future__ import annotations
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tinyhw.codegen.kernel.access import access_of
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.lower.expand import CHAINS
from tinyhw.codegen.plan.reads import ReadPlan, ReductionLoad, RegisterTile, computed
from tinyhw.codegen.plan.register_tile import TILE_FACTORS, CostModel
from tinyhw.codegen.transform.tiling import Opt, OptOps, part_of, size_of, width_along
from tinyhw.machine.ir.target import Capabilities
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

if TYPE_CHECKING:
  from tinyhw.codegen.plan.heuristic import Nest

MOST_ROW_VECTORS = 4       # of a tile: more leave no registers for a second direction

class TiledProduct(NamedTuple):
  """A product of the kernel: its model, and the loop besides the rows along which a tile has repetitions."""
  model: CostModel
  columns: UOp

class Tiling(NamedTuple):
  """Tiles of all products with the same number of vectors along the rows, and their cost in cycles."""
  cost: float
  vectors: int
  tiles: list[RegisterTile]

def rows_of(nest: Nest) -> UOp | None:
  """Return the loop over the rows that a kernel keeps; None for a kernel that keeps none."""
  stages = [u for u in nest.store.toposort() if u.op is Ops.STAGE]
  found = [r for r in nest.ranges if all(r in stage.ranges for stage in stages) and size_of(r) > 1]
  return found[-1] if stages and found else None

def kept_rows(nest: Nest, rows: UOp, lanes: int, capabilities: Capabilities) -> tuple[Opt, ...]:
  """Return the opts of a kernel that keeps rows. rows: the loop over them."""
  lanes = width_along(rows, lanes)
  outer = nest.ranges[:nest.ranges.index(rows) + 1]
  nodes = nest.store.toposort()
  products = products_of(nest, nodes, rows, lanes, capabilities)
  bytes = max(size_of(r) * u.dtype.itemsize for u in nodes if u.op is Ops.STAGE for r in ranges_of(u))
  found = [tiled(products, rows, n) for n in range(1, min(MOST_ROW_VECTORS, -(-size_of(rows) // lanes)) + 1)
           if n == 1 or bytes * n * lanes <= capabilities.local_bytes]
  best = min([t for t in found if t is not None], key=lambda t: t.cost, default=Tiling(0, 1, []))
  repetitions = {r: n for t in best.tiles for r, n in t.repetitions.items() if n > 1}
  opts = [Opt(OptOps.VECTOR, rows.arg[0], lanes), *[Opt(OptOps.UPCAST, r.arg[0], n) for r, n in repetitions.items()]]
  opts += dict.fromkeys(o for product, tile in zip(products, best.tiles) for o in panels(product.model, tile))
  done = {r for p in products for r in (p.columns, *p.model.reduce_ranges)}
  opts += folds(nodes, done, best.vectors)
  return (*opts, *[Opt(OptOps.GRID, r.arg[0]) for r in outer if size_of(r) != 1])

def products_of(nest: Nest, nodes: Iterable[UOp], rows: UOp, lanes: int, capabilities: Capabilities
                ) -> list[TiledProduct]:
  """Return the products that fill arrays, and the one of the results."""
  found: list[TiledProduct] = []
  for closing in (*[u for u in nodes if u.op is Ops.STAGE], nest.store):
    loops = ranges_of(closing) if closing is not nest.store else nest.ranges
    sums = [u for u in closing.toposort(lambda u: u.op not in (Ops.STAGE, Ops.REDUCE) or u is closing)
            if u.op is Ops.REDUCE and set(loops[-1:]) < set(u.ranges)]
    if not sums or not size_of(loops[-1]): continue
    inside = [access_of(v) for u in sums for v in computed(u.src[0]) if v.op is Ops.LOAD]
    ranges = nest.ranges if closing is nest.store else (*nest.ranges[:nest.ranges.index(rows) + 1], *loops)
    stores = [a for a in nest.accesses if a.is_store] if closing is nest.store else []
    product = nest._replace(ranges=ranges, reduces=sums, accesses=[*inside, *stores])
    found.append(TiledProduct(CostModel(product, sums, lanes, capabilities), loops[-1]))
  return found

def tiled(products: list[TiledProduct], rows: UOp, vectors: int) -> Tiling | None:
  """Return the cheapest tiles with a number of vectors along the rows; None if some product has none."""
  total, tiles = 0.0, []
  for model, columns in products:
    plans = [plans_of(operand, rows) for operand in model.loads]
    costs = [(cost, m) for m in TILE_FACTORS if m <= size_of(columns)
             and (cost := model.cost(RegisterTile(rows, {rows: vectors, columns: m}), plans)) is not None]
    if not costs: return None
    cost, m = min(costs)
    total += cost * model.terms * math.prod(max(size_of(r), 1) for r in model.nest.ranges)
    tiles.append(RegisterTile(rows, {rows: vectors, columns: m}))
  return Tiling(total, vectors, tiles)

def plans_of(operand: ReductionLoad, rows: UOp) -> list[ReadPlan]:
  return [plan for plan in operand.plans(rows) if plan.window is None]

def panels(model: CostModel, tile: RegisterTile) -> list[Opt]:
  """Return opts for the operands that are copied to panels."""
  readings = model.readings(tile, [plans_of(operand, tile.vector) for operand in model.loads])
  return [one.plan.opt for one in readings if one.plan.opt is not None]

def folds(nodes: Iterable[UOp], done: set[UOp], vectors: int) -> list[Opt]:
  """Return repetitions of the loops along a row that are no product: short bodies count less often, and additions do
  not wait for each other."""
  opts: list[Opt] = []
  for u in nodes:
    if u.op not in (Ops.STAGE, Ops.REDUCE): continue
    body = u.src[0].toposort(lambda v: v.op not in (Ops.STAGE, Ops.REDUCE))
    long = any(v.op in GroupOp.Transcendental for v in body)
    for r in ranges_of(u):
      n = 1 if long or r in done else part_of(size_of(r), max(CHAINS // vectors, 1))
      if n > 1: opts.append(Opt(OptOps.UPCAST, r.arg[0], n))
  return list(dict.fromkeys(opts))
