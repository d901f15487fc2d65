"""The shape of a product's part that a workgroup computes with the matrix unit, and what it takes: registers, shared
memory, accesses.

A wave has `tiles_m` by `tiles_n` matrices of the result in registers, so that one load of an operand serves several
products. `warps_m` by `warps_n` waves share the operands that they stage in shared memory. They stage `steps_k` steps
of the unit between two barriers.
"""
from __future__ import annotations

from tinyhw.machine.ir.target import Capabilities
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.matrix import PIECE_BYTES, WORD_BYTES, Layout, Matrix

ADDRESS_BYTES = 4          # of registers, for the computed address and the condition of an access
OWN_BYTES = 14             # the same where these are in another period than those before (`CopiedOperand.period`)
OTHER_REGISTERS = 28       # of a lane that hold neither operands nor sums: addresses, intermediate results
# of a sum of products of shared operands: a longer sum has one variable for a block and one for all blocks (blocks.py)
LONG_STEPS = 32768
LEAST_COPY = 4  # bytes of the smallest asynchronous copy to shared memory
MOST_PERIOD = 1 << 10   # lines of a tile are fewer
PADDING = 8     # elements between rows in shared memory, at most
ARRAYS = 4      # of each operand where they are copied some iterations ahead (prefetch.py)

class CopiedOperand(NamedTuple):
  """An operand of a product, as lanes copy it to shared memory.

  - along_sum: adjacent elements in memory are those of the sum, not of its other range.
  - accesses: of a lane, for a piece of 16 bytes.
  - gated: a copy has a condition.
  - computed: addresses are computed from digits, and lanes load single elements.
  - alignment: bytes of which the beginnings of its lines in memory are multiples.
  - bytes: of the memory that it lies in.
  - period: aligned blocks of this many lines have computed addresses and conditions that differ in constants.
  """
  along_sum: bool = True
  accesses: int = 1
  gated: bool = False
  bytes: int = 0
  computed: bool = False
  alignment: int = 1 << 10
  period: int = MOST_PERIOD

  @property
  def is_carried(self) -> bool:
    """Do lanes carry it through their registers, since no asynchronous copy is as small as its accesses?"""
    return PIECE_BYTES // self.accesses < LEAST_COPY

class PlannedProduct(NamedTuple):
  """A product: rows, columns and terms of its sum, the number of such products, and its operands.

  - bulk: they are copied by bulk copies.
  """
  rows: int
  columns: int
  terms: int
  others: int = 1
  operands: tuple[CopiedOperand, CopiedOperand] = (CopiedOperand(), CopiedOperand())
  bulk: bool = False

class TileShape(NamedTuple):
  """Waves of a workgroup, matrices of a wave, steps of a staging."""
  warps_m: int
  warps_n: int
  tiles_m: int
  tiles_n: int
  steps_k: int

  def rows(self, matrix: Matrix) -> int: return self.warps_m * self.tiles_m * matrix.m
  def columns(self, matrix: Matrix) -> int: return self.warps_n * self.tiles_n * matrix.n

def rows_and_columns(s: TileShape, matrix: Matrix) -> tuple[int, int]: return s.rows(matrix), s.columns(matrix)

def staged(s: TileShape, matrix: Matrix) -> int:
  """Return the rows and columns of the workgroup's operands."""
  return sum(rows_and_columns(s, matrix))

def elements(layout: Layout | None) -> int: return 0 if layout is None else layout.count

def accesses_per_lane(s: TileShape, matrix: Matrix, product: PlannedProduct) -> tuple[float, float]:
  """Return the number of accesses by which a lane copies each operand."""
  a, b = product.operands
  row = s.steps_k * matrix.k * matrix.operand.itemsize / PIECE_BYTES / (s.warps_m * s.warps_n * matrix.lanes)
  return s.rows(matrix) * row * a.accesses, s.columns(matrix) * row * b.accesses

def own_elements(s: TileShape, matrix: Matrix, product: PlannedProduct) -> tuple[float, float]:
  """Return how many elements of each operand a lane copies that have addresses and conditions of their own.

  Those are the ones whose lines lie in several periods. Where memory is adjacent along rows, lanes cover some steps by
  some rows. If their number is no power of two, each round of copies begins at another place of such a block.
  """
  lanes = s.warps_m * s.warps_n * matrix.lanes
  even = lanes & (lanes - 1) == 0
  if even and not any([x.computed for x in product.operands]): return 0.0, 0.0
  def has_own(x: CopiedOperand, rows: int) -> bool:
    if x.along_sum: return x.computed and x.period % rows > 0
    return x.computed and x.period % (s.steps_k * matrix.k) > 0 or x.accesses > 1 and not even
  a, b = (n if has_own(x, rows) else 0.0 for n, x, rows in
          zip(accesses_per_lane(s, matrix, product), product.operands, rows_and_columns(s, matrix)))
  return a, b

def carries(product: PlannedProduct, matrix: Matrix, capabilities: Capabilities) -> bool:
  """Do lanes carry some operand through their registers to shared memory? Then they wait for it in each step."""
  if product.bulk or not capabilities.copies: return not product.bulk
  return any(x.is_carried or x.gated and not matrix.shared_operands for x in product.operands)

def registers(s: TileShape, matrix: Matrix, product: PlannedProduct, capabilities: Capabilities,
              variables: int = 1) -> int:
  """Return the registers of a lane: sums, operands of one step, and its part of the next staging.

  variables: for each sum of products of shared operands.
  """
  sums = s.tiles_m * s.tiles_n * elements(matrix.c) * matrix.result.itemsize * variables
  if matrix.shared_operands: return sums // WORD_BYTES + OTHER_REGISTERS
  factors = (s.tiles_m * elements(matrix.a) + s.tiles_n * elements(matrix.b)) * matrix.operand.itemsize
  carried, held = carries(product, matrix, capabilities), 0.0
  for n, x, own in zip(accesses_per_lane(s, matrix, product), product.operands, own_elements(s, matrix, product)):
    address = 0 if not x.computed else OWN_BYTES if own and x.along_sum else ADDRESS_BYTES
    held += n * (address + carried * PIECE_BYTES / x.accesses)
  return -(-int(factors + held + sums) // WORD_BYTES) + OTHER_REGISTERS

def local_bytes(s: TileShape, matrix: Matrix, arrays: int) -> int:
  """Return the bytes of shared memory of a workgroup, with this many arrays of each operand."""
  padding = 0 if matrix.shared_operands else PADDING
  return arrays * staged(s, matrix) * (s.steps_k * matrix.k + padding) * matrix.operand.itemsize
