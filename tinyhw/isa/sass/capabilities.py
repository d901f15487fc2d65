"""The operations of NVIDIA GPUs: `Capabilities` for codegen.

Codegen expresses missing operations with those listed here.
"""
from __future__ import annotations

from tinyhw.autogen.nvidia import bank
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError, EncodeError
from tinyhw.isa.sass.model.rates import card
from tinyhw.isa.sass.table.form import Generation
from tinyhw.isa.sass.table.matrix import less_exact, units
from tinyhw.isa.sass.table.units import FILE, PARTITIONS, RESERVED_BYTES, UNITS, WARP, column
from tinyhw.machine.ir.target import Capabilities
from tinyhw.threads import once
from tinyhw.uop.enums import GroupOp, Ops

COMPARE = tuple(GroupOp.Comparison)
INTEGER = (Ops.ADD, Ops.SUB, Ops.MUL, Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR, Ops.NEG, Ops.MAX, Ops.WHERE,
           Ops.BITCAST)
FLOAT = (Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.NEG, Ops.SQRT, Ops.TRUNC, Ops.MULACC, Ops.WHERE, Ops.CAST,
         Ops.BITCAST)
LOGIC = (Ops.AND, Ops.OR, Ops.XOR, Ops.WHERE, Ops.CAST)
MOVES = (Ops.WHERE, Ops.BITCAST)
HALVES = (dtypes.float16, dtypes.bfloat16)
NARROW = dtypes.int8s + dtypes.int16s

def pairs(ops: tuple[Ops, ...], *types: DType) -> frozenset[tuple[Ops, DType]]:
  return frozenset((op, dtype) for op in ops for dtype in types)

# There is no integer divider.
SCALAR = (pairs(INTEGER + COMPARE, *dtypes.int32s, *dtypes.int64s) | pairs(FLOAT + COMPARE, dtypes.float32,
                                                                           dtypes.float64)
          | pairs((Ops.RECIPROCAL,), dtypes.float32) | pairs(LOGIC, dtypes.bool)
          | pairs(MOVES, *NARROW, *dtypes.narrow_floats)
          | pairs((Ops.CAST,), *dtypes.int32s, dtypes.int64, *HALVES) | pairs((Ops.DOT4,), dtypes.int32))

FP8 = pairs((Ops.CAST,), *dtypes.fp8_ocp)      # from sm_89 on

VECTOR = pairs((Ops.CAST,), dtypes.float16)   # of float32: how results of the matrix unit are stored

REGISTERS = 250        # of a lane, less those that the hardware and spills of predicates take
WARPS_PER_SM = 16      # of a launch, to hide the latency of memory
COPY_BYTES = (4, 8, 16)    # of an asynchronous copy
WITH_BULK_COPIES = frozenset({"sm_90"})   # these have a unit for bulk tensor copies

# generation -> streaming multiprocessors of a typical card, and its caches. A device replaces them by the values that
# it finds.
CARDS = {"sm_80": (108, (192 << 10, 40 << 20)), "sm_89": (142, (128 << 10, 96 << 20)),
         "sm_90": (132, (256 << 10, 50 << 20))}

def local_bytes(arch: str) -> int:
  """Return the most shared memory that a block may have: all but the part that the system reserves."""
  return UNITS[column(arch)].local_bytes - RESERVED_BYTES

@once
def capabilities(arch: str) -> Capabilities:
  """Return the capabilities of "sm_90" and so on. Raises CompileError for a generation that has no kernels."""
  generation = generation_of(arch)
  multiprocessors, caches = CARDS[generation.name]
  return Capabilities(vector_bytes=16, vector_registers=REGISTERS, aligned=True,
                      operations=SCALAR | FP8 if generation.has("89+") else SCALAR,
                      vector_operations=VECTOR,
                      maxima=frozenset({dtypes.float32}), truths=True, rough=True,
                      threads=multiprocessors * WARPS_PER_SM, lanes=WARP,
                      local_bytes=local_bytes(arch), unit_registers=PARTITIONS * FILE.registers * WARP,
                      hidden_registers=bank.HIDDEN_REGISTERS,
                      copies=COPY_BYTES, bulk_copies=generation.name in WITH_BULK_COPIES, exchanges=True,
                      unit_waves=WARPS_PER_SM,
                      cache_bytes=caches, card=card(arch),
                      matrix=tuple(unit.matrix for unit in units(generation.name)),
                      less_exact=tuple((name, tuple(unit.matrix for unit in found))
                                       for name, found in less_exact(generation.name).items()))

@once
def generation_of(arch: str) -> Generation:
  """Return the column of the table for an architecture. Raises CompileError."""
  try: found = Generation(arch)
  except EncodeError as e: raise CompileError(str(e)) from None
  if found.name not in CARDS: raise CompileError(f"kernels for {arch} are not made yet; there is {', '.join(CARDS)}")
  return found
