"""methods/names.py: PyTorch's names of parameters on Tensor's methods."""
from __future__ import annotations
import inspect

import pytest

from tinyhw import Tensor
from tinyhw.errors import ArgumentError
from tinyhw.methods.names import NAMES, spelled

def test_both_names_work() -> None:
  x = Tensor([[1.0, 2.0], [3.0, 4.0]])
  assert x.sum(dim=0).tolist() == x.sum(axis=0).tolist() == [4.0, 6.0]
  assert x.permute(dims=(1, 0)).tolist() == x.T.tolist()
  assert x.flip(dims=(0,)).tolist() == [[3.0, 4.0], [1.0, 2.0]]
  assert x.clamp(min=2).tolist() == [[2.0, 2.0], [3.0, 4.0]]
  assert x.add(other=1).tolist() == [[2.0, 3.0], [4.0, 5.0]]
  assert Tensor.arange(2, end=4).tolist() == [2, 3]
  assert Tensor.cat(x, x, axis=1).shape == (2, 4)
  assert x.pow(exponent=2).sum().item() == 30.0

@pytest.mark.parametrize("method", NAMES)
def test_the_table_names_parameters(method: str) -> None:
  """Our names are parameters of the method, and PyTorch's are not."""
  parameters = inspect.signature(getattr(Tensor, method)).parameters
  for theirs, ours in NAMES[method].items():
    assert ours in parameters, f"{method} has no {ours}"
    assert theirs not in parameters, f"{method} has {theirs} itself"

def test_a_name_given_twice() -> None:
  with pytest.raises(ArgumentError, match="axis twice"): Tensor([1.0]).sum(axis=0, dim=0)
  assert spelled("f", {"dim": 1, "keepdim": True}, {"dim": "axis"}) == {"axis": 1, "keepdim": True}
