"""Attention, rotary embeddings and ONNX Runtime's operators against formulas in NumPy."""
import math
from typing import Any

import numpy as np
import pytest

from formats.onnx_writer import run
from tinyhw.errors import TinyError

F32, MS = np.float32, "com.microsoft"
CLOSE: Any = {"rtol": 2e-4, "atol": 1e-5}

def random(*shape: int, seed: int = 0) -> Any: return np.random.default_rng(seed).standard_normal(shape).astype(F32)
def softmax(x: Any) -> Any:
  return np.exp(x - x.max(-1, keepdims=True)) / np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)
def attend(q: Any, k: Any, v: Any, bias: Any = 0.0) -> Any:
  return softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]) + bias) @ v
def heads(x: Any, n: int) -> Any: return x.reshape(*x.shape[:2], n, -1).transpose(0, 2, 1, 3)
def merged(x: Any) -> Any: return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)

Q, K, V = random(2, 4, 3, 8), random(2, 2, 5, 8, seed=1), random(2, 2, 5, 6, seed=2)
WIDE_K, WIDE_V = np.repeat(K, 2, 1), np.repeat(V, 2, 1)

def test_attention_with_shared_heads_masks_and_a_cache(engine: str) -> None:
  np.testing.assert_allclose(run("Attention", Q, K, V, opset=23), attend(Q, WIDE_K, WIDE_V), **CLOSE)
  mask = random(3, 5, seed=3) > 0
  mask[:, 0] = True
  np.testing.assert_allclose(run("Attention", Q, K, V, mask, opset=23),
                             attend(Q, WIDE_K, WIDE_V, np.where(mask, 0, -np.inf)), **CLOSE)
  y, k, v = run("Attention", Q, K[:, :, 2:], V[:, :, 2:], None, K[:, :, :2], V[:, :, :2], opset=23, is_causal=1,
                outputs=3)
  np.testing.assert_allclose(y, attend(Q, WIDE_K, WIDE_V, np.where(np.tri(3, 5, 2), 0, -np.inf)), **CLOSE)
  assert k.tolist() == K.tolist() and v.tolist() == V.tolist()

def test_attention_in_three_axes_scaled_and_capped() -> None:
  q, k, v = (merged(x) for x in (Q, K, V))
  np.testing.assert_allclose(run("Attention", q, k, v, opset=23, q_num_heads=4, kv_num_heads=2),
                             merged(attend(Q, WIDE_K, WIDE_V)), **CLOSE)
  scores = Q @ WIDE_K.swapaxes(-1, -2) * 0.3
  y, _, _, raw = run("Attention", Q, K, V, opset=23, scale=0.3, softcap=2.0, outputs=4)
  np.testing.assert_allclose(raw, scores, **CLOSE)
  np.testing.assert_allclose(y, softmax(np.tanh(scores / 2) * 2) @ WIDE_V, **CLOSE)
  with pytest.raises(TinyError, match="does not split"): run("Attention", q, k, v, opset=23)

def test_rows_that_may_see_nothing_become_zeros() -> None:
  assert not run("Attention", Q, K, V, np.zeros((3, 5), bool), opset=23).any()

@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding(interleaved: int) -> None:
  x, angle, positions = random(1, 2, 3, 8), random(9, 3, seed=1), np.array([[4, 0, 7]])
  cos, sin = np.cos(angle), np.sin(angle)
  part = x[..., :6]
  a, b = (part[..., ::2], part[..., 1::2]) if interleaved else (part[..., :3], part[..., 3:])
  c, s = cos[positions[0]], sin[positions[0]]
  left, right = a * c - b * s, b * c + a * s
  turned = np.stack([left, right], -1).reshape(part.shape) if interleaved else np.concatenate([left, right], -1)
  expected = np.concatenate([turned, x[..., 6:]], -1)
  found = run("RotaryEmbedding", x, cos, sin, positions, opset=23, interleaved=interleaved, rotary_embedding_dim=6)
  np.testing.assert_allclose(found, expected, **CLOSE)
  flat = run("RotaryEmbedding", merged(x), positions, cos, sin, domain=MS, interleaved=interleaved,
             rotary_embedding_dim=6, num_heads=2)
  np.testing.assert_allclose(flat, merged(expected), **CLOSE)

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
