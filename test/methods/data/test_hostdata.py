"""Python's numbers as bytes, and back."""
import array
import math

import numpy as np
import pytest

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.methods.data import hostdata
from tinyhw.tensor import Tensor

@pytest.mark.parametrize("dtype, values, result", [
  (dtypes.int8, [127, 128, -129], [127, -128, 127]), (dtypes.uint64, [-1, 2 ** 64], [2 ** 64 - 1, 0]),
  (dtypes.int32, [1.9, True, -1.9], [1, 1, -1]),
  (dtypes.float16, [1, 65519.0, 65520.0], [1.0, 65504.0, math.inf]),
  (dtypes.bfloat16, [1.0, 3.1415926], [1.0, 3.140625]),
  (dtypes.float32, [1e39, 1], [math.inf, 1.0]),
  (dtypes.bool, [2, 0.0, True], [True, False, True]), (dtypes.fp8e4m3, [1.0, 448.0], [1.0, 448.0]),
  (dtypes.float64, [0.1], [0.1])])
def test_round_trip(dtype, values, result):
  data = hostdata.pack(values, dtype)
  assert (hostdata.nested(memoryview(data), dtype, (len(values),)) == result
          and len(data) == len(values) * dtype.itemsize)

def test_nesting():
  data = memoryview(hostdata.pack(range(6), dtypes.int32))
  assert (hostdata.nested(data, dtypes.int32, (2, 1, 3)) == [[[0, 1, 2]], [[3, 4, 5]]]
          and hostdata.nested(data[:4], dtypes.int32, ()) == 0)
  assert hostdata.nested(memoryview(b""), dtypes.int32,
                         (2, 0, 3)) == [[], []] and hostdata.nested(memoryview(b""), dtypes.int32, (0, 2)) == []

def test_refusals():
  with pytest.raises(ShapeError, match="different lengths"): hostdata.from_nested([[1], [1, 2]], None)
  with pytest.raises(DTypeError, match="cannot make inf"): hostdata.pack([math.inf], dtypes.int8)

@pytest.mark.parametrize("values, dtype", [([300], dtypes.int8), ([-1], dtypes.uint8), ([2 ** 64], dtypes.uint64),
                                           ([-129.0], dtypes.int8),
                                           ([10 ** 400], dtypes.float32), ([1], dtypes.void), ([1], dtypes.weakint)])
def test_numbers_that_a_type_does_not_hold(values, dtype):
  with pytest.raises(DTypeError): hostdata.from_nested(values, dtype)
  with pytest.raises(DTypeError): Tensor(values[0], dtype=dtype)

def test_numbers_that_a_type_holds():
  assert (Tensor([127, -128], dtype=dtypes.int8).tolist() == [127, -128]
          and Tensor([2.7, -2.7], dtype=dtypes.int8).tolist() == [2, -2])
  assert (Tensor([1e300, 3], dtype=dtypes.float32).tolist() == [math.inf, 3.0]
          and Tensor([2, 0], dtype=dtypes.bool).tolist() == [True, False])
  # arrays wrap
  assert Tensor(255, dtype=dtypes.uint8).item() == 255 and Tensor([np.array([300])],
                                                                  dtype=dtypes.int8).tolist() == [[44]]

class Interface:
  """An object that only describes its memory."""
  def __init__(self):
    self.array = np.arange(3, dtype=np.int16)
    self.__array_interface__ = self.array.__array_interface__

class Array:
  def __array__(self, dtype=None, copy=None): return np.arange(3.0)

A = np.arange(6, dtype=np.float32).reshape(2, 3)

@pytest.mark.parametrize("data, want", [
  (None, np.zeros((), np.float32)), ([], np.zeros(0, np.float32)), ([[], []], np.zeros((2, 0), np.float32)),
  ((), np.zeros(0, np.float32)),
  (b"ab", np.uint8([97, 98])), (bytearray(b"ab"), np.uint8([97, 98])),
  (memoryview(b"abcdef")[::2], np.uint8([97, 99, 101])),
  (memoryview(b"abcdef").cast("B", (2, 3)), np.arange(97, 103, dtype=np.uint8).reshape(2, 3)),
  (array.array("d", [1, 2]), np.array([1.0, 2.0])),
  (range(1, 7, 2), np.int32([1, 3, 5])), ([1, 2.5, True], np.float32([1, 2.5, 1])),
  ([True, False], np.array([True, False])),
  (np.float64(2.5), np.float64(2.5)), (np.int8(3), np.int8(3)), (np.bool_(True), np.bool_(True)),
  ([np.float32(1), 2], np.float32([1, 2])),
  ([np.arange(2), np.arange(2)], np.array([[0, 1], [0, 1]])),
  ([[np.arange(2)], [np.arange(2)]], np.array([[[0, 1]], [[0, 1]]])),
  (np.array(3.0), np.array(3.0)), (A.T, A.T), (A[::-1], A[::-1]), (A[:, ::2], A[:, ::2]),
  (A.astype(">f4"), A), (A.astype(np.float16), A.astype(np.float16)),
  (np.zeros((0, 3)), np.zeros((0, 3))), (Array(), np.arange(3.0)), (Interface(), np.arange(3, dtype=np.int16)),
  ([Tensor([1, 2]), Tensor([3, 4])], np.int32([[1, 2], [3, 4]])), ([Tensor(1.0), 2], np.float32([1, 2])),
  ([[Tensor(1.0)], [2.0]], np.float32([[1], [2]])),
  ([Tensor([1]), Tensor([1.5])], np.float32([[1], [1.5]]))])
def test_data_of_all_kinds(data, want):
  got = Tensor(data).numpy()
  assert got.dtype == want.dtype and got.shape == want.shape
  np.testing.assert_array_equal(got, want)

@pytest.mark.parametrize("data, error", [
  ((x for x in [1]), ArgumentError), ({1}, ArgumentError), ({1: 2}, ArgumentError), ("abc", ArgumentError),
  (object(), ArgumentError),
  (["a"], DTypeError), ([None], DTypeError), ([[1], [1, 2]], ShapeError), ([[1], 2], ShapeError),
  ([1, [2]], ShapeError),
  (np.array([1, None], dtype=object), DTypeError), (np.array(["a"]), DTypeError),
  (np.array(["2020"], dtype="M8[D]"), DTypeError),
  (np.zeros(2, dtype=[("a", "i4")]), DTypeError), ([2 ** 31], DTypeError), ([Tensor([1]), Tensor([1, 2])], ShapeError)])
def test_data_that_is_refused(data, error):
  with pytest.raises(error): Tensor(data)

def test_lists_that_contain_themselves_are_refused() -> None:
  """The conversion once did not end."""
  endless: list[object] = []
  endless.append(endless)
  with pytest.raises(ShapeError, match="nested more than 64 deep, or contain themselves"): Tensor(endless)

def test_complex_data_has_two_planes() -> None:
  rows = hostdata.from_nested([[1 + 2j, 3], [4.5, True]], None)
  assert (rows.shape, rows.dtype, len(rows.data)) == ((2, 2), dtypes.complex64, 2)
  assert list(memoryview(rows.data[1]).cast("B").cast("f")) == [2.0, 0.0, 0.0, 0.0]
  found = hostdata.from_array(np.array([[1j, 2], [3, 4 - 1j]]).T, None)
  assert (found.shape, found.dtype) == ((2, 2), dtypes.complex128)
  assert list(memoryview(found.data[0]).cast("d")) == [0.0, 3.0, 2.0, 4.0]
  for make in (lambda: hostdata.from_nested([1j], dtypes.float32),
               lambda: hostdata.from_array(np.array([1j]), dtypes.float32)):
    with pytest.raises(DTypeError, match="take a complex type"): make()

def test_arrays_of_ml_dtypes() -> None:
  ml_dtypes = pytest.importorskip("ml_dtypes")
  numbers = np.array([[0, 1, -2, 6], [0.5, -4, 3, 1]], np.float32)
  for name, (wanted, _) in hostdata.EXTENSIONS.items():
    x = numbers.astype(getattr(ml_dtypes, name))
    for part in (x, x.T, x[:, ::2], x[:0], x[0, 0]):
      t = Tensor(part)
      assert (t.dtype, t.shape) == (wanted, part.shape), name
      np.testing.assert_array_equal(np.array(t.tolist()).reshape(part.shape), part.astype(np.float64), name)
    assert Tensor(x, dtype=dtypes.float64).tolist()[1][3] == float(x[1, 3]), name
  every = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e8m0fnu)
  np.testing.assert_array_equal(np.array(Tensor(every).tolist()), every.astype(np.float64))
