"""Conversions between all types, on corners, and bits taken for another type."""
import itertools

import pytest

from test.codegen.kernels import data_for, wild
from test.isa.amd.test_select_cast import converted
from test.isa.sass.machine import ARCHS, check
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import AxisType, Ops

@pytest.mark.parametrize("arch", ARCHS)
def test_all_pairs(arch: str) -> None:
  for source, target in itertools.permutations(dtypes.all, 2):
    kernel = converted(Ops.CAST, source, target, AxisType.LOCAL, 64)
    check(kernel, arch, data=data_for(kernel, 2, wild), optimized=False, what=f"{source} to {target}")

@pytest.mark.parametrize("arch", ARCHS)
def test_bits(arch: str) -> None:
  pairs = [(a, b) for a, b in itertools.permutations(dtypes.all, 2) if a.itemsize == b.itemsize and dtypes.bool not in (a, b)]
  for source, target in pairs:
    if dtypes.is_float(source) and source.itemsize < 4: continue  # of a NaN only the kind is kept
    kernel = converted(Ops.BITCAST, source, target, AxisType.LOCAL, 20)
    check(kernel, arch, data=data_for(kernel, 4, wild), optimized=False, what=f"bits of {source} as {target}")
