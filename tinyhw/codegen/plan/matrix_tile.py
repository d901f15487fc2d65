"""Choose the shape of a product that a wave and a workgroup compute with the matrix unit, as Opts for matrix.py.

Of all shapes that fit into registers and shared memory, the one with the fewest predicted cycles (predict.py) is
chosen. Cost: a prediction of each that fits, of some 300.
"""
from __future__ import annotations
import itertools
import math

from tinyhw.codegen.lower.pipeline import MOST_BYTES, SIGNALS_BYTES, WORKGROUPS
from tinyhw.codegen.matrix.local import MOST_NARROW_ROUNDS, MOST_ROUNDS
from tinyhw.codegen.matrix.ranges import STEPS
from tinyhw.codegen.plan.predict import predict
from tinyhw.codegen.plan.tile_shape import (
  ARRAYS, LONG_STEPS, PlannedProduct, TileShape, accesses_per_lane, local_bytes, registers)
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.machine.ir.target import Capabilities
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.matrix import PIECE_BYTES, Matrix
from tinyhw.uop.ops import UOp

WAVES = (1, 2)             # of a workgroup along each operand
GROUPS = (1, 2, 3, 4)      # of waves that compute a matrix of shared operands together, along the rows
MATRICES = (1, 2, 4, 8)    # of a wave along each operand; 8 of them only
MOST_OF_EIGHT = 64         # where they have no more rows or columns than this together
UNIT_WAVES = 8             # that should be resident together where copies run ahead: two for each SIMD of a unit
CARRYING = 4               # of OTHER_REGISTERS: those that a lane with pieces in registers does without

class Choice(NamedTuple):
  """Opts and the predicted cycles of the product. bulk: operands are copied by bulk copies."""
  opts: tuple[Opt, ...]
  cost: float
  bulk: bool = False

def tile(m: UOp, n: UOp, k: UOp, product: PlannedProduct, matrix: Matrix, capabilities: Capabilities,
         exact: bool = False) -> Choice | None:
  """Return the best shape for ranges of rows, columns and the sum, as Opts.

  product: of these sizes. exact: nothing may be computed twice, since the kernel reads the buffer that it overwrites.
  Return None then if no shape divides the sizes.
  """
  counts = (GROUPS, (1,), (1,), (1,), (1, 2)) if matrix.shared_operands else (WAVES, WAVES, MATRICES, MATRICES, STEPS)
  fitting = [s for s in map(TileShape._make, itertools.product(*counts)) if fits(s, product, matrix, capabilities)]
  if exact: fitting = [s for s in fitting if product.rows % s.rows(matrix) == product.columns % s.columns(matrix) == 0]
  if not fitting and (exact or matrix.shared_operands): return None
  costs = {s: predict(s, product, matrix, capabilities) for s in fitting or [TileShape(1, 1, 1, 1, 1)]}
  best = min(costs, key=costs.__getitem__)
  opts = [Opt(OptOps.MATRIX, m.arg[0], matrix.m), Opt(OptOps.MATRIX, n.arg[0], matrix.n),
          Opt(OptOps.MATRIX, k.arg[0], matrix.k)]
  opts += [Opt(OptOps.UPCAST, r.arg[0], amount)
           for r, amount in ((m, best.tiles_m), (n, best.tiles_n), (k, best.steps_k)) if amount > 1]
  opts += [Opt(OptOps.LOCAL, r.arg[0], amount) for r, amount in ((m, best.warps_m), (n, best.warps_n)) if amount > 1]
  if product.bulk: opts.append(Opt(OptOps.BULK_COPY, k.arg[0], 1))
  return Choice(tuple(opts), costs[best], product.bulk)

def in_order(opts: tuple[Opt, ...], sizes: dict[int, int], capabilities: Capabilities) -> tuple[Opt, ...]:
  """Return the opts of a product with the grid in the better order: along its rows or along its columns first.

  The workgroups that run at once read the fewest bytes in that order. sizes: of ranges, by axis.
  """
  axes = [o.axis for o in opts if o.op is OptOps.MATRIX][:2]
  last = [o for o in opts if o.op is OptOps.GRID][-2:]
  if len(axes) < 2 or not capabilities.lanes or [o.axis for o in last] != axes: return opts
  long = [math.prod(o.amount for o in opts if o.axis == axis and o.op is not OptOps.GRID) for axis in axes]
  counts = [-(-sizes[axis] // part) for axis, part in zip(axes, long)]
  running = max(capabilities.threads // UNIT_WAVES // 2, 1)
  def read(fast: int) -> int:
    return min(counts[fast], running) * long[fast] + -(-running // counts[fast]) * long[1 - fast]
  return opts if read(1) <= read(0) else (*[o for o in opts if o not in last], *reversed(last))

def fits(s: TileShape, product: PlannedProduct, matrix: Matrix, capabilities: Capabilities) -> bool:
  """Is the shape no larger than the product, and does it fit into registers and shared memory?"""
  if s.rows(matrix) > product.rows or s.columns(matrix) > product.columns: return False
  if matrix.shared_operands: return shared_operands_fit(s, product, matrix, capabilities)
  if s.tiles_m == 8 and s.tiles_m * matrix.m > MOST_OF_EIGHT or s.tiles_n == 8 and s.tiles_n * matrix.n > MOST_OF_EIGHT:
    return False
  if product.terms // matrix.k % s.steps_k: return False
  if registers(s, matrix, product, capabilities) > capabilities.vector_registers and s[2:4] != (1, 1): return False
  if not capabilities.copies: return local_bytes(s, matrix, 1) <= capabilities.local_bytes
  resident = max(WORKGROUPS, UNIT_WAVES // (s.warps_m * s.warps_n))
  return (resident * local_bytes(s, matrix, ARRAYS) <= capabilities.local_bytes
          and max(accesses_per_lane(s, matrix, PlannedProduct(*product[:4]))) <= MOST_ROUNDS)

def shared_operands_fit(s: TileShape, product: PlannedProduct, matrix: Matrix, capabilities: Capabilities) -> bool:
  """The same for a unit that reads shared memory. The copies must also be able to run ahead (prefetch.py)."""
  steps = s.steps_k * matrix.k
  if product.terms % steps or ARRAYS * steps > product.terms: return False
  own = capabilities.unit_registers // (s.warps_m * s.warps_n * matrix.lanes) // 8 * 8 - capabilities.hidden_registers
  each = [math.ceil(n) for n in accesses_per_lane(s, matrix, product)]
  if not product.bulk and any(n > (MOST_ROUNDS if operand.accesses == 1 else MOST_NARROW_ROUNDS)
                              for n, operand in zip(each, product.operands)):
    return False
  # of a lane, each in a register of its own
  carried = [(n, PIECE_BYTES // operand.accesses) for n, operand in zip(each, product.operands) if operand.is_carried]
  if sum([n * size for n, size in carried]) > MOST_BYTES: return False
  needed = registers(s, matrix, product, capabilities, 1 + (product.terms > LONG_STEPS))
  if carried: needed += sum([n for n, _ in carried]) - CARRYING
  if needed > min(capabilities.vector_registers, own): return False
  return local_bytes(s, matrix, ARRAYS) + product.bulk * SIGNALS_BYTES <= capabilities.local_bytes
