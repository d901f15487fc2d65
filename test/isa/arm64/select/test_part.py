"""Constants, emission, and where values live."""
from __future__ import annotations
import struct
from typing import Any

import pytest
from arm64.machine import needs_qemu, run
from generators.program_builder import Builder

from tinyhw.arithmetic import to_bytes
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.arm64.select.part import arrangement, home_of, scalar, width
from tinyhw.isa.arm64.table import regs
from tinyhw.isa.arm64.target import target
from tinyhw.uop.enums import AxisType
from tinyhw.uop.program import Program

ARCH = "arm64:neon"

@pytest.mark.parametrize("size,total,name", [(1, 2, "8b"), (1, 16, "16b"), (2, 8, "4h"), (4, 16, "4s"), (4, 8, "2s"),
                                             (8, 16, "2d")])
def test_arrangements(size: int, total: int, name: str) -> None: assert arrangement(size, total) == name

def test_places() -> None:
  assert [home_of(d) for d in (dtypes.int64, dtypes.bool, dtypes.float16, dtypes.float32, dtypes.int8.vec(4))] == [
    regs.X, regs.X, regs.X, regs.V, regs.V]
  assert (width(dtypes.int8), width(dtypes.uint64), scalar(dtypes.float32), scalar(dtypes.float64)) == ("w", "x", "s",
                                                                                                        "d")

def constants(dtype: DType, values: list[Any], lanes: int) -> Program:
  """A program that stores constants."""
  b = Builder("constants")
  out = b.param(0, dtype, len(values) * lanes)
  with b.loop(1, AxisType.GLOBAL):
    for k, value in enumerate(values): b.store(out, b.const(dtypes.int32, k * lanes), b.const(dtype.vec(lanes), value))
  return b.program()

INTEGERS = (0, 1, -1, 127, -128, 255, 65535, -65536, 0x12345678, -0x12345678, 1 << 31, 0x5555555555555555, -(1 << 63),
            0x123456789abcdef)
NUMBERS = (0.0, -0.0, 1.0, -31.0, 0.1, 1e30, float("inf"), float("nan"))

@needs_qemu
@pytest.mark.parametrize("dtype", (*dtypes.ints, *dtypes.floats), ids=lambda d: d.name)
def test_every_constant_is_made(dtype: DType) -> None:
  if dtypes.is_float(dtype): values: list[Any] = [v for v in NUMBERS if dtype.itemsize > 1 or abs(v) < 40]
  else: values = [int.from_bytes(to_bytes(v & int(2 ** dtype.bitsize - 1), getattr(dtypes, f"uint{dtype.bitsize}")),
                                 "little",
                                 signed=dtype in dtypes.sints) for v in INTEGERS]
  for lanes in (1, 16 // dtype.itemsize):
    run(constants(dtype, values, lanes), ARCH, [bytes(len(values) * lanes * dtype.itemsize)])

def test_constants_of_a_grid_are_made_before_it() -> None:
  b = Builder("once")
  out = b.param(0, dtypes.float32, 64)
  with b.loop(64, AxisType.GLOBAL) as g: b.store(out, g, b.add(b.load(out, g) * 0.1 + 0.3))
  function = target(ARCH).select(b.program(), target(ARCH))   # type: ignore[misc]  # it has one
  entry = [inst.operands[1] for inst in function.blocks[0].insts if inst.row.name == "ldr"
           and isinstance(inst.operands[1], bytes)]
  assert entry == [struct.pack("<f", 0.1), struct.pack("<f", 0.3)]
