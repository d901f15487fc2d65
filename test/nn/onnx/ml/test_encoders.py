"""Encoders against dicts."""
import numpy as np
import pytest

from formats.onnx_writer import run
from tinyhw.errors import TinyError

F32, ML = np.float32, "ai.onnx.ml"
V4 = {"domain": ML, "domains": {ML: 4}}
WORDS = np.array([["a", "d"], ["c", "a"]])

def test_labels_of_text() -> None:
  assert run("LabelEncoder", WORDS, keys_strings=["a", "c"], values_int64s=[5, 6], **V4).tolist() == [[5, -1], [6, 5]]
  assert run("LabelEncoder", WORDS, keys_strings=["a", "c"], values_floats=[0.5, 1.5], default_float=9.0,
             **V4).tolist() == [[0.5, 9], [1.5, 0.5]]
  assert run("LabelEncoder", WORDS, keys_strings=["a"], values_strings=["x"], **V4).tolist() == [["x", "_Unused"],
                                                                                                 ["_Unused", "x"]]
  found = run("LabelEncoder", WORDS, keys_tensor=np.array(["a", "c"]), values_tensor=np.array([1, 2], np.int16),
              default_tensor=np.array([7], np.int16), **V4)
  assert found.tolist() == [[1, 7], [2, 1]] and found.dtype == np.int16

def test_labels_of_numbers() -> None:
  x = np.array([1.0, np.nan, 2.0, 3.0], F32)
  assert run("LabelEncoder", x, keys_floats=[1.0, float("nan"), 1.0], values_int64s=[4, 5, 6], **V4).tolist() == [
    6, 5, -1, -1]
  big = np.array([1 << 40, (1 << 40) + 1])
  assert run("LabelEncoder", big, keys_int64s=[(1 << 40) + 1], values_strings=["y"], **V4).tolist() == ["_Unused", "y"]
  with pytest.raises(TinyError, match="2 keys have 1 values"):
    run("LabelEncoder", x, keys_floats=[1.0, 2.0], values_int64s=[4], **V4)
  with pytest.raises(TinyError, match="another type"):
    run("LabelEncoder", x, keys_strings=["a"], values_int64s=[4], **V4)
  with pytest.raises(TinyError, match="no values"): run("LabelEncoder", x, keys_floats=[1.0], **V4)

def test_text_and_numbers_are_exchanged() -> None:
  for op, options in (("LabelEncoder", {"classes_strings": ["a", "b", "c"]}),
                      ("CategoryMapper", {"cats_strings": ["a", "b", "c"], "cats_int64s": [0, 1, 2]})):
    assert run(op, WORDS, domain=ML, **options).tolist() == [[0, -1], [2, 0]]
    assert run(op, np.array([2, 9]), domain=ML, default_string="?", **options).tolist() == ["c", "?"]

def test_categories_become_vectors() -> None:
  assert run("OneHotEncoder", WORDS[0], domain=ML, cats_strings=["d", "a", "b"]).tolist() == [[0, 1, 0], [1, 0, 0]]
  assert run("OneHotEncoder", np.array([[2.9, 7.0]], F32), domain=ML, cats_int64s=[7, 2]).tolist() == [
    [[0, 1], [1, 0]]]
  assert run("OneHotEncoder", np.array([4]), domain=ML, cats_int64s=[7, 2]).tolist() == [[0, 0]]
  with pytest.raises(TinyError, match="of no category"):
    run("OneHotEncoder", np.array([4]), domain=ML, cats_int64s=[7, 2], zeros=0)
  with pytest.raises(TinyError, match="categories of the type"):
    run("OneHotEncoder", WORDS, domain=ML, cats_int64s=[7, 2])
