"""RNN, GRU and LSTM against their definitions, step by step in NumPy, and against torch where it is installed."""
from typing import Any

import numpy as np
import pytest

from formats.onnx_writer import run
from tinyhw.errors import TinyError

F32 = np.float32
T, N, I, H = 4, 2, 3, 5

def weights(gates: int, directions: int = 1) -> tuple[Any, ...]:
  rng = np.random.default_rng(gates)
  return tuple(rng.standard_normal(s).astype(F32) * 0.5 for s in ((T, N, I), (directions, gates * H, I),
                                                                  (directions, gates * H, H),
      (directions, 2 * gates * H)))

def sigmoid(x: Any) -> Any: return 1 / (1 + np.exp(-x))

def lstm(x: Any, w: Any, r: Any, b: Any, h: Any, c: Any) -> tuple[Any, Any, Any]:
  rows = []
  for step in x:
    i, o, f, g = np.split(step @ w.T + h @ r.T + b[:4 * H] + b[4 * H:], 4, 1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    rows.append(h)
  return np.array(rows), h, c

def test_lstm(engine: str) -> None:
  x, w, r, b = weights(4)
  zero = np.zeros((N, H), F32)
  y, h, c = run("LSTM", x, w, r, b, hidden_size=H, outputs=3)
  expected = lstm(x, w[0], r[0], b[0], zero, zero)
  for found, wanted in zip((y[:, 0], h[0], c[0]), expected):
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)

@pytest.mark.slow
def test_lstm_in_both_directions_with_states() -> None:
  x, w, r, b = weights(4, 2)
  h0, c0 = np.random.default_rng(9).standard_normal((2, 2, N, H)).astype(F32)
  y, h, c = run("LSTM", x, w, r, b, None, h0, c0, direction="bidirectional", outputs=3)
  there, back = lstm(x, w[0], r[0], b[0], h0[0], c0[0]), lstm(x[::-1], w[1], r[1], b[1], h0[1], c0[1])
  np.testing.assert_allclose(y, np.stack([there[0], back[0][::-1]], 1), rtol=1e-4, atol=1e-5)
  np.testing.assert_allclose(c, np.stack([there[2], back[2]]), rtol=1e-4, atol=1e-5)
  other = run("LSTM", x.transpose(1, 0, 2).copy(), w, r, b, None, h0.transpose(1, 0, 2).copy(),
              c0.transpose(1, 0, 2).copy(),
              direction="bidirectional",
              layout=1, outputs=3)
  np.testing.assert_allclose(other[0], y.transpose(2, 0, 1, 3), rtol=1e-5)
  np.testing.assert_allclose(other[1], h.transpose(1, 0, 2), rtol=1e-5)

def test_sequences_of_different_lengths() -> None:
  x, w, r, b = weights(4)
  y, h, _ = run("LSTM", x, w, r, b, np.array([4, 2], np.int32), outputs=3)
  short = lstm(x[:2, 1:], w[0], r[0], b[0], np.zeros((1, H), F32), np.zeros((1, H), F32))
  np.testing.assert_allclose(h[0, 1:], short[1], rtol=1e-4, atol=1e-5)
  assert not y[2:, 0, 1].any()

@pytest.mark.parametrize("before", [0, 1])
def test_gru(before: int) -> None:
  x, w, r, b = weights(3)
  h = np.zeros((N, H), F32)
  wb, rb = np.split(b[0], 2)
  for step in x:
    z, reset = np.split(sigmoid(step @ w[0, :2 * H].T + h @ r[0, :2 * H].T + wb[:2 * H] + rb[:2 * H]), 2, 1)
    inner = reset * (h @ r[0, 2 * H:].T + rb[2 * H:]) if before else (reset * h) @ r[0, 2 * H:].T + rb[2 * H:]
    h = (1 - z) * np.tanh(step @ w[0, 2 * H:].T + inner + wb[2 * H:]) + z * h
  np.testing.assert_allclose(run("GRU", x, w, r, b, linear_before_reset=before, outputs=2)[1][0], h, rtol=1e-4,
                             atol=1e-5)

def test_rnn_with_activations_and_clipping() -> None:
  x, w, r, b = weights(1)
  h = np.zeros((N, H), F32)
  for step in x: h = 0.5 * np.tanh(0.25 * np.clip(step @ w[0].T + h @ r[0].T + b[0, :H] + b[0, H:], -1, 1))
  found = run("RNN", x, w, r, b, activations=["ScaledTanh"], activation_alpha=[0.5], activation_beta=[0.25], clip=1.0,
              outputs=2)[1]
  np.testing.assert_allclose(found[0], h, rtol=1e-4, atol=1e-6)

def test_against_torch() -> None:
  torch = pytest.importorskip("torch")
  model = torch.nn.LSTM(I, H)
  x = np.random.default_rng(0).standard_normal((T, N, I)).astype(F32)
  def ordered(p: Any) -> Any:   # torch has i f g o, ONNX i o f c
    i, f, g, o = np.split(p.detach().numpy(), 4)
    return np.concatenate([i, o, f, g])
  b = np.concatenate([ordered(model.bias_ih_l0), ordered(model.bias_hh_l0)])
  found = run("LSTM", x, ordered(model.weight_ih_l0)[None], ordered(model.weight_hh_l0)[None], b[None], outputs=3)
  np.testing.assert_allclose(found[0][:, 0], model(torch.tensor(x))[0].detach().numpy(), rtol=1e-4, atol=1e-5)

def test_bad_layers() -> None:
  x, w, r, b = weights(4)
  for inputs, attributes, why in [((x, w, r, b), {"direction": "up"}, "direction="),
                                  ((x, w, r, b), {"direction": "bidirectional"}, "do not fit"),
                                  ((x, w, r, b), {"hidden_size": 4}, "do not fit"), ((x[0], w, r, b), {}, "three axes"),
                                  ((x, w, r, b), {"activations": ["Odd"] * 3}, "not known"),
                                  ((x, w, r, b), {"activations": ["Tanh"]}, "are wanted")]:
    with pytest.raises(TinyError, match=why): run("LSTM", *inputs, outputs=3, **attributes)

def test_the_first_versions() -> None:
  for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
    x, w, r, _ = weights(gates)
    old = run(op, x, w, r, opset=1, hidden_size=H, output_sequence=1, outputs=2)
    new = run(op, x, w, r, opset=22, hidden_size=H, outputs=2)
    for a, b in zip(old, new): np.testing.assert_array_equal(a, b)
