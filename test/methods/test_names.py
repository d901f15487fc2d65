"""methods/names.py: PyTorch's names of parameters on Tensor's methods."""
from __future__ import annotations
import inspect
from pathlib import Path
import subprocess
import sys

import pytest

from tinyhw import Tensor, dtypes
from tinyhw.errors import ArgumentError, DTypeError
from tinyhw.methods.base import is_complex
from tinyhw.methods.graph import graph
from tinyhw.methods.names import MIXED, NAMES, spelled

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

# ***** complex operands *****

def test_complex_numbers_are_loaded_when_asked_for() -> None:
  program = ("import sys; from tinyhw import Tensor; (Tensor([1.0]) * 2).tolist(); assert 'tinyhw.complex' not in "
             "sys.modules; Tensor([1j]); assert 'tinyhw.complex.tensor' in sys.modules")
  subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2])

def test_no_node_is_complex() -> None:
  x = Tensor([1j, 2]) * Tensor([1.0, 2.0])
  for plane in (x.real, x.imag):   # type: ignore[attr-defined]
    assert not any(u.dtype in dtypes.complexes for u in plane.uop.toposort())
  with pytest.raises(DTypeError, match="cast its result"): graph.cast(Tensor([1.0]).uop, dtypes.complex64)
  assert [is_complex(x) for x in (1j, Tensor([1j]), 1, Tensor([1]))] == [True, True, False, False]

def test_methods_take_complex_operands() -> None:
  x = Tensor([1.0, 2.0])
  for name in MIXED: assert hasattr(Tensor, name)
  assert x.mul(1j).tolist() == [1j, 2j]
  assert x.sub(Tensor([1j])).tolist() == [1 - 1j, 2 - 1j]
