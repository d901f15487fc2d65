"""Linear models and support vector machines against formulas in NumPy."""
from typing import Any

import numpy as np
import pytest

from formats.onnx_writer import run
from tinyhw.errors import TinyError

F32, ML = np.float32, "ai.onnx.ml"
CLOSE: Any = {"rtol": 1e-4, "atol": 1e-5}

def random(*shape: int, seed: int = 0) -> Any: return np.random.default_rng(seed).standard_normal(shape).astype(F32)
def flat(x: Any) -> list[float]: return [float(v) for v in np.ravel(x)]

X, W, B = random(6, 4), random(3, 4, seed=1), random(3, seed=2)

def test_regression() -> None:
  np.testing.assert_allclose(run("LinearRegressor", X, domain=ML, coefficients=flat(W), intercepts=flat(B), targets=3),
                             X @ W.T + B, **CLOSE)
  with pytest.raises(TinyError, match="no rows of 4"): run("LinearRegressor", X, domain=ML, coefficients=[1.0])
  with pytest.raises(TinyError, match="for 3 targets"): run("LinearRegressor", X, domain=ML, coefficients=flat(W))

def test_classification() -> None:
  scores = X @ W.T + B
  label, found = run("LinearClassifier", X, domain=ML, outputs=2, coefficients=flat(W), intercepts=flat(B),
                     classlabels_strings=["a", "b", "c"], post_transform="LOGISTIC")
  assert label.tolist() == ["abc"[i] for i in scores.argmax(1)]
  np.testing.assert_allclose(found, 1 / (1 + np.exp(-scores)), **CLOSE)
  label, found = run("LinearClassifier", X, domain=ML, outputs=2, coefficients=flat(W[0]), classlabels_ints=[4, 7])
  one = X @ W[0]
  assert label.tolist() == np.where(one > 0, 7, 4).tolist()
  np.testing.assert_allclose(found, np.stack([-one, one], 1), **CLOSE)
  with pytest.raises(TinyError, match="2 labels"):
    run("LinearClassifier", X, domain=ML, outputs=2, coefficients=flat(W), classlabels_ints=[1, 2])

KERNELS = {"LINEAR": lambda p, d: p, "POLY": lambda p, d: (0.5 * p + 1) ** 2, "SIGMOID": lambda p, d: np.tanh(
  0.5 * p + 1), "RBF": lambda p, d: np.exp(-0.5 * d)}

def kernel(name: str, vectors: Any) -> Any:
  return KERNELS[name](X @ vectors.T, ((X[:, None] - vectors[None]) ** 2).sum(2))

@pytest.mark.parametrize("name", KERNELS)
def test_support_vector_regression(name: str) -> None:
  vectors, weights = random(5, 4, seed=3), random(5, seed=4)
  options: Any = {"domain": ML, "coefficients": flat(weights), "kernel_type": name, "kernel_params": [0.5, 1.0, 2.0],
                  "n_supports": 5, "support_vectors": flat(vectors), "rho": [0.25]}
  expected = (kernel(name, vectors) @ weights + 0.25).reshape(-1, 1)
  np.testing.assert_allclose(run("SVMRegressor", X, **options), expected, **CLOSE)
  assert run("SVMRegressor", X, one_class=1, **options).tolist() == np.where(expected > 0, 1, -1).tolist()

def test_support_vector_classification() -> None:
  counts, vectors, table = [2, 1, 2], random(5, 4, seed=3), random(2, 5, seed=4)
  products, rho = kernel("RBF", vectors), [0.1, -0.2, 0.3]
  starts, columns, votes = [0, 2, 3, 5], [], np.zeros((6, 3))
  for i, j in ((0, 1), (0, 2), (1, 2)):
    own, other = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
    s = products[:, own] @ table[j - 1, own] + products[:, other] @ table[i, other] + rho[len(columns)]
    votes[range(6), np.where(s > 0, i, j)] += 1
    columns.append(s)
  options: Any = {"domain": ML, "outputs": 2, "coefficients": flat(table), "kernel_type": "RBF",
                  "kernel_params": [0.5, 0.0, 0.0], "support_vectors": flat(vectors), "rho": rho,
                  "vectors_per_class": counts, "classlabels_ints": [7, 8, 9]}
  label, scores = run("SVMClassifier", X, **options)
  assert label.tolist() == (votes.argmax(1) + 7).tolist()
  np.testing.assert_allclose(scores, np.stack(columns, 1), **CLOSE)
  chances = run("SVMClassifier", X, prob_a=[-1.0, -2.0, -1.5], prob_b=[0.1, 0.0, -0.1], **options)[1]
  np.testing.assert_allclose(chances.sum(1), np.ones(6), rtol=1e-5)
  p = [1 / (1 + np.exp(-s * a - b)) for s, a, b in zip(columns, [1.0, 2.0, 1.5], [-0.1, 0.0, 0.1])]
  for row in range(6):   # the probabilities minimize a sum of squares
    def loss(q: Any, row: int = row) -> Any:
      return sum(((1 - p[k][row]) * q[i] - p[k][row] * q[j]) ** 2 for k, (i, j) in enumerate(((0, 1), (0, 2), (1, 2))))
    best = loss(chances[row])
    for i, j in ((0, 1), (1, 2), (2, 0)):
      moved = chances[row].copy()
      moved[i], moved[j] = moved[i] + 0.02, moved[j] - 0.02
      assert loss(moved) > best - 1e-4

def test_classification_without_vectors() -> None:
  label, scores = run("SVMClassifier", X, domain=ML, outputs=2, coefficients=flat(W), rho=[0.5],
                      classlabels_strings=["a", "b", "c"])
  np.testing.assert_allclose(scores, X @ W.T + 0.5, **CLOSE)
  assert label.tolist() == ["abc"[i] for i in (X @ W.T).argmax(1)]

def test_bad_machines() -> None:
  with pytest.raises(TinyError, match="kernel_type is"):
    run("SVMRegressor", X, domain=ML, coefficients=[1.0], kernel_type="OTHER", n_supports=1, rho=[0.0],
        support_vectors=[1.0] * 4)
  with pytest.raises(TinyError, match="vectors_per_class"):
    run("SVMClassifier", X, domain=ML, outputs=2, vectors_per_class=[1], classlabels_ints=[1, 2])
