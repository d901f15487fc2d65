"""Normalizations against formulas in NumPy."""
from typing import Any

import numpy as np

from formats.onnx_writer import run

F32 = np.float32

def random(*shape: int, seed: int = 0) -> Any: return np.random.default_rng(seed).standard_normal(shape).astype(F32)

def standardized(x: Any, axes: Any, eps: float = 1e-5) -> Any:
  return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
def channels(v: Any, n: int) -> Any: return v.reshape(1, -1, *[1] * (n - 2))

def test_normalization() -> None:
  x, s, b = random(2, 4, 3, 5), random(4, seed=1), random(4, seed=2)
  mean, var = random(4, seed=3), abs(random(4, seed=4))
  close = {"rtol": 1e-4, "atol": 1e-5}
  expected = (x - channels(mean, 4)) / np.sqrt(channels(var, 4) + 1e-5) * channels(s, 4) + channels(b, 4)
  for opset in (6, 7, 22):
    np.testing.assert_allclose(run("BatchNormalization", x, s, b, mean, var, opset=opset), expected, **close)
  y, m, v = run("BatchNormalization", x, s, b, mean, var, training_mode=1, momentum=0.8, outputs=3)
  np.testing.assert_allclose(y, standardized(x, (0, 2, 3)) * channels(s, 4) + channels(b, 4), **close)
  np.testing.assert_allclose(m, mean * 0.8 + x.mean((0, 2, 3)) * 0.2, **close)
  np.testing.assert_allclose(v, var * 0.8 + x.var((0, 2, 3)) * 0.2, **close)
  np.testing.assert_allclose(run("InstanceNormalization", x, s, b),
                             standardized(x, (2, 3)) * channels(s, 4) + channels(b, 4), **close)
  grouped = standardized(x.reshape(2, 2, -1), 2)
  np.testing.assert_allclose(run("GroupNormalization", x, s, b, num_groups=2),
                             grouped.reshape(x.shape) * channels(s, 4) + channels(b, 4), **close)
  old = (grouped * s[:2].reshape(1, 2, 1) + b[:2].reshape(1, 2, 1)).reshape(x.shape)
  np.testing.assert_allclose(run("GroupNormalization", x, s[:2], b[:2], num_groups=2, opset=18), old, **close)
  w = random(3, 5, seed=5)
  y, m, inverse = run("LayerNormalization", x, w, axis=2, outputs=3)
  np.testing.assert_allclose(y, standardized(x, (2, 3)) * w, **close)
  np.testing.assert_allclose(m, x.mean((2, 3), keepdims=True), **close)
  np.testing.assert_allclose(inverse, 1 / np.sqrt(x.var((2, 3), keepdims=True) + 1e-5), **close)
  np.testing.assert_allclose(run("RMSNormalization", x, w[0], opset=23),
                             x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w[0], **close)
  np.testing.assert_allclose(run("MeanVarianceNormalization", x), standardized(x, (0, 2, 3), 0), **close)
  np.testing.assert_allclose(run("LpNormalization", x), x / np.linalg.norm(x, axis=-1, keepdims=True), **close)
  assert run("LpNormalization", x * 0, p=1).tolist() == (x * 0).tolist()
  squares = np.pad(x * x, ((0, 0), (1, 1), (0, 0), (0, 0)))
  total = squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]
  np.testing.assert_allclose(run("LRN", x, size=3, alpha=0.3, beta=0.5, bias=2.0), x / (2 + 0.1 * total) ** 0.5,
                             **close)

def test_on_each_engine(engine: str) -> None:
  x = random(1, 2, 4, 4)
  np.testing.assert_allclose(run("InstanceNormalization", x, np.ones(2, F32), np.zeros(2, F32)),
                             standardized(x, (2, 3)), rtol=1e-4, atol=1e-5)
