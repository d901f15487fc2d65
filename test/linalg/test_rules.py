"""linalg/rules.py: checks of matrices, rows at an index that is data, gradients by a rule."""
from __future__ import annotations

import pytest

from tinyhw import Tensor
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.linalg.rules import column_at, first_bad, index, matrices, row_at

def test_rows_and_columns() -> None:
  x = Tensor([[1.0, 2.0], [3.0, 4.0]])
  assert row_at(x, index(1)).tolist() == [[3.0, 4.0]]
  assert column_at(x, index(0)).tolist() == [[1.0], [3.0]]

def test_refuses() -> None:
  with pytest.raises(ShapeError, match="matrices"): matrices("f", Tensor([1.0]))
  with pytest.raises(DTypeError, match="floats"): matrices("f", Tensor([[1]]))
  with pytest.raises(ArgumentError, match="matrix 1 of the batch is odd"): first_bad("f", Tensor([0, 2]), "is odd")
