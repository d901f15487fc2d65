"""The AVX2 level, executed by the processor in Python. Its results equal those of this processor, so that it can be
trusted with AVX-512."""
from __future__ import annotations
from collections.abc import Iterator
import struct

import numpy as np
from generators.program_builder import Builder
import pytest
from generators import tensor_programs
from x86 import kernels as x86_kernels
from x86 import machine as x86_machine

from test.helpers import open_engine
from tinyhw import Device, dtypes
from tinyhw.errors import DeviceError
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

@pytest.fixture(scope="module", autouse=True)
def devices() -> Iterator[None]:
  with x86_kernels.devices(): yield

@pytest.fixture(scope="module")
def native() -> str:
  """A device that runs AVX2 code on this processor."""
  return open_engine("CPU" if best_level() == "x86_64:avx2" else "AVX2")

def best_level() -> str:
  try: return Device["CPU"].arch
  except DeviceError: return ""

@pytest.mark.slow
@pytest.mark.parametrize("name", x86_kernels.KERNELS)
def test_kernels(native, name):
  for a, b in zip(x86_kernels.results(name, "X86"), x86_kernels.results(name, native)):
    np.testing.assert_array_equal(a, b)

@pytest.mark.slow
def test_random_programs():
  for seed in range(16):
    program = tensor_programs.make(seed)
    got = tensor_programs.run(program, "X86")
    tensor_programs.check(program, got)

@pytest.mark.parametrize("lanes", [4, 8])
def test_masks(lanes):
  x86_kernels.run(x86_kernels.masks(lanes), "x86_64:avx2", x86_kernels.memory_of_masks(lanes, np.int32))

@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.uint64, dtypes.float32, dtypes.float64], ids=str)
def test_scattered_stores(dtype):
  for lanes in (2, 4, 8, 16):
    if lanes * dtype.itemsize > 32: continue
    program = x86_kernels.scattered(lanes, dtype, wide=lanes == 4)
    x86_kernels.run(program, "x86_64:avx2", x86_kernels.memory_of_scattered(lanes, dtype))

@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64], ids=str)
def test_masked_memory(dtype):
  """Two lanes of four bytes are half of the smallest register."""
  for lanes in (2, 4, 8):
    if lanes * dtype.itemsize > 32: continue
    size = (lanes + lanes // 2) * dtype.itemsize
    x86_kernels.run(x86_kernels.masked_memory(lanes, dtype), "x86_64:avx2",
                    [b"\5" * size, bytes(k % 60 for k in range(size))])

@pytest.mark.parametrize("arch", x86_machine.LEVELS)
def test_registers_of_a_gather_differ(arch: str) -> None:
  """The indices and the values of false lanes are one constant here. Hardware refuses a gather whose indices are in its
  result's register."""
  b = Builder("gather")
  out, x, y = b.param(0, dtypes.int32, 8), b.param(1, dtypes.int32, 1), b.param(2, dtypes.int32, 8)
  zeros = b.const(dtypes.int32.vec(8), 0)
  with b.loop(1, AxisType.GLOBAL):
    gate = b.add(b.load(y, 0, 8).alu(Ops.CMPLT, UOp.const(dtypes.int32.vec(8), 5)))
    place = UOp(Ops.INDEX, dtypes.int32, (x, zeros))
    b.store(out, 0, b.add(UOp(Ops.LOAD, dtypes.int32.vec(8), (place, gate, zeros))))
  x86_kernels.run(b.program(), arch, [bytes(32), struct.pack("<i", 77), struct.pack("<8i", *range(8))])
