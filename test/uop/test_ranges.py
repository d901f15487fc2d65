"""The open ranges of nodes."""
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

f = UOp.variable("f", 0, 1).cast(dtypes.float32)

def test_ranges() -> None:
  r0, r1 = UOp.range(4, 0), UOp.range(8, 1, AxisType.REDUCE)
  place = UOp.param(0, dtypes.float32, 32).index(r0 * 8 + r1)
  assert ((r1 + r0).ranges == (r0, r1) and place.load().reduce(Ops.ADD, r1).ranges == (r0,)
          and place.store(f, r0, r1).ranges == ())
  assert place.store(r1.cast(dtypes.float32), r0).ranges == (r1,)
  assert UOp(Ops.STORE, dtypes.void, (UOp.param(0, r1.dtype, 8).index(0), r1)).ranges == (r1,)
  inner = UOp.range(r0 + 1, 2)
  assert inner.ranges == (r0, inner) and inner.reduce(Ops.ADD, inner).ranges == (r0,)
  assert UOp(Ops.STAGE, dtypes.float32, (place.load(), r1), (0,)).ranges == (r0,)
