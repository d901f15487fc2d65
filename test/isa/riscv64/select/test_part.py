"""Constants of every type, executed by QEMU."""
from __future__ import annotations
from typing import Any

import pytest
from generators.program_builder import Builder
from riscv64.machine import needs_qemu, run

from tinyhw.arithmetic import to_bytes
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.riscv64.select.part import letter, lower_12, mover
from tinyhw.uop.enums import AxisType

INTEGERS = (0, 1, -1, 127, -128, 2047, 2048, -2048, -2049, 0x7ffff800, 0x7fffffff, -0x80000000, 0x12345678, 1 << 31,
            0x5555555555555555, -(1 << 63), 0x123456789abcdef, 0x7ffffffffffff800)
NUMBERS = (0.0, -0.0, 1.0, -31.0, 0.1, 1e30, float("inf"), float("nan"))

@needs_qemu
@pytest.mark.parametrize("arch", ("riscv64:g", "riscv64:rva22"))
@pytest.mark.parametrize("dtype", (*dtypes.ints, dtypes.bool, *dtypes.floats), ids=lambda d: d.name)
def test_every_constant_is_made(dtype: DType, arch: str) -> None:
  if dtype is dtypes.bool: values: list[Any] = [False, True]
  elif dtypes.is_float(dtype): values = [v for v in NUMBERS if dtype.itemsize > 1 or abs(v) < 40]
  else: values = [int.from_bytes(to_bytes(v & int(2 ** dtype.bitsize - 1), getattr(dtypes, f"uint{dtype.bitsize}")),
                                 "little", signed=dtype in dtypes.sints) for v in INTEGERS]
  b = Builder("constants")
  out = b.param(0, dtype, len(values))
  with b.loop(1, AxisType.GLOBAL):
    for k, value in enumerate(values): b.store(out, b.const(dtypes.int32, k), b.const(dtype, value))
  run(b.program(), arch, [bytes(len(values) * dtype.itemsize)])

def test_letters_and_parts() -> None:
  assert (letter(dtypes.float32), letter(dtypes.float64), mover(dtypes.float32)) == ("s", "d", "w")
  assert [lower_12(n) for n in (0, 2047, 2048, 4095, -2049)] == [0, 2047, -2048, -1, 2047]
