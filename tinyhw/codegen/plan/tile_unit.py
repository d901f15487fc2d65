"""Choose tiles of a CPU's matrix unit (transform/tile_sums.py) for a sum of products of words: rows along one loop,
columns along another one.

`down` by `across` tiles of results are in registers, so that one tile of an operand serves several products. Rows are
read from where they are, columns from a panel. The panel has the columns of several such tiles, as shared memory has
room: so rows come from memory once for all of these, and then from the second cache. The cost is that of a register
tile (register_tile.py), in cycles for an element and a step of the sum. So both are compared.
"""
from __future__ import annotations
import itertools
import math

from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.plan.reads import TRANSPOSE_COST, OperandRead, ReadPlan, ReductionLoad, RegisterTile
from tinyhw.codegen.plan.register_tile import LOOP_COST, STORE_STREAM_COST, CostModel, TileWork, stage_grid, wasted
from tinyhw.codegen.transform.tile_sums import unit_for
from tinyhw.codegen.transform.tiling import Opt, OptOps, size_of
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.matrix import Matrix
from tinyhw.uop.ops import UOp

SHAPES = ((2, 2), (1, 3), (3, 1), (1, 2), (2, 1), (1, 1))  # tiles down and across; with those of operands at most eight
UNIT_CYCLES = 16.0     # of a product of two tiles
TILE_LOADS = 40.0      # of loading a tile from the second cache, in loads of a vector
MOST_PARTS = 16        # into which columns are cut for panels
RESULT_LOADS = 2.0     # of a result, which is stored to scratch memory and loaded from there

class UnitChoice(NamedTuple):
  """Opts and their cost, in cycles for an element and a step of the sum."""
  opts: tuple[Opt, ...]
  cost: float

class UnitTile(NamedTuple):
  """Tiles of results: those in registers, and those that read one panel, which has `blocks` times the columns."""
  registers: RegisterTile
  staged: RegisterTile
  blocks: int

class UnitProduct(NamedTuple):
  """A sum of products of words whose operands suit the unit: x has the rows, y the columns."""
  matrix: Matrix
  rows: UOp
  columns: UOp
  steps: UOp
  x: ReductionLoad
  y: ReductionLoad

def best(model: CostModel, limit: float) -> UnitChoice | None:
  """Return the opts of the cheapest tiles; None if none costs less than the limit."""
  found: UnitChoice | None = None
  for product in products_of(model):
    for down, across in SHAPES:
      packed = next(plan for plan in product.y.plans(product.columns) if plan.opt is not None and plan.window is None)
      for tile in tiles_of(model, product, down, across):
        cost = cost_of(model, product, tile, packed)
        if cost < limit: found, limit = UnitChoice(opts_of(model, product, tile, packed), cost), cost
  return found

def tiles_of(model: CostModel, p: UnitProduct, down: int, across: int) -> list[UnitTile]:
  """Return the tiles of a shape: with a panel for one of them, and with the largest ones that shared memory holds."""
  n, rows = p.matrix.n * across, {p.rows: p.matrix.m * down}
  if size_of(p.rows) < rows[p.rows] or size_of(p.columns) < n: return []
  registers = RegisterTile(p.columns, {**rows, p.columns: across})
  most = min(model.capabilities.local_bytes // p.y.panel_bytes(registers.repetitions), -(-size_of(p.columns) // n))
  sizes = dict.fromkeys(size_of(p.columns) // n // parts for parts in range(1, MOST_PARTS))
  return [UnitTile(registers, RegisterTile(p.columns, {**rows, p.columns: across * blocks}), blocks)
          for blocks in dict.fromkeys((1, *[k for k in sizes if 1 < k <= most])) if blocks <= most]

def products_of(model: CostModel) -> list[UnitProduct]:
  """Return the ways in which the unit can compute the sum: the loops that become rows, columns and steps.

  A panel has a loop to fill it, so there are several steps.
  """
  if len(model.reduces) != 1 or len(model.loads) != 2 or model.nest.in_place: return []
  found: list[UnitProduct] = []
  for (x, y), rows, columns, steps in itertools.product(itertools.permutations(model.loads), model.nest.ranges,
                                                        model.nest.ranges, ranges_of(model.reduces[0])):
    matrix = unit_for(model.reduces[0], rows, model.capabilities.matrix)
    if matrix is None or model.lanes != matrix.n: continue
    sizes = all(size_of(r) >= n for r, n in ((rows, matrix.m), (columns, matrix.n), (steps, 2 * matrix.k)))
    if not sizes or rows in y.ranges or columns in x.ranges or not are_rows(x, rows, steps): continue
    if columns in y.ranges and steps in y.ranges and y.slot is not None and not y.gathered:
      found.append(UnitProduct(matrix, rows, columns, steps, x, y))
  return found

def are_rows(x: ReductionLoad, rows: UOp, steps: UOp) -> bool:
  """Are the steps of an operand adjacent, and its rows at one distance?"""
  strides = x.access.strides
  return (not x.gated and x.slot is not None and strides.get(steps) == 1 and strides.get(rows, 0) > 0
          and not {rows, steps} & x.access.opaque)

def cost_of(model: CostModel, p: UnitProduct, tile: UnitTile, packed: ReadPlan) -> float:
  """Return the cost of tiles. packed: how the operand with the columns is read."""
  t, whole = tile.registers, tile.staged
  down, across = t.repetitions[p.rows] // p.matrix.m, t.repetitions[p.columns]
  plans = [ReadPlan(0.0), packed] if p.x is model.loads[0] else [packed, ReadPlan(0.0)]
  far = model.traffic(whole, plans)    # of rows that come from a far cache, which delays the unit
  fill = packed.fill * p.y.elements_read(t.repetitions) * p.y.work_items(packed, whole).parts
  for r in packed.within: fill *= t.repetitions.get(r, 1)
  work = work_of(model, p, t, down * across)
  reads = [OperandRead(n * TILE_LOADS / p.matrix.k, cycles, plan)
           for n, cycles, plan in ((down, far / work.share, ReadPlan(0.0)), (across, fill, packed))]
  found = model.cycles_of(whole, reads if p.x is model.loads[0] else reads[::-1], work)
  return math.inf if found is None else found

def work_of(model: CostModel, p: UnitProduct, t: RegisterTile, tiles: int) -> TileWork:
  """Return the work of a step besides reading operands."""
  repetitions = math.prod(t.repetitions.values())
  adjacent = all(a.stride(p.rows) == 1 for a in model.stores)   # then results are transposed on their way to memory
  each = TRANSPOSE_COST * model.lanes if adjacent else model.store_cost(t)
  storing = STORE_STREAM_COST * model.streams(t) + (each + RESULT_LOADS) * repetitions
  waste = wasted(p.rows, t.repetitions[p.rows], 1) * wasted(p.columns, t.repetitions[p.columns], model.lanes)
  return TileWork(tiles * UNIT_CYCLES / p.matrix.k * model.rate, 0.0, LOOP_COST / 2 / p.matrix.k,
                  storing / model.terms, repetitions * model.after / 2 / model.terms,
                  waste / (repetitions * model.lanes))

def opts_of(model: CostModel, p: UnitProduct, tile: UnitTile, packed: ReadPlan) -> tuple[Opt, ...]:
  """Return the opts of tiles."""
  t, whole = tile.registers.repetitions, tile.staged
  amounts = ((p.rows, t[p.rows] // p.matrix.m), (p.columns, t[p.columns]))
  opts = [Opt(OptOps.MATRIX, p.rows.arg[0], p.matrix.m), Opt(OptOps.MATRIX, p.steps.arg[0], p.matrix.k),
          Opt(OptOps.VECTOR, p.columns.arg[0], p.matrix.n)]
  opts += [Opt(OptOps.UPCAST, r.arg[0], n) for r, n in amounts if n > 1]
  opts.append(Opt(OptOps.STAGE, p.y.slot or 0, int(tile.blocks > 1)))
  opts += stage_grid(model, whole, set(p.y.ranges), set(), p.y.reuse_worth(packed, whole))
  if tile.blocks > 1: opts.append(Opt(OptOps.BLOCK, p.columns.arg[0], tile.blocks))    # inside of the rows' loop
  return tuple(opts)
