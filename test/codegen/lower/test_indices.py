"""Machine integers for indices: widths from bounds, and additions in the order of loops."""
import pytest

from test.codegen.kernels import AVX2, axis, check, data_for, lower_text
from tinyhw.codegen.lower.indices import added, const, convert, lower_indices, multiplied
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp

F32, int32, int64 = dtypes.float32, dtypes.int32, dtypes.int64

def index_of(i: UOp, size: int = 1 << 62) -> UOp:
  """Return the lowered form of an index expression."""
  kernel = lower_indices(UOp.sink(UOp.param(0, F32, 1).index(0).store(UOp.param(1, F32, size).index(i).load())))
  return next(u for u in kernel.toposort() if u.op is Ops.LOAD).src[0].src[1]

def test_widths_follow_bounds() -> None:
  r, s = axis(1000, 0), axis(1 << 22, 1)
  assert index_of(r * 1000 + 5).dtype is int32
  wide = index_of(s * 1024 + r)
  assert wide.dtype is int64 and {u.dtype for u in wide.toposort() if u.op is Ops.RANGE} == {int32}
  assert index_of(s * 1024 // 4096).dtype is int64 and index_of(axis(1 << 33, 2)).dtype is int64
  assert index_of(UOp.variable("n", 0, 5)).dtype is int32 and index_of(UOp.variable("n", 0, 1 << 40)).dtype is int64

def test_outer_terms_first_and_the_constant_last() -> None:
  x, y, z = axis(4, 0), axis(5, 1), axis(6, 2)
  i = index_of(z + 7 + x * 30 + y * 6)
  assert i.src[1].arg == 7 and i.src[0].src[1].op is Ops.RANGE and i.src[0].src[0].ranges[-1].arg[0] == 1
  other = index_of(z + x * 30 + y * 6 + 9)
  assert other.src[0] is i.src[0]

def test_terms_of_one_loop_are_added_first() -> None:
  x, z = axis(4, 0), axis(6, 2)
  total = index_of(x * 30 + z % 3 + z // 3 * 5)
  assert [r.arg[0] for r in total.src[1].ranges] == [2] and [r.arg[0] for r in total.src[0].ranges] == [0]

def test_negative_terms_are_subtracted() -> None:
  x, z = axis(4, 0), axis(6, 2)
  i = index_of(x * 8 + 6 - z * 2)
  assert i.src[0].op is Ops.SUB and i.src[0].src[1].src[1].arg == 2 and i.src[1].arg == 6

def test_conversions() -> None:
  r = UOp(Ops.RANGE, int32, (const(int32, 9),), (0, None))
  assert convert(const(int32, 5), int64) is const(int64, 5) and convert(r,
                                                                        int32) is r and convert(r, int64).op is Ops.CAST
  assert convert(UOp(Ops.BROADCAST, int32.vec(4), (r,)), int64).src[0].op is Ops.CAST
  big = const(int32, (1 << 31) - 1)
  assert (added(big, const(int32, 1)).dtype is int64 and added(big, const(int32, -1)).dtype is int32
          and multiplied(r, 1 << 30).dtype is int64)

def test_indices_from_data() -> None:
  for dtype in (dtypes.int8, dtypes.uint8, dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.bool, dtypes.uint64):
    out, a, at = UOp.param(0, F32, 4), UOp.param(1, F32, 3), UOp.param(2, dtype, 4)
    r = axis(4, 0)
    i = at.index(r).load().cast(dtypes.weakint)
    check(UOp.sink(out.index(r).store(a.index(i + 1).load((i < 2) & (i > -2)), r)), AVX2,
          data={0: [0.0] * 4, 1: [1.0, 2.0, 3.0], 2: [False, True, True, False] if dtype is dtypes.bool
                else [0, 1, 2, 100]})

def test_an_index_as_data_and_sums_of_indices() -> None:
  out = UOp.param(0, dtypes.int64, 4)
  r, k = axis(4, 0), axis(3, 1, "REDUCE")
  total = (r * k + 1).reduce(Ops.ADD, k)
  check(UOp.sink(out.index(r).store(total.cast(int64) + (r < 2).where(r, -r).cast(int64), r)), AVX2)

def test_large_grids() -> None:
  text = lower_text(UOp.sink(UOp.param(0, F32, 1 << 40).index(axis(1 << 40, 0, "GLOBAL")).store(UOp.const(F32, 1.0),
                                                                                                axis(1 << 40, 0,
                                                                                                     "GLOBAL"))))
  assert "RANGE dtypes.int64" in text and "CAST" not in text

@pytest.mark.parametrize("lanes", (False, True))
def test_an_index_between_two_constants_is_one_comparison(lanes: bool) -> None:
  """Where lanes are threads, a gate of four bounds becomes two equivalent comparisons."""
  out, a = UOp.param(0, dtypes.float32, 64), UOp.param(1, dtypes.float32, 64)
  i, j = axis(8, 0), axis(8, 1)
  gate = (i + j > 4) & (i < 7) & (i + j < 11) & (i * 2 - j > -3)
  kernel = UOp.sink(out.index(i * 8 + j).store(a.index(i * 8 + j).load(gate), i, j))
  lowered = lower_indices(kernel, lanes)
  expected, found = data_for(kernel), data_for(kernel)
  evaluate(kernel, expected)
  evaluate(lowered, found)
  assert expected == found and 0 in expected[0]
  compared = [u.src[0].dtype for u in lowered.toposort() if u.op is Ops.CMPLT]
  assert sorted(map(str, compared)) == sorted(map(str, [dtypes.int32, dtypes.int32, dtypes.uint32] if lanes
                                                  else [dtypes.int32] * 4))
