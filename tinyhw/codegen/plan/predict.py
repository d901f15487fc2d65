"""Predict the cycles of a product on the matrix units of a GPU, for the choice of its tile (matrix_tile.py).

The model is that of the listings (machine/model/waves.py), without instructions. A workgroup repeats a step: it copies
its part of both operands to shared memory, loads it from there, and multiplies. There are two kinds of bounds of a
step. The greatest counts, and a twentieth of all (LOSS):

    a resource     its cycles for all workgroups of a compute unit: matrix units, vector units, shared memory, caches,
                   memory
    a workgroup    alone: what its own waves take, and latencies, which nothing else hides

A unit holds as many workgroups as registers and shared memory allow. They run in rounds; the last one may have fewer.
The constants are fitted to listings of four cards. test/golden/tiles has bounds of listings, which predictions
are compared with (test/bench/tiles.py). Cost: 25 us for a tile.
"""
from __future__ import annotations
from collections.abc import Mapping
import math

from tinyhw.codegen.matrix.local import MOST_NARROW_ROUNDS, MOST_ROUNDS, SEGMENT_BYTES
from tinyhw.codegen.plan.tile_shape import (
  ARRAYS, LONG_STEPS, CopiedOperand, PlannedProduct, TileShape, accesses_per_lane, carries, elements, local_bytes,
  own_elements, registers, rows_and_columns)
from tinyhw.dtype import DType, dtypes
from tinyhw.machine.ir.target import Capabilities
from tinyhw.machine.model.hardware import Hardware
from tinyhw.machine.model.occupancy import ComputeUnit, RegisterFile, KernelResources, residency
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.matrix import PIECE_BYTES, Matrix

STEP_INSTRUCTIONS = 8        # of a wave in each step, for counting, addresses and barriers
ACCESS_INSTRUCTIONS = 2      # for a copied piece: of the access, of its store or address
GATE_INSTRUCTIONS = 2        # for the condition of an access
OWN_INSTRUCTIONS = 8         # for an address and a condition that no other element has
OWN_GUARDS = 3               # comparisons of such a condition, one after the other; 1 where it is that of a step
COPY_CYCLES = 20.0           # of a lane, for each piece that it copies to shared memory
GATE_CYCLES = 6              # instructions of a condition that a workgroup waits for, alone
TRANSPOSE_INSTRUCTIONS = 8   # for a piece whose rows a lane makes its steps
LOSS = 0.05                  # of each bound, since no work overlaps perfectly
START_CYCLES = 1000.0        # of a workgroup, before and after its steps
SUM_CYCLES = 8.0             # to store an element of a lane's sums
STORED = 0.2                 # of a sector, for an element of the result

# type of operands -> its keys in Hardware.flops; the first one counts that a card has. Products of float32 on vector
# units get the rate of a matrix unit, too
RATES: dict[DType, tuple[str, ...]] = {
  dtypes.float16: ("f16",), dtypes.bfloat16: ("bf16", "f16"), dtypes.float32: ("tf32", "xf32", "f32"),
  dtypes.float64: ("f64",), dtypes.int8: ("i8", "iu8"), dtypes.uint8: ("i8", "iu8")}
NARROW = ("fp8", "bf8", "i8", "iu8")

UNKNOWN_WAVES = 16           # of a launch, for a unit of a card without a model
UNKNOWN = Hardware("a GPU", ComputeUnit("unit", 4, 16, 32, {"register": RegisterFile(512, 8)}, 64 << 10, 256, 32), 32,
                   1.5, 128, 64, 2048, 500, 0, {"f16": 512}, sector=32)

class StepCost(NamedTuple):
  """The cost of a workgroup's step, in cycles.

  - simd: resource -> cycles of a wave, which waves of a SIMD take in turn.
  - unit: resource -> cycles of a workgroup, which those of a unit take in turn.
  - alone: of a workgroup that has the unit for itself, with latencies that its own waves do not hide.
  """
  simd: Mapping[str, float]
  unit: Mapping[str, float]
  alone: float

def predict(s: TileShape, product: PlannedProduct, matrix: Matrix, capabilities: Capabilities) -> float:
  """Return the cycles of a product under a tile."""
  card = card_of(capabilities)
  workgroups = product.others * -(-product.rows // s.rows(matrix)) * -(-product.columns // s.columns(matrix))
  steps = -(-product.terms // (s.steps_k * matrix.k))
  step = step_of(s, product, matrix, capabilities, card, workgroups)
  waves = s.warps_m * s.warps_n * matrix.lanes // capabilities.lanes
  held = held_by_unit(s, product, matrix, capabilities, card, workgroups)
  start = START_CYCLES + card.latency + SUM_CYCLES * s.tiles_m * s.tiles_n * elements(matrix.c)
  stored = s.rows(matrix) * s.columns(matrix) * STORED * card.sector
  busy = min(workgroups, card.units)
  ends = {"first": stored / card.first_rate, "second": stored * busy / card.second_rate}
  alone, own = steps * step.alone + start, [steps * each for each in step.simd.values()]
  shared = [steps * each + ends.get(name, 0.0) for name, each in step.unit.items()]
  def cycles(groups: int) -> float:
    """Return the cycles of a round with this many workgroups in a unit."""
    turns = -(-groups * waves // card.unit.simds)    # of the waves of a SIMD
    bounds = [alone, *[each * turns for each in own], *[each * groups for each in shared]]
    return max(bounds) + LOSS * sum(bounds)
  rounds, rest = divmod(workgroups, card.units * held)
  return rounds * cycles(held) + (cycles(-(-rest // card.units)) if rest else 0.0)

def card_of(capabilities: Capabilities) -> Hardware:
  """Return the card, or a typical one of as many units."""
  if capabilities.card is not None: return capabilities.card
  unit = UNKNOWN.unit._replace(lanes=capabilities.lanes, local_bytes=max(capabilities.local_bytes, 1))
  return UNKNOWN._replace(unit=unit, units=max(capabilities.threads // UNKNOWN_WAVES, 1))

def step_of(s: TileShape, product: PlannedProduct, matrix: Matrix, capabilities: Capabilities, card: Hardware,
            workgroups: int) -> StepCost:
  """Return the cost of a step of a workgroup. workgroups: of the whole product."""
  # bulk copies move whole pieces without gates; of equal predictions, copies by lanes are taken
  if product.bulk:
    a, b = (x._replace(accesses=1, gated=False, computed=False) for x in product.operands)
    product = product._replace(operands=(a, b))
  simd = simd_cycles(s, product, matrix, capabilities, card)
  unit = unit_cycles(s, product, matrix, card, workgroups)
  return StepCost(simd, unit, alone_of(s, product, matrix, capabilities, card, simd, unit))

def simd_cycles(s: TileShape, product: PlannedProduct, matrix: Matrix, capabilities: Capabilities,
                card: Hardware) -> dict[str, float]:
  """Return the cycles of a wave's step: of the matrix unit, and of the vector unit."""
  waves, matrices = s.warps_m * s.warps_n * matrix.lanes // capabilities.lanes, s.tiles_m * s.tiles_n * s.steps_k
  multiplied = 2.0 * matrices * matrix.m * matrix.n * matrix.k * s.warps_m * s.warps_n / waves / rate_of(card, matrix)
  instructions = STEP_INSTRUCTIONS + OWN_INSTRUCTIONS * sum(own_elements(s, matrix, product))
  for n, x in zip(accesses_per_lane(s, matrix, product), product.operands):
    instructions += n * (ACCESS_INSTRUCTIONS + GATE_INSTRUCTIONS * x.gated
                         + TRANSPOSE_INSTRUCTIONS * (x.accesses == 1) * is_transposed(x, matrix))
  if not matrix.shared_operands: instructions += s.steps_k * (s.tiles_m + s.tiles_n)    # loads from shared memory
  vector = instructions * card.vector_cycles
  vector += multiplied if card.shares_vector else 0 if matrix.shared_operands else matrices * card.vector_cycles
  return {"matrix": multiplied, "vector": vector}

def is_transposed(x: CopiedOperand, matrix: Matrix) -> bool:
  """Do lanes transpose pieces of an operand in registers, since shared memory has it along the sum, but memory not?"""
  return not x.along_sum and not (matrix.transposes and (matrix.fragments or matrix.shared_operands))

def unit_cycles(s: TileShape, product: PlannedProduct, matrix: Matrix, card: Hardware,
                workgroups: int) -> dict[str, float]:
  """Return the cycles of a workgroup's step: of shared memory, caches and memory."""
  size, terms, groups = matrix.operand.itemsize, s.steps_k * matrix.k, s.warps_m * s.warps_n
  sides = tuple(zip(rows_and_columns(s, matrix), product.operands))
  copied = sum([rows * terms * size for rows, _ in sides])
  narrow = sum([rows * terms * size for rows, x in sides if x.accesses > 1])   # its stores have half of the banks
  moved = sum([sectors(rows, terms, x, matrix, product.bulk, card) for rows, x in sides])
  if matrix.shared_operands: loaded = s.tiles_m * s.tiles_n * (matrix.m + matrix.n) * matrix.k
  else: loaded = (s.tiles_m * elements(matrix.a) + s.tiles_n * elements(matrix.b)) * matrix.lanes
  busy, steps = min(workgroups, card.units), -(-product.terms // terms)
  once = min(sum([x.bytes for x in product.operands]) / (workgroups * steps * copied), 1.0)
  return {"local": (copied + narrow + loaded * s.steps_k * groups * size) / card.local_rate,
          "first": moved / card.first_rate, "second": moved * busy / card.second_rate,
          "memory": copied * once * busy / card.memory_rate}

def alone_of(s: TileShape, product: PlannedProduct, matrix: Matrix, capabilities: Capabilities, card: Hardware,
             simd: Mapping[str, float], unit: Mapping[str, float]) -> float:
  """Return the cycles of a step of a workgroup that has the unit for itself."""
  waves, accesses = s.warps_m * s.warps_n * matrix.lanes // capabilities.lanes, accesses_per_lane(s, matrix, product)
  multiplied, local = simd["matrix"] * -(-waves // card.unit.simds), unit["local"]
  guards = sum([n * (OWN_GUARDS if x.along_sum else 1)
                for n, x in zip(own_elements(s, matrix, product), product.operands)]) * card.guard_latency
  if matrix.shared_operands:   # copies of all kinds run ahead. The products wait for narrow pieces, not for whole ones
    narrow = sum([n for n, x in zip(accesses, product.operands) if x.accesses > 1])
    return max(multiplied, local, COPY_CYCLES * narrow) + card.local_latency + guards
  if not carries(product, matrix, capabilities):
    return 2 * card.local_latency + (multiplied + unit["first"]) / 2 + COPY_CYCLES * sum(accesses)
  turns, instructions = 0.0, 0.0    # a lane has all of its part in flight at once, or one access after the other
  for n, x in zip(accesses, product.operands):
    most = MOST_ROUNDS if x.accesses == 1 else min(MOST_ROUNDS * x.accesses, MOST_NARROW_ROUNDS)
    if n > most: turns += n
    instructions += n * (GATE_CYCLES * x.gated + TRANSPOSE_INSTRUCTIONS * (x.accesses == 1) * is_transposed(x, matrix))
  arrived = max(card.latency * max(turns, 1.0), unit["first"], unit["second"])
  return (arrived + 2 * card.local_latency + max(multiplied, local) / 4 + instructions * card.vector_cycles + guards)

def held_by_unit(s: TileShape, product: PlannedProduct, matrix: Matrix, capabilities: Capabilities, card: Hardware,
                 workgroups: int) -> int:
  """Return the workgroups that a unit holds at once."""
  variables = 1 + (product.terms > LONG_STEPS)
  used = registers(s, matrix, product, capabilities, variables if matrix.shared_operands else 1)
  ahead = capabilities.copies and (matrix.shared_operands or not carries(product, matrix, capabilities))
  bank = next(iter(card.unit.files))
  return residency(card.unit, KernelResources({bank: used}, local_bytes(s, matrix, ARRAYS if ahead else 1),
                                              s.warps_m * s.warps_n * matrix.lanes, workgroups), card.units).groups

def sectors(rows: int, terms: int, operand: CopiedOperand, matrix: Matrix, bulk: bool, card: Hardware) -> float:
  """Return the bytes that caches deliver for a workgroup's part of an operand: whole sectors of each line.

  The lanes of an access are next to each other along a line, until it ends.
  """
  size = matrix.operand.itemsize
  line = (terms if operand.along_sum else rows) * size
  if not bulk: line = min(line, card.unit.lanes * PIECE_BYTES // operand.accesses)
  if not bulk and is_transposed(operand, matrix): line = min(line, SEGMENT_BYTES)
  step = math.gcd(operand.alignment, card.sector)    # lines begin anywhere at its multiples
  each = -(-line // step) * step + (0 if bulk else card.sector - step)
  return rows * terms * size / line * max(each, line)

def rate_of(card: Hardware, matrix: Matrix) -> float:
  """Return the operations of a SIMD's matrix unit in a cycle."""
  words = RATES.get(matrix.operand, NARROW)
  if matrix.words is not None: words = RATES.get(matrix.words[0], NARROW)
  names = [f"wgmma {word}" if matrix.shared_operands else word for word in words]
  return next((card.flops[name] for name in names if name in card.flops), max(card.flops.values()))
