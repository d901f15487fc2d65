"""ONNX Runtime's operators for transformers against formulas in NumPy."""
import math
from typing import Any

import numpy as np
import pytest

from generators.attention_values import attend, heads, merged, random
from formats.onnx_writer import run
from tinyhw.errors import TinyError

MS = "com.microsoft"
CLOSE: Any = {"rtol": 2e-4, "atol": 1e-5}

def test_attention_of_onnx_runtime() -> None:
  x, w, b = random(2, 3, 8), random(8, 24, seed=1), random(24, seed=2)
  q, k, v = (heads(p, 2) for p in np.split(x @ w + b, 3, -1))
  np.testing.assert_allclose(run("Attention", x, w, b, domain=MS, num_heads=2), merged(attend(q, k, v)), **CLOSE)
  causal = np.where(np.tri(3), 0, -1e9)
  np.testing.assert_allclose(run("Attention", x, w, b, domain=MS, num_heads=2, unidirectional=1),
                             merged(attend(q, k, v, causal)), rtol=1e-3,
                             atol=1e-4)
  mask = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
  expected = merged(attend(q, k, v, np.where(mask, 0, -10000.0)[:, None, None]))
  np.testing.assert_allclose(run("Attention", x, w, b, mask, domain=MS, num_heads=2), expected, **CLOSE)
  flat = np.split(x @ w, 3, -1)
  np.testing.assert_allclose(run("MultiHeadAttention", *(f.copy() for f in flat), b, mask, domain=MS, num_heads=2),
                             expected, **CLOSE)
  with pytest.raises(TinyError, match="mask of lengths"):
    run("Attention", x, w, b, np.array([1, 2], np.int32), domain=MS, num_heads=2)

def normalized(x: Any, eps: float = 1e-12) -> Any:
  return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)

def test_normalizations_of_onnx_runtime() -> None:
  x, skip, g, b, bias = random(2, 3, 8), random(2, 3, 8, seed=1), random(8,
                                                                         seed=2), random(8, seed=3), random(8, seed=4)
  y, _, _, total = run("SkipLayerNormalization", x, skip, g, b, bias, domain=MS, outputs=4)
  np.testing.assert_allclose(total, x + skip + bias, **CLOSE)
  np.testing.assert_allclose(y, normalized(total) * g + b, **CLOSE)
  rms = total / np.sqrt((total * total).mean(-1, keepdims=True)) * g
  np.testing.assert_allclose(run("SkipSimplifiedLayerNormalization", x, skip, g, bias, domain=MS), rms, **CLOSE)
  np.testing.assert_allclose(run("SimplifiedLayerNormalization", total, g, epsilon=1e-12), rms, **CLOSE)
  words, segments, table, places, kinds = np.array([[1, 3]], np.int32), np.array([[0, 1]],
                                                                                 np.int32), random(5, 8), random(4, 8,
                                                                                     seed=1), random(2, 8, seed=2)
  expected = normalized(table[words] + places[:2] + kinds[segments]) * g + b
  np.testing.assert_allclose(run("EmbedLayerNormalization", words, segments, table, places, kinds, g, b, domain=MS),
                             expected, **CLOSE)

def test_activations_and_products_of_onnx_runtime() -> None:
  x, b = random(2, 3), random(3, seed=1)
  exact = np.vectorize(lambda v: v * 0.5 * (1 + math.erf(v / math.sqrt(2))))
  near = 0.5 * (x + b) * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + b + 0.044715 * (x + b) ** 3)))
  np.testing.assert_allclose(run("Gelu", x, domain=MS), exact(x), **CLOSE)
  np.testing.assert_allclose(run("BiasGelu", x, b, domain=MS), exact(x + b), **CLOSE)
  np.testing.assert_allclose(run("FastGelu", x, b, domain=MS), near, **CLOSE)
  np.testing.assert_allclose(run("QuickGelu", x, domain=MS, alpha=2.0), x / (1 + np.exp(-2 * x)), **CLOSE)
  w = random(4, 3, seed=2)
  np.testing.assert_allclose(run("FusedMatMul", x, w, domain=MS, transB=1, alpha=0.5), 0.5 * x @ w.T, **CLOSE)
  np.testing.assert_allclose(run("FusedGemm", x, w, domain=MS, transB=1, activation="Relu"), np.maximum(x @ w.T, 0),
                             **CLOSE)
  with pytest.raises(TinyError, match="activation is"): run("FusedGemm", x, w, domain=MS, transB=1, activation="Odd")

@pytest.mark.parametrize("zero", [True, False])
def test_weights_of_four_bits(zero: bool) -> None:
  rng = np.random.default_rng(0)
  codes, scales, zeros = rng.integers(0, 16, (3, 32)), random(3, 2), rng.integers(0, 16, (3, 2))
  packed = (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8).reshape(3, 2, 8)
  packed_zeros = (zeros[:, :1] | zeros[:, 1:] << 4).astype(np.uint8).reshape(-1)
  w = (codes.reshape(3, 2, 16) - (zeros[..., None] if zero else 8)) * scales[..., None]
  a = random(2, 32, seed=1)
  found = run("MatMulNBits", a, packed, scales.reshape(-1), packed_zeros if zero else None, domain=MS, K=32, N=3,
              bits=4, block_size=16)
  np.testing.assert_allclose(found, a @ w.reshape(3, 32).T, rtol=1e-3, atol=1e-4)
