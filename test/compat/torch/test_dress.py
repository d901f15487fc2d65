"""compat/torch/dress.py: plain and dressed handles of one tensor, out=, arguments that do not fit."""
from __future__ import annotations

import pytest

import tinyhw.compat.torch as torch
from tinyhw import Tensor, dtypes
from tinyhw.compat.torch.dress import dress, dressed, kind_of, plain
from tinyhw.errors import ArgumentError

def test_both_are_one_tensor() -> None:
  x = torch.tensor([1.0, 2.0])
  y = plain(x)
  assert type(y) is Tensor
  y += 1
  assert x.tolist() == [2.0, 3.0]
  assert type(dress(Tensor([1]))) is torch.Tensor
  assert [type(t) for t in plain({"a": (x, 3)})["a"]] == [Tensor, int]

def test_a_function_of_the_users_gets_dressed_tensors() -> None:
  seen = []
  def distance(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    seen.append(type(a))
    return (a - b).abs().sum(-1)
  x = torch.tensor([[1.0], [2.0]])
  torch.nn.functional.triplet_margin_with_distance_loss(x, x, x + 1, distance_function=distance)
  assert set(seen) == {torch.Tensor}

def test_out() -> None:
  out = torch.zeros(2)
  assert torch.add(torch.tensor([1.0, 2.0]), 1, out=out) is out
  assert out.tolist() == [2.0, 3.0]
  with pytest.raises(ArgumentError, match="out is a tensor"): torch.exp(torch.tensor([1.0]), out=3)

def test_arguments_that_do_not_fit() -> None:
  with pytest.raises(ArgumentError, match="cumsum: missing a required argument: 'dim'"): torch.cumsum(torch.ones(2))
  with pytest.raises(ArgumentError, match="does not take arguments of these kinds"):
    torch.histogramdd(torch.ones(2, 2), 3, range=5)

def test_types() -> None:
  assert kind_of(int) is dtypes.int64
  assert kind_of(None) is None
  assert kind_of("complex64") is kind_of(complex) is dtypes.complex64
  assert dressed(lambda x: x.add(1), "f")(torch.tensor([1])).tolist() == [2]
