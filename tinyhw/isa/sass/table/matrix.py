"""The shapes of the matrix unit that kernels may use: the instruction, and the distribution of matrices over the lanes
of a warp.

Products of one warp. A lane has row lane / 4; of the sum it has several rows. lane % 4 selects the elements of the row:
two adjacent steps, and the two at a distance of eight. A warp loads the factors together (LDSM). Source: PTX ISA,
"Matrix Fragments for mma.m16n8k16". Registers of SASS are in the same order.

Products of four warps (wgmma, sm_90). The unit reads the factors from shared memory itself. A line of a swizzle atom
holds the steps of four instructions, 32 bytes each. Source: PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16",
"Matrix descriptor".

Some units are less exact than docs/numerics.md promises for sums in float32. Kernels use them only if a variable of
config.py allows it.
"""
from __future__ import annotations

from tinyhw.dtype import DType, dtypes
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import once
from tinyhw.uop.matrix import LINE_BYTES, Layout, Matrix

class Unit(NamedTuple):
  """A shape of the matrix unit.

  key: the macro that multiplies (macros.py). For several warps it is the instruction, without its number of columns.
  """
  key: str
  matrix: Matrix

def product_16816(operand: DType) -> Matrix:
  """Return (16, 16) x (16, 8) of elements of two bytes, summed in float32."""
  a = Layout((("step", 4, 2), ("row", 8, 1)), (("step", 2, 1), ("row", 2, 8), ("step", 2, 8)))
  b = Layout((("step", 4, 2), ("column", 8, 1)), (("step", 2, 1), ("step", 2, 8)))
  c = Layout((("column", 4, 2), ("row", 8, 1)), (("column", 2, 1), ("row", 2, 8)))
  return Matrix(16, 8, 16, operand, dtypes.float32, 32, a, b, c, fragments=True)

def product_1688() -> Matrix:
  """Return (16, 8) x (8, 8) of TF32: float32 without the last 13 bits of its mantissa."""
  a = Layout((("step", 4, 1), ("row", 8, 1)), (("row", 2, 8), ("step", 2, 4)))
  b = Layout((("step", 4, 1), ("column", 8, 1)), (("step", 2, 4),))
  c = Layout((("column", 4, 2), ("row", 8, 1)), (("column", 2, 1), ("row", 2, 8)))
  return Matrix(16, 8, 8, dtypes.float32, dtypes.float32, 32, a, b, c, fragments=True)

def product_16832(operand: DType, result: DType) -> Matrix:
  """Return (16, 32) x (32, 8) of elements of one byte, summed in 32 bits."""
  a = Layout((("step", 4, 4), ("row", 8, 1)), (("step", 4, 1), ("row", 2, 8), ("step", 2, 16)))
  b = Layout((("step", 4, 4), ("column", 8, 1)), (("step", 4, 1), ("step", 2, 16)))
  c = Layout((("column", 4, 2), ("row", 8, 1)), (("column", 2, 1), ("row", 2, 8)))
  return Matrix(16, 8, 32, operand, result, 32, a, b, c, fragments=True)

UNITS = (Unit("product_f16", product_16816(dtypes.float16)), Unit("product_bf16", product_16816(dtypes.bfloat16)),
         Unit("product_i8", product_16832(dtypes.int8, dtypes.int32)),
         Unit("product_u8", product_16832(dtypes.uint8, dtypes.uint32)))

# On the FMA pipe: a lane has four columns of a row, so that each factor that it loads (16 bytes) serves at least four
# multiply-adds
_LANES = ("column", 8, 4), ("row", 4, 1)
VECTOR = Unit("product_f32", Matrix(4, 32, 4, dtypes.float32, dtypes.float32, 32,
                                    Layout((("", 8, 0), ("row", 4, 1)), (("step", 4, 1),)),
                                    Layout((("column", 8, 4), ("", 4, 0)), (("step", 4, 1), ("column", 4, 1))),
                                    Layout(_LANES, (("column", 4, 1),))))

# of the products of four warps that are used: whole lines of a swizzle atom
GROUP_COLUMNS = (256, 128, 64)

def product_of_group(columns: int, operand: DType, result: DType = dtypes.float32) -> Matrix:
  """Return (64, k) x (k, columns) of lines of swizzle atoms, summed in 32 bits."""
  c = Layout((("column", 4, 2), ("row", 8, 1), ("row", 4, 16)),
             (("column", 2, 1), ("row", 2, 8), ("column", columns // 8, 8)))
  return Matrix(64, columns, LINE_BYTES // operand.itemsize, operand, result, 128, c=c, shared_operands=True)

def of_groups(key: str, operand: DType, result: DType = dtypes.float32) -> tuple[Unit, ...]:
  return tuple(Unit(key, product_of_group(columns, operand, result)) for columns in GROUP_COLUMNS)

OF_GROUPS = (*of_groups("HGMMA.64x{}x16.F32", dtypes.float16), *of_groups("HGMMA.64x{}x16.F32.BF16", dtypes.bfloat16),
             *of_groups("IGMMA.64x{}x32.S8.S8", dtypes.int8, dtypes.int32),
             *of_groups("IGMMA.64x{}x32.U8.U8", dtypes.uint8, dtypes.uint32))

def units(generation: str) -> tuple[Unit, ...]:
  """Return the shapes of a generation, best first. Those of several warps are last."""
  return (*UNITS, VECTOR, *(OF_GROUPS if generation == "sm_90" else ()))

# Sums of products of fp8 keep 13 bits of mantissa (Zhang et al., arXiv 2411.10958, section 3.2; DeepSeek-V3, arXiv
# 2412.19437, section 3.5.2)
FP8_OF_WARPS = tuple(Unit(f"product_{name}", product_16832(operand, dtypes.float32))
                     for name, operand in zip(("e4m3", "e5m2"), dtypes.fp8_ocp))
FP8_OF_GROUPS = tuple(unit for name, operand in zip(("E4M3", "E5M2"), dtypes.fp8_ocp)
                      for unit in of_groups(f"QGMMA.64x{{}}x32.F32.{name}.{name}", operand))
TF32 = Unit("product_tf32", product_1688())
LESS_EXACT: dict[str, dict[str, tuple[Unit, ...]]] = {
  "ALLOW_TF32": dict.fromkeys(("sm_80", "sm_89", "sm_90"), (TF32,)),
  "ALLOW_FP8_SUMS": {"sm_89": FP8_OF_WARPS, "sm_90": FP8_OF_GROUPS}}

def less_exact(generation: str) -> dict[str, tuple[Unit, ...]]:
  """Return further shapes of a generation, by the variable that allows them."""
  return {variable: by_generation[generation] for variable, by_generation in LESS_EXACT.items()
          if generation in by_generation}

@once
def every_unit(generation: str) -> tuple[Unit, ...]:
  """Return all shapes, including those that a variable must allow."""
  return (*units(generation), *(unit for found in less_exact(generation).values() for unit in found))
