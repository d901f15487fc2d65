"""Choose the tile of an attention on lanes with a matrix unit, and apply it (build.py).

Candidates are a number of waves and a size of blocks. Each block takes a time of its own, for barriers and for the
exchange of the largest score, and a time for its positions. Waves of a unit hide each other's latency, as many as
registers and shared memory allow. Cost: four candidates.
"""
from __future__ import annotations
import math

from tinyhw.codegen.attention.build import AttentionTile, Builder
from tinyhw.codegen.attention.layout import moves
from tinyhw.codegen.attention.recognize import Attention, attention_in
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.lower.prefetch import STAGES
from tinyhw.codegen.matrix.matrix import factors, operand_of
from tinyhw.codegen.plan.tile_shape import PADDING
from tinyhw.codegen.transform.tiling import Opt, OptOps, size_of
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.matrix import Matrix
from tinyhw.uop.ops import KernelInfo, UOp

WAVES, BLOCKS = (8, 4), (64, 32)    # candidates, of equally cheap ones the first
LEAST_STEPS = 16         # of a matrix product
SIMDS = 4                # of a unit
# cycles of a wave, from the listings of four cards: for a block, for a position, and for a position and term
BLOCK_LATENCY, POSITION_LATENCY, TERM_LATENCY = 800.0, 6.0, 0.14
TERM_CYCLES = 0.125      # of a SIMD, for a position and term of both products
OTHER_REGISTERS = 35     # of a lane, besides operands and results
SCORE_REGISTERS = 2.75   # for a score: itself, its power and a part of an operand

def units_of(capabilities: Capabilities) -> tuple[Matrix, ...]:
  """Return the shapes of the matrix unit that an attention may use: lanes of one wave hold all operands.

  Those of METAL are too small: a lane would have parts of hundreds of them.
  """
  if not capabilities.exchanges: return ()
  return tuple([x for x in capabilities.matrix if x.lanes == capabilities.lanes and x.a is not None and x.c is not None
                and x.result is dtypes.float32 and x.operand.itemsize == 2 and x.k >= LEAST_STEPS and x.k % x.n == 0
                and moves(x) is not None])

def types_of(capabilities: Capabilities) -> frozenset[DType]:
  """Return the types of operands with which an attention is one kernel."""
  return frozenset(unit.operand for unit in units_of(capabilities))

def unit_of(found: Attention, capabilities: Capabilities) -> Matrix | None:
  """Return the shape of the matrix unit for both products; None if none takes their operands."""
  return next((unit for unit in units_of(capabilities) if factors(found.inner, unit) is not None
               and operand_of(found.value, unit.operand) is not None), None)

def predict(found: Attention, tile: AttentionTile, matrix: Matrix, capabilities: Capabilities) -> float:
  """Return the cycles of an attention under a tile."""
  terms, columns = size_of(ranges_of(found.inner)[0]), 1 if found.column is None else size_of(found.column)
  each = matrix.m / matrix.lanes    # registers for a column of 32-bit numbers
  registers = (columns + SCORE_REGISTERS * tile.block) * each + terms * each / 2 + OTHER_REGISTERS
  others = math.prod(size_of(r) for r in ranges_of(found.store) if r is not found.row and r is not found.column)
  workgroups = others * -(-size_of(found.row) // (tile.waves * matrix.m))
  units = max(capabilities.threads // max(capabilities.unit_waves, 1), 1)
  stages = STAGES[-1] if capabilities.copies else 1
  held = capabilities.local_bytes // (stages * tile.block * (terms + columns + 2 * PADDING) * matrix.operand.itemsize)
  if capabilities.unit_registers:
    held = min(held, int(capabilities.unit_registers / (tile.waves * matrix.lanes * registers)))
  held = max(min(held, -(-workgroups // units)), 1)
  latency = BLOCK_LATENCY + tile.block * (POSITION_LATENCY + TERM_LATENCY * terms)
  busy = held * tile.waves / SIMDS * (tile.block * (terms + columns) / 2 * TERM_CYCLES + columns)
  return -(-workgroups // (units * held)) * -(-size_of(found.position) // tile.block) * max(latency, busy)

def opts_of(found: Attention, tile: AttentionTile, matrix: Matrix) -> tuple[Opt, ...]:
  """Return a tile as opts."""
  row = found.row.arg[0]
  return (Opt(OptOps.MATRIX, row, matrix.m), Opt(OptOps.LOCAL, row, tile.waves),
          Opt(OptOps.BLOCK, found.position.arg[0], tile.block))

def choices(sink: UOp, capabilities: Capabilities) -> list[tuple[Opt, ...]]:
  """Return all tiles of an attention, the one that should be fastest first."""
  found, matrix = parts_of(sink, capabilities)
  tiles = [AttentionTile(waves, block) for waves in WAVES for block in BLOCKS]
  tiles.sort(key=lambda tile: predict(found, tile, matrix, capabilities))
  return [opts_of(found, tile, matrix) for tile in tiles]

def parts_of(sink: UOp, capabilities: Capabilities) -> tuple[Attention, Matrix]:
  """Return the parts of an attention and its matrix unit. Raises CompileError for another kernel that keeps rows."""
  found = attention_in(sink)
  matrix = None if found is None else unit_of(found, capabilities)
  if found is None or matrix is None:
    raise CompileError("a kernel that keeps rows is no attention that the matrix unit computes; the scheduler "
                       "(engine/schedule/kept_rows.py) must not make it for this device")
  return found, matrix

def with_attention(sink: UOp, opts: tuple[Opt, ...] | None, capabilities: Capabilities) -> UOp:
  """Return the tiled kernel of an attention. Raises CompileError for another kernel that keeps rows."""
  found, matrix = parts_of(sink, capabilities)
  opts = choices(sink, capabilities)[0] if opts is None else opts
  def amount(op: OptOps, r: UOp, least: int) -> int:
    return next((o.amount for o in opts if o.op is op and o.axis == r.arg[0]), least)
  tile = AttentionTile(amount(OptOps.LOCAL, found.row, 1), amount(OptOps.BLOCK, found.position, matrix.k))
  stores = Builder(found, matrix, tile, capabilities).build()
  info = sink.arg if isinstance(sink.arg, KernelInfo) else KernelInfo()
  return sink.replace(src=stores, arg=KernelInfo(info.name, opts, info.origin))
