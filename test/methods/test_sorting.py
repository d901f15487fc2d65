"""Sorting and selection."""
import math

import numpy as np
import pytest

from test.helpers import arrays, compare, same
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import ArgumentError, DTypeError
from tinyhw.methods import sorting
from tinyhw.tensor import Tensor

@pytest.fixture(params=["counted", "bitonic"])
def _method(request, monkeypatch):
  if request.param == "bitonic": monkeypatch.setattr(sorting, "_MOST_COUNTED", 0)

@pytest.mark.slow
@pytest.mark.usefixtures("_method")
@pytest.mark.parametrize("n", [1, 2, 5, 8, 11])
def test_sort(n):
  x = arrays((2, n), low=-3, high=3, dtype=np.int32)[0]
  for axis in (0, 1):
    compare(lambda t: t.sort(axis),
            lambda a: (np.sort(a, axis, "stable"), np.argsort(a, axis, "stable").astype(np.int32)), x)
    compare(lambda t: t.sort(axis, descending=True),
            lambda a: (-np.sort(-a, axis, "stable"), np.argsort(-a, axis, "stable").astype(np.int32)), x)

@pytest.mark.slow
@pytest.mark.usefixtures("_method")
def test_sort_with_special_values():
  x = np.array([math.nan, math.inf, -1, -math.inf, math.nan, 2], np.float32)
  values, places = Tensor(x).sort()
  assert places.tolist() == [3, 2, 5, 1, 0, 4] and values.tolist()[:4] == [-math.inf, -1, 2, math.inf]
  assert Tensor(x).argsort(descending=True).tolist() == [0, 4, 1, 5, 2, 3]
  assert Tensor([True, False]).sort()[0].tolist() == [False, True]
  assert Tensor([200, 3], dtype="uint8").sort()[0].tolist() == [3, 200]

@pytest.mark.slow
def test_topk():
  x = np.array([[1, 9, 5, 9], [4, 3, 2, 1]], np.float32)
  values, places = Tensor(x).topk(2)
  assert values.tolist() == [[9, 9], [4, 3]] and places.tolist() == [[1, 3], [0, 1]]
  assert Tensor(x).topk(1, dim=0, largest=False)[0].tolist() == [[1, 3, 2, 1]]
  with pytest.raises(ArgumentError, match="top 5"): Tensor(x).topk(5)
  with pytest.raises(ArgumentError, match="masked_select wants a Tensor"): Tensor(x).masked_select(True)

def test_empty_and_scalar():
  assert Tensor(np.zeros((0,), np.float32)).sort()[0].shape == (0,) and Tensor(3.0).sort()[0].item() == 3.0

def test_one_hot():
  same(Tensor([[0, 2], [1, -1]]).one_hot(3), np.array([[[1, 0, 0], [0, 0, 1]], [[0, 1, 0], [0, 0, 0]]], np.int32))
  assert Tensor([0, 4]).one_hot().shape == (2, 5)
  with pytest.raises(DTypeError): Tensor([1.0]).one_hot(2)

@pytest.mark.slow
def test_nonzero():
  x = np.array([[0, 1, 0], [2, 0, 3]], np.float32)
  compare(lambda t: t.nonzero(), lambda a: np.argwhere(a).astype(np.int32), x)
  assert Tensor(x).nonzero(size=4, fill_value=-7).tolist() == [[0, 1], [1, 0], [1, 2], [-7, -7]]
  assert Tensor(x).nonzero(size=2).tolist() == [[0, 1], [1, 0]] and Tensor([0, 0]).nonzero().shape == (0, 1)

@pytest.mark.slow
def test_masked_select():
  x = arrays((3, 4))[0]
  compare(lambda t: t.masked_select(t > 0), lambda a: a[a > 0], x)
  assert Tensor([1.0, 2.0, 3.0]).masked_select(Tensor([True, False, True]), size=4,
                                               fill_value=9).tolist() == [1.0, 3.0, 9.0, 9.0]
  assert Tensor([1.0, 2.0, 3.0]).masked_select(Tensor([True, False, True]), size=1).tolist() == [1.0]
  assert Tensor([[1], [2]]).masked_select(Tensor([True, False, True])).tolist() == [1, 1, 2, 2]
  assert Tensor([1, 2]).masked_select(Tensor([False, False])).dtype is dtypes.int32

@pytest.mark.slow
@pytest.mark.usefixtures("_method")
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64], ids=str)
@pytest.mark.parametrize("descending", [False, True])
def test_floats_of_all_kinds_are_in_order_and_equal_ones_as_they_were(descending: bool, dtype: DType) -> None:
  """Zeros of both signs are equal. So are NaNs, which are larger than infinity."""
  values = [0.0, -0.0, math.nan, -1.5, math.inf, -math.inf, 3.0, -0.0, -math.nan, 3.0, -1e-3, 0.0]
  kinds = [(1, 0.0) if math.isnan(v) else (0, v) for v in values]
  places = sorted(range(len(values)), key=lambda k: tuple(-x for x in kinds[k]) if descending else kinds[k])
  assert Tensor(values, dtype=dtype).argsort(descending=descending).tolist() == places
