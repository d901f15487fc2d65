"""Casts and the bits of elements."""
import numpy as np
import pytest

from test.helpers import compare
from tinyhw.dtype import dtypes
from tinyhw.errors import DTypeError, ShapeError
from tinyhw.tensor import Tensor

@pytest.mark.slow
def test_casts():
  compare(lambda t: t.cast("int32"), lambda a: a.astype(np.int32), np.array([1.9, -1.9, 0.0], np.float32))
  compare(lambda t: t.bool(), lambda a: a.astype(bool), np.array([0.0, 0.25, -1], np.float32))
  compare(lambda t: t.cast(dtypes.uint8), lambda a: a.astype(np.uint8), np.array([300, -1, 5], np.int32))
  compare(lambda t: t.bitcast(dtypes.int32), lambda a: a.view(np.int32), np.array([1.5, -2], np.float32))
  x = Tensor([1.0])
  assert x.cast(dtypes.float32) is x and x.half().dtype is dtypes.float16 and x.double().dtype is dtypes.float64
  assert [x.short().dtype, x.int().dtype, x.long().dtype, x.bfloat16().dtype] == [dtypes.int16, dtypes.int32,
                                                                                  dtypes.int64, dtypes.bfloat16]
  with pytest.raises(DTypeError, match="cannot bitcast"): x.bitcast(dtypes.bool)

@pytest.mark.parametrize("have", ["uint8", "int8", "int16", "float16", "int32", "float32", "uint64", "float64"])
@pytest.mark.parametrize("want", ["uint8", "int16", "uint32", "float32", "int64", "float64"])
def test_bitcast_to_another_size(have, want):
  data = np.arange(96, dtype=np.uint8).view(have).reshape(3, -1)
  np.testing.assert_array_equal(Tensor(data).bitcast(want).numpy(), data.view(want))

def test_bitcast_to_another_size_refuses_parts_of_elements():
  with pytest.raises(ShapeError, match="whole number"): Tensor([1, 2, 3], dtype="uint8").bitcast("int16")
  with pytest.raises(ShapeError, match="whole number"): Tensor(1.0).bitcast("int16")
  assert (Tensor.empty(2, 0, dtype="uint8").bitcast("int32").shape == (2, 0)
          and Tensor([1.0], dtype="bfloat16").bitcast("uint8").tolist() == [128, 63])

def test_detach_stops_gradients():
  x = Tensor([2.0, 3.0])
  assert (x.detach() * x).sum().gradient(x)[0].tolist() == [2.0, 3.0]
