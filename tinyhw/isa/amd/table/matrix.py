"""The shapes of matrix units that kernels are given, by generation: the instruction, and how lanes share the matrices.

Of the result an instruction gives a lane one column and several rows. Memory has neighbours in a row, so products are
made transposed: the second factor's columns are what the instruction calls rows, and the other way round. Which column
of the result is which of the instruction's rows is free, too, and is such that a lane has 16 bytes of halves beside
each other: it stores them at once.

The order of the steps along the sum is free, as long as both factors have the same one: where an instruction spreads
steps over lanes in small pieces, the layout here has them in one piece, so that a lane's elements stand beside each
other in memory. Sources: AMD's matrix instruction calculator; RDNA3, RDNA4 ISA guides, "Wave Matrix Multiply
Accumulate"; MI300 ISA guide, section 7.1.
"""
from __future__ import annotations

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.amd.table.form import Generation
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.matrix import Digit, Layout, Matrix

class Unit(NamedTuple):
  """An instruction and its shape. neg_lo: what the modifier must be; of integers it says that A (1) and B (2) are
  signed."""
  key: str
  matrix: Matrix
  neg_lo: int = 0

def transposed(size: int, k: int, operand: DType, result: DType, lanes: int, group: int,
               copies: bool = False) -> Matrix:
  """A square of the result whose columns the instruction takes as rows: a lane has a row of it, and groups of so many
  of the instruction's rows.

  Lanes that have the same row (or column) have different steps, or copies of all of them.
  """
  parts = lanes // size
  steps = k if copies else k // parts
  run = min(max(group, RUN_BYTES // operand.itemsize), size // parts)
  again: Digit = ("", parts, 0) if copies else ("step", parts, steps)
  columns = digits((group, 1), (parts, run), (run // group, group), (size // parts // run, run * parts))
  c = Layout((("row", size, 1), ("column", parts, run)), digits((run, 1), (size // parts // run, run * parts)))
  return Matrix(size, size, k, operand, result, lanes, Layout((("row", size, 1), again), (("step", steps, 1),)),
                Layout((*columns, again), (("step", steps, 1),)), c)

RUN_BYTES = 16  # of a row, of elements as wide as a factor's, that a lane has beside each other

def digits(*columns: tuple[int, int]) -> tuple[Digit, ...]:
  """Digits (radix, stride) of a column's number; those of which the next goes on where one ends are one."""
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

def narrow(types: tuple[DType, DType]) -> tuple[Unit, ...]:
  """CDNA's products of 8-bit floats: fp8 and bf8 are other types in each generation."""
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
LONG = (  # CDNA4: twice the steps in the same time
  Unit("v_mfma_f32_32x32x16_f16", transposed(32, 16, HALF, FLOAT, 64, 4)),
  Unit("v_mfma_f32_16x16x32_f16", transposed(16, 32, HALF, FLOAT, 64, 4)),
  Unit("v_mfma_f32_32x32x16_bf16", transposed(32, 16, BFLOAT, FLOAT, 64, 4)),
  Unit("v_mfma_f32_16x16x32_bf16", transposed(16, 32, BFLOAT, FLOAT, 64, 4)),
  Unit("v_mfma_i32_32x32x32_i8", transposed(32, 32, INT8, INT32, 64, 4)),
  Unit("v_mfma_i32_16x16x64_i8", transposed(16, 64, INT8, INT32, 64, 4)),
)
SINGLE = (  # last: it takes what the others' operands can be widened to
  Unit("v_mfma_f32_32x32x2_f32", transposed(32, 2, FLOAT, FLOAT, 64, 4)),
  Unit("v_mfma_f32_16x16x4_f32", transposed(16, 4, FLOAT, FLOAT, 64, 4)),
)
# On the vector unit, where there are no products of float32: a lane has a square of the result, so that what it loads
# of a factor (16 bytes) serves four operations, and so many sums that none is waited for (products.py)
SQUARE = 4
VECTOR = Unit("v_fmac_f32", Matrix(4 * SQUARE, 8 * SQUARE, 4, FLOAT, FLOAT, 32,
                                   Layout((("", 8, 0), ("row", 4, SQUARE)), (("step", 4, 1), ("row", SQUARE, 1))),
                                   Layout((("column", 8, SQUARE), ("", 4, 0)), (("step", 4, 1), ("column", SQUARE, 1))),
                                   Layout((("column", 8, SQUARE), ("row", 4, SQUARE)),
                                          (("column", SQUARE, 1), ("row", SQUARE, 1)))))

# In waves of the usual size. Factors go to the first unit whose type has all of their numbers, so narrow types are
# before those that have theirs
UNITS = {"gfx1100": (*RDNA3, VECTOR), "gfx1200": (*RDNA4, VECTOR),
         "gfx942": narrow(dtypes.fp8_fnuz) + CDNA + SINGLE, "gfx950": narrow(dtypes.fp8_ocp) + LONG + CDNA + SINGLE}

def units(generation: Generation) -> tuple[Unit, ...]:
  """The shapes of a generation for waves of its size, best first."""
  return UNITS[generation.name] if generation.cdna or generation.wave == 32 else ()
