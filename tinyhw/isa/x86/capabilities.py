"""Operations of x86-64 by level: `Capabilities` for codegen.

Codegen expresses missing operations in those listed here.
"""
from __future__ import annotations

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.machine.ir.target import Capabilities
from tinyhw.threads import once
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.matrix import Matrix

COMPARE = tuple(GroupOp.Comparison)
INTEGER = (Ops.ADD, Ops.SUB, Ops.MUL, Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR, Ops.NEG, Ops.MAX, Ops.IDIV, Ops.MOD,
           Ops.WHERE, Ops.CAST,
           Ops.BITCAST)
FLOAT = (Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.NEG, Ops.SQRT, Ops.TRUNC, Ops.RECIPROCAL, Ops.MULACC, Ops.WHERE,
         Ops.CAST, Ops.BITCAST)
# operations of integers of any size
PACKED = (Ops.ADD, Ops.SUB, Ops.NEG, Ops.AND, Ops.OR, Ops.XOR, Ops.WHERE, Ops.CAST, Ops.BITCAST)
SHIFTS = (Ops.SHL, Ops.SHR)
LOGIC = (Ops.AND, Ops.OR, Ops.XOR, Ops.WHERE, Ops.CAST, Ops.NEG, Ops.BITCAST)

def pairs(ops: tuple[Ops, ...], *types: DType) -> frozenset[tuple[Ops, DType]]:
  return frozenset((op, dtype) for op in ops for dtype in types)

SCALAR = (pairs(INTEGER + COMPARE, *dtypes.ints) | pairs(FLOAT + COMPARE, dtypes.float32, dtypes.float64)
          | pairs(LOGIC + COMPARE, dtypes.bool)
          | pairs((Ops.WHERE, Ops.BITCAST), *dtypes.narrow_floats) | pairs((Ops.CAST,), dtypes.float16))

VECTOR_AVX2 = (
  pairs(FLOAT + COMPARE, dtypes.float32, dtypes.float64) | pairs(LOGIC + COMPARE, dtypes.bool)
  | pairs(PACKED + COMPARE, *dtypes.ints)
  | pairs((Ops.MAX,), *dtypes.int8s, *dtypes.int16s, *dtypes.int32s) | pairs((Ops.MUL,), *dtypes.int16s, *dtypes.int32s)
  | pairs((Ops.DOT4,), dtypes.int32) | pairs(SHIFTS, *dtypes.int32s, dtypes.uint64) | pairs((Ops.SHL,), dtypes.int64)
  | pairs((Ops.WHERE, Ops.BITCAST), *dtypes.narrow_floats) | pairs((Ops.CAST,), dtypes.float16))

# AVX-512: 16-bit shifts by any count, arithmetic of 64-bit integers
VECTOR_AVX512 = (VECTOR_AVX2 | pairs((Ops.MAX, Ops.MUL), *dtypes.int64s) | pairs(SHIFTS, *dtypes.int16s,
                                                                                 *dtypes.int64s))

VECTOR_BF16 = VECTOR_AVX512 | pairs((Ops.DOT2,), dtypes.float32)

BYTES = (dtypes.int8, dtypes.uint8)
# AMX: tiles of 16 rows of 16 words
TILES = tuple(Matrix(16, 16, 16, dtypes.uint32, result, words=words)
              for words, result in (((dtypes.bfloat16, dtypes.bfloat16), dtypes.float32),
                                    *[((a, b), dtypes.int32) for a in BYTES for b in BYTES]))

# level -> bytes of a vector register, number of vector registers, vector operations, whether vectors of 64-bit integers
# convert to and from floats, sizes of elements that a mask may keep from memory, shapes of the matrix unit
LEVELS: dict[str, tuple[int, int, frozenset[tuple[Ops, DType]], bool, tuple[int, ...], tuple[Matrix, ...]]] = {
  "x86_64:avx2": (32, 16, VECTOR_AVX2, False, (4, 8), ()),
  "x86_64:avx512": (64, 32, VECTOR_AVX512, True, (1, 2, 4, 8), ()),
  "x86_64:avx512vnni": (64, 32, VECTOR_AVX512, True, (1, 2, 4, 8), ()),
  "x86_64:avx512bf16": (64, 32, VECTOR_BF16, True, (1, 2, 4, 8), ()),
  "x86_64:amx": (64, 32, VECTOR_BF16, True, (1, 2, 4, 8), TILES),
}

@once
def capabilities(arch: str) -> Capabilities:
  """Capabilities of a level, such as "x86_64:avx2". Raises CompileError for another one.

  threads and the sizes of memory are assumed, those of a small processor. The engine replaces them by the values of the
  device.
  """
  if arch not in LEVELS:
    raise CompileError(f"{arch} is no level of x86-64 that kernels are compiled for; use one of {', '.join(LEVELS)}")
  vector_bytes, vector_registers, vector_operations, wide_casts, masked_bytes, matrix = LEVELS[arch]
  return Capabilities(vector_bytes=vector_bytes, vector_registers=vector_registers, operations=SCALAR,
                      vector_operations=vector_operations, threads=2, wide_casts=wide_casts, local_bytes=256 * 1024,
                      cache_bytes=(32 * 1024, 512 * 1024, 16 << 20), masked_bytes=masked_bytes,
                      shuffled_bytes=(4, 8), transposed_bytes=(2, 4, 8), non_temporal=True, gathers=True,
                      scatters=True, matrix=matrix)
