"""Linear attention against its recurrence, and causal convolutions against sums, in NumPy."""
from typing import Any

import numpy as np
import pytest

from formats.onnx_writer import run
from tinyhw.errors import TinyError

F32 = np.float32
CLOSE: Any = {"rtol": 1e-3, "atol": 1e-4}

def random(*shape: int, seed: int = 0) -> Any: return np.random.default_rng(seed).standard_normal(shape).astype(F32)

def recurrence(q: Any, k: Any, v: Any, state: Any, decay: Any, beta: Any, delta: bool, scale: float) -> Any:
  """One token after the other. q: (T, query heads, dk)  k: (T, heads, dk)  state: (heads, dk, dv)."""
  found, groups = [], q.shape[1] // k.shape[1]
  for t in range(len(q)):
    state = state * np.exp(decay[t])[..., None]
    update = beta[t][:, None] * (v[t] - np.einsum("hde,hd->he", state, k[t])) if delta else v[t]
    state = state + k[t][..., None] * update[:, None]
    found.append(np.einsum("hde,hd->he", np.repeat(state, groups, 0), q[t]) * scale)
  return np.stack(found), state

@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("wide_decay", [False, True])
@pytest.mark.parametrize("chunk_size", [4, 64])
def test_linear_attention_is_its_recurrence(rule: str, wide_decay: bool, chunk_size: int) -> None:
  steps, heads, query_heads, dk, dv = 11, 2, 4, 3, 5
  q, k, v = random(1, steps, query_heads, dk), random(1, steps, heads, dk, seed=1), random(1, steps, heads, dv, seed=2)
  k /= np.linalg.norm(k, axis=-1, keepdims=True)
  state = random(1, heads, dk, dv, seed=3)
  decay, beta = -abs(random(1, steps, heads, dk if wide_decay else 1, seed=4)), abs(random(1, steps, heads, seed=5)) % 1
  gated, delta = "gated" in rule, "delta" in rule
  y, last = run("LinearAttention", q.reshape(1, steps, -1), k.reshape(1, steps, -1), v.reshape(1, steps, -1), state,
                decay.reshape(1, steps, -1) if gated else None, beta if delta else None, opset=27, outputs=2,
                q_num_heads=query_heads, kv_num_heads=heads, update_rule=rule, chunk_size=chunk_size, scale=0.5)
  expected, end = recurrence(q[0], k[0], v[0], state[0], decay[0] if gated else np.zeros((steps, heads, 1)), beta[0],
                             delta, 0.5)
  np.testing.assert_allclose(y.reshape(steps, query_heads, dv), expected, **CLOSE)
  np.testing.assert_allclose(last[0], end, **CLOSE)

def test_updates_of_equal_keys_stay_accurate() -> None:
  """A power series of the triangular system would cancel numbers of 10^18 here."""
  steps = 64
  k, v = np.tile(np.array([0.6, 0.8], F32), (1, steps, 1)), random(1, steps, 2)
  y, _ = run("LinearAttention", k, k, v, None, None, np.ones((1, steps, 1), F32), opset=27, outputs=2, q_num_heads=1,
             kv_num_heads=1, update_rule="delta", scale=1.0)
  np.testing.assert_allclose(y, v, **CLOSE)

def test_bad_attention() -> None:
  x = random(1, 2, 4)
  for options, why in (({"update_rule": "other"}, "update_rule is one of"), ({}, "wants decay"),
                       ({"kv_num_heads": 3, "update_rule": "linear"}, "do not share")):
    with pytest.raises(TinyError, match=why):
      run("LinearAttention", x, x, x, opset=27, **{"q_num_heads": 2, "kv_num_heads": 2, **options})

@pytest.mark.parametrize("activation", ["none", "silu"])
def test_causal_convolution(activation: str) -> None:
  x, w, bias, past = random(2, 3, 6), random(3, 1, 4, seed=1), random(3, seed=2), random(2, 3, 3, seed=3)
  given = np.concatenate([past, x], 2)
  expected = sum(given[:, :, i:i + 6] * w[:, 0, i, None] for i in range(4)) + bias[:, None]
  if activation == "silu": expected = expected / (1 + np.exp(-expected))
  y, state = run("CausalConvWithState", x, w, bias, past, opset=27, outputs=2, activation=activation)
  np.testing.assert_allclose(y, expected, **CLOSE)
  np.testing.assert_array_equal(state, given[:, :, -3:])
  parts = [run("CausalConvWithState", x[:, :, :2], w, bias, past, opset=27, outputs=2, activation=activation)]
  parts.append(run("CausalConvWithState", x[:, :, 2:], w, bias, parts[0][1], opset=27, outputs=2,
                   activation=activation))
  np.testing.assert_allclose(np.concatenate([p[0] for p in parts], 2), expected, **CLOSE)

def test_bad_convolutions() -> None:
  x, w = random(1, 2, 3), random(2, 1, 2)
  with pytest.raises(TinyError, match="activation is"): run("CausalConvWithState", x, w, opset=27, activation="tanh")
  with pytest.raises(TinyError, match="each channel"): run("CausalConvWithState", x, w[:1], opset=27)
  with pytest.raises(TinyError, match="is wanted"): run("CausalConvWithState", x, w, None, x, opset=27)
