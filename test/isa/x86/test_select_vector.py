"""Every operation on vectors that capabilities.py claims, at every number of lanes, executed by the processor in Python."""
import pytest
import x86_operations

from tinyhw.dtype import DType
from tinyhw.isa.x86.capabilities import LEVELS
from tinyhw.uop.enums import Ops

CASES = [pytest.param(op, dtype, arch, id=f"{op.name}-{dtype.name}-{arch[7:]}")
         for arch, level in LEVELS.items() for op, dtype in x86_operations.by_name(level[2])]

@pytest.mark.parametrize("op, dtype, arch", CASES)
def test_operations(op: Ops, dtype: DType, arch: str) -> None:
  for lanes in x86_operations.lanes_of(dtype, arch): x86_operations.run(op, dtype, lanes, arch)
