"""Choose tiles of a CPU's matrix unit (transform/tile_sums.py) for a sum of products of words: rows along one loop,
columns along another one.

A work item has `down` by `across` tiles of results in registers, so that one tile of an operand serves several
products. Rows are read from where they are, columns from a panel. The cost is that of a register tile
(register_tile.py), in cycles for an element and a step of the sum. So both are compared.
"""
from __future__ import annotations
import itertools
import math

from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.plan.reads import OperandRead, ReadPlan, ReductionLoad, RegisterTile
from tinyhw.codegen.plan.register_tile import LOOP_COST, STORE_STREAM_COST, CostModel, TileWork, stage_grid, wasted
from tinyhw.codegen.transform.tile_sums import unit_for
from tinyhw.codegen.transform.tiling import Opt, OptOps, size_of
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.matrix import Matrix
from tinyhw.uop.ops import UOp

SHAPES = ((2, 2), (1, 3), (3, 1), (1, 2), (2, 1), (1, 1))  # tiles down and across; with those of operands at most eight
UNIT_CYCLES = 16.0     # of a product of two tiles
TILE_LOADS = 40.0      # of loading a tile from the second cache, in loads of a vector
RESULT_LOADS = 2.0     # of a result, which is stored to scratch memory and loaded from there

class UnitChoice(NamedTuple):
  """Opts and their cost, in cycles for an element and a step of the sum."""
  opts: tuple[Opt, ...]
  cost: float

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
      cost, tile, packed = cost_of(model, product, down, across)
      if cost >= limit: continue
      found, limit = UnitChoice(opts_of(model, product, tile, packed), cost), cost
  return found

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

def cost_of(model: CostModel, p: UnitProduct, down: int, across: int) -> tuple[float, RegisterTile, ReadPlan]:
  """Return the cost of a shape, its tile, and how the operand with the columns is read."""
  t = RegisterTile(p.columns, {p.rows: p.matrix.m * down, p.columns: across})
  packed = next(plan for plan in p.y.plans(p.columns) if plan.opt is not None and plan.window is None)
  if p.y.panel_bytes(t.repetitions) > model.capabilities.local_bytes: return math.inf, t, packed
  if any(size_of(r) < n for r, n in ((p.rows, p.matrix.m * down), (p.columns, p.matrix.n * across))):
    return math.inf, t, packed
  fill = packed.fill * p.y.elements_read(t.repetitions) * p.y.work_items(packed, t).parts
  for r in packed.within: fill *= t.repetitions.get(r, 1)
  reads = [OperandRead(n * TILE_LOADS / p.matrix.k, cycles, plan)
           for n, cycles, plan in ((down, 0.0, ReadPlan(0.0)), (across, fill, packed))]
  found = model.cycles_of(t, reads if p.x is model.loads[0] else reads[::-1], work_of(model, p, t, down * across))
  return (math.inf if found is None else found), t, packed

def work_of(model: CostModel, p: UnitProduct, t: RegisterTile, tiles: int) -> TileWork:
  """Return the work of a step besides reading operands."""
  repetitions = math.prod(t.repetitions.values())
  storing = STORE_STREAM_COST * model.streams(t) + (model.store_cost(t) + RESULT_LOADS) * repetitions
  waste = wasted(p.rows, t.repetitions[p.rows], 1) * wasted(p.columns, t.repetitions[p.columns], model.lanes)
  return TileWork(tiles * UNIT_CYCLES / p.matrix.k * model.rate, 0.0, LOOP_COST / 2 / p.matrix.k,
                  storing / model.terms, repetitions * model.after / 2 / model.terms,
                  waste / (repetitions * model.lanes))

def opts_of(model: CostModel, p: UnitProduct, t: RegisterTile, packed: ReadPlan) -> tuple[Opt, ...]:
  """Return the opts of a shape."""
  amounts = ((p.rows, t.repetitions[p.rows] // p.matrix.m), (p.columns, t.repetitions[p.columns]))
  opts = [Opt(OptOps.MATRIX, p.rows.arg[0], p.matrix.m), Opt(OptOps.MATRIX, p.steps.arg[0], p.matrix.k),
          Opt(OptOps.VECTOR, p.columns.arg[0], p.matrix.n)]
  opts += [Opt(OptOps.UPCAST, r.arg[0], n) for r, n in amounts if n > 1]
  if packed.opt is not None: opts.append(packed.opt)
  return (*opts, *stage_grid(model, t, set(p.y.ranges), set(), p.y.reuse_worth(packed, t)))
