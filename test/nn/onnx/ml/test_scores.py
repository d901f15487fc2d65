"""Transforms of scores, and labels."""
import math

import pytest

from tinyhw import Tensor
from tinyhw.errors import ArgumentError
from tinyhw.nn.onnx.ml.scores import label_count, labelled, rows_of, transformed

def test_transforms() -> None:
  x = Tensor([[0.0, 1.0, 2.0]])
  assert transformed(x, "NONE").tolist() == [[0, 1, 2]]
  total = sum(map(math.exp, (0, 1, 2)))
  assert transformed(x, "SOFTMAX").tolist()[0] == pytest.approx([math.exp(k) / total for k in (0, 1, 2)])
  assert transformed(x, "LOGISTIC").tolist()[0] == pytest.approx([1 / (1 + math.exp(-k)) for k in (0, 1, 2)])
  assert transformed(x, "SOFTMAX_ZERO").tolist()[0] == pytest.approx([0, 1 / (1 + math.e), math.e / (1 + math.e)])
  assert transformed(x * 0, "SOFTMAX_ZERO").tolist() == [[0.5] * 3]
  assert transformed(Tensor([[0.5, 0.975, 0.025]]), "PROBIT").tolist()[0] == pytest.approx([0, 1.96, -1.96], abs=5e-3)
  with pytest.raises(ArgumentError, match="post_transform is one of"): transformed(x, "OTHER")

def test_labels() -> None:
  index = Tensor([1, 0])
  assert labelled(index, [5, 7], None).tolist() == [7, 5] and labelled(index, None, ["a", "b"]).tolist() == ["b", "a"]
  assert labelled(index, None, None).tolist() == [1, 0]
  assert label_count([1, 2], None) == 2 and label_count(None, None) == 0
  with pytest.raises(ArgumentError, match="not both"): label_count([1], ["a"])

def test_rows() -> None:
  assert rows_of(Tensor([1, 2])).shape == (1, 2) and rows_of(Tensor([[1.0]])).shape == (1, 1)
  with pytest.raises(ArgumentError, match="features have a shape"): rows_of(Tensor([[[1.0]]]))
