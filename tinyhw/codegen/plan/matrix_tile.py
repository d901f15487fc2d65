"""Choose the shape of a product that a wave and a workgroup compute with the matrix unit, as Opts for matrix.py.

A wave has `tiles_m` by `tiles_n` matrices of the result in registers, so that one load of an operand serves several
products. `warps_m` by `warps_n` waves share the operands that they stage in shared memory. They stage `steps_k` steps
of the unit between two barriers.

All shapes that fit into registers and shared memory get a cost in bytes of shared memory. It counts the loads of a
wave, the bytes that it stages, and its products at PRODUCTS_PER_BYTE. It includes elements that are computed twice
where a shape does not divide the sizes. Fewer waves than the card runs at once take as long as that many. Cost: a
hundred candidates.

A unit that reads its operands from shared memory (`Matrix.shared_operands`) overlaps all this work. The slowest of
four resources counts then: products, shared memory, the caches, and accesses for narrow pieces. Each is counted for the
whole workgroup by the rates in `Capabilities`.
"""
from __future__ import annotations
import itertools
import math

from tinyhw.codegen.lower.pipeline import MOST_BYTES, SIGNALS_BYTES, WORKGROUPS
from tinyhw.codegen.matrix.local import MOST_NARROW_ROUNDS, MOST_ROUNDS
from tinyhw.codegen.matrix.ranges import STEPS
from tinyhw.codegen.transform.tiling import Opt, OptOps, size_of
from tinyhw.machine.ir.target import Capabilities
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.matrix import PIECE_BYTES, WORD_BYTES, Layout, Matrix
from tinyhw.uop.ops import UOp

WAVES = (1, 2)             # of a workgroup along each operand
GROUPS = (1, 2, 3, 4)      # of waves that compute a matrix of shared operands together, along the rows
MATRICES = (1, 2, 4, 8)    # of a wave along each operand; 8 of them only
MOST_OF_EIGHT = 64         # where they have no more rows or columns than this together
PRODUCTS_PER_BYTE = 8      # that a matrix unit computes while shared memory gives it a byte: 2 to 8 on real ones
BARRIER_BYTES = 4096       # cost to a wave of waiting for staged values
# registers of a lane for an element that is loaded alone, in bytes: it also has an address and a gate of its own
SINGLE_BYTES = 12
ANYWHERE_BYTES = 3         # the same where accesses need not be aligned: a lane has fewer addresses of its own
OTHER_REGISTERS = 28       # of a lane that hold neither operands nor sums: addresses, intermediate results

# bytes of a lane's registers for an element of operand A and of operand B; None: the size of an element
Loaded = tuple[int, int] | None

class TileShape(NamedTuple):
  """Waves of a workgroup, matrices of a wave, steps of a staging."""
  warps_m: int
  warps_n: int
  tiles_m: int
  tiles_n: int
  steps_k: int

  def rows(self, matrix: Matrix) -> int: return self.warps_m * self.tiles_m * matrix.m
  def columns(self, matrix: Matrix) -> int: return self.warps_n * self.tiles_n * matrix.n

class Choice(NamedTuple):
  """Opts and their cost for a step of the sum. bulk: operands are copied by bulk copies."""
  opts: tuple[Opt, ...]
  cost: float
  bulk: bool = False

def tile(m: UOp, n: UOp, k: UOp, others: int, matrix: Matrix, capabilities: Capabilities, exact: bool = False,
         bulk: bool = False, loaded: Loaded = None, accesses: tuple[int, int] = (1, 1)) -> Choice | None:
  """Return the best shape for ranges of rows, columns and the sum, as Opts.

  others: the number of such products that the kernel computes.
  exact: nothing may be computed twice, since the kernel reads the buffer that it overwrites. Return None then if no
  shape divides the sizes.
  bulk: operands are copied by bulk copies. loaded: see Loaded.
  accesses: for shared operands, the number of accesses that copy a 16-byte piece of operand A and of operand B.
  """
  sizes = size_of(m), size_of(n), size_of(k)
  counts = (GROUPS, (1,), (1,), (1,), (1, 2)) if matrix.shared_operands else (WAVES, WAVES, MATRICES, MATRICES, STEPS)
  fitting = [s for s in map(TileShape._make, itertools.product(*counts))
             if fits(s, sizes, matrix, capabilities, bulk, loaded, accesses)]
  if exact: fitting = [s for s in fitting if sizes[0] % s.rows(matrix) == sizes[1] % s.columns(matrix) == 0]
  if not fitting and (exact or matrix.shared_operands): return None
  def cost_of(s: TileShape) -> float:
    return (shared_operands_cost(s, sizes, others, matrix, capabilities, accesses) if matrix.shared_operands
            else cost(s, sizes, others, matrix, capabilities))
  best = min(fitting, key=cost_of, default=TileShape(1, 1, 1, 1, 1))
  opts = [Opt(OptOps.MATRIX, m.arg[0], matrix.m), Opt(OptOps.MATRIX, n.arg[0], matrix.n),
          Opt(OptOps.MATRIX, k.arg[0], matrix.k)]
  opts += [Opt(OptOps.UPCAST, r.arg[0], amount)
           for r, amount in ((m, best.tiles_m), (n, best.tiles_n), (k, best.steps_k)) if amount > 1]
  opts += [Opt(OptOps.LOCAL, r.arg[0], amount) for r, amount in ((m, best.warps_m), (n, best.warps_n)) if amount > 1]
  if bulk: opts.append(Opt(OptOps.BULK_COPY, k.arg[0], 1))
  return Choice(tuple(opts), cost_of(best) / matrix.k, bulk)

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

def fits(s: TileShape, sizes: tuple[int, int, int], matrix: Matrix, capabilities: Capabilities, bulk: bool = False,
         loaded: Loaded = None, accesses: tuple[int, int] = (1, 1)) -> bool:
  """Is the shape no larger than the product, and does it fit into registers and shared memory?"""
  m, n, k = sizes
  if matrix.shared_operands: return shared_operands_fit(s, sizes, matrix, capabilities, bulk, accesses)
  if s.tiles_m == 8 and s.tiles_m * matrix.m > MOST_OF_EIGHT or s.tiles_n == 8 and s.tiles_n * matrix.n > MOST_OF_EIGHT:
    return False
  if s.rows(matrix) > m or s.columns(matrix) > n or k // matrix.k % s.steps_k: return False
  if registers(s, matrix, loaded) > capabilities.vector_registers and s[2:4] != (1, 1): return False
  size = staged(s, matrix) * (s.steps_k * matrix.k + PADDING) * matrix.operand.itemsize
  if not capabilities.copies: return WORKGROUPS * size <= capabilities.local_bytes
  return (max(WORKGROUPS, UNIT_WAVES // (s.warps_m * s.warps_n)) * ARRAYS * size <= capabilities.local_bytes
          and max(accesses_per_lane(s, matrix)) <= MOST_ROUNDS)

def shared_operands_fit(s: TileShape, sizes: tuple[int, int, int], matrix: Matrix, capabilities: Capabilities,
                        bulk: bool, accesses: tuple[int, int]) -> bool:
  """The same for a unit that reads shared memory. The copies must also be able to run ahead (prefetch.py)."""
  steps = s.steps_k * matrix.k
  if s.rows(matrix) > sizes[0] or s.columns(matrix) > sizes[1] or sizes[2] % steps or ARRAYS * steps > sizes[2]:
    return False
  own = capabilities.unit_registers // (s.warps_m * s.warps_n * matrix.lanes) // 8 * 8 - capabilities.hidden_registers
  each = [math.ceil(n) for n in accesses_per_lane(s, matrix, accesses)]
  if not bulk and any(n > (MOST_ROUNDS if one == 1 else MOST_NARROW_ROUNDS) for n, one in zip(each, accesses)):
    return False
  # of a lane, each in a register of its own
  carried = [(n, PIECE_BYTES // one) for n, one in zip(each, accesses) if carries(one)]
  if sum([n * size for n, size in carried]) > MOST_BYTES: return False
  needed = registers(s, matrix, variables=1 + (sizes[2] > LONG_STEPS)) + (sum([n for n, _ in carried]) - CARRYING
                                                                          if carried else 0)
  if needed > min(capabilities.vector_registers, own): return False
  return (ARRAYS * staged(s, matrix) * steps * matrix.operand.itemsize + bulk * SIGNALS_BYTES
          <= capabilities.local_bytes)

# of a sum of products of shared operands: a longer sum has one variable for a block and one for all blocks (blocks.py)
LONG_STEPS = 32768
CARRYING = 4    # of OTHER_REGISTERS: those that a lane with pieces in registers does without
LEAST_COPY = 4  # bytes of the smallest asynchronous copy to shared memory
CARRY_BYTES = 3072  # cost of a narrow piece that a lane carries in registers; it waits for its dependences: 24 cycles
# the same for a piece that is copied; other instructions wait for the register of its address: 40 cycles
COPY_BYTES = 5120
UNALIGNED = 1.5  # bytes that the caches deliver for a byte that lanes carry: segments begin inside of their sectors
PADDING = 8     # elements between rows in shared memory, at most
ARRAYS = 4      # of each operand where they are copied some iterations ahead (prefetch.py)
UNIT_WAVES = 8  # that should be resident together then: two for each SIMD of a unit

def accesses_per_lane(s: TileShape, matrix: Matrix, accesses: tuple[int, int] = (1, 1)) -> tuple[float, float]:
  """Return the number of accesses by which a lane copies each operand."""
  lanes = s.warps_m * s.warps_n * matrix.lanes
  each_m, each_n = (rows * s.steps_k * matrix.k * matrix.operand.itemsize / PIECE_BYTES / lanes
                    for rows in rows_and_columns(s, matrix))
  return each_m * accesses[0], each_n * accesses[1]

def carries(accesses: int) -> bool:
  """Do lanes carry an operand through their registers if this many accesses copy a piece?"""
  return PIECE_BYTES // accesses < LEAST_COPY

def rows_and_columns(s: TileShape, matrix: Matrix) -> tuple[int, int]: return s.rows(matrix), s.columns(matrix)

def staged(s: TileShape, matrix: Matrix) -> int:
  """Return the rows and columns of the workgroup's operands."""
  return sum(rows_and_columns(s, matrix))

def registers(s: TileShape, matrix: Matrix, loaded: Loaded = None, variables: int = 1) -> int:
  """Return the registers of a lane: sums, operands of one step, and its part of the next staging.

  loaded: see Loaded. variables: for each sum of products of shared operands.
  """
  sums = s.tiles_m * s.tiles_n * elements(matrix.c) * matrix.result.itemsize * variables
  if matrix.shared_operands: return sums // 4 + OTHER_REGISTERS
  size = matrix.operand.itemsize
  factors = (s.tiles_m * elements(matrix.a) + s.tiles_n * elements(matrix.b)) * size
  lines = sum(n * each for n, each in zip((s.rows(matrix), s.columns(matrix)), loaded or (size, size)))
  return (-(-(factors + lines * s.steps_k * matrix.k // (s.warps_m * s.warps_n * matrix.lanes) + sums) // WORD_BYTES)
          + OTHER_REGISTERS)

def elements(layout: Layout | None) -> int: return 0 if layout is None else layout.count

def cost(s: TileShape, sizes: tuple[int, int, int], others: int, matrix: Matrix, capabilities: Capabilities) -> float:
  """Return the cost of the whole product, in bytes of shared memory of one wave at a time."""
  groups = others * -(-sizes[0] // s.rows(matrix)) * -(-sizes[1] // s.columns(matrix))
  waves, size = s.warps_m * s.warps_n, matrix.operand.itemsize
  loaded = (s.tiles_m * elements(matrix.a) + s.tiles_n * elements(matrix.b)) * matrix.lanes * size
  copied = staged(s, matrix) * matrix.k * size / waves
  products = s.tiles_m * s.tiles_n * matrix.m * matrix.n * matrix.k / PRODUCTS_PER_BYTE
  return (loaded + copied + products + BARRIER_BYTES / s.steps_k) * max(groups * waves, capabilities.threads / 2)

def shared_operands_cost(s: TileShape, sizes: tuple[int, int, int], others: int, matrix: Matrix,
                         capabilities: Capabilities, accesses: tuple[int, int]) -> float:
  """The same for a unit that reads shared memory."""
  groups = others * -(-sizes[0] // s.rows(matrix)) * -(-sizes[1] // s.columns(matrix))
  size, matrices = matrix.operand.itemsize, s.warps_m * s.warps_n * s.tiles_m * s.tiles_n
  copied = staged(s, matrix) * matrix.k * size
  carried = sum([rows * matrix.k * size for rows, n in zip(rows_and_columns(s, matrix), accesses) if carries(n)])
  local = matrices * (matrix.m + matrix.n) * matrix.k * size + copied + carried   # its stores have half of the banks
  products = matrices * matrix.m * matrix.n * matrix.k * size / capabilities.products_per_byte
  units = capabilities.threads // UNIT_WAVES / 2
  # caches are shared by all units
  cached = (copied + (UNALIGNED - 1) * carried) * capabilities.cache_cost * min(groups / units, 1)
  narrow = sum([n * (CARRY_BYTES if carries(one) else COPY_BYTES)
                for n, one in zip(accesses_per_lane(s, matrix, accesses), accesses) if one > 1]) / s.steps_k
  alone = 1 + ARRAYS * s.steps_k * matrix.k / sizes[2]   # nothing overlaps with the first copies and the last products
  return (max(local, products, cached, narrow) + BARRIER_BYTES / s.steps_k) * alone * -(-groups // units) * units
