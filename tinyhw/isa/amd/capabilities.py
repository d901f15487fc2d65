"""Operations of AMD GPUs by generation: `Capabilities` for codegen.

Codegen expresses missing operations in those listed here.
"""
from __future__ import annotations

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError, EncodeError
from tinyhw.isa.amd.model.rates import card
from tinyhw.isa.amd.table.form import Generation
from tinyhw.isa.amd.table.matrix import units
from tinyhw.machine.ir.target import Capabilities
from tinyhw.threads import once
from tinyhw.uop.enums import GroupOp, Ops

COMPARE = tuple(GroupOp.Comparison)
INTEGER = (Ops.ADD, Ops.SUB, Ops.MUL, Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR, Ops.NEG, Ops.MAX, Ops.WHERE,
           Ops.BITCAST)
FLOAT = (Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.NEG, Ops.SQRT, Ops.TRUNC, Ops.MULACC, Ops.WHERE, Ops.CAST,
         Ops.BITCAST)
# by the approximate float32 units of the hardware: recipes.py
UNITS = (Ops.RECIPROCAL, Ops.EXP2, Ops.EXP, Ops.LOG2, Ops.LOG)
LOGIC = (Ops.AND, Ops.OR, Ops.XOR, Ops.WHERE, Ops.CAST)
MOVES = (Ops.WHERE, Ops.BITCAST)
SMALL_INTEGERS = dtypes.int8s + dtypes.int16s

def pairs(ops: tuple[Ops, ...], *types: DType) -> frozenset[tuple[Ops, DType]]:
  return frozenset((op, dtype) for op in ops for dtype in types)

# There is no divider of integers, and no conversion between 64-bit integers and floats.
SCALAR = (pairs(INTEGER + COMPARE, *dtypes.int32s, *dtypes.int64s)
          | pairs(FLOAT + COMPARE, dtypes.float32, dtypes.float64)
          | pairs(UNITS, dtypes.float32) | pairs(LOGIC, dtypes.bool)
          | pairs(MOVES, *SMALL_INTEGERS, *dtypes.narrow_floats)
          | pairs((Ops.CAST,), *dtypes.int32s, dtypes.float16) | pairs((Ops.DOT4,), dtypes.int32))

VECTOR = pairs((Ops.CAST,), dtypes.float16)

LDS_BYTES = 64 * 1024       # limit of one workgroup
REGISTERS = 248             # vector registers of a lane at most; the others hold spilled scalars
WAVES_PER_COMPUTE_UNIT = 8  # waves that a launch should have, to hide the latency of memory

# generation -> compute units and cache sizes of a typical card; a device replaces them by those that it detects
CARDS = {"gfx1100": (96, (32 << 10, 6 << 20, 96 << 20)), "gfx1200": (32, (32 << 10, 4 << 20, 32 << 20)),
         "gfx942": (304, (32 << 10, 4 << 20, 256 << 20)), "gfx950": (256, (32 << 10, 4 << 20, 256 << 20))}

@once
def capabilities(arch: str) -> Capabilities:
  """Capabilities of an architecture such as "gfx1100". Raises CompileError for an unknown generation."""
  generation = generation_of(arch)
  compute_units, caches = CARDS[generation.name]
  return Capabilities(vector_bytes=16, vector_registers=REGISTERS, operations=SCALAR, vector_operations=VECTOR,
                      threads=compute_units * WAVES_PER_COMPUTE_UNIT, lanes=generation.wave, local_bytes=LDS_BYTES,
                      rough=True, exchanges=True, slow_exchanges=True, unit_waves=WAVES_PER_COMPUTE_UNIT,
                      cache_bytes=caches, card=card(generation),
                      matrix=tuple(unit.matrix for unit in units(generation)))

@once
def generation_of(arch: str) -> Generation:
  """The column of the table for an architecture such as "gfx1100" or "gfx1100:wave64". Raises CompileError."""
  try: return Generation(arch)
  except EncodeError as e: raise CompileError(str(e)) from None
