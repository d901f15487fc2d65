"""What AMD GPUs can compute, generation by generation: `Capabilities` for codegen.

What is missing here, codegen expresses in what is there.
"""
from __future__ import annotations

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError, EncodeError
from tinyhw.isa.amd.table.form import Generation
from tinyhw.isa.amd.table.matrix import units
from tinyhw.machine.ir.target import Capabilities
from tinyhw.once import once
from tinyhw.uop.enums import GroupOp, Ops

COMPARE = tuple(GroupOp.Comparison)
INTEGER = (Ops.ADD, Ops.SUB, Ops.MUL, Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR, Ops.NEG, Ops.MAX, Ops.WHERE,
           Ops.BITCAST)
FLOAT = (Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.NEG, Ops.SQRT, Ops.TRUNC, Ops.MULACC, Ops.WHERE, Ops.CAST,
         Ops.BITCAST)
UNITS = (Ops.RECIPROCAL, Ops.EXP2, Ops.EXP, Ops.LOG2, Ops.LOG)  # by approximate units of float32: recipes.py
LOGIC = (Ops.AND, Ops.OR, Ops.XOR, Ops.WHERE, Ops.CAST)
MOVES = (Ops.WHERE, Ops.BITCAST)
NARROW = dtypes.int8s + dtypes.int16s

def pairs(ops: tuple[Ops, ...], *types: DType) -> frozenset[tuple[Ops, DType]]:
  return frozenset((op, dtype) for op in ops for dtype in types)

# There is no divider of integers, and no conversion between 64-bit integers and floats.
SCALAR = (pairs(INTEGER + COMPARE, *dtypes.int32s, *dtypes.int64s) | pairs(FLOAT + COMPARE, dtypes.float32,
                                                                           dtypes.float64)
          | pairs(UNITS, dtypes.float32) | pairs(LOGIC, dtypes.bool) | pairs(MOVES, *NARROW, *dtypes.narrow_floats)
          | pairs((Ops.CAST,), *dtypes.int32s, dtypes.float16))

VECTOR = pairs((Ops.CAST,), dtypes.float16)   # of float32: how results of the matrix unit are stored

LDS_BYTES = 64 * 1024       # that one workgroup may have
REGISTERS = 248             # of vectors that a lane may have; the others hold spilled scalars
WAVES_PER_COMPUTE_UNIT = 8  # that a launch should have, so that memory's latency is hidden

# generation -> compute units of a typical card, and its caches; a device replaces them by what it finds out
CARDS = {"gfx1100": (96, (32 << 10, 6 << 20, 96 << 20)), "gfx1200": (32, (32 << 10, 4 << 20, 32 << 20)),
         "gfx942": (304, (32 << 10, 4 << 20, 256 << 20)), "gfx950": (256, (32 << 10, 4 << 20, 256 << 20))}

@once
def capabilities(arch: str) -> Capabilities:
  """For "gfx1100" and so on. Raises CompileError for another generation."""
  generation = generation_of(arch)
  compute_units, caches = CARDS[generation.name]
  return Capabilities(vector_bytes=16, vector_registers=REGISTERS, operations=SCALAR, vector_operations=VECTOR,
                      threads=compute_units * WAVES_PER_COMPUTE_UNIT, lanes=generation.wave, local_bytes=LDS_BYTES,
                      cache_bytes=caches,
                      matrix=tuple(unit.matrix for unit in units(generation)))

@once
def generation_of(arch: str) -> Generation:
  """The column of the table that an architecture like "gfx1100" or "gfx1100:wave64" means. Raises CompileError."""
  try: return Generation(arch)
  except EncodeError as e: raise CompileError(str(e)) from None
