"""functional/operands.py: promotion as PyTorch's, axes, shapes."""
from __future__ import annotations

import pytest

from tinyhw import Tensor, dtypes
from tinyhw.errors import ArgumentError, IndexRangeError, ShapeError
from tinyhw.functional.operands import axes_of, axis_of, common_shape, floats, reduced, result_type, spread

def test_tensors_without_axes_are_weak() -> None:
  half, single = Tensor([1.0], dtype=dtypes.float16), Tensor(1.0)
  assert result_type(half, single) is dtypes.float16
  assert result_type(Tensor([1]), 2.5) is dtypes.float32
  assert result_type(Tensor([True]), 3) is dtypes.int64
  assert floats(Tensor([1]), 2)[0].dtype is dtypes.float32

def test_axes() -> None:
  x = Tensor.ones(2, 3)
  assert axes_of(x, (-1, 0)) == (1, 0)
  assert axis_of(Tensor(1.0), -1) == 0
  assert spread("stride", 2, 3) == (2, 2, 2)
  assert common_shape((2, 1), (3,)) == (2, 3)
  with pytest.raises(IndexRangeError, match="dim 2"): axis_of(x, 2)
  with pytest.raises(ArgumentError, match="twice"): axes_of(x, (0, -2))
  with pytest.raises(ShapeError, match="broadcast"): common_shape((2,), (3,))
  with pytest.raises(ArgumentError, match="reduction"): reduced(x, "most")
