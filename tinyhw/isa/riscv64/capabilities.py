"""Operations of RISC-V by level: `Capabilities` for codegen. They are those that the rules of select/rules.py have, and
what selection has besides: choices and conversions."""
from __future__ import annotations

from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.riscv64.select.rules import LEVELS, VECTOR_BYTES, scalar_rules, vector_rules
from tinyhw.machine.ir.target import Capabilities
from tinyhw.machine.select.rules import FLOATS
from tinyhw.threads import once
from tinyhw.uop.enums import Ops

COMMON = frozenset((op, dtype) for op in (Ops.WHERE, Ops.CAST, Ops.BITCAST)
                   for dtype in (*dtypes.ints, *FLOATS, dtypes.bool))
CODES = frozenset((op, dtype) for op in (Ops.WHERE, Ops.BITCAST) for dtype in dtypes.narrow_floats)
HALVES = frozenset({(Ops.CAST, dtypes.float16)})   # Zfhmin

@once
def capabilities(arch: str) -> Capabilities:
  """Capabilities of a level, such as "riscv64:rva22". Raises CompileError for another one.

  threads and the sizes of memory are assumed, those of a small processor. The engine replaces them by the values of the
  device.
  """
  if arch not in LEVELS:
    raise CompileError(f"{arch} is no level of riscv64 that kernels are compiled for; use one of {', '.join(LEVELS)}")
  halves = HALVES if arch != "riscv64:g" else frozenset()
  lanes = frozenset(vector_rules(arch)) | COMMON | CODES if arch in VECTOR_BYTES else frozenset()
  return Capabilities(vector_bytes=VECTOR_BYTES.get(arch, 0), vector_registers=32, vector_operations=lanes,
                      masked_bytes=(1, 2, 4, 8) if arch in VECTOR_BYTES else (), gathers=arch in VECTOR_BYTES,
                      operations=frozenset(scalar_rules(arch)) | COMMON | CODES | halves, threads=2,
                      local_bytes=256 * 1024, cache_bytes=(32 * 1024, 512 * 1024, 4 << 20))
