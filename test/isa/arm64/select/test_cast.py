"""Conversions and bitcasts between all types, as scalars and in vectors, executed by QEMU."""
from __future__ import annotations

import pytest
from arm64.machine import needs_qemu, run
from generators.program_builder import Builder
from x86 import operations

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.arm64.target import compile
from tinyhw.machine.select.rules import FLOATS
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

ARCH = "arm64:neon"
TYPES = (*dtypes.ints, dtypes.bool, dtypes.float16, *FLOATS)
WIDE = (dtypes.uint32, *dtypes.int64s)   # vectors of these neither come from floats nor become floats

def on_arm(program: Program, arch: str, memory: list[bytes]) -> None: run(program, arch, memory)

def converts(source: DType, target: DType, lanes: int) -> bool:
  """The conversions that docs/design/machine.md promises of CAST."""
  if source is target: return False
  if dtypes.float16 in (source, target): return dtypes.float32 in (source, target)
  if lanes == 1: return True
  return not any(a in FLOATS and b in WIDE for a, b in ((source, target), (target, source)))

def lanes_of(source: DType, target: DType) -> list[int]:
  return [n for n in (1, 2, 4, 8, 16) if n == 1 or n * max(source.itemsize, target.itemsize) <= 16]

@pytest.mark.slow
@needs_qemu
@pytest.mark.parametrize("source", TYPES, ids=lambda d: d.name)
def test_casts(source: DType) -> None:
  for target in TYPES:
    for lanes in lanes_of(source, target):
      if converts(source, target, lanes): operations.convert(Ops.CAST, source, target, lanes, ARCH, on_arm)

@pytest.mark.slow
@needs_qemu
@pytest.mark.parametrize("source", TYPES, ids=lambda d: d.name)
def test_bitcasts(source: DType) -> None:
  for target in TYPES:
    if target.itemsize != source.itemsize or target is source or dtypes.bool in (source, target): continue
    for lanes in lanes_of(source, target): operations.convert(Ops.BITCAST, source, target, lanes, ARCH, on_arm)

@pytest.mark.parametrize("source,target,lanes", [(dtypes.float64, dtypes.float16, 1), (dtypes.bfloat16, dtypes.float32,
                                                                                       1),
                                                 (dtypes.int64, dtypes.float32, 2), (dtypes.float32, dtypes.uint32, 4),
                                                 (dtypes.bool, dtypes.float16, 4)])
def test_others_are_refused(source: DType, target: DType, lanes: int) -> None:
  b = Builder("cast")
  out, x = b.param(0, target, lanes), b.param(1, source, lanes)
  with b.loop(1, AxisType.GLOBAL):
    zero = b.const(dtypes.int32, 0)
    b.store(out, zero, b.add(UOp(Ops.CAST, target.vec(lanes), (b.load(x, zero, lanes),))))
  with pytest.raises(CompileError, match="arm64 does not convert"): compile(b.program(), ARCH)
