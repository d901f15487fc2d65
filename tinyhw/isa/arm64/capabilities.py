"""Operations of AArch64 by level: `Capabilities` for codegen. They are those that the rules of select/rules.py have,
and what selection has besides: comparisons, choices, conversions."""
from __future__ import annotations

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.arm64.select.rules import LEVELS, SCALAR_RULES, vector_rules
from tinyhw.machine.ir.target import Capabilities
from tinyhw.machine.select.rules import FLOATS
from tinyhw.threads import once
from tinyhw.uop.enums import GroupOp, Ops

def pairs(ops: tuple[Ops, ...], *types: DType) -> frozenset[tuple[Ops, DType]]:
  return frozenset((op, dtype) for op in ops for dtype in types)

COMMON = (pairs((*GroupOp.Comparison, Ops.WHERE, Ops.CAST, Ops.BITCAST), *dtypes.ints, *FLOATS, dtypes.bool)
          | pairs((Ops.WHERE, Ops.BITCAST), *dtypes.narrow_floats) | pairs((Ops.CAST,), dtypes.float16))
MASK_LOGIC = pairs((Ops.AND, Ops.OR, Ops.XOR, Ops.NEG), dtypes.bool)

@once
def capabilities(arch: str) -> Capabilities:
  """Capabilities of a level, such as "arm64:neon". Raises CompileError for another one.

  threads and the sizes of memory are assumed, those of a small processor. The engine replaces them by the values of the
  device.
  """
  if arch not in LEVELS:
    raise CompileError(f"{arch} is no level of arm64 that kernels are compiled for; use one of {', '.join(LEVELS)}")
  return Capabilities(vector_bytes=16, vector_registers=32, operations=frozenset(SCALAR_RULES) | COMMON,
                      vector_operations=frozenset(vector_rules(arch)) | COMMON | MASK_LOGIC, threads=2,
                      local_bytes=256 * 1024, cache_bytes=(32 * 1024, 512 * 1024, 4 << 20))
