"""nn/loading/collate.py: items become batches."""
from __future__ import annotations
from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest

from tinyhw import Tensor, dtypes
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.nn.loading.collate import default_collate, default_convert

def test_forms() -> None:
  point = namedtuple("point", "x y")
  found = default_collate([{"a": (1, 2.5), "b": "s", "c": point(True, np.float32(3))} for _ in range(2)])
  a, c = found["a"], found["c"]
  assert [x.tolist() for x in a] == [[1, 1], [2.5, 2.5]] and a[0].dtype is dtypes.int32 and found["b"] == ["s", "s"]
  assert isinstance(c, point) and c.x.tolist() == [True, True] and c.y.dtype is dtypes.float32
  assert type(default_collate([OrderedDict(a=1)])) is OrderedDict

@pytest.mark.parametrize("make", [lambda: Tensor([[1.0, 2.0]]), lambda: Tensor([1, 2])[1] * 2, lambda: Tensor.zeros(0),
                                  lambda: Tensor([1.5, 2.5], dtype=dtypes.bfloat16), lambda: Tensor(7),
                                  lambda: Tensor([[1, 2], [3, 4]]).transpose(), lambda: Tensor([True, False])])
def test_tensors(make: Any) -> None:
  batch = default_collate([make() for _ in range(3)])
  assert batch.tolist() == [make().tolist()] * 3 and batch.dtype is make().dtype

def test_arrays_are_converted() -> None:
  found = default_convert({"a": np.arange(2), "b": (np.float64(1.5), "s"), "c": [3]})
  assert found["a"].tolist() == [0, 1] and found["b"][0].item() == 1.5 and found["b"][1] == "s" and found["c"] == [3]

def test_refusals() -> None:
  with pytest.raises(ShapeError, match="collate_fn that pads"): default_collate([Tensor([1]), Tensor([1, 2])])
  with pytest.raises(ArgumentError, match="different lengths"): default_collate([[1], [1, 2]])
  with pytest.raises(ArgumentError, match="not object"): default_collate([object()])
