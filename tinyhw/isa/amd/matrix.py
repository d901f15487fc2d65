"""The shapes of matrix units that kernels are given, by generation: the instruction, and how lanes share the matrices.

The order of the steps along the sum is free, as long as both factors have the same one: where an instruction spreads steps over lanes in small
pieces, the layout here has them in one piece, so that a lane's elements stand beside each other in memory. Sources: AMD's matrix instruction
calculator; RDNA3, RDNA4 ISA guides, "Wave Matrix Multiply Accumulate"; MI300 ISA guide, section 7.1.
"""
from __future__ import annotations
from typing import NamedTuple

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.amd.form import Generation
from tinyhw.uop.matrix import Layout, Matrix, by_columns

class Unit(NamedTuple):
  """An instruction and its shape. neg_lo: what the modifier must be; of integers it says that A (1) and B (2) are signed."""
  key: str
  matrix: Matrix
  neg_lo: int = 0

def halves(m: int, n: int, k: int, operand: DType, result: DType, lanes: int, group: int) -> Matrix:
  """Lanes that have the same row (or column) have different steps; of the result a lane has groups of so many rows."""
  parts = lanes // n
  steps = k // parts
  def factor(axis: str) -> Layout: return Layout(((axis, n, 1), ("step", parts, steps)), (("step", steps, 1),))
  rest = m // (parts * group)
  rows = (("row", group, 1), ("row", rest, parts * group)) if rest > 1 else (("row", group, 1),)
  return Matrix(m, n, k, operand, result, lanes, factor("row"), factor("column"), Layout((("column", n, 1), ("row", parts, group)), rows))

HALF, BFLOAT, FLOAT, INT8, INT32 = dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.int8, dtypes.int32

RDNA3 = (
  Unit("v_wmma_f32_16x16x16_f16", by_columns(16, 16, 16, HALF, FLOAT, 32)),
  Unit("v_wmma_f32_16x16x16_bf16", by_columns(16, 16, 16, BFLOAT, FLOAT, 32)),
  Unit("v_wmma_i32_16x16x16_iu8", by_columns(16, 16, 16, INT8, INT32, 32), neg_lo=3),
)
RDNA4 = (
  Unit("v_wmma_f32_16x16x16_f16", halves(16, 16, 16, HALF, FLOAT, 32, 8)),
  Unit("v_wmma_f32_16x16x16_bf16", halves(16, 16, 16, BFLOAT, FLOAT, 32, 8)),
  Unit("v_wmma_i32_16x16x16_iu8", halves(16, 16, 16, INT8, INT32, 32, 8), neg_lo=3),
  *(Unit(f"v_wmma_f32_16x16x16_{name}_{name}", halves(16, 16, 16, dtype, FLOAT, 32, 8)) for name, dtype in zip(("fp8", "bf8"), dtypes.fp8_ocp)),
)

def narrow(types: tuple[DType, DType]) -> tuple[Unit, ...]:
  """CDNA's products of 8-bit floats: fp8 and bf8 are other types in each generation."""
  return tuple(Unit(f"v_mfma_f32_{m}x{m}x{k}_{name}_{name}", halves(m, m, k, dtype, FLOAT, 64, 4))
               for name, dtype in zip(("fp8", "bf8"), types) for m, k in ((32, 16), (16, 32)))

CDNA = (
  Unit("v_mfma_f32_32x32x8_f16", halves(32, 32, 8, HALF, FLOAT, 64, 4)),
  Unit("v_mfma_f32_16x16x16_f16", halves(16, 16, 16, HALF, FLOAT, 64, 4)),
  Unit("v_mfma_f32_32x32x8_bf16", halves(32, 32, 8, BFLOAT, FLOAT, 64, 4)),
  Unit("v_mfma_f32_16x16x16_bf16", halves(16, 16, 16, BFLOAT, FLOAT, 64, 4)),
  Unit("v_mfma_i32_32x32x16_i8", halves(32, 32, 16, INT8, INT32, 64, 4)),
  Unit("v_mfma_i32_16x16x32_i8", halves(16, 16, 32, INT8, INT32, 64, 4)),
)
LONG = (  # CDNA4: twice the steps in the same time
  Unit("v_mfma_f32_32x32x16_f16", halves(32, 32, 16, HALF, FLOAT, 64, 4)),
  Unit("v_mfma_f32_16x16x32_f16", halves(16, 16, 32, HALF, FLOAT, 64, 4)),
  Unit("v_mfma_f32_32x32x16_bf16", halves(32, 32, 16, BFLOAT, FLOAT, 64, 4)),
  Unit("v_mfma_f32_16x16x32_bf16", halves(16, 16, 32, BFLOAT, FLOAT, 64, 4)),
  Unit("v_mfma_i32_32x32x32_i8", halves(32, 32, 32, INT8, INT32, 64, 4)),
  Unit("v_mfma_i32_16x16x64_i8", halves(16, 16, 64, INT8, INT32, 64, 4)),
)
SINGLE = (  # last: it takes what the others' operands can be widened to
  Unit("v_mfma_f32_32x32x2_f32", halves(32, 32, 2, FLOAT, FLOAT, 64, 4)),
  Unit("v_mfma_f32_16x16x4_f32", halves(16, 16, 4, FLOAT, FLOAT, 64, 4)),
)
# in waves of the usual size
UNITS = {"gfx1100": RDNA3, "gfx1200": RDNA4,
         "gfx942": CDNA + narrow(dtypes.fp8_fnuz) + SINGLE, "gfx950": LONG + CDNA + narrow(dtypes.fp8_ocp) + SINGLE}

def units(generation: Generation) -> tuple[Unit, ...]:
  """The shapes of a generation for waves of its size, best first."""
  return UNITS[generation.name] if generation.cdna or generation.wave == 32 else ()
