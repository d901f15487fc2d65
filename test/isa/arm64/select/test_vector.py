"""Broadcasts, vectors of scalars, elements and parts of vectors, for every type and number of lanes."""
from __future__ import annotations

import pytest
from arm64.machine import needs_qemu, run
from generators.program_builder import Builder, broadcast, vectorize

from tinyhw.arithmetic import to_bytes
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

ARCH = "arm64:neon"
pytestmark = needs_qemu

@pytest.mark.parametrize("dtype", (*dtypes.ints, dtypes.float16, dtypes.float32, dtypes.float64), ids=lambda d: d.name)
def test_lanes(dtype: DType) -> None:
  lanes = 2
  while lanes * dtype.itemsize <= 16:
    b = Builder("lanes")
    out, x = b.param(0, dtype, 4 * lanes), b.param(1, dtype, lanes)
    with b.loop(1, AxisType.GLOBAL):
      whole = b.load(x, b.const(dtypes.int32, 0), lanes)
      elements = [b.add(UOp(Ops.GEP, dtype, (whole,), k)) for k in range(lanes)]
      made = [vectorize(*elements[::-1]), broadcast(elements[-1], lanes)]
      for k, value in enumerate(made): b.store(out, b.const(dtypes.int32, k * lanes), b.add(value))
      if lanes > 2:
        for k in range(2):
          part = b.add(UOp(Ops.GEP, dtype.vec(lanes // 2), (whole,), k * lanes // 2))
          b.store(out, b.const(dtypes.int32, 2 * lanes + k * lanes // 2), part)
      for k, element in enumerate(elements): b.store(out, b.const(dtypes.int32, 3 * lanes + k), element)
    data = b"".join(to_bytes(k * 3 - (2 if dtype not in dtypes.uints else 0), dtype) for k in range(lanes))
    run(b.program(), ARCH, [bytes(4 * lanes * dtype.itemsize), data])
    lanes *= 2
