"""Every operation on scalars in capabilities.py, at the corners of every type. The processor in Python executes
them."""
import pytest
from x86 import operations as x86_operations

from tinyhw.dtype import DType
from tinyhw.isa.x86.capabilities import LEVELS, SCALAR
from tinyhw.uop.enums import Ops

@pytest.mark.parametrize("arch", LEVELS)
@pytest.mark.parametrize("op, dtype", x86_operations.by_name(SCALAR), ids=lambda x: x.name)
def test_operations(op: Ops, dtype: DType, arch: str) -> None: x86_operations.run(op, dtype, 1, arch)
