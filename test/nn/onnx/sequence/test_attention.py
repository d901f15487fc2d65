"""Attention and rotary embeddings against formulas in NumPy."""
import math
from typing import Any

import numpy as np
import pytest

from generators.attention_values import F32, attend, merged, random, softmax
from formats.onnx_writer import graph, node, run, value_info
from tinyhw.errors import TinyError

MS = "com.microsoft"
CLOSE: Any = {"rtol": 2e-4, "atol": 1e-5}

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

@pytest.mark.parametrize("left, right, causal", [(1, 0, 0), (-1, 1, 0), (2, 1, 0), (1, 3, 1), (0, -1, 0)])
def test_windows(left: int, right: int, causal: int) -> None:
  place = np.arange(2, 5).reshape(-1, 1) - np.arange(5)   # two elements are in the cache
  seen = np.ones((3, 5), bool)
  if left >= 0: seen &= place <= left
  if right >= 0: seen &= -place <= right
  if causal: seen &= place >= 0
  found = run("Attention", Q, K[:, :, 2:], V[:, :, 2:], None, K[:, :, :2], V[:, :, :2], opset=25, is_causal=causal,
              left_window_size=left, right_window_size=right)
  np.testing.assert_allclose(found, attend(Q, WIDE_K, WIDE_V, np.where(seen, 0, -np.inf)), **CLOSE)

def test_scores_and_weights_changed_by_graphs() -> None:
  preview: Any = {"domain": "ai.onnx.preview", "domains": {"ai.onnx.preview": 1}}
  double = graph([node("Add", ["s", "s"], ["t"])], [value_info("s")], ["t"])
  first = graph([node("ReduceSum", ["s"], ["t"])], [value_info("s")], ["t"])
  scores = Q @ WIDE_K.swapaxes(-1, -2) / math.sqrt(8)
  np.testing.assert_allclose(run("FlexAttention", Q, K, V, **preview), softmax(scores) @ WIDE_V, **CLOSE)
  np.testing.assert_allclose(run("FlexAttention", Q, K, V, score_mod=double, **preview), softmax(2 * scores) @ WIDE_V,
                             **CLOSE)
  np.testing.assert_allclose(run("FlexAttention", Q, K, V, prob_mod=double, scale=0.0, **preview),
                             2 * np.full((2, 4, 3, 5), 0.2, F32) @ WIDE_V, **CLOSE)
  with pytest.raises(TinyError, match="score_mod gives no result of the shape"):
    run("FlexAttention", Q, K, V, score_mod=first, **preview)

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
