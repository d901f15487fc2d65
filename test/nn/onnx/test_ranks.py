"""Operators that move or compare elements, on text, against NumPy."""
import numpy as np
import pytest

from formats.onnx_writer import run
from tinyhw.errors import ArgumentError
from tinyhw.nn.onnx.ranks import BY_RANK

X = np.array([["pear", "fig"], ["apple", "fig"], ["", "ölbaum"]])

def test_moved_text() -> None:
  assert run("Reshape", X, np.array([2, 3]), known=[1]).tolist() == X.reshape(2, 3).tolist()
  assert run("Transpose", X).tolist() == X.T.tolist()
  assert run("Gather", X, np.array([2, 0]), axis=0).tolist() == X[[2, 0]].tolist()
  assert run("Concat", X, X[:1], axis=0).tolist() == np.concatenate([X, X[:1]]).tolist()
  assert run("Slice", X, np.array([1]), np.array([3])).tolist() == X[1:].tolist()
  assert run("Where", np.array([[True], [False], [True]]), X, X[:1]).tolist() == np.where(
    [[True], [False], [True]], X, X[:1]).tolist()
  assert [x.tolist() for x in run("Split", X, axis=1, outputs=2)] == [X[:, :1].tolist(), X[:, 1:].tolist()]

def test_compared_text() -> None:
  assert run("Equal", X, X[:, ::-1].copy()).tolist() == (X == X[:, ::-1]).tolist()
  values, first, inverse, counts = run("Unique", X, outputs=4)
  expected = np.unique(X, return_index=True, return_inverse=True, return_counts=True)
  for found, wanted in zip((values, first, inverse, counts), expected): assert found.tolist() == wanted.ravel().tolist()
  assert run("Shape", X).tolist() == [3, 2] and run("Identity", X).tolist() == X.tolist()

def test_operators_of_numbers_are_refused() -> None:
  assert "Add" not in BY_RANK
  with pytest.raises(ArgumentError, match=r"\(Add\): an input is text"): run("Add", X, X)
