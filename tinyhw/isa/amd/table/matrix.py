"""Shapes of the matrix units for kernels, by generation: the instruction, and the distribution of matrices over lanes.

An instruction gives a lane one column and several rows of the result. Elements of a row are adjacent in memory, so
products are transposed. The second factor's columns become the instruction's rows, and the first factor's rows its
columns. The mapping of result columns to the instruction's rows is free. It is chosen so that a lane has 16 contiguous
bytes of float16, which it stores at once.

The order of the k steps is free, if both factors have the same one. Where an instruction spreads steps over lanes in
small pieces, the layout here joins them to one piece. So a lane's elements are contiguous in memory.

Sources: AMD's matrix instruction calculator; RDNA3, RDNA4 ISA guides, "Wave Matrix Multiply Accumulate"; MI300 ISA
guide, section 7.1.
"""
from __future__ import annotations

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.amd.table.form import Generation
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.matrix import Digit, Layout, Matrix

class Unit(NamedTuple):
  """An instruction and its shape. neg_lo: the modifier's value; of integers it tells that A (1) and B (2) are
  signed."""
  key: str
  matrix: Matrix
  neg_lo: int = 0

def transposed(size: int, k: int, operand: DType, result: DType, lanes: int, group: int,
               copies: bool = False) -> Matrix:
  """A square of the result whose columns are the instruction's rows. A lane has a row of it, and groups of `group` of
  the instruction's rows.

  Lanes with the same row (or column) have different steps, or copies of all of them.
  """
  parts = lanes // size
  steps = k if copies else k // parts
  run = min(max(group, RUN_BYTES // operand.itemsize), size // parts)
  again: Digit = ("", parts, 0) if copies else ("step", parts, steps)
  columns = digits((group, 1), (parts, run), (run // group, group), (size // parts // run, run * parts))
  c = Layout((("row", size, 1), ("column", parts, run)), digits((run, 1), (size // parts // run, run * parts)))
  return Matrix(size, size, k, operand, result, lanes, Layout((("row", size, 1), again), (("step", steps, 1),)),
                Layout((*columns, again), (("step", steps, 1),)), c)

RUN_BYTES = 16  # contiguous bytes that a lane has of a row, of elements with the factor's size

def digits(*columns: tuple[int, int]) -> tuple[Digit, ...]:
  """Digits (radix, stride) of a column's number. Digits are merged if the next one continues the previous one."""
  found: list[Digit] = []
  for radix, stride in columns:
    if found and found[-1][1] * found[-1][2] == stride: found[-1] = ("column", found[-1][1] * radix, found[-1][2])
    elif radix > 1: found.append(("column", radix, stride))
  return tuple(found)

HALF, BFLOAT, FLOAT, INT8, INT32 = dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.int8, dtypes.int32

RDNA3 = (
  Unit("v_wmma_f32_16x16x16_f16", transposed(16, 16, HALF, FLOAT, 32, 1, copies=True)),
  Unit("v_wmma_f32_16x16x16_bf16", transposed(16, 16, BFLOAT, FLOAT, 32, 1, copies=True)),
  Unit("v_wmma_i32_16x16x16_iu8", transposed(16, 16, INT8, INT32, 32, 1, copies=True), neg_lo=3),
)
RDNA4 = (
  *(Unit(f"v_wmma_f32_16x16x16_{name}_{name}", transposed(16, 16, dtype, FLOAT, 32, 8))
    for name, dtype in zip(("fp8", "bf8"), dtypes.fp8_ocp)),
  Unit("v_wmma_f32_16x16x16_f16", transposed(16, 16, HALF, FLOAT, 32, 8)),
  Unit("v_wmma_f32_16x16x16_bf16", transposed(16, 16, BFLOAT, FLOAT, 32, 8)),
  Unit("v_wmma_i32_16x16x16_iu8", transposed(16, 16, INT8, INT32, 32, 8), neg_lo=3),
)

def fp8_units(types: tuple[DType, DType]) -> tuple[Unit, ...]:
  """CDNA's products of 8-bit floats: fp8 and bf8 are different types in each generation."""
  return tuple(Unit(f"v_mfma_f32_{m}x{m}x{k}_{name}_{name}", transposed(m, k, dtype, FLOAT, 64, 4))
               for name, dtype in zip(("fp8", "bf8"), types) for m, k in ((32, 16), (16, 32)))

CDNA = (
  Unit("v_mfma_f32_32x32x8_f16", transposed(32, 8, HALF, FLOAT, 64, 4)),
  Unit("v_mfma_f32_16x16x16_f16", transposed(16, 16, HALF, FLOAT, 64, 4)),
  Unit("v_mfma_f32_32x32x8_bf16", transposed(32, 8, BFLOAT, FLOAT, 64, 4)),
  Unit("v_mfma_f32_16x16x16_bf16", transposed(16, 16, BFLOAT, FLOAT, 64, 4)),
  Unit("v_mfma_i32_32x32x16_i8", transposed(32, 16, INT8, INT32, 64, 4)),
  Unit("v_mfma_i32_16x16x32_i8", transposed(16, 32, INT8, INT32, 64, 4)),
)
LONG = (  # CDNA4: twice the k steps in the same time
  Unit("v_mfma_f32_32x32x16_f16", transposed(32, 16, HALF, FLOAT, 64, 4)),
  Unit("v_mfma_f32_16x16x32_f16", transposed(16, 32, HALF, FLOAT, 64, 4)),
  Unit("v_mfma_f32_32x32x16_bf16", transposed(32, 16, BFLOAT, FLOAT, 64, 4)),
  Unit("v_mfma_f32_16x16x32_bf16", transposed(16, 32, BFLOAT, FLOAT, 64, 4)),
  Unit("v_mfma_i32_32x32x32_i8", transposed(32, 32, INT8, INT32, 64, 4)),
  Unit("v_mfma_i32_16x16x64_i8", transposed(16, 64, INT8, INT32, 64, 4)),
)
SINGLE = (  # last: other types can be converted to its operands
  Unit("v_mfma_f32_32x32x2_f32", transposed(32, 2, FLOAT, FLOAT, 64, 4)),
  Unit("v_mfma_f32_16x16x4_f32", transposed(16, 4, FLOAT, FLOAT, 64, 4)),
)
# The vector unit replaces a missing float32 matrix unit. A lane has a square of the result. So 16 bytes that it loads
# of a factor serve four operations, and it has enough accumulators that none stalls (products.py).
SQUARE = 4
VECTOR = Unit("v_fmac_f32", Matrix(4 * SQUARE, 8 * SQUARE, 4, FLOAT, FLOAT, 32,
                                   Layout((("", 8, 0), ("row", 4, SQUARE)), (("step", 4, 1), ("row", SQUARE, 1))),
                                   Layout((("column", 8, SQUARE), ("", 4, 0)), (("step", 4, 1), ("column", SQUARE, 1))),
                                   Layout((("column", 8, SQUARE), ("row", 4, SQUARE)),
                                          (("column", SQUARE, 1), ("row", SQUARE, 1)))))

# Units for waves of the usual size. Factors go to the first unit whose type can represent all of their numbers, so
# small types are first.
UNITS = {"gfx1100": (*RDNA3, VECTOR), "gfx1200": (*RDNA4, VECTOR),
         "gfx942": fp8_units(dtypes.fp8_fnuz) + CDNA + SINGLE,
         "gfx950": fp8_units(dtypes.fp8_ocp) + LONG + CDNA + SINGLE}

def units(generation: Generation) -> tuple[Unit, ...]:
  """The shapes of a generation for waves of its size, best first."""
  return UNITS[generation.name] if generation.cdna or generation.wave == 32 else ()
