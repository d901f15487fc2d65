"""Steps of optimizers against their formulas, and gradients of a part of the graph."""
from typing import Any

import numpy as np
import pytest

from formats.onnx_writer import graph, model, node, run, value_info
from tinyhw.errors import TinyError
from tinyhw.nn.onnx import OnnxRunner

F32 = np.float32
TRAINING: Any = {"domain": "ai.onnx.preview.training", "domains": {"ai.onnx.preview.training": 1}}
CLOSE: Any = {"rtol": 1e-5, "atol": 1e-6}
R, T = F32(0.1), np.array(3)

def random(*shape: int, seed: int = 0) -> Any: return np.random.default_rng(seed).standard_normal(shape).astype(F32)

X, G, V = ([random(2, seed=s), random(3, seed=s + 1)] for s in (0, 10, 20))
H = [abs(v) for v in V]

def test_adagrad() -> None:
  found = run("Adagrad", R, T, *X, *G, *H, outputs=4, norm_coefficient=0.01, decay_factor=0.1, epsilon=1e-3, **TRAINING)
  for i in (0, 1):
    g = G[i] + 0.01 * X[i]
    h = H[i] + g * g
    np.testing.assert_allclose(found[i], X[i] - 0.1 / 1.3 * g / (np.sqrt(h) + 1e-3), **CLOSE)
    np.testing.assert_allclose(found[2 + i], h, **CLOSE)

@pytest.mark.parametrize("times", [0, 3])
def test_adam(times: int) -> None:
  found = run("Adam", R, np.array(times), *X, *G, *V, *H, outputs=6, norm_coefficient=0.01, norm_coefficient_post=0.1,
              alpha=0.8, beta=0.9, epsilon=1e-3, **TRAINING)
  rate = 0.1 * np.sqrt(1 - 0.9 ** times) / (1 - 0.8 ** times) if times else 0.1
  for i in (0, 1):
    g = G[i] + 0.01 * X[i]
    v, h = 0.8 * V[i] + 0.2 * g, 0.9 * H[i] + 0.1 * g * g
    np.testing.assert_allclose(found[i], 0.9 * (X[i] - rate * v / (np.sqrt(h) + 1e-3)), **CLOSE)
    np.testing.assert_allclose(found[2 + i], v, **CLOSE)
    np.testing.assert_allclose(found[4 + i], h, **CLOSE)

@pytest.mark.parametrize("mode", ["standard", "nesterov"])
@pytest.mark.parametrize("times", [0, 3])
def test_momentum(mode: str, times: int) -> None:
  found = run("Momentum", R, np.array(times), *X, *G, *V, outputs=4, mode=mode, norm_coefficient=0.01, alpha=0.9,
              beta=0.5, **TRAINING)
  for i in (0, 1):
    g = G[i] + 0.01 * X[i]
    v = 0.9 * V[i] + (0.5 if times else 1.0) * g
    np.testing.assert_allclose(found[i], X[i] - 0.1 * (v if mode == "standard" else g + 0.9 * v), **CLOSE)
    np.testing.assert_allclose(found[2 + i], v, **CLOSE)

def test_bad_optimizers() -> None:
  with pytest.raises(TinyError, match="no whole number of groups"): run("Adagrad", R, T, *X, *G, **TRAINING)
  with pytest.raises(TinyError, match="mode is"):
    run("Momentum", R, T, *X, *G, *V, mode="other", norm_coefficient=0.0, alpha=0.9, beta=0.5, **TRAINING)

def differentiated(last: list[bytes], results: list[str]) -> OnnxRunner:
  """Return a model with y = a² w + b, and further nodes."""
  nodes = [node("Mul", ["a", "a"], ["s"]), node("Mul", ["s", "w"], ["p"]), node("Add", ["p", "b"], ["y"]), *last]
  return OnnxRunner(model(graph(nodes, [value_info(x, "float32", [2]) for x in "ab"], results,
                                {"w": np.array([2.0, 3.0], F32)}), domains={"ai.onnx.preview.training": 1}))

def gradient(inputs: list[str], results: list[str], **attributes: Any) -> bytes:
  return node("Gradient", inputs, results, "ai.onnx.preview.training", **attributes)

def test_gradients_of_a_part() -> None:
  found = differentiated([gradient(["a", "b"], ["da", "db"], xs=["a", "b"], y="y"),
                          gradient(["b", "a"], ["dp"], xs=["p"], zs=["b"], y="y")],
                         ["y", "da", "db", "dp"])({"a": [1.0, 2.0], "b": [5.0, 6.0]})
  assert found["y"].tolist() == [7, 18] and found["da"].tolist() == [4, 12]
  assert found["db"].tolist() == [1, 1] and found["dp"].tolist() == [1, 1]

def test_gradients_at_other_values_and_of_gradients() -> None:
  found = differentiated([gradient(["b", "b"], ["other"], xs=["a"], zs=["b"], y="y"),
                          gradient(["a", "b"], ["da"], xs=["a"], zs=["b"], y="y"),
                          gradient(["a", "b"], ["dda"], xs=["a"], zs=["b"], y="da")],
                         ["other", "dda"])({"a": [1.0, 2.0], "b": [5.0, 6.0]})
  assert found["other"].tolist() == [20, 36] and found["dda"].tolist() == [4, 6]

def test_bad_gradients() -> None:
  with pytest.raises(TinyError, match="for the names"):
    differentiated([gradient(["a"], ["da"], xs=["a", "b"], y="y")], ["da"])({"a": [1.0, 2.0], "b": [1.0, 2.0]})
  with pytest.raises(TinyError, match="str is wanted"):
    differentiated([gradient(["a"], ["da"], xs=["a"], y=[1])], ["da"])
  with pytest.raises(TinyError, match="'z', which nothing"):
    differentiated([gradient(["a"], ["da"], xs=["a"], y="z")], ["da"])({"a": [1.0, 2.0], "b": [1.0, 2.0]})
