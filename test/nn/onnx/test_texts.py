"""Tensors of text: their forms, and what is refused."""
import numpy as np
import pytest

from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.nn.onnx.texts import TextTensor, texts_of

def test_forms() -> None:
  x = TextTensor(["a", "b", "c", "d", "e", "f"], (3, 2))
  assert x.ndim == 2 and x.numel() == 6 and x.tolist() == [["a", "b"], ["c", "d"], ["e", "f"]] and x.dtype is None
  assert x.numpy().tolist() == x.tolist() and x.numpy().dtype == object
  assert TextTensor(["a"], ()).tolist() == "a" and TextTensor([], (0, 2)).tolist() == []
  assert TextTensor([], (2, 0)).tolist() == [[], []]
  assert repr(TextTensor(["a"] * 9)) == "<TextTensor (9,): ['a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', ...]>"
  with pytest.raises(ShapeError, match="2 texts do not make"): TextTensor(["a", "b"], (3,))

def test_text_in_any_form() -> None:
  for data in ([["a", "b"]], [[b"a", b"b"]], np.array([["a", "b"]]), np.array([["a", "b"]], object),
               TextTensor(["a", "b"], (1, 2))):
    found = texts_of(data, "x")
    assert found.shape == (1, 2) and found.values == ("a", "b")
  assert texts_of("word", "x").shape == () and texts_of(np.zeros((2, 0), object), "x").shape == (2, 0)
  with pytest.raises(ArgumentError, match="x is text, and 1 is none"): texts_of(["a", 1], "x")
  with pytest.raises(ShapeError, match="different lengths"): texts_of([["a"], ["a", "b"]], "x")
