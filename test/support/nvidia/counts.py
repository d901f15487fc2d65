"""How many instructions operations are on NVIDIA's GPUs, for operands of common size."""
from __future__ import annotations
import functools

from tinyhw.codegen.passes import lower
from tinyhw.dtype import dtypes
from tinyhw.isa.sass.capabilities import capabilities
from tinyhw.isa.sass.target import target
from tinyhw.machine.passes import run
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

@functools.lru_cache(None)
def instruction_count(op: Ops, arch: str) -> int:
  """Instructions that an operation of float32 is, constants aside: those of a kernel, less those of one that only
  copies."""
  operands = 2 if op in (Ops.POW, Ops.FDIV) else 1
  return instructions(op, arch, operands) - instructions(None, arch, operands)

def instructions(op: Ops | None, arch: str, operands: int) -> int:
  n = 64
  r = UOp.range(n, 0, AxisType.LOCAL)
  loads = tuple(UOp.param(1 + k, dtypes.float32, n).index(r).load() for k in range(operands))
  value = loads[0] if op is None else UOp(op, dtypes.float32, loads)
  kernel = UOp.sink(UOp.param(0, dtypes.float32, n).index(r).store(value, r))
  known = target(arch)
  assert known.select is not None
  function = run(known.select(lower(kernel, capabilities(arch), "count"), known), known)
  common = [inst.row.name for block in function.blocks if not block.rare for inst in block.insts]
  return sum(name not in ("MOV", "LDC", "ULDC", "LDG.U") for name in common)
