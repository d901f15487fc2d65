"""compat/torch/differentiation/trees.py: tensors in containers."""
from __future__ import annotations

import pytest

import tinyhw.compat.torch as torch
from tinyhw.compat.torch.differentiation.trees import flattened, mapped, rebuilt, spread, tensors_of
from tinyhw.errors import ArgumentError

TREE = {"a": [1, (2, 3)], "b": 4}

def test_leaves() -> None:
  assert flattened(TREE) == [1, 2, 3, 4] and mapped(lambda x: x * 2, TREE) == {"a": [2, (4, 6)], "b": 8}
  assert rebuilt(TREE, [5, 6, 7, 8]) == {"a": [5, (6, 7)], "b": 8}
  pair = torch.ones(2).max(0)
  assert type(mapped(lambda x: x, pair)) is type(pair)

def test_options() -> None:
  assert spread("in_dims", 0, TREE) == [0] * 4
  assert spread("in_dims", {"a": [0, None], "b": 1}, TREE) == [0, None, None, 1]
  for wrong in ((0, 1, 2), {"a": 0}, {"a": [0], "b": 0}):
    with pytest.raises(ArgumentError, match="does not fit the structure"): spread("in_dims", wrong, TREE)

def test_leaves_are_tensors() -> None:
  assert len(tensors_of("results", [torch.ones(1), (torch.ones(2),)])) == 2
  with pytest.raises(ArgumentError, match="results are tensors, not 3"): tensors_of("results", [3])
  with pytest.raises(ArgumentError, match="real here"): tensors_of("results", torch.tensor([1j]))
