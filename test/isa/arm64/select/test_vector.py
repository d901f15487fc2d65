"""Broadcasts, vectors of scalars, elements and parts of vectors, for every type and number of lanes."""
from __future__ import annotations

import pytest
from arm64.machine import needs_qemu, run
from cpu import kernels

from tinyhw.dtype import DType, dtypes

ARCH = "arm64:neon"
pytestmark = needs_qemu

@pytest.mark.parametrize("dtype", (*dtypes.ints, dtypes.float16, dtypes.float32, dtypes.float64), ids=lambda d: d.name)
def test_lanes(dtype: DType) -> None:
  lanes = 2
  while lanes * dtype.itemsize <= 16:
    case = kernels.lanes(dtype, lanes)
    run(case.program, ARCH, case.memory)
    lanes *= 2
