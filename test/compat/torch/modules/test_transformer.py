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
