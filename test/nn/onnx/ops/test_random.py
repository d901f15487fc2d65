"""Random numbers by their ranges and means."""
from typing import Any

import numpy as np
import pytest

from formats.onnx_writer import run
from tinyhw import Tensor
from tinyhw.errors import TinyError

F32 = np.float32

def random(*shape: int, seed: int = 0) -> Any: return np.random.default_rng(seed).standard_normal(shape).astype(F32)

def test_dropout_and_random_numbers() -> None:
  x = random(4, 5)
  assert run("Dropout", x).tolist() == x.tolist() and run("Dropout", x, outputs=2, opset=10)[1].all()
  Tensor.manual_seed(3)
  y, mask = run("Dropout", np.ones(4000, F32), F32(0.25), np.array(True), outputs=2)
  assert (set(y.tolist()) == {0.0, float(F32(1) / F32(0.75))} and (y != 0).tolist() == mask.tolist()
          and abs(mask.mean() - 0.75) < 0.05)
  found = run("RandomNormal", shape=[5000], mean=2.0, scale=0.5)
  assert abs(found.mean() - 2) < 0.05 and abs(found.std() - 0.5) < 0.05
  found = run("RandomUniformLike", np.zeros(5000, F32), low=1.0, high=3.0)
  assert found.min() >= 1 and found.max() <= 3 and abs(found.mean() - 2) < 0.05
  assert run("Bernoulli", np.array([0.0, 1.0], F32)).tolist() == [0, 1]
  assert run("Multinomial", np.array([[-100, 100]], F32), sample_size=3).tolist() == [[1] * 3]
  assert run("RandomUniform", shape=[2], dtype=11).dtype == np.float64 and run("RandomNormalLike", x).shape == x.shape
  with pytest.raises(TinyError, match="more than"): run("RandomNormal", shape=[1 << 40])
