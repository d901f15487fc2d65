"""compat/torch/generators.py: generators, seeds and states."""
from __future__ import annotations
import pytest

import tinyhw.compat.torch as torch
from tinyhw.errors import ArgumentError

def test_generators() -> None:
  g = torch.Generator().manual_seed(3)
  a, b = torch.rand(3, generator=g).tolist(), torch.rand(3, generator=g).tolist()
  assert a != b and g.initial_seed() == 3
  assert a == torch.rand(3, generator=torch.Generator("cpu").manual_seed(3)).tolist()
  state = g.get_state()
  c = torch.randn(2, generator=g).tolist()
  assert g.set_state(state) is g and torch.randn(2, generator=g).tolist() == c
  other = g.clone_state()
  assert torch.randperm(5, generator=g).tolist() == torch.randperm(5, generator=other).tolist()
  assert g.seed() == g.initial_seed()
  with pytest.raises(ArgumentError, match=r"torch\.Generator"): torch.rand(2, generator=3)
  with pytest.raises(ArgumentError, match="a state of 2 bytes"): g.set_state(torch.tensor([1, 2]))

def test_a_generator_leaves_the_default_one() -> None:
  torch.manual_seed(1)
  a = torch.rand(2).tolist()
  torch.manual_seed(1)
  torch.randint(0, 9, (4,), generator=torch.Generator())
  torch.zeros(3).normal_(generator=torch.Generator())
  assert torch.rand(2).tolist() == a and torch.initial_seed() == 1

def test_states_of_the_default_generator() -> None:
  assert torch.manual_seed(5) is torch.random.default_generator
  state = torch.get_rng_state()
  a = torch.rand(2).tolist()
  torch.set_rng_state(state)
  with torch.random.fork_rng(): assert torch.rand(2).tolist() == a
  assert torch.rand(2).tolist() == a and torch.seed() == torch.initial_seed()
