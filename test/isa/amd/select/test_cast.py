"""Conversions between all types on corner values, and bitcasts; varying and uniform."""
import itertools

import pytest

from test.codegen.kernels import data_for, wild
from test.isa.amd.machine import ARCHS, check
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

def converted(op: Ops, source: DType, target: DType, kind: AxisType, n: int) -> UOp:
  r = UOp.range(n, 0, kind)
  return UOp.sink(UOp.param(0, target, n).index(r).store(UOp(op, target, (UOp.param(1, source, n).index(r).load(),)),
                                                         r))

@pytest.mark.slow
@pytest.mark.parametrize("kind, n", [(AxisType.LOCAL, 64), (AxisType.GLOBAL, 20)])
@pytest.mark.parametrize("arch", ARCHS)
def test_all_pairs(arch: str, kind: AxisType, n: int) -> None:
  for source, target in itertools.permutations(dtypes.all, 2):
    kernel = converted(Ops.CAST, source, target, kind, n)
    check(kernel, arch, data=data_for(kernel, 2, wild), optimized=False, what=f"{source} to {target}")

@pytest.mark.slow
@pytest.mark.parametrize("kind", (AxisType.LOCAL, AxisType.GLOBAL))
@pytest.mark.parametrize("arch", ARCHS)
def test_bits(arch: str, kind: AxisType) -> None:
  pairs = [(a, b) for a, b in itertools.permutations(dtypes.all, 2) if a.itemsize == b.itemsize
           and dtypes.bool not in (a, b)]
  for source, target in pairs:
    if dtypes.is_float(source) and source.itemsize < 4: continue  # of a NaN only the kind is kept
    kernel = converted(Ops.BITCAST, source, target, kind, 20)
    check(kernel, arch, data=data_for(kernel, 4, wild), optimized=False, what=f"bits of {source} as {target}")

@pytest.mark.parametrize("kind", (AxisType.LOCAL, AxisType.GLOBAL))
@pytest.mark.parametrize("arch", ARCHS)
def test_narrow_bits_that_all_lanes_share(arch: str, kind: AxisType) -> None:
  """Bits of a number with fewer bits, as random numbers of half precision are made."""
  r = UOp.range(20, 0, kind)
  for wide, narrow, target in ((dtypes.uint32, dtypes.uint16, dtypes.float16),
                               (dtypes.uint32, dtypes.uint8, dtypes.int8)):
    bits = UOp(Ops.BITCAST, target, (UOp(Ops.CAST, narrow, (UOp.param(1, wide, 20).index(r).load(),)),))
    kernel = UOp.sink(UOp.param(0, dtypes.float32, 20).index(r).store(UOp(Ops.CAST, dtypes.float32, (bits,)), r))
    check(kernel, arch, data=data_for(kernel, 4), optimized=False, what=f"bits of {narrow} as {target}")
