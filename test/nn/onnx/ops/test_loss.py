"""Losses against formulas in NumPy."""
from typing import Any

import numpy as np

from formats.onnx_writer import run

F32 = np.float32

def random(*shape: int, seed: int = 0) -> Any: return np.random.default_rng(seed).standard_normal(shape).astype(F32)

def test_losses() -> None:
  x, target, weight = random(3, 4), np.array([1, 3, 0]), np.array([0.5, 1, 2, 4], F32)
  logs = x - np.log(np.exp(x).sum(1, keepdims=True))
  chosen, w = -logs[range(3), target], weight[target]
  np.testing.assert_allclose(run("SoftmaxCrossEntropyLoss", x, target), chosen.mean(), rtol=1e-5)
  np.testing.assert_allclose(run("NegativeLogLikelihoodLoss", logs, target, weight), (chosen * w).sum() / w.sum(),
                             rtol=1e-5)
  np.testing.assert_allclose(run("SoftmaxCrossEntropyLoss", x, target, reduction="none", ignore_index=3, outputs=2)[0],
                             [chosen[0], 0, chosen[2]], rtol=1e-5)
  np.testing.assert_allclose(run("NegativeLogLikelihoodLoss", logs, target, reduction="sum"), chosen.sum(), rtol=1e-5)
