"""The shapes of the matrix unit that kernels are given: the instruction, and how the lanes of a warp share the matrices.

Products of a warp. A lane has the row (of the sum: the rows) lane / 4, and of that the places that lane % 4 tells: of the steps two that stand beside
each other, and those eight further on. A warp loads the factors together (LDSM). Source: PTX ISA, "Matrix Fragments for mma.m16n8k16"; registers of
SASS are in the same order.

Products of four warps (wgmma, sm_90), whose unit reads the factors from shared memory itself: 64 steps, four instructions of 16, are what a line of a
panel has. Source: PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16", "Matrix descriptor".
"""
from __future__ import annotations
from typing import NamedTuple

from tinyhw.dtype import DType, dtypes
from tinyhw.uop.matrix import Layout, Matrix

class Unit(NamedTuple):
  """The macro that multiplies (macros.py), or of several warps the instruction, without its number of columns; and its shape."""
  key: str
  matrix: Matrix

def product_16816(operand: DType) -> Matrix:
  """(16, 16) x (16, 8) of elements of two bytes, summed in float32."""
  a = Layout((("step", 4, 2), ("row", 8, 1)), (("step", 2, 1), ("row", 2, 8), ("step", 2, 8)))
  b = Layout((("step", 4, 2), ("column", 8, 1)), (("step", 2, 1), ("step", 2, 8)))
  c = Layout((("column", 4, 2), ("row", 8, 1)), (("column", 2, 1), ("row", 2, 8)))
  return Matrix(16, 8, 16, operand, dtypes.float32, 32, a, b, c, fragments=True)

def product_16832(operand: DType, result: DType) -> Matrix:
  """(16, 32) x (32, 8) of integers of one byte, summed in 32 bits."""
  a = Layout((("step", 4, 4), ("row", 8, 1)), (("step", 4, 1), ("row", 2, 8), ("step", 2, 16)))
  b = Layout((("step", 4, 4), ("column", 8, 1)), (("step", 4, 1), ("step", 2, 16)))
  c = Layout((("column", 4, 2), ("row", 8, 1)), (("column", 2, 1), ("row", 2, 8)))
  return Matrix(16, 8, 32, operand, result, 32, a, b, c, fragments=True)

UNITS = (Unit("product_f16", product_16816(dtypes.float16)), Unit("product_bf16", product_16816(dtypes.bfloat16)),
         Unit("product_i8", product_16832(dtypes.int8, dtypes.int32)), Unit("product_u8", product_16832(dtypes.uint8, dtypes.uint32)))

# On the FMA pipe: a lane has four columns of a row, so that each factor that it loads (16 bytes) serves four operations of four
_LANES = ("column", 8, 4), ("row", 4, 1)
VECTOR = Unit("product_f32", Matrix(4, 32, 4, dtypes.float32, dtypes.float32, 32, Layout((("", 8, 0), ("row", 4, 1)), (("step", 4, 1),)),
                                    Layout((("column", 8, 4), ("", 4, 0)), (("step", 4, 1), ("column", 4, 1))), Layout(_LANES, (("column", 4, 1),))))

GROUP_COLUMNS = (256, 128, 64)   # of the products of four warps that are used: whole lines of a panel that has them

def product_of_group(columns: int, operand: DType) -> Matrix:
  """(64, 64) x (64, columns) of elements of two bytes, summed in float32."""
  c = Layout((("column", 4, 2), ("row", 8, 1), ("row", 4, 16)), (("column", 2, 1), ("row", 2, 8), ("column", columns // 8, 8)))
  return Matrix(64, columns, 64, operand, dtypes.float32, 128, c=c, panels=True)

OF_GROUPS = tuple(Unit(key, product_of_group(columns, operand)) for key, operand in (("HGMMA.64x{}x16.F32", dtypes.float16),
                  ("HGMMA.64x{}x16.F32.BF16", dtypes.bfloat16)) for columns in GROUP_COLUMNS)

def units(generation: str) -> tuple[Unit, ...]:
  """The shapes that a generation has, best first; those of several warps last."""
  return (*UNITS, VECTOR, *(OF_GROUPS if generation == "sm_90" else ()))
