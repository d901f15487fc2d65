"""compat/torch/modules/transformer.py: with the state of PyTorch's layers, their results."""
from __future__ import annotations

import numpy as np
import pytest

import tinyhw.compat.torch as ours
from tinyhw.errors import ArgumentError

@pytest.mark.parametrize("norm_first", (False, True))
def test_agrees_with_pytorch(norm_first: bool) -> None:
  torch = pytest.importorskip("torch")
  options = {"dim_feedforward": 6, "dropout": 0.0, "norm_first": norm_first, "batch_first": True}
  theirs, mine = (m.nn.Transformer(4, 2, 1, 1, **options) for m in (torch, ours))
  assert mine.load_state_dict(theirs.state_dict()).missing_keys == []
  draw = np.random.default_rng(3)
  x, y = (draw.standard_normal((2, n, 4)).astype("float32") for n in (3, 2))
  found = mine(ours.tensor(x), ours.tensor(y))
  np.testing.assert_allclose(found.numpy(), theirs(torch.tensor(x), torch.tensor(y)).detach().numpy(), 1e-4, 1e-5)

def test_refusals() -> None:
  with pytest.raises(ArgumentError, match="activation"): ours.nn.TransformerEncoderLayer(4, 2, activation="sin")

def test_masks() -> None:
  """The decoder takes its masks by position, too, and a causal one hides what comes later."""
  mask = ours.nn.Transformer.generate_square_subsequent_mask(3)
  assert mask.tolist() == [[0.0, float("-inf"), float("-inf")], [0.0, 0.0, float("-inf")], [0.0, 0.0, 0.0]]
  net = ours.nn.TransformerDecoder(ours.nn.TransformerDecoderLayer(4, 2, 6), 2).eval()
  x = ours.arange(12).reshape(3, 1, 4).float().sin()
  first = net(x, x, mask)
  assert first.tolist() == net(x, x, tgt_mask=mask).tolist()
  x2 = ours.cat([x[:2], x[2:] * 2])
  np.testing.assert_allclose(net(x2, x, mask)[:2].detach().numpy(), first[:2].detach().numpy(), 1e-5, 1e-6)
