"""Vectors of bool: their lanes, logic, memory, and variables."""
from __future__ import annotations

import pytest
from arm64.machine import needs_qemu, run
from cpu import kernels

from tinyhw.dtype import DType, dtypes

ARCH = "arm64:neon"
pytestmark = needs_qemu
TYPES = (dtypes.int8, dtypes.uint16, dtypes.int32, dtypes.float32, dtypes.int64, dtypes.float64)

@pytest.mark.parametrize("other", TYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: d.name)
def test_a_mask_of_one_type_chooses_values_of_another(dtype: DType, other: DType) -> None:
  case = kernels.choice(dtype, other, 16)
  run(case.program, ARCH, case.memory)

@pytest.mark.parametrize("lanes", (2, 4, 8, 16))
def test_logic_memory_and_lanes(lanes: int) -> None:
  case = kernels.logic(lanes)
  run(case.program, ARCH, case.memory)
