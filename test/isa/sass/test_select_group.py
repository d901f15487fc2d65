"""Groups of registers: vectors that are loaded, taken apart, put together and stored, of all types, executed beside the interpreter."""
from __future__ import annotations

import pytest

from test.codegen.kernels import data_for, wild
from test.isa.amd.test_select_group import TYPES, neighbours
from test.isa.sass.machine import ARCHS, check
from tinyhw.codegen.passes import lower
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.sass.capabilities import capabilities
from tinyhw.isa.sass.select_group import selector
from tinyhw.isa.sass.syntax import show
from tinyhw.isa.sass.target import assemble
from tinyhw.uop.ops import UOp

def texts(kernel: UOp, arch: str) -> list[str]: return [show(inst) for _, inst, _ in assemble(lower(kernel, capabilities(arch), "k"), arch)[2]]

@pytest.mark.parametrize("changed", (False, True))
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_neighbours_of_all_types(dtype: DType, changed: bool) -> None:
  for k, copies in enumerate((2, 4, 8)):
    for gated in (False, True):
      kernel = neighbours(dtype, copies, changed, gated)
      check(kernel, ARCHS[k], data=data_for(kernel, 3, wild if not changed else None), optimized=False, what=f"{copies} {dtype}")

def test_accesses_are_as_wide_as_memory_allows() -> None:
  wide = texts(neighbours(dtypes.float32, 4, False), "sm_90")
  assert sum("LDG.E.128" in line for line in wide) == sum("STG.E.128" in line for line in wide) == 1
  assert sum("LDG.E.64" in line for line in texts(neighbours(dtypes.float32, 6, False), "sm_90")) == 3, "six begin at multiples of 8 bytes"

def test_selectors() -> None:
  assert [hex(selector(first, size, signed)) for first, size, signed in ((0, 1, False), (3, 1, True), (0, 2, False), (2, 2, True))] == [
    "0x4440", "0xbbb3", "0x4410", "0xbb32"]
