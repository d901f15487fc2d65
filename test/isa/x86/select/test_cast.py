"""Conversions and bitcasts between all types, as scalars and in vectors, executed by the processor in Python."""
import pytest
from x86 import operations as x86_operations

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.x86.capabilities import LEVELS, capabilities
from tinyhw.uop.enums import Ops

TYPES = (*dtypes.ints, dtypes.bool, *dtypes.narrow_floats, dtypes.float32, dtypes.float64)
# vectors of these convert to floats only with wide_casts, and vectors of floats never to uint32 or uint64
WIDE = (dtypes.uint32, *dtypes.int64s)

def converts(source: DType, target: DType, lanes: int, arch: str) -> bool:
  """The conversions that docs/design/machine.md promises of CAST."""
  known = capabilities(arch)
  if source is target: return False
  if dtypes.is_int(source) and dtypes.is_int(target): return True
  for narrow, other in ((source, target), (target, source)):
    if narrow in dtypes.narrow_floats and not (other is dtypes.float32 and known.supports(Ops.CAST, narrow)):
      return False
  if lanes > 1 and source in WIDE and dtypes.is_float(target): return known.wide_casts and source is not dtypes.uint32
  if lanes > 1 and dtypes.is_float(source) and target in WIDE: return known.wide_casts and target is dtypes.int64
  return all(known.supports(Ops.CAST, d.vec(lanes) if d.itemsize * lanes <= known.vector_bytes else d)
             for d in (source, target))

@pytest.mark.slow
@pytest.mark.parametrize("arch", LEVELS)
@pytest.mark.parametrize("source", TYPES, ids=str)
def test_casts(source: DType, arch: str) -> None:
  for target in TYPES:
    if converts(source, target, 1, arch): x86_operations.convert(Ops.CAST, source, target, 1, arch)
    for lanes in x86_operations.lanes_of(source if source.itemsize >= target.itemsize else target, arch):
      if converts(source, target, lanes, arch): x86_operations.convert(Ops.CAST, source, target, lanes, arch)

@pytest.mark.slow
@pytest.mark.parametrize("arch", LEVELS)
@pytest.mark.parametrize("source", TYPES, ids=str)
def test_bitcasts(source: DType, arch: str) -> None:
  for target in TYPES:
    if target.itemsize != source.itemsize or target is source or dtypes.bool in (source, target): continue
    for lanes in (1, *x86_operations.lanes_of(source, arch)):
      x86_operations.convert(Ops.BITCAST, source, target, lanes, arch)
