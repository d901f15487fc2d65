"""compat/torch/modules/sequences.py: padded and packed sequences, and recurrent layers on them, against PyTorch's."""
from __future__ import annotations
from typing import Any

import numpy as np
import pytest

import tinyhw.compat.torch as ours
from tinyhw.errors import ArgumentError, ShapeError

_RNG = np.random.default_rng(0)
LENGTHS = (2, 5, 4, 5)
SEQUENCES = [_RNG.normal(size=(n, 3)).astype(np.float32) for n in LENGTHS]

def run(torch: Any, net: Any, batch_first: bool) -> list[Any]:
  """Return what a layer makes of packed sequences, and its gradients."""
  u, given = torch.nn.utils.rnn, [torch.tensor(s) for s in SEQUENCES]
  x = u.pad_sequence(given, batch_first=batch_first)
  packed = u.pack_padded_sequence(x, LENGTHS, batch_first=batch_first, enforce_sorted=False)
  out, h = net(packed)
  y, lengths = u.pad_packed_sequence(out, batch_first=batch_first, padding_value=-7.0, total_length=6)
  y.sum().backward()
  return [packed.batch_sizes, out.batch_sizes, y, lengths, *(h if isinstance(h, tuple) else [h]),
          *[p.grad for p in net.parameters()], *u.unpack_sequence(out), u.pad_sequence(given, padding_side="left"),
          *u.unpad_sequence(x, torch.tensor(LENGTHS), batch_first)]

@pytest.mark.parametrize("name, bidirectional, batch_first", [("LSTM", True, False), ("GRU", True, True),
                                                              ("RNN", False, True)])
def test_layers_on_packed_sequences(name: str, bidirectional: bool, batch_first: bool) -> None:
  torch = pytest.importorskip("torch")
  a, b = (getattr(t.nn, name)(3, 4, num_layers=2, bidirectional=bidirectional, batch_first=batch_first)
          for t in (torch, ours))
  b.load_state_dict(a.state_dict())
  for x, y in zip(run(torch, a, batch_first), run(ours, b, batch_first), strict=True):
    np.testing.assert_allclose(y.detach().numpy(), x.detach().numpy(), rtol=1e-4, atol=1e-5)

def test_packing() -> None:
  u = ours.nn.utils.rnn
  packed = u.pack_sequence([ours.tensor([1, 2, 3]), ours.tensor([4, 5])])
  assert packed.data.tolist() == [1, 4, 2, 5, 3] and packed.batch_sizes.tolist() == [2, 2, 1]
  assert packed.sorted_indices is None and packed.lengths == [3, 2]
  assert packed.to(ours.float32).data.dtype is ours.float32
  assert u.invert_permutation(ours.tensor([2, 0, 1])).tolist() == [1, 2, 0] and u.invert_permutation(None) is None
  assert u.PackedSequence(packed.data, packed.batch_sizes, ours.tensor([1, 0])).unsorted_indices.tolist() == [1, 0]

def test_refusals() -> None:
  u, x = ours.nn.utils.rnn, ours.ones(3, 2)
  for match, call in {
      "2 sequences": lambda: u.pack_padded_sequence(x, [1]), "at least 1": lambda: u.pack_padded_sequence(x, [1, 0]),
      "in 3 steps": lambda: u.pack_padded_sequence(x, [4, 1]), "do not fall": lambda: u.pack_padded_sequence(x, [1, 2]),
      "total_length is 1": lambda: u.pad_packed_sequence(u.pack_padded_sequence(x, [2, 1]), total_length=1),
      "a sequence at least": lambda: u.pad_sequence([]), "padding_side": lambda: u.pad_sequence([x], padding_side="up"),
      "has batch_sizes": lambda: u.PackedSequence(x)}.items():
    with pytest.raises((ArgumentError, ShapeError), match=match): call()
