"""Operators on features and maps, against NumPy."""
from typing import Any

import numpy as np
import pytest

from formats.onnx_writer import graph, model, node, run, value_info
from tinyhw.errors import TinyError
from tinyhw.nn.onnx import OnnxRunner

F32, ML = np.float32, "ai.onnx.ml"
X = np.arange(12, dtype=F32).reshape(3, 4) - 3

def test_selection_and_thresholds() -> None:
  assert run("ArrayFeatureExtractor", X, np.array([3, 0]), domain=ML).tolist() == X[:, [3, 0]].tolist()
  assert run("ArrayFeatureExtractor", np.array([["a", "b"]]), np.array([1]), domain=ML).tolist() == [["b"]]
  assert run("Binarizer", X, domain=ML, threshold=0.5).tolist() == (X > 0.5).tolist()

def test_scaling_and_imputing() -> None:
  assert run("Scaler", X, domain=ML, offset=[1.0, 2.0, 3.0, 4.0], scale=[2.0]).tolist() == (
    (X - [1, 2, 3, 4]) * 2).tolist()
  x = np.array([[1, np.nan], [np.nan, 4]], F32)
  assert run("Imputer", x, domain=ML, imputed_value_floats=[7.0, 8.0],
             replaced_value_float=float("nan")).tolist() == [[1, 8], [7, 4]]
  assert run("Imputer", np.array([[1, -1]]), domain=ML, imputed_value_int64s=[5],
             replaced_value_int64=-1).tolist() == [[1, 5]]
  with pytest.raises(TinyError, match="give one, or one for each"): run("Scaler", X, domain=ML, offset=[1.0, 2.0])
  with pytest.raises(TinyError, match="Imputer wants"): run("Imputer", X, domain=ML)

def test_norms() -> None:
  x = np.array([[3, -4], [0, 0]], F32)
  assert run("Normalizer", x, domain=ML, norm="L2").tolist() == pytest.approx(np.array([[0.6, -0.8], [0, 0]], F32))
  assert run("Normalizer", x, domain=ML, norm="L1") == pytest.approx(np.array([[3 / 7, -4 / 7], [0, 0]], F32))
  assert run("Normalizer", x, domain=ML).tolist() == (x / [[3], [1]]).astype(F32).tolist()
  with pytest.raises(TinyError, match="norm is"): run("Normalizer", x, domain=ML, norm="L3")

def test_features_are_joined() -> None:
  found = run("FeatureVectorizer", X, X[:, 0].copy(), domain=ML, inputdimensions=[2, 3])
  assert found.tolist() == np.concatenate([X[:, :2], X[:, :1], np.zeros((3, 2))], 1).tolist()
  with pytest.raises(TinyError, match="one size for each"):
    run("FeatureVectorizer", X, domain=ML, inputdimensions=[1, 2])

def of_map(op: str, data: Any, **attributes: Any) -> Any:
  runner = OnnxRunner(model(graph([node(op, ["x"], ["y"], ML, **attributes)], [value_info("x")], ["y"])))
  return runner({"x": data})["y"]

def test_maps_become_tensors() -> None:
  assert of_map("DictVectorizer", {"a": 1.5, "c": 2.0}, string_vocabulary=["c", "b", "a"]).tolist() == [2, 0, 1.5]
  assert of_map("DictVectorizer", {1: "x"}, int64_vocabulary=[2, 1]).tolist() == ["", "x"]
  assert of_map("CastMap", {3: 1.5, 1: 2.0}).tolist() == [[2, 1.5]]
  assert of_map("CastMap", {3: "4", 1: "2"}, cast_to="TO_INT64", map_form="SPARSE", max_map=5).tolist() == [
    [0, 2, 0, 4, 0]]
  assert of_map("CastMap", {1: 2}, cast_to="TO_STRING").tolist() == [["2"]]
  for options, why in (({"cast_to": "TO_BYTES"}, "is wanted"), ({}, "cannot make numbers")):
    with pytest.raises(TinyError, match=why): of_map("CastMap", {1: "x"}, **options)
  with pytest.raises(TinyError, match="a map is wanted"): of_map("CastMap", [1.0])

def test_scores_become_maps() -> None:
  scores = np.array([[0.25, 0.75], [1, 0]], F32)
  assert of_map("ZipMap", scores, classlabels_strings=["a", "b"]) == [{"a": 0.25, "b": 0.75}, {"a": 1, "b": 0}]
  assert of_map("ZipMap", scores, classlabels_int64s=[5, 7])[0] == {5: 0.25, 7: 0.75}
  with pytest.raises(TinyError, match="1 labels for scores"): of_map("ZipMap", scores, classlabels_strings=["a"])
