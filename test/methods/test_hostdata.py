"""Python's numbers as bytes, and back."""
import math

import pytest

from tinyhw.dtype import dtypes
from tinyhw.errors import DTypeError, ShapeError
from tinyhw.methods import hostdata

@pytest.mark.parametrize("dtype, values, result", [
  (dtypes.int8, [127, 128, -129], [127, -128, 127]), (dtypes.uint64, [-1, 2 ** 64], [2 ** 64 - 1, 0]), (dtypes.int32, [1.9, True, -1.9], [1, 1, -1]),
  (dtypes.float16, [1, 65519.0, 65520.0], [1.0, 65504.0, math.inf]), (dtypes.bfloat16, [1.0, 3.1415926], [1.0, 3.140625]),
  (dtypes.float32, [1e39, 1], [math.inf, 1.0]),
  (dtypes.bool, [2, 0.0, True], [True, False, True]), (dtypes.fp8e4m3, [1.0, 448.0], [1.0, 448.0]), (dtypes.float64, [0.1], [0.1])])
def test_round_trip(dtype, values, result):
  data = hostdata.pack(values, dtype)
  assert hostdata.nested(memoryview(data), dtype, (len(values),)) == result and len(data) == len(values) * dtype.itemsize

def test_nesting():
  data = memoryview(hostdata.pack(range(6), dtypes.int32))
  assert hostdata.nested(data, dtypes.int32, (2, 1, 3)) == [[[0, 1, 2]], [[3, 4, 5]]] and hostdata.nested(data[:4], dtypes.int32, ()) == 0
  assert hostdata.nested(memoryview(b""), dtypes.int32, (2, 0, 3)) == [[], []] and hostdata.nested(memoryview(b""), dtypes.int32, (0, 2)) == []

def test_refusals():
  with pytest.raises(ShapeError, match="different lengths"): hostdata.from_nested([[1], [1, 2]], None)
  with pytest.raises(DTypeError, match="cannot make inf"): hostdata.pack([math.inf], dtypes.int8)
