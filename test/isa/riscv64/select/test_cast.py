"""Conversions and bitcasts between all types, executed by QEMU."""
from __future__ import annotations

import pytest
from generators.program_builder import Builder
from riscv64.machine import needs_qemu, run
from x86 import operations

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.riscv64.select.cast import as_code, integer_letters
from tinyhw.isa.riscv64.target import compile
from tinyhw.machine.select.rules import FLOATS
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

TYPES = (*dtypes.ints, dtypes.bool, dtypes.float16, *FLOATS)

def on_riscv(program: Program, arch: str, memory: list[bytes]) -> None: run(program, arch, memory)

@needs_qemu
@pytest.mark.parametrize("arch", ("riscv64:g", "riscv64:rva22"))
@pytest.mark.parametrize("source", TYPES, ids=lambda d: d.name)
def test_casts_and_bitcasts(source: DType, arch: str) -> None:
  for target in TYPES:
    if target is source: continue
    narrow = dtypes.float16 in (source, target)
    if not narrow or dtypes.float32 in (source, target) and arch != "riscv64:g":
      operations.convert(Ops.CAST, source, target, 1, arch, on_riscv)
    if target.itemsize == source.itemsize and dtypes.bool not in (source, target):
      operations.convert(Ops.BITCAST, source, target, 1, arch, on_riscv)

@pytest.mark.parametrize("source,target", [(dtypes.float64, dtypes.float16), (dtypes.bfloat16, dtypes.float32),
                                           (dtypes.int32, dtypes.bfloat16), (dtypes.float32, dtypes.fp8e4m3)])
def test_others_are_refused(source: DType, target: DType) -> None:
  b = Builder("cast")
  out, x = b.param(0, target, 1), b.param(1, source, 1)
  with b.loop(1, AxisType.GLOBAL):
    zero = b.const(dtypes.int32, 0)
    b.store(out, zero, b.add(UOp(Ops.CAST, target, (b.load(x, zero),))))
  with pytest.raises(CompileError, match="riscv64 does not convert"): compile(b.program(), "riscv64:rva22")

def test_letters() -> None:
  assert [integer_letters(d) for d in (dtypes.uint8, dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64)] == [
    "w", "w", "wu", "l", "lu"]
  assert as_code(dtypes.bfloat16) is dtypes.uint16 and as_code(dtypes.fp8e5m2) is dtypes.uint8
