"""Operators that select and place elements, against NumPy."""
from typing import Any

import numpy as np
import pytest

from formats.onnx_writer import run
from tinyhw.errors import TinyError

F32 = np.float32
X = np.arange(24, dtype=F32).reshape(2, 3, 4)

def i64(*values: int) -> Any: return np.array(values, np.int64)

def test_gathering() -> None:
  assert run("Gather", X, i64(2, -1, 0), axis=1).tolist() == X[:, [2, 2, 0]].tolist()
  assert run("Gather", X, np.array(1), axis=2, known=[1]).shape == (2, 3)
  index = np.array([[[0, 1, -1, 0]]])
  assert run("GatherElements", X, index, axis=1).tolist() == np.take_along_axis(X[:1], index % 3, 1).tolist()
  assert run("GatherND", X, np.array([[0, 1], [1, -1]])).tolist() == X[[0, 1], [1, 2]].tolist()
  assert run("GatherND", X, np.array([[1], [2]]), batch_dims=1).tolist() == X[[0, 1], [1, 2]].tolist()
  assert run("Compress", X, np.array([False, True, True]), axis=1).tolist() == X[:, 1:].tolist()
  assert run("Compress", X, np.array([True])).tolist() == [0]
  with pytest.raises(TinyError, match="outside"): run("Gather", X, np.array(7), axis=0, known=[1])
  with pytest.raises(TinyError, match="whole numbers"): run("Gather", X, np.array([1.5], F32))
  with pytest.raises(TinyError, match="tuples"): run("GatherND", X, np.zeros((1, 4), np.int64))

def test_scattering() -> None:
  data, index, updates = np.zeros((2, 3), F32), np.array([[1, -1], [0, 1]]), np.array([[1, 2], [3, 4]], F32)
  assert run("ScatterElements", data, index, updates, axis=1).tolist() == [[0, 1, 2], [3, 4, 0]]
  assert run("ScatterElements", data + 1, index * 0, updates, axis=1,
             reduction="add").tolist() == [[4, 1, 1], [8, 1, 1]]
  assert run("ScatterElements", data + 2, index * 0, updates, axis=1,
             reduction="max").tolist() == [[2, 2, 2], [4, 2, 2]]
  assert run("ScatterND", X, np.array([[1], [0]]), X * 2).tolist() == (X * 2)[::-1].tolist()
  assert run("ScatterND", np.ones(3, F32), np.array([[1], [1]]), np.array([2, 3], F32),
             reduction="mul").tolist() == [1, 6, 1]
  assert run("TensorScatter", np.zeros((1, 4, 1), F32), np.ones((1, 2, 1), F32), i64(3), opset=24,
             mode="circular").reshape(4).tolist() == [1, 0,
                                                      0, 1]
  with pytest.raises(TinyError, match="reduction is"):
    run("ScatterElements", data, index, updates, axis=1, reduction="xor")
  with pytest.raises(TinyError, match="cannot scatter"): run("ScatterND", X, np.array([[1]]), X)

def test_selecting() -> None:
  x = np.array([[3, 1, 2], [1, 3, 2]], F32)
  values, places = run("TopK", x, i64(2), outputs=2)
  assert values.tolist() == [[3, 2], [3, 2]] and places.tolist() == [[0, 2], [1, 2]]
  assert (run("TopK", x, i64(1), largest=0, outputs=2)[1].tolist() == [[1], [0]]
          and run("TopK", x, k=1, opset=9, outputs=2)[0].tolist() == [[3], [3]])
  for known in ([], [0]):
    assert run("NonZero", np.array([[1, 0], [1, 1]]), known=known).tolist() == [[0, 1, 1], [0, 0, 1]]
  y, first, inverse, counts = run("Unique", np.array([2, 1, 1, 3], F32), outputs=4)
  assert (y.tolist(), first.tolist(), inverse.tolist(), counts.tolist()) == ([1, 2, 3], [1, 0, 3], [1, 0, 0, 2],
                                                                             [2, 1, 1])
  assert run("Unique", np.array([2, 1, 1], F32), sorted=0).tolist() == [2, 1]
  assert run("OneHot", i64(1, -1, 9), np.array(3), np.array([0, 5])).tolist() == [[0, 5, 0], [0, 0, 5], [0, 0, 0]]
  boxes, scores = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 5, 1, 6]]], F32), np.array([[[0.9, 0.8, 0.7]]], F32)
  assert run("NonMaxSuppression", boxes, scores, i64(3), np.array([0.5], F32)).tolist() == [[0, 0, 0], [0, 0, 2]]

def test_on_each_engine(engine: str) -> None:
  assert run("ScatterND", X, np.array([[1, 2], [0, 0]]), X[0, :2]).tolist()[1][2] == X[0, 0].tolist()
