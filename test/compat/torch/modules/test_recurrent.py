"""compat/torch/modules/recurrent.py: with the state of PyTorch's layer, its results and gradients."""
from __future__ import annotations
from typing import Any

import numpy as np
import pytest

import tinyhw.compat.torch as ours
from tinyhw.errors import ArgumentError, ShapeError

def flat(x: Any) -> list[Any]: return [y for part in x for y in flat(part)] if isinstance(x, tuple) else [x]

@pytest.mark.parametrize(("name", "args", "options", "shape"), [
  ("RNN", (2, 3), {"nonlinearity": "relu"}, (4, 2, 2)), ("GRU", (2, 3), {"bidirectional": True}, (4, 2, 2)),
  ("LSTM", (2, 3), {"num_layers": 2, "batch_first": True, "proj_size": 2}, (2, 3, 2)), ("LSTMCell", (2, 3), {}, (2, 2)),
  ("GRUCell", (2, 3), {}, (2,)), ("RNNCell", (2, 3), {"bias": False}, (2, 2))])
def test_agrees_with_pytorch(name: str, args: Any, options: Any, shape: tuple[int, ...]) -> None:
  torch = pytest.importorskip("torch")
  theirs, mine = getattr(torch.nn, name)(*args, **options), getattr(ours.nn, name)(*args, **options)
  mine.load_state_dict(theirs.state_dict())
  x = np.random.default_rng(3).standard_normal(shape).astype("float32")
  a, b = flat(mine(ours.tensor(x))), flat(theirs(torch.tensor(x)))
  for found, wanted in zip(a, b, strict=True):
    np.testing.assert_allclose(found.numpy(), wanted.detach().numpy(), 1e-4, 1e-5)
  a[0].sum().backward()
  b[0].sum().backward()
  for (key, p), q in zip(mine.named_parameters(), theirs.parameters(), strict=True):
    np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), 1e-3, 1e-4, err_msg=key)

def test_attention() -> None:
  torch = pytest.importorskip("torch")
  theirs, mine = torch.nn.MultiheadAttention(4, 2, batch_first=True), ours.nn.MultiheadAttention(4, 2, batch_first=True)
  mine.load_state_dict(theirs.state_dict())
  x = np.random.default_rng(3).standard_normal((2, 3, 4)).astype("float32")
  a, b = mine(*[ours.tensor(x)] * 3), theirs(*[torch.tensor(x)] * 3)
  for found, wanted in zip(a, b): np.testing.assert_allclose(found.numpy(), wanted.detach().numpy(), 1e-4, 1e-5)

def test_refusals() -> None:
  with pytest.raises(ShapeError, match="wants"): ours.nn.LSTM(2, 3)(ours.ones(1, 1, 5))
  with pytest.raises(ShapeError, match="wants"): ours.nn.GRUCell(2, 3)(ours.ones(1, 5))
  with pytest.raises(ArgumentError, match="nonlinearity"): ours.nn.RNN(2, 3, nonlinearity="sin")
  with pytest.raises(ArgumentError, match="heads"): ours.nn.MultiheadAttention(5, 2)

@pytest.mark.parametrize("shape", ((1, 1, 3), (2, 2, 3), (1, 3), (2, 3)))
def test_states_of_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
  """They would broadcast, or be ignored."""
  x, h = ours.ones(4, 2, 2), ours.zeros(*shape)
  for name in ("RNN", "GRU"):
    with pytest.raises(ShapeError, match="a state of shape"): getattr(ours.nn, name)(2, 3)(x, h)
  with pytest.raises(ShapeError, match="a state of shape"): ours.nn.LSTM(2, 3)(x, (ours.zeros(1, 2, 3), h))

def test_more_refusals() -> None:
  nn, x = ours.nn, ours.ones(4, 2, 2)
  with pytest.raises(ShapeError, match="a state of shape"): nn.GRUCell(2, 3)(x[0], ours.zeros(1, 3))
  with pytest.raises(ArgumentError, match="hidden states, cell states"): nn.LSTM(2, 3)(x, ours.zeros(1, 2, 3))
  with pytest.raises(ArgumentError, match="nonlinearity"): nn.RNNCell(2, 3, nonlinearity="sin")
  with pytest.raises(ShapeError, match="one step"): nn.GRU(2, 3)(x[:0])
  y = ours.ones(3, 2, 4)
  with pytest.raises(ArgumentError, match="is_causal"): nn.MultiheadAttention(4, 2)(y, y, y, is_causal=True)
  with pytest.raises(ShapeError, match="key_padding_mask"):
    nn.MultiheadAttention(4, 2)(y, y, y, key_padding_mask=ours.zeros(3, 2).bool())
