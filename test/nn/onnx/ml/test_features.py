"""Operators on features, against NumPy."""
import numpy as np

from formats.onnx_writer import run

F32, ML = np.float32, "ai.onnx.ml"
X = np.arange(12, dtype=F32).reshape(3, 4)

def test_selection() -> None:
  assert run("ArrayFeatureExtractor", X, np.array([3, 0]), domain=ML).tolist() == X[:, [3, 0]].tolist()

def test_thresholds() -> None:
  assert run("Binarizer", X, domain=ML, threshold=0.5).tolist() == (X > 0.5).tolist()
